"""A biped walks straight ahead, steps on a board, is pushed, follows a bend and stops.

``build`` computes the plan of the walk. A block diagram controls the robot and keeps the balance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

import gpusim
from gpusim import Transform
from gpusim.command_schedule import Schedule, drive
from gpusim.control import Diagram
from gpusim.scene import Camera, Check, Plot, Range, Scene
from gpusim.scenes._checks import GAPS, Recording, joints_stay_closed
from gpusim.scenes.machines._biped import LINKS, NAMES, SIDES, Posture, add_biped, add_joint_control, standing
from gpusim.scenes.machines._walk_control import walk_control
from gpusim.scenes.machines._walk_plan import DIGITS, LEG, Pace, Plan, footprints, leg_angles, planned, timed

NAME = "biped_walk"
STANDING_BEND = 0.4
"""Bending angle of hips and ankles in the standing posture, rad. The knees bend by twice this angle."""
STEPS_TO_BOARD = 2
"""Index of the step onto the board. Index 0 is the first step after the straight walk of ``steps`` steps."""
STEPS_TO_BEND, STEPS_TO_PUSH, BEND_STEPS = 5, 4, 6
"""Indices (as for STEPS_TO_BOARD) of the first step in the bend and of the pushed step. Number of steps in the bend."""
MIN_PUSH = 30.0
"""Minimum push that has a visible effect, N."""
PUSH_TIME, PUSH_DELAY = 0.2, 0.2
"""Duration of the push, and time from the start of the pushed step to the push, s."""
BOARD = (0.13, 0.065)
"""Half of the board's length and width, m."""
SUPPORT_FORCE, CONTACT_SETTLING = 25.0, 0.02
"""Minimum ground force of a supporting sole (N), and settling time after ground contact (s)."""
ITERATIONS = 16
"""Number of iterations of the contact solver."""
TARGET_RANGE = 0.6
"""Maximum deviation of the joint targets from the initial positions, rad."""
RECOVERY_TIME = 2.0
"""Maximum time from the start of a push until the robot follows its plan again, s."""


def build(
    steps: Annotated[int, Range(2, 200)] = 20,
    length: Annotated[float, Range(0.13, 0.22)] = 0.15,
    turn: Annotated[float, Range(-90.0, 90.0)] = 60.0,
    board: Annotated[float, Range(0.0, 0.03)] = 0.02,
    seen: bool = True,
    push: Annotated[float, Range(0.0, 80.0)] = 40.0,
    side: Annotated[float, Range(-360.0, 360.0)] = 90.0,
    friction: Annotated[float, Range(0.3, 1.5)] = 0.8,
    control: Literal["plan", "joints"] = "plan",
) -> Scene:
    """Build the scene. The commands "push_x" and "push_y" are forces on the chest (N).

    Args:
        steps: number of steps before the board and the bend, 2 to 200. An odd number of steps is rounded up.
        length: length of a step, m, 0.13 to 0.22.
        turn: angle of the bend, degrees, -90 to 90, positive to the left.
        board: thickness of the board under the left foot, m, 0 (no board) to 0.03.
        seen: True if the plan includes the board.
        push: force on the chest for 0.2 s while only the right foot is on the ground, N, 0 to 80. The robot withstands
            40 N in all directions.
        side: direction of the push, degrees, -360 to 360. 0 is forward, 90 to the left.
        friction: friction of the soles, 0.3 to 1.5.
        control: "plan": the robot follows the plan of its walk. "joints": the robot stands on flat ground. A program or
            a learned policy sets the target angles of the leg joints, such as "l_shin_target" (rad).
    """
    if control == "joints":
        return _joint_target_scene(friction)
    plan, posture = walk(steps, length, turn, board if seen else 0.0)
    flat = _even(steps)
    board_print, pushed = plan.steps[flat + STEPS_TO_BOARD].end, plan.steps[flat + STEPS_TO_PUSH].begins + PUSH_DELAY
    on_board = (plan.steps[flat + STEPS_TO_BOARD].ends, plan.steps[flat + STEPS_TO_BOARD + 2].begins)
    b = gpusim.ModelBuilder()
    material = gpusim.Material(friction=friction)
    b.add_shape_plane(-1, material=material, label="floor")
    if board > 0.0:
        half = (min(BOARD[0], 2.0 * length - 0.14), BOARD[1], 0.5 * board)
        pose = Transform((board_print.x, board_print.y, 0.5 * board))
        b.add_shape_box(-1, half, pose, material, "board", color="#b5894f")
    start = _start_posture(posture, plan)
    robot = add_biped(b, start, Transform(tuple(plan.pelvis[0, :3])), friction)
    b.add_site(robot.bodies["pelvis"], Transform(), label="imu")
    chest = next(link for link in LINKS if link.name == "torso").com
    for axis, label in (((1.0, 0.0, 0.0), "push_x"), ((0.0, 1.0, 0.0), "push_y")):
        b.add_force(robot.bodies["torso"], axis, chest, label=label)
        b.set_command_map(label, lower=-80.0, upper=80.0)
    b.add_diagram(walk_control(b, plan, start))
    return Scene(
        name=NAME,
        description="A biped walks over a board, withstands a push and follows a bend. Its control is a block diagram.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3, iterations=ITERATIONS),
        duration=float(plan.time[-1]),
        plots=_plots(),
        camera=Camera((0.5 * board_print.x, -0.9 * board_print.x, 1.6), (0.55 * board_print.x, 0.2, 0.5)),
        schedule=drive(_pushes(pushed, push, math.radians(side))),
        checks=[
            *_checks(plan),
            *([_stands_on(on_board, board)] if board > 0.0 else []),
            *([_comes_back(pushed)] if push >= MIN_PUSH else []),
        ],
    )


def _joint_target_scene(friction: float) -> Scene:
    """Return the scene for ``control="joints"``: commands set the target angles of the leg joints."""
    posture, pelvis = standing(STANDING_BEND)
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1, material=gpusim.Material(friction=friction), label="floor")
    robot = add_biped(b, posture, pelvis, friction)
    b.add_site(robot.bodies["pelvis"], Transform(), label="imu")
    d = Diagram("robot")
    targets = d.add("mux", "wanted", count=len(NAMES))
    for name in NAMES:
        angle, (side, _, part) = posture.get(name, 0.0), name.partition("_")
        if side in dict(SIDES) and part in LEG:
            limits = {"lower": angle - TARGET_RANGE, "upper": angle + TARGET_RANGE}
            d.add("input", f"{name}_target", default=angle, unit="rad", **limits)
        else:
            d.add("constant", f"{name}_target", value=angle, unit="rad")
    targets.wire(*(f"{name}_target" for name in NAMES))
    add_joint_control(d, "wanted")
    b.add_diagram(d)
    height = float(pelvis.position[2])
    return Scene(
        name=NAME,
        description="A biped stands. A program sets the target angles of its leg joints.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3, iterations=ITERATIONS),
        duration=3.0,
        plots=[Plot("Pelvis", "m", ["body.pelvis.position"])],
        camera=Camera((1.6, -2.4, 1.2), (0.3, 0.0, 0.6)),
        checks=[
            Check(
                "the robot stands",
                lambda run: bool(np.all(np.abs(run["body.pelvis.position"][-1, :, 2] - height) < 0.02)),
            )
        ],
    )


def walk(steps: int = 20, length: float = 0.15, turn: float = 60.0, board: float = 0.02) -> tuple[Plan, Posture]:
    """Return the plan and the initial standing posture, for arguments of :func:`build`."""
    pace, (posture, pelvis) = Pace(), standing(STANDING_BEND)
    straight = [(length, 0.0)] * (_even(steps) + STEPS_TO_BEND)
    bend = [(0.7 * length, math.radians(turn) / BEND_STEPS)] * BEND_STEPS
    prints = footprints([*straight, *bend, (0.0, 0.0)])
    side, footprint = prints[_even(steps) + STEPS_TO_BOARD]
    prints[_even(steps) + STEPS_TO_BOARD] = (side, replace(footprint, z=board))
    return planned(timed(prints, pace), pace, posture, float(pelvis.position[2])), posture


def _even(steps: int) -> int:
    """Round up to an even number of steps, so that the left foot lands on the board."""
    return steps + steps % 2


def _start_posture(posture: Posture, plan: Plan) -> Posture:
    """Return a copy of ``posture`` with the leg angles at the start of the plan."""
    result = dict(posture)
    for s, sign in SIDES:
        angles = leg_angles(plan.pelvis[:1], plan.feet[s][:1], sign)[0]
        result |= {f"{s}_{name}": float(x) for name, x in zip(LEG, angles, strict=True)}
    return {name: round(angle, DIGITS) for name, angle in result.items()}


def _pushes(begins: float, push: float, angle: float) -> dict[str, Any]:
    directions = {"push_x": math.cos(angle), "push_y": math.sin(angle)}
    return {
        label: Schedule([(0.0, 0.0), (begins, push * direction), (begins + PUSH_TIME, 0.0)], kind="constant")
        for label, direction in directions.items()
    }


def _plots() -> list[Plot]:
    wire = "diagram.robot."
    return [
        Plot("Pelvis position", "m", ["body.pelvis.position"]),
        Plot("Position error of the pelvis", "mm", [f"{wire}miss"], scale=1e3),
        Plot("Error of the divergent component", "mm", [f"{wire}divergent"], scale=1e3),
        Plot("Ground forces", "N", [f"{wire}l_bearing", f"{wire}r_bearing"], ["left", "right"]),
        Plot("Distance from center of pressure to edge of sole", "mm", [f"{wire}margin"], scale=1e3),
        Plot("Orientation errors of the pelvis", "degrees", [f"{wire}lean"], scale=180.0 / math.pi),
        Plot("Torque / stall torque", "-", [f"{wire}load"]),
        Plot("Positions of the soles", "m", [f"site.{s}_sole.position" for s, _ in SIDES]),
        Plot("Largest joint gap", "mm", ["sim.joint_drift", "sim.joint_drift_peak"], scale=1e3, labels=GAPS),
    ]


def _checks(plan: Plan) -> list[Check]:
    return [
        Check(
            "every foot lands within 3 cm and 0.15 s of the plan",
            lambda run: off_footprints(plan, run) < 0.03 and late(plan, run) < 0.15,
        ),
        Check("no foot touches the ground in the middle of its swing", lambda run: _touched(plan, run) < 1.0),
        Check("the robot stops within 3 cm and 2 degrees of the plan", lambda run: _stops(plan, run)),
        Check("the pelvis stays within 3 cm of the planned height", lambda run: off_height(plan, run) < 0.03),
        Check("soles slip by less than 1 mm on the ground", lambda run: slip(plan, run) < 1e-3),
        Check(
            "the pelvis tilts by less than 2.6 degrees", lambda run: bool(np.abs(_lean(run)).max() < math.radians(2.6))
        ),
        Check("drives need 5 to 100 % of their stall torque", lambda run: 0.05 < run["diagram.robot.load"].max() < 1.0),
        joints_stay_closed(1e-4),
    ]


def _stands_on(times: tuple[float, float], board: float) -> Check:
    """Return a check that the left sole is at the height of the board, within 3 mm."""

    def passes(run: Recording) -> bool:
        height = run["site.l_sole.position"][np.argmin(np.abs(run["time"] - 0.5 * sum(times))), :, 2]
        return bool((np.abs(height - board) < 3e-3).all())

    return Check("a foot stands on the board, with a height error below 3 mm", passes)


def _comes_back(pushed: float) -> Check:
    """Return a check that a push causes a DCM error above 15 mm, which decays below 15 mm within 2 s.

    DCM is the divergent component of motion.
    """

    def passes(run: Recording) -> bool:
        time, off = run["time"], np.linalg.norm(run["diagram.robot.divergent"], axis=-1)
        during = (time >= pushed) & (time < pushed + 0.5 * RECOVERY_TIME)
        return bool((off[during].max(axis=0) > 0.015).all() and (off[time > pushed + RECOVERY_TIME] < 0.015).all())

    return Check("the push causes an error above 1.5 cm, which decays within 2 s", passes)


def _lean(run: Recording) -> np.ndarray:
    return run["diagram.robot.lean"][..., 1:]


def _touched(plan: Plan, run: Recording) -> float:
    """Return the maximum ground force (N) on a foot in the middle half of its swing phases."""
    time, max_force = run["time"], 0.0
    for step in plan.steps:
        quarter = 0.25 * (step.ends - step.begins)
        swings = (time > step.begins + quarter) & (time < step.ends - quarter)
        max_force = max(max_force, float(run[f"diagram.robot.{step.side}_bearing"][swings].max()))
    return max_force


def _stops(plan: Plan, run: Recording) -> bool:
    last = run["body.pelvis.position"][run["time"] > run["time"][-1] - 0.5]
    still = bool(np.ptp(last, axis=0).max() < 2e-3)
    return still and off_end(plan, run) < 0.03 and off_heading(plan, run) < math.radians(2.0)


def _plan_values(plan: Plan, run: Recording, values: np.ndarray) -> np.ndarray:
    """Return ``values`` of the plan, interpolated at the times of the recording, (samples, 1, n)."""
    columns = [np.interp(run["time"], plan.time, column) for column in values.T]
    return np.stack(columns, axis=-1)[:, None]


def off_end(plan: Plan, run: Recording) -> float:
    """Return the final horizontal distance (m) of the pelvis from its planned position."""
    return float(np.linalg.norm(run["body.pelvis.position"][-1, :, :2] - plan.pelvis[-1, :2], axis=-1).max())


def off_heading(plan: Plan, run: Recording) -> float:
    """Return the error (rad) of the robot's final heading, from the line between the soles."""
    x, y = (run["site.l_sole.position"] - run["site.r_sole.position"])[-1, :, :2].T
    yaw = plan.pelvis[-1, 3]
    along = -np.sin(yaw) * x + np.cos(yaw) * y
    return float(np.abs(np.arctan2(-np.cos(yaw) * x - np.sin(yaw) * y, along)).max())


def off_height(plan: Plan, run: Recording) -> float:
    """Return the maximum height error of the pelvis (m)."""
    return float(np.abs(run["body.pelvis.position"] - _plan_values(plan, run, plan.pelvis[:, :3]))[..., 2].max())


def _stances(plan: Plan, side: str, end: float) -> list[tuple[float, float]]:
    """Return the planned start and end times (s) of a foot's stances."""
    swings = [step for step in plan.steps if step.side == side]
    return list(zip([0.0, *(step.ends for step in swings)], [*(step.begins for step in swings), end], strict=True))


def off_footprints(plan: Plan, run: Recording) -> float:
    """Return the maximum horizontal distance (m) of a sole from its planned footprint, at the middle of each stance."""
    time, max_distance = run["time"], 0.0
    for s, _ in SIDES:
        prints = [step.end for step in plan.steps if step.side == s]
        for (begin, end), planned_print in zip(_stances(plan, s, time[-1])[1:], prints, strict=True):
            sole = run[f"site.{s}_sole.position"][np.argmin(np.abs(time - 0.5 * (begin + end))), :, :2]
            max_distance = max(
                max_distance, float(np.linalg.norm(sole - (planned_print.x, planned_print.y), axis=-1).max())
            )
    return max_distance


def late(plan: Plan, run: Recording) -> float:
    """Return the maximum delay (s) of a foot's ground contact after the planned landing, or inf without contact."""
    return max((begins - begin for begin, begins, _ in _actual_stances(plan, run)), default=math.inf)


def slip(plan: Plan, run: Recording) -> float:
    """Return the maximum horizontal slip (m) of a sole during a stance."""
    return max((distance for _, _, distance in _actual_stances(plan, run)), default=math.inf)


def _actual_stances(plan: Plan, run: Recording) -> list[tuple[float, float, float]]:
    """Return (planned start (s), actual start (s), slip (m)) of each stance in each world."""
    time, stances = run["time"], []
    for s, _ in SIDES:
        loaded, positions = run[f"diagram.robot.{s}_bearing"] > SUPPORT_FORCE, run[f"site.{s}_sole.position"][..., :2]
        for begin, end in _stances(plan, s, time[-1]):
            for world in range(loaded.shape[1]):
                at = np.flatnonzero((time >= begin) & (time <= end) & loaded[:, world])
                begins = float(time[at[0]]) if at.size else math.inf
                standing_positions = (
                    positions[at[time[at] >= begins + CONTACT_SETTLING], world] if at.size else positions[:0, world]
                )
                distance = (
                    float(np.linalg.norm(standing_positions - standing_positions[0], axis=-1).max())
                    if len(standing_positions)
                    else 0.0
                )
                stances.append((begin, begins, distance))
    return stances
