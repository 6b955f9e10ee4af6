"""Cone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Round, register
from gpusim.meshes.tessellation import revolve
from gpusim.shapes.casting import cylinder_span, first_hit, normals
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array


@dataclass(frozen=True)
class _Side:
    """Implicit function of the round surface: distance of a point from the axis minus the cone's radius."""

    radius: float
    half: float

    def value(self, points: Array) -> tuple[Array, Array]:
        """Return the function's values and gradients at points."""
        distance, taper = np.hypot(points[:, 0], points[:, 1]), 0.5 * self.radius / self.half
        radial = points[:, :2] / np.where(distance > 0.0, distance, 1.0)[:, None]
        return distance - taper * (self.half - points[:, 2]), np.column_stack([radial, np.full(distance.size, taper)])

    def flat(self, points: Array, face: Array) -> Array:
        """Return whether points lie on the base."""
        x, y = points[:, :2].T
        return np.asarray((face == 5) & (x * x + y * y <= self.radius**2))  # face 5: base, see cut_slab


@register
class Cone(Round):
    """Cone about z with its base of ``radius`` at -half_length and its apex at +half_length."""

    name: ClassVar[str] = "cone"
    number: ClassVar[int] = 5
    size_names: ClassVar[tuple[str, ...]] = ("radius", "half_length")
    stretched_by: ClassVar[tuple[str, ...]] = ("radius", "radius", "half_length")
    ray_file: ClassVar[str] = "cone.cuh"

    def volume(self, params: Params) -> float:
        """Return the volume: base area times a third of the height."""
        return 2.0 / 3.0 * math.pi * float(params["radius"]) ** 2 * float(params["half_length"])

    def center(self, params: Params) -> Array:
        """Return the center of mass, at a quarter of the height above the base."""
        return np.array([0.0, 0.0, -0.5 * float(params["half_length"])])

    def inertia(self, params: Params) -> Array:
        """Return the inertia for the volume V: 3/10 V r^2 about z, and 3/80 V (4 r^2 + height^2) about x and y."""
        square, height = float(params["radius"]) ** 2, 2.0 * float(params["half_length"])
        transverse = 3.0 / 80.0 * (4.0 * square + height * height)
        moments: Array = self.volume(params) * np.diag([transverse, transverse, 0.3 * square])
        return moments

    def radius(self, params: Params) -> float:
        """Return the distance from the origin to the rim of the base."""
        return math.hypot(params["radius"], params["half_length"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of a pyramid with ``segments`` sides, which approximates the cone."""
        r, half = params["radius"], params["half_length"]
        return revolve(np.array([r, 0.0]), np.array([-half, half]), segments)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the cone."""
        side = _Side(float(params["radius"]), float(params["half_length"]))
        s, face = first_hit(side, line, cylinder_span(line, side.radius, side.half))
        return s, normals(face, side.value(line.at(s))[1])


@builder_method
def add_shape_cone(
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
    """Add a cone: base at z = -half_length, apex at z = +half_length of the shape frame.

    Args:
        body: body index, -1 for the world.
        radius: radius of the base (m), above zero.
        half_length: half of the height (m), above zero.
        xform, material, label, group, mask, density, color: see ``add_shape``. To point the axis in another direction,
            rotate ``xform``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    params = validate.positives(shape_element(self, label), radius=radius, half_length=half_length)
    return self.add_shape("cone", body, params, xform, material, label, group, mask, density, color)
