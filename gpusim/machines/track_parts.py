"""Parts of tracks. Positions are (x, z) in the plane of the track: x forward, z up, m."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.contact.material import Material
from gpusim.typing import Vector

FEWEST_TEETH = 6
ENGAGEMENTS = ("teeth", "friction")
GREASED = Material(friction=0.1)
"""Material of teeth and guides: greased steel on steel."""


class Checked:
    """Base class of parts that check their numbers."""

    positive: ClassVar[tuple[str, ...]] = ()
    not_negative: ClassVar[tuple[str, ...]] = ()

    def check(self, element: str, name: str) -> None:
        """Raise ModelError for a number that breaks a rule."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name in self.positive and value is not None:
                validate.positive(element, f"{name}.{field.name}", value)
            elif field.name in self.not_negative:
                validate.not_negative(element, f"{name}.{field.name}", value)
            elif field.name == "at":
                validate.numbers(element, f"{name}.at", value, 2)
            elif field.name == "material" and value is not None and not isinstance(value, Material):
                rule = f"{name}.material = {value!r} is no Material"
                raise validate.fail(element, rule, "give gpusim.Material(...)")


@dataclass(frozen=True)
class Shoe(Checked):
    """A link with its pad: a box, its pins half a pitch in front of and behind its center.

    Attributes:
        size: length along the track, width, thickness, m.
        mass: kg.
        guide: height of the two horns that keep the wheels between them, m. 0 for none.
        clearance: from the wheels to a horn, m. Horns nearer than ``SolverConfig(contact_margin)`` slow the simulation.
        material: of the pad.
        color: of the whole track, for drawing. See ``add_shape``.
    """

    positive: ClassVar[tuple[str, ...]] = ("mass", "clearance")
    not_negative: ClassVar[tuple[str, ...]] = ("guide",)
    size: Vector = (0.118, 0.3, 0.04)
    mass: float = 4.0
    guide: float = 0.04
    clearance: float = 0.012
    material: Material = Material(friction=0.8)
    color: Any = None

    def check(self, element: str, name: str) -> None:
        """Check the numbers and the sizes."""
        super().check(element, name)
        for word, value in zip(("length", "width", "thickness"), size_of(element, self), strict=True):
            validate.positive(element, f"{name}.size: {word}", value)


@dataclass(frozen=True)
class Wheel(Checked):
    """Base class of wheels.

    Attributes:
        mass: kg, a solid disk.
        width: m.
    """

    positive: ClassVar[tuple[str, ...]] = ("radius", "mass", "width", "stiffness", "travel", "play")
    not_negative: ClassVar[tuple[str, ...]] = ("damping", "tension")


@dataclass(frozen=True)
class Sprocket(Wheel):
    """The driven wheel. Its size follows from pitch and teeth.

    Attributes:
        at: its center.
        teeth: number of teeth, which is the number of shoes around the full circle.
        engage: "teeth" that push the pins, or only the "friction" of the drum.
        play: of a pin between two teeth to each side, m.
        mass, width: kg, m.
        material: of the drum. Default: greased with teeth, otherwise a friction of 0.8.
    """

    at: Vector
    teeth: int = 11
    engage: str = "teeth"
    play: float = 1.5e-3
    mass: float = 20.0
    width: float = 0.1
    material: Material | None = None


@dataclass(frozen=True)
class Idler(Wheel):
    """The wheel that a spring pushes away from the sprocket.

    Attributes:
        at: its requested center. The builder shifts it by up to a pitch on the line from the sprocket, to close the
            track.
        radius: m. Default: that of the sprocket's drum.
        tension: initial tension of the track, N. The spring pushes with about twice as much.
        stiffness: of the spring, N/m.
        damping: N s/m.
        travel: of the tensioner to both sides, m.
        mass, width: of the wheel, kg, m.
        carriage: mass of the sliding part, kg.
        material: of the drum.
    """

    positive: ClassVar[tuple[str, ...]] = (*Wheel.positive, "carriage")
    at: Vector
    radius: float | None = None
    tension: float = 4000.0
    stiffness: float = 1e6
    damping: float = 1e4
    travel: float = 0.03
    mass: float = 15.0
    width: float = 0.1
    carriage: float = 8.0
    material: Material = Material(friction=0.8)


@dataclass(frozen=True)
class Roller(Wheel):
    """A return roller, fixed to the chassis. The track lies on it if it is outside the line of the other wheels.

    Attributes:
        at: its center.
        radius: m.
        mass, width: kg, m.
        material: of its side.
    """

    at: Vector
    radius: float = 0.06
    mass: float = 3.0
    width: float = 0.1
    material: Material = Material(friction=0.8)


@dataclass(frozen=True)
class TorsionArm(Checked):
    """An arm of a road wheel on a torsion bar.

    Attributes:
        length: from the hinge to the wheel's center, m.
        stiffness: N m/rad.
        damping: N m s/rad.
        load: force of the shoes on the wheel that balances the arm in its initial pose, N.
        angle: from the forward direction up to the direction from the wheel to the hinge, rad. Below pi/2 the arm
            trails.
        travel: minimum and maximum angle from its initial pose, rad. The wheel rises with it.
        mass: kg, a bar.
    """

    positive: ClassVar[tuple[str, ...]] = ("length", "stiffness", "mass")
    not_negative: ClassVar[tuple[str, ...]] = ("damping", "load")
    length: float = 0.2
    stiffness: float = 1000.0
    damping: float = 60.0
    load: float = 0.0
    angle: float = 0.42
    travel: Vector = (-0.5, 0.6)
    mass: float = 5.0

    def check(self, element: str, name: str) -> None:
        """Check the numbers, the angle and the travel."""
        super().check(element, name)
        angle = validate.number(element, f"{name}.angle", self.angle)
        if math.cos(angle) < 0.1:
            rule = (
                f"{name}.angle = {angle:g} puts the hinge above or behind the wheel, so that its turn does not lift it"
            )
            raise validate.fail(element, rule, "give an angle between -1.4 and 1.4 rad")
        low, high = validate.numbers(element, f"{name}.travel", self.travel, 2, infinite=True)
        if not low <= 0.0 <= high:
            rule = f"{name}.travel = ({low:g}, {high:g}) does not hold 0, where it is built"
            raise validate.fail(element, rule, "give (least, greatest), such as (-0.5, 0.6)")


@dataclass(frozen=True)
class RoadWheel(Wheel):
    """A wheel that carries the chassis on the lower run.

    Attributes:
        at: its center.
        radius: m.
        arm: default: the wheel is fixed to the chassis.
        mass, width: kg, m.
        material: of its side.
    """

    at: Vector
    radius: float = 0.14
    arm: TorsionArm | None = None
    mass: float = 10.0
    width: float = 0.1
    material: Material = Material(friction=0.8)


@dataclass(frozen=True)
class Pin(Checked):
    """Resistance of the pins to rotation.

    Attributes:
        damping: N m s/rad.
        friction: dry, N m.
    """

    not_negative: ClassVar[tuple[str, ...]] = ("damping", "friction")
    damping: float = 0.0
    friction: float = 0.0


def size_of(element: str, shoe: Shoe) -> tuple[float, float, float]:
    """Return length, width and thickness of a shoe."""
    length, width, thickness = validate.numbers(element, "shoe.size", shoe.size, 3)
    return float(length), float(width), float(thickness)


def disk(mass: float, radius: float, width: float) -> tuple[float, float, float]:
    """Return the inertia of a solid disk about an axle along y."""
    across = mass * (radius**2 / 4.0 + width**2 / 12.0)
    return across, 0.5 * mass * radius**2, across


def block(mass: float, size: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the inertia of a box."""
    x, y, z = np.square(size)
    return mass * (y + z) / 12.0, mass * (x + z) / 12.0, mass * (x + y) / 12.0
