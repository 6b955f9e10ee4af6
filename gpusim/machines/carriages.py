"""Swing (slewing hinge) between a chassis and its upper carriage, and outriggers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.description.specs import WORLD
from gpusim.machines.arm_cylinders import (
    Drive,
    HoldingValve,
    PowerPack,
    Spool,
    add_drive_valves,
    holding_pressures,
    piston_areas,
)
from gpusim.transform import Transform
from gpusim.typing import Vector


@dataclass(frozen=True)
class Swing:
    """The swing of an upper carriage, from :func:`add_swing`.

    Attributes:
        joint: index of the hinge. The hinge angle is zero in the initial pose and positive counterclockwise, seen from
            above.
        brake: actuator index of the brake, or None without a brake. The command of the brake is ``<label>_brake``.
    """

    joint: int
    brake: int | None


def add_swing(
    b: ModelBuilder,
    chassis: int,
    upper: int,
    at: Vector,
    limits: tuple[float, float] = (-math.inf, math.inf),
    friction: float = 0.0,
    brake_torque: float = 0.0,
    label: str = "swing",
) -> Swing:
    """Add the swing of an upper carriage: a hinge about the z axis of the chassis, with a brake.

    Args:
        b: the builder.
        chassis: body index, -1 for the world.
        upper: body index of the upper carriage, which rotates.
        at: center (m) of the slewing ring in the chassis' frame.
        limits: minimum and maximum angle (rad) from the initial pose.
        friction: dry friction (N m) of the slewing ring.
        brake_torque: torque (N m) of the brake at ``sim.control["<label>_brake"] = 1``, or 0 for no brake.
        label: label of the joint.

    Raises:
        ModelError: a number is invalid.
    """
    element = f"swing '{label}'"
    for name, body in (("chassis", chassis), ("upper", upper)):
        b.check_body(element, name, body)
    if upper in (chassis, WORLD):
        raise validate.fail(element, f"upper = {upper} and chassis = {chassis} are not two bodies", "give two bodies")
    host = Transform() if chassis == WORLD else b.bodies[chassis].xform
    low, high = validate.numbers(element, "limits", limits, 2, infinite=True)
    if not low <= 0.0 <= high or low == high:
        rule = f"limits = ({low:g}, {high:g}) do not contain 0, the initial angle"
        raise validate.fail(element, rule, "give (minimum, maximum), rad")
    joint = b.add_joint_revolute(
        chassis, upper, axis=(0, 0, 1), at=host * Transform(tuple(validate.numbers(element, "at", at, 3))),
        limit_lower=low, limit_upper=high, friction=validate.not_negative(element, "friction", friction), label=label,
    )  # fmt: skip
    torque = validate.not_negative(element, "brake_torque", brake_torque)
    return Swing(joint, b.add_brake(joint, torque, label=f"{label}_brake") if torque > 0.0 else None)


@dataclass(frozen=True)
class ServoJack:
    """A servo that moves an outrigger. The command is the extension (m).

    Attributes:
        stiffness, damping: gains of the servo (N/m and N s/m).
        effort_limit: maximum force (N).
    """

    stiffness: float = 2e6
    damping: float = 5e4
    effort_limit: float = math.inf


@dataclass(frozen=True)
class CylinderJack:
    """A cylinder that moves an outrigger. The command is the opening of the spool valve, positive to extend.

    Attributes:
        pack: circuit and line, from ``add_power_pack``.
        bore, rod: diameters (m) of the bore and the rod.
        spool: the spool valve.
        holding: holding valve, or None. Chamber A carries the machine's weight.
        relief: opening pressure (Pa) of the relief valves. With None, the drive has no relief and anticavitation
            valves.
        viscous_friction, piston_mass: friction (N s/m) and mass (kg) of the piston.
    """

    pack: PowerPack
    bore: float
    rod: float
    spool: Spool
    holding: HoldingValve | None = None
    relief: float | None = 3e7
    viscous_friction: float = 4000.0
    piston_mass: float = 4.0


@dataclass(frozen=True)
class Outrigger:
    """An outrigger, from :func:`add_outrigger`.

    Attributes:
        leg, foot: body indices of leg and foot. The indices are equal if the foot cannot tilt.
        slide: joint of the leg. The joint coordinate is the extension (m), initially zero.
        shape: index of the foot's shape.
        drive: the cylinder with its spool valve, or None if a servo moves the leg.
    """

    leg: int
    foot: int
    slide: int
    shape: int
    drive: Drive | None


def add_outrigger(
    b: ModelBuilder,
    chassis: int,
    at: Vector | Transform,
    stroke: float,
    foot_radius: float,
    jack: ServoJack | CylinderJack,
    label: str,
    length: float | None = None,
    leg_mass: float = 20.0,
    foot_mass: float = 5.0,
    tilt: float = 0.0,
    material: Material | None = None,
    group: Any = None,
) -> Outrigger:
    """Add an outrigger: a leg that slides out of the chassis along -z, with a round foot on the ground.

    Args:
        b: the builder.
        chassis: body index.
        at: initial position (m) of the center of the foot's sole, in the chassis' frame. With a Transform, the leg
            extends along the Transform's -z axis.
        stroke: stroke (m) of the leg. Initially, the leg is fully retracted.
        foot_radius: radius (m) of the foot.
        jack: the servo or cylinder that moves the leg.
        label: label of the leg, its joint and the command. The label of the foot has the suffix "_foot".
        length: length (m) of the leg above the sole (default: 1.5 times ``stroke``). The length must exceed ``stroke``.
        leg_mass, foot_mass: masses (kg) of leg and foot.
        tilt: maximum tilt (rad) of the foot about each axis perpendicular to the leg. With ``tilt=0``, foot and leg are
            one body.
        material: material of the foot.
        group: collision group of the foot's shape.

    Raises:
        ModelError: a number is invalid.
    """
    element = f"outrigger '{label}'"
    b.check_body(element, "chassis", chassis)
    travel, radius = validate.positives(element, stroke=stroke, foot_radius=foot_radius).values()
    leg_length = 1.5 * travel if length is None else validate.positive(element, "length", length)
    masses = list(validate.positives(element, leg_mass=leg_mass, foot_mass=foot_mass).values())
    if leg_length <= travel:
        rule = f"a leg of length = {leg_length:g} m slides out of the chassis at stroke = {travel:g} m"
        raise validate.fail(element, rule, "give a longer leg, or a shorter stroke")
    if not 0.0 <= validate.number(element, "tilt", tilt) < 0.5 * math.pi:
        raise validate.fail(element, f"tilt = {tilt:g} is not within 0 to pi/2", "give an angle in rad")
    if not isinstance(jack, ServoJack | CylinderJack):
        rule = f"jack = {jack!r} is neither a ServoJack nor a CylinderJack"
        raise validate.fail(element, rule, "give one of them")
    if not isinstance(at, Transform):
        at = Transform(tuple(validate.numbers(element, "at", at, 3)))
    chassis_pose = Transform() if chassis == WORLD else b.bodies[chassis].xform
    sole, thickness = chassis_pose * at, 0.2 * radius
    bodies = _leg_and_foot(b, sole, leg_length, radius, thickness, masses, tilt, label)
    slide = b.add_joint_prismatic(
        chassis, bodies[0], axis=(0, 0, -1), at=sole, limit_lower=0.0, limit_upper=travel, label=label
    )
    pad = b.bodies[bodies[1]].xform.inverse() * sole * Transform((0, 0, 0.5 * thickness))
    options = {} if group is None else {"group": group}
    shape = b.add_shape_cylinder(
        bodies[1], radius, 0.5 * thickness, xform=pad, material=material, label=f"{label}_foot", **options
    )
    if isinstance(jack, ServoJack):
        b.add_servo(slide, stiffness=jack.stiffness, damping=jack.damping, effort_limit=jack.effort_limit, label=label)
        return Outrigger(*bodies, slide, shape, None)
    weight = float(sole.inverse().rotate(b.gravity)[2]) * sum(masses)
    drive = _cylinder(chassis, bodies[0], sole, leg_length, travel, jack, weight, label, element)
    return Outrigger(*bodies, slide, shape, drive)


def _leg_and_foot(
    b: ModelBuilder, sole: Transform, length: float, radius: float, thickness: float, masses: list[float], tilt: float,
    label: str,
) -> tuple[int, int]:  # fmt: skip
    """Add the bodies of leg and foot. The origin of each body frame is at the sole."""
    bar_radius = 0.3 * radius
    leg_inertia = _bar_moments(masses[0], length, bar_radius)
    foot_inertia = _bar_moments(masses[1], thickness, radius)
    distance = 0.5 * (length - thickness)
    if tilt == 0.0:
        mass = sum(masses)
        shift = masses[0] * masses[1] / mass * distance**2
        inertia = tuple(np.add(leg_inertia, foot_inertia) + np.array([shift, shift, 0.0]))
        com = (0.0, 0.0, 0.5 * (masses[0] * length + masses[1] * thickness) / mass)
        leg = foot = b.add_body(mass, inertia, com=com, xform=sole, label=label)
    else:
        leg = b.add_body(masses[0], leg_inertia, com=(0, 0, 0.5 * length), xform=sole, label=label)
        foot = b.add_body(masses[1], foot_inertia, com=(0, 0, 0.5 * thickness), xform=sole, label=f"{label}_foot")
        b.add_joint_universal(
            leg, foot, axis=(1, 0, 0), axis2=(0, 1, 0), at=sole * Transform((0, 0, thickness)),
            limit_lower=(-tilt, -tilt), limit_upper=(tilt, tilt), label=f"{label}_foot",
        )  # fmt: skip
    b.add_visual(leg, "cylinder", bar_radius, 0.5 * length, xform=Transform((0, 0, 0.5 * length)), label=label)
    return leg, foot


def _bar_moments(mass: float, length: float, radius: float) -> tuple[float, float, float]:
    transverse = mass * (length**2 / 12.0 + 0.25 * radius**2)
    return transverse, transverse, 0.5 * mass * radius**2


def _cylinder(
    chassis: int, leg: int, sole: Transform, length: float, travel: float, jack: CylinderJack,
    weight: float, label: str, element: str,
) -> Drive:  # fmt: skip
    """Add the hydraulic cylinder, which is parallel to the leg and ends at the sole."""
    areas = piston_areas(element, jack.bore, jack.rod)
    pressure = holding_pressures(weight, areas, 1e6)
    cylinder = jack.pack.circuit.add_cylinder(
        chassis, leg, at_a=sole.apply((0, 0, length)), at_b=sole.position, length_offset=length, area_a=areas[0],
        area_b=areas[1], stroke_min=0.0, stroke_max=travel, pressure=pressure, viscous_friction=jack.viscous_friction,
        piston_mass=jack.piston_mass, label=f"{label}_cylinder",
    )  # fmt: skip
    holding = () if jack.holding is None else jack.holding
    return add_drive_valves(jack.pack, cylinder, label, jack.spool, jack.relief, holding, pressure)
