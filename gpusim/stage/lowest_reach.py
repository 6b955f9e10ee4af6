"""Lower bound for the height of a swinging machine, to draw the floor below the machine."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.joint_kinds import DISTANCE, TRANSLATION, joint_frames, joint_type
from gpusim.description.specs import WORLD, JointSpec
from gpusim.model.model import Model
from gpusim.stage.machine_parts import MachineParts
from gpusim.stage.parts import com_of, is_hinge, world_position
from gpusim.typing import Array

_UPRIGHT = 0.95
_LOOP = 0.8
"""In a closed loop, a body drops below its parent by at most this fraction of the lever arm (joint to mass center)."""


@dataclass(frozen=True)
class _Branch:
    """Joint between ``body`` and the next body on the shortest chain of joints to the world."""

    joint: JointSpec
    parent: int
    body: int
    parent_point: Array
    body_point: Array


def lowest_reach_of(model: Model, machine: MachineParts, up: Array) -> float:
    """Return the minimum height along ``up`` (m) that swinging bodies can reach, or inf without swinging bodies.

    Bodies on a slider, on a vertical hinge or on an actuator with commands do not swing.
    """
    branches, loops = _tree(model)
    guided = _guided(model)
    fixed = {WORLD}
    lowest: dict[int, float] = {}
    for branch in branches:
        a, b = branch.parent, branch.body
        arm = float(np.linalg.norm(branch.body_point))
        if b in guided or (a in fixed and _has_vertical_axis(model, branch, up)):
            fixed.add(b)
        elif a in fixed:
            hinge = height(model, a, branch.parent_point, up) - _slack(branch.joint)
            lowest[b] = hinge - arm - _length_beyond(machine, b, branch.body_point)
        elif b in loops:
            lowest[b] = lowest[a] - _LOOP * arm
        else:
            lowest[b] = lowest[a] - _slack(branch.joint) - arm - _length_beyond(machine, b, branch.body_point)
    return min(lowest.values(), default=math.inf)


def height(model: Model, body: int, point: Array, up: Array) -> float:
    """Return the height (m) of a point along ``up`` in the initial poses.

    The point is relative to the center of mass, in body axes.
    """
    return float(world_position(model, body, point) @ up)


def _tree(model: Model) -> tuple[list[_Branch], set[int]]:
    """Return the branch of each body (nearest to the world first), and the set of bodies in closed loops."""
    joints_at: dict[int, list[JointSpec]] = {}
    for joint in model.joints:
        if joint_type(joint.kind).holds:
            joints_at.setdefault(joint.parent, []).append(joint)
            joints_at.setdefault(joint.child, []).append(joint)
    branches: list[_Branch] = []
    parents: dict[int, int] = {WORLD: WORLD}
    loops: set[int] = set()
    used: set[str] = set()
    queue = deque([WORLD])
    while queue:
        a = queue.popleft()
        for joint in joints_at.get(a, []):
            if joint.label in used:
                continue
            used.add(joint.label)
            b = joint.child if joint.parent == a else joint.parent
            if b in parents:
                loops |= _ancestors(a, parents) ^ _ancestors(b, parents)
                continue
            parents[b] = a
            xform_a, xform_b = joint.parent_xform, joint.child_xform
            if joint.parent != a:
                xform_a, xform_b = xform_b, xform_a
            point_a, point_b = xform_a.position - com_of(model, a), xform_b.position - com_of(model, b)
            branches.append(_Branch(joint, a, b, point_a, point_b))
            queue.append(b)
    return branches, loops


def _ancestors(body: int, parents: dict[int, int]) -> set[int]:
    bodies = set()
    while body != WORLD:
        bodies.add(body)
        body = parents[body]
    return bodies


def _length_beyond(machine: MachineParts, body: int, joint_point: Array) -> float:
    """Return the distance (m) from a body's center of mass to the body's end opposite to the joint."""
    solid = machine.solids[body]
    length = float(np.linalg.norm(joint_point))
    extent = (
        0.0 if solid is None else solid.half_extent(joint_point / length) if length > 0.0 else float(solid.half.max())
    )
    distances = np.linalg.norm(machine.attachment_points(body) - joint_point, axis=1).max(initial=0.0)
    return max(extent, float(distances) - length)


def _slack(joint: JointSpec) -> float:
    """Return the length (m) of a rod or rope joint, or 0 for other joints."""
    if DISTANCE not in joint_type(joint.kind).kinds(joint):
        return 0.0
    rod = joint.params["rod"]
    length = float(np.ravel(joint.params["limit_upper"])[0]) if rod is None else float(rod)
    return length if math.isfinite(length) else 0.0


def _has_vertical_axis(model: Model, branch: _Branch, up: Array) -> bool:
    if not is_hinge(branch.joint):
        return False
    frames = joint_frames(branch.joint)
    axis = frames.axes_a[:, 2]
    if branch.joint.parent != WORLD:
        axis = model.bodies[branch.joint.parent].xform.rotate(axis)
    return abs(float(axis @ up)) > _UPRIGHT


def _guided(model: Model) -> set[int]:
    """Return the bodies at sliding joints, and the bodies at actuators with commands."""
    guided: set[int] = set()
    for actuator in model.actuators:
        p = actuator.params
        if not actuator_type(actuator.kind).commands:
            continue
        if "body_b" in p:
            guided |= {int(p["body_a"]), int(p["body_b"])}
        elif "joint" in p:
            guided |= {model.joints[p["joint"]].parent, model.joints[p["joint"]].child}
    for joint in model.joints:
        if TRANSLATION in joint_type(joint.kind).kinds(joint):
            guided |= {joint.parent, joint.child}
    return guided - {WORLD}
