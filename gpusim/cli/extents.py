"""Vertices and lowest point of a builder's shapes, in the initial poses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD
from gpusim.transform import Transform

if TYPE_CHECKING:
    from gpusim.builder.builder import ModelBuilder
    from gpusim.description.specs import ShapeSpec
    from gpusim.typing import Array

_SEGMENTS = 64


def vertices(builder: ModelBuilder, shape: ShapeSpec) -> Array:
    """Return the mesh vertices of a shape in the world frame (m), (n, 3)."""
    body = Transform() if shape.body == WORLD else builder.bodies[shape.body].xform
    points, _ = shape_type(shape.kind).mesh(shape.params, _SEGMENTS)
    return np.asarray((body * shape.xform).apply(np.asarray(points, float)))


def lowest_point(builder: ModelBuilder) -> float:
    """Return the height (m) of the lowest point of all shapes. Without shapes on bodies, use the lowest body origin."""
    heights = []
    for shape in builder.shapes:
        if shape.body != WORLD:
            kind = shape_type(shape.kind)
            # The vertices form a polygon inside the true circle. ``inside`` is the maximum gap between polygon and
            # circle.
            radius = kind.radius(shape.params) if kind.picture == "round" else 0.0
            inside = radius * (1.0 - math.cos(math.pi / _SEGMENTS))
            heights.append(float(vertices(builder, shape)[:, 2].min()) - inside)
    if not heights:
        heights = [float(body.xform.position[2]) for body in builder.bodies]
    return min(heights, default=0.0)
