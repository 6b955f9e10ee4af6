"""Trees of joints under the colored solver: what its sweeps leave open, a factor of their rows closes."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.model.joint_groups import joint_trees
from gpusim.model.model import Model

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
GREATEST_GAP = 1e-3


def add_limb(b: ModelBuilder, before: int, start: tuple[float, float, float], masses: tuple[float, ...]) -> int:
    """Links of 0.2 m along x from a point of the world on, turning about y and z by turns; the last one."""
    x, y, z = start
    center = b.bodies[before].xform.position if before >= 0 else np.zeros(3)
    place = Transform(tuple(np.array(start) - center))
    for k, mass in enumerate(masses):
        link = b.add_body(mass=mass, inertia=(0.004 * mass,) * 3, xform=Transform((x + 0.2 * k + 0.1, y, z)))
        b.add_joint_revolute(before, link, place, Transform((-0.1, 0, 0)), axis=((0, 1, 0), (0, 0, 1))[k % 2])
        before, place = link, Transform((0.1, 0, 0))
    return before


def arm() -> Model:
    """Seven links on the ground, light ones between heavy ones, that swing down from level."""
    b = ModelBuilder()
    add_limb(b, -1, (0.0, 0.0, 2.0), (4.0, 0.1, 3.0, 0.1, 2.0, 0.1, 2.0))
    return b.finalize()


def figure(drop: float = 0.3) -> Model:
    """A free trunk with two arms and two legs, with light links within, that falls flat on the ground."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    trunk = b.add_body(mass=8.0, inertia=(0.12, 0.1, 0.03), xform=Transform((0, 0, drop)))
    b.add_shape_sphere(trunk, radius=0.1)
    for x in (-0.2, 0.2):
        for y in (-0.1, 0.1):
            hand = add_limb(b, trunk, (x, y, drop), (1.3, 0.09, 1.7, 0.08, 0.5))
            b.add_shape_sphere(hand, radius=0.05)
    return b.finalize()


def four_bars() -> Model:
    """A closed loop, a pair of doors, and a single door."""
    b = ModelBuilder()
    for k in range(6):
        b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((k, 0, 0)))
    pairs = [(0, 1), (1, 2), (-1, 0), (-1, 2), (-1, 3), (3, 4), (-1, 5)]
    for n, (one, other) in enumerate(pairs):
        b.add_joint_revolute(one, other, axis=(0, 0, 1), label=f"joint{n}")
    return b.finalize()


def widest(sim: Simulation, seconds: float) -> float:
    """Greatest gap of a joint in a run, m."""
    sim.step(round(seconds / sim.config.dt))
    return float(sim.read("sim.joint_drift_peak")[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("build", [arm, figure])
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_trees_stay_closed(build, dt: float, backend: str) -> None:
    """Gaps stay below 1 mm, where sweeps alone leave up to tens of them."""
    seconds = 1.0 if backend == "native" else 0.4
    sim = Simulation(build(), backend=backend, config=SolverConfig(dt=dt, joint_solver="colored"))
    assert 0.0 < widest(sim, seconds) < GREATEST_GAP
    assert sim.health().all()


@pytest.mark.native
def test_kernels_close_as_the_reference_does() -> None:
    """The same poses and velocities after a few steps in which trees are closed; a world beside them has its own."""
    config = SolverConfig(dt=5e-3, joint_solver="colored")
    sims = [Simulation(arm(), num_worlds=2, backend=backend, config=config) for backend in ("numpy", "native")]
    for sim in sims:
        sim.write("sim.gravity", np.array([[0.0, 0.0, -9.81], [0.0, 0.0, 0.0]]))
        sim.step(15)
    alone = Simulation(arm(), backend="native", config=config)
    alone.write("sim.gravity", np.zeros(3))
    alone.step(15)
    for name in ("position", "orientation", "linear_velocity", "angular_momentum", "impulse", "axis_velocity"):
        reference, kernels = (sim.state.arrays[name] for sim in sims)
        np.testing.assert_allclose(kernels, reference, rtol=0.0, atol=1e-11, err_msg=name)
        assert np.array_equal(kernels[1], alone.state.arrays[name][0]), name


@pytest.mark.native
def test_closing_keeps_momentum() -> None:
    """A free figure that spins in space keeps the momentum of its links, m/s and kg m2/s."""
    sim = Simulation(figure(10.0), backend="native", config=SolverConfig(dt=5e-3, joint_solver="colored"))
    sim.write("sim.gravity", np.zeros(3))
    mass = np.array([body.mass for body in sim.model.bodies])
    sim.state.arrays["linear_velocity"][0, 0] = (0.0, 1.0, 0.5)
    sim.state.arrays["angular_momentum"][0, 0] = (0.2, 0.1, 0.1)
    begin = (mass[:, None] * sim.state.arrays["linear_velocity"][0, : mass.size]).sum(axis=0)
    sim.step(100)
    assert 0.0 < float(sim.read("sim.joint_drift_peak")[0]) < GREATEST_GAP
    end = (mass[:, None] * sim.state.arrays["linear_velocity"][0, : mass.size]).sum(axis=0)
    np.testing.assert_allclose(end, begin, atol=1e-12)


def test_trees_are_what_no_loop_is_in() -> None:
    """Two doors that hang on each other are one; loops are left to sweeps, and a single joint needs nothing else."""
    assert joint_trees(four_bars().topology).swept.tolist() == [True, True, True, True, False, False, True]


def test_couplings_close_no_loop() -> None:
    """A gear between two joints of a tree, whose row is closed with theirs."""
    b = ModelBuilder()
    one, two = (b.add_body(mass=1.0, inertia=(0.01,) * 3) for _ in range(2))
    first = b.add_joint_revolute(-1, one, axis=(0, 0, 1))
    second = b.add_joint_revolute(one, two, axis=(0, 0, 1))
    b.add_mimic(second, first, multiplier=2.0)
    assert not joint_trees(b.finalize().topology).swept.any()


def test_a_body_with_many_joints_is_left_to_sweeps() -> None:
    """Joints on one body all meet in the factor: of 40 it would be full."""
    b = ModelBuilder()
    hub = b.add_body(mass=1.0, inertia=(0.01,) * 3)
    for _ in range(40):
        b.add_joint_revolute(hub, b.add_body(mass=1.0, inertia=(0.01,) * 3), axis=(0, 0, 1))
    assert joint_trees(b.finalize().topology).swept.all()
