"""Omni and mecanum wheels: a hub with free rollers. The outer sides of the rollers form one circle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import shape_type
from gpusim.transform import Transform
from gpusim.typing import Vector

STEEPEST = 1.3
"""Maximum roller angle, rad."""
THINNEST = 0.05
"""Minimum radius of a roller at its ends, divided by the roller's radius at its middle."""
DEEPEST = 0.02
"""Maximum drop of the wheel at a gap between rollers, divided by the wheel's radius."""


@dataclass(frozen=True)
class OmniWheel:
    """An omni or mecanum wheel, from :func:`add_omni_wheel`.

    Attributes:
        hub: body index.
        spin: index of the hub's joint, for drives and brakes. At positive speeds, the wheel rolls along x.
        rollers: body indices of the rollers. Initially, the first roller is the lowest roller.
        bearings: joint indices of the rollers, in the order of ``rollers``.
        xform: pose of the wheel's frame in the platform's frame.
        radius, roller_angle: as passed to ``add_omni_wheel`` (m and rad).
        reach: half of the angle (rad) of wheel rotation during which one roller carries the load.
    """

    hub: int
    spin: int
    rollers: tuple[int, ...]
    bearings: tuple[int, ...]
    xform: Transform
    radius: float
    roller_angle: float
    reach: float

    def ideal(self, velocity: Vector) -> float:
        """Return the hub speed (rad/s) for a platform motion, if the rollers are massless and do not slip.

        The speed of a mecanum wheel has a small ripple with the period of one roller. The result is the mean speed.

        Args:
            velocity: velocity of the platform's origin along the platform's x and y axes (m/s), and the yaw rate
                (rad/s). The platform's z axis is up.
        """
        vx, vy, yaw_rate = validate.numbers("OmniWheel.ideal", "velocity", velocity, 3)
        x, y, _ = self.xform.position
        forward, sideways, _ = self.xform.inverse().rotate((vx - yaw_rate * y, vy + yaw_rate * x, 0.0))
        steady = self.reach / math.sin(self.reach)
        return float(forward + sideways * math.tan(self.roller_angle) * steady) / self.radius


def add_omni_wheel(
    builder: ModelBuilder,
    platform: int,
    xform: Transform,
    radius: float,
    rollers: int,
    roller_radius: float,
    roller_mass: float,
    hub_mass: float,
    label: str,
    roller_angle: float = 0.0,
    gap: float = 0.0,
    bearing_damping: float = 0.0,
    material: Material | None = None,
    color: Any = None,
) -> OmniWheel:
    """Add a wheel with free rollers: a hub on a hinge, and barrel-shaped rollers on hinges around the hub.

    With ``gap=0``, the ends of neighboring rollers meet on the wheel's circle. The center of an omni wheel then stays
    at the height ``radius``. The profile of a mecanum roller is an arc, which approximates the ideal profile (error 33
    um for a wheel of 0.1 m with eight rollers).

    Args:
        builder: builder that contains the platform.
        platform: body index, -1 for the world.
        xform: pose of the wheel's frame in the platform's frame. The wheel rolls along x and rotates about y, and z is
            up.
        radius: radius (m) of the circle through the outer sides of the rollers.
        rollers: number of rollers. Thinner rollers require more rollers.
        roller_radius: radius (m) of a roller at its center, less than half of ``radius``.
        roller_mass: mass (kg) of each roller (uniform density). Example: 1e-5 of the machine's mass.
        hub_mass: mass (kg) of the hub, a solid disk as thick as the rollers.
        label: prefix of the labels. For example, "fl" gives the bodies ``fl_hub`` and ``fl_roller0`` and the joint
            ``fl_spin``.
        roller_angle: angle (rad) from the wheel's x axis to the axis of the roller on the ground, positive towards y.
            Give 0 for omni wheels, pi/4 or -pi/4 for mecanum wheels.
        gap: gap (m) between the ends of neighboring rollers, along the circle. At each gap, the wheel drops by gap^2/(8
            radius).
        bearing_damping: damping (N m s/rad) of the rollers' joints.
        material: material of the rollers.
        color: color of the hub and the rollers. See ``add_shape``.

    Raises:
        ModelError: the rollers cannot close the circle, or an argument is invalid. The message describes the fix.
    """
    element = f"omni wheel '{label}'"
    reach = _checked_reach(element, radius, rollers, roller_radius, roller_angle, gap)
    part, r, axle = ModelBuilder(), float(roller_radius), float(radius - roller_radius)
    inside = axle - r
    axial, transverse = 0.5 * inside**2, 0.25 * inside**2 + r * r / 3.0
    mass = validate.positive(element, "hub_mass", hub_mass)
    hub = part.add_body(mass, (mass * transverse, mass * axial, mass * transverse), label="hub")
    axle_along_y = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)
    part.add_visual(hub, "cylinder", inside, half_length=r, xform=axle_along_y, color=color, label="hub")
    part.add_joint_revolute(-1, hub, axis=(0, 1, 0), label="spin")
    mass = validate.positive(element, "roller_mass", roller_mass)
    barrel, sizes = shape_type("barrel"), _barrel(radius, r, roller_angle, reach)
    inertia = mass / barrel.volume(sizes) * barrel.inertia(sizes)
    lowest = Transform.from_axis_angle((0.0, 0.0, -axle), (0, 0, 1), roller_angle)
    lowest = lowest * Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5 * math.pi)
    for k in range(rollers):
        at = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 2.0 * math.pi * k / rollers) * lowest
        body = part.add_body(mass, inertia, xform=at, label=f"roller{k}")
        part.add_shape_barrel(body, **sizes, material=material, label=f"roller{k}", group="rollers", color=color)
        part.add_joint_revolute(hub, body, at, axis=(0, 0, 1), damping=bearing_damping, label=f"roller{k}")
    part.set_group_collision("rollers", "rollers", False)
    bodies, joints = len(builder.bodies), len(builder.joints)
    builder.add_builder(part, xform, f"{label}_", parent=platform)
    return OmniWheel(
        hub=bodies,
        spin=joints,
        rollers=tuple(range(bodies + 1, bodies + 1 + rollers)),
        bearings=tuple(range(joints + 1, joints + 1 + rollers)),
        xform=xform,
        radius=float(radius),
        roller_angle=float(roller_angle),
        reach=reach,
    )


def _barrel(radius: float, roller_radius: float, roller_angle: float, reach: float) -> dict[str, Any]:
    """Return the radius, arc radius and half length (m) of the rollers' barrel shape."""
    inside = radius * math.cos(reach) - (radius - roller_radius)
    square, tangent = math.sin(roller_angle) ** 2, math.tan(reach)
    half = (radius * math.sin(reach) - square * tangent * inside) / math.cos(roller_angle)
    thinner = roller_radius - inside * math.sqrt(1.0 + square * tangent * tangent)
    arc = 0.5 * (half * half + thinner * thinner) / thinner
    return {"radius": roller_radius, "arc_radius": arc, "half_length": half}


def _checked_reach(
    element: str, radius: float, rollers: int, roller_radius: float, roller_angle: float, gap: float
) -> float:
    """Check the sizes, and return ``reach`` (see :class:`OmniWheel`)."""
    validate.positive(element, "radius", radius)
    r = validate.positive(element, "roller_radius", roller_radius)
    if 2.0 * r >= radius:
        rule = f"roller_radius = {r:g} is not below half of radius = {radius:g}"
        raise validate.fail(element, rule, "give thinner rollers")
    if abs(validate.number(element, "roller_angle", roller_angle)) > STEEPEST:
        rule = f"roller_angle = {roller_angle:g} is not within -{STEEPEST:g} to {STEEPEST:g} rad"
        raise validate.fail(element, rule, "give 0 for an omni wheel, pi/4 or -pi/4 for a mecanum wheel")
    rollers = validate.count(element, "rollers", rollers, 3)
    reach = math.pi / rollers - _half_gap(element, gap, radius)
    if reach <= 0.0:
        raise validate.fail(element, f"gaps of {gap:g} m leave no room for {rollers} rollers", "give a smaller gap")
    if radius * math.cos(reach) - (radius - r) <= THINNEST * r:
        rule = f"{rollers} rollers of radius {r:g} end in tips before they meet on the circle of radius {radius:g}"
        more = math.floor(math.pi / (math.acos(1.0 - (1.0 - THINNEST) * r / radius) + 0.5 * gap / radius)) + 1
        thicker = radius * (1.0 - math.cos(reach)) / (1.0 - THINNEST)
        raise validate.fail(element, rule, f"give at least {more} rollers, or a roller_radius above {thicker:.3g}")
    return reach


def _half_gap(element: str, gap: float, radius: float) -> float:
    """Return half of the angle (rad) of the gap between neighboring rollers, seen from the hub."""
    if validate.number(element, "gap", gap) < 0.0:
        raise validate.fail(element, f"gap = {gap:g} lets rollers overlap on the ground", "give a gap of 0 or more")
    angle, widest = 0.5 * gap / radius, math.acos(1.0 - DEEPEST)
    if angle > widest:
        rule = f"the wheel drops by more than {100.0 * DEEPEST:g} % of its radius into gaps of {gap:g} m"
        raise validate.fail(element, rule, f"give a gap of at most {2.0 * widest * radius:.3g} m")
    return angle
