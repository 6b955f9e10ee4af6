"""Steering racks with tie rods, and trailer hitches.

L is the wheelbase. T is the distance between the kingpins. d is the steering angle of the bicycle model's front wheel.
Under Ackermann's condition, all wheels roll about one turning center on the line of the unsteered axle. R is the
distance from the center of the unsteered axle to the turning center. R is positive to the left:

    cot(d) = R/L,   cot(left) = (R - T/2)/L,   cot(right) = (R + T/2)/L

Angled steering arms (a trapezoid) meet Ackermann's condition exactly at one angle to the left and one to the right.
Parallel steering arms steer both wheels by the angle d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import WORLD
from gpusim.machines.linkage import IDENTITY, UP, Steering, Unreachable
from gpusim.machines.parts import TieRod
from gpusim.machines.suspensions import Suspension
from gpusim.machines.tie_rods import lateral_tie_rod
from gpusim.transform import Transform
from gpusim.typing import Vector

MODES = ("ackermann", "parallel")
KINDS = ("ball", "pin")
STEEPEST = 1.5
"""Maximum angle of the bicycle model's wheel, rad."""
STEPS = 32
"""Number of search steps along the travel of the rack."""
RACK_RADIUS = 0.02
"""Radius (m) of the rack's visual."""


@dataclass(frozen=True)
class SteeringRack:
    """A steering rack, from :func:`add_steering_rack`.

    Attributes:
        label: label of the servo and the joint. The label of the body is ``<label>_rack``.
        rack: body index of the rack.
        joint: slide of the rack. The joint coordinate is the rack's travel (m). Positive travel steers to the left.
        servo: index of the servo. The servo's command is the travel (m) of the rack.
        travel: maximum travel (m) to either side.
        arm: length (m) of the steering arms, positive if they point backward.
        wheelbase, half_track: wheelbase and half of the track (m) in Ackermann's condition (inf and 0 for parallel
            steering).
        angle: angle (rad) of the bicycle model's front wheel at which the steering meets Ackermann's condition.
    """

    label: str
    rack: int
    joint: int
    servo: int
    travel: float
    arm: float
    wheelbase: float
    half_track: float
    angle: float

    def tie_rod(self, kingpin: Vector, inner: float) -> TieRod:
        """Return the argument ``tie_rod`` for the suspension of one corner.

        Args:
            kingpin: point (m) on the kingpin at the height of the tie rod, in the corner's frame.
            inner: y coordinate (m) of the tie rod's inner end in the corner's frame.

        Raises:
            ModelError: no steering arm meets Ackermann's condition, or the rack's travel is too long for the steering
                arm and the tie rod.
        """
        rod = lateral_tie_rod(kingpin, self.arm, inner, self.wheelbase, self.half_track, self.angle, self.rack)
        start, element = np.asarray(kingpin, float), f"steering rack '{self.label}'"
        steering = Steering(lambda moves: (start, UP), *rod.ends(element))
        if not _reaches(steering, self.travel):
            low, high = 0.0, self.travel
            for _ in range(STEPS):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if _reaches(steering, middle) else (low, middle)
            rule = f"travel = {self.travel:g} m is above {low:.3g} m, the reach of arm and tie rod"
            raise validate.fail(element, rule, "give a shorter travel, a longer arm, or parallel steering")
        return rod

    def angles(self, corners: Sequence[Suspension], command: float) -> tuple[float, ...]:
        """Return the analytic headings (rad, positive to the left) of both wheels at zero suspension travel.

        ``command`` is the travel (m) of the rack.

        The headings are angles seen from above. ``Suspension.steering_angle`` is the angle about the kingpin, which is
        slightly larger for an inclined kingpin.

        Raises:
            ModelError: a tie rod is too short for the travel, or ``corners`` are not two suspensions with tie rods.
        """
        if len(corners) < 2 or any(corner.tie_rod is None for corner in corners):
            rule = "corners are not two suspensions with tie rods of this rack"
            raise validate.fail(f"steering rack '{self.label}'", rule, "give the steered suspensions, left and right")
        shift, headings = -command if self.arm > 0.0 else command, []
        for corner in corners:
            side = -1.0 if corner.mirror else 1.0
            try:
                axle = corner.linkage.moves(0.0, np.array([0.0, side * shift, 0.0]))["hub"].rotation[:, 1]
            except Unreachable:
                rule = f"the tie rod of '{corner.label}' is too short for {command:g} m"
                raise validate.fail(f"steering rack '{self.label}'", rule, "give a smaller travel") from None
            headings.append(side * math.atan2(-axle[0], axle[1]))
        return tuple(headings)

    def steering_angle(self, corners: Sequence[Suspension], command: float) -> float:
        """Return the angle (rad) of the bicycle model's front wheel, from the mean cotangent of the wheel angles."""
        angles = self.angles(corners, command)
        if any(abs(angle) < 1e-12 for angle in angles):
            return 0.0
        return math.atan(1.0 / float(np.mean([1.0 / math.tan(angle) for angle in angles])))

    def command(self, corners: Sequence[Suspension], angle: float) -> float:
        """Return the rack's travel (m) for an angle (rad) of the bicycle model's front wheel.

        Raises:
            ModelError: the angle requires more travel than the rack has.
        """
        before = 0.0
        for travel in np.linspace(0.0, self.travel, STEPS + 1)[1:].tolist():
            if self.steering_angle(corners, travel) >= abs(angle):
                break
            before = travel
        else:
            max_angle = self.steering_angle(corners, self.travel)
            rule = f"angle = {angle:g} rad is above {max_angle:.3g} rad, the angle at its maximum travel"
            raise validate.fail(f"steering rack '{self.label}'", rule, "give a smaller angle, or a longer travel")
        if angle == 0.0:
            return 0.0
        from scipy.optimize import brentq  # slow to import

        size = brentq(lambda x: self.steering_angle(corners, x) - abs(angle), before, travel)
        return math.copysign(float(size), angle)


def _reaches(steering: Steering, travel: float) -> bool:
    """Return True if the tie rod is long enough for the rack's travel in both directions."""
    try:
        for shift in (travel, -travel):
            steering.move({"hub": IDENTITY}, np.array([0.0, shift, 0.0]))
    except Unreachable:
        return False
    return True


def add_steering_rack(
    b: ModelBuilder,
    chassis: int,
    at: Vector,
    *,
    travel: float,
    arm: float,
    mode: str = "ackermann",
    wheelbase: float = math.inf,
    track: float = 0.0,
    angle: float = 0.3,
    mass: float = 2.0,
    stiffness: float = 4e6,
    damping: float = 4e5,
    force: float = math.inf,
    label: str = "steer",
) -> SteeringRack:
    """Add a steering rack. Add the suspensions afterwards, with ``tie_rod=rack.tie_rod(kingpin, inner)``.

    The rack is a body that slides along the chassis' y axis. A position servo moves the rack. The command ``label`` is
    the rack's travel (m). ``rack.command(corners, angle)`` converts a steering angle (rad) to the travel.

    Args:
        b: the builder.
        chassis: body index, -1 for the world.
        at: center (m) of the rack in the chassis' frame, at the height of the tie rods' inner ends.
        travel: maximum travel (m) to either side, limited by rigid stops.
        arm: length (m) of the steering arms, positive if they point backward from the kingpin.
        mode: "ackermann" or "parallel".
        wheelbase: distance (m) from the kingpins to the unsteered axle.
        track: distance (m) between the kingpins.
        angle: angle (rad) of the bicycle model's front wheel at which the steering meets Ackermann's condition exactly.
        mass: mass (kg) of the rack.
        stiffness, damping, force: gains (N/m, N s/m) and maximum force (N) of the servo. The time constant (s) of the
            servo is damping / stiffness.
        label: label of the joint, the servo and the command.

    Raises:
        ModelError: an argument is invalid, or ``wheelbase`` or ``track`` is missing with ``mode="ackermann"``.
    """
    element = f"steering rack '{label}'"
    host = b.check_body(element, "chassis", chassis)
    position = validate.numbers(element, "at", at, 3)
    max_travel, length = validate.positive(element, "travel", travel), validate.number(element, "arm", arm)
    validate.choice(element, "mode", mode, MODES)
    if max_travel >= abs(length):
        rule = f"travel = {max_travel:g} m is not below the steering arm's length, {abs(length):g} m"
        raise validate.fail(element, rule, "give a shorter travel or a longer arm")
    if not 0.0 < validate.number(element, "angle", angle) <= STEEPEST:
        rule = f"angle = {angle:g} rad is not within 0 to {STEEPEST:g}"
        raise validate.fail(element, rule, "give the angle at which Ackermann's condition is met, such as 0.3")
    base = validate.positive(element, "wheelbase", wheelbase, infinite=True)
    half = 0.5 * validate.not_negative(element, "track", track)
    if mode == "ackermann" and (math.isinf(base) or half == 0.0):
        rule = "Ackermann's steering needs wheelbase and track"
        raise validate.fail(element, rule, 'give both in m, or mode="parallel"')
    m = validate.positive(element, "mass", mass)
    start = Transform() if host == WORLD else b.bodies[host].xform
    pose = Transform(start.apply(position), start.rotation)
    half_width = max(half, 2.0 * max_travel)
    transverse, axial = m * (half_width**2 / 3.0 + RACK_RADIUS**2 / 4.0), 0.5 * m * RACK_RADIUS**2
    rack = b.add_body(m, (transverse, axial, transverse), xform=pose, label=f"{label}_rack")
    along_y = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)
    b.add_visual(rack, "capsule", RACK_RADIUS, 0.6 * half_width, xform=along_y)
    direction = -math.copysign(1.0, length)  # a rear steering arm steers left if its end moves right
    joint = b.add_joint_prismatic(
        host, rack, axis=(0.0, direction, 0.0), at=pose, limit_lower=-max_travel, limit_upper=max_travel, label=label
    )
    servo = b.add_servo(joint, stiffness=stiffness, damping=damping, effort_limit=force, label=label)
    if mode == "parallel":
        base, half = math.inf, 0.0
    return SteeringRack(label, rack, joint, servo, max_travel, length, base, half, float(angle))


@dataclass(frozen=True)
class Hitch:
    """A hitch, from :func:`add_trailer_hitch`.

    Attributes:
        joint: joint between tractor and trailer. The joint's coordinates are initially zero.
        kind: "ball" or "pin".
        at: initial position (m) of the hitch in the world.
    """

    joint: int
    kind: str
    at: tuple[float, float, float]


def add_trailer_hitch(
    b: ModelBuilder,
    tractor: int,
    trailer: int,
    at: Vector,
    *,
    kind: str = "ball",
    limit: float = math.inf,
    damping: float = 0.0,
    friction: float = 0.0,
    label: str = "hitch",
) -> Hitch:
    """Connect a trailer to a tractor by a joint.

    Args:
        b: the builder.
        tractor, trailer: body indices.
        at: position (m) of the hitch in the tractor's frame.
        kind: "ball" (free yaw, pitch and roll of the trailer) or "pin" (only yaw, about an upright bolt).
        limit: maximum angle (rad) to either side. A ball limits the total rotation angle, and a pin limits the yaw
            angle.
        damping: viscous damping (N m s/rad).
        friction: dry friction (N m).
        label: label of the joint.

    Raises:
        ModelError: tractor and trailer are the same body, tractor or trailer is the world, the kind is unknown, or a
            number is out of range.
    """
    element = f"trailer hitch '{label}'"
    front, rear = b.check_body(element, "tractor", tractor), b.check_body(element, "trailer", trailer)
    if WORLD in (front, rear) or front == rear:
        raise validate.fail(element, "tractor and trailer are not two bodies", "give the indices of two bodies")
    origin = b.bodies[front].xform.apply(validate.numbers(element, "at", at, 3))
    max_angle = validate.positive(element, "limit", limit, infinite=True)
    point = (float(origin[0]), float(origin[1]), float(origin[2]))
    frame = Transform(origin, b.bodies[front].xform.rotation)
    losses: dict[str, Any] = {
        "damping": validate.not_negative(element, "damping", damping),
        "friction": validate.not_negative(element, "friction", friction),
    }
    validate.choice(element, "kind", kind, KINDS)
    if kind == "ball":
        if math.isfinite(max_angle) and max_angle >= math.pi:
            raise validate.fail(element, f"limit = {max_angle:g} rad is not below pi", "give less, or leave it out")
        joint = b.add_joint_ball(front, rear, at=frame, limit=max_angle, label=label, **losses)
    else:
        losses |= {"limit_lower": -max_angle, "limit_upper": max_angle}
        joint = b.add_joint_revolute(front, rear, at=frame, axis=(0.0, 0.0, 1.0), label=label, **losses)
    return Hitch(joint, kind, point)
