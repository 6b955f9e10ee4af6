"""Dry friction, viscous damping and armature of joint coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder

from .helpers import NO_GRAVITY, SOLVERS, ball_body, history, order, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
MASS, INERTIA = 2.0, 0.1


@both_solvers
def test_dry_friction_holds_below_its_bound(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, friction=5.0)
    b.add_force(0, (4.9, 0.0, 0.0))
    wheel(b, INERTIA, y=1.0, friction=0.5)
    b.add_torque(1, (0.0, -0.49, 0.0))
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(40)
    assert abs(sim.read("joint.slide.position")[0]) < 1e-12
    assert abs(sim.read("joint.wheel.position")[0]) < 1e-12
    assert sim.read("joint.slide.reaction")[0, 0] == pytest.approx(4.9, rel=1e-9)
    assert sim.read("joint.wheel.reaction")[0, 4] == pytest.approx(-0.49, rel=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@both_solvers
def test_dry_friction_slides_above_its_bound(solver: str, sign: float) -> None:
    """Closed form: x = sign(F) (|F| - F_c) t^2/(2 m)."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, friction=5.0)
    b.add_force(0, (sign * 9.0, 0.0, 0.0))
    wheel(b, INERTIA, y=1.0, friction=0.5)
    b.add_torque(1, (0.0, sign * 0.7, 0.0))
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(40)
    assert sim.read("joint.slide.position")[0] == pytest.approx(sign * 0.5 * 4.0 / MASS * 0.04, rel=1e-9)
    assert sim.read("joint.wheel.position")[0] == pytest.approx(sign * 0.5 * 0.2 / INERTIA * 0.04, rel=1e-9)
    assert sim.read("joint.slide.reaction")[0, 0] == pytest.approx(sign * 5.0, rel=1e-9)


@pytest.mark.parametrize("dt", [1e-3, 7e-3])
@both_solvers
def test_dry_friction_stops_a_sliding_body_for_good(solver: str, dt: float) -> None:
    """The body stops after v^2 m/(2 F_c)."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, friction=5.0)
    sim = simulate(b, dt=dt, joint_solver=solver)
    sim.write("joint.slide.velocity", -0.5)
    a, v = 5.0 / MASS, 0.5
    sim.step(int(v / a / dt) + 3)
    rest = sim.read("joint.slide.position")[0]
    assert rest == pytest.approx(-(v**2) / (2.0 * a), abs=a * dt**2)
    assert abs(sim.read("joint.slide.velocity")[0]) < 1e-14
    sim.step(50)
    assert sim.read("joint.slide.position")[0] == pytest.approx(rest, abs=1e-14)


@both_solvers
def test_each_axis_of_a_joint_has_its_own_friction(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, MASS, INERTIA)
    b.add_joint_planar(-1, body, friction=(3.0, 1.0, 0.2), label="flat")
    b.add_force(body, (2.0, 2.0, 0.0))
    b.add_torque(body, (0.0, 0.0, 0.3))
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(20)
    wanted = (0.0, 0.5 * 1.0 / MASS * 0.01, 0.5 * 0.1 / INERTIA * 0.01)
    np.testing.assert_allclose(sim.read("joint.flat.position")[0], wanted, atol=1e-9)


@both_solvers
def test_viscous_damping_decays_exponentially_with_second_order(solver: str) -> None:
    """Closed form: v = v0 exp(-c t/m), x = v0 m/c (1 - exp(-c t/m))."""
    c, v0, time = 12.0, 0.8, 0.32

    def error(dt: float) -> float:
        b = ModelBuilder(gravity=NO_GRAVITY)
        slider(b, MASS, damping=c)
        wheel(b, INERTIA, y=1.0, damping=c * INERTIA / MASS)
        sim = simulate(b, dt=dt, joint_solver=solver)
        sim.write("joint.slide.velocity", v0)
        sim.write("joint.wheel.velocity", v0)
        sim.step(round(time / dt))
        x = v0 * MASS / c * (1.0 - np.exp(-c / MASS * time))
        assert sim.read("joint.wheel.position")[0] == pytest.approx(sim.read("joint.slide.position")[0], rel=1e-9)
        v = sim.read("joint.slide.velocity")[0]
        assert v == pytest.approx(v0 * np.exp(-c / MASS * time), rel=2.0 * (c / MASS * dt) ** 2)
        return abs(sim.read("joint.slide.position")[0] - x)

    assert error(4e-3) < 2e-5
    assert order(error, 8e-3) > 1.8


@pytest.mark.parametrize("damping", [1e3, 1e6, 1e9])
@both_solvers
def test_any_damping_is_stable(solver: str, damping: float) -> None:
    """The steady speed is v = F/c."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, damping=damping)
    b.add_force(0, (6.0, 0.0, 0.0))
    sim = simulate(b, dt=1e-2, joint_solver=solver)
    sim.write("joint.slide.velocity", 1.0)
    sim.step(60)
    assert sim.read("joint.slide.velocity")[0] == pytest.approx(6.0 / damping, rel=1e-6, abs=1e-12)


@both_solvers
def test_armature_adds_to_the_mass(solver: str) -> None:
    """Closed form: x = F t^2/(2 (m + m_a))."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, armature=3.0)
    b.add_force(0, (7.0, 0.0, 0.0))
    wheel(b, INERTIA, y=1.0, armature=0.4)
    b.add_torque(1, (0.0, 0.6, 0.0))
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(20)
    assert sim.read("joint.slide.position")[0] == pytest.approx(0.5 * 7.0 / 5.0 * 0.01, rel=1e-9)
    assert sim.read("joint.wheel.position")[0] == pytest.approx(0.5 * 0.6 / 0.5 * 0.01, rel=1e-9)
    v, w = 7.0 / 5.0 * 0.1, 0.6 / 0.5 * 0.1
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(0.5 * 5.0 * v**2 + 0.5 * 0.5 * w**2, rel=1e-9)


@both_solvers
def test_friction_and_a_limit_together(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, friction=2.0, limit_upper=0.02)
    b.add_force(0, (6.0, 0.0, 0.0))
    sim = simulate(b, dt=4e-3, joint_solver=solver)
    x = history(sim, "joint.slide.position", 50)[:, 0]
    assert x.max() <= 0.02 + 1e-9
    assert x[-1] == pytest.approx(0.02, abs=1e-9)
    assert sim.read("joint.slide.reaction")[0, 0] == pytest.approx(6.0, rel=1e-6)


@both_solvers
def test_friction_holds_a_servo_that_is_too_weak(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(b, MASS, friction=5.0)
    b.add_servo(joint, stiffness=1e4, damping=10.0, effort_limit=4.0, target=1.0, label="s")
    sim = simulate(b, dt=2e-3, joint_solver=solver)
    sim.step(30)
    assert abs(sim.read("joint.slide.position")[0]) < 1e-12
    assert sim.read("servo.s.force")[0] == pytest.approx(4.0, rel=1e-12)
    sim.write("servo.s.effort_limit", 6.0)
    sim.step(50)
    assert sim.read("joint.slide.position")[0] == pytest.approx(0.5 * 1.0 / MASS * 0.01, rel=3e-2)
