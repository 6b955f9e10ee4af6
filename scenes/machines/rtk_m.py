"""A rescue robot on four tracks climbs a step, extends the outriggers and holds a load at its side.

The machine has 152 bodies. With ``outriggers=false``, the robot tips over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np

import gpusim
from gpusim import Transform
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Positive, Range, Scene
from gpusim.scenes._checks import GAPS, joints_stay_closed
from gpusim.scenes.machines._rescuer import EXTENSIONS, LEGS, STROKE, TRACKS, Rescuer, add_rescuer
from gpusim.scenes.machines._rescuer_control import rescuer_control

NAME = "rtk_m"
Recording = Mapping[str, np.ndarray]
LEVERS = ("boom", "jib", "stick", "bucket")
#: Rotations (rad) of boom, jib, stick and bucket from the initial pose to the extended arm, and of the swing.
ARM_ROTATIONS = {"boom": -0.7, "jib": 0.9, "stick": 0.6, "bucket": 0.2}
SWING_ANGLE = 0.5 * math.pi
SPEED, LEG_TRAVEL = 0.6, 0.22
#: Times, s: stop on the step, outriggers extended, arm extended, load applied, start of unloading, end.
STOPPED, LEGS_OUT, ARM_OUT, LOADED, UNLOADED, END = 6.0, 8.0, 11.5, 12.5, 14.5, 16.0
#: Valve commands per position error (1/m and 1/rad), and dead zone of the position error, m.
GAIN, SWING_GAIN, DEAD_ZONE = 10.0, 2.5, 0.005
#: Position of the step's front, half length and half width of the step, m.
STEP, HALF = 1.7, (3.0, 2.5)
#: Strokes of the cylinders, m; duration of the operator's motions with ``control="diagram"``, s.
STROKES = {"boom": 0.42, "jib": 0.4, "stick": 0.36, "bucket": 0.3}
OPERATED_DURATION = 8.0
OPERATED = ("*_drive", "leg_*", "swing", "swing_brake", *STROKES)
"""Names of the commands that the operator sets."""


def build(
    outriggers: bool = True,
    load: Annotated[float, Range(0.0, 1e4)] = 4000.0,
    step: Annotated[float, Range(0.0, 0.25)] = 0.15,
    friction: Positive = 0.8,
    control: Literal["schedule", "diagram"] = "schedule",
) -> Scene:
    """Build the scene.

    Args:
        outriggers: extend the outriggers before the arm swings sideways.
        load: load on the bucket, N, 0 to 10000. The robot tips over above 8000 N with outriggers, or above 3000 N
            without outriggers.
        step: height of the step, m, 0 to 0.25.
        friction: friction of the ground, above 0.
        control: "schedule": a schedule writes the commands. "diagram": a block diagram (_rescuer_control.py) computes
            the commands from sticks, a rocker, a slider for the outriggers and a safety lever.
    """
    b = gpusim.ModelBuilder()
    rock = gpusim.Material(friction=friction)
    b.add_shape_plane(-1, material=rock, label="ground")
    if step > 0.0:
        pose = Transform((STEP + HALF[0], 0, 0.5 * step))
        b.add_shape_box(-1, (*HALF, 0.5 * step), xform=pose, material=rock, label="step", color="#8d8578")
    machine = add_rescuer(b, load)
    operated = control == "diagram"
    if operated:
        sides = {side: [f"{name}_drive" for name in TRACKS if name.endswith(side)] for side in ("left", "right")}
        sprocket_ratio = next(iter(machine.tracks.values())).drive_speed(1.0)
        b.add_diagram(rescuer_control(STROKES, sides, list(LEGS), STROKE, sprocket_ratio))
    b.set_operator_commands([] if operated else OPERATED)
    return Scene(
        name=NAME,
        description="A rescue robot on four tracks climbs a step, extends its outriggers and holds a load sideways.",
        builder=b,
        # A small margin skips pairs of shoes and wheels without force, and saves a third of the time.
        config=gpusim.SolverConfig(dt=3e-3, iterations=4, contact_margin=1e-3, max_pairs=400),
        duration=OPERATED_DURATION if operated else END,
        plots=[*_plots(), *_operated_plots()] if operated else _plots(),
        camera=Camera((7.0, -5.0, 2.6), (2.6, 0.6, 0.6)),
        schedule=_gestures() if operated else _operator(machine, outriggers),
        checks=_operated_checks() if operated else _checks(step),
    )


def _gestures() -> Callable[[gpusim.Simulation, float], None]:
    """Return a schedule of operator inputs."""
    inputs = {
        "enable": [(0.3, 0.0), (0.3, 1.0)],
        "ahead": [(0.1, 0.0), (0.1, -0.9), (2.0, -0.9), (2.0, 0.0), (4.0, 0.0), (4.0, 1.0), (5.0, 1.0), (5.0, 0.0)],
        "outriggers": [(2.8, 0.0), (2.8, LEG_TRAVEL)],
        "right_y": [(5.0, 0.0), (5.0, 0.7), (6.0, 0.7), (6.0, 0.0)],
        "rocker": [(5.0, 0.0), (5.0, 0.6), (6.0, 0.6), (6.0, 0.0)],
        "left_x": [(5.0, 0.0), (5.0, -0.8), (6.0, -0.8), (6.0, 0.0)],
    }
    return drive({name: Schedule(points) for name, points in inputs.items()})


def _operated_plots() -> list[Plot]:
    wires = [f"diagram.cab.{name}" for name in ("left_speed", "right_speed", "lowered")]
    return [
        Plot("Tracks (m/s) and outriggers (m)", "m/s, m", wires),
        Plot("Swing brake", "on", ["diagram.cab.swing_mode.held"]),
    ]


def _operated_checks() -> list[Check]:
    def backs(run: Recording) -> bool:
        return bool(-1.2 < run["body.chassis.position"][np.argmin(np.abs(run["time"] - 2.8)), 0, 0] < -0.3)

    def stays(run: Recording) -> bool:
        """Check that the outriggers lift the chassis and that the tracks do not move."""
        t = (run["time"] > 5.0) & (run["time"] < OPERATED_DURATION)
        before = run["body.chassis.position"][np.argmin(np.abs(run["time"] - 2.8)), 0, 2]
        lifted = run["body.chassis.position"][t, 0, 2] - before
        still = all(np.abs(run[f"joint.{name}_drive.velocity"][t]).max() < 0.3 for name in TRACKS)
        return bool(still and lifted.min() > 0.02)

    def moves(run: Recording) -> bool:
        strokes = [np.ptp(run[f"cylinder.{name}_cylinder.position"]) for name in ("boom", "jib")]
        return bool(min(strokes) > 0.02 and np.abs(run["joint.swing.position"]).max() > 0.1)

    def rests(run: Recording) -> bool:
        late = run["time"] > OPERATED_DURATION - 0.6
        still = all(np.ptp(run[f"cylinder.{name}_cylinder.position"][late]) < 3e-3 for name in LEVERS)
        return bool(still and run["diagram.cab.swing_mode.held"][late].all())

    return [
        Check("the stick drives the robot backward", backs),
        Check("the robot is on its outriggers and its tracks do not move", stays),
        Check("the levers move boom, jib and swing", moves),
        Check("the machine stops after the release of the levers", rests),
        joints_stay_closed(1e-4),
    ]


def _operator(machine: Rescuer, outriggers: bool) -> Callable[[gpusim.Simulation, float], None]:
    """Return a schedule that drives the robot, then moves the arm with proportional control."""
    speed = Schedule([(0.5, 0.0), (1.0, SPEED), (STOPPED - 0.5, SPEED), (STOPPED, 0.0)])
    legs = Schedule([(STOPPED + 0.3, 0.0), (LEGS_OUT, LEG_TRAVEL if outriggers else 0.0)])
    swing = Schedule([(LEGS_OUT, 0.0), (ARM_OUT - 0.7, SWING_ANGLE)])
    final_load = 0.0 if outriggers else 1.0
    load = Schedule([(ARM_OUT, 0.0), (LOADED, 1.0), (UNLOADED, 1.0), (UNLOADED + 0.5, final_load)])
    ends = [machine.arm.static(angles).lengths for angles in ({}, ARM_ROTATIONS)]
    arm = {k: Schedule([(LEGS_OUT, 0.0), (ARM_OUT - 0.7, ends[1][k] - ends[0][k])]) for k in LEVERS}
    signals = [f"cylinder.{name}_cylinder.position" for name in LEVERS] + ["joint.swing.position"]
    observers: list[tuple[gpusim.Simulation, Any]] = []

    def write(sim: gpusim.Simulation, t: float) -> None:
        if not observers or observers[0][0] is not sim:
            observers[:] = [(sim, sim.observe(signals))]
        now = np.array(observers[0][1].read(), float)
        for track in machine.tracks.values():
            sim.control[f"{track.label}_drive"] = track.drive_speed(speed.value(t))
        for name in LEGS:
            sim.control[name] = legs.value(t)
        sim.control["load"] = load.value(t)
        for k, name in enumerate(LEVERS):
            error = EXTENSIONS[name] + arm[name].value(t) - now[:, k]
            sim.control[name] = np.clip(np.where(np.abs(error) > DEAD_ZONE, GAIN * error, 0.0), -1.0, 1.0)
        error = swing.value(t) - now[:, -1]
        sim.control["swing"] = np.clip(np.where(np.abs(error) > 0.01, SWING_GAIN * error, 0.0), -1.0, 1.0)

    return write


def _plots() -> list[Plot]:
    strokes = [f"cylinder.{name}_cylinder.position" for name in LEVERS]
    forces = [f"cylinder.{name}_cylinder.force" for name in LEVERS]
    return [
        Plot("Chassis position", "m", ["body.chassis.position"]),
        Plot("Chassis orientation", "quaternion", ["body.chassis.orientation"]),
        Plot("Strokes", "m", strokes, list(LEVERS)),
        Plot("Cylinder forces", "kN", forces, list(LEVERS), 1e-3),
        Plot("Swing", "rad", ["joint.swing.position"]),
        Plot("Outriggers", "m", [f"joint.{name}.position" for name in LEGS], list(LEGS)),
        Plot("Pump pressure", "MPa", ["node.line.pressure", "pump.pump.load_pressure"], ["line", "load"], 1e-6),
        Plot("Track speed", "rad/s", [f"joint.{name}_drive.velocity" for name in TRACKS], list(TRACKS)),
        Plot("Largest joint gap", "m", ["sim.joint_drift", "sim.joint_drift_peak"], labels=GAPS),
    ]


def tilt(orientation: np.ndarray) -> np.ndarray:
    """Return the angle (rad) between the chassis' z axis and the vertical, for quaternions (..., 4)."""
    x, y = orientation[..., 0], orientation[..., 1]
    angle: np.ndarray = np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0))
    return angle


def _checks(step: float) -> list[Check]:
    def climbs(run: Recording) -> bool:
        """Check that the robot is level on the step."""
        t = np.argmin(np.abs(run["time"] - STOPPED - 0.2))
        position, level = run["body.chassis.position"][t], tilt(run["body.chassis.orientation"][t])
        return bool(
            np.all(position[..., 0] > 2.7) and np.all(np.abs(position[..., 2] - step) < 0.03) and np.all(level < 0.03)
        )

    def reaches(run: Recording) -> bool:
        """Check the swing angle of the arm before the load is applied."""
        t = np.argmin(np.abs(run["time"] - ARM_OUT))
        return bool(np.all(np.abs(run["joint.swing.position"][t] - SWING_ANGLE) < 0.05))

    def stands(run: Recording) -> bool:
        """Check that the robot tilts by less than 3 degrees under the load."""
        tilts = tilt(run["body.chassis.orientation"])[(run["time"] > LOADED) & (run["time"] < UNLOADED)]
        return bool(np.all(tilts < math.radians(3.0)))

    return [
        joints_stay_closed(1e-4),
        Check("the robot climbs the step and is level on it", climbs),
        Check("the arm is sideways before loading", reaches),
        Check("the robot tilts by less than 3 degrees under the load", stands),
    ]
