from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import BumpStop, ModelBuilder, ModelError, Simulation, SolverConfig, Transform, UnknownNameError
from gpusim.actuators import strut
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, G, ball_body, bits, different, history, order, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
MASS, K = 2.0, 800.0
PROGRESSIVE = {"stiffness": K, "rest_length": 1.0, "bump": BumpStop(1.0, 1e3, 0.02), "droop": BumpStop(1.0, 1e3, 0.02)}
CORNERS = {"stiffness": K, "rest_length": 1.0, "bump": BumpStop(0.95, 1e6), "droop": BumpStop(1.08, 1e5)}
TABLE = {"table": [(0.8, 900.0), (0.95, 400.0), (1.0, 20.0), (1.02, 0.0), (1.2, -30.0)]}
LAWS = {"progressive": PROGRESSIVE, "corners": CORNERS, "table": TABLE}


def mass_on_a_spring(solver: str, dt: float, at: float = 0.0, speed: float = 0.0, **spring: Any) -> Simulation:
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS)
    b.add_spring(-1, 0, (-1.0, 0, 0), label="s", **spring)
    sim = simulate(b, dt=dt, joint_solver=solver)
    sim.write("joint.slide.position", at)
    sim.write("joint.slide.velocity", speed)
    return sim


def position(sim: Simulation) -> float:
    return float(sim.read("joint.slide.position")[0])


def hung(solver: str, dt: float = 1e-2, **spring: Any) -> Simulation:
    """A mass 1 m below a hook."""
    b = ModelBuilder()
    body = ball_body(b, MASS, label="x")
    b.add_joint_prismatic(-1, body, axis=(0, 0, -1), label="slide")
    b.add_spring(-1, body, (0, 0, 1.0), label="s", **spring)
    return simulate(b, dt=dt, joint_solver=solver)


@both_solvers
def test_preload_is_the_force_as_built(solver: str) -> None:
    """The length is built length + (preload - F)/k under a force F."""
    sim = hung(solver, stiffness=K, damping=60.0, preload=-MASS * G)
    assert sim.read("spring.s.force")[0] == pytest.approx(-MASS * G, rel=1e-12)
    sim.step(200)
    assert sim.read("spring.s.length")[0] == pytest.approx(1.0, abs=1e-9)
    sim = hung(solver, stiffness=K, damping=60.0, preload=10.0)
    sim.step(300)
    assert sim.read("spring.s.length")[0] == pytest.approx(1.0 + (10.0 + MASS * G) / K, abs=1e-9)
    # With a pair it is the other kind, whose free length is the same.
    sim = hung(solver, stiffness=K, damping=(60.0, 60.0), preload=10.0)
    sim.step(300)
    assert sim.read("spring.s.length")[0] == pytest.approx(1.0 + (10.0 + MASS * G) / K, abs=1e-9)


@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@both_solvers
def test_without_corners_it_is_the_linear_spring(solver: str, scheme: str) -> None:
    def motion(**spring: Any) -> np.ndarray:
        b = ModelBuilder()
        body = ball_body(b, MASS, label="x")
        pin = Transform((0.3, 0, 0))
        b.add_joint_revolute(-1, body, pin, pin, axis=(0, 1, 0), label="hinge")
        b.add_spring(-1, body, (0.1, 0.05, 0.9), label="s", **spring)
        sim = simulate(b, dt=5e-3, joint_solver=solver, scheme=scheme)
        signals = ("joint.hinge.position", "spring.s.force", "sim.potential_energy")
        return np.hstack([history(sim, name, 40)[:, 0] for name in signals])

    linear = motion(stiffness=K, damping=7.0, rest_length=0.8)
    np.testing.assert_allclose(motion(stiffness=K, damping=(7.0, 7.0), rest_length=0.8), linear, rtol=1e-9)
    curve = [(-2.0, -14.0), (0.0, 0.0), (0.01, 0.07)]
    table = [(0.3, 0.5 * K), (0.79, 0.01 * K), (1.0, -0.2 * K)]
    np.testing.assert_allclose(motion(damping=curve, table=table), linear, rtol=1e-8)


@both_solvers
def test_a_hardening_spring_swings_by_an_elliptic_integral(solver: str) -> None:
    """F = -k x - c x^3 crosses zero after K(A^2 c/(2 (k + c A^2)))/sqrt((k + c A^2)/m), with the elliptic integral
    K."""
    k, c, amplitude = K + 1e3, 1e3 / 0.02**2, 0.03
    top = k + c * amplitude**2
    mean, other = 1.0, np.sqrt(1.0 - c * amplitude**2 / (2.0 * top))
    for _ in range(8):
        mean, other = 0.5 * (mean + other), np.sqrt(mean * other)
    quarter = np.pi / (2.0 * mean) / np.sqrt(top / MASS)

    def error(steps: float) -> float:
        sim = mass_on_a_spring(solver, quarter / steps, amplitude, **PROGRESSIVE)
        sim.step(5 * round(steps))
        return abs(position(sim))

    assert error(100) < 1e-3 * amplitude
    assert error(25) / error(100) > 14.0


@both_solvers
def test_a_spring_with_a_corner_swings_by_its_two_halves(solver: str) -> None:
    """With stiffness k outward and k + s inward, x = -(v/w2) sin w2 t after the zero crossing at pi/(2 w1)."""
    stop, amplitude = 4e3, 0.04
    out, inward = np.sqrt(K / MASS), np.sqrt((K + stop) / MASS)
    time = 0.5 * np.pi / out + np.pi / inward + 0.3 / out
    wanted = amplitude * np.sin(0.3)

    def error(dt: float) -> float:
        steps = round(time / dt)
        sim = mass_on_a_spring(solver, time / steps, amplitude, stiffness=K, rest_length=1.0, bump=BumpStop(1.0, stop))
        sim.step(steps)
        return abs(position(sim) - wanted)

    assert error(1e-3) < 1e-3 * amplitude
    assert order(error, 4e-3) > 1.7


def mass_on_a_joint(solver: str, dt: float, at: float, rest_length: float | None = None, **spring: Any) -> Simulation:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, 0.2 * MASS, label="x")
    joint = b.add_joint_prismatic(-1, body, Transform((-1.0, 0, 0)), axis=(1, 0, 0), armature=0.8 * MASS, label="slide")
    b.add_torsion_spring(joint, rest_angle=rest_length, label="s", **spring)
    sim = simulate(b, dt=dt, joint_solver=solver)
    sim.write("joint.slide.position", 1.0 + at)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2, 5e-2])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("make", [mass_on_a_spring, mass_on_a_joint])
@both_solvers
def test_no_step_gains_or_loses_energy(solver: str, make: Callable[..., Simulation], law: str, dt: float) -> None:
    """m v^2/2 + V at the middle of steps stays constant for 10 s."""
    sim = make(solver, dt, 0.1, **LAWS[law])

    def energy() -> np.ndarray:
        x = history(sim, "spring.s.length", 40)
        middle = 0.5 * (x[1:] + x[:-1])
        springs, rest = strut.pieces(sim.state.groups[0])[0], np.ones_like(middle)
        return 0.5 * MASS * (np.diff(x, axis=0) / dt) ** 2 + (rest - middle) * strut.mean(springs, rest, middle)[0]

    start = energy()
    sim.step(round(10.0 / dt) - 80)
    np.testing.assert_allclose(np.vstack([start, energy()]), start[0, 0], rtol=1e-7)


@pytest.mark.parametrize("dt", [1e-3, 5e-2])
def test_two_springs_do_not_swing_against_each_other(dt: float) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS)
    for label, law in (("a", PROGRESSIVE), ("b", CORNERS)):
        b.add_spring(-1, 0, (-1.0, 0, 0), label=label, **law)
    sim = simulate(b, dt=dt, joint_solver="direct")
    sim.write("joint.slide.position", 0.1)
    x = history(sim, "spring.a.length", 600)
    middle = np.repeat(0.5 * (x[1:] + x[:-1]), 2, axis=1)
    springs, rest = strut.pieces(sim.state.groups[0])[0], np.ones_like(middle)
    stored = np.sum((rest - middle) * strut.mean(springs, rest, middle)[0], axis=1)
    energy = 0.5 * MASS * (np.diff(x[:, 0]) / dt) ** 2 + stored
    np.testing.assert_allclose(energy, energy[0], rtol=1e-7 if dt < 1e-2 else 1e-2)


@both_solvers
def test_signals_of_energy_close(solver: str) -> None:
    sim = mass_on_a_spring(solver, 2e-4, 0.12, stiffness=K, rest_length=1.0, bump=BumpStop(0.95, 2e4, 0.05))
    begin = sim.read("sim.potential_energy")[0]
    assert begin == pytest.approx(0.5 * K * 0.12**2, rel=1e-12)
    for _ in range(150):
        sim.step(10)
        total = sim.read("sim.potential_energy")[0] + sim.read("sim.kinetic_energy")[0]
        assert total == pytest.approx(begin, rel=2e-3)


@pytest.mark.parametrize("length", [np.inf, 0.01])
@both_solvers
def test_greatest_compression_of_a_bump_stop(solver: str, length: float) -> None:
    """Energy balance: m v^2/2 = s d^2/2 (1 + d^2/(2 l^2))."""
    stop, speed = 2e4, 0.8
    sim = mass_on_a_spring(solver, 2e-4, 0.0, -speed, bump=BumpStop(0.98, stop, length))
    depth = 0.98 - history(sim, "spring.s.length", 400)[:, 0].min()
    energy = 0.5 * stop * depth**2 * (1.0 + 0.5 * (depth / length) ** 2)
    assert energy == pytest.approx(0.5 * MASS * speed**2, rel=1e-3)
    assert sim.read("joint.slide.velocity")[0] == pytest.approx(speed, rel=1e-6)


@both_solvers
def test_bound_and_rebound_damp_their_own_half_cycles(solver: str) -> None:
    """Each half cycle shrinks by exp(-d t), d = c/(2 m), t = pi/sqrt(k/m - d^2)."""
    bound, rebound, amplitude = 8.0, 30.0, 0.05
    d = np.array([bound, rebound]) / (2.0 * MASS)
    t = np.pi / np.sqrt(K / MASS - d * d)

    def error(steps: float) -> float:
        sim = mass_on_a_spring(solver, t[0] / steps, amplitude, stiffness=K, rest_length=1.0, damping=(bound, rebound))
        sim.step(round(steps))
        assert position(sim) == pytest.approx(-amplitude * np.exp(-d[0] * t[0]), rel=2e-2)
        sim.step(round(steps), dt=t[1] / steps)
        return abs(position(sim) - amplitude * np.exp(-d @ t))

    assert error(80) < 1e-3 * amplitude
    assert error(20) / error(80) > 10.0


@both_solvers
def test_table_of_a_damper_holds_a_load(solver: str) -> None:
    curve = [(-0.5, -40.0), (-0.1, -30.0), (0.0, 0.0), (0.2, 10.0), (1.0, 50.0)]
    for load, speed in ((-35.0, -0.3), (20.0, 0.4), (60.0, 1.2), (-60.0, -1.3)):
        b = ModelBuilder(gravity=NO_GRAVITY)
        slider(b, MASS)
        b.add_spring(-1, 0, (-50.0, 0, 0), damping=curve, label="s")
        b.add_force(0, (load, 0, 0))
        sim = simulate(b, dt=1e-2, joint_solver=solver)
        sim.step(500)
        assert sim.read("joint.slide.velocity")[0] == pytest.approx(speed, rel=1e-6)
        assert sim.read("spring.s.force")[0] == pytest.approx(-load, rel=1e-6)


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@both_solvers
def test_a_damper_that_flattens_out_does_not_swing(solver: str, dt: float) -> None:
    """Nearly dry friction F stops the mass after v^2/(2 a)."""
    friction, speed = 40.0, 1.0
    curve = [(-1.0, -friction), (-1e-6, -friction), (0.0, 0.0), (1e-6, friction), (1.0, friction)]
    sim = mass_on_a_spring(solver, dt, 0.0, speed, damping=curve)
    sim.step(round(0.4 / dt))
    assert position(sim) == pytest.approx(0.5 * speed**2 * MASS / friction, abs=0.3 * speed * dt)
    assert abs(sim.read("joint.slide.velocity")[0]) < 1e-4
    assert sim.read("sim.health")[0] == 0


@both_solvers
def test_table_of_forces_at_rest(solver: str) -> None:
    for load, wanted in ((-210.0, 0.975), (-1000.0, 0.77), (10.0, 1.08)):
        b = ModelBuilder(gravity=NO_GRAVITY)
        slider(b, MASS)
        b.add_spring(-1, 0, (-1.0, 0, 0), damping=50.0, label="s", **TABLE)
        b.add_force(0, (load, 0, 0))
        sim = simulate(b, dt=1e-2, joint_solver=solver)
        sim.step(2000)
        assert sim.read("spring.s.length")[0] == pytest.approx(wanted, abs=1e-7)


@both_solvers
def test_stops_of_a_joint(solver: str) -> None:
    """Beyond a stop at the angle at, q = at + T/(k + s)."""
    for torque, wanted in ((-6.0, -0.2 - (6.0 - 2.0 - 2.0) / 60.0), (6.0, 0.3 + (6.0 - 3.0 + 2.0) / 110.0)):
        b = ModelBuilder(gravity=NO_GRAVITY)
        b.add_torsion_spring(
            wheel(b), 10.0, (3.0, 4.0), preload=2.0, label="s", bump=BumpStop(-0.2, 50.0), droop=BumpStop(0.3, 100.0)
        )
        b.add_torque(0, (0, torque, 0))
        sim = simulate(b, dt=1e-2, joint_solver=solver)
        assert sim.read("spring.s.force")[0] == pytest.approx(2.0)
        sim.step(300)
        assert sim.read("joint.wheel.position")[0] == pytest.approx(wanted, abs=1e-8)
        assert sim.read("spring.s.force")[0] == pytest.approx(-torque, rel=1e-6)
        assert sim.read("joint.wheel.drive_force")[0] == pytest.approx(-torque, rel=1e-6)


def test_copies_keep_their_laws() -> None:
    one = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(one, MASS)
    one.add_spring(-1, 0, (-1.0, 0, 0), label="line", stiffness=K, preload=5.0, bump=BumpStop(1.1, K))
    one.add_torsion_spring(joint, table=[(-1.0, 30.0), (1.0, -10.0)], damping=(1.0, 2.0), label="coordinate")
    both = ModelBuilder(gravity=NO_GRAVITY)
    wheel(both, y=5.0)
    both.add_builder(one, Transform.from_rpy((0.3, -0.2, 0.9), (0.4, -0.7, 1.1)), "copy_")
    sim = simulate(both, dt=1e-3)
    assert sim.read("spring.copy_line.force")[0] == pytest.approx(5.0 + 0.1 * K, rel=1e-9)
    assert sim.read("spring.copy_coordinate.force")[0] == pytest.approx(10.0, rel=1e-9)


@pytest.mark.native
@pytest.mark.parametrize("launch", ["fused", "staged"])
@both_solvers
def test_worlds_with_constants_of_their_own(solver: str, launch: str) -> None:
    def run(stiffness: list[float], launch: str) -> Simulation:
        b = ModelBuilder(gravity=NO_GRAVITY)
        slider(b, MASS)
        b.add_spring(-1, 0, (-1.0, 0, 0), label="s", damping=(3.0, 9.0), **CORNERS)
        config = SolverConfig(dt=5e-3, joint_solver=solver)
        sim = Simulation(b.finalize(), len(stiffness), "native", config=config, launch=launch)
        sim.write("spring.s.bump_stiffness", stiffness)
        sim.write("joint.slide.position", 0.1)
        sim.step(60)
        return sim

    many = run([1e3, 1e5, 1e7], launch)
    assert len(set(many.read("joint.slide.position"))) == 3
    for world, stiffness in enumerate((1e3, 1e5, 1e7)):
        assert different(bits(many, world), bits(run([stiffness], "fused"), 0)) == []


def test_constants_are_checked_when_written() -> None:
    sim = mass_on_a_spring("direct", 1e-2, **CORNERS)
    for name, value in (("bump_stiffness", -1.0), ("bound_damping", -1.0), ("droop_length", 0.0), ("bump_at", 2.0)):
        with pytest.raises(ModelError, match=naming(name)):
            sim.write(f"spring.s.{name}", value)
    with pytest.raises(UnknownNameError):
        sim.write("spring.s.table_force_0", 1.0)
