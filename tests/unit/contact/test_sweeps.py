from __future__ import annotations

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

each_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])


def robot() -> ModelBuilder:
    """A heavy trunk on two legs with light feet, each on four points."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    trunk = b.add_body(50.0, (2.0, 2.0, 2.0), xform=Transform((0, 0, 0.8)), label="trunk")
    for side, y in (("left", 0.1), ("right", -0.1)):
        foot = b.add_body(1.0, (0.01,) * 3, xform=Transform((0, y, 0.03)), label=f"{side}_foot")
        b.add_shape_box(foot, half_extents=(0.12, 0.06, 0.03), label=f"{side}_sole")
        ankle = b.add_joint_revolute(
            trunk, foot, Transform((0, y, -0.74)), Transform((0, 0, 0.03)), axis=(0, 1, 0), label=f"{side}_ankle"
        )
        b.add_servo(ankle, stiffness=3000.0, damping=100.0, label=f"{side}_servo")
    return b


@pytest.mark.nightly
@each_backend
def test_robot_on_its_feet_converges(backend: str) -> None:
    config = SolverConfig(dt=1e-3, iterations=30)
    steps = 200 if backend == "native" else 20
    sim = Simulation(robot().finalize(), backend=backend, config=config)
    sim.step(steps)
    left = sim.sweep_residuals()[0]
    left = left[np.isfinite(left)]
    weight = 52.0 * 9.81 * 1e-3
    assert 1 <= left.size <= 30
    assert left[-1] < 1e-4 * weight
    forces = [sim.read(f"shape.{side}_sole.contact_force")[0, 2] for side in ("left", "right")]
    assert sum(forces) == pytest.approx(52.0 * 9.81, rel=1e-3 if backend == "numpy" else 1e-5)


@pytest.mark.native
def test_a_tower_converges_from_nothing_within_some_sweeps() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(10):
        box = b.add_body(1.0, (1.0 / 6.0,) * 3, xform=Transform((0, 0, k + 0.5)))
        b.add_shape_box(box, (0.5, 0.5, 0.5))
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1.0 / 60.0, iterations=50))
    sim.step()
    left = sim.sweep_residuals()[0]
    assert left[np.isfinite(left)][-1] < 1e-6 * 10.0 * 9.81 / 60.0


@each_backend
def test_force_acts_on_a_body_weighed_by_its_shape(backend: str) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(label="body")
    b.add_shape_box(body, (0.1, 0.1, 0.1), xform=Transform((0.5, 0, 0)), density=1000.0)
    b.add_force(body, (8.0, 0, 0), point=(0.5, 0, 0))
    for _ in range(2):
        sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    sim.step(100)
    np.testing.assert_allclose(sim.read("body.body.linear_velocity")[0], (0.1, 0, 0), atol=1e-12)
    np.testing.assert_allclose(sim.read("body.body.angular_velocity")[0], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "law",
    [
        ContactLaw(normal="hertz"),
        ContactLaw(normal="volumetric", stiffness=1e9),
        ContactLaw(normal="hertz", stiffness=1e6, friction="contensou"),
    ],
)
def test_laws_that_need_a_radius_refuse_flat_pairs(law: ContactLaw) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1, label="ground")
    body = b.add_body(xform=Transform((0, 0, 0.1)))
    b.add_shape_box(body, (0.1, 0.1, 0.1), material=Material(law=law), label="box")
    with pytest.raises(ModelError, match=naming("shape 'ground' 'box'")):
        b.finalize()
    ball = b.add_body(xform=Transform((1, 0, 0.1)))
    b.shapes[1].group = 0
    b.add_shape_sphere(ball, 0.1, material=Material(law=law))
    b.finalize()
