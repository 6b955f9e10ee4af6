"""Superellipsoid: a shape between a box, an ellipsoid and an octahedron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusim import exact_math, validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Line, Mesh, Params, Round, register
from gpusim.meshes.tessellation import rings_mesh
from gpusim.shapes.casting import Span, first_hit
from gpusim.shapes.ellipsoid import check_semi_axes, mean_curvature
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

EXPONENT_MIN, EXPONENT_MAX = 0.1, 1.9


def _power_norm(a: Array, b: Array, p: float) -> tuple[Array, Array, Array]:
    """Return (a^p + b^p)^(1/p) for non-negative a and b, and the derivatives with respect to a and b."""
    maximum = np.maximum(a, b)
    is_nonzero = maximum > 0.0
    ratio = np.where(is_nonzero, np.minimum(a, b), 0.0) / np.where(is_nonzero, maximum, 1.0)
    power = exact_math.pow(ratio, p)
    total = 1.0 + power
    root = exact_math.pow(total, 1.0 / p)
    d_maximum = np.where(is_nonzero, root / total, 0.0)
    d_minimum = power / np.where(ratio > 0.0, ratio, 1.0) * d_maximum
    return maximum * root, np.where(a < b, d_minimum, d_maximum), np.where(a < b, d_maximum, d_minimum)


@dataclass(frozen=True)
class _Side:
    """Implicit function of the surface."""

    a: float
    b: float
    c: float
    e1: float
    e2: float

    def value(self, points: Array) -> tuple[Array, Array]:
        """Return the function's values and gradients at points."""
        axes = np.array([self.a, self.b, self.c])
        part = points / axes
        x, y, z = np.abs(part).T
        ring, ring_dx, ring_dy = _power_norm(x, y, 2.0 / self.e2)
        norm, norm_dring, norm_dz = _power_norm(ring, z, 2.0 / self.e1)
        gradient = np.column_stack([norm_dring * ring_dx, norm_dring * ring_dy, norm_dz])
        return norm - 1.0, np.where(part < 0.0, -gradient, gradient) / axes

    def flat(self, points: Array, face: Array) -> Array:
        """Return False, since the shape has no planar face."""
        return np.zeros(face.shape, bool)


@register
class Superellipsoid(Round):
    """Solid (|x/a|^(2/e2) + |y/b|^(2/e2))^(e2/e1) + |z/c|^(2/e1) <= 1.

    The parameters are ``semi_axes`` and ``exponents`` (e1, e2).

    Volume and moments follow Jaklic, Leonardis, Solina, Segmentation and Recovery of Superquadrics (2000), chapter 2.
    """

    name: ClassVar[str] = "superellipsoid"
    number: ClassVar[int] = 7
    single: ClassVar[bool] = True
    level: ClassVar[int] = 2
    size_names: ClassVar[tuple[str, ...]] = ("a", "b", "c", "e1", "e2")
    param_names: ClassVar[tuple[str, ...] | None] = ("semi_axes", "exponents")
    stretched_by: ClassVar[tuple[str, ...]] = ("semi_axes",)
    ray_file: ClassVar[str] = "superellipsoid.cuh"

    def size_values(self, params: Params) -> list[float]:
        """Return semi-axes and exponents."""
        return [float(v) for v in (*params["semi_axes"], *params["exponents"])]

    def volume(self, params: Params) -> float:
        """Return the volume 2 a b c e1 e2 B(e1/2 + 1, e1) B(e2/2, e2/2), with Euler's beta function B."""
        a, b, c, e1, e2 = self.size_values(params)
        return 2.0 * a * b * c * e1 * e2 * beta(0.5 * e1 + 1.0, e1) * beta(0.5 * e2, 0.5 * e2)

    def inertia(self, params: Params) -> Array:
        """Return the inertia at density 1."""
        a, b, c, e1, e2 = self.size_values(params)
        scale = 0.5 * a * b * c * e1 * e2
        level = scale * beta(1.5 * e2, 0.5 * e2) * beta(0.5 * e1, 2.0 * e1 + 1.0)
        height = 4.0 * scale * beta(0.5 * e2, 0.5 * e2 + 1.0) * beta(1.5 * e1, e1 + 1.0)
        x2, y2, z2 = a * a * level, b * b * level, c * c * height
        return np.diag([y2 + z2, x2 + z2, x2 + y2])

    def radius(self, params: Params) -> float:
        """Return the distance from the center to the farthest point of the surface."""
        a, b, c, e1, e2 = self.size_values(params)
        return _farthest(_farthest(a, b, e2), c, e1)

    def curvature(self, params: Params) -> float:
        """Return the curvature of an ellipsoid with the same semi-axes."""
        return mean_curvature(params["semi_axes"])

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return a mesh whose vertices lie on rings of constant height."""
        a, b, c, e1, e2 = self.size_values(params)
        up = np.linspace(-0.5 * math.pi, 0.5 * math.pi, segments // 2 + 1)
        around = 2.0 * math.pi * np.arange(segments) / segments
        level, height = _power(np.cos(up), e1), _power(np.sin(up), e1)
        x, y = a * _power(np.cos(around), e2), b * _power(np.sin(around), e2)
        rings = np.stack([np.outer(level, x), np.outer(level, y), np.outer(c * height, np.ones(segments))], axis=-1)
        return rings_mesh(rings)

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the superellipsoid."""
        side, span = _Side(*self.size_values(params)), Span(line.start.size)
        for k, half in enumerate((side.a, side.b, side.c)):
            span.cut_slab(line, k, half)
        s, _ = first_hit(side, line, span)
        normal = np.zeros_like(line.origin)
        hit = np.isfinite(s)
        normal[hit] = side.value(line.part(hit).at(s[hit]))[1]
        return s, normal


def beta(x: float, y: float) -> float:
    """Return Euler's beta function."""
    return math.gamma(x) * math.gamma(y) / math.gamma(x + y)


def _power(value: Array, exponent: float) -> Array:
    """Return |v|^e with the sign of v."""
    clean = np.where(np.abs(value) < 1e-12, 0.0, value)
    return np.asarray(np.sign(clean) * np.abs(clean) ** exponent)


def _farthest(p: float, q: float, exponent: float) -> float:
    """Return the maximum distance of the curve |x/p|^(2/e) + |y/q|^(2/e) = 1 from the origin (Hoelder's inequality)."""
    large, small = max(p, q), min(p, q)
    if exponent >= 1.0:
        return large
    power = 2.0 / (1.0 - exponent)
    return float(large * (1.0 + (small / large) ** power) ** (1.0 / power))


@builder_method
def add_shape_superellipsoid(
    self: ModelBuilder,
    body: int,
    semi_axes: Vector,
    exponents: Vector,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a superellipsoid centered at the shape frame's origin.

    Args:
        body: body index, -1 for the world.
        semi_axes: half of the extents (a, b, c) along x, y, z (m), above zero.
        exponents: exponents (e1, e2), 0.1 to 1.9. e1 determines the outline in the side view, e2 the outline in the
            view along z. An exponent near 0 gives a rectangle, an exponent of 1 an ellipse, and an exponent near 2 a
            rhombus.
        xform, material, label, group, mask, density, color: see ``add_shape``.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid.
    """
    element = shape_element(self, label)
    powers = validate.numbers(element, "exponents", exponents, 2)
    for name, value in zip(("e1", "e2"), powers, strict=True):
        if not EXPONENT_MIN <= value <= EXPONENT_MAX:
            raise validate.fail(
                element,
                f"exponent {name} = {value:g} is not within {EXPONENT_MIN:g} to {EXPONENT_MAX:g}",
                "give an exponent in this range, or use a box or a hull for sharp edges",
            )
    params: dict[str, Any] = {"semi_axes": check_semi_axes(element, semi_axes), "exponents": powers}
    return self.add_shape("superellipsoid", body, params, xform, material, label, group, mask, density, color)
