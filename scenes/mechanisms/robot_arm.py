"""A 6-axis arm follows a tool path with computed torque or PID. The motors have datasheet values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

import gpusim
from gpusim import Transform
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Range, Scene, require
from gpusim.scenes._checks import GAPS, Recording, joints_stay_closed, near
from gpusim.scenes.mechanisms._robot_arm import GEAR, LINKS, NAMES, add_arm, posture_at
from gpusim.scenes.mechanisms._robot_arm_control import APPROACH, MAX_ACCELERATION, Path, arm_control

NAME = "robot_arm"
START = 0.05
"""Start of the motion from the home position, s."""
SETTLING_TIME = 0.5
"""Settling time after the path, s."""
CENTER = (0.45, 0.0, 0.30)
"""Center of the path, m, in front of the arm's base."""
HOME_HEIGHT = 0.1
"""Height of the home position above the path, m."""
MAX_DISTANCE = {"computed_torque": 5e-4, "pid": 1e-2}
"""Maximum distance of the tool from the path, m."""


def build(
    control: Literal["computed_torque", "pid"] = "computed_torque",
    path: Literal["square", "eight"] = "square",
    speed: Annotated[float, Range(0.05, 0.5)] = 0.25,
    tilt: Annotated[float, Range(0.0, 45.0)] = 25.0,
    load: float = 1.5,
    unknown: Annotated[float, Range(0.0, 0.5)] = 0.0,
    rate: Annotated[float, Range(200.0)] | None = None,
) -> Scene:
    """Build the scene. The commands are "start" (1: follow the path, 0: return home) and "speed" (m/s).

    Args:
        control: control of the joints: computed torque, or independent PID of each joint.
        path: path of the tool: a square of 24 cm with rounded corners, or a figure eight.
        speed: speed along the path, m/s, 0.05 to 0.5.
        tilt: tilt of the path's plane towards the arm, degrees, 0 to 45.
        load: load in the tool, kg, 0 to 2.5.
        unknown: additional load that the control ignores, kg, 0 to 0.5.
        rate: sampling rate of the control, 1/s, at least 200, or None for one sample per step.
    """
    require(0.0 <= load <= 2.5, NAME, "load", load, "must be 0 to 2.5, the range of the motors")
    plane = Transform.from_axis_angle(CENTER, (0, 1, 0), -math.radians(tilt))
    # The tool's direction is opposite to the plane's normal.
    home = plane * Transform.from_axis_angle((0, 0, HOME_HEIGHT), (1, 0, 0), math.pi)
    tool_path = Path(path, plane, home)
    posture = posture_at(home)
    b, known = gpusim.ModelBuilder(), gpusim.ModelBuilder()
    add_arm(b, posture, load + unknown)
    # the load is a signal, because a gripper's load changes
    add_arm(known, posture, 0.0 if control == "computed_torque" else load)
    _draw_path(b, tool_path)
    b.add_diagram(arm_control(known, tool_path, posture, control, load, rate))
    round_trip = tool_path.length / speed + speed / MAX_ACCELERATION
    end = START + APPROACH + round_trip
    commands = {
        "start": Schedule([(0.0, 0.0), (START, 1.0), (end, 0.0)], kind="constant"),
        "speed": Schedule([(0.0, speed)], kind="constant"),
    }
    return Scene(
        name=NAME,
        description="A 6-axis arm follows a tool path with computed torque or PID. The motors have datasheet values.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=end + APPROACH + SETTLING_TIME,
        plots=_plots(),
        camera=Camera((1.3, -1.2, 1.0), (0.25, 0.0, 0.3)),
        schedule=drive(commands),
        checks=_checks(tool_path, MAX_DISTANCE[control] * (1.0 + 2.0 * unknown), end),
    )


def _draw_path(b: gpusim.ModelBuilder, path: Path, count: int = 48) -> None:
    """Draw short rods along the path of the load's center."""
    if path.kind == "eight":
        flat = path.eight(np.linspace(0.0, 2.0 * math.pi, count + 1))
    else:
        angles = np.linspace(0.0, 2.0 * math.pi, count + 1)
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        flat = np.clip(10.0 * directions, -path.straight, path.straight) + path.corner * directions
    for k, (one, other) in enumerate(zip(flat, flat[1:], strict=False)):
        middle, segment = 0.5 * (one + other), other - one
        angle = math.atan2(segment[1], segment[0])
        pose = path.plane * Transform.from_axis_angle((*middle, 0.0), (0, 0, 1), angle)
        rod = pose * Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5 * math.pi)
        b.add_visual(
            -1, "capsule", 0.003, 0.5 * float(np.hypot(*segment)), xform=rod, color=(0.85, 0.2, 0.15), label=f"path{k}"
        )


def _plots() -> list[Plot]:
    wire = "diagram.arm."
    return [
        Plot("Tool position", "m", ["site.tool.position"]),
        Plot("Tool error", "mm", [f"{wire}miss"], scale=1e3),
        Plot("Joint errors", "mrad", [f"{wire}behind"], ["joint"], 1e3),
        Plot("Joint efforts / limits", "-", [f"{wire}use"], ["joint"]),
        Plot("Motor torques", "N m", [f"motor.{name}.torque" for name in NAMES], NAMES),
        Plot("Speed along the path", "m/s", [f"{wire}pace"]),
        Plot("Residual of the inverse kinematics", "mm", [f"{wire}residual"], scale=1e3),
        Plot("Largest joint gap", "mm", ["sim.joint_drift", "sim.joint_drift_peak"], scale=1e3, labels=GAPS),
    ]


def _checks(path: Path, max_distance: float, end: float) -> list[Check]:
    return [
        Check(
            f"the tool is within {1e3 * max_distance:g} mm of the path",
            lambda run: bool(off(path, run, end).max() < max_distance),
        ),
        Check(f"the tool error is below {2e3 * max_distance:g} mm", lambda run: miss(run) < 2.0 * max_distance),
        Check("the tool follows the whole path and returns home", _follows_whole_path(path, end)),
        Check(
            "the residual of the inverse kinematics is below 20 um",
            lambda run: bool(run["diagram.arm.residual"].max() < 2e-5),
        ),
        Check("motor torques and joint efforts are within their ratings", _within_ratings),
        joints_stay_closed(1e-4),
    ]


def off(path: Path, run: Recording, end: float) -> np.ndarray:
    """Return the distances (m) between tool and path while the tool follows the path."""
    during = (run["time"] > START + APPROACH + 0.05) & (run["time"] < end)
    return path.distance(run["site.tool.position"][during, 0])


def miss(run: Recording) -> float:
    """Return the maximum distance (m) of the tool from its commanded position."""
    return float(np.abs(run["diagram.arm.miss"]).max())


def _follows_whole_path(path: Path, end: float) -> Callable[[Recording], bool]:
    """Return a check that the tool moves along the whole path and returns home."""

    def passes(run: Recording) -> bool:
        during = (run["time"] > START + APPROACH) & (run["time"] < end)
        flat = (run["site.tool.position"][during, 0] - np.asarray(path.plane.position)) @ path.plane.matrix()
        half, home = 0.5 * path.side, np.asarray(path.home.position)
        extremes = [*flat[:, :2].min(axis=0), *flat[:, :2].max(axis=0)]
        return near(extremes, [-half, -half, half, half], 0.1 * half) and near(
            run["site.tool.position"][-1, 0], home, 0.1 * half
        )

    return passes


def _within_ratings(run: Recording) -> bool:
    """Check the limits of the joint efforts and of the RMS motor torques."""
    if not 0.2 < run["diagram.arm.use"].max() < 1.0:
        return False
    for link in LINKS:
        torque = run[f"motor.{link.name}.torque"][:, 0]
        if np.sqrt(np.mean(torque**2)) > link.motor.steady or np.abs(torque).max() * GEAR > link.limit:
            return False
    return True
