"""Ellipsoid."""

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
from gpusim.typing import Array, Vector


def check_semi_axes(element: str, value: Any) -> Array:
    """Return the three semi-axes (m), or raise a ModelError if one is not positive."""
    axes = validate.numbers(element, "semi_axes", value, 3)
    for name, length in zip("xyz", axes, strict=True):
        validate.positive(element, f"semi_axes along {name}", length)
    return axes


def mean_curvature(semi_axes: Array) -> float:
    """Return the curvature 1/R (1/m) of the ball with the same volume as the ellipsoid."""
    return float(np.prod(semi_axes) ** (-1.0 / 3.0))


@register
class Ellipsoid(Round):
    """Solid (x/a)^2 + (y/b)^2 + (z/c)^2 <= 1. The parameter is ``semi_axes`` (3,)."""

    name: ClassVar[str] = "ellipsoid"
    number: ClassVar[int] = 6
    single: ClassVar[bool] = True
    level: ClassVar[int] = 2
    size_names: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    param_names: ClassVar[tuple[str, ...] | None] = ("semi_axes",)
    stretched_by: ClassVar[tuple[str, ...]] = ("semi_axes",)
    ray_file: ClassVar[str] = "ellipsoid.cuh"

    def size_values(self, params: Params) -> list[float]:
        """Return the semi-axes."""
        return [float(a) for a in params["semi_axes"]]

    def volume(self, params: Params) -> float:
        """Return the volume 4/3 pi a b c for the semi-axes a, b and c."""
        return 4.0 / 3.0 * math.pi * float(np.prod(params["semi_axes"]))

    def inertia(self, params: Params) -> Array:
        """Return the inertia at density 1. With the volume V, the moment about x is V (b^2 + c^2)/5."""
        squares = np.square(params["semi_axes"])
        moments: Array = np.diag(self.volume(params) / 5.0 * (squares.sum() - squares))
        return moments

    def radius(self, params: Params) -> float:
        """Return the maximum semi-axis."""
        return float(np.max(params["semi_axes"]))

    def curvature(self, params: Params) -> float:
        """Return the curvature of the ball with the same volume as the ellipsoid."""
        return mean_curvature(params["semi_axes"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of a stretched sphere."""
        vertices, triangles = revolve(*arc(1.0, -0.5 * math.pi, 0.5 * math.pi, segments // 2 + 1), segments)
        return vertices * params["semi_axes"], triangles

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the ellipsoid."""
        axes, span = np.asarray(params["semi_axes"]), Span(line.start.size)
        unit = Line(line.origin / axes, line.direction / axes, line.start)
        span.cut_ball(unit, 0.0, 1.0)
        s, _ = span.first_end(line.start)
        return s, unit.at(s) / axes


@builder_method
def add_shape_ellipsoid(
    self: ModelBuilder,
    body: int,
    semi_axes: Vector,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add an ellipsoid centered at the shape frame's origin.

    Args:
        body: body index, -1 for the world.
        semi_axes: half of the extents along x, y, z (m), above zero.
        xform, material, label, group, mask, density, color: see ``add_shape``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    params: dict[str, Any] = {"semi_axes": check_semi_axes(shape_element(self, label), semi_axes)}
    return self.add_shape("ellipsoid", body, params, xform, material, label, group, mask, density, color)
