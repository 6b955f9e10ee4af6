"""Bushings against closed forms: deflections, frequencies, damping."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from gpusim import ModelBuilder, ModelError, Simulation, Transform
from tests.message_snapshot import naming

from .helpers import FRAME_A, NO_GRAVITY, PLACE, SOLVERS, G, bits, different, simulate

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
MASS, INERTIA = 2.0, np.array([0.02, 0.03, 0.04])
K = np.array([1e4, 2e4, 3e4, 50.0, 60.0, 70.0])


def held(solver: str, dt: float, gravity: tuple[float, ...], damping: object) -> Simulation:
    b = ModelBuilder(gravity=gravity)
    body = b.add_body(MASS, INERTIA, xform=PLACE, label="x")
    b.add_bushing(-1, body, PLACE, stiffness=np.diag(K), damping=damping, label="soft")
    return simulate(b, dt=dt, joint_solver=solver)


@both_solvers
def test_deflections_at_rest(solver: str) -> None:
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
    """Each of the six motions is x = x0 exp(-d t) cos(w t + ...) with w^2 = k/m or k/I."""
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
    """Two bodies oscillate with w^2 = k (1/m1 + 1/m2)."""
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


#: A rubber block whose center of stiffness is 0.1 m from the body's center of mass, slightly rotated.
MIXED = np.diag(K) + np.zeros((6, 6))
for _i, _j, _value in ((0, 4, 400.0), (1, 3, -500.0), (0, 1, 2e3), (4, 5, 10.0)):
    MIXED[_i, _j] = MIXED[_j, _i] = _value


def mixed(
    solver: str, dt: float, backend: str = "auto", num_worlds: int = 1, share: float = 2e-3, gravity: float = G
) -> Simulation:
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity))
    body = b.add_body(MASS, INERTIA, xform=PLACE, label="x")
    b.add_bushing(-1, body, PLACE, stiffness=MIXED, damping=share * MIXED, label="soft")
    return simulate(b, num_worlds, backend=backend, dt=dt, joint_solver=solver)


@both_solvers
def test_full_matrices_deflect_by_their_inverse(solver: str) -> None:
    """At rest, q = K^-1 F."""
    weight = np.concatenate([PLACE.inverse().rotate((0.0, 0.0, -MASS * G)), np.zeros(3)])
    sim = mixed(solver, 5e-3, share=0.02)
    sim.step(600)
    np.testing.assert_allclose(sim.read("joint.soft.position")[0], np.linalg.solve(MIXED, weight), rtol=1e-4, atol=1e-9)
    for axis, name in enumerate(("force_x", "force_y", "force_z")):
        assert sim.read(f"bushing.soft.{name}")[0] == pytest.approx(-weight[axis], rel=1e-5)
    assert sim.read("sim.potential_energy")[0] > 0.0 or PLACE.position[2] < 0.0


@both_solvers
def test_full_matrices_swing_as_the_linear_system(solver: str) -> None:
    """M q'' + C q' + K q = F from rest. Half the step has a quarter of the error."""
    weak = 0.01 * G
    weight = np.concatenate([PLACE.inverse().rotate((0.0, 0.0, -MASS * weak)), np.zeros(3)])
    inverse = np.diag(1.0 / np.hstack([[MASS] * 3, INERTIA]))
    rest, time = np.linalg.solve(MIXED, weight), 0.08
    rates = np.block([[np.zeros((6, 6)), np.eye(6)], [-inverse @ MIXED, -2e-3 * inverse @ MIXED]])
    exact = (expm(rates * time) @ np.concatenate([-rest, np.zeros(6)]))[:6] + rest

    def error(dt: float) -> float:
        sim = mixed(solver, dt, gravity=weak)
        sim.step(round(time / dt))
        return float(np.abs(sim.read("joint.soft.position")[0] - exact).max())

    coarse, fine = error(2e-3), error(1e-3)
    assert fine < 0.02 * np.abs(exact).max() and coarse / fine > 3.0


@pytest.mark.native
@both_solvers
def test_full_matrices_have_the_same_bits_among_others(solver: str) -> None:
    sims = [mixed(solver, 2e-3, *at) for at in (("numpy", 1), ("native", 1), ("native", 4))]
    for sim in sims:
        sim.step(50)
    values = [sim.read("joint.soft.position")[-1] for sim in sims]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9, atol=1e-14)
    assert not different(bits(sims[1], 0), bits(sims[2], 3))


def test_matrices_that_give_energy_or_leave_a_motion_are_refused() -> None:
    b = ModelBuilder()
    body = b.add_body(MASS, INERTIA)
    b.add_bushing(-1, body, stiffness=np.eye(6) + 2.0 * (np.eye(6, k=4) + np.eye(6, k=-4)), label="soft")
    with pytest.raises(ModelError, match=naming("matrix_spring 'soft' -1")):
        b.finalize()
    b = ModelBuilder()
    body, stiffness = b.add_body(MASS, INERTIA), np.zeros((6, 6))
    stiffness[:2, :2] = [[2.0, 1.0], [1.0, 2.0]]
    b.add_bushing(-1, body, stiffness=stiffness, label="soft")
    with pytest.raises(ModelError, match=naming("matrix_spring 'soft'")):
        b.finalize()
