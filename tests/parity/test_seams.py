from __future__ import annotations

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig, Transform
from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.reference.contacts.seams import SEAM_CORRECTED
from gpusim.solver.step import find_contacts

from ..unit.collide.kernels import kernel_manifolds  # noqa: F401
from .contact_models import tiled

pytestmark = pytest.mark.native
DT, WORLDS, STEPS = 5e-3, 3, 80


def make(backend: str, launch: str = "auto", worlds: int = WORLDS, **config: object) -> Simulation:
    b, rng = tiled()[0], np.random.default_rng(5)
    for k in range(4):
        turn = rng.normal(size=4)
        place = Transform((0.5 * k - 0.8, 0.25 * k - 0.6, 0.45), turn / np.linalg.norm(turn))
        body = b.add_body(xform=place, linear_velocity=(-1.0, 0.5, -1.0))
        if k:
            b.add_shape_hull(body, rng.normal(size=(14, 3)) * (0.12, 0.08, 0.06))
        else:
            b.add_shape_cylinder(body, 0.08, 0.05)
    sim = Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=DT, **config), launch=launch)  # type: ignore[arg-type]
    sim.state.arrays["linear_velocity"][:, :, 0] *= 1.0 + 0.3 * np.arange(worlds)[:, None]
    sim.invalidate()
    return sim


@pytest.mark.nightly
@pytest.mark.usefixtures("kernel_manifolds")
def test_the_same_points_go() -> None:
    reference, native = make("numpy"), make("native")
    assert isinstance(reference.backend, NumpyBackend)
    whole = part = turned = 0
    for _ in range(STEPS):
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        find_contacts(reference.backend.work, DT)
        native.step()
        mine, theirs = reference.state.arrays, native.read_state()
        count, points = theirs["pair_count"], theirs["pair_points"]
        listed = np.arange(points.shape[1]) < count[:, None]
        touching = (np.arange(4) < points[..., None]) & listed[..., None]
        for name, mask in (("pair_points", listed), ("contact_feature", touching), ("pair_shapes", listed)):
            np.testing.assert_array_equal(mine[name][mask], theirs[name][mask], err_msg=name)
        np.testing.assert_allclose(mine["pair_normal"][listed], theirs["pair_normal"][listed], atol=1e-9)
        np.testing.assert_allclose(mine["contact_anchor"][touching], theirs["contact_anchor"][touching], atol=1e-12)
        contacts = reference.backend.work.contacts
        assert contacts is not None
        whole += np.count_nonzero((contacts.pair_seam != 0) & (mine["pair_points"] == 0))
        part += np.count_nonzero((contacts.pair_seam % SEAM_CORRECTED != 0) & (mine["pair_points"] > 0))
        turned += np.count_nonzero(contacts.pair_seam >= SEAM_CORRECTED)
    assert whole > 20 and part > 20 and turned > 5


@pytest.mark.nightly
@pytest.mark.parametrize("config", [{}, {"substeps": 3}, {"joint_solver": "colored"}])
def test_launches_and_worlds_keep_their_bits(config: dict[str, object]) -> None:
    fused, staged, alone = (
        make("native", "fused", **config),
        make("native", "staged", **config),
        make("native", worlds=1, **config),
    )
    for sim in (fused, staged, alone):
        sim.step(STEPS)
    for name, value in fused.state.variables().items():
        np.testing.assert_array_equal(value, staged.state.variables()[name], err_msg=name)
        np.testing.assert_array_equal(value[:1], alone.state.variables()[name], err_msg=name)
