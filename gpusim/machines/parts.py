"""Parts of suspensions. Points and directions (m) are in the corner's frame: x forward, y outward, z up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.actuators.strut import BumpStop
from gpusim.typing import Array, Vector


def two_points(element: str, name: str, a: tuple[str, Vector], b: tuple[str, Vector]) -> tuple[Array, Array]:
    """Check that two points of a part are different, and return the points."""
    first, second = (f"{name}.{field}" if name else field for field, _ in (a, b))
    start, end = (validate.numbers(element, label, point, 3) for label, (_, point) in ((first, a), (second, b)))
    if np.linalg.norm(end - start) < 1e-6:
        raise validate.fail(element, f"{first} and {second} are one point", "give two different points")
    return start, end


@dataclass(frozen=True)
class Arm:
    """A straight suspension arm with the inertia of a round bar.

    Attributes:
        inner: point on the axis of the hinge that connects the arm to the chassis.
        outer: position of the joint between the arm and the hub.
        mass: mass (kg).
        radius: radius (m) of the bar.
    """

    inner: Vector
    outer: Vector
    mass: float = 3.0
    radius: float = 0.02

    def ends(self, element: str, name: str) -> tuple[Array, Array]:
        """Return the checked inner and outer point."""
        return two_points(element, name, ("inner", self.inner), ("outer", self.outer))

    def solid(self, element: str, name: str) -> Solid:
        """Return mass, center of mass and inertia."""
        inner, outer = self.ends(element, name)
        return bar(element, name, inner, outer, self.mass, self.radius)


@dataclass(frozen=True)
class Hub:
    """The wheel carrier (knuckle, steering knuckle).

    Attributes:
        center: center of the wheel.
        mass: mass (kg).
        inertia: inertia (kg m2) about the center of mass, as in ``add_body``. Default: the inertia of a ball of radius
            8 cm.
        com: center of mass. Default: ``center``.
    """

    center: Vector
    mass: float = 5.0
    inertia: Any = None
    com: Vector | None = None

    def solid(self, element: str) -> Solid:
        """Return mass, center of mass and inertia."""
        mass = validate.positive(element, "hub.mass", self.mass)
        com = validate.numbers(element, "hub.com", self.center if self.com is None else self.com, 3)
        inertia = (0.4 * mass * 0.08**2,) * 3 if self.inertia is None else self.inertia
        return Solid(mass, com, validate.body_inertia(f"{element}: hub", inertia, mass))


@dataclass(frozen=True)
class Coil:
    """A coil spring with a damper, between the chassis and a part of the suspension.

    Attributes:
        top: upper end, a point on the chassis.
        foot: lower end, a point on the part ``on``.
        stiffness: stiffness (N/m).
        damping: damping (N s/m) for both directions, or (bound, rebound).
        on: name of the suspension part to which the foot is attached. Default: the first allowed part (see the argument
            ``spring`` of the suspension).
        load: upward force (N) on the wheel's center at which the initial pose is an equilibrium. ``load`` defines the
            preload. If the wheel is a separate body (``add_wheel``), give the ground force minus the wheel's weight.
        preload: alternative to ``load``: initial force (N) that pushes the ends apart.
        bump, droop: elastic stops for the compressed spring (bump) and for the extended spring (droop).
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
    """A torsion spring with a damper, on the hinge of an arm.

    Attributes:
        stiffness: stiffness (N m/rad).
        damping: damping (N m s/rad) for both directions, or (bound, rebound).
        load: as in ``Coil``.
        preload: alternative to ``load``: initial torque (N m) that presses the wheel down.
    """

    stiffness: float = 0.0
    damping: float | tuple[float, float] = 0.0
    load: float | None = None
    preload: float | None = None


@dataclass(frozen=True)
class TieRod:
    """A tie rod between the hub and the chassis, or between the hub and a steering rack.

    Attributes:
        inner: end on the chassis or on the rack.
        outer: end on the hub.
        rack: body that carries the inner end, such as a steering rack. Default: the chassis.
    """

    inner: Vector
    outer: Vector
    rack: int | None = None

    def ends(self, element: str) -> tuple[Array, Array]:
        """Return the checked inner and outer point."""
        return Arm(self.inner, self.outer).ends(element, "tie_rod")


@dataclass(frozen=True)
class Solid:
    """Mass (kg), center of mass (m) and central inertia (kg m2) in the initial pose, in the corner's frame."""

    mass: float
    com: Array
    inertia: Array = field(repr=False)

    def __add__(self, other: Solid) -> Solid:
        """Return the mass properties of one rigid body that consists of both solids."""
        mass = self.mass + other.mass
        com = (self.mass * self.com + other.mass * other.com) / mass
        inertia = np.zeros((3, 3))
        for part in (self, other):
            r = part.com - com
            inertia += part.inertia + part.mass * (r @ r * np.eye(3) - np.outer(r, r))
        return Solid(mass, com, inertia)


def bar(element: str, name: str, start: Array, end: Array, mass: Any, radius: Any) -> Solid:
    """Return the mass properties of a round bar between two points."""
    m, r = (validate.positive(element, f"{name}.{key}", value) for key, value in (("mass", mass), ("radius", radius)))
    length = float(np.linalg.norm(end - start))
    axial = np.outer(end - start, end - start) / length**2
    transverse = m * (length**2 / 12.0 + r * r / 4.0)
    return Solid(m, 0.5 * (start + end), 0.5 * m * r * r * axial + transverse * (np.eye(3) - axial))
