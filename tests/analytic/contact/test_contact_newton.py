"""Newton's method in contact space (contact_newton.py, contact_newton.cuh)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.model import paths
from gpusim.reference.contacts import contact_newton
from gpusim.reference.contacts.contact_newton import FIRST, NORMAL, SECOND, SPIN, Space

from .test_articulated import walker

STEPS = 60


def standing_on_boxes(balls: bool = False, **material: float) -> ModelBuilder:
    """Two links with box feet, four points each, whose hinge is servoed. ``balls``: a free ball rolls next to them."""
    b = ModelBuilder()
    ground = Material(friction=0.6, **material)
    b.add_shape_plane(-1, material=ground)
    feet = [b.add_body(xform=Transform((0.25 * side, 0.0, 0.031)), label=f"foot{side}") for side in (-1, 1)]
    for foot in feet:
        b.add_shape_box(foot, half_extents=(0.1, 0.06, 0.03), material=ground)
    hinge = b.add_joint_revolute(*feet, Transform((0.25, 0.0, 0.2)), Transform((-0.25, 0.0, 0.2)), axis=(0, 1, 0))
    b.add_servo(hinge, stiffness=50.0, damping=1.0, target=0.05)
    if balls:
        ball = b.add_body(xform=Transform((0.0, 0.5, 0.05)), angular_velocity=(0.0, 3.0, 0.0))
        b.add_shape_sphere(ball, radius=0.05)
    return b


def cart() -> ModelBuilder:
    """A cart on two wheels with rolling and spinning friction. Its initial velocity is 1 m/s along x and 0.5 rad/s
    about z."""
    b = ModelBuilder()
    rough = Material(friction=0.9, rolling_friction=0.01, spinning_friction=0.02)
    b.add_shape_plane(-1, material=rough)
    ahead, turning = (1.0, 0.0, 0.0), (0.0, 0.0, 0.5)
    body = b.add_body(xform=Transform((0.0, 0.0, 0.1)), linear_velocity=ahead, angular_velocity=turning)
    b.add_shape_box(body, half_extents=(0.2, 0.1, 0.02))
    for x in (-0.15, 0.15):
        for y in (-0.15, 0.15):
            at = Transform((x, y, 0.1))
            wheel = b.add_body(xform=at, linear_velocity=ahead, angular_velocity=(0.0, 10.0, 0.0))
            b.add_shape_sphere(wheel, radius=0.1, material=rough)
            b.add_joint_revolute(body, wheel, Transform((x, y, 0.0)), Transform(), axis=(0, 1, 0))
    return b


def gripper() -> ModelBuilder:
    """Two fingers on a lift, which press a free cube on the floor from both sides. Its weight is 4.905 N."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    base = b.add_body(5.0, (0.05,) * 3, xform=Transform((0, 0, 0.6)))
    lift = b.add_joint_prismatic(-1, base, at=(0, 0, 0.6), axis=(0, 0, 1), label="lift")
    b.add_servo(lift, stiffness=2e4, damping=400.0, label="lift")
    for side in (-1, 1):
        at = (0.07 * side, 0, 0.06)
        finger = b.add_body(0.2, (2e-4,) * 3, xform=Transform(at), label=f"finger{side}")
        b.add_shape_box(finger, half_extents=(0.01, 0.03, 0.04))
        slide = b.add_joint_prismatic(base, finger, at=at, axis=(-side, 0, 0), friction=0.1)
        b.add_servo(slide, stiffness=2000.0, damping=40.0, target=0.04, effort_limit=30.0)
    cube = b.add_body(0.5, (3e-4,) * 3, xform=Transform((0, 0, 0.0401)), label="cube")
    b.add_shape_box(cube, half_extents=(0.04, 0.04, 0.04))
    return b


def next_to_a_stack() -> ModelBuilder:
    """Two feet on a hinge, and two free boxes on top of each other."""
    b = standing_on_boxes(balls=True)
    for k in range(2):
        box = b.add_body(xform=Transform((0.8, 0.0, 0.05 + 0.1001 * k)))
        b.add_shape_box(box, half_extents=(0.05, 0.05, 0.05))
    return b


def residual_of_load(sim: Simulation, steps: int) -> list[float]:
    slab: Any = sim.backend
    left = []
    for _ in range(steps):
        sim.step()
        load = np.abs(sim.state.arrays["contact_impulse"]).max()
        count = int(slab.slab_array("sweep_count")[0])
        if count and load > 0.0:
            left.append(float(slab.slab_array("sweep_change").reshape(-1)[count - 1] / load))
    return left


def run(b: ModelBuilder, backend: str = "native", steps: int = STEPS, **config: Any) -> tuple[np.ndarray, list[int]]:
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(**{"dt": 2e-3, **config}), threads=1)
    found, reached = [], []
    for _ in range(steps):
        sim.step()
        found.append(sim.state.arrays["position"].copy())
        if backend == "native":
            slab: Any = sim.backend
            reached.append(int(slab.slab_array("condensed_fits")[0]) - 2 * int(slab.slab_array("condensed_failed")[0]))
    return np.array(found), reached


@pytest.mark.native
@pytest.mark.parametrize("name", ["single points", "faces", "torques", "free bodies"])
def test_the_motion_is_that_of_converged_sweeps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = {"single points": walker, "faces": standing_on_boxes, "torques": cart, "free bodies": next_to_a_stack}[name]
    solved, reached = run(make())
    assert 1 in reached
    assert min(reached) >= 0, "Newton's method has failed"
    monkeypatch.setattr(paths, "MAX_CONDENSED", 0)
    swept, never = run(make(), iterations=400)
    assert set(never) == {0}
    # The wheels land on rigid points in the first step. Sweeps load them unevenly.
    # Points of free bodies are softer with fewer sweeps.
    tolerance = {"torques": 2e-6, "free bodies": 2e-5}
    np.testing.assert_allclose(solved, swept, rtol=0.0, atol=tolerance.get(name, 2e-8))


@pytest.mark.native
def test_a_gripper_lifts_a_cube() -> None:
    sim = Simulation(gripper().finalize(), 1, "native", config=SolverConfig(dt=2e-3), threads=1)
    left = residual_of_load(sim, 100)
    for share in np.linspace(0.0, np.pi, 300):
        sim.control["lift"] = 0.05 * (1.0 - np.cos(share))
        left += residual_of_load(sim, 1)
    left += residual_of_load(sim, 100)
    assert np.percentile(left, 99) <= 1e-6
    rise = sim.read("body.finger1.position")[0, 2] - 0.06
    assert rise == pytest.approx(0.1, abs=5e-3)
    assert sim.read("body.cube.position")[0, 2] - 0.04 == pytest.approx(rise, abs=5e-3)
    forces = sum(sim.read(f"body.finger{side}.contact_force")[0] for side in (-1, 1))
    np.testing.assert_allclose(forces, (0.0, 0.0, -0.5 * 9.81), atol=5e-3)


@pytest.mark.native
def test_a_stack_next_to_a_robot_is_solved() -> None:
    sim = Simulation(next_to_a_stack().finalize(), 1, "native", config=SolverConfig(dt=2e-3), threads=1)
    assert np.percentile(residual_of_load(sim, 200), 99) <= 1e-7


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("make", "steps"), [(walker, 20), (standing_on_boxes, 20), (cart, 20), (next_to_a_stack, 20), (gripper, 8)]
)
@pytest.mark.native
def test_both_backends_agree(make: Any, steps: int) -> None:
    np.testing.assert_allclose(run(make(), steps=steps)[0], run(make(), "numpy", steps)[0], rtol=0.0, atol=1e-8)


def test_a_method_that_fails_leaves_the_contacts_to_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_newton, "NEWTON_PASSES", 0)
    failed, _ = run(standing_on_boxes(), "numpy", 20)
    monkeypatch.setattr(paths, "MAX_CONDENSED", 0)
    swept, _ = run(standing_on_boxes(), "numpy", 20)
    np.testing.assert_allclose(failed, swept, rtol=0.0, atol=1e-12)


def problem(rng: np.random.Generator, points: int, torques: bool) -> Space:
    count = 3 * points + 3 * torques
    rank = int(rng.integers(6, count + 6))
    factor = rng.normal(size=(count, rank)) * 10.0 ** rng.uniform(-0.3, 0.3, (count, 1))
    kind = np.array([NORMAL, FIRST, SECOND] * points + [SPIN, FIRST, SECOND] * torques)[None]
    loads, weight = np.zeros((1, count, 4), np.int64), np.zeros((1, count, 4))
    for k in range(points):
        loads[0, 3 * k + 1 : 3 * k + 3, 0], weight[0, 3 * k + 1 : 3 * k + 3, 0] = 3 * k, rng.uniform(0.0, 1.0)
    normals = 3 * np.arange(min(points, 4))
    for k in range(3 * points, count):
        loads[0, k, : normals.size], weight[0, k, : normals.size] = normals, 0.05 if k == 3 * points else 0.02
    response = (factor @ factor.T / rank)[None]
    compliance = 1e-2 * np.diagonal(response, axis1=1, axis2=2)
    response = response + compliance[..., None] * np.eye(count)
    own = np.diagonal(response, axis1=1, axis2=2)
    none, velocity = np.zeros((1, count)), rng.normal(size=(1, count))
    space = Space(
        np.zeros(1, np.int64), [], np.zeros((1, count, 6)), kind, loads, weight, none, none, compliance, none, velocity,
        response,
    )  # fmt: skip
    space.scale = 1.0 / np.maximum(own, np.take_along_axis(own, space.partner, axis=1))
    return space


def test_solutions_obey_the_laws_of_contact() -> None:
    rng, solved = np.random.default_rng(7), 0
    for number in range(300):
        s = problem(rng, points=1 + number % 6, torques=number % 3 == 0)
        start = s.velocity[0].copy()
        done, _ = contact_newton.iterate(s, 0.0)
        if not done[0]:
            continue
        solved += 1
        p, u = s.impulse[0], s.velocity[0]
        load, speed = np.abs(p).max(), np.abs(start).max() + np.abs(p).max() / s.scale.min()
        np.testing.assert_allclose(u, start + s.response[0] @ p, rtol=0.0, atol=1e-9 * speed)
        normal = s.kind[0] == NORMAL
        assert (p[normal] >= 0.0).all()
        assert (u[normal] >= -1e-7 * speed).all()
        assert np.abs(p[normal] * u[normal]).max() <= 1e-7 * load * speed
        for k in np.flatnonzero((s.kind[0] == FIRST) | (s.kind[0] == SPIN)):
            own = [k, k + 1] if s.kind[0, k] == FIRST else [k]
            radius = float(s.weight[0, k] @ np.maximum(p[s.loads[0, k]], 0.0))
            size, slip = float(np.hypot.reduce(p[own])), float(np.hypot.reduce(u[own]))
            assert size <= radius + 1e-8 * load
            if size < radius - 1e-6 * load:
                assert slip <= 1e-6 * speed
            else:
                assert p[own] @ u[own] <= -size * slip + 1e-6 * load * speed
    assert solved >= 295


def test_redundant_points_share_their_load() -> None:
    kind = np.array([[NORMAL, FIRST, SECOND] * 2])
    loads, weight = np.zeros((1, 6, 4), np.int64), np.zeros((1, 6, 4))
    loads[0, 3:, 0] = 3
    one = np.eye(3)
    s = Space(
        np.zeros(1, np.int64), [], np.zeros((1, 6, 6)), kind, loads, weight, np.zeros((1, 6)), np.ones((1, 6)),
        np.zeros((1, 6)), np.zeros((1, 6)), np.array([[-3.0, 0.0, 0.0, -3.0, 0.0, 0.0]]),
        np.block([[one, one], [one, one]])[None],
    )  # fmt: skip
    done, left = contact_newton.iterate(s, 0.0)
    assert done[0]
    assert left[0] < 3e-9
    assert s.impulse[0, [0, 3]] == pytest.approx([1.5, 1.5], abs=1e-5)


@pytest.mark.native
def test_a_world_does_not_depend_on_the_others() -> None:
    for backend in ("native", "numpy"):
        ends = []
        for worlds in (1, 9):
            sim = Simulation(standing_on_boxes().finalize(), worlds, backend, config=SolverConfig(dt=2e-3))
            speed = np.zeros((worlds, 2, 3))
            speed[1:, :, 0] = 0.1 * np.arange(1, worlds)[:, None]
            sim.write_state({"body.*.linear_velocity": speed.reshape(worlds, 6)})
            sim.step(8)
            ends.append(sim.state.arrays["position"][0].copy())
        assert np.array_equal(*ends), backend


@pytest.mark.native
def test_contacts_of_a_moving_robot_are_solved_to_rounding() -> None:
    from gpusim.bench import humanoid
    from gpusim.bench.drive import command

    config = SolverConfig(dt=humanoid.DT)
    sim = Simulation(humanoid.humanoid(lying=False).finalize(), 1, "native", config=config, threads=1)
    sim.step(humanoid.FALL)
    left = []
    for step in range(400):
        if step % humanoid.HOLD == 0:
            command(sim, step + 1, True)
        left += residual_of_load(sim, 1)
    assert len(left) > 300
    assert np.percentile(left, 99) <= 1e-8
