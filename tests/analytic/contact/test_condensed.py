"""Sweeps in contact space (contact_condensed.cuh) give the results of sweeps along the paths."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.native.backend import NativeBackend
from gpusim.model import paths

from .test_articulated import walker

pytestmark = pytest.mark.native
STEPS = 60


def standing_on_boxes(balls: bool = False) -> ModelBuilder:
    """Two links with box feet, four points each, whose hinge is servoed; ``balls``: one rolls on the ground aside."""
    b = ModelBuilder()
    b.add_shape_plane(-1, material=Material(friction=0.6))
    feet = [b.add_body(xform=Transform((0.25 * side, 0.0, 0.031)), label=f"foot{side}") for side in (-1, 1)]
    for foot in feet:
        b.add_shape_box(foot, half_extents=(0.1, 0.06, 0.03), material=Material(friction=0.6))
    hinge = b.add_joint_revolute(*feet, Transform((0.25, 0.0, 0.2)), Transform((-0.25, 0.0, 0.2)), axis=(0, 1, 0))
    b.add_servo(hinge, stiffness=50.0, damping=1.0, target=0.05)
    if balls:
        ball = b.add_body(xform=Transform((0.0, 0.5, 0.05)), angular_velocity=(0.0, 3.0, 0.0))
        b.add_shape_sphere(ball, radius=0.05)
    return b


def run(b: ModelBuilder, most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, int]:
    """Positions over the run, and how many steps have ended with responses in the contacts' space."""
    monkeypatch.setattr(paths, "MOST_CONDENSED", most)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=2e-3), threads=1)
    backend = sim.backend
    assert isinstance(backend, NativeBackend)
    found, reached = [], 0
    for _ in range(STEPS):
        sim.step()
        found.append(sim.state.arrays["position"].copy())
        reached += int(backend.slab_array("condensed_fits")[0] > 0)
    return np.array(found), reached


@pytest.mark.parametrize("name", ["single points", "faces"])
def test_the_course_is_that_along_the_paths(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To rounding; where there is room for a part of the manifolds alone, all keep to the paths."""
    make = walker if name == "single points" else standing_on_boxes
    condensed, reached = run(make(), 64, monkeypatch)
    along, never = run(make(), 0, monkeypatch)
    small, neither = run(make(), 8, monkeypatch)
    assert reached >= 10 and never == 0 and neither == 0
    np.testing.assert_allclose(condensed, along, rtol=0.0, atol=1e-11)
    assert np.array_equal(small, along)


def test_contacts_of_free_bodies_keep_to_the_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ball beside the feet has its sweeps between theirs."""
    assert run(standing_on_boxes(balls=True), 64, monkeypatch)[1] == 0
