"""Trees of bodies in a USD file: their bases, their poses, and the inertia that each joint moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gpusim.importers.inertia import MassProperties, combine, parallel_axis
from gpusim.importers.report import ImportReport
from gpusim.importers.usd_parts.usd_bodies import UsdBody
from gpusim.importers.usd_parts.usd_joints import WORLD, UsdJoint, constrained_pose, rotation_angle
from gpusim.transform import Transform, homogeneous_matrix
from gpusim.typing import Array

# USD files store positions in single precision. Larger deviations are errors in the file.
POSITION_TOLERANCE = 1e-4
ANGLE_TOLERANCE = 1e-3


@dataclass
class Tree:
    """Spanning tree of the joints.

    Attributes:
        order: paths of all bodies that are not merged into others, parents first, as keys (an ordered set).
        carrier: dict from a body path to the joint that connects the body to its parent. Floating roots have no entry.
        roots: dict from the path of a root to the number of bodies in its tree, including the root.
        grounded: the roots that are connected to the world by a joint.
    """

    order: dict[str, None] = field(default_factory=dict)
    carrier: dict[str, UsdJoint] = field(default_factory=dict)
    roots: dict[str, int] = field(default_factory=dict)
    grounded: set[str] = field(default_factory=set)


def connect_hosts(bodies: Mapping[str, UsdBody], joints: Sequence[UsdJoint]) -> list[UsdJoint]:
    """Replace merged bodies in the joints by their host bodies, and return the joints."""

    def end(path: str, frame: Transform) -> tuple[str, Transform]:
        return (path, frame) if path == WORLD else (bodies[path].host, bodies[path].offset * frame)

    moved = []
    for joint in joints:
        first, second = (end(*pair) for pair in zip(joint.bodies, joint.frames, strict=True))
        moved.append(replace(joint, bodies=(first[0], second[0]), frames=(first[1], second[1])))
    return moved


def spanning_tree(bodies: Mapping[str, UsdBody], joints: Sequence[UsdJoint], first: Sequence[str]) -> Tree:
    """Return the spanning tree of the joints. If possible, bodies in ``first`` become roots."""
    tree, ends = Tree(), _ends(joints)
    hosts = [path for path, body in bodies.items() if body.host == path]
    children = {joint.bodies[1] for joint in joints if not joint.excluded}
    hosts.sort(key=lambda path: path in children)
    kinematic = [path for path in hosts if bodies[path].kinematic]
    for joint, other in ends.get(WORLD, ()):
        if joint.determines_pose and other not in tree.roots and other not in tree.carrier:
            tree.grounded.add(other)
            tree.carrier[other] = joint
            _grow(tree, other, ends, bodies)
    for path in (*kinematic, *(bodies[path].host for path in first if path in bodies), *hosts):
        if path not in tree.order:
            _grow(tree, path, ends, bodies)
    return tree


def _ends(joints: Sequence[UsdJoint]) -> dict[str, list[tuple[UsdJoint, str]]]:
    """Return the joints of each body as a dict: body path -> pairs (joint, path of the other body)."""
    ends: dict[str, list[tuple[UsdJoint, str]]] = {}
    for joint in sorted(joints, key=lambda joint: joint.excluded):
        if joint.kind != "distance":
            for here, there in (joint.bodies, joint.bodies[::-1]):
                ends.setdefault(here, []).append((joint, there))
    return ends


def _grow(tree: Tree, root: str, ends: Mapping[str, list[tuple[UsdJoint, str]]], bodies: Mapping[str, UsdBody]) -> None:
    grown = [root]
    tree.order[root] = None
    for excluded in (False, True):
        waiting = list(grown)
        while waiting:
            here = waiting.pop(0)
            for joint, other in ends.get(here, ()):
                free = other != WORLD and other not in tree.order and not bodies[other].kinematic
                if free and joint.excluded <= excluded and other not in tree.carrier:
                    tree.carrier[other] = joint
                    tree.order[other] = None
                    grown.append(other)
                    waiting.append(other)
    tree.roots[root] = len(grown)


def set_base(
    bodies: Mapping[str, UsdBody], joints: list[UsdJoint], tree: Tree, fixed_base: bool | None
) -> list[UsdJoint]:
    """Fix all robot bases (True), free the bases (False) or keep the file's bases (None). Return the joints."""
    if fixed_base is True:
        for root in tree.roots:
            if root not in tree.grounded and _is_robot(bodies, joints, root):
                joints = [*joints, _base_joint(bodies[root], "fixed")]
    elif fixed_base is False:
        fixed = {root: tree.carrier[root] for root in tree.grounded if tree.carrier[root].kind in ("fixed", "latch")}
        joints = [joint for joint in joints if not any(joint is base for base in fixed.values())]
        joints += [_base_joint(bodies[root], "free") for root in fixed]
    return joints


def free_bases(bodies: Mapping[str, UsdBody], joints: list[UsdJoint], tree: Tree) -> list[UsdJoint]:
    """Return a free joint between the world and the root of each floating robot."""
    grounded = {joint.bodies[1] for joint in joints if joint.bodies[0] == WORLD}
    grounded |= {joint.bodies[0] for joint in joints if joint.bodies[1] == WORLD}
    roots = [root for root in tree.roots if root not in grounded and _is_robot(bodies, joints, root)]
    return [_base_joint(bodies[root], "free") for root in roots]


def _is_robot(bodies: Mapping[str, UsdBody], joints: Sequence[UsdJoint], root: str) -> bool:
    return not bodies[root].kinematic and any(root in joint.bodies for joint in joints)


def _base_joint(body: UsdBody, kind: str) -> UsdJoint:
    frames = (body.pose, Transform()) if kind == "fixed" else (Transform(), Transform())
    return UsdJoint("", f"world_to_{body.label}", kind, (WORLD, body.path), frames, False)


def satisfy_joints(bodies: Mapping[str, UsdBody], joints: Sequence[UsdJoint], tree: Tree, report: ImportReport) -> None:
    """Move bodies to poses that satisfy their joints. Report moved bodies and open loops."""
    moved = {}
    for path in tree.order:
        joint = tree.carrier.get(path)
        if joint is not None:
            pose = _constrained_body_pose(bodies, joint, path)
            step = bodies[path].pose.inverse() * pose
            bodies[path].pose = pose
            moved[path] = float(np.linalg.norm(step.position)), rotation_angle(step)
    stated = {path for path, joint in tree.carrier.items() if any(dof.state is not None for dof in joint.dofs)}
    deviations = {p: d for p, d in moved.items() if d[0] > POSITION_TOLERANCE or d[1] > ANGLE_TOLERANCE}
    if stated and deviations:
        report.add("info", "", "the file gives positions of joints", "the bodies start in them")
    elif deviations:
        path, (distance, angle) = max(deviations.items(), key=lambda item: item[1])
        what = f"does not fit its joint by {distance:.3g} m, {math.degrees(angle):.3g} degrees"
        more = f" (and {len(deviations) - 1} more bodies)" if len(deviations) > 1 else ""
        report.add("motion", bodies[path].element, what + more, "its joint determines its pose", "correct its pose")
    carriers = {id(joint) for joint in tree.carrier.values()}
    for joint in joints:
        if id(joint) not in carriers and joint.determines_pose:
            _check_loop(bodies, joint, report)


def _poses(bodies: Mapping[str, UsdBody], joint: UsdJoint) -> tuple[Transform, Transform]:
    first, second = (Transform() if path == WORLD else bodies[path].pose for path in joint.bodies)
    return first * joint.frames[0], second * joint.frames[1]


def _constrained_body_pose(bodies: Mapping[str, UsdBody], joint: UsdJoint, path: str) -> Transform:
    first, second = _poses(bodies, joint)
    relative = constrained_pose(joint, first.inverse() * second)
    if joint.bodies[1] == path:
        return first * relative * joint.frames[1].inverse()
    return second * relative.inverse() * joint.frames[0].inverse()


def _check_loop(bodies: Mapping[str, UsdBody], joint: UsdJoint, report: ImportReport) -> None:
    first, second = _poses(bodies, joint)
    relative = first.inverse() * second
    gap = constrained_pose(joint, relative).inverse() * relative
    distance, angle = float(np.linalg.norm(gap.position)), rotation_angle(gap)
    if distance > POSITION_TOLERANCE or angle > ANGLE_TOLERANCE:
        what = f"closes a loop that is open by {distance:.3g} m, {math.degrees(angle):.3g} degrees"
        report.add("motion", joint.element, what, "the solver pulls it together", "correct the poses in the file")


def carried_masses(bodies: Mapping[str, UsdBody], tree: Tree) -> dict[str, MassProperties]:
    """Return a dict: body path -> mass properties (world frame) of the body and all its descendants."""
    total = {path: bodies[path].mass.moved(homogeneous_matrix(bodies[path].pose)) for path in tree.order}
    for path in reversed(tree.order):
        joint = tree.carrier.get(path)
        if joint is not None:
            parent = joint.bodies[0] if joint.bodies[1] == path else joint.bodies[1]
            if parent in total:
                total[parent] = combine((total[parent], total[path]))
    return total


def load_of(bodies: Mapping[str, UsdBody], carried: Mapping[str, MassProperties], joint: UsdJoint, axis: int) -> float:
    """Return the inertia that a joint coordinate moves: kg m2 about a rotation axis, or kg for a translation."""
    child = joint.bodies[1] if joint.bodies[1] != WORLD else joint.bodies[0]
    load, dof = carried.get(child), joint.dofs[axis]
    if load is None:
        return 0.0
    if dof.linear:
        return load.mass
    frame = _poses(bodies, joint)[1]
    direction: Array = frame.rotate(dof.axis)
    inertia = load.inertia + load.mass * parallel_axis(load.com - frame.position)
    return float(direction @ inertia @ direction)


def set_rates(bodies: Mapping[str, UsdBody], tree: Tree) -> None:
    """Compute the velocities of child bodies from parent velocities and joint velocities."""
    if not any(dof.rate for joint in tree.carrier.values() for dof in joint.dofs):
        return
    for path in tree.order:
        joint = tree.carrier.get(path)
        if joint is None:
            continue
        parent = joint.bodies[0] if joint.bodies[1] == path else joint.bodies[1]
        sign = 1.0 if joint.bodies[1] == path else -1.0
        first, second = _poses(bodies, joint)
        angular, linear = np.zeros(3), np.zeros(3)
        if parent != WORLD:
            host = bodies[parent]
            arm = second.position - host.pose.apply(host.mass.com)
            angular, linear = host.angular, host.linear + np.cross(host.angular, arm)
        for dof in joint.dofs:
            rate = first.rotate(dof.axis) * (sign * dof.rate)
            angular, linear = (angular, linear + rate) if dof.linear else (angular + rate, linear)
        body = bodies[path]
        body.angular = angular
        body.linear = linear + np.cross(angular, body.pose.apply(body.mass.com) - second.position)
