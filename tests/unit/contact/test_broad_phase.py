from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Transform
from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.compiler.contact_topology import MAX_LISTED
from gpusim.description.specs import WORLD
from gpusim.model.model import Model
from gpusim.solver.step import find_contacts

from .piles import DT, pile, shift_worlds, simulate

SIZES = {"listed": 20, "swept": 90}


def may_touch(model: Model, a: int, b: int) -> bool:
    one, two = model.shapes[a], model.shapes[b]
    if one.body == two.body:
        return False
    named = [p.collide for p in model.pairs if {p.shape_a, p.shape_b} == {a, b}]
    if named:
        return named[-1]
    if any({j.parent, j.child} == {one.body, two.body} for j in model.joints if WORLD not in (j.parent, j.child)):
        return False
    return bool(one.group & two.mask) and bool(two.group & one.mask)


def close_pairs(backend: NumpyBackend, world: int) -> list[tuple[int, int]]:
    c, shapes = backend.work.contacts, range(len(backend.work.model.shapes))
    assert c is not None
    low, up = c.shape_lower[world], c.shape_upper[world]
    return [
        (a, b)
        for a in shapes
        for b in shapes
        if a < b and np.all(low[a] <= up[b]) and np.all(low[b] <= up[a]) and may_touch(backend.work.model, a, b)
    ]


def found_pairs(backend: NumpyBackend, world: int) -> list[tuple[int, int]]:
    state = backend.memory.state.arrays
    return [(int(a), int(b)) for a, b in state["pair_shapes"][world, : state["pair_count"][world]]]


@pytest.mark.parametrize("kind", SIZES)
def test_pairs_are_those_of_brute_force(kind: str) -> None:
    sim, backend = simulate(pile(SIZES[kind]), num_worlds=2)
    assert (len(sim.model.shapes) > MAX_LISTED) == (kind == "swept")
    shift_worlds(sim)
    find_contacts(backend.work, DT)
    expected = [close_pairs(backend, world) for world in (0, 1)]
    assert expected[0] != expected[1]
    assert len(expected[0]) > SIZES[kind]
    for world in (0, 1):
        assert found_pairs(backend, world) == expected[world]
        assert backend.memory.state.arrays["pair_peak"][world] == len(expected[world])
        starts = backend.work.contacts.pair_start[world]  # type: ignore[union-attr]
        firsts = [pair[0] for pair in expected[world]]
        assert starts.tolist() == np.searchsorted(firsts, np.arange(len(sim.model.shapes) + 1)).tolist()
    assert not backend.memory.state.arrays["pair_overflow"].any()


@pytest.mark.parametrize("kind", SIZES)
def test_first_pairs_are_kept_where_places_run_out(kind: str) -> None:
    sim, backend = simulate(pile(SIZES[kind]), num_worlds=2, max_pairs=17)
    for times in (1, 2):
        find_contacts(backend.work, DT)
        expected = close_pairs(backend, 1)
        assert found_pairs(backend, 1) == expected[:17]
        state = sim.state.arrays
        assert state["pair_peak"][1] == len(expected)
        assert state["pair_overflow"][1] == times * (len(expected) - 17)
        assert backend.work.contacts.overflowed == 2 * times  # type: ignore[union-attr]


def test_boxes_are_widened_by_margin_and_motion() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    center, radius = np.array([0.3, 0.0, 0.0]), 0.2
    body = b.add_body(1.0, (0.1, 0.2, 0.3), linear_velocity=(3.0, 0.0, 4.0), angular_velocity=(0.0, 2.0, 0.0))
    b.add_shape_sphere(body, radius, xform=Transform(center))
    sim, backend = simulate(b, contact_margin=0.01)
    find_contacts(backend.work, DT)
    c = backend.work.contacts
    assert c is not None
    reach = 0.005 + DT * (5.0 + 2.0 * (0.3 + radius) + 9.81 * DT)
    np.testing.assert_allclose(c.shape_margin[0], [0.005, reach], rtol=1e-12)
    np.testing.assert_allclose(c.shape_upper[0, 1], center + radius + reach, rtol=1e-12)
    np.testing.assert_allclose(c.shape_lower[0, 1], center - radius - reach, rtol=1e-12)
    assert c.shape_upper[0, 0, 2] == 0.005
    assert c.shape_lower[0, 0, 2] < -1e29


def test_nan_meets_nothing_and_leaves_other_worlds_alone() -> None:
    sim, backend = simulate(pile(SIZES["swept"]), num_worlds=2)
    find_contacts(backend.work, DT)
    expected = found_pairs(backend, 1)
    sim.state.arrays["position"][0] = np.nan
    find_contacts(backend.work, DT)
    assert not any(sim.model.shapes[a].body >= 0 for a, _ in found_pairs(backend, 0))
    assert found_pairs(backend, 1) == expected


def test_shapes_too_large_for_a_cell_and_far_away_ones_are_found() -> None:
    b = ModelBuilder()
    for k in range(80):
        body = b.add_body(1.0, (1, 1, 1), xform=Transform((9e8 + 0.5 * k, 0.0, 0.0)))
        b.add_shape_sphere(body, 20.0 if k == 40 else 0.3)
    sim, backend = simulate(b)
    find_contacts(backend.work, DT)
    assert found_pairs(backend, 0) == close_pairs(backend, 0)
    assert len(found_pairs(backend, 0)) > 79 + 70
