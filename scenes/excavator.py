"""An excavator digs stones out of a trench: tracks, swing, boom, stick and bucket on one load-sensing pump.

117 bodies on two tracks of 42 shoes; round stones are scooped, lifted, swung aside and dumped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, Plot, Scene, require
from gpusim.scenes._checks import at, keeps_whole, near
from gpusim.scenes._digger import RETRACTED, Excavator, add_excavator, joint_angles
from gpusim.schedule import Schedule

NAME = "excavator"
Recording = Mapping[str, np.ndarray]
LEVERS = ("boom", "stick", "bucket")
#: Time, tip from the swing's axis and over the ground, m, angle of the bucket and of the swing, degrees.
BUILT = (1.70367, 0.77332, -150.0)
SIDE = 65.0
WAY = (
    (1.0, *BUILT, 0.0),
    (3.0, 2.52, 0.50, -100.0, 0.0),
    (4.2, 2.54, 0.06, -114.0, 0.0),
    (6.5, 2.10, 0.07, -130.0, 0.0),
    (7.6, 2.02, 0.30, -156.0, 0.0),
    (8.4, 2.00, 0.58, -180.0, 0.0),
    (10.0, 2.00, 1.05, -180.0, 0.0),
    (13.0, 2.00, 1.05, -180.0, SIDE),
    (14.5, 2.30, 1.10, -95.0, SIDE),
    (15.5, 2.30, 1.10, -95.0, SIDE),
    (18.5, *BUILT, 0.0),
)
#: Commands of valves per m and rad that the machine is behind, and dead zone of their spools.
GAIN, SWING_GAIN, OVERLAP = 12.0, 2.5, 0.05
DURATION = 20.0


def build(
    undercarriage: Literal["tracks", "fixed"] = "tracks",
    stones: int = 44,
    flow: float = 1.6e-3,
    pressure: float = 1.2e7,
    power: float = 20e3,
) -> Scene:
    """Build the scene.

    Args:
        undercarriage: two tracks that hydraulic motors drive, or a chassis that is held.
        stones: in the trench, 20 in a layer.
        flow: of the pump, m3/s.
        pressure: at which the pump's cut-off leaves no flow, Pa.
        power: greatest hydraulic power of the pump, W.
    """
    require(0 <= stones <= 60, NAME, "stones", stones, "must be from 0 to 60")
    for name, value in (("flow", flow), ("pressure", pressure), ("power", power)):
        require(value > 0.0, NAME, name, value, "must be above 0")
    b = gpusim.ModelBuilder()
    made = add_excavator(b, undercarriage, stones, flow, pressure, power)
    return Scene(
        name=NAME,
        description="An excavator on tracks digs stones out of a trench, all of it on one load-sensing pump.",
        builder=b,
        config=gpusim.SolverConfig(dt=3e-3, iterations=4, max_pairs=600),
        duration=DURATION,
        plots=_plots(stones),
        camera=Camera((3.6, -4.6, 2.4), (1.1, 0.0, 0.7)),
        schedule=_operator(made),
        checks=_checks(made, stones),
    )


def _operator(made: Excavator) -> Callable[[gpusim.Simulation, float], None]:
    """An operator who follows the way: levers by how far cylinders and swing are behind."""
    times = [point[0] for point in WAY]
    strokes = np.array([_strokes(made, *point[1:4]) for point in WAY])
    tables = [Schedule(list(zip(times, column, strict=True))) for column in strokes.T]
    swing = Schedule([(point[0], math.radians(point[4])) for point in WAY])
    signals = [f"cylinder.{name}_cylinder.position" for name in LEVERS] + ["joint.swing.position"]

    def write(sim: gpusim.Simulation, t: float) -> None:
        for name, signal, table in zip((*LEVERS, "swing"), signals, (*tables, swing), strict=True):
            behind = table.value(t) - np.asarray(sim.read(signal, numpy=True))
            push = (SWING_GAIN if name == "swing" else GAIN) * behind
            opened = np.where(np.abs(push) > 0.01, push + OVERLAP * np.sign(push), 0.0)
            sim.control[name] = np.clip(opened, -1.0, 1.0)

    return write


def _strokes(made: Excavator, x: float, z: float, angle: float) -> list[float]:
    """Of the three cylinders where the tip is at (x, z) under an angle (degrees)."""
    arm = made.arm
    angles = joint_angles(x, z, math.radians(angle))
    turns = {name: value - arm.links[name].pose for name, value in zip(LEVERS, angles, strict=True)}
    lengths = arm.mechanism.lengths(arm.places(turns))
    return [float(length) - RETRACTED[name] for name, length in zip(LEVERS, lengths, strict=True)]


def _plots(stones: int) -> list[Plot]:
    heights = [f"body.stone{k}.position" for k in range(stones)]
    return [
        Plot("Strokes", "m", [f"cylinder.{name}_cylinder.position" for name in LEVERS], labels=list(LEVERS)),
        Plot("Swing", "rad", ["joint.swing.position"]),
        Plot("Cylinder forces", "kN", [f"cylinder.{name}_cylinder.force" for name in LEVERS], list(LEVERS), 1e-3),
        Plot("Pump", "MPa", ["node.line.pressure", "pump.pump.load_pressure"], ["its pressure", "load"], 1e-6),
        Plot("Flow of the pump", "l/min", ["pump.pump.flow"], scale=6e4),
        Plot("Levers", "share of travel", [f"valve.{name}.command" for name in (*LEVERS, "swing")]),
        Plot("Kinetic energy", "J", ["sim.kinetic_energy"]),
        Plot("Widest gap of a joint", "m", ["sim.joint_drift"]),
        *([Plot("Places of the stones", "m", heights)] if heights else []),
    ]


def _checks(made: Excavator, stones: int) -> list[Check]:
    hand = made.arm.static().forces

    def holds(run: Recording) -> bool:
        """Virtual work, on average before the arm moves: machine and arm still swing a little on tracks and oil."""
        early = (run["time"] > 0.4) & (run["time"] < 1.0)
        means = {name: run[f"cylinder.{name}_cylinder.force"][early].mean(axis=0) for name in hand}
        return all(near(means[name], force, 50.0 + 0.04 * abs(force)) for name, force in hand.items())

    def follows(run: Recording) -> bool:
        """The tip's way by the strokes, where the operator waits at its end."""
        ends = zip(LEVERS, _strokes(made, *WAY[-1][1:4]), strict=True)
        return all(near(at(run, f"cylinder.{name}_cylinder.position", DURATION), end, 5e-3) for name, end in ends)

    def swings(run: Recording) -> bool:
        angle = run["joint.swing.position"]
        return near(at(run, "joint.swing.position", 13.9), math.radians(SIDE), 0.03) and near(angle[-1], 0.0, 0.03)

    def dumps(run: Recording) -> bool:
        """Stones that end beside the trench, on the side that the machine swings to."""
        places = np.stack([run[f"body.stone{k}.position"][-1] for k in range(stones)])
        return bool(np.all(np.sum(places[..., 1] > 0.8, axis=0) >= 3))

    def calm(run: Recording) -> bool:
        """The machine's own motion is below 1 kJ."""
        energy = run["sim.kinetic_energy"]
        return bool(np.all((energy >= 0.0) & (energy < 2000.0)))

    def senses(run: Recording) -> bool:
        """While the boom lifts the pump stands above its load by the margin, within what its band gives way."""
        t = (run["time"] > 8.5) & (run["time"] < 9.5)
        above = (run["node.line.pressure"] - run["pump.pump.load_pressure"])[t]
        return bool(np.all(above.mean(axis=0) > 0.3e6) and np.all(above.mean(axis=0) < 1.9e6))

    return [
        keeps_whole(2e-4),
        Check("the shut valves hold the arm with the forces of virtual work", holds),
        Check("the arm is where the operator wants it at the end", follows),
        Check("the upper carriage swings aside and back", swings),
        *([Check("three stones or more lie beside the trench at the end", dumps)] if stones >= 8 else []),
        Check("nothing is thrown", calm),
        Check("the pump keeps its margin above the load", senses),
    ]
