import numpy as np
import pytest

from gpusim import EnergyAudit, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.control import heavy_chain
from gpusim.robotics import Tree
from tests.backends import FASTEST

BACKENDS = [("numpy", "auto"), ("native", "fused"), ("native", "staged")]


def _builder(scales=(0.0, 0.5, 1.0, -1.0)):
    b = ModelBuilder(gravity=(0.0, 0.0, -10.0))
    for k, scale in enumerate(scales):
        b.add_body(2.0, (0.1, 0.1, 0.1), xform=Transform((k, 0, 0)), label=f"body{k}", gravity_scale=scale)
    return b


@pytest.mark.slow_numpy
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_bodies_fall_by_their_share(backend, launch):
    sim = Simulation(_builder().finalize(), 2, backend=backend, launch=launch, config=SolverConfig(dt=1e-3))
    sim.write("body.body0.gravity_scale", 2.0, worlds=1)
    sim.step(500)
    height = np.stack([sim.read(f"body.body{k}.position")[:, 2] for k in range(4)], axis=1)
    assert np.allclose(height, -5.0 * 0.5**2 * np.array([[0.0, 0.5, 1.0, -1.0], [2.0, 0.5, 1.0, -1.0]]), atol=1e-9)
    # A written velocity falls on by the same share.
    sim.write("body.body1.linear_velocity", (0.0, 0.0, 1.0))
    sim.step(100)
    assert np.allclose(sim.read("body.body1.linear_velocity")[:, 2], 1.0 - 5.0 * 0.1, atol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_weight_on_the_ground_is_the_share(backend, launch):
    b = ModelBuilder()
    b.add_shape_plane(-1)
    body = b.add_body(3.0, xform=Transform((0, 0, 0.5)), gravity_scale=0.25, label="box")
    b.add_shape_box(body, (0.5, 0.5, 0.5))
    sim = Simulation(b.finalize(), backend=backend, launch=launch, config=SolverConfig(dt=2e-3))
    sim.step(200)
    assert np.allclose(sim.contacts().force[:, 2].sum(), 3.0 * 9.81 * 0.25, rtol=1e-4)


def _pendulum():
    b = ModelBuilder()
    body = b.add_body(2.0, (0.1, 0.1, 0.1), com=(0.4, 0, 0), label="arm", gravity_scale=0.3)
    b.add_joint_revolute(-1, body, axis=(0, 1, 0), label="hinge")
    b.add_site(body, Transform((0.5, 0, 0)), label="tip")
    return b


def test_energy_and_inverse_dynamics():
    model = _pendulum().finalize()
    sim = Simulation(model, backend=FASTEST, config=SolverConfig(dt=1e-3))
    start = sim.read("sim.kinetic_energy") + sim.read("sim.potential_energy")
    audit = EnergyAudit(sim)
    for _ in range(300):
        audit.step()
    assert np.allclose(sim.read("sim.kinetic_energy") + sim.read("sim.potential_energy"), start, atol=1e-4)
    assert np.all(np.abs(audit.balance().error) < 1e-4)
    tree = Tree(model)
    assert np.allclose(tree.gravity_torques(np.zeros((1, tree.size))), -0.3 * 2.0 * 9.81 * 0.4)
    sim.write("body.arm.gravity_scale", 1.0)
    assert np.allclose(tree.with_parameters(sim).gravity_torques(np.zeros((1, tree.size))), -2.0 * 9.81 * 0.4)


def test_a_block_that_counts_whole_weights_refuses():
    b = ModelBuilder()
    base = b.add_body(1.0, (1, 1, 1), kinematic=True, label="base")
    b.add_builder(_pendulum(), parent=base)
    with pytest.raises(ModelError, match="gravity_scale"):
        heavy_chain(b, "base", "tip")


def test_only_numbers():
    with pytest.raises(ModelError, match="gravity_scale"):
        ModelBuilder().add_body(1.0, (1, 1, 1), gravity_scale="none")
    sim = Simulation(_builder().finalize(), backend="numpy")
    with pytest.raises(ModelError, match="gravity_scale"):
        sim.write("body.body0.gravity_scale", np.nan)
