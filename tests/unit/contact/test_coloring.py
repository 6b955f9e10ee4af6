from __future__ import annotations

import numpy as np
import pytest

from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.reference.contact_work import ContactWork
from gpusim.reference.contacts.contact_coloring import bits_for, color_pairs, mixed
from gpusim.solver.step import find_contacts
from gpusim.typing import Array

from .piles import DT, pile, shift_worlds, simulate

NO_CONTACT, OVERFLOW, ARTICULATED = -2, -1, -3
WORLDS = 2


def colored(**config: object) -> tuple[NumpyBackend, ContactWork]:
    sim, backend = simulate(pile(40, seed=3), WORLDS, **config)
    shift_worlds(sim)
    find_contacts(backend.work, DT)
    assert backend.work.contacts is not None
    return backend, backend.work.contacts


def pairs_of(backend: NumpyBackend, world: int) -> tuple[Array, Array, Array]:
    state, c = backend.memory.state.arrays, backend.work.contacts
    assert c is not None
    count = state["pair_count"][world]
    bodies = backend.work.model.contact.body[state["pair_shapes"][world, :count]]
    return bodies, state["pair_points"][world, :count], c.manifold_color[world, :count]


@pytest.mark.parametrize("colors", [2, 32, 62])
def test_a_color_has_every_moving_body_once(colors: int) -> None:
    backend, c = colored(max_colors=colors)
    dynamic = backend.work.topology.dynamic
    for world in range(WORLDS):
        bodies, points, chosen = pairs_of(backend, world)
        assert ((points == 0) == (chosen == NO_CONTACT)).all()
        assert c.touching[world] == np.count_nonzero(points)
        for color in range(colors):
            on = bodies[chosen == color]
            on = on[dynamic[on]]
            assert on.size == np.unique(on).size
        assert (chosen == OVERFLOW).any() == (colors == 2)
        # what overflows could have no color
        for pair in bodies[chosen == OVERFLOW]:
            moving = pair[dynamic[pair]]
            taken = {int(k) for k in chosen[np.isin(bodies, moving).any(axis=1)] if k >= 0}
            assert taken == set(range(colors))


@pytest.mark.parametrize("colors", [2, 32])
def test_lists_hold_every_touching_manifold_once(colors: int) -> None:
    backend, c = colored(max_colors=colors)
    for world in range(WORLDS):
        _, _, chosen = pairs_of(backend, world)
        first, member = c.color_first[world], c.color_member[world]
        numbers = [*range(colors), OVERFLOW, ARTICULATED]
        lists = [member[first[k] : first[k + 1]].tolist() for k in range(colors + 2)]
        assert lists == [np.flatnonzero(chosen == number).tolist() for number in numbers]
        assert lists[-1]
        assert first[-1] == c.touching[world]


def test_overflow_sides_are_listed_by_body() -> None:
    backend, c = colored(max_colors=2)
    for world in range(WORLDS):
        bodies, _, chosen = pairs_of(backend, world)
        sides = [(m, k) for m in np.flatnonzero(chosen == OVERFLOW) for k in (0, 1)]
        for b in range(backend.work.topology.num_bodies + 1):
            expected = [2 * m + k for m, k in sides if bodies[m, k] == b]
            start = c.part_start[world]
            assert c.part_side[world, start[b] : start[b + 1]].tolist() == expected
            assert c.body_parts[world, b] == len(expected)


def test_jointed_manifolds_stand_apart_for_the_direct_solver_only() -> None:
    for solver in ("direct", "colored"):
        backend, _ = colored(joint_solver=solver)
        bodies, points, chosen = pairs_of(backend, 0)
        articulated = backend.work.model.contact.articulated[bodies].any(axis=1) & (points > 0)
        assert articulated.any()
        assert ((chosen == ARTICULATED) == (articulated & (solver == "direct"))).all()


def test_colors_are_the_same_again_and_alone() -> None:
    backend, c = colored()
    kept = c.manifold_color.copy(), c.color_member.copy()
    find_contacts(backend.work, DT)
    assert np.array_equal(c.manifold_color, kept[0])
    assert np.array_equal(c.color_member, kept[1])
    sim, alone = simulate(pile(40, seed=3))
    for name, array in sim.state.arrays.items():
        array[0] = backend.memory.state.arrays[name][1]
    find_contacts(alone.work, DT)
    assert np.array_equal(alone.work.contacts.manifold_color[0], c.manifold_color[1])  # type: ignore[union-attr]


def test_neighbors_in_the_list_do_not_wait_for_each_other() -> None:
    count = 1000
    bodies, bits = np.stack([np.arange(count), np.arange(1, count + 1)], axis=1), bits_for(count)
    used, chosen = np.zeros((count + 1, 2), np.uint32), np.zeros(count, np.int32)
    free, articulated = np.ones(count + 1, bool), np.zeros(count + 1, bool)
    assert color_pairs(bodies, np.ones(count, np.int32), free, articulated, 32, used, chosen) == count
    order = [k for k in (mixed(k, bits) for k in range(1 << bits)) if k < count]
    assert sorted(order) == list(range(count))
    expected, waits = np.full(count + 2, -9), np.zeros(count + 2, int)
    for m in order:
        around = expected[[m, m + 2]]
        expected[m + 1] = min(color for color in range(3) if color not in around)
        waits[m + 1] = 1 + waits[[m, m + 2]].max()
    assert np.array_equal(chosen, expected[1:-1])
    assert waits.max() <= 10
