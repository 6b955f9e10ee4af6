"""Kinematics of a tree in given postures: body poses and Jacobian columns, batched over worlds.

Every generalized velocity of the tree has a *column*. The column is the spatial velocity, in world axes, of the bodies
that move if this generalized velocity is 1. A spatial velocity consists of the velocity at the reference point and the
angular velocity. The reference point is fixed in space, at the origin of the first node. The Jacobian of a point on a
body contains the columns of all velocities that move the body, converted to this point. See Featherstone, Rigid Body
Dynamics Algorithms (2008), chapters 2 and 4.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gpusim import rotations
from gpusim.robotics.spanning import BALL, PRISMATIC, Forest, Node
from gpusim.typing import Array


def cross(a: Array, b: Array) -> Array:
    """Return cross products over the last axis."""
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def axis_rotation(axis: Array, angle: Array) -> Array:
    """Return rotation matrices (worlds, 3, 3) about a unit axis (3,) by angles (worlds,) (rad), after Rodrigues."""
    sine, cosine = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    outer, skewed = np.outer(axis, axis), rotations.skew(axis)
    return np.asarray(outer + cosine * (np.eye(3) - outer) + sine * skewed)


class Masks:
    """Constant 0/1 matrices that describe which velocities move which nodes.

    Attributes:
        path: matrix (nodes, freedoms). An entry is 1 if the velocity moves the node.
        owner: index of the node whose joint has the velocity, (freedoms,).
        carrier: matrix (freedoms, freedoms). ``carrier[i, j]`` is 1 if velocity j moves the axis of velocity i.
        is_rotation: whether each velocity is a rotation, (freedoms,).
        subtree: matrix (nodes, nodes). ``subtree[i, j]`` is 1 if node j is node i or a descendant of node i.
    """

    def __init__(self, forest: Forest) -> None:
        nodes, freedoms = len(forest.nodes), forest.freedoms
        self.path = np.zeros((nodes, freedoms))
        self.owner = np.zeros(freedoms, np.int64)
        self.carrier = np.zeros((freedoms, freedoms))
        self.is_rotation = np.zeros(freedoms, bool)
        self.subtree = np.eye(nodes)
        for i in reversed(range(nodes)):
            if forest.nodes[i].parent >= 0:
                self.subtree[forest.nodes[i].parent] += self.subtree[i]
        for i, node in enumerate(forest.nodes):
            parent_path = self.path[node.parent] if node.parent >= 0 else np.zeros(freedoms)
            self.path[i] = parent_path
            for m in node.motions:
                rows = slice(m.rate, m.rate + m.freedoms)
                self.path[i, rows] = 1.0
                self.owner[rows] = i
                self.is_rotation[rows] = m.kind != PRISMATIC
            for index, m in enumerate(node.motions):
                rows = slice(m.rate, m.rate + m.freedoms)
                self.carrier[rows] = parent_path
                # Earlier motions move the axis. In a reversed joint, the motion itself and later motions move the axis.
                for mover in node.motions[index:] if node.reverse else node.motions[:index]:
                    self.carrier[rows, mover.rate : mover.rate + mover.freedoms] = 1.0


class Kinematics:
    """Poses of all nodes, and Jacobian columns of all velocities, in postures (worlds, size).

    Attributes:
        rotation: rotation matrices (worlds, nodes, 3, 3) from body to world.
        origin: origins (worlds, nodes, 3) (m) of the body frames, in the world frame.
        axis: axis of translation or rotation of each velocity, (worlds, freedoms, 3), in the world frame.
        point: a point (m) on the axis of each velocity, (worlds, freedoms, 3), in the world frame.
        reference: the reference point (worlds, 3) (m).
    """

    def __init__(self, forest: Forest, masks: Masks, posture: Array) -> None:
        worlds = posture.shape[0]
        self.forest, self.masks, self.posture = forest, masks, posture
        self.rotation = np.empty((worlds, len(forest.nodes), 3, 3))
        self.origin = np.empty((worlds, len(forest.nodes), 3))
        self.axis = np.empty((worlds, forest.freedoms, 3))
        self.point = np.empty((worlds, forest.freedoms, 3))
        for i, node in enumerate(forest.nodes):
            self._set_pose(i, node)
        self.reference: Array = self.origin[:, 0].copy()

    def _set_pose(self, i: int, node: Node) -> None:
        """Compute the pose of a node from the pose of its parent node and the motions of its joint."""
        worlds = self.posture.shape[0]
        frame, point = node.before[1], node.before[0]
        if node.parent >= 0:
            carrier = self.rotation[:, node.parent]
            point = self.origin[:, node.parent] + carrier @ point
            frame = carrier @ frame
        else:
            point, frame = np.broadcast_to(point, (worlds, 3)), np.broadcast_to(frame, (worlds, 3, 3))
        for m in reversed(node.motions) if node.reverse else node.motions:
            rows = slice(m.rate, m.rate + m.freedoms)
            sign = -1.0 if node.reverse else 1.0
            if m.kind == BALL:
                rotation = rotations.matrix_from_quaternion(rotations.normalized(self.posture[:, m.at : m.at + 4]))
                before, frame = frame, frame @ (rotation.swapaxes(-1, -2) if node.reverse else rotation)
                # The three axes are the axes of the joint frame on the parent of the joint.
                self.axis[:, rows] = sign * (frame if node.reverse else before).swapaxes(-1, -2)
                self.point[:, rows] = point[:, None]
                continue
            value, axis = sign * self.posture[:, m.at], frame @ m.axis
            self.axis[:, m.rate] = sign * axis
            if m.kind == PRISMATIC:
                point = point + value[:, None] * axis
            else:
                frame = frame @ axis_rotation(m.axis, value)
            self.point[:, m.rate] = point
        self.rotation[:, i] = frame @ node.after[1]
        self.origin[:, i] = point + frame @ node.after[0]

    @cached_property
    def columns(self) -> Array:
        """Return the columns (worlds, freedoms, 6): velocity at the reference point, angular velocity."""
        is_rotation = self.masks.is_rotation[None, :, None]
        along = np.where(is_rotation, cross(self.point - self.reference[:, None], self.axis), self.axis)
        return np.concatenate([along, np.where(is_rotation, self.axis, 0.0)], axis=-1)

    def position_of(self, node: int, point: Array) -> Array:
        """Return world positions (worlds, 3) of a point that is fixed in a node's body frame. Node -1 is the world."""
        if node < 0:
            return np.broadcast_to(point, (self.posture.shape[0], 3))
        return np.asarray(self.origin[:, node] + self.rotation[:, node] @ point)

    def jacobian(self, node: int, point: Array) -> Array:
        """Return the Jacobian (worlds, 6, freedoms) of a point on a node. ``point``: (worlds, 3), world frame."""
        path = self.masks.path[node] if node >= 0 else np.zeros(self.forest.freedoms)
        angular = self.columns[..., 3:] * path[:, None]
        linear = self.columns[..., :3] * path[:, None] + cross(angular, (point - self.reference)[:, None])
        return np.concatenate([linear, angular], axis=-1).swapaxes(-1, -2)


class Motion:
    """Velocities of all nodes, and accelerations for zero generalized acceleration.

    Attributes:
        twist: spatial velocities (worlds, nodes, 6) at the reference point.
        drift: rates of change of the columns, (worlds, freedoms, 6).
        bias: spatial accelerations (worlds, nodes, 6) at the reference point for zero generalized acceleration.
        velocity: velocities of the tree (worlds, freedoms).
    """

    def __init__(self, k: Kinematics, velocity: Array) -> None:
        self.velocity = velocity
        weighted = k.columns * velocity[..., None]
        self.twist: Array = np.matmul(k.masks.path, weighted)
        carrier = np.matmul(k.masks.carrier, weighted)
        self.drift = motion_cross(carrier, k.columns)
        self.bias: Array = np.matmul(k.masks.path, self.drift * velocity[..., None])


def motion_cross(twist: Array, column: Array) -> Array:
    """Return the time derivatives of spatial vectors ``column`` (..., 6).

    The vectors are fixed in bodies that have the velocity ``twist``.
    """
    w = twist[..., 3:]
    linear = cross(w, column[..., :3]) + cross(twist[..., :3], column[..., 3:])
    return np.concatenate([linear, cross(w, column[..., 3:])], axis=-1)
