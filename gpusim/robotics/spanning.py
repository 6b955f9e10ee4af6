"""Spanning forest of a model's joints. Each joint in the forest *carries* one body: the joint adds the body to a tree.

A joint that carries a body is a chain of elementary motions in the joint frame. An elementary motion is a translation
along an axis, a rotation about an axis, or a free rotation (ball).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from gpusim.description.joint_kinds import COUNTED, MIDDLE_ANGLE, TRANSLATION, joint_frames, joint_type
from gpusim.description.specs import WORLD, JointSpec
from gpusim.model.model import Model
from gpusim.typing import Array

PRISMATIC, REVOLUTE, BALL = 0, 1, 2
"""Kinds of elementary motions."""
QUATERNION, POSE = "quaternion", "pose"
"""Values of ``JointType.position_is`` for joints whose position is not a list of coordinates."""


@dataclass(frozen=True)
class Motion:
    """Elementary motion along or about ``axis`` (3,), in the joint frame."""

    kind: int
    axis: Array
    at: int
    rate: int

    @property
    def freedoms(self) -> int:
        """Return the number of velocities."""
        return 3 if self.kind == BALL else 1


@dataclass
class Node:
    """A body of the forest.

    Attributes:
        body: index in the model.
        parent: node that carries this node, -1 for the world.
        joint: index in the model, -1 for a floating body.
        reverse: whether this node is the joint's parent body. Otherwise, it is the joint's child body.
        motions: elementary motions of the joint, in the order from the joint's parent to its child.
        before: position (3,) and rotation (3, 3) of the joint frame in the parent node.
        after: position (3,) and rotation (3, 3) of the body frame, in the joint frame of this body.
        at, rate: index of the node's first number in the posture, and index of its first velocity.
        is_kinematic: whether the body is kinematic.
    """

    body: int
    parent: int
    joint: int
    reverse: bool
    motions: list[Motion]
    before: tuple[Array, Array]
    after: tuple[Array, Array]
    at: int
    rate: int
    is_kinematic: bool = False


@dataclass
class Forest:
    """All nodes, parents before children.

    ``closing`` contains the joints that close loops.
    """

    nodes: list[Node] = field(default_factory=list)
    closing: list[int] = field(default_factory=list)
    size: int = 0
    freedoms: int = 0


def spans(joint: JointSpec) -> bool:
    """Return whether a joint can carry a body: the joint coordinates must determine the pose of the body."""
    kind = joint_type(joint.kind)
    coordinate_kinds = set(kind.kinds(joint)[: kind.moves(joint)])
    plain = coordinate_kinds <= {TRANSLATION, *COUNTED} or kind.position_is == QUATERNION
    return kind.holds and kind.sets_pose and plain


def spanning_forest(model: Model, base: str | None) -> Forest:
    """Build the forest of all bodies, or only of the bodies that joints connect with the body ``base``.

    The world and each kinematic body are roots of trees. Each remaining set of connected bodies gets one floating body
    as root. The root is the first of these that exists: ``base``, the child of a free joint, a body that is not the
    child of a carrying joint, the first body.

    Raises:
        UnknownNameError: the model has no body with the label ``base``.
    """
    chosen = _group_of(model, model.index("body", base)) if base is not None else set(range(len(model.bodies)))
    first = [] if base is None else [model.index("body", base)]
    holding = [j for j, spec in enumerate(model.joints) if joint_type(spec.kind).holds]
    touching: dict[int, list[int]] = {}
    for j in holding:
        spec = model.joints[j]
        if spans(spec) and {spec.parent, spec.child} <= chosen | {WORLD}:
            for body in (spec.parent, spec.child):
                touching.setdefault(body, []).append(j)
    forest, number = Forest(), {WORLD: -1}
    for body in sorted(b for b in chosen if model.bodies[b].kinematic):
        _float(forest, number, model, body)
    for start in [WORLD, *(b for b in number if b != WORLD)]:
        _grow(forest, number, model, touching, start)
    for body in [*first, *sorted(chosen, key=lambda b: (*_floats_after(model, b), b))]:
        if body not in number:
            _float(forest, number, model, body)
            _grow(forest, number, model, touching, body)
    carrying = {node.joint for node in forest.nodes}
    forest.closing = [j for j in holding if j not in carrying and _within(model.joints[j], chosen)]
    return forest


def _within(joint: JointSpec, chosen: set[int]) -> bool:
    return {joint.parent, joint.child} <= chosen | {WORLD}


def _group_of(model: Model, body: int) -> set[int]:
    """Return all bodies that joints connect with a body, directly or through other bodies except the world."""
    joined: dict[int, set[int]] = {}
    for spec in model.joints:
        if joint_type(spec.kind).holds and WORLD not in (spec.parent, spec.child):
            joined.setdefault(spec.parent, set()).add(spec.child)
            joined.setdefault(spec.child, set()).add(spec.parent)
    found, waiting = {body}, [body]
    while waiting:
        new = joined.get(waiting.pop(), set()) - found
        found |= new
        waiting += sorted(new)
    return found


def _floats_after(model: Model, body: int) -> tuple[bool, bool]:
    """Return a sort key. In a set of connected bodies, the body with the lowest key becomes the floating body."""
    free = any(j.child == body and joint_type(j.kind).position_is == POSE for j in model.joints)
    carried = any(j.child == body and spans(j) for j in model.joints)
    return not free, carried


def _float(forest: Forest, number: dict[int, int], model: Model, body: int) -> None:
    """Add a floating body: three translations along the world's axes, then a free rotation about the body's origin."""
    number[body] = len(forest.nodes)
    q, v = forest.size, forest.freedoms
    motions = [Motion(PRISMATIC, np.eye(3)[k], q + k, v + k) for k in range(3)] + [
        Motion(BALL, np.zeros(3), q + 3, v + 3)
    ]
    identity = np.zeros(3), np.eye(3)
    is_kinematic = model.bodies[body].kinematic
    forest.nodes.append(Node(body, -1, -1, False, motions, identity, identity, q, v, is_kinematic))
    forest.size, forest.freedoms = q + 7, v + 6


def _grow(forest: Forest, number: dict[int, int], model: Model, touching: dict[int, list[int]], start: int) -> None:
    """Add all bodies that joints connect with the body ``start``, in the order of the model's joints."""
    waiting = list(touching.get(start, ()))
    heapq.heapify(waiting)
    while waiting:
        joint = heapq.heappop(waiting)
        spec = model.joints[joint]
        if spec.parent in number and spec.child in number:
            continue
        reverse = spec.child in number
        body = spec.parent if reverse else spec.child
        _carry(forest, number, model, joint, reverse)
        for other in touching.get(body, ()):
            heapq.heappush(waiting, other)


def _carry(forest: Forest, number: dict[int, int], model: Model, joint: int, reverse: bool) -> None:
    spec, coordinates = model.joints[joint], model.coordinates[joint]
    kind, frames = joint_type(spec.kind), joint_frames(spec)
    rotation_a, rotation_b = spec.parent_xform.matrix(), spec.child_xform.matrix()
    motions, q, v = [], forest.size, forest.freedoms
    if kind.position_is == QUATERNION:
        motions.append(Motion(BALL, np.zeros(3), q, v))
        q, v = q + 4, v + 3
    else:
        for c in coordinates[: kind.moves(spec)]:
            axis = (rotation_b if c.axis_on_child else rotation_a).T @ c.axis
            if c.kind == MIDDLE_ANGLE:
                axis = np.cross(axis, rotation_a.T @ c.other)
            motions.append(Motion(PRISMATIC if c.kind == TRANSLATION else REVOLUTE, _snapped(axis), q, v))
            q, v = q + 1, v + 1
    # Translations first, because they are along the axes of the parent.
    motions.sort(key=lambda m: m.kind != PRISMATIC)
    ends = (frames.point_a, rotation_a), (frames.point_b, rotation_b)
    near, far = reversed(ends) if reverse else ends
    after = -far[1].T @ far[0], far[1].T
    carried, carrier = (spec.parent, spec.child) if reverse else (spec.child, spec.parent)
    node = Node(carried, number[carrier], joint, reverse, motions, near, after, forest.size, forest.freedoms)
    number[carried] = len(forest.nodes)
    forest.nodes.append(node)
    forest.size, forest.freedoms = q, v


def _snapped(axis: Array) -> Array:
    """Replace components of an axis that are almost 0, 1 or -1 by these exact values."""
    near = np.where(np.abs(axis) < 1e-15, 0.0, axis)
    return np.asarray(np.where(np.abs(np.abs(near) - 1.0) < 1e-15, np.sign(near), near))
