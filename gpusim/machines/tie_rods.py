"""Tie rods that lie across the vehicle, with steering arms for parallel or Ackermann's steering."""

from __future__ import annotations

import math

import numpy as np

from gpusim.machines.linkage import STAY, UP, Steering, Unreachable
from gpusim.machines.parts import TieRod
from gpusim.model import validate
from gpusim.typing import Vector

ELEMENT = "lateral_tie_rod"


def lateral_tie_rod(
    kingpin: Vector,
    length: float,
    inner: float,
    wheelbase: float = math.inf,
    half_track: float = 0.0,
    angle: float = 0.3,
    rack: int | None = None,
) -> TieRod:
    """Place a tie rod along y on a steering arm, for a rack that slides along y and an upright kingpin.

    Parallel steering has its arms along x and turns both wheels alike. With Ackermann's the arms slant, about towards
    the middle of the rear axle, so that cot(outer) - cot(inner) = track/wheelbase: both wheels turn about one point on
    its line. A trapezoid does so at one angle, and nearly below it.

    Args:
        kingpin: point on the kingpin at the height of the tie rod, in the corner's frame.
        length: of the steering arm, m; it points backward, below zero forward.
        inner: y of the tie rod's inner end, below that of the outer end.
        wheelbase: from the kingpin back to the other axle, m; left out: parallel steering.
        half_track: from the kingpin to the vehicle's middle plane, m.
        angle: where Ackermann's condition holds, rad (mean of both wheels).
        rack: as of ``TieRod``.

    Raises:
        ModelError: a number breaks a rule, or no such arm meets the condition.
    """
    start, arm = validate.numbers(ELEMENT, "kingpin", kingpin, 3), validate.number(ELEMENT, "length", length)
    base = validate.positive(ELEMENT, "wheelbase", wheelbase, infinite=True)
    ideal = 2.0 * validate.not_negative(ELEMENT, "half_track", half_track) / base
    shift = abs(arm) * math.sin(validate.positive(ELEMENT, "angle", angle))
    inward = validate.number(ELEMENT, "inner", inner)

    def rod(slant: float) -> TieRod:
        outer = start - arm * np.array([math.cos(slant), math.sin(slant), 0.0])
        return TieRod((outer[0], inward, outer[2]), outer, rack)

    def error(slant: float) -> float:
        steering = Steering(lambda moves: (start, UP), *rod(slant).ends(ELEMENT))
        moved = [steering.move({"hub": STAY}, side * shift * np.array([0.0, 1.0, 0.0]))[0] for side in (1.0, -1.0)]
        out, back = (1.0 / math.tan(abs(turn)) for turn in moved)
        return math.copysign(1.0, arm) * (out - back) - ideal

    if arm == 0.0 or inward >= start[1] - 0.1 * abs(arm):
        rule = f"length = {arm:g} and inner = {inward:g} leave no room for an arm and a rod"
        raise validate.fail(ELEMENT, rule, "give a length that is not 0, and inner well below the kingpin's y")
    if ideal == 0.0:
        return rod(0.0)
    steps = np.linspace(0.0, 1.0, 21)
    try:
        upper = next(slant for slant in steps if error(float(slant)) > 0.0)
    except (StopIteration, Unreachable):
        rule = f"no steering arm of {arm:g} m meets Ackermann's condition at angle = {angle:g} rad"
        raise validate.fail(ELEMENT, rule, "give a smaller angle, a longer wheelbase, or inner farther in") from None
    from scipy.optimize import brentq  # heavy to import

    return rod(float(brentq(error, 0.0, float(upper))))
