"""Drawn objects: parts and spans.

A *part* is a mesh at a fixed pose in a body. A *span* is a mesh along the line between points of two bodies, or along a
section of this line. Springs, ropes, and the barrels and rods of cylinders are spans. Body -1 is the world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gpusim.description.joint_kinds import ANGLE, joint_type, triad
from gpusim.description.specs import WORLD, ActuatorSpec, JointSpec
from gpusim.errors import unknown_name
from gpusim.model.model import Model
from gpusim.stage.materials import Finish
from gpusim.stage.meshes import BOX, CYLINDER, MeshSource
from gpusim.stage.poses import Poses
from gpusim.transform import Transform
from gpusim.typing import Array

_Drawer = TypeVar("_Drawer")
ARC_PIECES = 16
"""Number of straight segments that approximate the arc of a wrapped rope."""


@dataclass(frozen=True)
class Part:
    """Mesh fixed to a body.

    Attributes:
        mesh: the mesh.
        body: index of the body, -1 for the world.
        linear: (3, 3) matrix from mesh coordinates to body axes, including the scale.
        offset: (3,) position of the mesh's origin relative to the body's center of mass, in body axes (m).
        finish: color and surface finish.
        shape: index of the shape that the part shows, -1 for none.
    """

    mesh: MeshSource
    body: int
    linear: Array
    offset: Array
    finish: Finish
    shape: int = -1


@dataclass(frozen=True)
class Span:
    """Mesh of length 1 along z that is stretched along the line from point a to point b.

    The pairs ``start`` and ``end`` (length, fraction) define the ends of the mesh. The distance of an end from point a
    is length (m) + fraction * (line length). By default, the mesh covers the whole line. With ``start`` = (-0.3, 1),
    the mesh covers the last 0.3 m.

    Attributes:
        mesh: the mesh.
        body_a, body_b: indices of the bodies, -1 for the world.
        point_a, point_b: end points (3,) relative to the centers of mass, in body axes (m).
        radius: scale factor for the mesh's x and y coordinates (m).
        finish: color and surface finish.
        owner: index of the body that the span belongs to in segmentation images.
        path: index of the wrapped path that contains the span, or -1 without a path.
        piece: index of the point of the wrapped path at which the line starts.
    """

    mesh: MeshSource
    body_a: int
    body_b: int
    point_a: Array
    point_b: Array
    radius: float
    finish: Finish
    owner: int
    start: tuple[float, float] = (0.0, 0.0)
    end: tuple[float, float] = (0.0, 1.0)
    path: int = -1
    piece: int = 0


def com_of(model: Model, body: int) -> Array:
    """Return a body's center of mass (3,) in the body frame, m (zero for the world)."""
    return np.zeros(3) if body == WORLD else np.asarray(model.bodies[body].com, dtype=float)


def world_position(model: Model, body: int, point: Array) -> Array:
    """Return initial world positions (m). ``point``, (3,) or (n, 3), is relative to the body's center of mass."""
    return point if body == WORLD else model.bodies[body].xform.apply(point + com_of(model, body))


def frame_in_world(model: Model, poses: Poses, body: int, xform: Transform, world: int) -> tuple[Array, Array]:
    """Return the position (m) and the axes (columns) of a body-fixed frame in the world frame."""
    rotation = poses.rotation[world, body]
    position: Array = poses.position[world, body] + rotation @ (xform.position - com_of(model, body))
    return position, rotation @ xform.matrix()


def up_of(model: Model) -> Array:
    """Return the unit vector (3,) against gravity, or the z axis without gravity."""
    gravity = np.asarray(model.parameters["gravity"][0], dtype=float)
    length = float(np.linalg.norm(gravity))
    return -gravity / length if length > 0.0 else np.array([0.0, 0.0, 1.0])


def is_hinge(joint: JointSpec) -> bool:
    """Return whether a joint has exactly one rotation and no translation."""
    return joint_type(joint.kind).kinds(joint) == (ANGLE,)


def drawer_of(spec: ActuatorSpec | JointSpec, picture: str, drawers: Mapping[str, _Drawer]) -> _Drawer:
    """Return the drawing function for the name ``picture`` of a joint type or actuator type.

    Raises:
        UnknownNameError: ``picture`` is unknown.
    """
    if picture not in drawers:
        raise unknown_name(f"picture of {spec.element},", picture, drawers)
    return drawers[picture]


def cylinder_part(body: int, center: Array, axis: Array, radius: float, half: float, finish: Finish) -> Part:
    """Return a cylinder with the length 2 ``half`` along the unit vector ``axis`` (in body axes)."""
    return Part(CYLINDER, body, triad(axis) * [radius, radius, half], np.asarray(center, dtype=float), finish)


def box_part(body: int, center: Array, axes: Array, half: Array, finish: Finish) -> Part:
    """Return a box with half extents (3,) along the columns of ``axes`` (in body axes)."""
    return Part(BOX, body, axes * half, np.asarray(center, dtype=float), finish)
