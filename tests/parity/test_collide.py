"""Stages collide and color: NumPy and the kernels find the same pairs, points and features from the same state."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.backends.numpy_backend import NumpyBackend
from gpusim.reference.contact_work import ContactWork
from gpusim.typing import Array

from ..unit.contact.piles import DT, pile, shift_worlds

pytestmark = pytest.mark.native
WORLDS, STEPS = 2, 3
EXACT = ("pair_count", "pair_shapes", "pair_points", "contact_feature", "pairs_most", "pairs_lost")
CLOSE = ("pair_normal", "contact_anchor", "pair_guess")


def make(backend: str, bodies: int, dtype: str, worlds: int = WORLDS, **config: object) -> Simulation:
    """A moving pile."""
    sim = Simulation(
        pile(bodies).finalize(),
        worlds,
        backend=backend,
        dtype=dtype,
        config=SolverConfig(dt=DT, **config),  # type: ignore[arg-type]
        launch="auto" if backend == "numpy" else "fused",
    )
    shift_worlds(sim)
    return sim


def in_use(state: dict[str, Array]) -> tuple[Array, Array]:
    """Places of pairs (worlds, pairs) and points (worlds, pairs, 4) that hold something."""
    listed = np.arange(state["pair_points"].shape[1]) < state["pair_count"][:, None]
    touching = (np.arange(4) < state["pair_points"][..., None]) & listed[..., None]
    return listed, touching


def used(name: str, array: Array, listed: Array, touching: Array) -> Array:
    """What an array holds in the places in use."""
    if name.startswith("contact_"):
        return np.asarray(array[touching])
    # Far apart the search stops at any direction that parts the two, which may differ by rounding.
    if name in ("pair_normal", "pair_guess"):
        return np.asarray(array[touching[..., 0]])
    return np.asarray(array[listed]) if array.ndim > 1 else array


@pytest.mark.parametrize(("bodies", "max_pairs"), [(20, None), (90, None), (20, 17), (90, 40)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_pairs_and_points(bodies: int, max_pairs: int | None, dtype: str) -> None:
    """Each step starts from the kernels' state, so that points are matched with those of the step before."""
    reference, native = (make(backend, bodies, dtype, max_pairs=max_pairs) for backend in ("numpy", "native"))
    assert isinstance(reference.backend, NumpyBackend)
    for _ in range(STEPS):
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        reference.backend.collide(DT)
        native.step()
        mine, theirs = reference.state.arrays, native.read_state()
        listed, touching = in_use(theirs)
        for name in EXACT:
            np.testing.assert_array_equal(
                *(used(name, a[name], listed, touching) for a in (mine, theirs)), err_msg=name
            )
        for name in CLOSE:
            both = (used(name, a[name], listed, touching) for a in (mine, theirs))
            np.testing.assert_allclose(*both, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(mine["contact_age"][touching] + 1, theirs["contact_age"][touching])
    assert theirs["contact_age"].max() == STEPS
    assert theirs["pair_points"].max() >= 2


def test_pairs_stay_right_between_searches_of_the_grid() -> None:
    """What the grid found serves until a shape leaves its wide box or is put elsewhere."""
    reference, native = (make(backend, 90, "float64", worlds=1) for backend in ("numpy", "native"))
    assert isinstance(reference.backend, NumpyBackend)
    searched = []
    for step in range(16):
        if step == 8:
            native.write("body.body3.position", native.read("body.body80.position") + [0.0, 0.0, 0.05])
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        reference.backend.collide(DT)
        native.step()
        searched.append(int(native.backend.slab_array("searching")[0]))
        mine, theirs = reference.state.arrays, native.read_state()
        np.testing.assert_array_equal(mine["pair_count"], theirs["pair_count"])
        listed, _ = in_use(theirs)
        np.testing.assert_array_equal(mine["pair_shapes"][listed], theirs["pair_shapes"][listed])
    assert 0 in searched and 1 in searched


def test_matched_points_take_over_what_the_kernels_left() -> None:
    """Impulses, slips and arms of the step before stand where the same features touch."""
    reference, native = make("numpy", 20, "float64"), make("native", 20, "float64")
    assert isinstance(reference.backend, NumpyBackend)
    native.step(2)
    for name, array in reference.state.arrays.items():
        array[:] = native.state.arrays[name]
    before = {name: array.copy() for name, array in reference.state.arrays.items()}
    reference.backend.collide(DT)
    after, c = reference.state.arrays, reference.backend.work.contacts
    assert isinstance(c, ContactWork)
    matched = 0
    for world in range(WORLDS):
        old = {tuple(p): m for m, p in enumerate(before["pair_shapes"][world, : before["pair_count"][world]])}
        for m in range(after["pair_count"][world]):
            was = old.get(tuple(after["pair_shapes"][world, m]), -1)
            points = before["pair_points"][world, was] if was >= 0 else 0
            features = before["contact_feature"][world, was, :points].tolist()
            for k in range(after["pair_points"][world, m]):
                number = after["contact_feature"][world, m, k]
                expected = {name: np.zeros(after[name].shape[3:]) for name in POINT_NUMBERS}
                if number in features:
                    at = world, was, features.index(number)
                    expected = {name: before[name][at] for name in POINT_NUMBERS}
                    matched += 1
                for name, value in expected.items():
                    np.testing.assert_array_equal(after[name][world, m, k], value, err_msg=name)
            if after["pair_points"][world, m]:
                bend = after["pair_normal"][world, m] - before["pair_normal"][world, was] if points else np.zeros(3)
                np.testing.assert_array_equal(c.pair_bend[world, m], bend)
    assert matched > 5


POINT_NUMBERS = ("contact_impulse", "contact_slip", "contact_arm", "contact_age")


def test_sensing_leaves_the_contacts_of_the_state() -> None:
    reference = make("numpy", 20, "float64")
    native = make("native", 20, "float64")
    for name, array in reference.state.arrays.items():
        array[:] = native.state.arrays[name]
    before = {name: array.copy() for name, array in reference.state.arrays.items()}
    reference.sensed()
    for name, array in reference.state.arrays.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
