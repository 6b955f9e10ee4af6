from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

from .helpers import FRAME_A, NO_GRAVITY, PLACE, SOLVERS, G, ball_body, both_backends, simulate, slider, wheel

OVERSHOOT = 1e-6
# Sweeps are still on their way when a pendulum hits its stop (hinge and limit rows couple by m l^2/I).
SWEPT_OVERSHOOT = 1e-2
TIME = 0.52
MASS, LENGTH, STOP = 2.0, 0.5, 0.4
SKEW_TORQUE = np.array([0.3, -0.6, 0.2])
SIDES = {"up": 1.0, "down": -1.0}


class Rig:
    """A finished run: positions over time by joint label, and the simulation at its end."""

    def __init__(self, builder: ModelBuilder, dt: float, solver: str, **config: Any) -> None:
        self.sim: Simulation = simulate(builder, dt=dt, joint_solver=solver, **config)
        self.solver, self.dt = solver, dt
        steps = round(TIME / dt)
        self.t = dt * np.arange(steps + 1)
        labels = self.sim.model.labels("joint")
        self.path: dict[str, list[Any]] = {label: [] for label in labels}
        for step in range(steps + 1):
            for label in labels:
                self.path[label].append(self.sim.read(f"joint.{label}.position")[0])
            if step < steps:
                self.sim.step()

    def of(self, label: str) -> np.ndarray:
        return np.array(self.path[label])

    def reaction(self, label: str) -> np.ndarray:
        """Force and torque of the child on the parent at the end."""
        return np.asarray(self.sim.read(f"joint.{label}.reaction")[0])


def add_weightless_rig(b: ModelBuilder) -> None:
    """Add sliders, a ball joint, a universal joint and a planar joint, all pushed against their limits."""
    for y, (name, sign) in enumerate(SIDES.items()):
        slider(b, MASS, f"slide_{name}", y=float(y), limit_lower=-0.1, limit_upper=0.1)
        b.add_force(b.joints[-1].child, (sign * 8.0, 0.0, 0.0))
    ball = ball_body(b, inertia=0.1, com=FRAME_A.position, xform=PLACE, label="ball")
    b.add_joint_ball(-1, ball, PLACE * FRAME_A, FRAME_A, limit=0.5, label="ball")
    b.add_torque(ball, tuple(SKEW_TORQUE))
    cross = ball_body(b, inertia=0.1, label="cross")
    b.add_joint_universal(-1, cross, limit_lower=(-0.3, -0.2), limit_upper=(0.25, 0.35), label="cross")
    b.add_torque(cross, (1.0, -0.8, 0.0))
    flat = ball_body(b, inertia=0.1, label="flat")
    b.add_joint_planar(-1, flat, limit_lower=(-0.3, -0.2, -0.1), limit_upper=(0.25, 0.35, 0.15), label="flat")
    b.add_force(flat, (5.0, -6.0, 0.0))
    b.add_torque(flat, (0.0, 0.0, 0.4))
    slider(b, MASS, "locked", y=7.0, limit_lower=0.0, limit_upper=0.0)
    b.add_force(b.joints[-1].child, (50.0, 0.0, 0.0))
    slider(b, MASS, "beyond", y=8.0, limit_upper=-0.1)


def build(kind: str) -> ModelBuilder:
    b = ModelBuilder(gravity=NO_GRAVITY if kind == "weightless" else (0.0, 0.0, -G))
    if kind == "weightless":
        add_weightless_rig(b)
        return b
    for name, sign in SIDES.items():
        body = b.add_body(MASS, (0.03, 0.04, 0.05), com=(sign * LENGTH, 0, 0), xform=Transform(PLACE.position))
        pivot = Transform(PLACE.position)
        b.add_joint_revolute(-1, body, pivot, axis=(0, 1, 0), limit_lower=-STOP, limit_upper=STOP, label=name)
    return b


RIGS: dict[tuple[str, str, float], Rig] = {}


def rig(kind: str, solver: str, dt: float) -> Rig:
    if (kind, solver, dt) not in RIGS:
        RIGS[kind, solver, dt] = Rig(build(kind), dt, solver, iterations=10)
    return RIGS[kind, solver, dt]


both_solvers = pytest.mark.parametrize("solver", SOLVERS)
step_sizes = pytest.mark.parametrize("dt", [4e-3, 1e-2])


@step_sizes
@pytest.mark.parametrize("side", SIDES)
@both_solvers
def test_travel_limit(solver: str, side: str, dt: float) -> None:
    """Closed form: x = F t^2/(2 m) up to the limit."""
    run, sign = rig("weightless", solver, dt), SIDES[side]
    x = sign * run.of(f"slide_{side}")
    free = 2.0 * run.t**2
    before = free < 0.1 - 2.0 * dt
    np.testing.assert_allclose(x[before], free[before], atol=1e-12)
    assert x.max() <= 0.1 + OVERSHOOT
    assert x[-1] == pytest.approx(0.1, abs=1e-9)
    assert run.sim.read(f"joint.slide_{side}.velocity")[0] == pytest.approx(0.0, abs=1e-9)
    # The child pushes the stop, which is a part of its parent.
    np.testing.assert_allclose(run.reaction(f"slide_{side}"), (sign * 8.0, 0, 0, 0, 0, 0), atol=1e-6)


@pytest.mark.nightly
@step_sizes
@pytest.mark.parametrize("side", SIDES)
@both_solvers
def test_angle_limit_of_a_pendulum(solver: str, side: str, dt: float) -> None:
    """At rest, the stop bears the torque m g l cos(q)."""
    run, sign = rig("pendulums", solver, dt), SIDES[side]
    q = sign * run.of(side)
    swept = solver == "colored"
    assert q.max() <= STOP + (SWEPT_OVERSHOOT if swept else OVERSHOOT)
    assert q[-1] == pytest.approx(STOP, abs=1e-5 if swept else OVERSHOOT)
    torque = sign * MASS * G * LENGTH * np.cos(STOP)
    np.testing.assert_allclose(run.reaction(side), (0, 0, -MASS * G, 0, torque, 0), atol=0.05 if swept else 1e-4)


@step_sizes
@both_solvers
def test_ball_limit_bounds_the_whole_rotation(solver: str, dt: float) -> None:
    run = rig("weightless", solver, dt)
    q = run.of("ball")
    angle = 2.0 * np.arctan2(np.linalg.norm(q[:, :3], axis=1), q[:, 3])
    assert angle.max() <= 0.5 + OVERSHOOT
    assert angle[-1] == pytest.approx(0.5, abs=OVERSHOOT)
    np.testing.assert_allclose(run.reaction("ball")[3:], SKEW_TORQUE, atol=1e-4)


def test_a_ball_that_slides_along_its_limit_stays_on_the_cone() -> None:
    """The error is of order (w h)^2."""
    b = ModelBuilder()
    bob = b.add_body(1.0, (0.01, 0.01, 0.01), com=(0, 0, -0.5), linear_velocity=(0.0, 2.0, 0.0), label="bob")
    b.add_joint_ball(-1, bob, limit=0.5, label="ball")
    b.add_force(bob, (30.0, 0.0, 0.0), point=(0, 0, -0.5))
    sim = simulate(b, dt=2e-3)
    worst = 0.0
    for _ in range(60):
        sim.step(4)
        q = sim.read("joint.ball.position")[0]
        worst = max(worst, 2.0 * np.arctan2(np.linalg.norm(q[:3]), q[3]))
    assert 0.4999 < worst < 0.5 + 2e-3


@step_sizes
@both_solvers
def test_every_coordinate_has_its_own_limits(solver: str, dt: float) -> None:
    run = rig("weightless", solver, dt)
    for label, lower, upper, end in (
        ("cross", (-0.3, -0.2), (0.25, 0.35), (0.25, -0.2)),
        ("flat", (-0.3, -0.2, -0.1), (0.25, 0.35, 0.15), (0.25, -0.2, 0.15)),
    ):
        path = run.of(label)
        assert np.all(path <= np.array(upper) + OVERSHOOT), label
        assert np.all(path >= np.array(lower) - OVERSHOOT), label
        np.testing.assert_allclose(path[-1], end, atol=OVERSHOOT, err_msg=label)


@step_sizes
@both_solvers
def test_equal_limits_lock_the_coordinate(solver: str, dt: float) -> None:
    assert np.abs(rig("weightless", solver, dt).of("locked")).max() < 1e-9


@step_sizes
@both_solvers
def test_a_start_beyond_the_limit_is_led_back_without_a_bang(solver: str, dt: float) -> None:
    x = rig("weightless", solver, dt).of("beyond")
    assert x[0] == 0.0
    assert np.abs(np.diff(x)).max() <= 1.0 * dt + 1e-12
    assert x[-1] <= -0.1 + OVERSHOOT


@both_solvers
def test_a_motor_against_a_stop_gives_its_stall_torque(solver: str) -> None:
    """The torque of the motor at rest is tau = M_s u."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    shaft = wheel(b, limit_upper=0.2)
    b.add_dc_motor(shaft, stall_torque=3.0, no_load_speed=100.0, mechanical_time_constant=0.02, label="m")
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.control["m"] = 0.5
    sim.step(120)
    assert sim.read("joint.wheel.position")[0] == pytest.approx(0.2, abs=1e-9)
    for name in ("motor.m.torque", "joint.wheel.drive_force"):
        assert sim.read(name)[0] == pytest.approx(1.5, rel=1e-6)
    # The rotor sits on the joint, so the joint as a whole hands nothing on: drive and stop cancel.
    assert sim.read("joint.wheel.reaction")[0, 4] == pytest.approx(0.0, abs=1e-6)


@both_solvers
def test_a_limit_lets_go(solver: str) -> None:
    """Closed form: x = x0 - a t^2/2. The first kick has half of the old force, so x lags by a h t/2."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, MASS, limit_upper=0.05)
    b.add_force(0, (8.0, 0.0, 0.0), label="push")
    sim = simulate(b, dt=4e-3, joint_solver=solver)
    sim.step(100)
    sim.control["push"] = -1.0
    sim.step(50)
    a, t = 8.0 / MASS, 0.2
    x = sim.read("joint.slide.position")[0]
    assert x == pytest.approx(0.05 - 0.5 * a * t**2, abs=a * t * 4e-3)
    assert sim.read("joint.slide.velocity")[0] == pytest.approx(-a * t, abs=a * 4e-3)


def add_chain(b: ModelBuilder, links: int) -> None:
    """Pendulums in a row, each limited to [-1, 0.3] rad, which gravity pulls onto the upper limits."""
    parent = -1
    for i in range(links):
        child = b.add_body(1.0, (0.01, 0.02, 0.02), com=(0.25, 0, 0), xform=Transform((0.5 * i, 0, 0)))
        pivot = Transform((0.5 if i else 0.0, 0, 0))
        b.add_joint_revolute(parent, child, pivot, axis=(0, 1, 0), limit_lower=-1.0, limit_upper=0.3, label=f"hinge{i}")
        parent = child


@pytest.mark.parametrize(("solver", "gap"), [("direct", OVERSHOOT), ("colored", 2e-2)])
def test_a_chain_with_limits_at_every_hinge_loses_energy_only(solver: str, gap: float) -> None:
    b = ModelBuilder()
    add_chain(b, 3)
    sim = simulate(b, dt=2e-3, joint_solver=solver)
    for _ in range(20):
        sim.step(12)
        assert sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0] < 1e-2
        for i in range(3):
            assert -1.0 - gap <= sim.read(f"joint.hinge{i}.position")[0] <= 0.3 + gap


@both_backends
def test_ropes_that_go_taut_at_once_are_solved_from_any_velocity(backend: str) -> None:
    """Switching all ropes at once cycles for 4 of these 100 velocities. The least-index rule terminates (Murty
    1974)."""
    rng = np.random.default_rng(3)
    b = ModelBuilder(gravity=NO_GRAVITY)
    plate = b.add_body(1.0, (1.0, 1.0, 1.0), label="plate")
    size = 10 ** rng.uniform(-1.0, 1.0)
    for i in range(6):
        along, point = rng.normal(size=3), rng.normal(size=3)
        point, along = size * point, 5.0 * along / np.linalg.norm(along)
        ends = Transform(tuple(point + along)), Transform(tuple(point))
        b.add_joint_distance(-1, plate, *ends, max_distance=5.0, label=f"rope{i}")
    sim = simulate(b, 100, dt=1e-3, backend=backend)
    rng = np.random.default_rng(1)
    for name in ("linear_velocity", "angular_velocity"):
        sim.write(f"body.plate.{name}", rng.normal(size=(100, 3)))
    before = sim.read("sim.kinetic_energy")
    sim.step()
    assert not np.any(sim.read("sim.not_converged"))
    assert max(np.max(sim.read(f"joint.rope{i}.position")) for i in range(6)) < 5.0 + 1e-4
    assert np.all(sim.read("sim.kinetic_energy") <= before * (1.0 + 1e-9))


@pytest.mark.parametrize("how", ["dict", "reversed", "wildcard"])
def test_both_limits_in_one_write_go_either_way(how: str) -> None:
    b = ModelBuilder()
    b.add_joint_revolute(-1, b.add_body(1.0, (1, 1, 1)), limit_lower=-0.1, limit_upper=0.1, label="hinge")
    sim = Simulation(b.finalize(), 2, backend="numpy")

    def write(lower: list[float], upper: list[float]) -> None:
        values = {"joint.hinge.limit_lower": lower, "joint.hinge.limit_upper": upper}
        if how == "wildcard":
            sim.write_state({"joint.hinge.limit_[lu]*er": np.stack(list(values.values()), axis=1)})
        else:
            sim.write_state(values if how == "dict" else dict(reversed(values.items())))

    write([0.5, -0.7], [0.7, -0.5])
    with pytest.raises(ModelError, match=naming("limit_lower 0.9 limit_upper 0.8")):
        write([0.9, 0.0], [0.8, 0.1])
    assert sim.read("joint.hinge.limit_lower").tolist() == [0.5, -0.7]
    assert sim.read("joint.hinge.limit_upper").tolist() == [0.7, -0.5]
    with pytest.raises(ModelError, match=naming("limit_lower limit_upper sim.write_state")):
        sim.write("joint.hinge.limit_lower", 0.8)


@both_backends
def test_of_a_limit_and_an_end_stop_at_nearly_the_same_place_the_nearer_one_holds(backend: str) -> None:
    foot, eye, low, high = np.array([0.3, 0, -0.4]), np.array([1.1, 0, -0.08]), -0.5, 0.6
    offsets = np.array([0.0, 1e-9, 1e-6, -1e-6, 1e-3, -1e-3])

    def length(angle: np.ndarray) -> np.ndarray:
        s, c = np.sin(angle), np.cos(angle)
        return np.asarray(np.hypot(eye[0] * c - eye[2] * s - foot[0], eye[0] * s + eye[2] * c - foot[2]))

    b = ModelBuilder()
    boom = b.add_body(300, (10, 100, 100), xform=Transform((1, 0, 0)))
    b.add_joint_revolute(-1, boom, at=(0, 0, 0), axis=(0, -1, 0), limit_lower=low, limit_upper=high, label="pin")
    shortest, longest = length(low - offsets), length(high + offsets)
    b.add_hydraulic_cylinder(
        -1, boom, tuple(foot), tuple(eye - [1, 0, 0]), area_a=3e-3, area_b=2e-3, volume_a=1e-4, volume_b=2.2e-3,
        stroke_min=0.0, stroke_max=float(longest[0] - shortest[0]), length_offset=float(shortest[0]), flow_gain=3e-6,
        label="ram",
    )  # fmt: skip
    for command in (1.0, -1.0):
        sim = Simulation(b.finalize(), len(offsets), backend=backend, config=SolverConfig(dt=2e-3))
        sim.write("cylinder.ram.stroke_min", shortest - shortest[0])
        sim.write("cylinder.ram.stroke_max", longest - shortest[0])
        sim.write("cylinder.ram.command", command)
        sim.step(330)
        nearer = np.minimum(offsets, 0.0)
        want = high + nearer if command > 0.0 else low - nearer
        np.testing.assert_allclose(sim.read("joint.pin.position"), want, rtol=0, atol=1e-11)
        assert not sim.read("sim.not_converged").any()
