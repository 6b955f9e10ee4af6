"""A suspension on a test rig settles and hits both end stops, then a shaker moves the wheel.

The suspensions are from the VirSim paper on wheels (section 1, figures 1 to 4): swing axle, trailing arm, double
trailing arm, double wishbone, sliding pillar, MacPherson strut. The chassis is on a vertical guide. A pad on the
shaker's plate carries the wheel's center, and can slide on the plate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

import gpusim
from gpusim import machines as m
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Range, Scene, require
from gpusim.scenes._checks import GAPS, Recording, joints_stay_closed

NAME = "suspension_rig"
GRAVITY = 9.81
STOP_FORCE = 9000.0
"""Force on the chassis that pushes the suspension against its end stops, N."""
PRESS_TIMES, LIFT_TIMES = (3.0, 3.5), (3.5, 4.0)
"""Start and end (s) of the force that pushes against the upper end stop, then of the force against the lower one."""
SHAKER_SCHEDULE = ((6.0, 0.0), (6.2, 0.04), (6.6, 0.04), (6.8, 0.0))
"""Schedule of the shaker: times (s) and heights (m)."""
SHAKER_STIFFNESS, SHAKER_DAMPING = 1e9, 1e7
HUB = m.Hub((0.0, 0.60, 0.30), 18.0, (0.3, 0.5, 0.35))
RADIUS, HALF_WIDTH = 0.3, 0.08
PLATE = -0.02
"""Initial height of the center of the shaker's plate, m."""
Kind = Literal[
    "swing_axle", "trailing_arm", "double_trailing_arm", "double_wishbone", "sliding_pillar", "macpherson_strut"
]


def build(
    kind: Kind = "double_wishbone",
    spring: Literal["coil", "torsion"] = "coil",
    steered: bool = False,
    load: Annotated[float, Range(above=500.0)] = 2500.0,
    payload: Annotated[float, Range(0.5, 2.0)] = 1.02,
    stiffness: Positive = 30e3,
    damping: NotNegative = 2500.0,
    travel_up: Positive = 0.07,
    travel_down: Positive = 0.08,
) -> Scene:
    """Build the scene.

    The commands are "press" and "lift" (forces on the chassis, relative to 9 kN) and "shaker" (height, m).

    Args:
        kind: type of suspension.
        spring: type of spring: a coil, or a torsion bar on the arm's hinge (not for a sliding pillar).
        steered: True adds a kingpin and a tie rod.
        load: wheel load at the design position of the suspension, N, above 500.
        payload: actual load divided by ``load``, 0.5 to 2.
        stiffness: stiffness of a coil, or approximate stiffness of a torsion bar at the wheel's center, N/m, above 0.
        damping: damping of the damper, N s/m, 0 or more.
        travel_up: maximum upward travel of the wheel, m, above 0.
        travel_down: maximum downward travel of the wheel, m, above 0.
    """
    hinged = kind != "sliding_pillar"
    require(hinged or spring == "coil", NAME, "spring", spring, "must be 'coil' for a sliding pillar")
    options = parts(kind, spring, load, stiffness, damping, (-travel_down, travel_up))
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    chassis, susp = _add_rig(b, ADD[kind], steered, payload * load, options)
    b.add_force(chassis, (0.0, 0.0, -STOP_FORCE), label="press")
    b.add_force(chassis, (0.0, 0.0, STOP_FORCE), label="lift")
    forces = {
        name: Schedule([(0.0, 0.0), (start, 1.0), (end, 0.0)], kind="constant")
        for name, (start, end) in (("press", PRESS_TIMES), ("lift", LIFT_TIMES))
    }
    return Scene(
        name=NAME,
        description="One of six suspensions settles, hits both stops and is shaken.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3),
        duration=8.0,
        plots=_plots(b.joints[susp.travel].label, f"susp_{spring}"),
        camera=Camera((1.7, -0.5, 0.75), (0.0, 0.36, 0.38)),
        schedule=drive(forces | {"shaker": Schedule(SHAKER_SCHEDULE)}),
        checks=[*_checks(susp.static(payload * load).travel, -travel_down, travel_up), joints_stay_closed(1e-4)],
    )


def parts(
    kind: str, spring: str, load: float, stiffness: float, damping: float, travel: tuple[float, float]
) -> dict[str, Any]:
    """Return the arguments ``hub``, ``travel`` and ``spring`` for a suspension."""
    if spring == "torsion":
        square = ARMS[kind] ** 2
        return {"hub": HUB, "travel": travel, "spring": m.TorsionBar(stiffness * square, damping * square, load=load)}
    return {"hub": HUB, "travel": travel, "spring": m.Coil(*COILS[kind], stiffness, damping, load=load)}


def travel_of(run: Recording) -> np.ndarray:
    """Return the upward travel (m) of the wheel's center relative to the chassis, from its initial position."""
    travel: np.ndarray = (run["joint.plate.position"] - run["joint.guide.position"])[:, 0]
    return travel


def _checks(rest_travel: float, low: float, high: float) -> list[Check]:
    """Return checks of the wheel travel. The arguments are the expected travels (m) at rest and at both end stops."""

    def settles(run: Recording) -> bool:
        late = (run["time"] > 2.0) & (run["time"] < PRESS_TIMES[0] - 0.05)
        return bool(np.all(np.abs(travel_of(run)[late] - rest_travel) < 1e-4))

    def stops(run: Recording) -> bool:
        thrown = travel_of(run)[(run["time"] > PRESS_TIMES[0]) & (run["time"] < 4.5)]
        return bool(abs(thrown.max() - high) < 5e-4 and abs(thrown.min() - low) < 5e-4)

    def follows(run: Recording) -> bool:
        """Check that the plate follows its schedule within 0.1 mm, and that the chassis moves more than the plate."""
        lifted = (run["time"] > SHAKER_SCHEDULE[1][0] + 0.1) & (run["time"] < SHAKER_SCHEDULE[2][0])
        height = run["joint.guide.position"][run["time"] > SHAKER_SCHEDULE[0][0], 0]
        stands = np.abs(run["joint.plate.position"][lifted] - SHAKER_SCHEDULE[1][1]).max() < 1e-4
        return bool(stands and np.ptp(height) > SHAKER_SCHEDULE[1][1])

    return [
        Check("the travel at rest agrees with the analytic model within 0.1 mm", settles),
        Check("the stops limit the travel within 0.5 mm", stops),
        Check("the wheel follows the shaker, and the chassis oscillates", follows),
    ]


def _add_rig(
    b: gpusim.ModelBuilder, add: Callable[..., m.Suspension], steered: bool, load: float, options: dict[str, Any]
) -> tuple[int, m.Suspension]:
    """Add chassis with guide, suspension, pad and shaker."""
    # mass of the chassis: load minus the weight of the parts
    sprung = add(gpusim.ModelBuilder(gravity=b.gravity), -1, steered, options).linkage.sprung(load)
    chassis = b.add_body(sprung, (20.0, 20.0, 20.0), com=(0.0, 0.0, 0.5), label="chassis")
    b.add_visual(chassis, "box", (0.3, 0.05, 0.25), xform=gpusim.Transform((0.0, 0.1, 0.55)), color="#c75437")
    b.add_visual(chassis, "box", (0.05, 0.25, 0.05), xform=gpusim.Transform((0.0, 0.3, 0.75)), color="#c75437")
    b.add_joint_prismatic(-1, chassis, axis=(0, 0, 1), at=(0.0, 0.0, 0.0), label="guide")
    susp = add(b, chassis, steered, options)
    center = b.bodies[susp.hub].xform.position
    axle_along_y = gpusim.Transform.from_axis_angle((0.0, 0.0, 0.0), (1, 0, 0), 0.5 * math.pi)
    b.add_visual(susp.hub, "cylinder", RADIUS, HALF_WIDTH, xform=axle_along_y, color="#2b2b2b")
    plate = b.add_body(50.0, (2.0, 2.0, 4.0), xform=gpusim.Transform((center[0], center[1], PLATE)), label="plate")
    b.add_visual(plate, "box", (0.4, 0.25, 0.02), color="#8a8f98")
    rail = b.add_joint_prismatic(
        -1, plate, axis=(0, 0, 1), at=(center[0], center[1], PLATE), limit_lower=-0.15, limit_upper=0.15, label="plate"
    )
    b.add_servo(rail, stiffness=SHAKER_STIFFNESS, damping=SHAKER_DAMPING, label="shaker")
    pad = b.add_body(1e-4, (1e-6, 1e-6, 1e-6), xform=gpusim.Transform(center), label="pad")
    b.add_visual(pad, "sphere", 0.03, color="#d9b44a")
    b.add_joint_planar(plate, pad, axis=(0, 0, 1), at=center, label="ground")
    b.add_joint_ball(pad, susp.hub, at=center, label="wheel")
    return chassis, susp


COILS: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "swing_axle": ((0.02, 0.40, 0.62), (0.0, 0.45, 0.30)),
    "trailing_arm": ((0.05, 0.48, 0.70), (0.05, 0.5, 0.31)),
    "double_trailing_arm": ((0.05, 0.48, 0.66), (0.05, 0.5, 0.23)),
    "double_wishbone": ((0.0, 0.34, 0.66), (0.0, 0.44, 0.21)),
    "sliding_pillar": ((0.0, 0.5, 0.7), (0.0, 0.52, 0.3)),
    "macpherson_strut": ((0.0, 0.44, 0.78), (0.0, 0.50, 0.42)),
}
"""Upper and lower ends of the coils, m."""
ARMS = {
    "swing_axle": 0.5,
    "trailing_arm": 0.4,
    "double_trailing_arm": 0.35,
    "double_wishbone": 0.3,
    "sliding_pillar": 0.0,
    "macpherson_strut": 0.35,
}
"""Lever arms of the torsion bars, m."""


def _tie_rod(steered: bool, inner: tuple[float, float, float], outer: tuple[float, float, float]) -> m.TieRod | None:
    return m.TieRod(inner, outer) if steered else None


def _swing_axle(b: gpusim.ModelBuilder, chassis: int, steered: bool, options: dict[str, Any]) -> m.Suspension:
    rod = _tie_rod(steered, (-0.14, 0.20, 0.30), (-0.14, 0.58, 0.30))
    arm = m.Arm((0.0, 0.1, 0.33), (0.0, 0.56, 0.30), 6.0)
    return m.add_swing_axle(b, chassis, arm=arm, tie_rod=rod, label="susp", **options)


def _trailing_arm(b: gpusim.ModelBuilder, chassis: int, steered: bool, options: dict[str, Any]) -> m.Suspension:
    rod = _tie_rod(steered, (0.15, 0.15, 0.36), (0.12, 0.50, 0.34))
    arm = m.Arm((0.4, 0.5, 0.38), (0.0, 0.53, 0.3), 6.0)
    return m.add_trailing_arm(b, chassis, arm=arm, tie_rod=rod, label="susp", **options)


def _double_trailing(b: gpusim.ModelBuilder, chassis: int, steered: bool, options: dict[str, Any]) -> m.Suspension:
    rod = _tie_rod(steered, (0.13, 0.15, 0.33), (0.11, 0.47, 0.31))
    lower, upper = m.Arm((0.35, 0.5, 0.24), (0.0, 0.5, 0.22)), m.Arm((0.33, 0.5, 0.42), (0.0, 0.49, 0.40), 2.0)
    return m.add_double_trailing_arm(b, chassis, lower=lower, upper=upper, tie_rod=rod, label="susp", **options)


def _double_wishbone(b: gpusim.ModelBuilder, chassis: int, steered: bool, options: dict[str, Any]) -> m.Suspension:
    rod = _tie_rod(steered, (-0.12, 0.27, 0.33), (-0.12, 0.52, 0.32))
    lower, upper = m.Arm((0.0, 0.25, 0.22), (0.01, 0.54, 0.20)), m.Arm((0.0, 0.30, 0.44), (-0.01, 0.51, 0.42), 2.0)
    return m.add_double_wishbone(b, chassis, lower=lower, upper=upper, tie_rod=rod, label="susp", **options)


def _sliding_pillar(b: gpusim.ModelBuilder, chassis: int, steered: bool, options: dict[str, Any]) -> m.Suspension:
    rod = _tie_rod(steered, (-0.13, 0.15, 0.30), (-0.13, 0.50, 0.30))
    pillar: dict[str, Any] = {"pillar": (0.0, 0.52, 0.3), "axis": (0.02, -0.05, 1.0)}
    return m.add_sliding_pillar(b, chassis, tie_rod=rod, label="susp", **pillar, **options)


def _macpherson(b: gpusim.ModelBuilder, chassis: int, steered: bool, options: dict[str, Any]) -> m.Suspension:
    rod = _tie_rod(steered, (-0.13, 0.22, 0.27), (-0.12, 0.52, 0.26))
    top, foot = COILS["macpherson_strut"]
    lower = m.Arm((0.0, 0.2, 0.22), (0.0, 0.55, 0.20))
    return m.add_macpherson_strut(b, chassis, lower=lower, top=top, foot=foot, tie_rod=rod, label="susp", **options)


ADD: dict[str, Callable[..., m.Suspension]] = {
    "swing_axle": _swing_axle,
    "trailing_arm": _trailing_arm,
    "double_trailing_arm": _double_trailing,
    "double_wishbone": _double_wishbone,
    "sliding_pillar": _sliding_pillar,
    "macpherson_strut": _macpherson,
}


def _plots(joint: str, spring: str) -> list[Plot]:
    guide, plate = "joint.guide.position", "joint.plate.position"
    return [
        Plot("Heights from the initial pose", "mm", [guide, plate], labels=["chassis", "shaker"], scale=1e3),
        Plot("Coordinate of the suspension", "rad (m for a pillar)", [f"joint.{joint}.position"]),
        Plot("Spring force", "N (N m for a torsion bar)", [f"spring.{spring}.force"]),
        Plot("Largest joint gap", "mm", ["sim.joint_drift", "sim.joint_drift_peak"], scale=1e3, labels=GAPS),
    ]
