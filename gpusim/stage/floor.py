"""Drawn ground planes: the planes of a model. A model without a horizontal plane gets a floor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpusim.description.looks import Texture
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ShapeSpec, VisualSpec
from gpusim.model.model import Model
from gpusim.stage.lowest_reach import height, lowest_reach_of
from gpusim.stage.machine_parts import MachineParts
from gpusim.stage.materials import Finish
from gpusim.stage.meshes import coarse_points
from gpusim.stage.parts import Part, com_of, world_position
from gpusim.stage.poses import Poses
from gpusim.stage.shape_parts import shape_picture, visual_finish
from gpusim.stage.solids import attachments
from gpusim.typing import Array

_PATCH = 8.0
"""Half edge length of the drawn square of a tilted plane, relative to the machine's size."""
_MARGIN = 0.02
"""Gap between the added floor and the lowest point, relative to the machine's size."""
_LEVEL = 1e-3
"""Maximum tilt (sine) of planes that the viewer draws up to the horizon. Steeper planes are drawn as squares."""
_SAME = 1e-6
"""Two planes coincide if their distance (m) and angle (sine) are at most this value."""


@dataclass(frozen=True)
class Ground:
    """Drawn plane.

    Attributes:
        body: index of the body that the plane is fixed to, -1 for the world.
        point: point on the plane, relative to the body's center of mass, in body axes (m).
        axes: two axes in the plane, and the plane's normal, as columns in body axes (3, 3).
        level: True for a horizontal plane. Horizontal planes extend to the horizon.
        solid: True for a shape or visual of the model, False for the floor that the viewer adds.
        half: half edge length (m) of the square that shows a tilted plane.
        finish: color and finish of a visual plane, or None for the viewer's ground with grid lines.
        texture: image on a visual plane, projected along the normal.
    """

    body: int
    point: Array
    axes: Array
    level: bool
    solid: bool
    half: float = 0.0
    finish: Finish | None = None
    texture: Texture | None = None

    def seen_from(self, height: float) -> bool:
        """Return whether the plane is drawn for a camera at ``height`` (m) above the plane.

        Below the plane, a camera sees only horizontal planes of the model. The added floor is invisible from below.
        """
        return height >= 0.0 or (self.solid and self.level)


def plane_pose(ground: Ground, poses: Poses, world: int) -> tuple[Array, Array]:
    """Return a point (m) on a drawn plane, and the plane's axes as columns, in the world frame of one world."""
    rotation = poses.rotation[world, ground.body]
    return poses.position[world, ground.body] + rotation @ ground.point, rotation @ ground.axes


def find_grounds(
    model: Model, parts: list[Part], machine: MachineParts, up: Array, visuals: bool = True
) -> list[Ground]:
    """Return the drawn planes of a model. If no plane is horizontal, add a floor.

    Args:
        parts: all drawn parts of the model.
        machine: drawn parts of joints and of bodies without shapes.
        up: unit vector against gravity.
        visuals: if True, a visual plane replaces a coincident collision plane.
    """
    planes = [shape for shape in model.shapes if shape_type(shape.kind).picture == "ground"]
    pictures = [visual for visual in model.visuals if visuals and shape_picture(visual) == "ground"]
    planes = [plane for plane in planes if not any(_coincide(plane, picture) for picture in pictures)]
    grounds = [_plane(model, plane, machine, up) for plane in planes]
    grounds += [_with_look(_plane(model, picture, machine, up), picture) for picture in pictures]
    grounds = [ground for ground in grounds if ground.finish is None or ground.finish.alpha > 0.0]
    if any(ground.level for ground in grounds):
        return grounds
    edges = [_edge(ground, up) for ground in grounds]
    lowest = min(_lowest(model, parts, up), lowest_reach_of(model, machine, up), *edges)
    return [*grounds, Ground(WORLD, (lowest - _MARGIN * machine.size) * up, _axes_about(up), True, False)]


def _coincide(shape: ShapeSpec, picture: VisualSpec) -> bool:
    """Return whether two planes of a body coincide."""
    normal = shape.xform.matrix()[:, 2]
    gap = float(normal @ (picture.xform.position - shape.xform.position))
    tilt = float(np.linalg.norm(np.cross(normal, picture.xform.matrix()[:, 2])))
    return shape.body == picture.body and abs(gap) < _SAME and tilt < _SAME


def _with_look(ground: Ground, picture: VisualSpec) -> Ground:
    """Return the :class:`Ground` with the color and texture of a visual plane."""
    finish, texture = visual_finish(picture), picture.look.texture
    if texture is not None and texture.is_cube:
        mixed = np.multiply(finish.color, texture.mean())
        finish, texture = replace(finish, color=tuple(mixed.tolist())), None
    if picture.color is None and texture is None and finish.alpha == 1.0:
        return ground
    return replace(ground, finish=finish, texture=texture)


def _plane(model: Model, shape: ShapeSpec | VisualSpec, machine: MachineParts, up: Array) -> Ground:
    """Return the :class:`Ground` of a plane shape."""
    axes = _upright(shape.xform.matrix())
    point = shape.xform.position - com_of(model, shape.body)
    if shape.body == WORLD and float(np.linalg.norm(np.cross(axes[:, 2], up))) < _LEVEL:
        return Ground(shape.body, point, axes, True, True)
    if shape.body == WORLD:
        offset = machine.center - point
        point = point + offset - (axes[:, 2] @ offset) * axes[:, 2]
    return Ground(shape.body, point, axes, False, True, _PATCH * machine.size)


def _edge(ground: Ground, up: Array) -> float:
    """Return the height (m) of the lowest corner of a tilted plane's square."""
    x, y, _ = np.abs(up @ ground.axes)
    return float(ground.point @ up - ground.half * (x + y)) if ground.body == WORLD else math.inf


def _upright(axes: Array) -> Array:
    return axes if np.linalg.det(axes) > 0.0 else axes[:, [1, 0, 2]]


def _axes_about(up: Array) -> Array:
    x = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = x - (x @ up) * up
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(up, x), up], axis=1)


def _lowest(model: Model, parts: list[Part], up: Array) -> float:
    """Return the height (m) of the model's lowest point in the initial poses."""
    heights = [_part_height(model, part, up) for part in parts]
    for body_a, point_a, body_b, point_b in attachments(model):
        heights += [height(model, body_a, point_a, up), height(model, body_b, point_b, up)]
    return min(heights, default=0.0)


def _part_height(model: Model, part: Part, up: Array) -> float:
    points = world_position(model, part.body, coarse_points(part.mesh) @ part.linear.T + part.offset)
    return float((points @ up).min())
