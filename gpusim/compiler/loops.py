"""Detection of closed kinematic loops. Constraint rows in loops can be linearly dependent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpusim.typing import Array


def constraints_in_loops(bodies: Sequence[Iterable[int]], dynamic: Array) -> Array:
    """Return a mask (constraints,) of the constraints in closed loops.

    Args:
        bodies: bodies that each constraint connects, including the world.
        dynamic: (bodies,) True for dynamic bodies.
    """
    count, ground = len(bodies), int(dynamic.size)
    joined = [sorted({b if dynamic[b] else ground for b in row}) for row in bodies]
    edges: list[list[int]] = [[] for _ in range(ground + 1 + count)]
    for c, row in enumerate(joined):
        for b in row:
            edges[b].append(ground + 1 + c)
            edges[ground + 1 + c].append(b)
    parent, depth = [-1] * len(edges), [-1] * len(edges)
    in_loop = np.zeros(len(edges), dtype=bool)
    for root in (ground, *range(ground)):
        if depth[root] >= 0:
            continue
        depth[root], queue = 0, [root]
        for node in queue:
            for other in edges[node]:
                if depth[other] < 0:
                    parent[other], depth[other] = node, depth[node] + 1
                    queue.append(other)
    for node in range(ground + 1, len(edges)):
        for other in edges[node]:
            if other != parent[node] and parent[other] != node:
                _mark_cycle(node, other, parent, depth, in_loop)
    return in_loop[ground + 1 :]


def _mark_cycle(a: int, b: int, parent: list[int], depth: list[int], in_loop: Array) -> None:
    while a != b:
        if depth[a] < depth[b]:
            a, b = b, a
        in_loop[a] = True
        a = parent[a]
    in_loop[a] = True
