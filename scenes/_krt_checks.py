"""Checks of krt100m by what it is told: to cross an obstacle, to drive a circle, to turn on the spot, to stand.

Ways are those of wheels that roll: the bicycle model by how far they turn, with slip that is in proportion to forces.
What an obstacle under one side turns it by follows from the energy that the obstacle can take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpusim.scene import Check, Unchecked
from gpusim.scenes._checks import Recording

GRAVITY, DURATION = 9.81, 7.0
#: Of the commands: they grow from, to, s.
RISE = (0.5, 1.0)
WHEELBASE, TRACK, RADIUS, TRAILER_X = 1.6, 1.2, 0.3, -2.7
OBSTACLE_X, KERB, WAVES = 2.5, 0.3, 4.0
#: Slip stiffnesses of the tires over their loads, along and across; share of the load that resists rolling.
ALONG, ACROSS, ROLLING = 15.0, 10.0, 0.015
#: Of the drives: N m, rad/s, and rad/s that the one on the sides gives way.
TORQUE, FREE_SPEED, GIVES_WAY = 1600.0, 20.0, 0.8
BRAKE = 500.0
#: Lever of the lower arms, whose parallel upper ones lift the wheel as far; mass of a wheel with hub and arms; m, kg.
LEVER, UNSPRUNG = 0.27, 22.5
#: Without an obstacle: off the line, m; of a circle, share of the way; of the way by the wheels, share.
LINE, CIRCLE, ROLLED = 5e-3, 0.025, 0.03
#: Of the friction, up to which tires surely hold.
HOLDS = 0.9
WAYS = {
    "kerb": "crosses a kerb with its left wheels",
    "sine": "crosses waves with its left wheels",
    "step": "climbs a step with its left wheels",
    "none": "drives on level ground",
}
DROOPS = "while the left wheels climb the right ones droop, within their travel"
HELD, STANDS, TURNS = "its brakes hold it", "it stands, within 1 cm", "its sides turn apart as they are told"
CIRCLES = "it drives the circle of the bicycle model"


@dataclass(frozen=True)
class Given:
    """Parameters of the scene, and its loads.

    Attributes:
        loads: of a wheel of the axles, N, of the robot's two and the trailer's.
        rolling: radius that the wheels roll on, m.
        limits: of the suspensions' coordinates by signal.
    """

    obstacle: str
    height: float
    speed: float
    turn: float
    steer: float
    drive_mode: str
    travel: float
    stiffness: float
    damping: float
    friction: float
    slope: float
    brake: bool
    loads: tuple[float, ...]
    rolling: float
    limits: dict[str, tuple[float, float]]

    @property
    def weight(self) -> float:
        """Of the vehicle, N."""
        return 2.0 * sum(self.loads)

    @property
    def robot(self) -> float:
        """Of what stands on the driven wheels, N."""
        return 2.0 * sum(self.loads[:2])

    @property
    def grip(self) -> float:
        """Friction of tires and ground: the geometric mean."""
        return math.sqrt(max(self.friction, 0.0))

    @property
    def pull(self) -> float:
        """Force along the ground that the drive works against going forward, N."""
        return -self.weight * math.sin(self.slope)

    @property
    def crosses(self) -> str:
        """What it does on its line."""
        return f"it {WAYS[self.obstacle]} and stays on its line"


def krt_checks(given: Given) -> list[Check | Unchecked]:
    """Those that apply, and the others."""
    if given.brake:
        return [_braked(given), *_left_out(given, "its brakes are on")]
    if given.turn != 0.0:
        return [_turning(given), *_left_out(given, "it turns aside")]
    held = HOLDS * given.grip * given.robot * math.cos(given.slope)
    if abs(given.pull) > held:
        return _left_out(given, "its tires slide on the slope")
    if given.speed == 0.0 and given.slope == 0.0:
        return [Check(STANDS, _stands), *_left_out(given, "it stands")]
    if given.steer != 0.0:
        return [_circling(given), *_left_out(given, "it turns aside")]
    return _straight(given)


def _left_out(given: Given, reason: str) -> list[Check | Unchecked]:
    both = [given.crosses, *([] if given.obstacle == "none" else [DROOPS])]
    return [Unchecked(statement, reason) for statement in both]


def _braked(given: Given) -> Check | Unchecked:
    """Where friction and the brakes' torque are enough, for drives too that work against them."""
    if abs(math.tan(given.slope)) > HOLDS * given.grip:
        return Unchecked(HELD, "its tires slide on the slope")
    wheels = 2 * len(given.loads)
    share = abs(given.speed) / (FREE_SPEED * RADIUS) if given.drive_mode == "motor" else float(given.speed != 0.0)
    torque = 0.25 * TORQUE * (share + float(given.turn != 0.0)) + abs(given.pull) * given.rolling / wheels
    if torque > BRAKE:
        return Unchecked(HELD, f"its drives push with {torque:.3g} N m against {BRAKE:g} N m of each brake")
    return Check(HELD, _is_held)


def _is_held(run: Recording) -> bool:
    """It has settled after 3 s."""
    place = run["body.chassis.position"][run["time"] > 3.0, 0]
    return bool(np.ptp(place, axis=0).max() < 1e-4 and np.abs(run["joint.mean.position"]).max() < 1e-3)


def _stands(run: Recording) -> bool:
    place = run["body.chassis.position"][:, 0]
    return bool(
        np.linalg.norm(place - place[0], axis=1).max() < 1e-2 and np.abs(run["joint.mean.position"]).max() < 0.03
    )


def _turning(given: Given) -> Check | Unchecked:
    """By the drive on their difference, which gives way by its torque over its gain."""
    if given.slope != 0.0:
        return Unchecked(TURNS, "on a slope its weight turns it too")

    def passes(run: Recording) -> bool:
        late = run["time"] > 3.0
        left, right = (0.5 * sum(run[f"joint.{end}{side}_spin.velocity"][late, 0] for end in "fr") for side in "lr")
        off = np.mean(0.5 * (right - left)) - given.turn / RADIUS
        return bool(abs(off) < GIVES_WAY)

    return Check(f"{TURNS}, within the {GIVES_WAY:g} rad/s that their drive gives way", passes)


def _circling(given: Given) -> Check | Unchecked:
    """By the wheels' turns; rear tires slip by the acceleration aside over g and their stiffness."""
    if given.slope != 0.0:
        return Unchecked(CIRCLES, "on a slope its weight draws it aside")
    if given.speed < 0.0 and len(given.loads) > 2:
        return Unchecked(CIRCLES, "a trailer that is pushed folds")
    ahead = abs(given.speed) / (RISE[1] - RISE[0]) if given.drive_mode == "speed" else 0.0
    both = math.hypot(given.speed**2 * math.tan(abs(given.steer)) / WHEELBASE, ahead)
    if both > 0.5 * given.grip * GRAVITY:
        return Unchecked(CIRCLES, f"{both:.2g} m/s2 ahead and aside are too much for its tires")

    def passes(run: Recording) -> bool:
        place, told = run["body.chassis.position"][:, 0, :2], _circle(run, given)
        way = abs(float(run["joint.mean.position"][-1, 0])) * given.rolling
        off = np.linalg.norm(place - place[0] - told, axis=1).max()
        least = 0.5 * abs(given.speed) * (DURATION - RISE[1]) - _delay(given)
        return bool(off < LINE + (CIRCLE + _heading(given)) * way and way > least)

    return Check(f"{CIRCLES}, within {100.0 * CIRCLE:g} % of the way", passes)


def _circle(run: Recording, given: Given) -> np.ndarray:
    """Places of the chassis' middle, (n, 2): the rear axle goes ahead but for its slip, and turns by v tan(angle)/L."""
    time, turned = run["time"], run["joint.mean.position"][:, 0] * given.rolling
    angle = np.interp(0.5 * (time[1:] + time[:-1]), RISE, (0.0, given.steer))
    # the front wheels go farther, by 1/cos of their angle
    way = 2.0 * np.diff(turned) / (1.0 + 1.0 / np.cos(angle))
    turns = way * np.tan(angle) / WHEELBASE
    slip = way * turns / np.diff(time) ** 2 / (ACROSS * GRAVITY)
    yaw = np.concatenate([[0.0], np.cumsum(turns)])
    heading = 0.5 * (yaw[1:] + yaw[:-1]) - slip * np.sign(way)
    steps = way[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    rear = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
    half = 0.5 * WHEELBASE
    return np.asarray(rear + half * np.stack([np.cos(yaw) - 1.0, np.sin(yaw)], axis=1))


def _straight(given: Given) -> list[Check | Unchecked]:
    """Over the obstacle, if it comes past it in time; else on its line alone."""
    if given.obstacle == "none":
        return [Check(given.crosses, _crosses(given, None))]
    most = _pace(given) * (DURATION - 0.5 * sum(RISE))
    if given.speed <= 0.0 or most < OBSTACLE_X - TRAILER_X + KERB + _delay(given):
        if most > 0.0:
            return _left_out(given, "it comes too late to be past it")
        return [Check("it stays on its line", _crosses(given, None)), *_left_out(given, "it does not drive towards it")]
    force = _taken(given) / (2.0 * _climb(given))
    if force * 0.5 * TRACK / WHEELBASE > given.grip * given.robot / 2.0:
        return _left_out(given, "its tires slide aside while it climbs")
    # a wheel that hangs free droops by its load alone
    hangs = given.loads[0] * LEVER / max(given.stiffness, 1e-9)
    least = 0.7 * min(given.height, given.travel, hangs)
    return [Check(given.crosses, _crosses(given, OBSTACLE_X + KERB - TRAILER_X)), _droops(given.limits, least)]


def _pace(given: Given) -> float:
    """Steady speed of the drive on the slope, m/s: that of a motor falls with its torque."""
    if given.drive_mode != "motor":
        return given.speed / RADIUS * given.rolling
    force = given.pull + math.copysign(ROLLING * given.weight, given.speed)
    return given.rolling * (given.speed / RADIUS - FREE_SPEED * force * given.rolling / TORQUE)


def _climb(given: Given) -> float:
    """Way along the ground on which a wheel climbs the edge, or a wave, m."""
    if given.obstacle == "sine":
        return 0.5
    return math.sqrt(2.0 * RADIUS * given.height - given.height**2)


def _taken(given: Given) -> float:
    """Energy that the obstacle takes from the left wheels of the robot at most, J.

    A wheel that rolls onto an edge lifts its load and bends its spring, which give back nothing where it falls off, and
    moves the damper: on the wheel's circle the integral of its speed over the height is v R (ln(sec + tan) - sin) of
    the angle that it begins at. Over waves without leaping it moves the damper alone.
    """
    pace = abs(_pace(given))
    load = max(given.loads[:2])
    stiffness, damping = given.stiffness / LEVER**2, given.damping / LEVER**2
    if given.obstacle == "none":
        return 0.0
    lifted = load * given.height + 0.5 * stiffness * given.height**2
    if given.obstacle == "sine":
        rate = math.pi * given.height
        leaps = 2.0 * math.pi * rate * pace**2 > load / UNSPRUNG
        damped = 0.5 * damping * pace * rate**2 + 0.5 * UNSPRUNG * (pace * rate) ** 2
        return 2.0 * WAVES * (damped + (lifted if leaps else 0.0))
    start = math.acos(1.0 - given.height / RADIUS)
    bend = math.log(1.0 / math.cos(start) + math.tan(start)) - math.sin(start)
    return 2.0 * (lifted + damping * pace * RADIUS * bend + 0.5 * UNSPRUNG * (pace * math.tan(start)) ** 2)


def _heading(given: Given) -> float:
    """Angle that the obstacle turns the vehicle by at most, rad.

    The left wheels' force F at half the track turns it against its tires' forces aside, yaw rate times sum(C x2)/v:
    over the crossing the angle is (track/2) times the work of F over sum(C x2).
    """
    return 0.5 * TRACK * _taken(given) / (ACROSS * given.robot * (0.5 * WHEELBASE) ** 2)


def _delay(given: Given) -> float:
    """Way that the obstacle costs, m: of a motor, whose speed falls with its torque; with the trailer's wheels."""
    if given.drive_mode != "motor" or given.speed == 0.0:
        return 0.0
    lost = 1.5 * _taken(given) / max(abs(_pace(given)), 1e-3)
    return given.rolling**2 * FREE_SPEED / TORQUE * lost


def _crosses(given: Given, past: float | None) -> Callable[[Recording], bool]:
    """All wheels are past ``past`` (m), where a kerb ends, on the line, having rolled as far as they turned.

    But for slip. The line is kept but for what the obstacle turns it by; 3 % are left for the way over it.
    """
    stiffness = ALONG * given.robot

    def passes(run: Recording) -> bool:
        place = run["body.chassis.position"][:, 0]
        x = float(place[-1] @ (math.cos(given.slope), 0.0, -math.sin(given.slope)))
        rolled = float(run["joint.mean.position"][-1, 0]) * given.rolling
        slip = (math.copysign(given.pull, given.pull * rolled) + ROLLING * given.weight) / stiffness
        most = LINE + (_heading(given) * max(x - OBSTACLE_X, 0.0) if past is not None else 0.0)
        reached = abs(x) > 0.2 if past is None else x > past
        return bool(reached and abs(place[-1, 1]) < most and abs(x / rolled - 1.0 + slip) < ROLLED)

    return passes


def _droops(most: dict[str, tuple[float, float]], least: float) -> Check:
    """While the left wheels climb, the right ones droop, all within their travel.

    Args:
        most: limits of the suspensions' coordinates by signal, rad (m).
        least: by which front wheels climb and droop at the least, rad of their lower arms.
    """

    def passes(run: Recording) -> bool:
        slack = 1e-3  # rad: 0.5 mm at the wheel
        within = all(
            run[name].min() > low - slack and run[name].max() < high + slack for name, (low, high) in most.items()
        )
        left, right = (run[f"joint.{name}_lower.position"] for name in ("fl", "fr"))
        return bool(within and left.max() > least and right.min() < -least)

    return Check(DROOPS, passes)
