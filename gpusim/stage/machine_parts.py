"""Drawn parts of joints and of bodies without shapes: solids, rods to attachment points, pins, balls, rails."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpusim.description.joint_kinds import joint_frames, joint_type, triad
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, JointSpec
from gpusim.description.wraps import CYLINDER as CYLINDER_SHAPE
from gpusim.description.wraps import WrappedPath
from gpusim.model.model import Model
from gpusim.stage.materials import CHROME, FIXTURE, PIN, ROPE, body_finish
from gpusim.stage.meshes import BALL, CYLINDER, ROD, coarse_points
from gpusim.stage.parts import (
    ARC_PIECES,
    Part,
    Span,
    box_part,
    com_of,
    cylinder_part,
    drawer_of,
    up_of,
    world_position,
)
from gpusim.stage.solids import Solid, Surroundings, attachments, solid_of, surroundings
from gpusim.typing import Array

_LINK = 0.04
"""Radius of a rod, as a fraction of its length."""
_THINNEST = 0.011
"""Minimum half extent of a visible solid, as a fraction of the machine's size."""
_LINK_MIN, _LINK_MAX = 0.008, 0.025


class MachineParts:
    """Drawn parts of a model's joints, and of its bodies without shapes and visuals.

    Args:
        model: the model.
        pictures: drawn parts of visuals. If a joint's child body has a visual, only ropes and rods are drawn for the
            joint.

    Attributes:
        pictured: indices of the bodies (except the world) that have visuals.
        solids: drawn solid of each body. None for a body with shapes or visuals.
        center: center (3,) of the machine in the initial poses, in the world frame (m).
        size: half diagonal of the machine's bounding box in the initial poses (m).
    """

    def __init__(self, model: Model, pictures: Sequence[Part] = ()) -> None:
        self._model = model
        self.pictured = frozenset(part.body for part in pictures) - {WORLD}
        self._around = surroundings(model)
        shaped = self.pictured | {shape.body for shape in model.shapes}
        self.solids: list[Solid | None] = [
            None if k in shaped else solid_of(model, k, self._around[k]) for k in range(len(model.bodies))
        ]
        self.center, self.size = machine_extent(model, self.solids, pictures)
        self.solids = [None if s is None else s.thickened(_THINNEST * self.size) for s in self.solids]
        self.parts: list[Part] = []
        self.spans: list[Span] = []
        for body, solid in enumerate(self.solids):
            if solid is not None:
                self._add_solid(body, solid, self._around[body])
        for joint in model.joints:
            self._add_joint(joint)

    def attachment_points(self, body: int) -> Array:
        """Return the attachment points of a body (n, 3), relative to the center of mass, in body axes (m)."""
        return self._around[body].points

    def link_radius(self, length: float) -> float:
        """Return the radius (m) of a rod with the length ``length`` (m)."""
        return min(max(_LINK * length, _LINK_MIN * self.size), _LINK_MAX * self.size)

    def thickness(self, body: int, point: Array, axis: Array) -> float:
        """Return half of a body's width (m) along ``axis`` at ``point``.

        ``axis`` and ``point`` (m, relative to the center of mass) are in body axes.
        """
        solid = None if body == WORLD else self.solids[body]
        min_thickness = _LINK_MIN * self.size
        if solid is None:
            return 0.0 if body == WORLD else 2.0 * min_thickness
        if solid.contains(point):
            return min(max(solid.half_extent(axis), min_thickness), 0.08 * self.size)
        return self.link_radius(float(np.linalg.norm(point)))

    def _add_solid(self, body: int, solid: Solid, around: Surroundings) -> None:
        finish = FIXTURE if self._model.bodies[body].kinematic else body_finish(body)
        center = np.zeros(3)
        if solid.mesh is BALL:
            self.parts.append(Part(BALL, body, np.diag(solid.half), center, finish))
        elif solid.mesh is CYLINDER:
            self.parts.append(cylinder_part(body, center, solid.axes[:, 2], solid.half[0], solid.half[2], finish))
            self._add_spoke(body, solid)
        else:
            self.parts.append(box_part(body, center, solid.axes, solid.half, finish))
        for point in _distinct(around.points):
            length = float(np.linalg.norm(point))
            if solid.contains(point) or length < 1e-9:
                continue
            radius = self.link_radius(length)
            linear = triad(point / length) * [radius, radius, length]
            self.parts.append(Part(ROD, body, linear, center, finish.darker(0.85)))
            self.parts.append(Part(BALL, body, np.eye(3) * radius, point, finish.darker(0.85)))

    def _add_spoke(self, body: int, solid: Solid) -> None:
        """Add a bar across a disk, so that its rotation is visible."""
        radius, _, half = solid.half
        bar = np.array([0.78 * radius, 0.09 * radius, half + 0.03 * radius])
        self.parts.append(box_part(body, np.zeros(3), solid.axes, bar, body_finish(body).darker(0.6)))

    def _add_joint(self, joint: JointSpec) -> None:
        picture = joint_type(joint.kind).picture
        if picture is None or (picture not in ("line", "wrap") and joint.child in self.pictured):
            return
        drawers = {
            "pin": self._add_hinge,
            "socket": self._add_ball,
            "cross": self._add_cross,
            "rail": self._add_guide,
            "line": self._add_rope,
            "wrap": self._add_wrapped_rope,
        }
        drawer_of(joint, picture, drawers)(joint)

    def pin_size(self, joint: JointSpec) -> tuple[float, float]:
        """Return the radius and the half length (m) of the drawn pin on a joint's axis."""
        frames = joint_frames(joint)
        widths = [
            self.thickness(body, point - com_of(self._model, body), axes[:, 2])
            for body, point, axes in (
                (joint.parent, frames.point_a, frames.axes_a),
                (joint.child, frames.point_b, frames.axes_b),
            )
        ]
        width = max(*widths, _LINK_MIN * self.size)
        return 0.6 * min(width, _LINK_MAX * self.size), 1.35 * width

    def _add_hinge(self, joint: JointSpec) -> None:
        frames = joint_frames(joint)
        radius, half = self.pin_size(joint)
        center, axis = frames.point_b - com_of(self._model, joint.child), frames.axes_b[:, 2]
        self.parts.append(cylinder_part(joint.child, center, axis, radius, half, PIN))
        if WORLD in (joint.parent, joint.child):
            self._add_bearing(frames.point_a, frames.axes_a, radius, half)

    def _add_bearing(self, point: Array, axes: Array, radius: float, half: float) -> None:
        """Add two bearing disks, fixed to the world, at the ends of a pin."""
        for side in (-1.0, 1.0):
            center = point + side * (half + 0.1 * radius) * axes[:, 2]
            self.parts.append(cylinder_part(WORLD, center, axes[:, 2], 2.2 * radius, 0.6 * radius, FIXTURE))

    def _add_ball(self, joint: JointSpec) -> None:
        frames = joint_frames(joint)
        _, half = self.pin_size(joint)
        center = frames.point_b - com_of(self._model, joint.child)
        self.parts.append(Part(BALL, joint.child, np.eye(3) * half, center, PIN))
        if joint.parent == WORLD:
            up = up_of(self._model)
            socket = frames.point_a - 0.8 * half * up
            self.parts.append(cylinder_part(WORLD, socket, up, 1.5 * half, 0.5 * half, FIXTURE))

    def _add_cross(self, joint: JointSpec) -> None:
        frames = joint_frames(joint)
        radius, half = self.pin_size(joint)
        ends = ((joint.parent, frames.point_a, frames.axes_a[:, 0]), (joint.child, frames.point_b, frames.axes_b[:, 1]))
        for body, point, axis in ends:
            self.parts.append(cylinder_part(body, point - com_of(self._model, body), axis, radius, half, PIN))

    def _add_guide(self, joint: JointSpec) -> None:
        """Add rails for a sliding joint.

        A joint to the world gets a rail on each side of the body. Other joints get one rail.
        """
        frames = joint_frames(joint)
        axis = frames.axes_a[:, 2]
        low, high = self._travel(joint)
        body, solid = joint.parent, None if joint.child == WORLD else self.solids[joint.child]
        radius = 1.2 * _LINK_MIN * self.size
        middle = frames.point_a - com_of(self._model, body) + 0.5 * (low + high) * axis
        half = 0.5 * (high - low)
        if body != WORLD:
            self.parts.append(cylinder_part(body, middle, axis, radius, half, CHROME))
            return
        lateral = frames.axes_a[:, 0]
        width = solid.half_extent(frames.axes_b[:, 0]) if solid is not None else 0.1 * self.size
        for side in (-1.0, 1.0):
            position = middle + side * (width + 1.1 * radius) * lateral
            self.parts.append(cylinder_part(WORLD, position, axis, radius, half, CHROME))
            for end in (-1.0, 1.0):
                foot = position + end * half * axis
                self.parts.append(cylinder_part(WORLD, foot, axis, 2.2 * radius, 1.2 * radius, FIXTURE))

    def _travel(self, joint: JointSpec) -> tuple[float, float]:
        """Return the joint coordinates (m) at the two ends of a rail, from the joint's limits or the machine's size."""
        solid = None if joint.child == WORLD else self.solids[joint.child]
        half_length = solid.half_extent(joint_frames(joint).axes_b[:, 2]) if solid is not None else 0.05 * self.size
        start = _coordinate(self._model, joint)
        low, high = (float(np.ravel(joint.params[f"limit_{name}"])[0]) for name in ("lower", "upper"))
        room = 0.45 * self.size
        if joint.child != WORLD:
            room = min(room, 0.5 * self._around[joint.child].nearest)
        low = low - half_length if math.isfinite(low) else start - room - half_length
        high = high + half_length if math.isfinite(high) else start + room + half_length
        return min(low, self._foot(joint)), high

    def _foot(self, joint: JointSpec) -> float:
        """Return the coordinate (m) of a vertical slider at the machine's lowest height, or inf for other sliders."""
        axis, up = joint_frames(joint).axes_a[:, 2], up_of(self._model)
        if joint.parent != WORLD or axis @ up < 0.9:
            return math.inf
        points = [point for a, point, _, _ in attachments(self._model) if a == WORLD]
        points += [self._model.bodies[k].xform.apply(self._model.bodies[k].com) for k in range(len(self._model.bodies))]
        return min(float(position @ up) for position in points) - float(joint_frames(joint).point_a @ up)

    def _add_rope(self, joint: JointSpec) -> None:
        frames = joint_frames(joint)
        rod = joint.params["rod"] is not None
        radius = (1.0 if rod else 0.5) * _LINK_MIN * self.size
        point_a = frames.point_a - com_of(self._model, joint.parent)
        point_b = frames.point_b - com_of(self._model, joint.child)
        finish = PIN if rod else ROPE
        self.spans.append(Span(ROD, joint.parent, joint.child, point_a, point_b, radius, finish, joint.child))

    def _add_wrapped_rope(self, joint: JointSpec) -> None:
        """Add the drawn parts of a wrapped rope. If no shape shows the wrapping cylinder, also draw a pulley."""
        path: WrappedPath = joint.params["path"]
        wrap, index = path.wrap, sum(span.path >= 0 for span in self.spans) // (ARC_PIECES + 2)
        bodies, radius = (path.body_a, path.body_b), 0.5 * _LINK_MIN * self.size
        a, b = (np.asarray(point) - com_of(self._model, body) for body, point in path.ends)
        for piece in range(ARC_PIECES + 2):
            self.spans.append(Span(ROD, *bodies, a, b, radius, ROPE, joint.child, path=index, piece=piece))
        if wrap.shape == CYLINDER_SHAPE and not wrap.inside and wrap.body not in self.pictured:
            center = wrap.xform.position - com_of(self._model, wrap.body)
            part = cylinder_part(wrap.body, center, wrap.xform.matrix()[:, 2], wrap.radius, 0.15 * wrap.radius, PIN)
            self.parts.append(part)


def machine_extent(model: Model, solids: list[Solid | None], pictures: Sequence[Part]) -> tuple[Array, float]:
    """Return the center (3,) and half diagonal (m) of the machine's bounding box in the initial poses."""
    corners = []
    for body, spec in enumerate(model.bodies):
        center, solid = spec.xform.apply(spec.com), solids[body]
        half = 0.0 if solid is None or spec.kinematic else float(solid.half.max())
        corners += [center - half, center + half]
    for shape in model.shapes:
        radius = shape_type(shape.kind).radius(shape.params)
        if shape.body != WORLD and math.isfinite(radius):
            center = model.bodies[shape.body].xform.apply(shape.xform.position)
            corners += [center - radius, center + radius]
    for part in pictures:
        if part.body != WORLD:
            radius = float(np.linalg.norm(coarse_points(part.mesh) @ part.linear.T, axis=1).max())
            center = world_position(model, part.body, part.offset)
            corners += [center - radius, center + radius]
    for body_a, point_a, body_b, point_b in attachments(model):
        corners += [world_position(model, body_a, point_a), world_position(model, body_b, point_b)]
    if not corners:
        return np.zeros(3), 1.0
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    return 0.5 * (low + high), max(0.5 * float(np.linalg.norm(high - low)), 1e-3)


def _distinct(points: Array) -> Array:
    """Return the points without duplicates, up to round-off."""
    if not len(points):
        return points
    _, first = np.unique(np.round(points, 6), axis=0, return_index=True)
    return points[np.sort(first)]


def _coordinate(model: Model, joint: JointSpec) -> float:
    """Return a slider's coordinate in the initial poses, m."""
    frames = joint_frames(joint)

    def to_world(body: int, point: Array) -> Array:
        return point if body == WORLD else model.bodies[body].xform.apply(point)

    axis = frames.axes_a[:, 2]
    axis = axis if joint.parent == WORLD else model.bodies[joint.parent].xform.rotate(axis)
    return float(axis @ (to_world(joint.child, frames.point_b) - to_world(joint.parent, frames.point_a)))
