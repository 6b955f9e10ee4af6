"""Hubs: bodies with many constraints, such as the chassis of a tracked vehicle.

In J M^-1 J^T, each constraint on a body couples with all other constraints on the same body. The factor therefore grows
with the square of the number of constraints on a body. compiler/elimination.py shows how a hub avoids this growth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpusim.compiler.groups import Groups

MIN_CONSTRAINTS = 7
"""Minimum number of constraints on a hub."""


def find_hubs(moving: Sequence[set[int]], grounded: Sequence[bool]) -> list[int]:
    """Return the hubs of a model: at most one in each group of bodies that joints connect.

    A group has a hub only if no constraint connects another body of the group to the world or to a kinematic body.
    Otherwise, pivots could be nearly zero.

    Args:
        moving: movable bodies of each constraint.
        grounded: True for each constraint that also acts on the world or on a kinematic body.
    """
    count = Counter(b for bodies in moving for b in bodies)
    if max(count.values(), default=0) < MIN_CONSTRAINTS:
        return []
    group, hub_of = _groups(moving), dict[int, int]()
    for body in sorted(count, key=lambda b: (-count[b], b)):
        hub_of.setdefault(group[body], body)
    # Forces in a group are pairs of action and reaction. Forces that cancel on all other bodies thus also cancel on the
    # hub, so pivots without the hub are as regular as with it. Forces of the ground would break this rule.
    on_ground = set().union(*(bodies for bodies, ground in zip(moving, grounded, strict=True) if ground))
    excluded = {group[body] for body in on_ground if hub_of[group[body]] != body}
    return sorted(b for g, b in hub_of.items() if count[b] >= MIN_CONSTRAINTS and g not in excluded)


def _groups(moving: Sequence[set[int]]) -> dict[int, int]:
    """Return for each body one body of its group. Constraints connect the bodies of a group."""
    groups = Groups()
    for first, *others in filter(None, moving):
        for other in others:
            groups.join(first, other)
    return {body: groups.root(body) for bodies in moving for body in bodies}
