"""Grounds: the planes of a model, or a floor below everything where none is level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim.model.model import Model
from gpusim.model.shape_kinds import shape_type
from gpusim.model.specs import WORLD, ShapeSpec
from gpusim.typing import Array
from gpusim.viewer.scene.lowest_reach import height, lowest_reach_of
from gpusim.viewer.scene.machine_parts import MachineParts
from gpusim.viewer.scene.meshes import coarse_points
from gpusim.viewer.scene.parts import Part, com_of, world_place
from gpusim.viewer.scene.poses import Poses
from gpusim.viewer.scene.solids import attachments

_PATCH = 8.0
"""Half of the edge of a plane that leans, in radii of what is in the scene."""
_MARGIN = 0.02
"""How far a floor lies below everything, in sizes of the machine."""
_LEVEL = 1e-3
"""A plane that leans by less than this (sine) reaches the horizon; others are drawn as patches."""


@dataclass(frozen=True)
class Ground:
    """A plane that is drawn.

    Attributes:
        body: that carries it, -1 for the world.
        point: on the plane, from the body's center of mass, body axes, m.
        axes: (3, 3) columns x, y in the plane and its normal, body axes.
        level: it reaches the horizon.
        solid: a shape of the model; False for a floor that is there for the picture alone.
        half: half of the edge of what is drawn of a ground that does not reach the horizon, m.
    """

    body: int
    point: Array
    axes: Array
    level: bool
    solid: bool
    half: float = 0.0

    def seen_from(self, height: float) -> bool:
        """Whether it is drawn for an eye so far above it, m: from below, only what the bodies stand on hides them."""
        return height >= 0.0 or (self.solid and self.level)


def place_of(ground: Ground, poses: Poses, world: int) -> tuple[Array, Array]:
    """A point of a ground and its axes (columns) in one of the worlds, world frame, m."""
    rotation = poses.rotation[world, ground.body]
    return poses.position[world, ground.body] + rotation @ ground.point, rotation @ ground.axes


def find_grounds(model: Model, parts: list[Part], machine: MachineParts, up: Array) -> list[Ground]:
    """The planes of a model, and a floor where none of them is level.

    Args:
        parts: all that is drawn of it.
        machine: the pictures of bodies without shapes.
        up: against gravity.
    """
    planes = [shape for shape in model.shapes if shape_type(shape.kind).picture == "ground"]
    grounds = [_plane(model, shape, machine, up) for shape in planes]
    if any(ground.level for ground in grounds):
        return grounds
    edges = [_edge(ground, up) for ground in grounds]
    lowest = min(_lowest(model, parts, up), lowest_reach_of(model, machine, up), *edges)
    return [*grounds, Ground(WORLD, (lowest - _MARGIN * machine.size) * up, _axes_about(up), True, False)]


def _plane(model: Model, shape: ShapeSpec, machine: MachineParts, up: Array) -> Ground:
    """A plane; one that leans is drawn as a square around the foot of what is in the scene."""
    axes = _upright(shape.xform.matrix())
    point = shape.xform.position - com_of(model, shape.body)
    if shape.body == WORLD and float(np.linalg.norm(np.cross(axes[:, 2], up))) < _LEVEL:
        return Ground(shape.body, point, axes, True, True)
    if shape.body == WORLD:
        away = machine.center - point
        point = point + away - (axes[:, 2] @ away) * axes[:, 2]
    return Ground(shape.body, point, axes, False, True, _PATCH * machine.size)


def _edge(ground: Ground, up: Array) -> float:
    """Height of the lowest corner of a square, m."""
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
    """Height of the lowest point of everything in the builder's poses, m; 0 for nothing."""
    heights = [_part_height(model, part, up) for part in parts]
    for body_a, point_a, body_b, point_b in attachments(model):
        heights += [height(model, body_a, point_a, up), height(model, body_b, point_b, up)]
    return min(heights, default=0.0)


def _part_height(model: Model, part: Part, up: Array) -> float:
    points = world_place(model, part.body, coarse_points(part.mesh) @ part.linear.T + part.offset)
    return float((points @ up).min())
