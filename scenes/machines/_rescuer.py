"""Machine of the scene ``rtk_m``: carrier on four tracks, outriggers, swing and four-link arm, with one pump."""

from __future__ import annotations

import math
from dataclasses import dataclass

import gpusim
from gpusim import Transform
from gpusim import machines as m

Point = tuple[float, float]
ORANGE, DARK = "#d96a2b", "#454a50"
#: First hinge of the arm, (x, z), m, in the frame of the upper carriage. All frames have their origin on the ground
#: below the swing.
HINGE = (0.2, 0.8)
SWING = 0.55
TRACKS = {
    "front_left": (0.66, 0.55),
    "front_right": (0.66, -0.55),
    "rear_left": (-0.66, 0.55),
    "rear_right": (-0.66, -0.55),
}
PITCH, TEETH = 0.12, 9
ROAD = (-0.2, 0.0, 0.2)
#: Initial positions of the outriggers' soles, m.
LEGS = {"leg_fl": (0.5, 1.05), "leg_fr": (0.5, -1.05), "leg_rl": (-0.5, 1.05), "leg_rr": (-0.5, -1.05)}
SOLE, STROKE, FOOT, SHOE = 0.12, 0.3, 0.15, (0.118, 0.24, 0.04)
#: Initial extensions of the pistons, m.
EXTENSIONS = {"boom": 0.36, "jib": 0.25, "stick": 0.24, "bucket": 0.15}
#: Attachment point of the load, (x, z), m, in the bucket's frame.
HOOK = (0.3, 0.05)


@dataclass(frozen=True)
class Rescuer:
    """Result of ``add_rescuer``: tracks, outriggers, swing, and arm (for analytic calculations)."""

    tracks: dict[str, m.Track]
    legs: dict[str, m.Outrigger]
    swing: m.Swing
    arm: m.BoomArm


def add_rescuer(b: gpusim.ModelBuilder, load: float) -> Rescuer:
    """Add the machine with its track shoes on the ground z = 0.

    The command "load" scales the force ``load`` (N) that pulls the bucket down.
    """
    pose = Transform((0, 0, -_add_track(gpusim.ModelBuilder(), -1, "probe", (0.0, 0.0)).lowest))
    chassis = b.add_body(450.0, (45.0, 130.0, 150.0), com=(0, 0, 0.35), xform=pose, label="chassis")
    b.add_visual(chassis, "box", (1.0, 0.38, 0.12), xform=Transform((0, 0, 0.4)), color=DARK)
    tracks = {name: _add_track(b, chassis, name, pose) for name, pose in TRACKS.items()}
    for track in tracks.values():
        label, fastest = f"{track.label}_drive", track.drive_speed(1.0)
        b.add_servo(
            track.drive, "velocity", damping=2e4, effort_limit=1200.0, command_range=(-fastest, fastest), label=label
        )
    rubber, legs = gpusim.Material(friction=0.8), {}
    for name, (x, y) in LEGS.items():
        b.add_visual(
            chassis, "box", (0.06, 0.5 * abs(y) - 0.1, 0.05), xform=Transform((x, 0.5 * y, 0.62)), color=ORANGE
        )
        jack = m.ServoJack(stiffness=1e6, damping=1e5, effort_limit=3e4)
        legs[name] = m.add_outrigger(
            b,
            chassis,
            (x, y, SOLE),
            STROKE,
            FOOT,
            jack,
            name,
            length=0.55,
            leg_mass=12.0,
            foot_mass=4.0,
            tilt=0.25,
            material=rubber,
        )
    upper = b.add_body(250.0, (20.0, 35.0, 40.0), com=(-0.25, 0, 0.75), xform=pose, label="upper")
    b.add_visual(upper, "box", (0.4, 0.35, 0.12), xform=Transform((-0.2, 0, 0.7)), color=ORANGE)
    pack = m.add_power_pack(b, 1.2e-3, 1.8e7, 15e3)
    swing = m.add_swing(b, chassis, upper, (0, 0, SWING), friction=50.0, brake_torque=3000.0)
    m.add_hydraulic_drive(b, pack, swing.joint, 1.2e-4, m.Spool(1.2e-4), "swing", relief=1.6e7, leakage=1e-12)
    arm = _add_arm(b, upper, pack)
    b.add_force(arm.bodies["bucket"], (0, 0, -load), point=(HOOK[0], 0, HOOK[1]), label="load")
    return Rescuer(tracks, legs, swing, arm)


def _add_track(b: gpusim.ModelBuilder, chassis: int, label: str, position: tuple[float, float]) -> m.Track:
    """Add a short track with three road wheels."""
    arm = m.TorsionArm(0.16, 1200.0, 100.0, load=1250.0, mass=2.5)
    road = [m.RoadWheel((x, 0.131), 0.09, arm, mass=4.0) for x in ROAD]
    return m.add_track(
        b, chassis, Transform((*position, 0)), pitch=PITCH, label=label, road=road,
        sprocket=m.Sprocket((-0.42, 0.22), TEETH, mass=10.0),
        idler=m.Idler((0.45, 0.22), tension=2500.0, mass=8.0, carriage=4.0),
        rollers=[m.Roller((0.0, 0.32), 0.04, mass=1.5)],
        shoe=m.Shoe(SHOE, 2.5, color=DARK),
    )  # fmt: skip


def _add_arm(b: gpusim.ModelBuilder, upper: int, pack: m.PowerPack) -> m.BoomArm:
    """Add boom, jib, stick and bucket linkage, each with a cylinder and a holding valve."""
    rad = math.radians
    links = [
        m.Link("boom", 1.3, 55.0, rad(60), (rad(0), rad(80)), 0.13, 0.1, color=ORANGE),
        m.Link("jib", 0.8, 30.0, rad(-70), (rad(-110), rad(5)), 0.11, 0.09, color=ORANGE),
        m.Link("stick", 0.7, 22.0, rad(-70), (rad(-110), rad(0)), 0.1, 0.08, color=ORANGE),
    ]
    arm = m.add_boom_arm(b, upper, (HINGE[0], 0, HINGE[1]), links)
    bucket = m.Link("bucket", 0.4, 30.0, rad(-60), (rad(-120), rad(20)), 0.12, 0.3, com=(0.18, 0.05), color=DARK)
    m.add_bucket_linkage(b, arm, bucket, at=0.52, ear=(0.02, 0.16), rocker=0.24, link=0.26)
    spool = m.Spool(4e-4)

    def cylinder(
        name: str, ends: tuple[str, str], pins: tuple[Point, Point], bore: float, stroke: float, chamber: str
    ) -> m.ArmCylinder:
        holding = m.HoldingValve(2.4e7, chamber)
        return m.ArmCylinder(name, *ends, pins, bore, 0.5 * bore, stroke, spool, EXTENSIONS[name], holding=holding)

    cylinders = [
        cylinder("boom", ("base", "boom"), ((0.25, -0.3), (0.6, -0.06)), 0.09, 0.42, "a"),
        cylinder("jib", ("boom", "jib"), ((0.5, 0.22), (-0.25, 0.06)), 0.08, 0.4, "b"),
        cylinder("stick", ("jib", "stick"), ((0.05, 0.2), (-0.2, 0.06)), 0.063, 0.36, "b"),
        cylinder("bucket", ("stick", "rocker"), ((-0.08, 0.16), (0.24, 0.0)), 0.05, 0.3, "b"),
    ]
    m.add_arm_cylinders(b, arm, pack, cylinders)
    steel = gpusim.Material(friction=0.4)
    b.add_shape_box(arm.bodies["bucket"], (0.18, 0.15, 0.06), Transform((0.2, 0, 0.05)), steel, "bucket", color=DARK)
    return arm
