"""Plane: the infinite half space below z = 0 of the shape frame."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Unmovable, register
from gpusim.shapes.casting import Span
from gpusim.shapes.placing import ALL_GROUPS
from gpusim.transform import Transform
from gpusim.typing import Array

DRAWN = 100.0
"""Half of the edge length of the drawn square, m."""


@register
class Plane(Unmovable):
    """Half space z <= 0. A plane has no parameters."""

    name: ClassVar[str] = "plane"
    number: ClassVar[int] = 0
    size_names: ClassVar[tuple[str, ...]] = ()
    picture: ClassVar[str] = "ground"
    ray_file: ClassVar[str] = "plane.cuh"

    def radius(self, params: Params) -> float:
        """Return infinity: no sphere encloses a half space."""
        return math.inf

    def tile(self, params: Params) -> float:
        """Return infinity: a half space is infinitely thick."""
        return math.inf

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of a large square."""
        corners = DRAWN * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        return corners, np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays cross z = 0, from above or from below."""
        span = Span(line.start.size)
        span.cut_half(line.origin[:, 2], line.direction[:, 2], 0)
        return span.first_end(line.start)[0], np.broadcast_to((0.0, 0.0, 1.0), line.origin.shape)


@builder_method
def add_shape_plane(
    self: ModelBuilder,
    body: int = -1,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
) -> int:
    """Add a half space: everything below z = 0 of the shape frame is solid.

    Args:
        body: -1 for the world, or a kinematic body.
        xform, material, label, group, mask: see ``add_shape``.

    Returns:
        The shape's index.

    Raises:
        ModelError: the body is dynamic.
    """
    return self.add_shape("plane", body, {}, xform, material, label, group, mask)
