"""Bushings against closed forms: deflections, frequencies, damping."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform

from .helpers import FRAME_A, NO_GRAVITY, PLACE, SOLVERS, G, simulate

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
MASS, INERTIA = 2.0, np.array([0.02, 0.03, 0.04])
K = np.array([1e4, 2e4, 3e4, 50.0, 60.0, 70.0])


def held(solver: str, dt: float, gravity: tuple[float, ...], damping: object) -> Simulation:
    """A body whose center of mass a bushing holds in the world, its axes those of the bushing's frame."""
    b = ModelBuilder(gravity=gravity)
    body = b.add_body(MASS, INERTIA, xform=PLACE, label="x")
    b.add_bushing(-1, body, PLACE, stiffness=np.diag(K), damping=damping, label="soft")
    return simulate(b, dt=dt, joint_solver=solver)


@both_solvers
def test_deflections_at_rest(solver: str) -> None:
    """F/k along and T/k about each axis of the frame, whichever way that is turned."""
    weight = PLACE.inverse().rotate((0.0, 0.0, -MASS * G))
    sim = held(solver, 5e-3, (0.0, 0.0, -G), 0.02 * K)
    sim.step(400)
    found = sim.read("joint.soft.position")[0]
    np.testing.assert_allclose(found[:3], weight / K[:3], rtol=1e-6)
    np.testing.assert_allclose(found[3:], 0.0, atol=1e-9)
    for axis, motion in enumerate("xyz"):
        assert sim.read(f"spring.soft_{motion}.force")[0] == pytest.approx(-weight[axis], rel=1e-6)
    assert sim.read("spring.soft_rx.length")[0] == found[3]


@pytest.mark.parametrize("motion", range(6))
@both_solvers
def test_six_frequencies(solver: str, motion: int) -> None:
    """x = x0 exp(-d t) cos(w t + ...) with w^2 = k/m or k/I, for each motion alone; the others stay at rest."""
    mass = np.hstack([[MASS] * 3, INERTIA])[motion]
    c = 0.1 * np.sqrt(K[motion] * mass)
    d, start = c / (2.0 * mass), 1e-2
    w = np.sqrt(K[motion] / mass - d * d)
    time = 2.2 * np.pi / w
    damping = np.zeros(6)
    damping[motion] = c
    sim = held(solver, time / 400, NO_GRAVITY, damping)
    shift = np.eye(6)[motion] * start
    pose = PLACE * Transform.from_axis_angle(shift[:3], np.eye(3)[motion % 3], float(np.sum(shift[3:])))
    sim.write("body.x.position", pose.position)
    sim.write("body.x.orientation", pose.rotation)
    np.testing.assert_allclose(sim.read("joint.soft.position")[0], shift, atol=1e-12)
    sim.step(400)
    wanted = shift * np.exp(-d * time) * (np.cos(w * time) + d / w * np.sin(w * time))
    np.testing.assert_allclose(sim.read("joint.soft.position")[0], wanted, atol=2e-3 * start)


@both_solvers
def test_between_two_bodies(solver: str) -> None:
    """They swing against each other, w^2 = k (1/m1 + 1/m2), and momentum stays."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    frame = Transform((0.0, 0.0, 0.0), FRAME_A.rotation)
    first = b.add_body(3.0, (0.1,) * 3, label="a")
    second = b.add_body(1.0, (0.1,) * 3, xform=frame * Transform((0.01, 0.0, 0.0)), label="b")
    b.add_bushing(first, second, frame, stiffness=1e3, label="soft")
    time = np.pi / np.sqrt(1e3 * (1.0 + 1.0 / 3.0))
    sim = simulate(b, dt=time / 100, joint_solver=solver)
    momentum = 3.0 * sim.read("body.a.position")[0] + sim.read("body.b.position")[0]
    sim.step(100)
    np.testing.assert_allclose(sim.read("joint.soft.position")[0, :3], (-0.01, 0.0, 0.0), atol=5e-5)
    np.testing.assert_allclose(
        3.0 * sim.read("body.a.position")[0] + sim.read("body.b.position")[0], momentum, atol=1e-12
    )
