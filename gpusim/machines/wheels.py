"""Wheels (body on a hinge of the hub, with tire, drive and brake), and drive trains for several wheels.

    v = w R,   m = sum of w_i / n,   d = (sum of right w_i - sum of left w_i) / n

v is the speed of a wheel with radius R and spin w. m is the mean spin of all n wheels. d is half of the difference
between the mean spins of the right side and the left side. The drive train works like open differentials. The drive
motor acts on m: all wheels get the same torque. The turn motor acts on d through a clutch: the left and right wheels
get opposite torques. An engaged clutch couples d to the shaft of the turn motor, like a locked differential. To steer,
open the clutch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.description.specs import WORLD
from gpusim.machines.suspensions import Suspension
from gpusim.transform import Transform

SHAPES: dict[str, Callable[[float, float, float], dict[str, Any]]] = {
    "wheel": lambda radius, width, edge: {"radius": radius, "edge_radius": edge},
    "cylinder": lambda radius, width, edge: {"radius": radius, "half_length": 0.5 * width},
    "ellipsoid": lambda radius, width, edge: {"semi_axes": (radius, radius, 0.5 * width)},
}
"""Functions from radius, width and edge radius (m) to the size arguments of each shape. The axle is along z."""
RIM = 0.5
"""Inner radius of the ring that defines a wheel's default inertia, divided by the wheel's radius."""
SHAFT_LENGTH, SHAFT_RADIUS = 0.4, 0.02
"""Length and radius of a turn motor's shaft, m."""


@dataclass(frozen=True)
class DcMotor:
    """A DC motor with gearbox. The command is a fraction of the maximum voltage, -1 to 1. See ``add_dc_motor``."""

    stall_torque: float
    no_load_speed: float
    mechanical_time_constant: float
    electrical_time_constant: float = 0.0
    gear_ratio: float = 1.0

    def add(self, b: ModelBuilder, joint: int, label: str) -> int:
        """Add the drive to a joint coordinate and return the actuator's index."""
        return b.add_dc_motor(joint, **vars(self), label=label)


@dataclass(frozen=True)
class SpeedDrive:
    """A drive with speed control. The command is a speed (rad/s).

    The torque is gain * (command - speed), limited to +-``torque``.

    Attributes:
        torque: maximum torque (N m).
        gain: gain (N m s/rad).
        max_speed: maximum speed (rad/s). Commands are limited to +-``max_speed``.
    """

    torque: float
    gain: float
    max_speed: float = 30.0

    def add(self, b: ModelBuilder, joint: int, label: str) -> int:
        """Add the drive to a joint coordinate and return the actuator's index."""
        limits = -self.max_speed, self.max_speed
        return b.add_servo(
            joint, "velocity", damping=self.gain, effort_limit=self.torque, label=label, command_range=limits
        )


@dataclass(frozen=True)
class TorqueDrive:
    """A drive with torque control. At any speed, the torque is the command (-1 to 1) times ``torque``.

    Attributes:
        torque: maximum torque (N m).
    """

    torque: float

    def add(self, b: ModelBuilder, joint: int, label: str) -> int:
        """Add the drive to a joint coordinate and return the actuator's index."""
        return b.add_torque_motor(joint, self.torque, label=label)


WheelDrive = DcMotor | SpeedDrive | TorqueDrive


@dataclass(frozen=True)
class Wheel:
    """A wheel, from :func:`add_wheel`.

    Attributes:
        label: prefix of the labels: body ``<label>_wheel``, hinge ``<label>_spin``, shape ``<label>_tire``.
        body: body index.
        spin: joint index of the hinge between hub and wheel. At positive speeds, the wheel rolls forward, along the
            hub's x axis.
        shape: index of the shape.
        radius, width: radius and width (m).
        drive, brake: actuators ``<label>_drive`` and ``<label>_brake``, or None.
        stiffness: radial stiffness (N/m) of the tire, inf without a tire.
    """

    label: str
    body: int
    spin: int
    shape: int
    radius: float
    width: float
    drive: int | None
    brake: int | None
    stiffness: float

    def height(self, load: float = 0.0) -> float:
        """Return the height (m) of the wheel's center above level ground under a static load (N)."""
        deflection = validate.not_negative(f"wheel '{self.label}'", "load", load) / self.stiffness
        return self.radius - deflection

    def rolling_radius(self, load: float = 0.0) -> float:
        """Return the rolling radius (m) of a wheel without torque: the mean of ``radius`` and :meth:`height`."""
        return 0.5 * (self.radius + self.height(load))


def add_wheel(
    b: ModelBuilder,
    hub: int | Suspension,
    xform: Transform | None = None,
    *,
    radius: float,
    width: float,
    mass: float,
    material: Material | None = None,
    inertia: Any = None,
    shape: str = "wheel",
    edge_radius: float | None = None,
    drive: WheelDrive | None = None,
    brake: float = 0.0,
    friction: float = 0.0,
    label: str | None = None,
    group: int | str = 1,
    mask: int | None = None,
    color: Any = None,
) -> Wheel:
    """Add a wheel on a hinge.

    Args:
        b: the builder.
        hub: a suspension, or a body index (-1 for the world).
        xform: pose of the wheel's frame in the hub's frame. The wheel rolls along x and rotates about y. Default: the
            hub's frame.
        radius, width: size (m) of the wheel.
        mass: mass (kg).
        material: material, with ``law=gpusim.Tire(...)`` for a tire. Default: as in ``add_shape``.
        inertia: inertia (kg m2) about the wheel's center, as in ``add_body``. Default: the inertia of a ring with an
            inner radius of half the wheel's radius.
        shape: "wheel" (one contact point, for tires), "cylinder" (can stand on its edge) or "ellipsoid" (a balloon
            tire).
        edge_radius: radius (m) of the edge of the shape "wheel". Default: min(width / 2, radius / 4).
        drive: drive of the hinge. The command of the drive is ``<label>_drive``.
        brake: maximum torque (N m) of the brake, or 0 for no brake. The command ``<label>_brake`` (0 to 1) is a
            fraction of the maximum torque.
        friction: dry friction (N m) of the bearing.
        label: prefix of all labels. Default: the label of the suspension.
        group, mask, color: collision group, mask and color of the shape.

    Raises:
        ModelError: an argument is invalid.
    """
    if label is None and isinstance(hub, Suspension):
        label = hub.label
    element = f"wheel '{label}'" if label else "wheel"
    if not isinstance(label, str) or not label:
        raise validate.fail(element, f"label = {label!r} is not a valid label", 'give a word, such as label="fl"')
    carrier = b.check_body(element, "hub", hub.hub if isinstance(hub, Suspension) else hub)
    validate.transform(element, "xform", xform)
    r, w = validate.positive(element, "radius", radius), validate.positive(element, "width", width)
    m, torque = validate.positive(element, "mass", mass), validate.not_negative(element, "brake", brake)
    options = _shape_options(element, shape, r, w, edge_radius)
    if drive is not None and not isinstance(drive, WheelDrive):
        rule = f"drive = {drive!r} is not a drive"
        raise validate.fail(element, rule, "give gpusim.machines.DcMotor, SpeedDrive or TorqueDrive")
    pose = (Transform() if carrier == WORLD else b.bodies[carrier].xform) * (xform or Transform())
    moments = _ring(m, r, w) if inertia is None else validate.body_inertia(element, inertia, m)
    if mask is not None:
        options["mask"] = mask
    body = b.add_body(m, moments, xform=pose, label=f"{label}_wheel")
    spin = b.add_joint_revolute(carrier, body, axis=(0.0, 1.0, 0.0), at=pose, friction=friction, label=f"{label}_spin")
    axle_along_y = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)  # the axle of the shape is its z axis
    add = getattr(b, f"add_shape_{shape}")
    index = add(body, xform=axle_along_y, material=material, label=f"{label}_tire", group=group, color=color, **options)
    law = material.law if material is not None else None
    soft = law is not None and law.normal == "spring" and law.stiffness
    return Wheel(
        label=label,
        body=body,
        spin=spin,
        shape=index,
        radius=r,
        width=w,
        drive=None if drive is None else drive.add(b, spin, f"{label}_drive"),
        brake=b.add_brake(spin, torque, label=f"{label}_brake") if torque else None,
        stiffness=float(law.stiffness or math.inf) if law is not None and soft else math.inf,
    )


def _shape_options(element: str, shape: str, radius: float, width: float, edge_radius: float | None) -> dict[str, Any]:
    """Return the size arguments of the shape."""
    validate.choice(element, "shape", shape, SHAPES)
    if edge_radius is not None and shape != "wheel":
        raise validate.fail(element, f"a {shape} has no edge_radius", 'leave it out, or give shape="wheel"')
    edge = min(0.5 * width, 0.25 * radius) if edge_radius is None else edge_radius
    if not 0.0 <= validate.number(element, "edge_radius", edge) < radius:
        rule = f"edge_radius = {edge:g} is not within 0 to below radius = {radius:g}"
        raise validate.fail(element, rule, "give the rounding of the rim, such as half of the width")
    return SHAPES[shape](radius, width, edge)


def _ring(mass: float, radius: float, width: float) -> tuple[float, float, float]:
    """Return the inertia (kg m2) of a thick ring with its axle along y."""
    axle = 0.5 * mass * radius**2 * (1.0 + RIM**2)
    transverse = 0.5 * axle + mass * width**2 / 12.0
    return transverse, axle, transverse


@dataclass(frozen=True)
class DriveTrain:
    """A drive train, from :func:`add_drive_train`.

    Attributes:
        label: prefix of all labels.
        mean: tendon ``<label>_mean``. The rate of this tendon is the mean spin of all wheels.
        drive: actuator ``<label>_drive`` on the tendon ``mean``.
        turn: the drive that rotates the vehicle on the spot, or None.
    """

    label: str
    mean: int
    drive: int
    turn: TurnDrive | None


@dataclass(frozen=True)
class TurnDrive:
    """Motor and clutch of a drive train that drive left and right wheels in opposite directions.

    Attributes:
        body: body index of the motor's shaft, ``<label>_turn_shaft``.
        shaft: joint of the shaft.
        difference: tendon ``<label>_difference``. The coordinate of this tendon is the slip angle of the clutch.
        drive, clutch: actuators ``<label>_turn`` and ``<label>_turn_clutch``.
    """

    body: int
    shaft: int
    difference: int
    drive: int
    clutch: int


def add_drive_train(
    b: ModelBuilder,
    chassis: int,
    left: Sequence[Wheel],
    right: Sequence[Wheel],
    *,
    drive: WheelDrive,
    turn: WheelDrive | None = None,
    clutch: float = math.inf,
    viscosity: float = 0.0,
    shaft_mass: float = 2.0,
    label: str = "",
) -> DriveTrain:
    """Add a drive train: a motor for all wheels, through open differentials, and a motor for turning on the spot.

    The motor ``drive`` acts on the mean of all wheel spins. With an engaged clutch, the command ``turn`` rotates the
    vehicle on the spot. Positive commands rotate to the left. Speeds and torques of ``SpeedDrive`` and ``TorqueDrive``
    are values after the gearbox, at the wheels. Each wheel gets an equal share of a motor's torque.

    Args:
        b: the builder.
        chassis: body that carries the shaft of the turn motor.
        left, right: wheels of each side. Both sides have the same number of wheels.
        drive, turn: drives of the two motors (see ``drive`` in ``add_wheel``). The commands are ``drive`` and ``turn``.
        clutch: maximum torque (N m) of the clutch, required with ``turn``. The command ``turn_clutch`` (0 to 1) is a
            fraction of the maximum torque.
        viscosity: viscous coupling (N m s/rad) between neighboring wheels of one side, like a limited-slip
            differential. Without coupling, the wheels of one side have different spins when the vehicle turns on the
            spot.
        shaft_mass: mass (kg) of the turn motor's shaft. The shaft is along y at the chassis' center of mass. If shapes
            define the chassis' mass, the shaft is at the chassis' origin.
        label: prefix of all labels, followed by "_".

    Raises:
        ModelError: wheels are missing or repeated, the sides have different numbers of wheels, or ``turn`` has no
            clutch.
    """
    element = f"drive train '{label}'" if label else "drive train"
    host = b.check_body(element, "chassis", chassis)
    spins = _paired_spins(element, left, right)
    for name, motor in (("drive", drive), ("turn", turn)):
        if not isinstance(motor, WheelDrive) and not (motor is None and name == "turn"):
            rule = f"{name} = {motor!r} is not a drive"
            raise validate.fail(element, rule, "give gpusim.machines.DcMotor, SpeedDrive or TorqueDrive")
    torque = validate.positive(element, "clutch", clutch, infinite=turn is None)
    mass = validate.positive(element, "shaft_mass", shaft_mass)
    prefix, weight = f"{label}_" if label else "", 0.5 / len(spins[0])
    coupling = validate.not_negative(element, "viscosity", viscosity)
    mean = b.add_tendon([(spin, weight) for side in spins for spin in side], label=f"{prefix}mean")
    if coupling:
        for name, side in zip(("left", "right"), spins, strict=True):
            for k, pair in enumerate(zip(side[:-1], side[1:], strict=True)):
                terms = [(pair[0], 1.0), (pair[1], -1.0)]
                b.add_tendon(terms, damping=coupling, label=f"{prefix}{name}_slip{k}")
    drive_index = drive.add(b, mean, f"{prefix}drive")
    turn_drive = None if turn is None else _turn_drive(b, host, spins, turn, torque, mass, prefix)
    return DriveTrain(label, mean, drive_index, turn_drive)


def _paired_spins(element: str, left: Sequence[Wheel], right: Sequence[Wheel]) -> tuple[list[int], list[int]]:
    """Check the wheels. Return the joints of the left wheels, and the joints of the right wheels."""
    for name, side in (("left", left), ("right", right)):
        if not isinstance(side, Sequence) or not all(isinstance(wheel, Wheel) for wheel in side):
            raise validate.fail(element, f"{name} = {side!r} are not wheels", "give a list of results of add_wheel")
    spins = [wheel.spin for wheel in left], [wheel.spin for wheel in right]
    if len(left) != len(right) or not left:
        rule = f"{len(left)} wheels on the left and {len(right)} on the right do not form pairs"
        raise validate.fail(element, rule, "give the same number on both sides, at least one")
    if len(set(spins[0] + spins[1])) != 2 * len(left):
        raise validate.fail(element, "a wheel is in the lists twice", "list each wheel once")
    return spins


def _turn_drive(
    b: ModelBuilder,
    chassis: int,
    spins: tuple[list[int], list[int]],
    turn: WheelDrive,
    clutch: float,
    mass: float,
    prefix: str,
) -> TurnDrive:
    """Add a motor on a shaft, and the clutch between the shaft and the tendon ``difference``."""
    start = Transform() if chassis == WORLD else b.bodies[chassis].xform
    center = np.zeros(3) if chassis == WORLD else np.nan_to_num(np.asarray(b.bodies[chassis].com, float))
    pose = Transform(start.apply(center), start.rotation)
    transverse, axial = mass * SHAFT_LENGTH**2 / 12.0, 0.5 * mass * SHAFT_RADIUS**2
    body = b.add_body(mass, (transverse, axial, transverse), xform=pose, label=f"{prefix}turn_shaft")
    axle_along_y = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)
    b.add_visual(body, "cylinder", SHAFT_RADIUS, 0.5 * SHAFT_LENGTH, xform=axle_along_y)
    shaft = b.add_joint_revolute(chassis, body, axis=(0.0, 1.0, 0.0), at=pose, label=f"{prefix}turn_shaft")
    weight = 0.5 / len(spins[0])
    terms = [(spin, sign * weight) for sign, side in zip((-1.0, 1.0), spins, strict=True) for spin in side]
    difference = b.add_tendon([*terms, (shaft, -1.0)], label=f"{prefix}difference")
    return TurnDrive(
        body=body,
        shaft=shaft,
        difference=difference,
        drive=turn.add(b, shaft, f"{prefix}turn"),
        clutch=b.add_brake(difference, clutch, label=f"{prefix}turn_clutch"),
    )


def spin_of(speed: float, yaw_rate: float, offset: float, radius: float) -> float:
    """Return the spin (rad/s) of an unsteered wheel that rolls without slip: (speed - yaw_rate offset)/radius.

    Args:
        speed: speed (m/s) of the vehicle along x.
        yaw_rate: yaw rate (rad/s) about z.
        offset: y position (m) of the wheel.
        radius: rolling radius (m) of the wheel.
    """
    return float(np.subtract(speed, yaw_rate * offset)) / validate.positive("spin_of", "radius", radius)
