"""D6 joints: a gimbal against its equations of motion, limits, drives and invalid input.

Equations of three rotations with the angular velocity omega = B(q) q' of the child:

    B^T (I (B q'' + B' q') + omega x I omega) + A q'' + D q' + K q = 0,   B' by differences,

solved by scipy to 1e-12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gpusim
from gpusim import ModelBuilder, ModelError, Transform
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, simulate

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
INERTIA = np.diag([0.05, 0.11, 0.08])
ARMATURE, DAMPING, STIFFNESS = np.array([0.02, 0.03, 0.01]), np.array([0.02, 0.0, 0.01]), np.array([0.4, 0.9, 0.2])
START, RATES = np.array([0.3, -0.5, 1.2]), np.array([1.5, 0.8, -2.0])
AXES = {1: np.eye(3), -1: np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])}


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    k = np.cross(np.eye(3), axis)
    return np.asarray(np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k)


def rates_to_omega(axes: np.ndarray, q: np.ndarray) -> np.ndarray:
    """B: columns are the axes in the child."""
    last = turn(axes[2], q[2]).T
    return np.stack([last @ turn(axes[1], q[1]).T @ axes[0], last @ axes[1], axes[2]], axis=1)


def exact(axes: np.ndarray, time: float) -> np.ndarray:
    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, v, eps = y[:3], y[3:], 1e-6
        b = rates_to_omega(axes, q)
        change = (rates_to_omega(axes, q + eps * v) - rates_to_omega(axes, q - eps * v)) / (2.0 * eps)
        omega = b @ v
        load = b.T @ (INERTIA @ (change @ v) + np.cross(omega, INERTIA @ omega)) + DAMPING * v + STIFFNESS * q
        return np.concatenate([v, np.linalg.solve(b.T @ INERTIA @ b + np.diag(ARMATURE), -load)])

    found = solve_ivp(rate, (0.0, time), np.concatenate([START, RATES]), "DOP853", rtol=1e-11, atol=1e-12)
    return np.asarray(found.y[:3, -1])


def gimbal(axes: np.ndarray, **options: Any) -> ModelBuilder:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = b.add_body(1.0, tuple(np.diag(INERTIA)), label="rotor")
    b.add_joint_d6(-1, body, angular_axes=[tuple(a) for a in axes], label="gimbal", **options)
    return b


def sprung(axes: np.ndarray) -> ModelBuilder:
    b = gimbal(axes, damping=tuple(DAMPING), armature=tuple(ARMATURE))
    for k in range(3):
        b.add_torsion_spring(0, stiffness=STIFFNESS[k], axis=k)
    return b


def error(backend: str, hand: int, dt: float, solver: str = "direct") -> float:
    sim = simulate(sprung(AXES[hand]), dt=dt, joint_solver=solver, backend=backend)
    sim.write("joint.gimbal.position", START)
    sim.write("joint.gimbal.velocity", RATES)
    sim.step(round(1.0 / dt))
    return float(np.abs(sim.read("joint.gimbal.position")[0] - exact(AXES[hand], 1.0)).max())


@pytest.mark.nightly
@pytest.mark.parametrize("hand", AXES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gimbal_follows_its_equations_of_motion(backend: str, hand: int) -> None:
    coarse, fine = error(backend, hand, 4e-3), error(backend, hand, 2e-3)
    assert fine < 2e-5
    assert 3.6 < coarse / fine < 4.4


@pytest.mark.nightly
def test_the_colored_solver_finds_the_same() -> None:
    assert error("numpy", 1, 1e-3, "colored") < 2e-5


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("hand", AXES)
def test_positions_and_rates_read_as_they_are_written(backend: str, hand: int) -> None:
    sim = simulate(gimbal(AXES[hand]), dt=1e-3, backend=backend)
    q = np.array([0.4 + 2.0 * np.pi, -1.1, 1.9 - 4.0 * np.pi])
    sim.write("joint.gimbal.position", q)
    sim.write("joint.gimbal.velocity", RATES)
    np.testing.assert_allclose(sim.read("joint.gimbal.position")[0], q, atol=1e-12)
    np.testing.assert_allclose(sim.read("joint.gimbal.velocity")[0], RATES, atol=1e-12)
    first, second, third = (turn(axis, angle) for axis, angle in zip(AXES[hand], q, strict=True))
    pose = gpusim.Transform((0, 0, 0), sim.read("body.rotor.orientation")[0])
    np.testing.assert_allclose(pose.matrix(), first @ second @ third, atol=1e-12)
    omega = first @ second @ third @ rates_to_omega(AXES[hand], q) @ RATES
    np.testing.assert_allclose(sim.read("body.rotor.angular_velocity")[0], omega, atol=1e-12)


def test_energy_of_a_free_gimbal_with_rotors_stays() -> None:
    def drift(dt: float) -> float:
        sim = simulate(gimbal(AXES[1], armature=tuple(ARMATURE)), dt=dt)
        sim.write("joint.gimbal.position", START)
        sim.write("joint.gimbal.velocity", RATES)

        start, most = sim.read("sim.kinetic_energy")[0], 0.0
        for _ in range(round(1.0 / dt)):
            sim.step()
            most = max(most, abs(sim.read("sim.kinetic_energy")[0] - start))
        return most / start

    coarse, fine = drift(4e-3), drift(2e-3)
    assert fine < 2e-6
    assert 3.3 < coarse / fine < 4.7


@pytest.mark.parametrize("solver", SOLVERS)
def test_servos_and_limits_on_every_axis(solver: str) -> None:
    b = ModelBuilder()
    body = b.add_body(2.0, tuple(np.diag(INERTIA)), com=(0.02, 0.01, 0.0))
    upper = (0.1, 0.05, 0.5, 0.4, 0.3)
    joint = b.add_joint_d6(
        -1, body, Transform((0.0, 0.0, 1.0)), linear_axes=[(1, 0, 0), (0, 0, 1)],
        angular_axes=[(0, 1, 0), (0, 0, 1), (1, 0, 0)], limit_lower=-0.2, limit_upper=upper, label="wrist",
    )  # fmt: skip
    targets = (0.3, -0.1, 0.2, 1.0, -0.15)
    for axis, target in enumerate(targets):
        b.add_servo(joint, stiffness=400.0, damping=40.0, target=target, axis=axis, label=f"servo{axis}")
    sim = simulate(b, dt=2e-3, joint_solver=solver)
    sim.step(1500)
    place = sim.read("joint.wrist.position")[0]
    np.testing.assert_allclose(place[[0, 3]], (0.1, 0.4), atol=1e-6)
    # Weight 19.6 N on the vertical slide, and its lever on the turns.
    np.testing.assert_allclose(place[1], -0.1 - 2.0 * 9.81 / 400.0, atol=1e-4)
    np.testing.assert_allclose(place[[2, 4]], (0.2, -0.15), atol=2e-3)
    assert np.abs(sim.read("joint.wrist.velocity")).max() < 1e-5
    assert sim.read("sim.joint_drift")[0] < 1e-9


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("slides", [0, 1, 2, 3])
def test_what_is_left_out_is_locked(slides: int, turns: int) -> None:
    rng = np.random.default_rng(10 * slides + turns)
    moved, turned = (np.linalg.qr(rng.normal(size=(3, 3)))[0].T for _ in range(2))
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = b.add_body(1.0, tuple(np.diag(INERTIA)))
    place, frame = Transform.from_axis_angle((0.2, 0.1, 0.4), (1, 2, 3), 0.7), Transform((0.1, -0.2, 0.3))
    b.add_joint_d6(
        -1, body, place, frame, linear_axes=moved[:slides], angular_axes=turned[:turns], label="j", at=None,
    )  # fmt: skip
    b.bodies[body].xform = place * frame.inverse()
    sim = simulate(b, dt=1e-3)
    sim.write("joint.j.velocity", rng.normal(size=slides + turns))
    sim.step(400)
    q = np.atleast_1d(sim.read("joint.j.position")[0])
    spin = np.eye(3)
    for axis, angle in zip(turned, q[slides:], strict=False):
        spin = spin @ turn(axis, angle)
    pose = Transform(sim.read("body.body0.position")[0], sim.read("body.body0.orientation")[0])
    seen = place.inverse() * pose * frame
    np.testing.assert_allclose(seen.matrix(), spin, atol=1e-7)
    np.testing.assert_allclose(seen.position, q[:slides] @ moved[:slides], atol=1e-7)
    assert np.abs(q).max() > 0.1


def test_a_gimbal_stays_whole_where_it_locks() -> None:
    for swing in (0.0, 1e-9, 1e-3, 0.1):
        b = gimbal(np.eye(3), damping=0.01)
        for axis in range(3):
            b.add_servo(0, stiffness=5.0, damping=0.2, target=0.0, axis=axis)
        sim = simulate(b, dt=2e-3)
        sim.write("joint.gimbal.position", (swing, 1.5, swing))
        sim.write("joint.gimbal.velocity", (swing, 4.0, 0.0))
        sim.step(1000)
        assert sim.health().all()
        assert np.abs(sim.read("body.rotor.angular_velocity")).max() < 20.0


def bad(**options: Any) -> str:
    b = ModelBuilder()
    with pytest.raises(ModelError) as caught:
        b.add_joint_d6(-1, b.add_body(1.0, (1.0, 1.0, 1.0)), label="hip", **options)
    return str(caught.value)


def test_bad_axes_are_named() -> None:
    assert "hip" in bad() and "add_joint_fixed" in bad()
    assert "angular_axes" in bad(angular_axes=[(1, 0, 0), (1, 1, 0)])
    assert "linear_axes" in bad(linear_axes=[(1, 0, 0), (1, 0, 0)])
    assert "4" in bad(angular_axes=[(1, 0, 0)] * 4)
    assert "angular_axes[1]" in bad(angular_axes=[(1, 0, 0), (0, 0, 0)])
    assert "limit_lower" in bad(angular_axes=[(1, 0, 0), (0, 1, 0)], limit_lower=(1.0, 0.0), limit_upper=0.5)
    assert "armature" in bad(linear_axes=[(1, 0, 0)], armature=-1.0)
    b = gimbal(np.eye(3))
    with pytest.raises(ModelError, match=naming("3")):
        b.add_servo(0, stiffness=1.0, axis=3)
