from __future__ import annotations

import warnings

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.solver.step import find_contacts

from ..unit.collide.kernels import kernel_manifolds  # noqa: F401
from .test_collide import EXACT, in_use, used

pytestmark = pytest.mark.native
DT = 5e-3


def terrain(bodies: int) -> ModelBuilder:
    rng = np.random.default_rng(3)
    b = ModelBuilder()
    for k in range(bodies):
        place = (0.22 * (k % 10) - 1.0, 0.22 * (k // 10) - 1.0, 0.2 + 0.05 * rng.uniform())
        body = b.add_body(xform=Transform(place), linear_velocity=tuple(rng.normal(size=3)))
        if k % 2:
            b.add_shape_box(body, (0.1, 0.08, 0.06))
        else:
            b.add_shape_sphere(body, 0.1)
    b.add_shape_height_field(-1, 0.2 * rng.uniform(size=(21, 21)), (0.15, 0.15))
    return b


@pytest.mark.nightly
@pytest.mark.usefixtures("kernel_manifolds")
@pytest.mark.parametrize(("bodies", "max_pairs"), [(20, None), (66, None), (20, 42), (66, 187)])
def test_pairs_and_points(bodies: int, max_pairs: int | None) -> None:
    model, config = terrain(bodies).finalize(), SolverConfig(dt=DT, max_pairs=max_pairs)
    reference = Simulation(model, backend="numpy", config=config)
    native = Simulation(model, backend="native", config=config)
    warnings.simplefilter("ignore", UserWarning)
    assert isinstance(reference.backend, NumpyBackend)
    several = 0
    native.step(40)
    for _ in range(3):
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        find_contacts(reference.backend.work, DT)
        native.step()
        mine, theirs = reference.state.arrays, native.read_state()
        listed, touching = in_use(theirs)
        for name in (*EXACT, "pair_normal"):
            both = (used(name, a[name], listed, touching) for a in (mine, theirs))
            np.testing.assert_allclose(*both, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(mine["contact_age"][touching] + 1, theirs["contact_age"][touching])
        pairs = theirs["pair_shapes"][0, theirs["pair_points"][0] > 0]
        several += len(pairs) - len(np.unique(pairs, axis=0))
    assert several > 2
    assert max_pairs is None or theirs["pair_overflow"][0] > 0


@pytest.mark.parametrize("depth", [0.02, 0.03, 0.06])
def test_corners_of_tilted_boxes_on_a_slope(depth: float) -> None:
    """All lower corners are below the surface. The reference computes its own points, without ``kernel_manifolds``."""
    x, y = np.meshgrid(np.arange(9.0), np.arange(9.0))
    b = ModelBuilder()
    b.add_shape_height_field(-1, 0.05 * (x - 4.0) + 0.02 * (y - 4.0), (1.0, 1.0))
    for k in range(6):
        at = np.array([0.7 * k - 1.8, 0.3 * k - 0.9])
        pose = Transform.from_rpy((*at, at @ [0.05, 0.02] + 0.1 - depth), (0.02, -0.05 + 0.01 * k, 0.0))
        b.add_shape_box(b.add_body(1.0, (0.01, 0.01, 0.01), xform=pose), (0.1, 0.1, 0.1))
    model, gaps = b.finalize(), []
    for backend in ("numpy", "native"):
        found = Simulation(model, backend=backend).contacts()
        gaps.append([np.sort(found.gap[found.body_b == body]) for body in range(6)])
    for mine, theirs in zip(*gaps, strict=True):
        assert len(mine) == 4 and mine.max() < 0.0
        np.testing.assert_allclose(theirs, mine, rtol=0.0, atol=1e-9)
