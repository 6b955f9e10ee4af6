"""Parts of tracks. Positions (x, z) (m) are in the plane of the track, with x forward and z up."""

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
    """Base class of track parts with checked parameters."""

    positive: ClassVar[tuple[str, ...]] = ()
    not_negative: ClassVar[tuple[str, ...]] = ()

    def check(self, element: str, name: str) -> None:
        """Raise a ModelError for a number out of range."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name in self.positive and value is not None:
                validate.positive(element, f"{name}.{field.name}", value)
            elif field.name in self.not_negative:
                validate.not_negative(element, f"{name}.{field.name}", value)
            elif field.name == "at":
                validate.numbers(element, f"{name}.at", value, 2)
            elif field.name == "material" and value is not None and not isinstance(value, Material):
                rule = f"{name}.material = {value!r} is not a Material"
                raise validate.fail(element, rule, "give gpusim.Material(...)")


@dataclass(frozen=True)
class Shoe(Checked):
    """A track link with its pad, modeled as a box.

    One pin is half a pitch in front of the box's center. The other pin is half a pitch behind the center.

    Attributes:
        size: length along the track, width and thickness (m).
        mass: mass (kg) of one shoe.
        guide: height (m) of the two guide horns. The wheels run between the horns. A shoe with ``guide=0`` has no
            horns.
        clearance: lateral distance (m) between a wheel and each horn. The simulation is slower if ``clearance`` is
            below ``SolverConfig(contact_margin)``.
        material: material of the pad.
        color: color of the whole track, for drawing. See ``add_shape``.
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
        """Raise a ModelError if a number or a size is invalid."""
        super().check(element, name)
        for dimension, value in zip(("length", "width", "thickness"), size_of(element, self), strict=True):
            validate.positive(element, f"{name}.size: {dimension}", value)


@dataclass(frozen=True)
class Wheel(Checked):
    """Base class of wheels.

    Attributes:
        mass: mass (kg) of the wheel, a solid disk.
        width: width (m) of the wheel.
    """

    positive: ClassVar[tuple[str, ...]] = ("radius", "mass", "width", "stiffness", "travel", "play")
    not_negative: ClassVar[tuple[str, ...]] = ("damping", "tension")


@dataclass(frozen=True)
class Sprocket(Wheel):
    """The driven wheel. The pitch of the track and the number of teeth define its radius.

    Attributes:
        at: position of the center.
        teeth: number of teeth. A full circle around the sprocket would have ``teeth`` shoes.
        engage: "teeth" (teeth push the pins) or "friction" (the drum drives the track only by friction).
        play: clearance (m) between a pin and each of its two neighboring teeth.
        mass, width: mass (kg) and width (m).
        material: material of the drum. Default with teeth: a greased surface. Default without teeth: friction
            coefficient 0.8.
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
    """The tensioned end wheel. A spring pushes the idler away from the sprocket.

    Attributes:
        at: requested position of the center. To close the track, the builder shifts the idler by up to one pitch away
            from or towards the sprocket.
        radius: radius (m). Default: the radius of the sprocket's drum.
        tension: initial tension (N) of the track. The spring force is about twice the tension.
        stiffness: stiffness (N/m) of the spring.
        damping: damping (N s/m) of the spring.
        travel: maximum travel (m) of the tensioner in each direction.
        mass, width: mass (kg) and width (m) of the wheel.
        carriage: mass (kg) of the sliding body that carries the idler.
        material: material of the drum.
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
    """A return roller on the chassis, which carries the upper run of the track.

    Attributes:
        at: position of the center.
        radius: radius (m).
        mass, width: mass (kg) and width (m).
        material: material of the rim.
    """

    at: Vector
    radius: float = 0.06
    mass: float = 3.0
    width: float = 0.1
    material: Material = Material(friction=0.8)


@dataclass(frozen=True)
class TorsionArm(Checked):
    """A trailing arm on a torsion bar, which carries a road wheel.

    Attributes:
        length: distance (m) from the hinge to the wheel's center.
        stiffness: stiffness (N m/rad) of the torsion bar.
        damping: damping (N m s/rad).
        load: force (N) of the shoes on the wheel at which the initial pose is an equilibrium. With ``load=0``, the bar
            has no preload.
        angle: angle (rad) between the forward direction and the line from the wheel up to the hinge, within +-1.47 rad.
        travel: minimum and maximum rotation (rad) from the initial pose, positive if the wheel rises.
        mass: mass (kg) of the arm, modeled as a bar.
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
                f"{name}.angle = {angle:g} puts the hinge above or behind the wheel, so the arm cannot lift the wheel"
            )
            raise validate.fail(element, rule, "give an angle between -1.4 and 1.4 rad")
        low, high = validate.numbers(element, f"{name}.travel", self.travel, 2, infinite=True)
        if not low <= 0.0 <= high:
            rule = f"{name}.travel = ({low:g}, {high:g}) does not contain 0, the initial position"
            raise validate.fail(element, rule, "give (minimum, maximum), such as (-0.5, 0.6)")


@dataclass(frozen=True)
class RoadWheel(Wheel):
    """A wheel that rolls on the lower run of the track and carries the chassis.

    Attributes:
        at: position of the center.
        radius: radius (m).
        arm: the arm that carries the wheel. Default: the wheel's axle is fixed to the chassis.
        mass, width: mass (kg) and width (m).
        material: material of the rim.
    """

    at: Vector
    radius: float = 0.14
    arm: TorsionArm | None = None
    mass: float = 10.0
    width: float = 0.1
    material: Material = Material(friction=0.8)


@dataclass(frozen=True)
class Pin(Checked):
    """Damping and friction of the track's pins.

    Attributes:
        damping: damping (N m s/rad).
        friction: dry friction (N m).
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
    transverse = mass * (radius**2 / 4.0 + width**2 / 12.0)
    return transverse, 0.5 * mass * radius**2, transverse


def block(mass: float, size: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the inertia of a box."""
    x, y, z = np.square(size)
    return mass * (y + z) / 12.0, mass * (x + z) / 12.0, mass * (x + y) / 12.0
