"""Wheel: a disk with a round edge. A wheel touches a convex shape at one contact point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusim import rotations, validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Round, register
from gpusim.meshes.tessellation import arc, revolve
from gpusim.shapes.casting import ROUND_SIDE, cylinder_span, first_hit, normals
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array


@dataclass(frozen=True)
class _Side:
    """Implicit function of the surface: distance of a point from the disk minus the radius of the edge."""

    disk: float
    edge: float

    def value(self, points: Array) -> tuple[Array, Array]:
        """Return the function's values and gradients at points."""
        distance = np.hypot(points[:, 0], points[:, 1])
        fraction = np.where(distance > self.disk, (distance - self.disk) / np.where(distance > 0.0, distance, 1.0), 0.0)
        offset = points * np.column_stack([fraction, fraction, np.ones(distance.size)])
        length = rotations.norm(offset)
        return length - self.edge, offset / np.where(length > 0.0, length, 1.0)[:, None]

    def flat(self, points: Array, face: Array) -> Array:
        """Return whether points lie on a flat side."""
        x, y = points[:, :2].T
        return np.asarray((face != ROUND_SIDE) & (x * x + y * y <= self.disk**2))


@register
class Wheel(Round):
    """Points within ``edge_radius`` of a disk of radius ``radius - edge_radius`` in the plane z = 0 (axle along z)."""

    name: ClassVar[str] = "wheel"
    number: ClassVar[int] = 10
    single: ClassVar[bool] = True
    size_names: ClassVar[tuple[str, ...]] = ("radius", "edge_radius")
    stretched_by: ClassVar[tuple[str, ...]] = ("radius",)
    ray_file: ClassVar[str] = "wheel.cuh"

    def volume(self, params: Params) -> float:
        """Return the volume: the integral of pi rho^2 over z, with rho = (disk radius) + sqrt(edge_radius^2 - z^2)."""
        e = float(params["edge_radius"])
        disk = float(params["radius"]) - e
        return 2.0 * math.pi * disk**2 * e + math.pi**2 * disk * e * e + 4.0 / 3.0 * math.pi * e**3

    def inertia(self, params: Params) -> Array:
        """Return the inertia: integrals over z of pi rho^4/2 (z axis) and pi rho^4/4 + pi rho^2 z^2 (x and y axes)."""
        e = float(params["edge_radius"])
        d = float(params["radius"]) - e
        # Integrals over z of rho^4 and rho^2 z^2, from integrals of powers of sqrt(e^2 - z^2).
        fourth = (
            2.0 * d**4 * e
            + 2.0 * math.pi * d**3 * e**2
            + 8.0 * d**2 * e**3
            + 1.5 * math.pi * d * e**4
            + 16.0 / 15.0 * e**5
        )
        second = 2.0 / 3.0 * d**2 * e**3 + 0.25 * math.pi * d * e**4 + 4.0 / 15.0 * e**5
        transverse = math.pi * (0.25 * fourth + second)
        return np.diag([transverse, transverse, 0.5 * math.pi * fourth])

    def radius(self, params: Params) -> float:
        """Return the outer radius."""
        return float(params["radius"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of the round edge and two flat sides, or a thin double cone for a sharp edge."""
        e = float(params["edge_radius"])
        disk = float(params["radius"]) - e
        if e == 0.0:
            thin = 1e-3 * disk
            return revolve(np.array([0.0, disk, 0.0]), np.array([-thin, 0.0, thin]), segments)
        r, z = arc(e, -0.5 * math.pi, 0.5 * math.pi, segments // 2 + 1)
        return revolve(r + disk, z, segments)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the wheel."""
        radius, edge = self.size_values(params)
        side = _Side(radius - edge, edge)
        s, face = first_hit(side, line, cylinder_span(line, radius, edge))
        return s, normals(face, side.value(line.at(s))[1])


@builder_method
def add_shape_wheel(
    self: ModelBuilder,
    body: int,
    radius: float,
    edge_radius: float = 0.0,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a wheel: a disk with a round edge and axle z. The wheel touches a convex shape at one contact point.

    Args:
        body: body index, -1 for the world.
        radius: outer radius (m), above zero.
        edge_radius: radius of the rounded edge (m), from 0 to below ``radius``. With 0 (a sharp edge), the wheel has no
            volume, and the body needs a mass.
        xform, material, label, group, mask, density, color: see ``add_shape``. To point the axle in another direction,
            rotate ``xform``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    element = shape_element(self, label)
    params: dict[str, Any] = {
        "radius": validate.positive(element, "radius", radius),
        "edge_radius": validate.not_negative(element, "edge_radius", edge_radius),
    }
    if params["edge_radius"] >= params["radius"]:
        raise validate.fail(
            element,
            f"edge_radius = {edge_radius:g} is not below radius = {radius:g}",
            "give a smaller edge_radius, or use a sphere",
        )
    return self.add_shape("wheel", body, params, xform, material, label, group, mask, density, color)
