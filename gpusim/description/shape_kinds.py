"""Base class of shape kinds: sizes for the narrow phase, mass properties, and a mesh for drawing.

Each file in gpusim/shapes registers a ``ShapeType`` and adds the method ``add_shape_<name>`` to the builder. In shape
frames, round shapes have their axis along z. Lengths are in m.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gpusim.description.registry import Registry
from gpusim.errors import ModelError
from gpusim.typing import Array

NUM_SIZES = 8
MANIFOLDS = 4
"""Maximum number of manifolds of one pair of shapes. Each manifold has its own normal."""
CREASE = 35.0
"""Angle between faces above which the viewer draws a sharp edge (degrees)."""
Params = dict[str, Any]
Mesh = tuple[Array, Array]
"""Vertices in the shape frame (m), (n, 3), and vertex indices of triangles, (m, 3), counterclockwise seen from
outside."""


def box_corners(lower: Any, upper: Any) -> Array:
    """Return the corners of a box with edges along the axes, (8, 3)."""
    return np.stack(np.meshgrid(*zip(lower, upper, strict=True)), axis=-1).reshape(-1, 3)


@dataclass(frozen=True)
class Faces:
    """Planar faces of a polytope. The vertices of face f are ``vertex[first[f] : first[f + 1]]``.

    The vertices of a face run counterclockwise seen from outside. ``normal`` (faces, 3) contains the outward unit
    normals in the shape frame.
    """

    first: Array = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    vertex: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    normal: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.first) - 1

    def polygon(self, f: int) -> Array:
        """Return the vertex indices of face f."""
        return self.vertex[self.first[f] : self.first[f + 1]]

    def triangles(self) -> Array:
        """Return all faces split into fans of triangles, (m, 3)."""
        fans = []
        for f in range(len(self)):
            polygon = self.polygon(f)
            fans += [(polygon[0], polygon[k], polygon[k + 1]) for k in range(1, len(polygon) - 1)]
        return np.array(fans, dtype=np.int32).reshape(-1, 3)


@dataclass(frozen=True)
class Line:
    """Rays in a shape's frame. A ray contains the points ``origin + s direction`` with ``s >= start``.

    ``origin`` is the point of the line that is nearest to the shape's center (m), (n, 3). The choice of ``origin``
    avoids cancellation for distant rays. ``direction`` has length 1, (n, 3). ``start`` is the first valid s of each ray
    (m), (n,).
    """

    origin: Array
    direction: Array
    start: Array

    def at(self, s: Array) -> Array:
        """Return the points of the rays at ``s``, (n, 3)."""
        return np.asarray(self.origin + s[:, None] * self.direction)

    def part(self, chosen: Array) -> Line:
        """Return only the chosen rays."""
        return Line(self.origin[chosen], self.direction[chosen], self.start[chosen])


class ShapeType(ABC):
    """Base class of a kind of shape, registered by ``name``. Kernels identify the kind by ``number``.

    The builder checks ``params`` before it calls the methods. The file of each kind describes its parameters.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    size_names: ClassVar[tuple[str, ...]]
    """Names of the values in ``sizes``, in order. The remaining values in ``sizes`` are zero."""
    movable: ClassVar[bool] = True
    """False if only the world and kinematic bodies may have the shape."""
    rolls: ClassVar[bool] = False
    """True if contact points do not rotate with the body within a step, because the shape rolls."""
    single: ClassVar[bool] = False
    """True if the shape has only one contact point with a plane or a convex shape. With terrain and meshes, the shape
    can have several contact points."""
    level: ClassVar[int] = 1
    """Level of the kernel build that contains the kind. A model uses a build with the highest level of its shape kinds,
    at least 1."""
    picture: ClassVar[str] = "round"
    """Drawing style: "round" (meshes depend on ``segments``), "faceted", "terrain" or "ground" (a whole plane)."""
    two_sided: ClassVar[bool] = False
    """True if the shape is a surface. The viewer then draws both sides of the triangles."""
    ray_file: ClassVar[str] = ""
    """Source file in cuda_kernels/rays/ with the function ``ray_<name>``, the kernel version of ``cast``. Empty if ray
    sensors cannot see the shape."""
    stretched_by: ClassVar[tuple[str, ...]] = ()
    """Parameters that stretch a unit shape along x, y and z. A single length also scales all other parameters."""

    def sizes(self, params: Params) -> Array:
        """Return the numbers that the narrow phase reads, (8,)."""
        values = np.zeros(NUM_SIZES)
        numbers = self.size_values(params)
        values[: len(numbers)] = numbers
        return values

    def size_values(self, params: Params) -> list[float]:
        """Return the number for each of ``size_names``, by default the parameter of the same name."""
        return [float(params[name]) for name in self.size_names]

    @abstractmethod
    def volume(self, params: Params) -> float:
        """Return the volume (m3), or 0 for a shape without volume."""

    def center(self, params: Params) -> Array:
        """Return the center of mass in the shape frame (m), (3,)."""
        return np.zeros(3)

    @abstractmethod
    def inertia(self, params: Params) -> Array:
        """Return the inertia for density 1 (m5), (3, 3).

        The inertia is about the center of mass, in the axes of the shape frame.
        """

    @abstractmethod
    def radius(self, params: Params) -> float:
        """Return the radius (m) of a bounding sphere about the shape frame's origin, or inf for a plane."""

    @abstractmethod
    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return triangles of the surface for drawing, with ``segments`` around a circle."""

    def corners(self, params: Params) -> Array:
        """Return points whose convex hull approximately contains the shape, in the shape frame (m), (n, 3)."""
        return np.asarray(self.mesh(params, 16)[0], np.float64)

    def curvature(self, params: Params) -> float:
        """Return the curvature 1/R (1/m) for Hertz contacts, or 0 for a shape that is not round."""
        return 0.0

    def tile(self, params: Params) -> float:
        """Return half the minimum thickness (m) of a shape with flat faces, or 0 for other shapes."""
        return 0.0

    def manifolds(self, params: Params) -> int:
        """Return the maximum number of manifolds of this shape with a convex shape.

        Two convex shapes have one manifold.
        """
        return 1

    def unit(self, params: Params) -> tuple[Params, Array]:
        """Return the parameters of the unit shape, and the stretch factors along x, y and z, (3,).

        By default, the function returns ``params`` and ones.

        The viewer draws all shapes with the same unit shape together.
        """
        if not self.stretched_by:
            return params, np.ones(3)
        stretch = np.concatenate([np.ravel(params[name]) for name in self.stretched_by])
        unit: Params = {name: np.ones_like(params[name]) for name in self.stretched_by}
        for name in [name for name in params if name not in unit]:
            unit[name] = float(f"{params[name] / stretch[0]:.12g}") if stretch.size == 1 else params[name]
        return unit, np.broadcast_to(stretch, 3)

    def surfaces(self, params: Params, segments: int = 32) -> list[tuple[Array, Array, float]]:
        """Return the meshes to draw, each with the angle (degrees) above which the viewer draws a sharp edge."""
        return [(*self.mesh(params, segments), CREASE)]

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays first cross the surface, from outside or from inside (see shapes/casting.py).

        Returns:
            Two arrays: the first crossing ``s >= start`` of each ray (m), (n,), infinite without a hit, and the outward
            normals at the crossings, (n, 3), of any length.

        Raises:
            ModelError: only kernels can cast rays against this kind of shape.
        """
        rule, hint = "has a ray_file but no method cast", "add the method, or remove ray_file"
        raise ModelError(f"shape kind '{self.name}': {rule}; {hint}")

    def points(self, params: Params) -> Array:
        """Return vertices (n, 3), or the heights (rows*columns,) of a height field.

        Other shapes return an empty array.
        """
        return np.zeros((0, 3))

    def faces(self, params: Params) -> Faces:
        """Return the faces of a hull.

        A triangle mesh returns integer tables in ``vertex``. Other shapes return no faces.
        """
        return Faces()


class Round(ShapeType):
    """Base class of shapes that roll."""

    rolls: ClassVar[bool] = True

    def curvature(self, params: Params) -> float:
        """Return 1/radius (1/m)."""
        return 1.0 / float(params["radius"])


class Unmovable(ShapeType):
    """Base class of shapes without mass that only the world and kinematic bodies may have."""

    movable: ClassVar[bool] = False

    def volume(self, params: Params) -> float:
        """Return 0: the shape has no mass."""
        return 0.0

    def inertia(self, params: Params) -> Array:
        """Return zeros: the shape has no mass."""
        return np.zeros((3, 3))


_KINDS: Registry[ShapeType] = Registry("shape kind")
register = _KINDS.register


def shape_type(kind: str) -> ShapeType:
    """Return a registered kind of shape.

    Raises:
        ModelError: unknown kind.
    """
    return _KINDS[kind]


def shape_kinds() -> list[ShapeType]:
    """Return all registered kinds of shape, sorted by number."""
    return sorted(_KINDS.all(), key=lambda kind: kind.number)


def shape_codes() -> dict[str, int]:
    """Return kernel constants: the number of each shape kind, a bit mask of the single-point kinds, and MANIFOLDS."""
    kinds = shape_kinds()
    single = sum(1 << kind.number for kind in kinds if kind.single)
    numbers = {f"SHAPE_{kind.name.upper()}": kind.number for kind in kinds}
    return numbers | {"SINGLE_POINT_SHAPES": single, "MANIFOLDS": MANIFOLDS}
