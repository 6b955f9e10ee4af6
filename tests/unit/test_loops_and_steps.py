from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from gpusim import ModelBuilder, ModelError, Simulation, SimulationError, SolverConfig, Transform
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, G, ball_body, bits, different, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
LENGTH, CRANK, COUPLER = 0.4, 0.03, 1.5
# Both cranks turn about their ends, the coupler only shifts: kinetic energy I q'^2/2 with
INERTIA = 2.0 * CRANK + COUPLER * LENGTH**2
Y = (0.0, 1.0, 0.0)


def parallelogram(closing: dict[str, Any], closes: str = "rocker") -> ModelBuilder:
    """A parallelogram linkage of two upright cranks and a coupler.

    Without gravity, torque T along q: q'' = T/I. It has two redundant rows and more.
    """
    b = ModelBuilder(gravity=NO_GRAVITY)
    left, right = (
        ball_body(b, 1.0, CRANK, xform=Transform((x, 0, 0)), label=n) for x, n in ((0, "left"), (1, "right"))
    )
    bar = ball_body(b, COUPLER, 0.02, com=(0.5, 0, 0), xform=Transform((0, 0, LENGTH)), label="bar")
    tip = Transform((0, 0, LENGTH))
    b.add_joint_revolute(-1, left, axis=Y, label="crank")
    b.add_joint_revolute(left, bar, tip, axis=Y, label="first")
    rocker, second = closing if closes == "rocker" else {}, closing if closes == "second" else {}
    b.add_joint_revolute(-1, right, Transform((1, 0, 0)), axis=Y, label="rocker", **rocker)
    b.add_joint_revolute(right, bar, tip, Transform((1, 0, 0)), axis=Y, label="second", **second)
    return b


@pytest.mark.parametrize("closes", ["rocker", "second"])
@both_solvers
def test_a_loop_joint_can_drive(solver: str, closes: str) -> None:
    """A saturated servo is a constant torque: q = +-T t^2/(2 I)."""
    b = parallelogram({}, closes)
    joint = {"rocker": 2, "second": 3}[closes]
    b.add_servo(joint, stiffness=1e5, effort_limit=0.5, target=50.0, label="drive")
    sim = simulate(b, dt=4e-3, joint_solver=solver, iterations=20)
    sim.step(50)
    q = 0.5 * 0.5 / INERTIA * 0.04
    sign = 1.0 if closes == "rocker" else -1.0
    for name, factor in (("crank", 1.0), ("first", -1.0), ("rocker", 1.0), ("second", -1.0)):
        assert sim.read(f"joint.{name}.position")[0] == pytest.approx(sign * factor * q, rel=1e-3)
    assert sim.read(f"joint.{closes}.drive_force")[0] == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("closes", ["rocker", "second"])
@both_solvers
def test_a_loop_joint_can_have_limits(solver: str, closes: str) -> None:
    b = parallelogram({"limit_lower": -0.05, "limit_upper": 0.05}, closes)
    b.add_torque(0, (0, 0.5, 0))
    sim = simulate(b, dt=4e-3, joint_solver=solver, iterations=20)
    worst = 0.0
    for _ in range(20):
        sim.step(4)
        worst = max(worst, float(sim.read("joint.crank.position")[0]))
    tolerance = 1e-6 if solver == "direct" else 5e-3
    assert worst <= 0.05 + tolerance
    assert sim.read("joint.crank.position")[0] == pytest.approx(0.05, abs=tolerance)
    assert abs(sim.read("joint.crank.velocity")[0]) < (1e-9 if solver == "direct" else 1e-2)


@pytest.mark.parametrize("closes", ["rocker", "second"])
@both_solvers
def test_a_loop_joint_can_have_friction_and_damping(solver: str, closes: str) -> None:
    """Closed forms: q = (T - F_c) t^2/(2 I) with friction, and q' = w exp(-c t/I) with damping."""
    for torque, q in ((0.19, 0.0), (0.5, 0.5 * 0.3 / INERTIA * 0.04)):
        b = parallelogram({"friction": 0.2}, closes)
        b.add_torque(0, (0, torque, 0))
        sim = simulate(b, dt=8e-3, joint_solver=solver, iterations=30)
        sim.step(25)
        assert sim.read("joint.crank.position")[0] == pytest.approx(
            q, rel=2e-3, abs=1e-9 if solver == "direct" else 1e-5
        )
    b = parallelogram({"damping": 2.0}, closes)
    sim = simulate(b, dt=4e-3, joint_solver=solver, iterations=30)
    for body, speed in ((0, 0.0), (1, 0.0), (2, LENGTH)):
        if speed:
            sim.write(f"body.{b.bodies[body].label}.linear_velocity", (speed, 0, 0))
        else:
            sim.write(f"body.{b.bodies[body].label}.angular_velocity", (0, 1.0, 0))
    sim.step(25)
    assert sim.read("joint.crank.velocity")[0] == pytest.approx(np.exp(-2.0 * 0.1 / INERTIA), rel=5e-3)


@both_solvers
def test_a_kinematic_body_moves_on_its_own_and_drags_others(solver: str) -> None:
    """The base moves by x = v t. The slider behind the damper has the speed v (1 - exp(-c t/m))."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    base = ball_body(b, 1.0, kinematic=True, label="base", linear_velocity=(0.7, 0, 0))
    body = ball_body(b, 2.0, label="body")
    b.add_joint_prismatic(base, body, axis=(1, 0, 0), damping=8.0, label="rail")
    b.add_force(base, (100.0, 0, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(60)
    assert sim.read("body.base.position")[0, 0] == pytest.approx(0.7 * 0.3, abs=1e-12)
    assert sim.read("body.base.linear_velocity")[0, 0] == 0.7
    speed = 0.7 * (1.0 - np.exp(-8.0 / 2.0 * 0.3))
    assert sim.read("body.body.linear_velocity")[0, 0] == pytest.approx(speed, rel=2e-3)
    sim.write("body.base.linear_velocity", (0.0, 0, 0))
    sim.step(400, dt=1e-2)
    assert sim.read("body.base.position")[0, 0] == pytest.approx(0.21, abs=1e-12)
    assert abs(sim.read("body.body.linear_velocity")[0, 0]) < 1e-6


@both_solvers
def test_a_turning_kinematic_body_carries_what_is_fixed_to_it(solver: str) -> None:
    b = ModelBuilder()
    base = ball_body(b, 1.0, kinematic=True, label="base", angular_velocity=(0, 0, 3.0))
    body = b.add_body(2.0, (0.02, 0.03, 0.04), com=(0.1, 0, 0), xform=Transform((0.5, 0, 0)), label="body",
                      linear_velocity=(0, 1.8, 0), angular_velocity=(0, 0, 3.0))  # fmt: skip
    b.add_joint_fixed(base, body, Transform((0.5, 0, 0)))
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(100)
    angle = 3.0 * 0.5
    np.testing.assert_allclose(
        sim.read("body.body.position")[0], (0.5 * np.cos(angle), 0.5 * np.sin(angle), 0), atol=1e-6
    )
    assert sim.read("sim.joint_drift")[0] < 1e-6


def test_a_kinematic_body_keeps_its_angular_velocity() -> None:
    """The orientation is R(w t)."""
    b = ModelBuilder()
    omega = np.array([1.0, 2.0, 3.0])
    b.add_body(1.0, (0.1, 0.2, 0.25), kinematic=True, angular_velocity=omega, label="base")
    sim = simulate(b, dt=1e-2)
    sim.step(50)
    np.testing.assert_allclose(sim.read("body.base.angular_velocity")[0], omega, rtol=1e-9)
    turned = Transform((0, 0, 0), sim.read("body.base.orientation")[0]).matrix()
    wanted = Transform.from_axis_angle((0, 0, 0), omega, float(np.linalg.norm(omega)) * 0.5).matrix()
    np.testing.assert_allclose(turned, wanted, atol=1e-9)


def pendulum() -> ModelBuilder:
    """Compound pendulum from the horizontal: (I + m l^2) q'' = m g l cos q."""
    b = ModelBuilder()
    body = b.add_body(2.0, (0.03, 0.04, 0.05), com=(0.5, 0, 0))
    b.add_joint_revolute(-1, body, axis=Y, label="pivot")
    return b


PATTERN, REPEATS = np.array([1.0, 3.0, 10.0, 2.0, 5.0, 1.0, 7.0, 1.0]), 8
TIME = REPEATS * PATTERN.sum() * 1e-3


def changing_steps(b: ModelBuilder, scale: float, solver: str = "direct") -> Simulation:
    sim = simulate(b, joint_solver=solver)
    sim.write("joint.slide.position", 0.1)
    for _ in range(round(REPEATS / scale)):
        for dt in PATTERN:
            sim.step(1, dt=dt * 1e-3 * scale)
    assert sim.time == pytest.approx(TIME)
    return sim


def pendulum_and_spring(damping: float) -> ModelBuilder:
    b = pendulum()
    slider(b, 2.0, y=3.0)
    b.add_spring(-1, 1, (-1.0, 3.0, 0), stiffness=300.0, damping=damping, rest_length=1.0)
    return b


def spring_position(damping: float) -> float:
    """x0 exp(-d t)(cos w t + d/w sin w t) at TIME."""
    d = damping / 4.0
    w = np.sqrt(150.0 - d * d)
    return float(0.1 * np.exp(-d * TIME) * (np.cos(w * TIME) + d / w * np.sin(w * TIME)))


@both_solvers
def test_steps_of_changing_size_stay_second_order(solver: str) -> None:
    inertia = 0.04 + 2.0 * 0.25
    swing = solve_ivp(
        lambda t, y: (y[1], 2.0 * G * 0.5 * np.cos(y[0]) / inertia), (0, TIME), (0, 0), rtol=1e-11, atol=1e-12
    )

    def errors(scale: float) -> np.ndarray:
        sim = changing_steps(pendulum_and_spring(0.0), scale, solver)
        q, x = sim.read("joint.pivot.position")[0], sim.read("joint.slide.position")[0]
        return np.abs([q - swing.y[0, -1], x - spring_position(0.0)])

    coarse, fine = errors(1.0), errors(0.5)
    assert np.all(fine < 1e-4)
    assert np.all(np.log2(coarse / fine) > 1.8)


def test_dampers_on_steps_of_changing_size_stay_accurate() -> None:
    sim = changing_steps(pendulum_and_spring(3.0), 1.0)
    assert sim.read("joint.slide.position")[0] == pytest.approx(spring_position(3.0), abs=1e-4 * 0.1)


@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@both_solvers
def test_substeps_are_steps(solver: str, scheme: str) -> None:
    """dt = 4 ms in 4 substeps gives the bits of four steps of 1 ms."""
    ends = []
    for config, steps in (({"dt": 4e-3, "substeps": 4}, 15), ({"dt": 1e-3}, 60)):
        b = pendulum()
        b.add_dc_motor(0, 1.0, 100.0, 0.02, 0.003, label="m")
        sim = simulate(b, joint_solver=solver, scheme=scheme, **config)
        sim.control["m"] = -0.7
        sim.step(steps)
        ends.append(bits(sim, 0))
    # what sensors add up over a step
    assert set(different(*ends)) <= {"sensed_time", "sensed_substeps"}


def test_the_papers_scheme_is_semi_implicit_euler() -> None:
    """Free fall: z_n = -g h^2 n (n + 1)/2."""
    b = pendulum()
    ball_body(b, label="falling")
    sim = simulate(b, dt=2e-3, scheme="semi_implicit")
    sim.step(50)
    assert sim.read("body.falling.position")[0, 2] == pytest.approx(-G * 4e-6 * 50 * 51 / 2, rel=1e-12)
    assert sim.read("sim.joint_drift")[0] < 1e-3


@pytest.mark.parametrize(
    ("n", "dt"), [(10**16, None), (-1, None), (1.5, None), (True, None), (1, 0.0), (1, -1e-3), (1, float("nan"))]
)
def test_steps_that_make_no_sense(n: Any, dt: Any) -> None:
    b = ModelBuilder()
    wheel(b)
    sim = simulate(b)
    with pytest.raises(ValueError, match=naming("Simulation.step")):
        sim.step(n, dt=dt)
    assert sim.time == 0.0
    sim.step(0)
    assert sim.time == 0.0


@pytest.mark.parametrize("digits", [400, 9999])
def test_huge_counts_have_short_messages(digits: int) -> None:
    b = ModelBuilder()
    wheel(b)
    model, huge = b.finalize(), 10**digits
    sim = Simulation(model, backend="numpy")
    calls = (
        lambda: sim.step(huge),
        lambda: sim.rollout(1, record="sim.time", every=huge),
        lambda: sim.linearize(world=huge),
        lambda: sim.assemble(iterations=huge),
        lambda: Simulation(model, huge, backend="numpy"),
        lambda: Simulation(model, threads=huge),
        lambda: SolverConfig(max_pairs=huge),
        lambda: b.add_shape_sphere(huge, 1.0),
    )
    for call in calls:
        with pytest.raises(ModelError, match=naming(f"1e{digits}")) as error:
            call()
        assert len(str(error.value)) < 200


def test_only_one_thread_steps() -> None:
    b = ModelBuilder()
    wheel(b)
    sim = Simulation(b.finalize(), backend="numpy")
    with sim.runtime.alone, pytest.raises(SimulationError, match=naming("Simulation.step thread")):
        sim.step()
    sim.step()
    assert sim.time > 0.0


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match=naming("scheme 'papers' 'semi_implicit'")):
        SolverConfig(scheme="papers")
