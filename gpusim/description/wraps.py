"""Spheres and cylinders that ropes wrap around, and the paths of these ropes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from gpusim.description.specs import WORLD
from gpusim.transform import Transform

SPHERE = "sphere"
CYLINDER = "cylinder"
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Wrap:
    """A sphere or an infinite cylinder that a rope wraps around without friction. A wrap does not collide.

    The rope takes the shorter path around the surface, or a straight path if the surface does not block the rope. A
    side point works like a sidesite in MuJoCo. If the side point is outside of the surface, the rope passes on the side
    of this point. If the side point is inside the surface, the rope runs inside the surface, as through a ring. If an
    endpoint of the rope is inside the surface, the rope is straight.

    Attributes:
        body: index of the body with the surface, -1 for the world.
        radius: radius of the sphere or cylinder (m).
        xform: frame in the body frame. The axis of a cylinder is its z axis.
        shape: either "cylinder" or "sphere".
        side: side point in the frame of ``side_body`` (m), (3,), or None.
        side_body: index of the side point's body, or None for ``body``.
    """

    body: int
    radius: float
    xform: Transform = field(default_factory=Transform)
    shape: str = CYLINDER
    side: Point | None = None
    side_body: int | None = None

    @property
    def inside(self) -> bool:
        """Return whether the side point is inside the surface and fixed to the same body."""
        if self.side is None or self.side_body not in (None, self.body):
            return False
        return math.dist(self.side, self.xform.position) < self.radius


@dataclass(frozen=True)
class WrappedPath:
    """Path of a rope from ``point_a`` around a sphere or cylinder to ``point_b``.

    Each point is in its body's frame (m).
    """

    body_a: int
    point_a: Point
    body_b: int
    point_b: Point
    wrap: Wrap

    @property
    def bodies(self) -> tuple[int, int, int]:
        """Return the indices of three bodies: at the rope's first endpoint, at the wrap, and at the second endpoint."""
        return self.body_a, self.wrap.body, self.body_b

    @property
    def ends(self) -> tuple[tuple[int, Point], tuple[int, Point]]:
        """Return two pairs (body index, point in the body frame), one for each endpoint of the rope."""
        return (self.body_a, self.point_a), (self.body_b, self.point_b)

    def moved(self, first_body: int, parent: int, pose: Transform) -> WrappedPath:
        """Return a copy for another builder. ``pose`` is the pose of this builder's world in the ``parent`` frame."""

        def body(index: int) -> int:
            return parent if index == WORLD else index + first_body

        def point(index: int, position: Point) -> Point:
            x, y, z = pose.apply(position) if index == WORLD else position
            return float(x), float(y), float(z)

        wrap = self.wrap
        sided = wrap.body if wrap.side_body is None else wrap.side_body
        new = replace(
            wrap,
            body=body(wrap.body),
            xform=pose * wrap.xform if wrap.body == WORLD else wrap.xform,
            side=None if wrap.side is None else point(sided, wrap.side),
            side_body=None if wrap.side_body is None else body(sided),
        )
        ends = body(self.body_a), point(self.body_a, self.point_a), body(self.body_b), point(self.body_b, self.point_b)
        return WrappedPath(*ends, new)
