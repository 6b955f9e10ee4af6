"""Triangle meshes: NumPy finds the same contacts as the kernels, by another algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.description.shape_kinds import shape_kinds
from gpusim.solver.step import find_contacts
from gpusim.typing import Array

from .contact_models import rock_mesh
from .test_collide import min_gaps

pytestmark = pytest.mark.native
DT = 5e-3
SIZES: dict[str, tuple] = {
    "sphere": (0.1,), "box": ((0.12, 0.1, 0.08),), "capsule": (0.08, 0.1), "cylinder": (0.1, 0.1), "cone": (0.1, 0.1),
    "ellipsoid": ((0.15, 0.1, 0.08),), "superellipsoid": ((0.15, 0.1, 0.08), (0.8, 1.2)), "wheel": (0.12, 0.03),
    "barrel": (0.1, 0.3, 0.1), "hull": ([(x * s, y * s, z) for z, s in ((-0.08, 0.12), (0.08, 0.06))
                                         for x in (-1, 1) for y in (-1, 1)],),
}  # fmt: skip


def stones(seed: int) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, rock_mesh(seed, 21))
    for k, (kind, sizes) in enumerate(SIZES.items()):
        for row in range(2):
            place, axis = (0.28 * k - 1.25, 0.9 * row - 0.4, 0.5), rng.normal(size=3)
            xform = Transform.from_axis_angle(place, axis / np.linalg.norm(axis), rng.uniform(0, 3))
            body = b.add_body(xform=xform, linear_velocity=tuple(0.5 * rng.normal(size=3)))
            getattr(b, f"add_shape_{kind}")(body, *sizes)
    return b


def manifolds(sim: Simulation, state: dict[str, Array]) -> dict[tuple[int, int], list[tuple[Array, float]]]:
    """Normal and least gap of each manifold, by pair."""
    listed = np.arange(state["pair_points"].shape[1]) < state["pair_count"][:, None]
    gaps = min_gaps(sim, state, listed)
    found: dict[tuple[int, int], list[tuple[Array, float]]] = {}
    for pair, normal, gap in zip(state["pair_shapes"][listed], state["pair_normal"][listed], gaps, strict=True):
        if np.isfinite(gap):
            found.setdefault(tuple(pair.tolist()), []).append((normal, gap))
    return found


def same(mine: list[tuple[Array, float]], theirs: list[tuple[Array, float]]) -> bool:
    if len(mine) != len(theirs):
        return False
    for normal, gap in mine:
        other = max(theirs, key=lambda x: float(x[0] @ normal))
        if abs(gap - other[1]) > 2e-7 or normal @ other[0] < 0.98:
            return False
    return True


def test_all_kinds_are_here() -> None:
    assert set(SIZES) == {kind.name for kind in shape_kinds() if kind.movable}


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_the_reference_finds_the_same_manifolds(seed: int) -> None:
    model, config = stones(seed).finalize(), SolverConfig(dt=DT)
    reference, native = (Simulation(model, backend=backend, config=config) for backend in ("numpy", "native"))
    assert isinstance(reference.backend, NumpyBackend)
    met = several = 0
    for _ in range(4):
        native.step(40)
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        before = {name: reference.state.arrays[name].copy() for name in ("position", "orientation")}
        find_contacts(reference.backend.work, DT)
        native.step()
        mine = manifolds(reference, reference.state.arrays)
        theirs = manifolds(native, {**native.read_state(), **before})
        assert set(mine) == set(theirs)
        differ = [pair for pair in mine if not same(mine[pair], theirs[pair])]
        assert len(differ) <= 0.05 * len(mine), [(mine[pair], theirs[pair]) for pair in differ]
        met += len(mine)
        several += sum(len(found) > 1 for found in mine.values())
    assert met > 50 and several > 5
