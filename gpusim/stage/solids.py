"""Drawn solids of bodies without shapes, estimated from mass and inertia."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpusim.description.joint_kinds import ANGLE, TRANSLATION, joint_type, triad
from gpusim.description.specs import WORLD
from gpusim.model.model import Model
from gpusim.stage.meshes import BALL, BOX, CYLINDER, MeshSource
from gpusim.stage.parts import com_of, is_hinge, world_position
from gpusim.typing import Array

EQUAL = 0.02
"""Maximum relative difference between moments of inertia that count as equal."""
THINNEST = 0.03
"""Minimum half extent of a solid, as a fraction of its maximum half extent."""
_IRON = 7800.0  # kg/m3
_THINNEST_DISK = 0.12
_ROOM = 0.33
"""Maximum half extent of a solid, as a fraction of the distance to the nearest neighbor."""


@dataclass(frozen=True)
class Solid:
    """Box, ball or cylinder about a body's center of mass.

    Attributes:
        mesh: BOX, BALL or CYLINDER.
        axes: (3, 3) axes of the solid as columns, in body axes. The last column is the axis of a cylinder.
        half: (3,) half extents along the axes (m).
    """

    mesh: MeshSource
    axes: Array
    half: Array

    def contains(self, point: Array, margin: float = 1.04) -> bool:
        """Return whether ``point`` is inside the solid, scaled by ``margin``.

        ``point`` is relative to the center of mass, in body axes.
        """
        local = np.abs(self.axes.T @ point) / (margin * self.half)
        if self.mesh is BOX:
            return bool(np.all(local <= 1.0))
        if self.mesh is BALL:
            return float(np.linalg.norm(local)) <= 1.0
        return bool(math.hypot(local[0], local[1]) <= 1.0 and local[2] <= 1.0)

    def thickened(self, min_half: float) -> Solid:
        """Return the solid with all half extents increased to at least ``min_half`` (m)."""
        return replace(self, half=np.maximum(self.half, min_half))

    def half_extent(self, direction: Array) -> float:
        """Return the half extent (m) of the solid's bounding box along a unit vector (in body axes)."""
        return float(np.abs(self.axes.T @ direction) @ self.half)


@dataclass(frozen=True)
class Surroundings:
    """Attachment points and free space of a body.

    Attributes:
        points: attachment points (n, 3), m, of joints, springs and cylinders, relative to the center of mass, in body
            axes.
        nearest: distance (m) from the center of mass to the nearest center of mass or attachment point of a neighbor,
            or inf without neighbors.
        hinge: axis (3,), in body axes, of a hinge through the center of mass, or None.
        slides: True if a sliding joint guides the body.
    """

    points: Array
    nearest: float
    hinge: Array | None
    slides: bool


def surroundings(model: Model) -> list[Surroundings]:
    """Return the surroundings of every body in the initial poses."""
    points: list[list[Array]] = [[] for _ in model.bodies]
    nearest = [math.inf] * len(model.bodies)
    for body_a, point_a, body_b, point_b in attachments(model):
        center_a, center_b = (None if k == WORLD else world_position(model, k, np.zeros(3)) for k in (body_a, body_b))
        for body, point, center, other_center, far_point in (
            (body_a, point_a, center_a, center_b, world_position(model, body_b, point_b)),
            (body_b, point_b, center_b, center_a, world_position(model, body_a, point_a)),
        ):
            if body == WORLD:
                continue
            points[body].append(point)
            for neighbor in (far_point, *(() if other_center is None else (other_center,))):
                distance = float(np.linalg.norm(neighbor - center))
                if distance > 1e-6:
                    nearest[body] = min(nearest[body], distance)
    hinges, sliders = _hinges(model), _sliders(model)
    return [
        Surroundings(np.array(points[k]).reshape(-1, 3), nearest[k], hinges.get(k), k in sliders)
        for k in range(len(model.bodies))
    ]


def attachments(model: Model) -> list[tuple[int, Array, int, Array]]:
    """Return the connections between bodies as tuples (body a, point a, body b, point b).

    The points are relative to the centers of mass, in body axes.
    """
    connections = []
    for joint in model.joints:
        if joint_type(joint.kind).holds:
            point_a = joint.parent_xform.position - com_of(model, joint.parent)
            point_b = joint.child_xform.position - com_of(model, joint.child)
            connections.append((joint.parent, point_a, joint.child, point_b))
        elif (path := joint.params.get("path")) is not None:
            center = path.wrap.body, path.wrap.xform.position - com_of(model, path.wrap.body)
            connections += [(body, np.asarray(point) - com_of(model, body), *center) for body, point in path.ends]
    for actuator in model.actuators:
        p = actuator.params
        if "point_b" in p:
            a, b = int(p["body_a"]), int(p["body_b"])
            connections.append((a, p["point_a"] - com_of(model, a), b, p["point_b"] - com_of(model, b)))
    return connections


def solid_of(model: Model, body: int, around: Surroundings) -> Solid:
    """Return the solid that viewers draw for a body without shapes."""
    spec = model.bodies[body]
    if spec.kinematic:
        return _plate(around)
    moments, axes = np.linalg.eigh(np.asarray(spec.inertia, dtype=float))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    low, middle, high = moments / spec.mass
    if high - low <= EQUAL * high:
        solid = _isotropic(high, around)
    elif middle - low <= EQUAL * high:
        solid = Solid(CYLINDER, axes, _cylinder(high, low))
    else:
        squares = 1.5 * np.array([middle + high - low, low + high - middle, low + middle - high])
        solid = Solid(BOX, axes, np.sqrt(np.maximum(squares, 0.0)))
        if _is_lopsided(solid, around):
            return _iron_ball(spec.mass, around)
    return _fitted(solid, around)


def _is_lopsided(solid: Solid, around: Surroundings) -> bool:
    """Return whether the solid is a bar that does not reach the farthest attachment."""
    if solid.half.max() < 4.0 * np.sort(solid.half)[1] or not len(around.points):
        return False
    farthest = float(np.linalg.norm(around.points, axis=1).max())
    return farthest > 1.2 * float(solid.half.max())


def _iron_ball(mass: float, around: Surroundings) -> Solid:
    """Return an iron ball. The radius is at most 0.3 times the distance to the farthest attachment."""
    radius = (0.75 * mass / math.pi / _IRON) ** (1.0 / 3.0)
    farthest = float(np.linalg.norm(around.points, axis=1).max())
    return Solid(BALL, np.eye(3), np.full(3, min(radius, 0.3 * farthest)))


def _isotropic(moment: float, around: Surroundings) -> Solid:
    """Return a solid for a body with equal moments of inertia: a block for sliders, a disk for hinges, else a ball."""
    if around.slides:
        return Solid(BOX, np.eye(3), np.full(3, math.sqrt(1.5 * moment)))
    if around.hinge is not None:
        radius = math.sqrt(2.0 * moment)
        return Solid(CYLINDER, triad(around.hinge), np.array([radius, radius, 0.22 * radius]))
    return Solid(BALL, np.eye(3), np.full(3, math.sqrt(2.5 * moment)))


def _cylinder(axial: float, transverse: float) -> Array:
    """Return the half extents of a cylinder. The arguments are moments of inertia per mass (m2)."""
    return np.array([math.sqrt(2.0 * axial)] * 2 + [math.sqrt(max(3.0 * (transverse - 0.5 * axial), 0.0))])


def _plate(around: Surroundings) -> Solid:
    """Return a plate for a kinematic body, such as a road."""
    size = around.nearest if math.isfinite(around.nearest) else 1.0
    return Solid(BOX, np.eye(3), size * np.array([0.9, 0.9, 0.06]))


def _fitted(solid: Solid, around: Surroundings) -> Solid:
    """Return the solid, reduced to fit between its neighbors. The solid keeps a minimum thickness."""
    extents = np.abs(around.points @ solid.axes).max(axis=0, initial=0.0)
    room = np.maximum(_ROOM * around.nearest, extents * 1.02)
    scale = min(1.0, float(np.min(room / np.maximum(solid.half, 1e-300))))
    half = solid.half * scale
    thinnest = _THINNEST_DISK if solid.mesh is CYLINDER else THINNEST
    return replace(solid, half=np.maximum(half, thinnest * half.max()))


def _hinges(model: Model) -> dict[int, Array]:
    """Return a dict from bodies to hinge axes (in body axes), for hinges through the body's center of mass."""
    axes: dict[int, Array] = {}
    for joint in model.joints:
        for body, xform in ((joint.parent, joint.parent_xform), (joint.child, joint.child_xform)):
            if is_hinge(joint) and body != WORLD:
                arm = xform.position - com_of(model, body)
                if np.linalg.norm(arm) < 1e-9:
                    axes.setdefault(body, (xform.matrix() @ joint.params["columns"])[:, 2])
    return axes


def _sliders(model: Model) -> set[int]:
    """Return the bodies of joints with more translations than rotations."""
    joints = [(joint, joint_type(joint.kind).kinds(joint)) for joint in model.joints]
    sliding = [joint for joint, motions in joints if motions.count(TRANSLATION) > motions.count(ANGLE)]
    return {body for joint in sliding for body in (joint.parent, joint.child)}
