"""An excavator digs stones out of a trench. One load-sensing pump supplies all drives.

The machine has 117 bodies, including two tracks with 42 shoes each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import numpy as np

import gpusim
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Positive, Range, Scene
from gpusim.scenes._checks import GAPS, at, joints_stay_closed, near
from gpusim.scenes.machines._digger import RETRACTED, Excavator, add_excavator, joint_angles
from gpusim.scenes.machines._digger_control import excavator_control

NAME = "excavator"
Recording = Mapping[str, np.ndarray]
LEVERS = ("boom", "stick", "bucket")
#: Time, s; tip position (distance from the swing's axis, height above ground), m; angles of bucket and swing, degrees.
INITIAL_TIP = (1.70367, 0.77332, -150.0)
SWING_ANGLE = 65.0
WAYPOINTS = (
    (1.0, *INITIAL_TIP, 0.0),
    (3.0, 2.52, 0.50, -100.0, 0.0),
    (4.2, 2.54, 0.06, -114.0, 0.0),
    (6.5, 2.10, 0.07, -130.0, 0.0),
    (7.6, 2.02, 0.30, -156.0, 0.0),
    (8.4, 2.00, 0.58, -180.0, 0.0),
    (10.0, 2.00, 1.05, -180.0, 0.0),
    (13.0, 2.00, 1.05, -180.0, SWING_ANGLE),
    (14.5, 2.30, 1.10, -95.0, SWING_ANGLE),
    (15.5, 2.30, 1.10, -95.0, SWING_ANGLE),
    (18.5, *INITIAL_TIP, 0.0),
)
#: Valve commands per position error (1/m and 1/rad), and overlap of the spools.
GAIN, SWING_GAIN, OVERLAP = 12.0, 2.5, 0.05
DURATION = 20.0
STROKES = {"boom": 0.5, "stick": 0.55, "bucket": 0.4}
"""Strokes of the cylinders, m."""
OPERATED_DURATION = 8.0
"""Duration of the operator's motions with ``control="diagram"``, s."""


def build(
    undercarriage: Literal["tracks", "fixed"] = "tracks",
    stones: Annotated[int, Range(0, 60)] = 44,
    flow: Positive = 1.6e-3,
    pressure: Annotated[float, Range(5e6)] = 1.2e7,
    power: Positive = 20e3,
    control: Literal["schedule", "diagram"] = "schedule",
) -> Scene:
    """Build the scene.

    Args:
        undercarriage: "tracks" (driven by hydraulic motors), or "fixed" (chassis fixed to the ground).
        stones: number of stones in the trench, 0 to 60.
        flow: maximum flow of the pump, m3/s, above 0.
        pressure: cut-off pressure of the pump at zero flow, Pa, 5e6 or more.
        power: maximum hydraulic power of the pump, W, above 0.
        control: "schedule": a schedule writes the valve commands. "diagram": a block diagram (_digger_control.py)
            computes the valve commands from sticks, pedals and a safety lever.
    """
    b = gpusim.ModelBuilder()
    machine = add_excavator(b, undercarriage, stones, flow, pressure, power)
    operated = control == "diagram"
    if operated:
        b.add_diagram(excavator_control(STROKES, undercarriage == "tracks", OVERLAP))
        b.set_operator_commands([])
    return Scene(
        name=NAME,
        description="An excavator on tracks digs stones out of a trench. One load-sensing pump supplies all drives.",
        builder=b,
        config=gpusim.SolverConfig(dt=3e-3, iterations=4, max_pairs=350),
        duration=OPERATED_DURATION if operated else DURATION,
        plots=[*_plots(0), *_operated_plots()] if operated else _plots(stones),
        camera=Camera((3.6, -4.6, 2.4), (1.1, 0.0, 0.7)),
        schedule=_gestures(undercarriage == "tracks") if operated else _operator(machine),
        checks=_operated_checks(undercarriage == "tracks") if operated else _checks(machine, stones),
    )


def _gestures(tracks: bool) -> Callable[[gpusim.Simulation, float], None]:
    """Return a schedule of operator inputs."""
    inputs = {
        "enable": [(1.0, 0.0), (1.0, 1.0)],
        "right_y": [(0.5, 0.0), (0.5, -0.9), (4.5, -0.9), (4.5, 0.0)],
        "left_x": [(1.2, 0.0), (1.2, -0.7), (3.0, -0.7), (3.0, 0.0)],
        "right_x": [(4.8, 0.0), (4.8, 0.6), (5.8, 0.6), (5.8, 0.0)],
        "left_y": [(4.8, 0.0), (4.8, -0.6), (5.8, -0.6), (5.8, 0.0)],
    }
    if tracks:
        inputs |= {f"{side}_pedal": [(6.8, 0.0), (6.8, 0.7), (OPERATED_DURATION, 0.7)] for side in ("left", "right")}
    return drive({name: Schedule(points) for name, points in inputs.items()})


def _operated_plots() -> list[Plot]:
    levers = ["left_x", "left_y", "right_x", "right_y"]
    return [
        Plot("Levers", "-", [f"diagram.cab.{name}" for name in levers], labels=levers),
        Plot("Swing brake", "-", ["diagram.cab.swing_mode.held"]),
        Plot("Chassis position", "m", ["body.chassis.position"]),
    ]


def _operated_checks(tracks: bool) -> list[Check]:
    def waits(run: Recording) -> bool:
        """Check that no valve opens before the machine is enabled."""
        early = run["time"] < 0.99
        return all(not run[f"valve.{name}.command"][early].any() for name in (*LEVERS, "swing"))

    def ends_softly(run: Recording) -> bool:
        """Check that the boom cylinder slows down and stops 2 to 40 mm before the end of its stroke."""
        position = run["cylinder.boom_cylinder.position"][(run["time"] > 1.0) & (run["time"] < 4.4), 0]
        return bool(STROKES["boom"] - 0.04 < position[-1] < STROKES["boom"] - 2e-3 and np.ptp(position[-10:]) < 5e-3)

    def moves(run: Recording) -> bool:
        """Check that the machine swings to the left, and that bucket and stick cylinders move by more than 5 cm."""
        strokes = [np.ptp(run[f"cylinder.{name}_cylinder.position"]) for name in ("stick", "bucket")]
        return bool(run["joint.swing.position"].max() > 0.3 and min(strokes) > 0.05)

    def rests(run: Recording) -> bool:
        """Check that cylinders and swing hold their positions after the operator releases the levers."""
        late = (run["time"] > 6.2) & (run["time"] < 6.75)
        still = all(np.ptp(run[f"cylinder.{name}_cylinder.position"][late]) < 3e-3 for name in LEVERS)
        return bool(
            still
            and run["diagram.cab.swing_mode.held"][late].all()
            and np.ptp(run["joint.swing.position"][late]) < 0.02
        )

    def drives(run: Recording) -> bool:
        displacement = run["body.chassis.position"][-1] - at(run, "body.chassis.position", 6.8)
        return bool(np.linalg.norm(displacement[0, :2]) > 0.1)

    return [
        Check("no valve opens before the machine is enabled", waits),
        Check("the boom stops softly near the end of its stroke", ends_softly),
        Check("swing, stick and bucket move", moves),
        Check("the machine stops after the release of the levers", rests),
        *([Check("the pedals drive the machine", drives)] if tracks else []),
        joints_stay_closed(2e-4),
    ]


def _operator(machine: Excavator) -> Callable[[gpusim.Simulation, float], None]:
    """Return a schedule that moves the bucket along WAYPOINTS with proportional control."""
    times = [point[0] for point in WAYPOINTS]
    strokes = np.array([_strokes(machine, *point[1:4]) for point in WAYPOINTS])
    tables = [Schedule(list(zip(times, column, strict=True))) for column in strokes.T]
    swing = Schedule([(point[0], math.radians(point[4])) for point in WAYPOINTS])
    signals = [f"cylinder.{name}_cylinder.position" for name in LEVERS] + ["joint.swing.position"]

    def write(sim: gpusim.Simulation, t: float) -> None:
        for name, signal, table in zip((*LEVERS, "swing"), signals, (*tables, swing), strict=True):
            error = table.value(t) - np.asarray(sim.read(signal, numpy=True))
            command = (SWING_GAIN if name == "swing" else GAIN) * error
            compensated = np.where(np.abs(command) > 0.01, command + OVERLAP * np.sign(command), 0.0)
            sim.control[name] = np.clip(compensated, -1.0, 1.0)

    return write


def _strokes(machine: Excavator, x: float, z: float, angle: float) -> list[float]:
    """Return the strokes (m) of the three cylinders for a bucket tip position (x, z) and angle (degrees)."""
    arm = machine.arm
    angles = joint_angles(x, z, math.radians(angle))
    rotations = {name: value - arm.links[name].pose for name, value in zip(LEVERS, angles, strict=True)}
    lengths = arm.mechanism.lengths(arm.poses(rotations))
    return [float(length) - RETRACTED[name] for name, length in zip(LEVERS, lengths, strict=True)]


def _plots(stones: int) -> list[Plot]:
    heights = [f"body.stone{k}.position" for k in range(stones)]
    return [
        Plot("Strokes", "m", [f"cylinder.{name}_cylinder.position" for name in LEVERS], labels=list(LEVERS)),
        Plot("Swing", "rad", ["joint.swing.position"]),
        Plot("Cylinder forces", "kN", [f"cylinder.{name}_cylinder.force" for name in LEVERS], list(LEVERS), 1e-3),
        Plot("Pump pressure", "MPa", ["node.line.pressure", "pump.pump.load_pressure"], ["line", "load"], 1e-6),
        Plot("Pump flow", "l/min", ["pump.pump.flow"], scale=6e4),
        Plot("Valve commands", "-", [f"valve.{name}.command" for name in (*LEVERS, "swing")]),
        Plot("Kinetic energy", "J", ["sim.kinetic_energy"]),
        Plot("Largest joint gap", "m", ["sim.joint_drift", "sim.joint_drift_peak"], labels=GAPS),
        *([Plot("Positions of the stones", "m", heights)] if heights else []),
    ]


def _checks(machine: Excavator, stones: int) -> list[Check]:
    static_forces = machine.arm.static().forces

    def holds(run: Recording) -> bool:
        """Check the mean cylinder forces at rest against the forces from the principle of virtual work."""
        early = (run["time"] > 0.4) & (run["time"] < 1.0)
        means = {name: run[f"cylinder.{name}_cylinder.force"][early].mean(axis=0) for name in static_forces}
        return all(near(means[name], force, 50.0 + 0.04 * abs(force)) for name, force in static_forces.items())

    def follows(run: Recording) -> bool:
        """Check that the cylinders reach the strokes of the last waypoint."""
        ends = zip(LEVERS, _strokes(machine, *WAYPOINTS[-1][1:4]), strict=True)
        return all(near(at(run, f"cylinder.{name}_cylinder.position", DURATION), end, 5e-3) for name, end in ends)

    def swings(run: Recording) -> bool:
        angle = run["joint.swing.position"]
        return near(at(run, "joint.swing.position", 13.9), math.radians(SWING_ANGLE), 0.03) and near(
            angle[-1], 0.0, 0.03
        )

    def dumps(run: Recording) -> bool:
        """Check that at least three stones are next to the trench at the end."""
        positions = np.stack([run[f"body.stone{k}.position"][-1] for k in range(stones)])
        return bool(np.all(np.sum(positions[..., 1] > 0.8, axis=0) >= 3))

    def calm(run: Recording) -> bool:
        """Check that the simulation is stable: the kinetic energy stays below 2 kJ."""
        energy = run["sim.kinetic_energy"]
        return bool(np.all((energy >= 0.0) & (energy < 2000.0)))

    def senses(run: Recording) -> bool:
        """Check that the pump pressure exceeds the load pressure by 0.3 to 1.9 MPa while the boom lifts."""
        t = (run["time"] > 8.5) & (run["time"] < 9.5)
        margin = (run["node.line.pressure"] - run["pump.pump.load_pressure"])[t]
        return bool(np.all(margin.mean(axis=0) > 0.3e6) and np.all(margin.mean(axis=0) < 1.9e6))

    return [
        joints_stay_closed(2e-4),
        Check("the cylinder forces at rest are those of the virtual work", holds),
        Check("the arm reaches its final pose", follows),
        Check("the upper carriage swings sideways and back", swings),
        Check("at least three stones are next to the trench at the end", dumps),
        Check("no body is thrown away", calm),
        Check("the pump keeps its margin above the load pressure", senses),
    ]
