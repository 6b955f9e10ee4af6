"""Cylinder."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Round, register
from gpusim.meshes.tessellation import revolve
from gpusim.shapes.casting import cylinder_span, normals
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array


@register
class Cylinder(Round):
    """Cylinder about z with ends at -half_length and +half_length."""

    name: ClassVar[str] = "cylinder"
    number: ClassVar[int] = 4
    size_names: ClassVar[tuple[str, ...]] = ("radius", "half_length")
    stretched_by: ClassVar[tuple[str, ...]] = ("radius", "radius", "half_length")
    ray_file: ClassVar[str] = "cylinder.cuh"

    def volume(self, params: Params) -> float:
        """Return the volume 2 pi r^2 half_length."""
        return 2.0 * math.pi * float(params["radius"]) ** 2 * float(params["half_length"])

    def inertia(self, params: Params) -> Array:
        """Return the inertia for the volume V: V r^2/2 about z, and V (r^2/4 + half_length^2/3) about x and y."""
        square, half = float(params["radius"]) ** 2, float(params["half_length"])
        transverse = square / 4.0 + half * half / 3.0
        moments: Array = self.volume(params) * np.diag([transverse, transverse, square / 2.0])
        return moments

    def radius(self, params: Params) -> float:
        """Return the distance from the center to the rim."""
        return math.hypot(params["radius"], params["half_length"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of a prism with ``segments`` sides, which approximates the cylinder."""
        r, half = params["radius"], params["half_length"]
        return revolve(np.array([r, r]), np.array([-half, half]), segments)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the cylinder."""
        span = cylinder_span(line, float(params["radius"]), float(params["half_length"]))
        s, face = span.first_end(line.start)
        return s, normals(face, line.at(s) * (1.0, 1.0, 0.0))


@builder_method
def add_shape_cylinder(
    self: ModelBuilder,
    body: int,
    radius: float,
    half_length: float,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a cylinder with axis z, centered at the shape frame's origin.

    Args:
        body: body index, -1 for the world.
        radius: radius of the cylinder (m), above zero.
        half_length: half of the length (m), above zero.
        xform, material, label, group, mask, density, color: see ``add_shape``. To point the axis in another direction,
            rotate ``xform``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    params = validate.positives(shape_element(self, label), radius=radius, half_length=half_length)
    return self.add_shape("cylinder", body, params, xform, material, label, group, mask, density, color)
