from __future__ import annotations

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.description.shape_kinds import shape_type
from gpusim.reference.contact_work import ContactWork
from gpusim.reference.contacts import narrow_phase
from gpusim.rotations import matrix_from_quaternion
from gpusim.solver.step import find_contacts
from gpusim.typing import Array

from ..unit.collide.kernels import find_all_manifolds, kernel_manifolds  # noqa: F401
from ..unit.contact.piles import DT, pile, shift_worlds

pytestmark = pytest.mark.native
WORLDS, STEPS = 2, 3
EXACT = ("pair_count", "pair_shapes", "pair_points", "contact_feature", "pair_peak", "pair_overflow")
CLOSE = ("pair_normal", "contact_anchor", "pair_guess")


def make(backend: str, bodies: int, dtype: str, worlds: int = WORLDS, **config: object) -> Simulation:
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
    listed = np.arange(state["pair_points"].shape[1]) < state["pair_count"][:, None]
    touching = (np.arange(4) < state["pair_points"][..., None]) & listed[..., None]
    return listed, touching


def used(name: str, array: Array, listed: Array, touching: Array) -> Array:
    if name.startswith("contact_"):
        return np.asarray(array[touching])
    # Far apart the search stops at any direction that parts the two, which may differ by rounding.
    if name in ("pair_normal", "pair_guess"):
        return np.asarray(array[touching[..., 0]])
    return np.asarray(array[listed]) if array.ndim > 1 else array


@pytest.mark.nightly
@pytest.mark.usefixtures("kernel_manifolds")
@pytest.mark.parametrize(("bodies", "max_pairs"), [(20, None), (90, None), (20, 17), (90, 40)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_pairs_and_points(bodies: int, max_pairs: int | None, dtype: str) -> None:
    # float32 has a build with the colored solver. No joint is in the model, so the solver does not matter.
    config = {"max_pairs": max_pairs, "joint_solver": "colored" if dtype == "float32" else "auto"}
    reference, native = (make(backend, bodies, dtype, **config) for backend in ("numpy", "native"))
    assert isinstance(reference.backend, NumpyBackend)
    for _ in range(STEPS):
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        find_contacts(reference.backend.work, DT)
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


def min_gaps(sim: Simulation, state: dict[str, Array], listed: Array) -> Array:
    shapes, position = sim.model.contact, state["position"]
    rotation = matrix_from_quaternion(state["orientation"])
    world, _ = np.nonzero(listed)
    sides = []
    for side in (0, 1):
        shape = state["pair_shapes"][listed][:, side]
        arm, body = state["contact_anchor"][listed][..., 3 * side : 3 * side + 3], shapes.body[shape]
        turned = np.einsum("nij,nkj->nki", rotation[world, body], arm)
        sides.append(position[world, body][:, None] + np.where(shapes.rolls[shape][:, None, None], arm, turned))
    gap = np.vecdot(sides[1] - sides[0], state["pair_normal"][listed][:, None])
    return np.where(np.arange(4) < state["pair_points"][listed][:, None], gap, np.inf).min(axis=1)


@pytest.mark.nightly
@pytest.mark.parametrize("bodies", [20, 90])
def test_the_reference_finds_the_same_contacts_on_its_own(bodies: int) -> None:
    reference, native = (make(backend, bodies, "float64") for backend in ("numpy", "native"))
    assert isinstance(reference.backend, NumpyBackend)
    for name, array in reference.state.arrays.items():
        array[:] = native.state.arrays[name]
    find_contacts(reference.backend.work, DT)
    mine = {name: array.copy() for name, array in reference.state.arrays.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow_phase, "find_all_manifolds", find_all_manifolds)
        find_contacts(reference.backend.work, DT)
    theirs = reference.state.arrays
    listed, touching = in_use(theirs)
    np.testing.assert_array_equal(mine["pair_points"][listed] > 0, theirs["pair_points"][listed] > 0)
    gaps = [min_gaps(reference, state, listed) for state in (mine, theirs)]
    np.testing.assert_allclose(*gaps, rtol=0, atol=1e-6)
    turn = np.linalg.norm(mine["pair_normal"] - theirs["pair_normal"], axis=-1)[touching[..., 0]]
    box = reference.model.contact.kind[theirs["pair_shapes"][touching[..., 0]]] == shape_type("box").number
    # Two boxes: axes within 0.26 degrees of each other count as one.
    assert np.all(turn < np.where(box.all(axis=1), 4.5e-3, 1e-5))
    assert np.count_nonzero(touching[..., 0]) > bodies


@pytest.mark.nightly
def test_pairs_stay_right_between_searches_of_the_grid() -> None:
    reference, native = (make(backend, 90, "float64", worlds=1) for backend in ("numpy", "native"))
    assert isinstance(reference.backend, NumpyBackend)
    searched = []
    for step in range(16):
        if step == 8:
            native.write("body.body3.position", native.read("body.body80.position") + [0.0, 0.0, 0.05])
        for name, array in reference.state.arrays.items():
            array[:] = native.state.arrays[name]
        find_contacts(reference.backend.work, DT)
        native.step()
        searched.append(int(native.backend.slab_array("searching")[0]))
        mine, theirs = reference.state.arrays, native.read_state()
        np.testing.assert_array_equal(mine["pair_count"], theirs["pair_count"])
        listed, _ = in_use(theirs)
        np.testing.assert_array_equal(mine["pair_shapes"][listed], theirs["pair_shapes"][listed])
    assert 0 in searched and 1 in searched


@pytest.mark.nightly
def test_matched_points_take_over_what_the_step_before_left() -> None:
    reference = make("numpy", 20, "float64")
    assert isinstance(reference.backend, NumpyBackend)
    reference.step(2)
    before = {name: array.copy() for name, array in reference.state.arrays.items()}
    find_contacts(reference.backend.work, DT)
    after, c = reference.state.arrays, reference.backend.work.contacts
    assert isinstance(c, ContactWork)
    matched = rolled = 0
    for world in range(WORLDS):
        old = {tuple(p): m for m, p in enumerate(before["pair_shapes"][world, : before["pair_count"][world]])}
        for m in range(after["pair_count"][world]):
            was = old.get(tuple(after["pair_shapes"][world, m]), -1)
            points = before["pair_points"][world, was] if was >= 0 else 0
            features = before["contact_feature"][world, was, :points].tolist()
            rolls = reference.model.contact.rolls[after["pair_shapes"][world, m]]
            sides = np.repeat(rolls, 3)
            arms = after["contact_anchor"][world, m, : after["pair_points"][world, m]][:, sides]
            far = np.linalg.norm(arms[:, None] - before["contact_arm"][world, was, :points][None][..., sides], axis=2)
            for k in range(after["pair_points"][world, m]):
                number = after["contact_feature"][world, m, k]
                expected = {name: np.zeros(after[name].shape[3:]) for name in POINT_SIZE}
                if rolls.any() and points and far[:, j := int(far[k].argmin())].argmin() == k:
                    at = world, was, j
                    names = POINT_SIZE if features[j] == number else ("contact_impulse", "contact_slip")
                    sizes = reference.model.contact.size[after["pair_shapes"][world, m], 0] * rolls
                    if features[j] != number and far[k, j] > np.hypot(*sizes):
                        names = ()
                    expected |= {name: before[name][at] for name in names}
                    rolled += 1
                elif not rolls.any() and number in features:
                    at = world, was, features.index(number)
                    expected = {name: before[name][at] for name in POINT_SIZE}
                    matched += 1
                for name, value in expected.items():
                    np.testing.assert_array_equal(after[name][world, m, k], value, err_msg=name)
            if after["pair_points"][world, m]:
                bend = after["pair_normal"][world, m] - before["pair_normal"][world, was] if points else np.zeros(3)
                np.testing.assert_array_equal(c.pair_bend[world, m], bend)
    assert matched > 5 and rolled > 5


POINT_SIZE = ("contact_impulse", "contact_slip", "contact_arm", "contact_age")


@pytest.mark.nightly
def test_sensing_leaves_the_contacts_of_the_state() -> None:
    reference = make("numpy", 20, "float64")
    native = make("native", 20, "float64")
    for name, array in reference.state.arrays.items():
        array[:] = native.state.arrays[name]
    before = {name: array.copy() for name, array in reference.state.arrays.items()}
    reference.runtime.forward()
    for name, array in reference.state.arrays.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
