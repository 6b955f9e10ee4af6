"""What a shape is made of: its numbers for the narrow phase, its mass properties, a mesh to draw it.

Every shape is one file of this package that registers a ``ShapeType`` and attaches ``add_shape_<name>`` to the builder.
Shape frames: round shapes have their axis along z; lengths in m.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gpusim.errors import ModelError
from gpusim.model.registry import Registry
from gpusim.typing import Array

NUM_SIZES = 8
MANIFOLDS = 4
"""Most manifolds of one pair of shapes, each with its own normal."""
CREASE = 35.0
"""Edges whose faces differ by more than this are drawn sharp, degrees."""
Params = dict[str, Any]
Mesh = tuple[Array, Array]
"""Vertices (n, 3), m, shape frame, and triangles (m, 3), counterclockwise seen from outside."""


@dataclass(frozen=True)
class Faces:
    """Planar faces of a polytope: the vertices of face f are ``vertex[first[f] : first[f + 1]]``.

    They run counterclockwise seen from outside; ``normal`` (faces, 3) are the outward unit normals, shape frame.
    """

    first: Array = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    vertex: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    normal: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.first) - 1

    def polygon(self, f: int) -> Array:
        """Indices of the vertices of face f."""
        return self.vertex[self.first[f] : self.first[f + 1]]

    def triangles(self) -> Array:
        """All faces as fans of triangles, (m, 3)."""
        fans = []
        for f in range(len(self)):
            polygon = self.polygon(f)
            fans += [(polygon[0], polygon[k], polygon[k + 1]) for k in range(1, len(polygon) - 1)]
        return np.array(fans, dtype=np.int32).reshape(-1, 3)


@dataclass(frozen=True)
class Line:
    """Rays in a shape's frame: points ``origin + s direction`` from ``s = start`` on.

    ``origin`` (n, 3) is the point of the line that is nearest to the shape's middle, m, so that nothing cancels for
    rays from far away; ``direction`` (n, 3) has length 1; ``start`` (n,), m.
    """

    origin: Array
    direction: Array
    start: Array

    def at(self, s: Array) -> Array:
        """Points, (n, 3)."""
        return np.asarray(self.origin + s[:, None] * self.direction)

    def part(self, chosen: Array) -> Line:
        """Some of the rays."""
        return Line(self.origin[chosen], self.direction[chosen], self.start[chosen])


class ShapeType(ABC):
    """Base of a shape kind; registered by its ``name``, known to the kernels by its ``number``.

    ``params`` are what the builder's method checked; see each file.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    size_names: ClassVar[tuple[str, ...]]
    """What ``sizes`` holds, in order; the rest is zero."""
    movable: ClassVar[bool] = True
    """False: only for the world and for bodies that no force moves."""
    rolls: ClassVar[bool] = False
    """Its surface goes on rolling under the contact: points do not turn with the body within a step."""
    single: ClassVar[bool] = False
    """It touches everything in one point."""
    rich: ClassVar[bool] = False
    """Its routines make the kernels longer, so that only models that have it are built with them."""
    picture: ClassVar[str] = "round"
    """How it is drawn: "round" (meshes depend on ``segments``), "faceted", "terrain" or "ground" (a whole plane)."""
    ray_file: ClassVar[str] = ""
    """Source in cuda_kernels/rays/ whose ``ray_<name>`` is ``cast`` for the kernels; empty: rays do not see it."""
    stretched_by: ClassVar[tuple[str, ...]] = ()
    """Parameters by which a unit shape is stretched along x, y and z; one length alone stretches all others too."""

    def sizes(self, params: Params) -> Array:
        """The numbers that the narrow phase reads, (8,)."""
        values = np.zeros(NUM_SIZES)
        numbers = self.size_values(params)
        values[: len(numbers)] = numbers
        return values

    def size_values(self, params: Params) -> list[float]:
        """Values of ``size_names``; the parameters of these names, unless a shape says otherwise."""
        return [float(params[name]) for name in self.size_names]

    @abstractmethod
    def volume(self, params: Params) -> float:
        """m3; 0 for a shape that encloses none."""

    def center(self, params: Params) -> Array:
        """Center of mass in the shape frame, m, (3,)."""
        return np.zeros(3)

    @abstractmethod
    def inertia(self, params: Params) -> Array:
        """Inertia for density 1 about the center of mass, axes of the shape frame, m5, (3, 3)."""

    @abstractmethod
    def radius(self, params: Params) -> float:
        """Radius of a sphere about the shape frame's origin that holds the shape, m; inf for a plane."""

    @abstractmethod
    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Triangles of the surface, for drawing; ``segments`` around a circle."""

    def curvature(self, params: Params) -> float:
        """1/R for Hertz, 1/m; 0 for a shape that is not round."""
        return 0.0

    def tile(self, params: Params) -> float:
        """Return half of the least thickness of a shape whose flat faces can continue a neighbor's, m; 0 for others."""
        return 0.0

    def manifolds(self, params: Params) -> int:
        """Return the most manifolds that a convex shape can have with this one; convex shapes have one."""
        return 1

    def unit(self, params: Params) -> tuple[Params, Array]:
        """Parameters of the unit shape, and its stretches along x, y and z, (3,); the shape itself and ones for others.

        Shapes of one form have equal unit shapes, so that they are drawn together.
        """
        if not self.stretched_by:
            return params, np.ones(3)
        stretch = np.concatenate([np.ravel(params[name]) for name in self.stretched_by])
        unit: Params = {name: np.ones_like(params[name]) for name in self.stretched_by}
        for name in [name for name in params if name not in unit]:
            unit[name] = float(f"{params[name] / stretch[0]:.12g}") if stretch.size == 1 else params[name]
        return unit, np.broadcast_to(stretch, 3)

    def surfaces(self, params: Params, segments: int = 32) -> list[tuple[Array, Array, float]]:
        """What is drawn: meshes, each with the angle above which its edges are sharp, degrees."""
        return [(*self.mesh(params, segments), CREASE)]

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Where rays first cross the surface, from outside or from within; see geometry/casting.py.

        Returns:
            The first s >= start of each ray, m, (n,), infinite where there is none; outward normals there, of any
            length, (n, 3).

        Raises:
            ModelError: of a kind that rays see by kernels alone; sensors refuse kinds without a ``ray_file``.
        """
        rule, mend = "has a ray_file and no cast", "give it one, in NumPy, or take the ray_file away"
        raise ModelError(f"shape kind '{self.name}': {rule}; {mend}")

    def points(self, params: Params) -> Array:
        """Vertices (n, 3) of a hull, heights (rows*columns,) of a height field, nothing for other shapes."""
        return np.zeros((0, 3))

    def faces(self, params: Params) -> Faces:
        """Faces of a hull, none for other shapes."""
        return Faces()


class Round(ShapeType):
    """A shape that rolls."""

    rolls: ClassVar[bool] = True

    def curvature(self, params: Params) -> float:
        """Of a ball, or of a tube's cross-section."""
        return 1.0 / float(params["radius"])


class Unmovable(ShapeType):
    """A shape for the world and for bodies that no force moves: it has no mass."""

    movable: ClassVar[bool] = False

    def volume(self, params: Params) -> float:
        """None that could weigh."""
        return 0.0

    def inertia(self, params: Params) -> Array:
        """None."""
        return np.zeros((3, 3))


_KINDS: Registry[ShapeType] = Registry("shape kind")
register = _KINDS.register


def shape_type(kind: str) -> ShapeType:
    """The registered shape kind.

    Raises:
        ModelError: unknown kind.
    """
    return _KINDS[kind]


def shape_kinds() -> list[ShapeType]:
    """All registered kinds by number."""
    return sorted(_KINDS.all(), key=lambda kind: kind.number)


def shape_codes() -> dict[str, int]:
    """Numbers of the kinds for the kernels, bits of those that touch in one point, most manifolds of a pair."""
    kinds = shape_kinds()
    single = sum(1 << kind.number for kind in kinds if kind.single)
    numbers = {f"SHAPE_{kind.name.upper()}": kind.number for kind in kinds}
    return numbers | {"SINGLE_POINT_SHAPES": single, "MANIFOLDS": MANIFOLDS}
