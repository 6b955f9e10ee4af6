"""Tasks of inverse kinematics, each with weights and a priority."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import on_host
from gpusim.robotics.dynamics import Bodies
from gpusim.robotics.frames import Frame, quaternion_from_matrix
from gpusim.robotics.kinematics import Kinematics
from gpusim.robotics.tree import Tree
from gpusim.transform import Transform
from gpusim.typing import Array, Vector


@dataclass(frozen=True)
class Rows:
    """Error and Jacobian of a task in given postures.

    ``error`` (worlds, n) (m and rad) is the target minus the task's value. ``jacobian`` (worlds, n, freedoms) is the
    Jacobian of the value. Every three consecutive rows are one vector, such as a position error.
    """

    error: Array
    jacobian: Array


def _weights(element: str, value: Any, count: int) -> Array:
    weight = validate.per_axis(element, "weight", value, count)
    if (weight < 0.0).any() or not weight.any():
        raise validate.fail(element, f"weight = {value!r} is negative or all zero", "give weights > 0")
    return weight


class Task:
    """Base class of all tasks.

    ``name`` identifies the task in targets and reports. ``weight`` multiplies the squared errors. Priority 1 comes
    first.
    """

    name: str
    weight: Array
    priority: int
    numbers: int
    """Number of values in one world's target."""

    def bind(self, tree: Tree) -> None:
        """Check the task for a tree. Raise ModelError or UnknownNameError if the task does not fit the tree."""

    def target(self, value: Any, worlds: int) -> Array:
        """Convert a user's target to an array (worlds, numbers)."""
        if isinstance(value, Transform):
            value = np.concatenate([value.position, value.rotation])
        given = validate.array(f"target '{self.name}'", on_host(value))
        try:
            filled = np.array(np.broadcast_to(given, (worlds, self.numbers)))
        except ValueError:
            rule = f"has shape {given.shape}"
            hint = f"give ({self.numbers},) or ({worlds}, {self.numbers})"
            raise validate.fail(f"target '{self.name}'", rule, hint) from None
        if not np.isfinite(filled).all():
            raise validate.fail(f"target '{self.name}'", "is not finite", "give finite numbers")
        return filled


class FrameTask(Task, ABC):
    """Base class of all tasks except posture tasks. Subclasses compute an error and a Jacobian."""

    @abstractmethod
    def rows(self, k: Kinematics, bodies: Bodies, target: Array) -> Rows:
        """Return the errors and the Jacobian for a ``target`` (worlds, numbers)."""


class PoseTask(FrameTask):
    """Task that moves a frame to a pose.

    Args:
        frame: label of a body or a site.
        weight: weights of the six squared errors: position (x, y, z in the world frame, m) and rotation vector (rad).
            A single number applies to all six components.
        priority: 1 comes first. Tasks with later priorities use only motions that do not affect tasks with earlier
            priorities.
        name: name in targets and reports. Default: the frame's label.

    The target is a position and a quaternion (xyzw), (7,) or (worlds, 7), or a Transform.
    """

    numbers = 7

    def __init__(self, frame: str, weight: Vector | float = 1.0, priority: int = 1, name: str | None = None) -> None:
        self.frame, self.name = frame, name or frame
        self.weight = _weights(f"PoseTask '{self.name}'", weight, 6)
        self.priority = validate.count(f"PoseTask '{self.name}'", "priority", priority)

    def bind(self, tree: Tree) -> None:
        """Find the frame."""
        self.frame_at = tree.frame(self.frame)

    def target(self, value: Any, worlds: int) -> Array:
        """Convert the target to (worlds, 7), and normalize the quaternion."""
        found = super().target(value, worlds)
        if (rotations.norm(found[:, 3:]) < 1e-12).any():
            raise validate.fail(f"target '{self.name}'", "has the zero quaternion", "give a unit quaternion (xyzw)")
        found[:, 3:] = rotations.normalized(found[:, 3:])
        return found

    def rows(self, k: Kinematics, bodies: Bodies, target: Array) -> Rows:
        """Return the errors of position and rotation vector, and their Jacobian."""
        position = k.position_of(self.frame_at.node, self.frame_at.point)
        back = rotations.quaternion_conjugate(_quaternion(k, self.frame_at))
        rotation = rotations.quaternion_product(target[:, 3:], back)
        rotation_vector = rotations.rotation_vector_from_quaternion(rotation)
        error = np.concatenate([target[:, :3] - position, rotation_vector], axis=1)
        return Rows(error, k.jacobian(self.frame_at.node, position))


def _quaternion(k: Kinematics, frame: Frame) -> Array:
    in_body = frame.quaternion[None]
    if frame.node < 0:
        return np.broadcast_to(in_body, (k.posture.shape[0], 4))
    return rotations.quaternion_product(quaternion_from_matrix(k.rotation[:, frame.node]), in_body)


class PointTask(FrameTask):
    """Task that moves a point of a frame to a position.

    Args:
        frame: label of a body or a site.
        point: position in the frame, m.
        weight: weights of the squared errors (m) in x, y, z of the world frame. A single number applies to all three
            axes.
        priority, name: as in :class:`PoseTask`.

    The target is a position (3,) or (worlds, 3) in the world frame (m).
    """

    numbers = 3

    def __init__(
        self,
        frame: str,
        point: Vector = (0.0, 0.0, 0.0),
        weight: Vector | float = 1.0,
        priority: int = 1,
        name: str | None = None,
    ) -> None:
        self.frame, self.name = frame, name or frame
        element = f"PointTask '{self.name}'"
        self.point = validate.numbers(element, "point", point, 3)
        self.weight, self.priority = _weights(element, weight, 3), validate.count(element, "priority", priority)

    def bind(self, tree: Tree) -> None:
        """Find the frame."""
        frame = tree.frame(self.frame)
        self.node, self.local = frame.node, frame.point + frame.rotation @ self.point

    def rows(self, k: Kinematics, bodies: Bodies, target: Array) -> Rows:
        """Return the position error and its Jacobian."""
        position = k.position_of(self.node, self.local)
        return Rows(target - position, k.jacobian(self.node, position)[:, :3])


class ComTask(FrameTask):
    """Task that moves the center of mass to a position.

    Args:
        weight: weights of the squared errors (m) in x, y, z of the world frame. The weights (1, 1, 0) leave the height
            free.
        priority, name: as in :class:`PoseTask`. The default name is "com".

    The target is a position (3,) or (worlds, 3) in the world frame (m).
    """

    numbers = 3

    def __init__(self, weight: Vector | float = 1.0, priority: int = 1, name: str = "com") -> None:
        self.name = name
        self.weight, self.priority = _weights("ComTask", weight, 3), validate.count("ComTask", "priority", priority)

    def bind(self, tree: Tree) -> None:
        """Check that the tree has a mass."""
        if not tree.inertias.mass.any():
            raise validate.fail(
                "ComTask", "no body of the tree has a mass", "remove the task; kinematic bodies have no mass"
            )

    def rows(self, k: Kinematics, bodies: Bodies, target: Array) -> Rows:
        """Return the position error and its Jacobian."""
        return Rows(target - bodies.com, bodies.com_jacobian())


class PostureTask(Task):
    """Task that pulls the joints to a posture.

    By default, the task uses only motions that do not affect the other tasks.

    Args:
        posture: posture of the tree, (size,) or (worlds, size). Default: the tree's posture ``start``.
        weight: weights of the squared differences (:meth:`Tree.difference`), (freedoms,). A single number applies to
            all joint velocities, but not to the velocities of floating bodies.
        priority: as in :class:`PoseTask`. Default: after all other tasks.
        name: name in targets and reports. If ``solve`` gets a target for the task, the target replaces ``posture``.
    """

    def __init__(
        self, posture: Any = None, weight: Any = 0.01, priority: int | None = None, name: str = "posture"
    ) -> None:
        self.posture, self._given_weight, self.name = posture, weight, name
        self.priority = 0 if priority is None else validate.count("PostureTask", "priority", priority)

    def bind(self, tree: Tree) -> None:
        """Set the posture and the weight of each velocity."""
        self.tree, self.numbers = tree, tree.size
        if validate.array("PostureTask: weight", self._given_weight).ndim == 0:
            is_joint = [0.0 if tree.forest.nodes[i].joint < 0 else 1.0 for i in tree.masks.owner]
            self.weight = validate.not_negative("PostureTask", "weight", self._given_weight) * np.array(is_joint)
        else:
            self.weight = _weights("PostureTask", self._given_weight, tree.freedoms)
        if self.posture is None:
            self.posture = tree.start
