"""A carrier of 1.5 t on two tracks, on several types of ground."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import Material, Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim import machines as m

CHASSIS, ROAD = 1500.0, (-0.6, -0.3, 0.0, 0.3, 0.6)
PITCH, TEETH = 0.12, 11
LOAD = 2000.0
Tracks = tuple[m.Track, ...]


def add_carrier(b: ModelBuilder, xform: Transform | None = None, **change: Any) -> Tracks:
    part = ModelBuilder(gravity=b.gravity)
    mass = CHASSIS
    chassis = part.add_body(mass, (0.1 * mass, 0.3 * mass, 0.35 * mass), com=(0, 0, 0.5), label="chassis")
    part.add_visual(chassis, "box", (0.8, 0.4, 0.15), xform=Transform((0, 0, 0.5)), color="#c75437")
    arm = m.TorsionArm(0.2, 2500.0, 250.0, load=LOAD)
    given: dict[str, Any] = {
        "pitch": PITCH,
        "sprocket": m.Sprocket((-0.9, 0.36), TEETH),
        "idler": m.Idler((0.9, 0.36)),
        "road": [m.RoadWheel((x, 0.181), arm=arm) for x in ROAD],
    }
    made = []
    for label, y in (("left", 0.65), ("right", -0.65)):
        made.append(m.add_track(part, chassis, Transform((0, y, 0)), label=label, **(given | change)))
    for track in made:
        part.add_servo(
            track.drive, "velocity", damping=40000.0, effort_limit=5000.0, label=part.joints[track.drive].label
        )
    b.add_builder(part, xform)
    return tuple(made)


def ground(b: ModelBuilder, slope: float = 0.0, step: float = 0.0, friction: float = 0.8) -> Transform:
    rock = Material(friction=friction)
    pose = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), -slope)
    b.add_shape_plane(-1, xform=pose, material=rock, label="ground")
    if step > 0.0:
        b.add_shape_box(-1, (3.0, 2.0, 0.5 * step), xform=Transform((4.6, 0, 0.5 * step)), material=rock, label="step")
    return pose


def crawler(dt: float = 2e-3, where: dict[str, Any] | None = None, **options: Any) -> tuple[Simulation, Tracks]:
    config = {key: options.pop(key) for key in tuple(options) if key in SolverConfig.__dataclass_fields__}
    sim_options = {key: options.pop(key) for key in ("backend", "num_worlds", "threads", "launch") if key in options}
    b = ModelBuilder()
    tracks = add_carrier(b, ground(b, **(where or {})), **options)
    return Simulation(b.finalize(), config=SolverConfig(dt=dt, **({"iterations": 4} | config)), **sim_options), tracks


def drive(sim: Simulation, tracks: Tracks, *speeds: float) -> None:
    for track, speed in zip(tracks, speeds * (3 - len(speeds)), strict=True):
        sim.control[f"{track.label}_drive"] = track.drive_speed(speed)


def rad(degrees: float) -> float:
    return math.radians(degrees)


def weight(sim: Simulation) -> float:
    return 9.81 * sum(float(sim.read(f"body.{body.label}.mass")[0]) for body in sim.model.bodies)


def small(scatter: float = 0.0) -> tuple[Tracks, Model]:
    b = ModelBuilder()
    b.add_shape_plane(-1, label="ground")
    chassis = b.add_body(60.0, (2.0, 5.0, 5.0), com=(0, 0, 0.2), label="chassis")
    b.add_joint_planar(-1, chassis, axis=(0, 1, 0), at=(0, 0, 0), label="guide")
    track = m.add_track(
        b, chassis, pitch=0.1, label="left", sprocket=m.Sprocket((-0.25, 0.15), 6, mass=3.0),
        idler=m.Idler((0.25, 0.15), tension=500.0, mass=3.0, carriage=2.0),
        shoe=m.Shoe((0.095, 0.15, 0.02), 0.6, guide=0.0),
    )  # fmt: skip
    b.add_servo(track.drive, "velocity", damping=500.0, effort_limit=200.0, label="left_drive")
    noise = np.random.default_rng(0).normal(size=(len(b.bodies), 3)) * scatter
    for shoe in track.shoes:
        body = b.bodies[shoe]
        body.xform = Transform(body.xform.position + noise[shoe] * (1, 0, 1), body.xform.rotation)
    return (track,), b.finalize()
