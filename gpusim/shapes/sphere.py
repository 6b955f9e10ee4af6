"""Sphere."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Round, register
from gpusim.meshes.tessellation import arc, revolve
from gpusim.shapes.casting import Span
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array


@register
class Sphere(Round):
    """Ball centered at the shape frame's origin. The parameter is ``radius``."""

    name: ClassVar[str] = "sphere"
    number: ClassVar[int] = 1
    single: ClassVar[bool] = True
    size_names: ClassVar[tuple[str, ...]] = ("radius",)
    stretched_by: ClassVar[tuple[str, ...]] = ("radius",)
    ray_file: ClassVar[str] = "sphere.cuh"

    def volume(self, params: Params) -> float:
        """Return the volume 4/3 pi r^3."""
        return 4.0 / 3.0 * math.pi * float(params["radius"]) ** 3

    def inertia(self, params: Params) -> Array:
        """Return the inertia 2/5 V r^2 at density 1, with the volume V."""
        return 0.4 * self.volume(params) * float(params["radius"]) ** 2 * np.eye(3)

    def radius(self, params: Params) -> float:
        """Return the ball's radius."""
        return float(params["radius"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return a mesh of triangles between circles of latitude."""
        return revolve(*arc(params["radius"], -0.5 * math.pi, 0.5 * math.pi, segments // 2 + 1), segments)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the sphere."""
        span = Span(line.start.size)
        span.cut_ball(line, 0.0, float(params["radius"]))
        s, _ = span.first_end(line.start)
        return s, line.at(s)


@builder_method
def add_shape_sphere(
    self: ModelBuilder,
    body: int,
    radius: float,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a sphere centered at the shape frame's origin.

    Args:
        body: body index, -1 for the world.
        radius: radius of the sphere (m), above zero.
        xform, material, label, group, mask, density, color: see ``add_shape``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    params: dict[str, Any] = {"radius": validate.positive(shape_element(self, label), "radius", radius)}
    return self.add_shape("sphere", body, params, xform, material, label, group, mask, density, color)
