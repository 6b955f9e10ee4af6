"""Suspensions of one wheel. The functions add bodies, joints, springs and a tie rod, and return a ``Suspension``.

All points are in the corner's frame: x forward, y outward, z up. The frame's origin is at ``xform`` in the chassis.
``mirror=True`` inverts y, for the right side. On both sides, the coordinate of the joint ``travel`` is initially zero
and increases when the wheel rises. ``b.add_anti_roll_bar(left.travel, right.travel, stiffness)`` adds an anti-roll bar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.machines.corner import Corner, Plan, Springs
from gpusim.machines.linkage import (
    IDENTITY,
    Linkage,
    Move,
    Moves,
    Spring,
    Static,
    Unreachable,
    angle_between,
    hinge,
    rocker,
    rotation_about,
)
from gpusim.machines.parts import Arm, Hub, TieRod, two_points
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

X, Y, _ = np.eye(3)


@dataclass(frozen=True)
class Suspension:
    """A suspension, from one of the functions of this module.

    Attributes:
        label: prefix of the labels of bodies, joints and actuators: ``<label>_<part>``.
        hub: body that carries the wheel. The origin of the hub's frame is the wheel's center. Initially, its axes are x
            forward, y left and z up on both sides of the vehicle.
        travel: joint whose first coordinate is the suspension's coordinate. The coordinate is initially zero and
            increases when the wheel rises.
        limits: minimum and maximum of the suspension's coordinate.
        bodies: part name -> body index.
        springs: actuator indices of the springs, in the order of the argument ``spring``.
        tie_rod: joint index of the tie rod, or None.
        linkage: the analytic model of the mechanism.
        laws: the springs of the analytic model.
        mirror: True if the y axis of the corner's frame points to the right.
    """

    label: str
    hub: int
    travel: int
    limits: tuple[float, float]
    bodies: dict[str, int]
    springs: tuple[int, ...]
    tie_rod: int | None
    linkage: Linkage
    laws: tuple[Spring, ...]
    mirror: bool

    def static(self, load: float) -> Static:
        """Compute the equilibrium and the small oscillations under a constant force (N) on the wheel (``Static.load``).

        The force acts at the wheel's center, along the z axis of the corner's frame. The z axis must point up.

        Raises:
            ModelError: the load is less than the weight of the parts, or presses the suspension onto a stop.
        """
        return self.linkage.static(load, self.laws, self.limits)

    def wheel_travel(self, coordinate: float) -> float:
        """Return the upward travel (m) of the wheel's center from its initial position, for a suspension coordinate."""
        return self.linkage.travel(coordinate)

    def coordinate(self, travel: float) -> float:
        """Return the suspension's coordinate (rad or m) for an upward travel (m) of the wheel's center."""
        return self.linkage.coordinate(travel)

    def steering_angle(self, coordinate: float = 0.0, rack: float = 0.0) -> float:
        """Return the steering angle (rad) for a rack displacement ``rack`` (m), both positive to the left."""
        steering, side = self.linkage.steering, -1.0 if self.mirror else 1.0
        if steering is None:
            return 0.0
        return side * steering.move(self.linkage.closing(coordinate), rack * side * Y)[0]


def add_swing_axle(
    b: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    arm: Arm,
    hub: Hub,
    spring: Springs,
    travel: tuple[float, float] = (-math.inf, math.inf),
    tie_rod: TieRod | None = None,
    kingpin: Vector = (0.0, 0.0, 1.0),
    mirror: bool = False,
    label: str = "swing_axle",
) -> Suspension:
    """Add a swing axle: a half axle on a hinge along x.

    Args:
        b: the builder.
        chassis: body index, -1 for the world.
        xform: pose of the corner's frame in the chassis.
        arm: the half axle.
        hub: the wheel carrier. Without a tie rod, hub and arm are one body.
        spring: one spring or several. The foot of a coil is on the "arm" or the "hub".
        travel: minimum and maximum travel (m) of the wheel's center, limited by rigid stops.
        tie_rod: the tie rod. With a tie rod, the hub rotates about a kingpin.
        kingpin: direction of the kingpin. The kingpin passes through the arm's outer end.
        mirror: invert y, for the right side.
        label: prefix of all labels.

    Raises:
        ModelError: an argument is invalid, or the wheel cannot reach a limit of ``travel``.
    """
    return _arm(Corner(b, chassis, xform, mirror, label, "swing axle"), X, arm, hub, spring, travel, tie_rod, kingpin)


def add_trailing_arm(
    b: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    arm: Arm,
    hub: Hub,
    spring: Springs,
    travel: tuple[float, float] = (-math.inf, math.inf),
    tie_rod: TieRod | None = None,
    kingpin: Vector = (0.0, 0.0, 1.0),
    mirror: bool = False,
    label: str = "trailing_arm",
) -> Suspension:
    """Add a trailing arm, on a hinge along y. See ``add_swing_axle`` for the arguments."""
    return _arm(Corner(b, chassis, xform, mirror, label, "trailing arm"), Y, arm, hub, spring, travel, tie_rod, kingpin)


def add_double_wishbone(
    b: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    lower: Arm,
    upper: Arm,
    hub: Hub,
    spring: Springs,
    travel: tuple[float, float] = (-math.inf, math.inf),
    tie_rod: TieRod | None = None,
    mirror: bool = False,
    label: str = "double_wishbone",
) -> Suspension:
    """Add a double wishbone: two arms on hinges along x, and the hub between their outer ends.

    With a tie rod, the joints at the outer ends are ball joints that define the kingpin. Without a tie rod, the joints
    at the outer ends are hinges along x.

    Args:
        lower, upper: the arms. Torsion bars act on the hinge of the lower arm.
        hub: the wheel's carrier.
        spring: one spring or several. The foot of a coil is on the "lower" or "upper" arm or the "hub".
        b, chassis, xform, travel, tie_rod, mirror, label: as in ``add_swing_axle``.

    Raises:
        ModelError: an argument is invalid, or the wheel cannot reach a limit of ``travel``.
    """
    corner = Corner(b, chassis, xform, mirror, label, "double wishbone")
    return _four_bar(corner, X, lower, upper, hub, spring, travel, tie_rod)


def add_double_trailing_arm(
    b: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    lower: Arm,
    upper: Arm,
    hub: Hub,
    spring: Springs,
    travel: tuple[float, float] = (-math.inf, math.inf),
    tie_rod: TieRod | None = None,
    mirror: bool = False,
    label: str = "double_trailing_arm",
) -> Suspension:
    """Add a double trailing arm: two arms on hinges along y. See ``add_double_wishbone`` for the arguments."""
    corner = Corner(b, chassis, xform, mirror, label, "double trailing arm")
    return _four_bar(corner, Y, lower, upper, hub, spring, travel, tie_rod)


def add_sliding_pillar(
    b: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    hub: Hub,
    spring: Springs,
    pillar: Vector | None = None,
    axis: Vector = (0.0, 0.0, 1.0),
    travel: tuple[float, float] = (-math.inf, math.inf),
    tie_rod: TieRod | None = None,
    mirror: bool = False,
    label: str = "sliding_pillar",
) -> Suspension:
    """Add a sliding pillar: the hub slides along a pillar. With a tie rod, the hub also rotates.

    Args:
        hub: the wheel's carrier.
        spring: coils whose feet are on the "hub".
        pillar: a point on the pillar. Default: the wheel's center.
        axis: upward direction of the pillar.
        b, chassis, xform, travel, tie_rod, mirror, label: as in ``add_swing_axle``.

    Raises:
        ModelError: an argument is invalid, or ``axis`` does not point upward.
    """
    corner = Corner(b, chassis, xform, mirror, label, "sliding pillar")
    along, center = validate.direction(corner.element, "axis", axis), corner.center(hub)
    point = center if pillar is None else validate.numbers(corner.element, "pillar", pillar, 3)
    if along[2] < 0.1:
        rule = f"axis = {tuple(np.round(along, 3).tolist())} does not rise"
        raise validate.fail(corner.element, rule, "give the direction in which the hub moves up")

    def closing(q: float) -> Moves:
        return {"chassis": IDENTITY, "hub": Move(np.eye(3), q * along)}

    steering = corner.steering(tie_rod, lambda moves: (point, along))
    linkage = corner.linkage(closing, {"hub": hub.solid(corner.element)}, center, steering)
    plan = corner.plan(linkage, spring, travel, ("hub",), hinged=False)
    body = corner.body("hub", linkage.solids["hub"], center)
    low, high = plan.limits
    if tie_rod is None:
        joint = corner.joint("prismatic", -1, body, point, along, "travel", travel=True, limits=plan.limits)
    else:
        ranges = (low, -math.inf), (high, math.inf)
        joint = corner.joint("cylindrical", -1, body, point, along, "travel", travel=True, limits=ranges)
    return _finish(corner, plan, {"hub": body}, joint, tie_rod)


def add_macpherson_strut(
    b: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    lower: Arm,
    top: Vector,
    foot: Vector,
    hub: Hub,
    spring: Springs,
    rod_mass: float = 1.0,
    travel: tuple[float, float] = (-math.inf, math.inf),
    tie_rod: TieRod | None = None,
    mirror: bool = False,
    label: str = "macpherson_strut",
) -> Suspension:
    """Add a MacPherson strut: a lower arm on a hinge along x, and a hub that slides on a rod from the chassis.

    With a tie rod, the joint at the arm's outer end is a ball joint. The kingpin is the line from this ball joint to
    the top of the strut. Without a tie rod, all parts rotate only about x.

    Args:
        lower: the arm. Torsion bars act on the hinge of the arm.
        top: upper end of the strut's rod, on the chassis.
        foot: point of the hub on the axis of the strut.
        hub: the wheel carrier with the tube of the strut.
        spring: one spring or several. The foot of a coil is on the "hub" or the "lower" arm.
        rod_mass: mass (kg) of the rod.
        b, chassis, xform, travel, tie_rod, mirror, label: as in ``add_swing_axle``.

    Raises:
        ModelError: an argument is invalid, or the wheel cannot reach a limit of ``travel``.
    """
    corner = Corner(b, chassis, xform, mirror, label, "MacPherson strut")
    element, center = corner.element, corner.center(hub)
    inner, outer = corner.ends("lower", lower)
    high, low = two_points(element, "", ("top", top), ("foot", foot))
    rod = Arm(top, foot, validate.positive(element, "rod_mass", rod_mass), 0.01)
    axis, along = hinge(element, X, inner, outer, "lower"), (high - low) / np.linalg.norm(high - low)
    if abs(along[0]) > 1e-9 and tie_rod is None:
        raise validate.fail(element, "without a tie rod top and foot must have the same x", "align them, or steer it")
    strut = high - outer
    flat = np.eye(3) - np.outer(X, X) if tie_rod is None else np.eye(3)

    def closing(q: float) -> Moves:
        arm = rotation_about(axis, q, inner)
        ball = arm(outer)
        moved_strut = high - ball
        # First find the slide of the strut, then the hub rotation that aligns the strut with the top.
        along_strut = float(strut @ along)
        inside = along_strut**2 - float(strut @ strut - moved_strut @ moved_strut)
        if inside <= 0.0:
            raise Unreachable
        start, end = (
            flat @ (strut + (math.copysign(math.sqrt(inside), along_strut) - along_strut) * along),
            flat @ moved_strut,
        )
        normal = np.cross(start, end)
        size = float(np.linalg.norm(normal))
        carrier = rotation_about(normal / (size or 1.0), math.atan2(size, float(start @ end)), outer)
        return {"chassis": IDENTITY, "lower": arm, "hub": Move(carrier.rotation, carrier.shift + ball - outer)}

    def follow(moves: Moves) -> Moves:
        rotation = moves["hub"].rotation
        return {"rod": Move(rotation, high - rotation @ high)}

    def kingpin(moves: Moves) -> tuple[Array, Array]:
        ball = moves["lower"](outer)
        return ball, high - ball

    solids = {"lower": lower.solid(element, "lower"), "hub": hub.solid(element), "rod": rod.solid(element, "strut")}
    linkage = corner.linkage(closing, solids, center, corner.steering(tie_rod, kingpin))
    plan = corner.plan(replace(linkage, follow=follow), spring, travel, ("hub", "lower"))
    bodies = {name: corner.body(name, solid, center if name == "hub" else None) for name, solid in solids.items()}
    corner.picture(bodies["lower"], lower)
    corner.picture(bodies["rod"], rod)
    corner.picture(bodies["hub"], Arm(foot, outer))
    joint = corner.joint("revolute", -1, bodies["lower"], inner, axis, "lower", limits=plan.limits)
    if tie_rod is None:
        corner.joint("revolute", bodies["lower"], bodies["hub"], outer, X, "ball")
        corner.joint("prismatic", bodies["hub"], bodies["rod"], low, along, "strut", travel=True)
        corner.joint("planar_pin", -1, bodies["rod"], high, X, "top")
    else:
        corner.joint("ball", bodies["lower"], bodies["hub"], outer, None, "ball")
        corner.joint("cylindrical", bodies["hub"], bodies["rod"], low, along, "strut", travel=True)
        second = np.cross(along, X)
        corner.joint("universal", -1, bodies["rod"], high, X, "top", second=second / np.linalg.norm(second))
    return _finish(corner, plan, bodies, joint, tie_rod)


def _arm(
    corner: Corner,
    axis: Array,
    arm: Arm,
    hub: Hub,
    spring: Springs,
    travel: tuple[float, float],
    tie_rod: TieRod | None,
    kingpin: Vector,
) -> Suspension:
    """Add a suspension that consists of one arm on a hinge."""
    element, center = corner.element, corner.center(hub)
    inner, outer = corner.ends("arm", arm)
    axis = hinge(element, axis, inner, center, "arm")
    pin = validate.direction(element, "kingpin", kingpin)

    def closing(q: float) -> Moves:
        move = rotation_about(axis, q, inner)
        return {"chassis": IDENTITY, "arm": move, "hub": move}

    def line(moves: Moves) -> tuple[Array, Array]:
        return moves["arm"](outer), moves["arm"].rotation @ pin

    solids = {"arm": arm.solid(element, "arm"), "hub": hub.solid(element)}
    if tie_rod is None:
        solids = {"hub": solids["arm"] + solids["hub"]}
    linkage = corner.linkage(closing, solids, center, corner.steering(tie_rod, line))
    plan = corner.plan(linkage, spring, travel, ("arm", "hub"))
    bodies = {name: corner.body(name, solid, center if name == "hub" else None) for name, solid in solids.items()}
    bodies.setdefault("arm", bodies["hub"])
    corner.picture(bodies["arm"], arm)
    joint = corner.joint("revolute", -1, bodies["arm"], inner, axis, "arm", limits=plan.limits)
    if tie_rod is not None:
        corner.joint("revolute", bodies["arm"], bodies["hub"], outer, pin, "kingpin")
    return _finish(corner, plan, bodies, joint, tie_rod)


def _four_bar(
    corner: Corner,
    axis: Array,
    lower: Arm,
    upper: Arm,
    hub: Hub,
    spring: Springs,
    travel: tuple[float, float],
    tie_rod: TieRod | None,
) -> Suspension:
    """Add a suspension that consists of two arms on parallel hinges, with the hub between them."""
    element, center = corner.element, corner.center(hub)
    (low, foot), (high, head) = corner.ends("lower", lower), corner.ends("upper", upper)
    if np.linalg.norm(np.cross(axis, head - foot)) < 1e-6:
        rule = "lower.outer and upper.outer coincide, seen along the hinges"
        raise validate.fail(element, rule, "move one of them up or down")
    axis = hinge(element, axis, low, foot, "lower")

    def closing(q: float) -> Moves:
        arm = rotation_about(axis, q, low)
        moved = arm(foot)
        other = rotation_about(axis, rocker(axis, high, head, foot, moved), high)
        carrier = rotation_about(axis, angle_between(axis, head - foot, other(head) - moved), foot)
        hub_move = Move(carrier.rotation, carrier.shift + moved - foot)
        return {"chassis": IDENTITY, "lower": arm, "upper": other, "hub": hub_move}

    def kingpin(moves: Moves) -> tuple[Array, Array]:
        return moves["lower"](foot), moves["upper"](head) - moves["lower"](foot)

    solids = {"lower": lower.solid(element, "lower"), "upper": upper.solid(element, "upper")}
    solids["hub"] = hub.solid(element)
    linkage = corner.linkage(closing, solids, center, corner.steering(tie_rod, kingpin))
    plan = corner.plan(linkage, spring, travel, ("lower", "upper", "hub"))
    bodies = {name: corner.body(name, solid, center if name == "hub" else None) for name, solid in solids.items()}
    corner.picture(bodies["lower"], lower)
    corner.picture(bodies["upper"], upper)
    joint = corner.joint("revolute", -1, bodies["lower"], low, axis, "lower", limits=plan.limits)
    corner.joint("revolute", -1, bodies["upper"], high, axis, "upper")
    if tie_rod is None:
        corner.joint("revolute", bodies["lower"], bodies["hub"], foot, axis, "lower_ball")
        corner.joint("planar_pin", bodies["upper"], bodies["hub"], head, axis, "upper_ball")
    else:
        corner.joint("ball", bodies["lower"], bodies["hub"], foot, None, "lower_ball")
        corner.joint("ball", bodies["upper"], bodies["hub"], head, None, "upper_ball")
    return _finish(corner, plan, bodies, joint, tie_rod)


def _finish(corner: Corner, plan: Plan, bodies: dict[str, int], joint: int, tie_rod: TieRod | None) -> Suspension:
    """Add springs and tie rod, and return the Suspension."""
    springs = corner.springs(plan, bodies, joint)
    rod = corner.tie_rod(tie_rod, bodies["hub"])
    return Suspension(
        label=corner.label,
        hub=bodies["hub"],
        travel=joint,
        limits=plan.limits,
        bodies=bodies,
        springs=springs,
        tie_rod=rod,
        linkage=plan.linkage,
        laws=plan.laws,
        mirror=corner.mirror,
    )
