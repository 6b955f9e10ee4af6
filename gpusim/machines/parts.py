"""Parts of suspensions. Points and directions are in the corner's frame: x forward, y outward, z up, m."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.actuators.strut import BumpStop
from gpusim.typing import Array, Vector


def two_points(element: str, name: str, a: tuple[str, Vector], b: tuple[str, Vector]) -> tuple[Array, Array]:
    """Return two points of a part after checking that they differ. ``a`` and ``b`` hold field names and points."""
    first, second = (f"{name}.{field}" if name else field for field, _ in (a, b))
    start, end = (validate.numbers(element, word, point, 3) for word, (_, point) in ((first, a), (second, b)))
    if np.linalg.norm(end - start) < 1e-6:
        raise validate.fail(element, f"{first} and {second} are one point", "place them apart")
    return start, end


@dataclass(frozen=True)
class Arm:
    """A straight link. Its inertia is that of a round bar.

    Attributes:
        inner: point on its hinge on the chassis.
        outer: joint on the hub's side.
        mass: kg.
        radius: of the bar, m.
    """

    inner: Vector
    outer: Vector
    mass: float = 3.0
    radius: float = 0.02

    def ends(self, element: str, name: str) -> tuple[Array, Array]:
        """Return the checked inner and outer point."""
        return two_points(element, name, ("inner", self.inner), ("outer", self.outer))

    def solid(self, element: str, name: str) -> Solid:
        """Return its mass, center of mass and inertia."""
        inner, outer = self.ends(element, name)
        return bar(element, name, inner, outer, self.mass, self.radius)


@dataclass(frozen=True)
class Hub:
    """The wheel carrier (knuckle, steering knuckle).

    Attributes:
        center: of the wheel.
        mass: kg.
        inertia: about the center of mass, kg m2, as in ``add_body``. Default: that of a ball of 8 cm.
        com: center of mass. Default: ``center``.
    """

    center: Vector
    mass: float = 5.0
    inertia: Any = None
    com: Vector | None = None

    def solid(self, element: str) -> Solid:
        """Return its mass, center of mass and inertia."""
        mass = validate.positive(element, "hub.mass", self.mass)
        com = validate.numbers(element, "hub.com", self.center if self.com is None else self.com, 3)
        inertia = (0.4 * mass * 0.08**2,) * 3 if self.inertia is None else self.inertia
        return Solid(mass, com, validate.body_inertia(f"{element}: hub", inertia, mass))


@dataclass(frozen=True)
class Coil:
    """A coil spring with its damper, between a point of the chassis and one of a part.

    Attributes:
        top: on the chassis.
        foot: on the part.
        stiffness: N/m.
        damping: N s/m, or (bound, rebound).
        on: name of the part with the foot. Default: the first part that the suspension's docstring names.
        load: upward force on the wheel's center for which the initial pose is in balance, N. It sets the preload. It
            carries the chassis and the suspension's parts. Subtract the weight of a wheel that is a separate body, as
            in ``add_wheel``, from the ground force.
        preload: alternative to ``load``: initial force that pushes the ends apart, N.
        bump, droop: soft stops at lengths of the spring.
    """

    top: Vector
    foot: Vector
    stiffness: float = 0.0
    damping: float | tuple[float, float] = 0.0
    on: str | None = None
    load: float | None = None
    preload: float | None = None
    bump: BumpStop | None = None
    droop: BumpStop | None = None


@dataclass(frozen=True)
class TorsionBar:
    """A torsion spring with its damper on the hinge of an arm.

    Attributes:
        stiffness: N m/rad.
        damping: N m s/rad, or (bound, rebound).
        load: as in ``Coil``.
        preload: alternative to ``load``: initial torque that presses the wheel down, N m.
    """

    stiffness: float = 0.0
    damping: float | tuple[float, float] = 0.0
    load: float | None = None
    preload: float | None = None


@dataclass(frozen=True)
class TieRod:
    """A tie rod, which holds the hub's steering angle, or steers it if its inner end is on a rack.

    Attributes:
        inner: end on the chassis or on the rack.
        outer: end on the hub.
        rack: body of the inner end, such as a steering rack. Default: the chassis.
    """

    inner: Vector
    outer: Vector
    rack: int | None = None

    def ends(self, element: str) -> tuple[Array, Array]:
        """Return the checked inner and outer point."""
        return Arm(self.inner, self.outer).ends(element, "tie_rod")


@dataclass(frozen=True)
class Solid:
    """Mass, kg, center of mass and inertia about it, kg m2, in the corner's frame in the initial pose."""

    mass: float
    com: Array
    inertia: Array = field(repr=False)

    def __add__(self, other: Solid) -> Solid:
        """Combine two solids to one rigid body."""
        mass = self.mass + other.mass
        com = (self.mass * self.com + other.mass * other.com) / mass
        inertia = np.zeros((3, 3))
        for part in (self, other):
            r = part.com - com
            inertia += part.inertia + part.mass * (r @ r * np.eye(3) - np.outer(r, r))
        return Solid(mass, com, inertia)


def bar(element: str, name: str, start: Array, end: Array, mass: Any, radius: Any) -> Solid:
    """Return a round bar between two points."""
    m, r = (validate.positive(element, f"{name}.{key}", value) for key, value in (("mass", mass), ("radius", radius)))
    length = float(np.linalg.norm(end - start))
    along = np.outer(end - start, end - start) / length**2
    across = m * (length**2 / 12.0 + r * r / 4.0)
    return Solid(m, 0.5 * (start + end), 0.5 * m * r * r * along + across * (np.eye(3) - along))
