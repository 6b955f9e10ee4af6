"""Symbolic block LDL^T factorization of a constraint graph: elimination order, fill-in, and operations by level."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import numpy as np

from gpusim.typing import Array


@dataclass
class Elimination:
    """Block operations of an LDL^T factorization, by level. Pivots of one level do not depend on each other."""

    num_blocks: int
    edge_blocks: dict[tuple[int, int], int]
    block_row: Array
    block_column: Array
    """``block_row`` and ``block_column`` contain the indices of the two constraints that each block couples."""
    levels: list[Level] = field(default_factory=list)


@dataclass
class Level:
    """Operations of one level of the elimination tree."""

    pivots: Array
    edge: Array
    """Blocks A_ik with k in ``pivots``. The factorization computes L_ik = A_ik D_k^-1."""
    edge_pivot: Array
    edge_row: Array
    updates: list[tuple[Array, Array, Array]]
    """Rounds of parallel operations A_ij -= L_ik A_jk^T. An operation is (target block, position of L_ik in ``edge``,
    position of A_jk in ``edge``)."""
    forward: list[tuple[Array, Array, Array]]
    """Rounds of parallel operations y_i -= L_ik y_k. An operation is (row i, position of L_ik in ``edge``, pivot k)."""
    backward: list[tuple[Array, Array, Array]]
    """Rounds of parallel operations x_k -= L_ik^T x_i. An operation is (pivot k, position of L_ik in ``edge``, row
    i)."""


@dataclass
class Assembly:
    """Products that add up to the blocks of J M^-1 J^T. The products of one round have different target blocks."""

    rounds: list[tuple[Array, Array, Array]]


def shared_sides(bodies: Array, dynamic: Array) -> dict[int, list[int]]:
    """Return a dict that maps each dynamic body to its sides.

    A side is one of the bodies of a constraint. The index of a side is constraint * slots + slot.
    """
    sides: dict[int, list[int]] = {}
    slots = bodies.shape[1]
    for c in range(bodies.shape[0]):
        for s in range(slots):
            body = int(bodies[c, s])
            if dynamic[body]:
                sides.setdefault(body, []).append(c * slots + s)
    return sides


def eliminate(
    bodies: Array, dynamic: Array, swept: Array, hubs: Mapping[int, int], late: Set[int]
) -> tuple[Elimination, Assembly]:
    """Compute the symbolic block factorization of J M^-1 J^T.

    A *hub* is a body with many constraints. The velocity change w of a hub is an additional unknown:

        A' p + J w = r,   J^T p - M w = 0

    J contains the Jacobians of the constraints for the hub. M is the mass matrix of the hub. A' excludes the coupling
    of constraints through the hub, so the constraints on a hub are not neighbors in A'.

    Args:
        bodies: bodies of each constraint, (constraints, slots).
        dynamic: (bodies,) True for bodies that can move.
        swept: (constraints,) True for constraints of the colored solver. The factorization excludes these constraints.
            No movable body has constraints in both solvers.
        hubs: dict that maps the body index of each hub to the index of the empty constraint that represents w.
        late: indices of the constraints that move only a hub. Their pivots are singular before the elimination of the
            hub, so the hub must come first.

    Returns:
        The operations of the factorization, and the products for its blocks.
    """
    count, slots = bodies.shape
    sides = shared_sides(bodies, dynamic)
    neighbors: list[set[int]] = [set() for _ in range(count)]
    for body, group in sides.items():
        members = {side // slots for side in group}
        for c in members:
            neighbors[c] |= {hubs[body]} if body in hubs else members - {c}
        if body in hubs:
            neighbors[hubs[body]] |= members
    order, columns = _minimum_fill(neighbors, np.flatnonzero(~swept).tolist(), late, set(hubs.values()))
    position = {c: k for k, c in enumerate(order)}
    edges: dict[tuple[int, int], int] = {}
    for k in order:
        for i in sorted(columns[k], key=position.__getitem__):
            edges[i, k] = count + len(edges)
    diagonal = np.arange(count)
    pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    elimination = Elimination(
        num_blocks=count + len(edges),
        edge_blocks=edges,
        block_row=np.concatenate([diagonal, pairs[:, 0]]),
        block_column=np.concatenate([diagonal, pairs[:, 1]]),
    )
    elimination.levels = _levels(order, columns, edges, position)
    return elimination, Assembly(_products(sides, slots, edges, hubs))


def _minimum_fill(
    neighbors: list[set[int]], among: list[int], late: Set[int], hubs: Set[int]
) -> tuple[list[int], dict[int, set[int]]]:
    """Choose the elimination order greedily: by fill-in, then tree depth, then degree, then index.

    Hubs come last, and after them the constraints ``late``. Paths through the elimination tree therefore end at a hub.
    """
    graph = [set(n) for n in neighbors]
    remaining = set(among)
    depth = [0] * len(graph)
    order: list[int] = []
    columns: dict[int, set[int]] = {}
    cost = {c: _fill(graph, c) for c in remaining}
    while remaining:
        best = min(remaining, key=lambda c: (c in late, c in hubs, cost[c], depth[c], len(graph[c]), c))
        remaining.discard(best)
        order.append(best)
        around = graph[best]
        columns[best] = set(around)
        touched = set(around)
        for c in around:
            graph[c] |= around - {c}
            graph[c].discard(best)
            depth[c] = max(depth[c], depth[best] + 1)
            touched |= graph[c]
        for c in touched:
            cost[c] = _fill(graph, c)
    return order, columns


def _fill(graph: list[set[int]], c: int) -> int:
    around = sorted(graph[c])
    return sum(1 for n, i in enumerate(around) for j in around[n + 1 :] if j not in graph[i])


def _levels(
    order: list[int], columns: dict[int, set[int]], edges: dict[tuple[int, int], int], position: dict[int, int]
) -> list[Level]:
    level_of: dict[int, int] = {}
    for k in order:
        level_of.setdefault(k, 0)
        for i in columns[k]:
            level_of[i] = max(level_of.get(i, 0), level_of[k] + 1)
    levels = []
    for number in range(max(level_of.values(), default=-1) + 1):
        pivots = [k for k in order if level_of[k] == number]
        pairs = [(i, k) for k in pivots for i in sorted(columns[k], key=position.__getitem__)]
        at = {pair: n for n, pair in enumerate(pairs)}
        updates = []
        for k in pivots:
            column = sorted(columns[k], key=position.__getitem__)
            for n, j in enumerate(column):
                updates.append((j, at[j, k], at[j, k]))
                updates += [(edges[i, j], at[i, k], at[j, k]) for i in column[n + 1 :]]
        levels.append(
            Level(
                pivots=np.array(pivots, dtype=np.int64),
                edge=np.array([edges[p] for p in pairs], dtype=np.int64),
                edge_pivot=np.array([k for _, k in pairs], dtype=np.int64),
                edge_row=np.array([i for i, _ in pairs], dtype=np.int64),
                updates=rounds(updates),
                forward=rounds([(i, at[i, k], k) for i, k in pairs]),
                backward=rounds([(k, at[i, k], i) for i, k in pairs]),
            )
        )
    return levels


def _products(
    sides: dict[int, list[int]], slots: int, edges: dict[tuple[int, int], int], hubs: Mapping[int, int]
) -> list[tuple[Array, Array, Array]]:
    """List the products J_i M^-1 J_j^T for all pairs of sides on the same body.

    The Jacobian of a hub's empty constraint is M, for the first body of the constraint.
    """
    products = []
    for body in sorted(sides):
        if body in hubs:
            hub, q = hubs[body], hubs[body] * slots
            products.append((hub, q, q))
            for p in sides[body]:
                edge = edges.get((p // slots, hub))
                products.append((edges[hub, p // slots], q, p) if edge is None else (edge, p, q))
            continue
        for p in sides[body]:
            for q in sides[body]:
                i, j = p // slots, q // slots
                if i == j:
                    products.append((i, p, q))
                elif (i, j) in edges:
                    products.append((edges[i, j], p, q))
    products.sort()
    return rounds(products)


def rounds(operations: list[tuple[int, int, int]]) -> list[tuple[Array, Array, Array]]:
    """Split operations into rounds. In each round, every operation has a different target (first entry).

    Operations with equal targets keep their order.
    """
    seen: dict[int, int] = {}
    split: list[list[tuple[int, int, int]]] = []
    for operation in operations:
        number = seen.get(operation[0], 0)
        seen[operation[0]] = number + 1
        if number == len(split):
            split.append([])
        split[number].append(operation)
    result = []
    for group in split:
        columns = np.array(group, dtype=np.int64).T
        result.append((columns[0], columns[1], columns[2]))
    return result
