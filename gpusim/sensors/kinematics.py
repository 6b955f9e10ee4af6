"""Joint coordinates from poses, and poses from joint coordinates; one joint, all worlds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.geometry import rotations
from gpusim.joints.base import ANGLE, DISTANCE, ROTATION, TOTAL_ROTATION, TRANSLATION, Coordinate
from gpusim.model.model import Model
from gpusim.model.specs import WORLD
from gpusim.typing import Array

matvec, cross, dot = rotations.matvec, rotations.cross, rotations.dot


@dataclass
class JointPose:
    """Where a joint's points and frames are, world frame, (num_worlds, ...)."""

    rotation_a: Array
    rotation_b: Array
    arm_a: Array
    arm_b: Array
    point_a: Array
    point_b: Array


def joint_pose(model: Model, joint: int, position: Array, rotation: Array) -> JointPose:
    """Points of a joint from the centers of mass and rotation matrices of all bodies (the world last)."""
    spec = model.joints[joint]
    ends = []
    for body, frame in ((spec.parent, spec.parent_xform), (spec.child, spec.child_xform)):
        arm = frame.position if body == WORLD else frame.position - model.bodies[body].com
        turned = matvec(rotation[:, body], np.broadcast_to(arm, (rotation.shape[0], 3)))
        ends.append((rotation[:, body], turned, position[:, body] + turned))
    a, b = ends
    return JointPose(a[0], b[0], a[1], b[1], a[2], b[2])


def child_pose(model: Model, joint: int, pose: JointPose, values: Array) -> tuple[Array, Array]:
    """Rotation matrix and center of mass of the child for given coordinates (num_worlds, n); the parent stays.

    Coordinates about the parent's axes turn before the frames' zero offset, one about the child's axis after it.
    """
    spec = model.joints[joint]
    zero = spec.parent_xform.matrix() @ spec.child_xform.matrix().T
    before = np.broadcast_to(np.eye(3), (values.shape[0], 3, 3))
    after = before
    shift = np.zeros((values.shape[0], 3))
    for k, c in enumerate(model.coordinates[joint]):
        if c.kind == TRANSLATION:
            shift = shift + values[:, k, None] * c.axis
        elif c.kind == ANGLE and c.axis_on_child:
            after = np.matmul(after, _turn(c, values[:, k]))
        elif c.kind == ANGLE:
            before = np.matmul(before, _turn(c, values[:, k]))
    rotation = np.matmul(pose.rotation_a, np.matmul(np.matmul(before, zero), after))
    return rotation, _center(model, joint, pose, rotation, matvec(pose.rotation_a, shift))


def child_pose_from_frame(model: Model, joint: int, pose: JointPose, shift: Array, q: Array) -> tuple[Array, Array]:
    """As :func:`child_pose`, for a joint whose position is an orientation or a pose in the parent's frame."""
    spec = model.joints[joint]
    frame_a = np.matmul(pose.rotation_a, spec.parent_xform.matrix())
    rotation = np.matmul(np.matmul(frame_a, rotations.matrix_from_quaternion(q)), spec.child_xform.matrix().T)
    return rotation, _center(model, joint, pose, rotation, matvec(frame_a, shift))


def _center(model: Model, joint: int, pose: JointPose, rotation: Array, shift: Array) -> Array:
    spec = model.joints[joint]
    arm = spec.child_xform.position - (0.0 if spec.child == WORLD else model.bodies[spec.child].com)
    center: Array = pose.point_a + shift - matvec(rotation, np.broadcast_to(arm, shift.shape))
    return center


def _turn(c: Coordinate, angle: Array) -> Array:
    return rotations.matrix_from_quaternion(rotations.quaternion_from_rotation_vector(angle[:, None] * c.axis))


def subtree(model: Model, joint: int) -> list[int]:
    """The child and all bodies that hang on it, parent to child; without the joint's parent."""
    found = [model.joints[joint].child]
    for body in found:
        for other in model.joints:
            ends = other.child not in found and other.child not in (WORLD, model.joints[joint].parent)
            if other.parent == body and ends:
                found.append(other.child)
    return found
