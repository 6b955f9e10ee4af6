"""Barrel: solid between flat ends with a round profile, such as a roller of an omni or mecanum wheel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Round, register
from gpusim.meshes.tessellation import arc, revolve
from gpusim.shapes.casting import ROUND_SIDE, cylinder_span, first_hit, normals
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array

_MIN_END = 1e-6
"""Minimum radius of the flat ends, as a fraction of the radius in the middle."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def _opening(params: Params) -> float:
    """Return half of the arc's opening angle (rad)."""
    return math.asin(float(params["half_length"]) / float(params["arc_radius"]))


def _slices(params: Params) -> tuple[Array, Array, Array]:
    """Return radii, axial positions and thicknesses (m) of thin disks that approximate the barrel."""
    bow, half = float(params["arc_radius"]), _opening(params)
    angle = half * _NODES
    # middle radius minus the drop of the arc, which is accurate for nearly straight arcs
    radius = float(params["radius"]) - 2.0 * bow * np.sin(0.5 * angle) ** 2
    return radius, bow * np.sin(angle), half * bow * _WEIGHTS * np.cos(angle)


@dataclass(frozen=True)
class _Side:
    """Implicit function of the round surface: distance of a point from the axis minus the barrel's radius."""

    radius: float
    half: float
    bow: float

    def radius_at(self, height: Array | float) -> Array:
        """Return the barrel's radius at a height z."""
        square = np.square(height)
        return np.asarray(self.radius - square / (self.bow + np.sqrt(self.bow**2 - square)))

    def value(self, points: Array) -> tuple[Array, Array]:
        """Return the function's values and gradients at points."""
        distance, height = np.hypot(points[:, 0], points[:, 1]), np.clip(points[:, 2], -self.half, self.half)
        radial, slope = (
            points[:, :2] / np.where(distance > 0.0, distance, 1.0)[:, None],
            height / np.sqrt(self.bow**2 - height**2),
        )
        return distance - self.radius_at(height), np.column_stack([radial, slope])

    def flat(self, points: Array, face: Array) -> Array:
        """Return whether points lie on a flat end."""
        x, y = points[:, :2].T
        return np.asarray((face != ROUND_SIDE) & (x * x + y * y <= self.radius_at(self.half) ** 2))


@register
class Barrel(Round):
    """Solid of revolution with the radius sqrt(arc_radius^2 - z^2) - (arc_radius - radius) at the height z.

    The flat ends are at z = -/+ half_length.
    """

    name: ClassVar[str] = "barrel"
    number: ClassVar[int] = 11
    size_names: ClassVar[tuple[str, ...]] = ("radius", "half_length", "arc_radius")
    stretched_by: ClassVar[tuple[str, ...]] = ("radius",)
    ray_file: ClassVar[str] = "barrel.cuh"

    def volume(self, params: Params) -> float:
        """Return the volume, summed over thin disks."""
        radius, _, thickness = _slices(params)
        return math.pi * float(thickness @ radius**2)

    def inertia(self, params: Params) -> Array:
        """Return the inertia for density 1, summed over thin disks."""
        radius, z, thickness = _slices(params)
        mass = math.pi * thickness * radius**2
        transverse = float(mass @ (0.25 * radius**2 + z**2))
        moments: Array = np.diag([transverse, transverse, 0.5 * float(mass @ radius**2)])
        return moments

    def radius(self, params: Params) -> float:
        """Return the distance to the rim of a flat end, which is the farthest point from the origin."""
        return math.hypot(end_radius(params), params["half_length"])

    def curvature(self, params: Params) -> float:
        """Return 1/sqrt(radius * arc_radius), the geometric mean of the two surface curvatures at z = 0."""
        return 1.0 / math.sqrt(float(params["radius"]) * float(params["arc_radius"]))

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh: the arc revolved about z, closed by two flat ends."""
        bow, half = float(params["arc_radius"]), _opening(params)
        r, z = arc(bow, -half, half, max(4, segments // 4) + 1)
        return revolve(r - (bow - float(params["radius"])), z, segments)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the barrel."""
        side = _Side(*self.size_values(params))
        s, face = first_hit(side, line, cylinder_span(line, side.radius, side.half))
        return s, normals(face, side.value(line.at(s))[1])


def end_radius(params: Params) -> float:
    """Return the radius of the flat ends (m), or NaN if the arc is shorter than the barrel."""
    bow, half = float(params["arc_radius"]), float(params["half_length"])
    if half >= bow:
        return math.nan
    return float(params["radius"]) - half * half / (bow + math.sqrt(bow * bow - half * half))


@builder_method
def add_shape_barrel(
    self: ModelBuilder,
    body: int,
    radius: float,
    arc_radius: float,
    half_length: float,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a barrel with axis z, centered at the origin: a roller whose profile is an arc of ``arc_radius``.

    If ``arc_radius`` is the radius of an omni wheel, the rollers of the wheel form a circle.

    Args:
        body: body index, -1 for the world.
        radius: radius at the center (m), above zero.
        arc_radius: radius of the arc (m), at least ``radius``. If ``arc_radius`` equals ``radius``, the shape is a ball
            with flat ends.
        half_length: half of the length (m), above zero. The flat ends must have a positive radius.
        xform, material, label, group, mask, density, color: see ``add_shape``. To point the axis in another direction,
            rotate ``xform``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    element = shape_element(self, label)
    params = validate.positives(element, radius=radius, arc_radius=arc_radius, half_length=half_length)
    r, bow, half = params.values()
    if bow < r:
        rule = f"arc_radius = {bow:g} is below radius = {r:g}"
        raise validate.fail(element, rule, "give a larger arc_radius, or use a wheel with an edge_radius")
    if not end_radius(params) > _MIN_END * r:
        tip = math.sqrt(r * (2.0 * bow - r))
        rule = f"half_length = {half:g} leaves no flat end: the arc ends in a tip at {tip:g}"
        raise validate.fail(element, rule, "give a smaller half_length or a larger arc_radius")
    return self.add_shape("barrel", body, params, xform, material, label, group, mask, density, color)
