"""Islands: sets of touching bodies and their joints. Newton's method solves each island separately (contact_newton.py).

Bodies that do not move, such as the ground, do not connect islands.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.contacts import contact_laws
from gpusim.reference.contacts.manifolds import Manifolds
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def contact_numbers(w: StepBuffers, m: Manifolds) -> Array:
    """Return the number of unknown impulses and torque impulses of each manifold, (n,)."""
    assert w.contacts is not None
    known = m.law[:, contact_laws.FRICTION_AT] == contact_laws.COULOMB
    numbers = 3 * m.points + (m.spinning > 0.0) + 2 * (m.rolling > 0.0)
    return np.where(known, numbers, w.contacts.sizes["condensed_numbers"] + 1)


def list_islands(w: StepBuffers) -> Array:
    """Set ``Manifolds.island``, and return the number of islands in each world, (num_worlds,)."""
    count = np.zeros(w.num_worlds, np.int64)
    if w.touch is None or w.contacts is None or not w.contacts.sizes["condensed_total"]:
        return count
    m, sizes = w.touch.all, w.contacts.sizes
    order = np.argsort(~m.articulated, kind="stable")
    overflow = w.touch.lists[0].world if w.touch.overflow else np.zeros(0, np.int64)
    for world in np.setdiff1d(m.world[m.articulated], overflow):
        rows = order[m.world[order] == world]
        few = rows.size < sizes["condensed_slots"]
        if few or (sizes["island_nodes"] and not sizes["incident_slots"]):
            count[world] = _list_world(w, m, rows, few)
    return count


def _list_world(w: StepBuffers, m: Manifolds, rows: Array, everything: bool) -> int:
    """Set the islands of the manifolds ``rows`` of one world, and return the number of islands.

    If ``everything`` is false, islands without joints have no number.
    """
    assert w.contacts is not None
    sizes, numbers = w.contacts.sizes, contact_numbers(w, m)
    nodes = _find_nodes(w.contacts.island_nodes, m.body[rows], m.moves[rows]) if sizes["island_nodes"] else 0 * rows
    islands = end = 0
    for node in dict.fromkeys(nodes.tolist()):
        own = rows[nodes == node]
        total = int(numbers[own].sum())
        if not (everything or m.articulated[own].any()):
            continue
        if total <= sizes["condensed_numbers"] and end + total <= sizes["condensed_total"]:
            m.island[own] = islands
            islands, end = islands + 1, end + total
    return islands


def _find_nodes(nodes: Array, body: Array, moves: Array) -> Array:
    """Return the lowest node of the island of each manifold, (n,). ``body`` and ``moves`` are (n, 2)."""
    first = nodes[np.where(moves[:, 0], body[:, 0], body[:, 1])]
    second = nodes[np.where(moves[:, 1], body[:, 1], body[:, 0])]
    label, before = np.arange(nodes.max() + 1), np.zeros(0, np.int64)
    while not np.array_equal(label, before):
        before, low = label.copy(), np.minimum(label[first], label[second])
        np.minimum.at(label, first, low)
        np.minimum.at(label, second, low)
    return label[first]
