from __future__ import annotations

import numpy as np
import pytest

from gpusim import rotations
from gpusim.robotics import Tree

from .models import four_bar, trees

TREES = trees()
H = 1e-5
POINT = np.array([0.1, 0.2, -0.3])


class Moved:
    def __init__(self, name: str) -> None:
        rng = np.random.default_rng(5)
        model, base = TREES[name]
        self.tree = t = Tree(model, base)
        self.v, self.a = rng.normal(size=(2, 2, t.freedoms))
        self.q = t.integrate(np.repeat(t.start, 2, axis=0), rng.normal(size=(2, t.freedoms)))
        self.before, self.after = (t.integrate(self.q, s * H * self.v) for s in (-1.0, 1.0))


@pytest.fixture(params=TREES, scope="module")
def moved(request) -> Moved:
    return Moved(request.param)


def difference(f, m: Moved) -> np.ndarray:
    return (f(m.after) - f(m.before)) / (2.0 * H)


def test_jacobians_of_points_and_turns(moved):
    t = moved.tree
    for frame in t.bodies:

        def point(q, frame=frame):
            pose = t.pose(q, frame)
            return pose[:, :3] + rotations.matvec(rotations.matrix_from_quaternion(pose[:, 3:]), POINT)

        rate = rotations.matvec(t.jacobian(moved.q, frame, POINT), moved.v)
        np.testing.assert_allclose(rate[:, :3], difference(point, moved), rtol=1e-7, atol=1e-7)
        old, new = t.pose(moved.before, frame)[:, 3:], t.pose(moved.after, frame)[:, 3:]
        turn = rotations.quaternion_product(new, rotations.quaternion_conjugate(old))
        turning = rotations.rotation_vector_from_quaternion(turn) / (2.0 * H)
        np.testing.assert_allclose(rate[:, 3:], turning, rtol=1e-7, atol=1e-7)


def test_center_of_mass_and_momentum(moved):
    t, q, v = moved.tree, moved.q, moved.v
    rate = rotations.matvec(t.com_jacobian(q), v)
    np.testing.assert_allclose(rate, difference(t.com, moved), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(t.com_velocity(q, v), rate, rtol=1e-12, atol=1e-13)
    momentum = t.centroidal(q, v)
    np.testing.assert_allclose(momentum[:, :3], t.inertias.mass.sum() * rate, rtol=1e-12, atol=1e-12)
    k = t.at(q)
    about = np.zeros((2, 3))
    for i, body in enumerate(t.bodies):
        mass, com = t.inertias.mass[0, i], t.inertias.com[i]
        r = k.rotation[:, i]
        twist = rotations.matvec(t.jacobian(q, body, com), v)
        arm = k.origin[:, i] + rotations.matvec(r, com) - t.com(q)
        spin = rotations.matvec(r @ t.inertias.inertia[0, i] @ r.swapaxes(-1, -2), twist[:, 3:])
        about += np.cross(arm, mass * twist[:, :3]) + spin
    np.testing.assert_allclose(momentum[:, 3:], about, rtol=1e-11, atol=1e-11)


def test_the_mass_matrix_is_that_of_the_kinetic_energy(moved):
    t, q, v = moved.tree, moved.q, moved.v
    energy = np.zeros(2)
    k = t.at(q)
    for i, body in enumerate(t.bodies):
        twist = rotations.matvec(t.jacobian(q, body, t.inertias.com[i]), v)
        r = k.rotation[:, i]
        spin = rotations.matvec(r.swapaxes(-1, -2), twist[:, 3:])
        energy += 0.5 * t.inertias.mass[0, i] * np.sum(twist[:, :3] ** 2, axis=1)
        energy += 0.5 * np.sum(spin * rotations.matvec(t.inertias.inertia[0, i], spin), axis=1)
    for element, inertia in zip(t._reflected.elements, t._own_inertia[0], strict=True):
        energy += 0.5 * inertia * rotations.dot(element.evaluate(k, None)[1], v) ** 2
    m = t.mass_matrix(q)
    np.testing.assert_array_equal(m, m.swapaxes(1, 2))
    np.testing.assert_allclose(0.5 * np.einsum("wi,wij,wj->w", v, m, v), energy, rtol=1e-12)
    assert np.linalg.eigvalsh(m).min() > -1e-12


def test_inverse_dynamics_are_the_mass_matrix_and_the_bias(moved):
    t, q, v, a = moved.tree, moved.q, moved.v, moved.a
    forces, bias = t.inverse_dynamics(q, v, a), t.bias_forces(q, v)
    wanted = rotations.matvec(t.mass_matrix(q), a) + bias
    np.testing.assert_allclose(forces, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


def test_forces_do_the_work_that_energy_gains(moved):
    t, v, a = moved.tree, moved.v, moved.a

    def kinetic(sign):
        q, rate = (moved.after, v + H * a) if sign > 0 else (moved.before, v - H * a)
        return 0.5 * np.einsum("wi,wij,wj->w", rate, t.mass_matrix(q), rate)

    power = np.sum(v * t.inverse_dynamics(moved.q, v, a, gravity=(0, 0, 0)), axis=1)
    np.testing.assert_allclose(
        (kinetic(1) - kinetic(-1)) / (2.0 * H), power, rtol=1e-7, atol=1e-7 * np.abs(power).max()
    )

    def height(q):
        return -t.inertias.mass.sum() * rotations.matvec(t.com(q)[:, None, :], t.inertias.gravity)[:, 0]

    lifted = np.sum(v * t.gravity_torques(moved.q), axis=1)
    np.testing.assert_allclose(difference(height, moved), lifted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in TREES if name.startswith("arm")])
def test_every_force_is_that_of_lagrange(name):
    """Lagrange's equations: tau = d/dt (M v) - dT/dq."""
    moved = Moved(name)
    t = moved.tree
    assert t.size == t.freedoms == 9
    q, v, a = moved.q, moved.v, moved.a
    momentum = [rotations.matvec(t.mass_matrix(p), v + s * H * a) for p, s in ((moved.after, 1), (moved.before, -1))]
    wanted = (momentum[0] - momentum[1]) / (2.0 * H)
    for j, unit in enumerate(np.eye(t.freedoms)):
        sides = [0.5 * np.einsum("wi,wij,wj->w", v, t.mass_matrix(q + s * H * unit), v) for s in (1, -1)]
        wanted[:, j] -= (sides[0] - sides[1]) / (2.0 * H)
    forces = t.inverse_dynamics(q, v, a, gravity=(0, 0, 0))
    np.testing.assert_allclose(forces, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())


def test_wrenches_from_outside_work_along_their_frames(moved):
    t, rng = moved.tree, np.random.default_rng(2)
    frame, wrench = t.bodies[-1], rng.normal(size=(2, 6))
    without = t.inverse_dynamics(moved.q, moved.v, moved.a)
    with_it = t.inverse_dynamics(moved.q, moved.v, moved.a, external={frame: wrench})
    wanted = -rotations.matvec(t.jacobian(moved.q, frame).swapaxes(1, 2), wrench)
    np.testing.assert_allclose(with_it - without, wanted, atol=1e-9 * np.abs(without).max())


def test_rows_of_loops_and_their_drift(moved):
    t = moved.tree
    residual, rows, drift = t.loops(moved.q, moved.v)
    assert residual.shape == (2, t.loop_rows) and rows.shape == (2, t.loop_rows, t.freedoms)
    if not t.loop_rows:
        return
    rate = rotations.matvec(rows, moved.v)
    np.testing.assert_allclose(rate, difference(lambda q: t.loops(q)[0], moved), rtol=1e-6, atol=1e-7)
    rates = [
        rotations.matvec(t.loops(q)[1], moved.v + s * H * moved.a) for q, s in ((moved.after, 1), (moved.before, -1))
    ]
    second = rotations.matvec(rows, moved.a) + drift
    np.testing.assert_allclose((rates[0] - rates[1]) / (2.0 * H), second, rtol=1e-6, atol=1e-6)


def test_random_machines_have_loops_and_all_rows():
    assert sum(Tree(*TREES[f"machine{s}"]).loop_rows for s in range(8)) > 20


def test_steps_between_postures_are_undone(moved):
    t = moved.tree
    step = 0.4 * moved.v
    np.testing.assert_allclose(t.difference(moved.q, t.integrate(moved.q, step)), step, rtol=1e-12, atol=1e-12)


def test_armature_of_a_closing_joint_is_felt():
    t = Tree(four_bar().finalize())
    assert len(t._reflected.elements) == 2
    rng = np.random.default_rng(3)
    q, v, a = t.start + rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    turn = np.array([1.0, 1.0, -1.0])
    plain = four_bar()
    plain.joints[3].params["armature"][:] = 0.0
    more = t.mass_matrix(q) - Tree(plain.finalize()).mass_matrix(q)
    np.testing.assert_allclose(more[0], 0.02 * np.outer(turn, turn), atol=1e-12)
    wanted = rotations.matvec(t.mass_matrix(q), a) + t.bias_forces(q, v)
    np.testing.assert_allclose(t.inverse_dynamics(q, v, a), wanted, rtol=1e-12)
