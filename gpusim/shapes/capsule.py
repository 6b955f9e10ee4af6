"""Capsule: all points within ``radius`` of a segment."""

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
class Capsule(Round):
    """Points within ``radius`` of the segment from -half_length to +half_length along z."""

    name: ClassVar[str] = "capsule"
    number: ClassVar[int] = 2
    size_names: ClassVar[tuple[str, ...]] = ("radius", "half_length")
    stretched_by: ClassVar[tuple[str, ...]] = ("radius",)
    ray_file: ClassVar[str] = "capsule.cuh"

    def volume(self, params: Params) -> float:
        """Return the sum of the volumes of the cylinder and two half balls."""
        return sum(self._volumes(params))

    def _volumes(self, params: Params) -> tuple[float, float]:
        r, half = float(params["radius"]), float(params["half_length"])
        return 2.0 * math.pi * r * r * half, 4.0 / 3.0 * math.pi * r**3

    def inertia(self, params: Params) -> Array:
        """Return the inertia at density 1, summed over the cylinder and the two half balls."""
        r, half = float(params["radius"]), float(params["half_length"])
        cylinder, ball = self._volumes(params)
        transverse = cylinder * (r * r / 4.0 + half * half / 3.0) + ball * (0.4 * r * r + half * half + 0.75 * half * r)
        axial = cylinder * r * r / 2.0 + 0.4 * ball * r * r
        return np.diag([transverse, transverse, axial])

    def radius(self, params: Params) -> float:
        """Return the distance from the center to an end of the capsule."""
        return float(params["radius"]) + float(params["half_length"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of two half balls and the cylinder between them."""
        r, half, rings = params["radius"], params["half_length"], segments // 4 + 1
        low, high = arc(r, -0.5 * math.pi, 0.0, rings), arc(r, 0.0, 0.5 * math.pi, rings)
        return revolve(np.concatenate([low[0], high[0]]), np.concatenate([low[1] - half, high[1] + half]), segments)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the capsule."""
        radius, half = float(params["radius"]), float(params["half_length"])
        tube, low, high, span = (Span(line.start.size) for _ in range(4))
        tube.cut_tube(line, radius)
        tube.cut_slab(line, 2, half)
        low.cut_ball(line, -half, radius)
        high.cut_ball(line, half, radius)
        parts = tube, low, high
        span.enter = np.min([np.where(part.empty, np.inf, part.enter) for part in parts], axis=0)
        span.leave = np.max([np.where(part.empty, -np.inf, part.leave) for part in parts], axis=0)
        s, _ = span.first_end(line.start)
        normal = line.at(s)
        normal[:, 2] -= np.clip(normal[:, 2], -half, half)
        return s, normal


@builder_method
def add_shape_capsule(
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
    """Add a capsule: the points within ``radius`` of a segment along z.

    Args:
        body: body index, -1 for the world.
        radius: radius of the tube and of both round ends (m), above zero.
        half_length: half of the segment's length (m), without the round ends, above zero.
        xform, material, label, group, mask, density, color: see ``add_shape``. To point the axis in another direction,
            rotate ``xform``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    params = validate.positives(shape_element(self, label), radius=radius, half_length=half_length)
    return self.add_shape("capsule", body, params, xform, material, label, group, mask, density, color)
