"""Hubs: bodies with many constraints, such as the chassis of a tracked vehicle.

All constraints on a body are neighbors in the factorization of J M^-1 J^T, so the factor grows with the square of their
number. compiler/elimination.py shows how a hub avoids this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MIN_CONSTRAINTS = 7
"""Minimum number of constraints on a hub."""


def find_hubs(moving: Sequence[set[int]], grounded: Sequence[bool]) -> list[int]:
    """Return the hubs of a model: at most one in each group of jointed bodies.

    The factorization eliminates the other bodies of the group first, as if the hub could not move. Forces of
    constraints that cancel on all other bodies also cancel on the hub, because all forces inside a group are pairs of
    action and reaction. The pivots are thus as regular as without a hub. This argument needs a group in which the
    ground acts only on the hub.

    Args:
        moving: movable bodies of each constraint.
        grounded: for each constraint, whether it also acts on the world or on a kinematic body.
    """
    count = Counter(b for bodies in moving for b in bodies)
    hubs = []
    for group in _groups(moving):
        hub = min(group, key=lambda b: (-count[b], b))
        on_ground = set().union(*(bodies for bodies, ground in zip(moving, grounded, strict=True) if ground))
        if count[hub] >= MIN_CONSTRAINTS and on_ground & group <= {hub}:
            hubs.append(hub)
    return sorted(hubs)


def _groups(moving: Sequence[set[int]]) -> list[set[int]]:
    """Return the groups of bodies that constraints connect."""
    group_of: dict[int, set[int]] = {}
    for bodies in moving:
        merged = set(bodies).union(*(group_of.get(b, set()) for b in bodies))
        group_of.update(dict.fromkeys(merged, merged))
    return list({id(group): group for group in group_of.values()}.values())
