from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import gpusim
from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.model.paths import find_paths, max_path_pivots
from gpusim.reference.contacts import contact_rows
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array
from tests.backends import FASTEST

ON_KERNELS = pytest.mark.skipif(
    FASTEST != "native", reason="needs a C++ compiler: up to 500 steps take minutes on the NumPy backend"
)


def walker(legs: int = 3, height: float = 0.31) -> ModelBuilder:
    """A trunk on legs of two links with hinges, limits and dampers, feet on the ground."""
    b = ModelBuilder()
    b.add_shape_plane(-1, material=Material(friction=0.8), group=1, mask=2)
    trunk = b.add_body(8.0, (0.2, 0.3, 0.4), xform=Transform((0.0, 0.0, height)), label="trunk")
    b.add_shape_box(trunk, (0.2, 0.15, 0.05), group=2, mask=1)
    for k in range(legs):
        angle = 2.0 * math.pi * k / legs
        out, across = np.array([math.cos(angle), math.sin(angle), 0.0]), (-math.sin(angle), math.cos(angle), 0.0)
        hip = 0.2 * out
        thigh = b.add_body(1.0, (0.01, 0.01, 0.002), xform=Transform((*(hip[:2]), height - 0.1)), label=f"thigh{k}")
        shin = b.add_body(0.4, (0.004, 0.004, 0.001), xform=Transform((*(hip[:2]), height - 0.25)), label=f"shin{k}")
        top, bottom = Transform((0.0, 0.0, 0.1)), Transform((0.0, 0.0, -0.08))
        limits = {"limit_lower": -1.0, "limit_upper": 1.0, "damping": 0.2}
        hinge = b.add_joint_revolute(trunk, thigh, Transform(tuple(hip)), top, axis=across, **limits)
        knee = b.add_joint_revolute(thigh, shin, bottom, Transform((0.0, 0.0, 0.07)), axis=across, damping=0.2)
        for joint in (hinge, knee):
            b.add_servo(joint, stiffness=200.0, damping=10.0)
        b.add_shape_sphere(
            shin, 0.03, xform=Transform((0.0, 0.0, -0.05)), material=Material(friction=0.8), group=2, mask=1
        )
    return b


def dense_response(w: StepBuffers, manifold: int) -> Array:
    m = w.touch.articulated[manifold]
    n = w.solved[0].size
    units = np.eye(n).reshape(n, 1, *w.solved.shape[1:])
    velocities = np.array([w.apply_impulse(p)[0] for p in units])
    matrix = np.array([w.row_velocity(v[None])[0].ravel() for v in velocities]).T
    own = np.diagonal(matrix).copy()
    matrix[np.diag_indices(n)] += w.direct.rows.gamma[0].ravel() + np.where(own > 0.0, 1e-12 * own, 1.0)
    response = np.zeros((6, 6))
    for j in range(6):
        motion = np.zeros_like(w.twist)
        sides = contact_rows.side_motions(m, np.eye(6)[j][None])[0]
        for side in range(2):
            if m.moves[0, side]:
                motion[0, m.body[0, side]] += sides[side]
        answer = np.linalg.solve(matrix, -w.row_velocity(motion)[0].ravel())
        response[:, j] = contact_rows.relative_twist(m, motion + np.tensordot(answer, velocities, 1)[None])[0]
    return response


def test_the_response_is_that_of_a_dense_solve() -> None:
    sim = Simulation(walker().finalize(), backend="numpy", config=SolverConfig(dt=2e-3))
    sim.step(30)
    w = sim.backend.work
    assert len(w.touch.articulated) == 3
    for k, part in enumerate(w.touch.articulated):
        expected, n = dense_response(w, k), 3 if part.points[0] == 1 else 6
        np.testing.assert_allclose(part.response[0, :n, :n], expected[:n, :n], atol=1e-9 * np.abs(expected).max())


def test_impulses_are_those_of_the_velocities() -> None:
    """v = v_kicked + M^-1 (J^T p + C^T f) after the solve, to rounding."""
    sim = Simulation(walker().finalize(), backend="numpy", config=SolverConfig(dt=2e-3))
    sim.step(30)
    sim.runtime.forward()
    w = sim.backend.work
    expected = w.twist_kicked + w.apply_impulse(w.solved)
    for m in w.touch.articulated:
        push = np.einsum("nkij,nkj->ni", m.lever, np.where(m.exists[..., None], m.impulse, 0.0))
        moved = contact_rows.side_motions(m, push)
        for side in range(2):
            expected[m.world[m.moves[:, side]], m.body[m.moves[:, side], side]] += moved[m.moves[:, side], side]
    np.testing.assert_allclose(w.twist, expected, atol=1e-13)


def test_constraints_of_a_body_lie_on_its_path() -> None:
    t = walker(5).finalize().topology
    paths = find_paths(t)
    for body in range(t.num_bodies):
        on = np.flatnonzero((t.constraint_bodies == body).any(axis=1))
        assert {int(c) for c in on} <= {paths.pivots[p] for p in paths.bodies[body]}
        assert all(a < b for a, b in pairwise(paths.bodies[body]))


def test_there_is_room_for_every_path_that_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    model = walker(5).finalize()
    paths, contact = find_paths(model.topology), model.contact
    assert contact.candidates is not None
    bodies = [(contact.body[a], contact.body[b]) for a, later in enumerate(contact.candidates) for b in later]
    lengths = sorted(len({*paths.bodies[a], *paths.bodies[b]}) for a, b in bodies)
    assert len(lengths) > 3 and lengths[0] < lengths[-1]
    rooms = [max_path_pivots(paths, contact, places) for places in (1, 2, len(lengths))]
    assert rooms == [lengths[-1], lengths[-1] + lengths[-2], sum(lengths)]
    gridded = replace(contact, candidates=None)
    pairs = [(int(a), int(b)) for k, a in enumerate(contact.body) for b in contact.body[k + 1 :] if a != b]
    lengths = sorted(len({*paths.bodies[a], *paths.bodies[b]}) for a, b in pairs)
    assert [max_path_pivots(paths, gridded, places) for places in (3, 1000)] == [sum(lengths[-3:]), sum(lengths)]
    monkeypatch.setattr("gpusim.model.paths.MAX_COMPARED", 1)
    assert max_path_pivots(paths, gridded, 3) == 3 * min(len(paths.pivots), 2 * max(map(len, paths.bodies)))


def test_the_mass_of_a_system() -> None:
    b = walker(2)
    pole = b.add_body(3.0, (1.0, 1.0, 1.0), xform=Transform((2.0, 0.0, 1.0)), label="pole")
    b.add_joint_revolute(-1, pole, Transform((2.0, 0.0, 1.0)), axis=(0, 1, 0))
    b.add_body(5.0, (1.0, 1.0, 1.0), xform=Transform((4.0, 0.0, 1.0)), label="free")
    sim = Simulation(b.finalize(), num_worlds=2, backend="numpy")
    sim.write("body.shin1.mass", 1.4, worlds=1)
    robot = np.array([[10.8], [11.8]])
    expected = 1.0 / np.column_stack([robot, robot, robot, robot, robot, [[3.0], [3.0]], [[5.0], [5.0]]])
    found = sim.backend.work.system_inverse_mass
    np.testing.assert_allclose(found[:, :-1], expected, rtol=1e-14)
    assert not found[:, -1].any()


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_walker_stands_still(dt: float) -> None:
    sim = Simulation(walker().finalize(), backend=FASTEST, config=SolverConfig(dt=dt))
    sim.step(round(2.0 / dt))
    start = np.array(sim.state.arrays["position"])
    sim.step(round(2.0 / dt))
    assert np.abs(sim.state.arrays["position"] - start).max() < 2e-6
    assert np.abs(sim.state.arrays["linear_velocity"]).max() < 1e-6
    load = sum(sim.read(f"body.shin{k}.contact_force")[0, 2] for k in range(3))
    assert load == pytest.approx((8.0 + 3 * 1.4) * 9.81, rel=1e-4)


def links_that_overlap() -> ModelBuilder:
    """An arm of hinges with a servo. Its third link overlaps the first by 3 cm."""
    b = ModelBuilder(gravity=(0.0, 0.0, -9.81))
    links = [b.add_body(1.0, (0.01, 0.01, 0.01), xform=Transform((0.1 * k, 0.0, 1.0)), label=f"l{k}") for k in range(3)]
    for body in links:
        b.add_shape_box(body, (0.115, 0.03, 0.03))
    root = b.add_joint_revolute(-1, links[0], Transform((0, 0, 1)), Transform(), axis=(0, 1, 0), damping=0.1)
    for k in range(2):
        ends = Transform((0.05, 0.0, 0.0)), Transform((-0.05, 0.0, 0.0))
        limits = {"limit_lower": -0.01, "limit_upper": 0.01, "damping": 0.1}
        b.add_joint_revolute(links[k], links[k + 1], *ends, axis=(0, 0, 1), **limits)
    b.add_servo(root, stiffness=100.0, damping=10.0)
    return b


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_links_that_overlap_for_good_come_to_rest(dt: float) -> None:
    sim = Simulation(links_that_overlap().finalize(), backend=FASTEST, config=SolverConfig(dt=dt))
    fastest = 0.0
    for _ in range(40):
        sim.step(round(0.05 / dt))
        fastest = max(fastest, float(np.abs(sim.state.arrays["linear_velocity"]).max()))
    assert sim.health()[0]
    assert fastest < 1.5
    assert np.abs(sim.state.arrays["linear_velocity"]).max() < 2e-2
    assert float(sim.read("sim.joint_drift")[0]) < 1e-6


def two_shoes() -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1, group=1, mask=2)
    shoes = []
    for k in range(2):
        shoes.append(b.add_body(4.0, (0.03, 0.0032, 0.033), xform=Transform((0.12 * k, 0.0, 0.02))))
        b.add_shape_box(shoes[k], (0.045, 0.15, 0.02), group=2, mask=5)
    b.add_joint_revolute(shoes[0], shoes[1], Transform((0.06, 0, 0)), Transform((-0.06, 0, 0)), axis=(0, 1, 0))
    wheel = b.add_body(300.0, (2.0, 3.0, 2.0), xform=Transform((0.06, 0.0, 0.18)))
    b.add_joint_prismatic(-1, wheel, Transform((0.06, 0, 0.18)), Transform(), axis=(0, 0, 1))
    lying = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), math.pi / 2)
    b.add_shape_cylinder(wheel, 0.14, 0.05, xform=lying, group=4, mask=2)
    return b


def greatest_energy(sweeps: int, solver: str, dt: float) -> tuple[float, float]:
    config = SolverConfig(dt=dt, iterations=sweeps, joint_solver=solver)
    sim = Simulation(two_shoes().finalize(), backend=FASTEST, config=config)
    energies = []
    for _ in range(round(1.0 / dt)):
        sim.step()
        energies.append(float(sim.read("sim.kinetic_energy")[0]))
    return max(energies), energies[-1]


@pytest.mark.nightly
@ON_KERNELS
@pytest.mark.parametrize(("solver", "dt"), [("colored", 5e-3), ("colored", 2e-3), ("direct", 5e-3)])
def test_more_sweeps_are_never_worse(solver: str, dt: float) -> None:
    greatest = [greatest_energy(n, solver, dt)[0] for n in (4, 8, 16, 32, 64)]
    assert all(more <= less for less, more in pairwise(greatest)), greatest


@ON_KERNELS
def test_eight_sweeps_bring_the_wheel_to_rest() -> None:
    assert greatest_energy(8, "direct", 5e-3)[1] < 1e-9


def test_a_motor_against_a_wall_keeps_its_speed() -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_shape_box(-1, (0.1, 0.5, 0.5), xform=Transform((0.6, 0.0, 0.0)))
    beam = b.add_body(1.0, (0.001, 0.1, 0.1), xform=Transform((0.25, 0.0, 0.0)), label="beam")
    b.add_shape_box(beam, (0.26, 0.02, 0.02))
    hinge = b.add_joint_revolute(-1, beam, Transform(), Transform((-0.25, 0, 0)), axis=(0, 0, 1), label="hinge")
    b.add_dc_motor(hinge, stall_torque=5.0, no_load_speed=1.0, mechanical_time_constant=0.05)
    sim = gpusim.Simulation(b.finalize(), backend=FASTEST, config=SolverConfig(dt=1e-3))
    sim.write("motor.motor0.command", 1.0)
    fastest = 0.0
    for _ in range(40):
        sim.step(10)
        fastest = max(fastest, abs(float(sim.read("joint.hinge.velocity")[0])))
    assert fastest < 1.1
    assert sim.health()[0]


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_light_tip_under_a_planar_arm_does_not_creep(dt: float) -> None:
    b, rough = ModelBuilder(gravity=(0, 0, -9.81)), Material(friction=0.8)
    b.add_shape_plane(-1, material=rough)
    arm = b.add_body(20.0, (0.5, 2.0, 2.0), xform=Transform((0.5, 0, 0.1)), label="arm")
    b.add_joint_revolute(-1, arm, axis=(0, 1, 0), at=(0, 0, 0.1))
    tip = b.add_body(0.1, (1e-4,) * 3, xform=Transform((1.0, 0, 0.05)), label="tip")
    b.add_shape_sphere(tip, 0.05, material=rough)
    b.add_joint_revolute(arm, tip, axis=(0, 1, 0), at=(1.0, 0, 0.1), damping=1.0)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=dt, joint_solver="direct"))
    sim.step(round(0.2 / dt))
    start = sim.read("body.tip.position")[0]
    sim.step(round(1.0 / dt))
    np.testing.assert_allclose(sim.read("body.tip.position")[0], start, atol=1e-9)
    np.testing.assert_allclose(sim.read("body.tip.contact_force")[0], (0.0, 0.0, 10.1 * 9.81), atol=1e-3)
