"""Pairs of bodies that cannot collide because joints connect them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import WORLD, JointSpec

MAX_BETWEEN = 5
"""Maximum number of bodies without shapes between two neighbor bodies."""


def adjacent_bodies(joints: Sequence[JointSpec], shaped: Collection[int]) -> set[tuple[int, int]]:
    """Return the pairs of bodies that cannot collide because joints connect them.

    In each pair, the lower body index comes first. The index of the world is -1.

    * Welded bodies: fixed joints merge bodies into one rigid part. A body that is welded to the world belongs to the
      world's part.
    * Neighbors: a joint connects the rigid parts of the two bodies. A chain of joints over a few bodies without shapes
      also makes two parts neighbors.

    Args:
        joints: all joints of a model. Joints whose bodies may collide (``lets_collide``) have no effect.
        shaped: bodies with shapes.
    """
    holding = [joint for joint in joints if not joint_type(joint.kind).lets_collide(joint)]
    welds = [joint for joint in holding if joint_type(joint.kind).welds]
    part_of = _parts([joint for joint in welds if WORLD not in (joint.parent, joint.child)])
    members: dict[int, list[int]] = {}
    for body in sorted({end for joint in joints for end in (joint.parent, joint.child)} | set(shaped)):
        members.setdefault(part_of.get(body, body), []).append(body)
    still = {part_of.get(end, end) for joint in welds if WORLD in (joint.parent, joint.child) for end in _ends(joint)}
    together = [members[part] for part in members if part not in still]
    together.append([body for part in still for body in members.get(part, [])])
    pairs = {_ordered(a, b) for bodies in together for a, b in combinations(bodies, 2)}
    with_shapes = set(shaped)
    stops = {part for part, bodies in members.items() if not with_shapes.isdisjoint(bodies)}
    for a, b in _neighbors(holding, part_of, stops):
        pairs |= {_ordered(one, other) for one in members[a] for other in members[b]}
    return pairs


def _ends(joint: JointSpec) -> tuple[int, int]:
    return joint.parent, joint.child


def _ordered(a: int, b: int) -> tuple[int, int]:
    return min(a, b), max(a, b)


def _parts(welds: Sequence[JointSpec]) -> dict[int, int]:
    """Return a dict that maps each welded body to the lowest body index in its rigid part."""
    touching: dict[int, set[int]] = {}
    for joint in welds:
        for a, b in (_ends(joint), _ends(joint)[::-1]):
            touching.setdefault(a, set()).add(b)
    part_of: dict[int, int] = {}
    for first in sorted(touching):
        waiting = [] if first in part_of else [first]
        while waiting:
            body = waiting.pop()
            part_of[body] = first
            waiting += [other for other in touching[body] if other not in part_of]
    return part_of


def _neighbors(holding: Sequence[JointSpec], part_of: dict[int, int], shaped: set[int]) -> Iterator[tuple[int, int]]:
    children: dict[int, set[int]] = {}
    for joint in holding:
        parent, child = (part_of.get(end, end) for end in _ends(joint))
        if parent != child:
            yield parent, child
            if WORLD not in (parent, child):
                children.setdefault(parent, set()).add(child)
    for part in sorted(shaped):
        line, passed = children.get(part, set()), {part}
        for _ in range(MAX_BETWEEN):
            bare = line - shaped - passed
            passed |= bare
            line = {child for body in bare for child in children.get(body, ())}
            yield from ((part, child) for child in sorted(line - passed))
