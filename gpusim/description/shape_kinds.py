"""Base class of shape kinds. A kind defines sizes for the narrow phase, mass properties, and a mesh for drawing.

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
"""Maximum number of contact manifolds for one pair of shapes. Each manifold has a separate normal."""
CREASE = 35.0
"""Angle (degrees) between two faces. Above this angle, the viewer draws a sharp edge between the faces."""
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
    """A set of n rays in a shape's frame. A ray contains the points ``origin + s direction`` with ``s >= start``.

    ``origin`` (n, 3) is the point (m) of the infinite line that is nearest to the shape's center. ``direction`` has
    length 1, (n, 3). ``start`` (n,) is the smallest s of each ray (m).
    """

    origin: Array
    direction: Array
    start: Array

    def at(self, s: Array) -> Array:
        """Return the point ``origin + s direction`` of each ray, (n, 3)."""
        return np.asarray(self.origin + s[:, None] * self.direction)

    def part(self, chosen: Array) -> Line:
        """Return the rays that the mask or indices ``chosen`` select."""
        return Line(self.origin[chosen], self.direction[chosen], self.start[chosen])


class ShapeType(ABC):
    """Base class of shape kinds. Each kind is registered under its ``name``. Kernels identify a kind by ``number``.

    The builder checks ``params`` before it calls the methods. Each kind's module in gpusim/shapes describes its
    parameters.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    size_names: ClassVar[tuple[str, ...]]
    """Names of the first values that ``sizes`` returns, in order. All further values of ``sizes`` are zero."""
    param_names: ClassVar[tuple[str, ...] | None] = None
    """Names of the parameters, or None if they are ``size_names``."""
    movable: ClassVar[bool] = True
    """False if dynamic bodies must not have the shape."""
    rolls: ClassVar[bool] = False
    """True for shapes that roll. Contact points on a rolling shape do not rotate with the body during a step."""
    single: ClassVar[bool] = False
    """True if the shape has only one contact point with a plane or a convex shape. With terrain and meshes, the shape
    can have several contact points."""
    level: ClassVar[int] = 1
    """Minimum level of a kernel build that supports the kind. Builds of a higher level support more kinds. A model uses
    the maximum ``level`` of all its shapes."""
    picture: ClassVar[str] = "round"
    """Drawing style: "round" (the mesh depends on ``segments``), "faceted", "terrain" or "ground" (an infinite
    plane)."""
    two_sided: ClassVar[bool] = False
    """True if the shape is an open surface. The viewer draws both sides of open surfaces."""
    ray_file: ClassVar[str] = ""
    """Source file in cuda_kernels/rays/ with the function ``ray_<name>``, which implements ``cast`` in kernels. The
    file name is empty if ray sensors cannot detect the shape."""
    stretched_by: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that scale the unit shape along x, y and z. A single length, such as one radius, also
    scales all other parameters."""

    def sizes(self, params: Params) -> Array:
        """Return the values that describe the shape in the narrow phase, (8,)."""
        values = np.zeros(NUM_SIZES)
        numbers = self.size_values(params)
        values[: len(numbers)] = numbers
        return values

    def size_values(self, params: Params) -> list[float]:
        """Return the values for ``size_names``. By default, each value is the parameter of the same name."""
        return [float(params[name]) for name in self.size_names]

    @abstractmethod
    def volume(self, params: Params) -> float:
        """Return the volume (m3), or 0 for a shape without volume."""

    def center(self, params: Params) -> Array:
        """Return the center of mass in the shape frame (m), (3,)."""
        return np.zeros(3)

    @abstractmethod
    def inertia(self, params: Params) -> Array:
        """Return the inertia tensor for a density of 1, in m5, (3, 3).

        The inertia is about the center of mass, in the axes of the shape frame.
        """

    @abstractmethod
    def radius(self, params: Params) -> float:
        """Return the radius (m) of a bounding sphere about the shape frame's origin, or inf for a plane."""

    @abstractmethod
    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return triangles for drawing the surface. A full circle has ``segments`` segments."""

    def corners(self, params: Params) -> Array:
        """Return points whose convex hull approximately contains the shape, in the shape frame (m), (n, 3)."""
        return np.asarray(self.mesh(params, 16)[0], np.float64)

    def curvature(self, params: Params) -> float:
        """Return the curvature 1/R (1/m) for Hertz contacts, or 0 for a shape that is not round."""
        return 0.0

    def tile(self, params: Params) -> float:
        """Return half of the minimum thickness (m) if the shape has flat faces, else 0."""
        return 0.0

    def manifolds(self, params: Params) -> int:
        """Return the maximum number of contact manifolds between this shape and a convex shape.

        Two convex shapes have one manifold.
        """
        return 1

    def unit(self, params: Params) -> tuple[Params, Array]:
        """Return the parameters of the unit shape, and its scale factors along x, y and z, (3,).

        Without ``stretched_by``, the unit shape has the parameters ``params``, and the factors are 1. In the viewer,
        all shapes with the same unit shape share one mesh.
        """
        if not self.stretched_by:
            return params, np.ones(3)
        stretch = np.concatenate([np.ravel(params[name]) for name in self.stretched_by])
        unit: Params = {name: np.ones_like(params[name]) for name in self.stretched_by}
        for name in [name for name in params if name not in unit]:
            unit[name] = float(f"{params[name] / stretch[0]:.12g}") if stretch.size == 1 else params[name]
        return unit, np.broadcast_to(stretch, 3)

    def surfaces(self, params: Params, segments: int = 32) -> list[tuple[Array, Array, float]]:
        """Return meshes to draw: (vertices, triangles, angle). Edges sharper than ``angle`` (degrees) look sharp."""
        return [(*self.mesh(params, segments), CREASE)]

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Return the first crossing of each ray with the surface, from outside or from inside (see shapes/casting.py).

        Returns:
            Two arrays. The first array (n,) contains s (m) of each ray's first crossing with ``s >= start``, or
            infinity without a crossing. The second array (n, 3) contains outward normals of any length at the
            crossings.

        Raises:
            ModelError: only kernels can cast rays against this kind of shape.
        """
        rule, hint = "has a ray_file but no method cast", "add the method, or remove ray_file"
        raise ModelError(f"shape kind '{self.name}': {rule}; {hint}")

    def points(self, params: Params) -> Array:
        """Return the vertices (n, 3) of a shape, or the heights (rows * columns,) of a height field.

        Other shapes return an empty array.
        """
        return np.zeros((0, 3))

    def faces(self, params: Params) -> Faces:
        """Return the faces of a hull or mesh, or no faces for other shapes.

        For a triangle mesh, return the integers of its triangle tree in the field ``vertex``.
        """
        return Faces()


class Round(ShapeType):
    """Base class of shapes that roll."""

    rolls: ClassVar[bool] = True

    def curvature(self, params: Params) -> float:
        """Return 1/radius (1/m)."""
        return 1.0 / float(params["radius"])


class Unmovable(ShapeType):
    """Base class of massless shapes, which only the world and kinematic bodies can have."""

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
    """Return kernel constants: the ``number`` of each kind, MANIFOLDS, and a bit mask of kinds with one contact."""
    kinds = shape_kinds()
    single = sum(1 << kind.number for kind in kinds if kind.single)
    numbers = {f"SHAPE_{kind.name.upper()}": kind.number for kind in kinds}
    return numbers | {"SINGLE_POINT_SHAPES": single, "MANIFOLDS": MANIFOLDS}
