"""Paths through the elimination tree. The path of a body contains the constraints that respond to a load on the body.

All constraints on a body couple with each other in the factorization. The pivots of these constraints are therefore on
one path to the root of the elimination tree. Let L be the factor of the direct solver, and r a load on the body. L^-1 r
is nonzero only on the path of the body (Liu 1990, The role of elimination trees in sparse factorization).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.compiler.contact_topology import ContactTopology
from gpusim.compiler.topology import Topology
from gpusim.model.model import Model
from gpusim.typing import Array

MAX_CONDENSED = 64
"""Maximum number of contact unknowns per island for which the solver uses Newton's method (contact_newton.cuh)."""
MAX_COMPARED = 2000
"""Maximum number of bodies for which :func:`max_path_pivots` compares the paths of all pairs of bodies."""


@dataclass(frozen=True)
class Paths:
    """Paths of all bodies to the root of the elimination tree.

    A path is a list of positions in the elimination order.

    Attributes:
        pivots: constraint at each position of the elimination order.
        bodies: path of each body, in ascending order. The world is the last body. Bodies without joints have empty
            paths.
    """

    pivots: list[int]
    bodies: list[list[int]]


def find_paths(t: Topology) -> Paths:
    """Find the paths of all bodies to the root of the elimination tree with hubs."""
    levels = t.hub_factorization[0].levels
    pivots = [int(k) for level in levels for k in level.pivots]
    position = {c: n for n, c in enumerate(pivots)}
    parent: dict[int, int] = {}
    for level in levels:
        for k, i in zip(level.edge_pivot.tolist(), level.edge_row.tolist(), strict=True):
            parent[k] = min(parent.get(k, i), i, key=position.__getitem__)
    bodies: list[list[int]] = []
    for body in range(t.num_bodies + 1):
        on = np.flatnonzero((t.constraint_bodies == body).any(axis=1) & ~t.swept & t.dynamic[body]).tolist()
        path: list[int] = []
        at = t.hubs[body] if body in t.hubs else min(on, key=position.__getitem__, default=None)
        while at is not None:
            path.append(position[at])
            at = parent.get(at)
        bodies.append(path)
    return Paths(pivots, bodies)


def max_path_pivots(paths: Paths, contact: ContactTopology, capacity: int) -> int:
    """Return an upper bound for the total length of the paths of ``capacity`` contact manifolds."""
    bodies = sorted({int(b) for b in contact.body if paths.bodies[b]})
    if len(bodies) > MAX_COMPARED:
        return capacity * min(len(paths.pivots), 2 * max(map(len, paths.bodies)))
    # The last row represents all bodies without a path.
    row, on = np.full(len(paths.bodies), len(bodies)), np.zeros((len(bodies) + 1, len(paths.pivots)), np.float32)
    for k, body in enumerate(bodies):
        row[body] = k
        on[k, paths.bodies[body]] = 1.0
    alone = on.sum(axis=1)
    lengths = (alone[:, None] + alone - on @ on.T).astype(np.int64)
    manifolds = np.zeros(lengths.shape, np.int64)
    if contact.candidates is None:
        shapes = np.bincount(row[contact.body], minlength=len(alone))
        manifolds = np.triu(np.outer(shapes, shapes), 1) * int(contact.manifolds.max())
    else:
        for a, others in enumerate(contact.candidates):
            np.add.at(manifolds[row[contact.body[a]]], row[contact.body[others]], 1)
    # Number of manifolds for each length of their path, in descending order of length.
    counts = np.bincount(lengths.ravel(), weights=manifolds.ravel())[::-1]
    used = np.diff(np.minimum(np.cumsum(counts), capacity), prepend=0)
    return int(used @ np.arange(len(counts))[::-1])


def island_nodes(t: Topology, paths: Paths) -> Array:
    """Return the island node of each body, (bodies + 1,). Bodies that are connected by joints have the same node.

    A node is the root of an elimination tree, or ``num_constraints + body`` for a body without joints.
    """
    return np.array([path[-1] if path else t.num_constraints + body for body, path in enumerate(paths.bodies)])


def path_sizes(model: Model, contacts: dict[str, int]) -> dict[str, int]:
    """Return a dict of the sizes of the arrays for contacts on bodies with joints.

    ``contacts`` is the result of :meth:`ContactTopology.sizes`.
    """
    t = model.topology
    paths = find_paths(t)
    on = bool(contacts["kept_pairs"] and t.num_constraints)
    capacity = articulated_pairs(model.contact, contacts["pairs"]) if on else 0
    of_body = island_nodes(t, paths)
    nodes = np.unique(of_body[model.contact.body[t.dynamic[model.contact.body]]])
    trees, all_trees = int((nodes < t.num_constraints).sum()), np.unique(of_body[of_body < t.num_constraints]).size
    # A manifold has up to four points, and three torques.
    total = min(MAX_CONDENSED * trees, -(-15 * contacts["pairs"] // 8) * 8) if capacity and not t.swept.any() else 0
    numbers, several = min(MAX_CONDENSED, total), total > 0 and nodes.size > 1
    return {
        "direction_rows": t.num_constraints * t.block if on else 0,
        "articulated_slots": capacity,
        "path_slots": max_path_pivots(paths, model.contact, capacity) if on else 0,
        "path_rows": t.block if capacity else 0,
        "path_wrenches": int(capacity > 0),
        "condensed_slots": min(contacts["pairs"], total // 3) + 1 if total else 0,
        "condensed_total": total,
        "condensed_numbers": numbers,
        "island_nodes": t.num_constraints + t.num_bodies if several else 0,
        "island_paths": capacity if several else 0,
        "island_manifolds": min(contacts["pairs"], MAX_CONDENSED // 3) if total else 0,
        "elimination_trees": all_trees,
        "tree_slots": t.num_constraints if capacity and all_trees > 1 else 0,
        "condensed_equations": numbers * (numbers + 8),  # at least 36 numbers for each manifold (contact_newton.cuh)
    }


def articulated_pairs(contact: ContactTopology, pairs: int) -> int:
    """Return the maximum number of contact manifolds on bodies with joints, at most ``pairs``."""
    if contact.candidates is None:
        return pairs
    on = contact.articulated[contact.body]
    return min(pairs, sum(bool(on[a] or on[b]) for a, others in enumerate(contact.candidates) for b in others))
