"""Joint coordinates from poses, and poses from joint coordinates; one joint, all worlds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.geometry import rotations
from gpusim.model.joint_kinds import ANGLE, DISTANCE, ROTATION, TOTAL_ROTATION, TRANSLATION, Coordinate
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


def relative_quaternion(model: Model, joint: int, orientation: Array) -> Array:
    """Child's joint frame in the parent's joint frame, (num_worlds, 4)."""
    spec = model.joints[joint]
    a = rotations.quaternion_product(orientation[:, spec.parent], spec.parent_xform.rotation[None])
    b = rotations.quaternion_product(orientation[:, spec.child], spec.child_xform.rotation[None])
    q = rotations.quaternion_product(rotations.quaternion_conjugate(a), b)
    return np.where(q[:, 3:] < 0.0, -q, q)


def coordinate_value(model: Model, joint: int, k: int, pose: JointPose, angle: Array, orientation: Array) -> Array:
    """Value of a joint coordinate, m or rad, (num_worlds,)."""
    c = model.coordinates[joint][k]
    if c.kind == ANGLE:
        return angle[:, model.angle_of[joint, k]]
    apart = pose.point_b - pose.point_a
    if c.kind == TRANSLATION:
        return dot(matvec(pose.rotation_a, _row(c.axis, apart)), apart)
    if c.kind == DISTANCE:
        return rotations.norm(apart)
    vector = rotations.rotation_vector_from_quaternion(relative_quaternion(model, joint, orientation))
    return rotations.norm(vector) if c.kind == TOTAL_ROTATION else vector[:, k]


def coordinate_rate(model: Model, joint: int, k: int, pose: JointPose, twist: Array) -> Array:
    """Rate of a joint coordinate, m/s or rad/s, (num_worlds,)."""
    spec, c = model.joints[joint], model.coordinates[joint][k]
    a, b = twist[:, spec.parent], twist[:, spec.child]
    turning = b[:, 3:] - a[:, 3:]
    if c.kind in (ANGLE, ROTATION, TOTAL_ROTATION):
        owner = pose.rotation_b if c.axis_on_child else pose.rotation_a
        return dot(matvec(owner, _row(c.axis, turning)), turning)
    apart = pose.point_b - pose.point_a
    # Seen from the parent, whose axes turn.
    slip = b[:, :3] + cross(b[:, 3:], pose.arm_b) - a[:, :3] - cross(a[:, 3:], pose.arm_a + apart)
    if c.kind == TRANSLATION:
        return dot(matvec(pose.rotation_a, _row(c.axis, apart)), slip)
    length = rotations.norm(apart)
    return dot(apart, slip) / np.where(length > 0.0, length, 1.0)


def _row(vector: Array, like: Array) -> Array:
    return np.broadcast_to(vector, like.shape).astype(like.dtype)


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
