"""Differential gear and anti-roll bar, built from tendons and couplings.

s is the input angle, and l and r are the angles of the left and the right side. Every differential satisfies s = ratio
(l + r)/2. The torque on each side is ratio/2 times the input torque. A limited-slip differential also has dry friction
or viscous damping on the difference l - r. This friction slows the faster side and drives the slower side. A locked
differential keeps the difference l - r at its starting value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method

KINDS = ("open", "limited_slip", "locked")


@dataclass(frozen=True)
class Differential:
    """Indices of the joints and tendons of a differential.

    Attributes:
        input: joint that drives the differential: ``shaft``, or a new tendon if you give no ``shaft``.
        slip: tendon with the coordinate l - r and the signals ``joint.<label>_slip...``. A brake on this tendon can
            lock the differential.
    """

    input: int
    slip: int


@builder_method
def add_differential(
    self: ModelBuilder,
    left: int,
    right: int,
    shaft: int | None = None,
    ratio: float = 1.0,
    kind: str = "open",
    preload: float = 0.0,
    viscosity: float = 0.0,
    label: str | None = None,
) -> Differential:
    """Add a differential between two joints, such as the hinges of two wheels.

    The coordinates of both joints must increase in the same direction of rotation.

    Args:
        left, right: joints of both sides. The differential uses the first coordinate of each joint.
        shaft: joint of the input (default: a new tendon, which motors and brakes can drive).
        ratio: rotation of the input divided by the mean rotation of both sides, not zero.
        kind: one of "open", "limited_slip" and "locked".
        preload: breakaway torque between both sides of a limited-slip differential (N m).
        viscosity: viscous damping between both sides of a limited-slip differential (N m s/rad).
        label: unique name of the coupling. The tendons are ``<label>_input`` and ``<label>_slip``. A locked
            differential has a second coupling ``<label>_lock``.

    Returns:
        Indices of the input joint and of the tendon ``slip``.

    Raises:
        ModelError: ``kind`` or a joint is unknown, two joints are the same, or ``kind`` does not allow ``preload`` or
            ``viscosity``.
    """
    element = self.element("coupling", label)
    validate.choice(element, "kind", kind, KINDS)
    left = self.check_joint(element, "left", left)
    right = self.check_joint(element, "right", right)
    joints = {"left": left, "right": right}
    if shaft is not None:
        joints["shaft"] = self.check_joint(element, "shaft", shaft)
    for one, other in combinations(joints, 2):
        if joints[one] == joints[other]:
            rule = f"{one} and {other} are both joint '{self.joints[joints[one]].label}'"
            raise validate.fail(element, rule, f"give {'two' if shaft is None else 'three'} different joints")
    friction = validate.not_negative(element, "preload", preload)
    damping = validate.not_negative(element, "viscosity", viscosity)
    if kind != "limited_slip" and (friction or damping):
        raise validate.fail(element, f"is {kind} and cannot have a slip torque", 'give kind="limited_slip"')
    if kind == "limited_slip" and not (friction or damping):
        raise validate.fail(element, "has no slip torque", "give preload or viscosity, or kind='open'")
    half = 0.5 * validate.ratio(element, "ratio", ratio)
    name = label or f"differential{len(self.couplings)}"
    sides = [(left, half), (right, half)]
    if shaft is None:
        shaft = self.add_tendon(sides, label=f"{name}_input")
    else:
        self.add_linear_coupling([(shaft, 1.0), (left, -half), (right, -half)], label=name)
    if kind == "locked":
        self.add_linear_coupling([(left, 1.0), (right, -1.0)], label=f"{name}_lock")
    difference = [(left, 1.0), (right, -1.0)]
    slip = self.add_tendon(difference, friction=friction, damping=damping, label=f"{name}_slip")
    return Differential(shaft, slip)


@builder_method
def add_anti_roll_bar(
    self: ModelBuilder,
    left: int,
    right: int,
    stiffness: float,
    damping: float = 0.0,
    left_axis: int = 0,
    right_axis: int = 0,
    label: str | None = None,
) -> int:
    """Add an anti-roll bar: a spring on the difference of two joint coordinates, such as two wheel travels.

    Args:
        left, right: joints of the left and the right wheel. Their coordinates must have the same sign when a wheel
            rises.
        stiffness: force or torque per difference of the coordinates (N/m or N m/rad).
        damping: viscous damping of the difference (N s/m or N m s/rad).
        left_axis, right_axis: index of the coordinate in each joint.
        label: unique name of the spring. The signals are ``spring.<label>...``, and the tendon is
            ``<label>_difference``.

    Returns:
        Index of the spring (an actuator).
    """
    element = self.element("actuator", label, "anti_roll_bar")
    left = self.check_joint(element, "left", left, left_axis)
    right = self.check_joint(element, "right", right, right_axis)
    if (left, left_axis) == (right, right_axis):
        raise validate.fail(element, "couples a coordinate with itself", "give two different joints")
    name = label or f"anti_roll_bar{len(self.actuators)}"
    bar = self.add_tendon([(left, left_axis, 1.0), (right, right_axis, -1.0)], label=f"{name}_difference")
    return self.add_torsion_spring(bar, stiffness, damping, label=name)
