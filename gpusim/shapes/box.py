"""Box."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, ShapeType, register
from gpusim.shapes.casting import Span, face_normals
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

# Bits 0, 1, 2 of the corner index are the signs of x, y, z.
CORNERS = np.array([[1.0 if k >> axis & 1 else -1.0 for axis in range(3)] for k in range(8)])
SIDES = np.array([[1, 3, 7, 5], [0, 4, 6, 2], [2, 6, 7, 3], [0, 1, 5, 4], [4, 5, 7, 6], [0, 2, 3, 1]])
"""Corner indices of the faces +x, -x, +y, -y, +z, -z, counterclockwise seen from outside."""


@register
class Box(ShapeType):
    """Box centered at the shape frame's origin, with edges along its axes. The parameter is ``half_extents`` (3,)."""

    name: ClassVar[str] = "box"
    number: ClassVar[int] = 3
    size_names: ClassVar[tuple[str, ...]] = ("half_x", "half_y", "half_z")
    param_names: ClassVar[tuple[str, ...] | None] = ("half_extents",)
    picture: ClassVar[str] = "faceted"
    stretched_by: ClassVar[tuple[str, ...]] = ("half_extents",)
    ray_file: ClassVar[str] = "box.cuh"

    def size_values(self, params: Params) -> list[float]:
        """Return the half extents."""
        return [float(h) for h in params["half_extents"]]

    def tile(self, params: Params) -> float:
        """Return the minimum half extent."""
        return float(np.min(params["half_extents"]))

    def volume(self, params: Params) -> float:
        """Return the volume 8 hx hy hz for the half extents hx, hy and hz."""
        return 8.0 * float(np.prod(params["half_extents"]))

    def inertia(self, params: Params) -> Array:
        """Return the inertia at density 1. With the volume V, the moment about x is V (hy^2 + hz^2)/3."""
        squares = np.square(params["half_extents"])
        moments: Array = np.diag(self.volume(params) / 3.0 * (squares.sum() - squares))
        return moments

    def radius(self, params: Params) -> float:
        """Return the distance from the center to a corner."""
        return float(np.linalg.norm(params["half_extents"]))

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return a mesh with two triangles per side."""
        triangles = np.concatenate([SIDES[:, [0, 1, 2]], SIDES[:, [0, 2, 3]]])
        return CORNERS * params["half_extents"], triangles.astype(np.int32)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the box."""
        span = Span(line.start.size)
        for k, half in enumerate(self.size_values(params)):
            span.cut_slab(line, k, half)
        s, face = span.first_end(line.start)
        return s, face_normals(face)


@builder_method
def add_shape_box(
    self: ModelBuilder,
    body: int,
    half_extents: Vector,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a box centered at the shape frame's origin, with edges along the frame's axes.

    Args:
        body: body index, -1 for the world.
        half_extents: half of the edge lengths along x, y, z (m), above zero.
        xform, material, label, group, mask, density, color: see ``add_shape``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    element = shape_element(self, label)
    half = validate.numbers(element, "half_extents", half_extents, 3)
    for axis, value in zip("xyz", half, strict=True):
        validate.positive(element, f"half_extents along {axis}", value)
    params: dict[str, Any] = {"half_extents": half}
    return self.add_shape("box", body, params, xform, material, label, group, mask, density, color)
