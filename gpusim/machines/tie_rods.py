"""Lateral tie rods with steering arms for parallel or Ackermann steering."""

from __future__ import annotations

import math

import numpy as np

from gpusim import validate
from gpusim.machines.linkage import IDENTITY, UP, Steering, Unreachable, rotation_about
from gpusim.machines.parts import TieRod
from gpusim.typing import Array, Vector

ELEMENT = "lateral_tie_rod"
SAME = 1e-6
"""Maximum difference (rad) between angles that count as equal."""


def ackermann(angle: float, wheelbase: float, track: float) -> tuple[float, float]:
    """Return the angles (rad, positive to the left) of the left and right wheels that meet Ackermann's condition.

    Args:
        angle: angle (rad) of the bicycle model's front wheel, below pi/2 in magnitude.
        wheelbase: wheelbase (m).
        track: distance (m) between the kingpins.
    """
    if angle == 0.0:
        return 0.0, 0.0
    distance = wheelbase / math.tan(abs(angle))
    inner, outer = (math.atan2(wheelbase, distance + side * 0.5 * track) for side in (-1.0, 1.0))
    return (inner, outer) if angle > 0.0 else (-outer, -inner)


def lateral_tie_rod(
    kingpin: Vector,
    length: float,
    inner: float,
    wheelbase: float = math.inf,
    half_track: float = 0.0,
    angle: float = 0.3,
    rack: int | None = None,
) -> TieRod:
    """Return a tie rod between a rack that slides along y and a steering arm on an upright kingpin.

    With parallel steering, the arms are along x, and both wheels have equal angles. With Ackermann steering, the lines
    along both arms intersect near the center of the rear axle. Ackermann's condition is cot(outer) - cot(inner) =
    track/wheelbase. The wheels meet the condition exactly at the steering angle ``angle``, and approximately at smaller
    angles.

    Args:
        kingpin: point on the kingpin at the height of the tie rod, in the corner's frame.
        length: length (m) of the steering arm, positive if the arm points backward.
        inner: y coordinate (m) of the tie rod's inner end: ``inner < kingpin[1] - 0.1 * abs(length)``.
        wheelbase: distance (m) from the kingpin to the rear axle. Default: parallel steering.
        half_track: distance (m) from the kingpin to the vehicle's center plane.
        angle: steering angle (rad) of the bicycle model, less than pi/2, at which Ackermann's condition holds exactly.
            The cotangent of ``angle`` is the mean cotangent of the wheel angles.
        rack: body index of the rack, as in ``TieRod``.

    Raises:
        ModelError: an argument is invalid, or no steering arm meets Ackermann's condition.
    """
    start, arm = validate.numbers(ELEMENT, "kingpin", kingpin, 3), validate.number(ELEMENT, "length", length)
    base = validate.positive(ELEMENT, "wheelbase", wheelbase, infinite=True)
    track = 2.0 * validate.not_negative(ELEMENT, "half_track", half_track)
    inward = validate.number(ELEMENT, "inner", inner)
    if not 0.0 < validate.number(ELEMENT, "angle", angle) < 0.5 * math.pi:
        raise validate.fail(ELEMENT, f"angle = {angle:g} rad is not within 0 to pi/2", "give one such as 0.3")
    if arm == 0.0 or inward >= start[1] - 0.1 * abs(arm):
        rule = f"length = {arm:g} and inner = {inward:g} leave no room for an arm and a rod"
        raise validate.fail(ELEMENT, rule, "give a length that is not 0, and inner well below the kingpin's y")

    def rod(slant: float) -> TieRod:
        outer = start - arm * np.array([math.cos(slant), math.sin(slant), 0.0])
        return TieRod((outer[0], inward, outer[2]), outer, rack)

    if track / base == 0.0:
        return rod(0.0)
    inside, outside = ackermann(angle, base, track)

    def error(slant: float) -> float:
        """Return the rack travel for the inner wheel's angle minus the rack travel for the outer wheel's angle (m)."""
        return math.copysign(1.0, arm) * (_rack(rod(slant), start, inside) + _rack(rod(slant), start, -outside))

    steps = np.linspace(0.0, 1.0, 21)
    try:
        upper = next(slant for slant in steps if error(float(slant)) > 0.0)
    except (StopIteration, Unreachable):
        rule = f"no steering arm of {arm:g} m meets Ackermann's condition at angle = {angle:g} rad"
        raise validate.fail(ELEMENT, rule, "give a smaller angle, a longer wheelbase, or a smaller inner") from None
    from scipy.optimize import brentq  # slow to import

    return rod(float(brentq(error, 0.0, float(upper))))


def _rack(rod: TieRod, kingpin: Array, angle: float) -> float:
    """Return the rack position (m) at which the left wheel is rotated by ``angle`` (rad) about the upright kingpin.

    Raises:
        Unreachable: the tie rod is too short, or it would become collinear with the steering arm.
    """
    steering = Steering(lambda moves: (kingpin, UP), *rod.ends(ELEMENT))
    end = rotation_about(UP, angle, kingpin)(steering.outer)
    length, offset = float(np.linalg.norm(steering.outer - steering.inner)), float(end[0] - steering.inner[0])
    if abs(offset) >= length:
        raise Unreachable
    rack = float(end[1] - steering.inner[1]) - math.sqrt(length**2 - offset**2)
    if abs(steering.move({"hub": IDENTITY}, np.array([0.0, rack, 0.0]))[0] - angle) > SAME:
        raise Unreachable
    return rack
