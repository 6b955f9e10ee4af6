"""Servos, linear and torsion springs against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Transform

from .helpers import NO_GRAVITY, SOLVERS, G, ball_body, history, order, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
MASS, INERTIA = 2.0, 0.1


@both_solvers
def test_position_servo_sags_by_the_load_over_its_stiffness(solver: str) -> None:
    """At rest, q = target + T/k, and the servo's effort is -T."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    turn = wheel(b, INERTIA)
    b.add_servo(turn, stiffness=200.0, damping=9.0, target=0.3, label="turn")
    b.add_torque(0, (0, 4.0, 0))
    travel = slider(b, MASS, y=1.0)
    b.add_servo(travel, stiffness=5e3, damping=200.0, target=-0.1, label="travel")
    b.add_force(1, (25.0, 0, 0))
    sim = simulate(b, dt=1e-2, joint_solver=solver)
    sim.step(80)
    assert sim.read("joint.wheel.position")[0] == pytest.approx(0.3 + 4.0 / 200.0, rel=1e-6)
    assert sim.read("joint.slide.position")[0] == pytest.approx(-0.1 + 25.0 / 5e3, rel=1e-6)
    assert sim.read("servo.turn.force")[0] == pytest.approx(-4.0, rel=1e-6)
    assert sim.read("servo.travel.force")[0] == pytest.approx(-25.0, rel=1e-6)
    assert sim.read("joint.slide.drive_force")[0] == pytest.approx(-25.0, rel=1e-6)
    sim.control["turn"] = -0.2
    sim.step(80)
    assert sim.read("joint.wheel.position")[0] == pytest.approx(-0.2 + 4.0 / 200.0, rel=1e-6)
    assert sim.read("servo.turn.target")[0] == -0.2


@both_solvers
def test_velocity_servo_slips_by_the_load_over_its_gain(solver: str) -> None:
    """Steady state: v = target + T/damping, approached as exp(-c t/I)."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = wheel(b, INERTIA)
    b.add_servo(joint, mode="velocity", damping=2.0, target=5.0, label="s")
    b.add_torque(0, (0, -1.0, 0))
    sim = simulate(b, dt=2e-3, joint_solver=solver)
    sim.step(50)
    assert sim.read("joint.wheel.velocity")[0] == pytest.approx(4.5 * (1.0 - np.exp(-2.0 / INERTIA * 0.1)), rel=1e-3)
    sim.step(150, dt=1e-2)
    assert sim.read("joint.wheel.velocity")[0] == pytest.approx(4.5, rel=1e-9)
    assert sim.read("servo.s.force")[0] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("mode", ["position", "velocity"])
@both_solvers
def test_effort_limit_saturates_exactly(solver: str, mode: str) -> None:
    """A saturated servo is a constant force: x = F_max t^2/(2 m)."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(b, MASS)
    b.add_servo(joint, mode=mode, stiffness=1e5, damping=1e4, effort_limit=6.0, target=50.0, label="s")
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(20)
    assert sim.read("joint.slide.position")[0] == pytest.approx(0.5 * 6.0 / MASS * 0.01, rel=1e-9)
    assert sim.read("servo.s.force")[0] == pytest.approx(6.0, rel=1e-12)
    sim.control["s"] = -50.0
    sim.step(20)
    assert sim.read("servo.s.force")[0] == pytest.approx(-6.0, rel=1e-12)
    # Which way the servo pushes in the kick that sees both targets is open: one step's worth.
    assert sim.read("joint.slide.velocity")[0] == pytest.approx(0.0, abs=1.001 * 6.0 / MASS * 5e-3)


@both_solvers
def test_two_servos_on_one_joint_keep_their_own_limits(solver: str) -> None:
    """The saturated servo applies 1 N, so q = (F - 1)/k."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(b, MASS)
    b.add_servo(joint, stiffness=1e3, damping=100.0, label="strong")
    b.add_servo(joint, stiffness=1e6, damping=100.0, effort_limit=1.0, label="weak")
    b.add_force(0, (11.0, 0, 0))
    sim = simulate(b, dt=1e-2, joint_solver=solver)
    sim.step(160)
    assert sim.read("servo.weak.force")[0] == pytest.approx(-1.0, rel=1e-9)
    assert sim.read("servo.strong.force")[0] == pytest.approx(-10.0, rel=1e-6)
    assert sim.read("joint.slide.position")[0] == pytest.approx(10.0 / 1e3, rel=1e-6)


@pytest.mark.parametrize("stiffness", [1e6, 1e9, 1e12])
@both_solvers
def test_huge_gains_are_stable_at_ten_milliseconds(solver: str, stiffness: float) -> None:
    b = ModelBuilder()
    body = b.add_body(MASS, (0.02, 0.02, 0.02), com=(0.5, 0, 0))
    joint = b.add_joint_revolute(-1, body, axis=(0, 1, 0), label="hinge")
    b.add_servo(joint, stiffness=stiffness, damping=stiffness * 1e-2, label="s")
    sim = simulate(b, dt=1e-2, joint_solver=solver, iterations=30)
    sim.step(80)
    assert sim.read("joint.hinge.position")[0] == pytest.approx(MASS * G * 0.5 / stiffness, abs=1e-6)
    assert abs(sim.read("joint.hinge.velocity")[0]) < 1e-4
    assert sim.read("servo.s.force")[0] == pytest.approx(-MASS * G * 0.5, rel=1e-2)


@pytest.mark.parametrize("kind", ["linear", "torsion"])
@both_solvers
def test_spring_damper_oscillation_converges_with_second_order(solver: str, kind: str) -> None:
    """x = exp(-d t)(x0 cos w t + d x0/w sin w t), d = c/(2 m), w = sqrt(k/m - d^2)."""
    k, c, x0, time = 800.0, 4.0, 0.05, 0.24
    mass = MASS if kind == "linear" else INERTIA
    k, c = (k, c) if kind == "linear" else (k * INERTIA / MASS, c * INERTIA / MASS)
    d = c / (2.0 * mass)
    w = np.sqrt(k / mass - d * d)

    def error(dt: float) -> float:
        b = ModelBuilder(gravity=NO_GRAVITY)
        if kind == "linear":
            slider(b, MASS, "j")
            b.add_spring(-1, 0, (-1.0, 0, 0), (0, 0, 0), stiffness=k, damping=c, rest_length=1.0, label="s")
        else:
            b.add_torsion_spring(wheel(b, INERTIA, "j"), stiffness=k, damping=c, label="s")
        sim = simulate(b, dt=dt, joint_solver=solver)
        sim.write("joint.j.position", x0)
        sim.step(round(time / dt))
        wanted = np.exp(-d * time) * (x0 * np.cos(w * time) + d * x0 / w * np.sin(w * time))
        rest = 1.0 if kind == "linear" else 0.0
        length = sim.read("spring.s.length")[0] - rest
        assert length == pytest.approx(sim.read("joint.j.position")[0], abs=1e-12)
        rate = sim.read("joint.j.velocity")[0]
        assert sim.read("spring.s.force")[0] == pytest.approx(-k * length - c * rate, abs=0.02 * k * x0)
        return abs(float(length) - wanted)

    assert error(2e-3) < 0.002 * x0
    assert order(error, 4e-3) > 1.8


@both_solvers
def test_an_undamped_spring_keeps_its_energy(solver: str) -> None:
    """After 50 periods with 25 steps each, the amplitude is x0 within 1e-3."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS)
    b.add_spring(-1, 0, (-1.0, 0, 0), (0, 0, 0), stiffness=MASS * (2 * np.pi) ** 2, rest_length=1.0)
    sim = simulate(b, dt=0.04, joint_solver=solver)
    sim.write("joint.slide.position", 0.1)
    x = history(sim, "joint.slide.position", 250)[:, 0]
    assert np.abs(x[-26:]).max() == pytest.approx(0.1, rel=1e-2)
    energy = sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]
    assert energy == pytest.approx(0.5 * MASS * (2 * np.pi * 0.1) ** 2, rel=0.02)


@pytest.mark.parametrize("stiffness", [1e5, 1e9])
@both_solvers
def test_stiff_springs_are_stable_and_hold_the_weight(solver: str, stiffness: float) -> None:
    """At rest, x = m g/k."""
    b = ModelBuilder()
    body = ball_body(b, MASS, label="x")
    b.add_joint_prismatic(-1, body, axis=(0, 0, 1), label="rail")
    damping = 0.5 * np.sqrt(stiffness * MASS)
    b.add_spring(-1, body, (0, 0, 1.0), stiffness=stiffness, damping=damping, rest_length=1.0, label="s")
    sim = simulate(b, dt=1e-2, joint_solver=solver)
    z = history(sim, "joint.rail.position", 60)[:, 0]
    # With many periods in one step the average-acceleration rule rings around -m g/k, far below one step's fall.
    assert np.abs(z).max() <= 2.0 * MASS * G / stiffness + 1e-2 * G * 1e-2**2
    if stiffness < 1e6:
        assert z[-1] == pytest.approx(-MASS * G / stiffness, rel=1e-3)
        assert sim.read("spring.s.force")[0] == pytest.approx(-MASS * G, rel=1e-3)


def test_spring_between_two_bodies_pulls_both() -> None:
    """The two bodies oscillate with w = sqrt(k (1/m1 + 1/m2))."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    first = ball_body(b, 3.0, xform=Transform((0, 0, 0)), label="a")
    second = ball_body(b, 1.0, xform=Transform((0, 0, 1.1)), label="b")
    w = 2.0 * np.pi
    b.add_spring(first, second, stiffness=w**2 * 0.75, rest_length=1.0, label="s")
    sim = simulate(b, dt=5e-3)
    sim.step(100)
    assert sim.read("spring.s.length")[0] == pytest.approx(1.0 - 0.1, abs=1e-5)
    center = 3.0 * sim.read("body.a.position")[0] + sim.read("body.b.position")[0]
    np.testing.assert_allclose(center, (0, 0, 1.1), atol=1e-12)


def test_torsion_spring_on_each_axis_of_a_universal_joint() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, 1.0, INERTIA)
    joint = b.add_joint_universal(-1, body, label="cross")
    b.add_torsion_spring(joint, 100.0, 8.0, axis=0)
    b.add_torsion_spring(joint, 200.0, 8.0, rest_angle=0.01, axis=1)
    b.add_torque(body, (0.1, 0.1, 0.0), label="push")
    sim = simulate(b, dt=1e-2)
    sim.step(80)
    np.testing.assert_allclose(sim.read("joint.cross.position")[0], (1e-3, 0.0105), atol=2e-6)


def test_servos_on_a_ball_hold_a_rotation_vector() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, 1.0, INERTIA)
    joint = b.add_joint_ball(-1, body, label="ball")
    vector = np.array([0.4, -0.3, 0.6])
    for k in range(3):
        b.add_servo(joint, stiffness=50.0, damping=4.0, target=float(vector[k]), axis=k)
    sim = simulate(b, dt=1e-2)
    sim.step(100)
    angle = np.linalg.norm(vector)
    wanted = np.append(np.sin(angle / 2) * vector / angle, np.cos(angle / 2))
    np.testing.assert_allclose(sim.read("joint.ball.position")[0], wanted, atol=1e-6)
