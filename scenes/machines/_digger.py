"""Machine of the scene ``excavator`` and its trench: undercarriage, upper carriage, arm and bucket, with one pump."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np

import gpusim
from gpusim import Transform
from gpusim import machines as m

YELLOW, DARK, EARTH, ROCK = "#e0a020", "#4a4f55", "#7a6248", "#8d6e4f"
#: First hinge of the arm, (x, z), m, in the frame of the upper carriage. All frames have their origin on the ground
#: below the swing.
HINGE = (0.55, 0.95)
SWING = 0.65
BOOM, STICK, BUCKET = 1.6, 0.9, 0.45
WIDTH = 0.4
#: Distance of the cylinders' pins at zero stroke, m.
RETRACTED = {"boom": 0.52, "stick": 0.70, "bucket": 0.64}
GROUND, STEEL = gpusim.Material(friction=0.8), gpusim.Material(friction=0.4)
#: Trench between banks: x of start and end, half width, height of the banks, m.
TRENCH = (1.65, 2.9, 0.34, 0.25)
#: Stones: start position (x), row distance, maximum radius, m; numbers of stones across and along in a layer.
STONES, STONE, ACROSS, ROWS = (1.69, 0.158), 0.075, 4, 5
PITCH, TEETH, HALF_TRACK = 0.12, 11, 0.65
ROAD = (-0.6, -0.3, 0.0, 0.3, 0.6)


@dataclass(frozen=True)
class Excavator:
    """Result of ``add_excavator``: arm (for analytic calculations), swing, tracks, and body indices of the stones."""

    arm: m.BoomArm
    swing: m.Swing
    tracks: tuple[m.Track, ...]
    stones: tuple[int, ...]


def add_excavator(
    b: gpusim.ModelBuilder, undercarriage: str, stones: int, flow: float, pressure: float, power: float
) -> Excavator:
    """Add the machine and the stones."""
    soil = gpusim.Material(friction=0.8)
    b.add_shape_plane(-1, material=soil, label="ground")
    chassis, tracks = _add_undercarriage(b, undercarriage == "tracks")
    upper = b.add_body(900.0, (150.0, 290.0, 320.0), com=(-0.6, 0, 0.95), label="upper")
    for half, position, color in (
        ((0.65, 0.5, 0.04), (-0.2, 0, 0.72), DARK),
        ((0.32, 0.5, 0.25), (-0.6, 0, 1.0), YELLOW),
        ((0.3, 0.2, 0.42), (0.1, 0.3, 1.18), "#9fb4c0"),
    ):
        b.add_visual(upper, "box", half, xform=Transform(position), color=color)
    pack = m.add_power_pack(b, flow, pressure, power)
    swing = m.add_swing(b, chassis, upper, (0, 0, SWING), friction=100.0, brake_torque=4000.0)
    m.add_hydraulic_drive(b, pack, swing.joint, 1.5e-4, m.Spool(1.5e-4), "swing", relief=1.6e7, leakage=1e-12)
    arm = _add_arm(b, upper, pack)
    for track in tracks:
        m.add_hydraulic_drive(
            b, pack, track.drive, 1.2e-4, m.Spool(3e-4), f"{track.label}_track", leakage=2e-12, viscous_friction=20.0
        )
    return Excavator(arm, swing, tracks, _add_trench(b, stones))


def _add_undercarriage(b: gpusim.ModelBuilder, on_tracks: bool) -> tuple[int, tuple[m.Track, ...]]:
    """Add the chassis, either on two tracks or fixed to the ground."""
    mass = 1500.0
    chassis = b.add_body(mass, (0.1 * mass, 0.3 * mass, 0.35 * mass), com=(0, 0, 0.45), label="chassis")
    b.add_visual(chassis, "box", (0.8, 0.4, 0.15), xform=Transform((0, 0, 0.48)), color=DARK)
    if not on_tracks:
        for y in (-HALF_TRACK, HALF_TRACK):
            b.add_visual(chassis, "box", (1.0, 0.15, 0.28), xform=Transform((0, y, 0.3)), color=DARK)
        b.add_joint_fixed(-1, chassis, at=(0, 0, 0), label="ground")
        return chassis, ()
    arm = m.TorsionArm(0.2, 2500.0, 300.0, load=3250.0)
    tracks = [
        m.add_track(
            b, chassis, Transform((0, y, 0)), pitch=PITCH, sprocket=m.Sprocket((-0.9, 0.36), TEETH),
            idler=m.Idler((0.9, 0.36)), road=[m.RoadWheel((x, 0.181), arm=arm) for x in ROAD],
            shoe=m.Shoe(color=DARK), label=label,
        )
        for label, y in (("left", HALF_TRACK), ("right", -HALF_TRACK))
    ]  # fmt: skip
    return chassis, tuple(tracks)


def _add_arm(b: gpusim.ModelBuilder, upper: int, pack: m.PowerPack) -> m.BoomArm:
    """Add boom, stick and bucket linkage, each with a cylinder."""
    rad = math.radians
    links = [
        m.Link("boom", BOOM, 140.0, rad(35), (rad(-5), rad(68)), 0.16, 0.12, color=YELLOW),
        m.Link("stick", STICK, 60.0, rad(-110), (rad(-150), rad(-35)), 0.12, 0.1, color=YELLOW),
    ]
    arm = m.add_boom_arm(b, upper, (HINGE[0], 0, HINGE[1]), links)
    com, inertia = (0.2, 0.08), (2.0, 1.8, 2.4)
    bucket = m.Link("bucket", BUCKET, 70.0, rad(-75), (rad(-130), rad(20)), com=com, inertia=inertia, picture=False)
    m.add_bucket_linkage(b, arm, bucket, at=0.72, ear=(0.02, 0.16), rocker=0.24, link=0.26)
    _add_bucket_plates(b, arm.bodies["bucket"])
    spool = m.Spool(5e-4)
    cylinders = [
        m.ArmCylinder(
            "boom", "base", "boom", ((0.30, -0.35), (0.75, -0.06)), 0.063, 0.036, 0.5, m.Spool(6e-4),
            retracted=RETRACTED["boom"], holding=m.HoldingValve(1.6e7), back_pressure=5e5,
        ),
        m.ArmCylinder(
            "stick", "boom", "stick", ((0.75, 0.22), (-0.28, 0.06)), 0.063, 0.036, 0.55, spool,
            retracted=RETRACTED["stick"],
        ),
        m.ArmCylinder(
            "bucket", "stick", "rocker", ((0.02, 0.16), (0.24, 0.0)), 0.063, 0.036, 0.4, spool,
            retracted=RETRACTED["bucket"],
        ),
    ]  # fmt: skip
    m.add_arm_cylinders(b, arm, pack, cylinders)
    return arm


def _add_bucket_plates(b: gpusim.ModelBuilder, bucket: int) -> None:
    """Add the plates of the bucket."""
    corners, thickness = (0.0 + 0.02j, 0.05 + 0.2j, 0.26 + 0.22j, 0.45 + 0.0j), 0.03
    for k in range(3):
        start, edge = corners[k], corners[k + 1] - corners[k]
        middle = start + 0.5 * edge + 0.5j * thickness * edge / abs(edge)
        pose = Transform.from_axis_angle((middle.real, 0, middle.imag), (0, -1, 0), cmath.phase(edge))
        half = (0.5 * abs(edge), 0.5 * WIDTH, 0.5 * thickness)
        b.add_shape_box(bucket, half, xform=pose, material=STEEL, label=f"plate{k}", group="bucket", color=DARK)
    for side in (1.0, -1.0):
        pose = Transform((0.185, 0.5 * side * (WIDTH + 0.02), 0.115))
        name = f"cheek_{'left' if side > 0 else 'right'}"
        b.add_shape_box(
            bucket, (0.145, 0.01, 0.095), xform=pose, material=STEEL, label=name, group="bucket", color=DARK
        )


def _add_trench(b: gpusim.ModelBuilder, stones: int) -> tuple[int, ...]:
    """Add the four banks of a trench, and layers of round stones in the trench."""
    start, end, half, height = TRENCH
    bank = 0.5 * height
    middle, length = 0.5 * (start + end), 0.5 * (end - start)
    walls = [((length, 0.12, bank), (middle, side * (half + 0.12), bank)) for side in (1.0, -1.0)]
    walls += [((0.06, half + 0.24, bank), (x, 0.0, bank)) for x in (start - 0.06, end + 0.06)]
    for k, (size, position) in enumerate(walls):
        b.add_shape_box(-1, size, xform=Transform(position), material=GROUND, label=f"bank{k}", color=EARTH)
    random = np.random.default_rng(3)
    # Soft contacts with limited forces, so that jammed stones can move.
    law = gpusim.ContactLaw(normal="spring", damping="linear", stiffness=2e5, damping_coefficient=1e3)
    rock = gpusim.Material(friction=0.5, density=2000.0, law=law)
    pitch, bodies = 2.0 * half / ACROSS, []
    for k in range(stones):
        layer, cell = divmod(k, ACROSS * ROWS)
        row, column = divmod(cell, ACROSS)
        x, y = STONES[0] + (row + 0.5) * STONES[1], (column + 0.5) * pitch - half
        bodies.append(b.add_body(xform=Transform((x, y, STONE * (1.0 + 2.0 * layer))), label=f"stone{k}"))
        radius = STONE * random.uniform(0.85, 1.0)
        b.add_shape_sphere(bodies[-1], radius, material=rock, label=f"stone{k}", color=ROCK)
    return tuple(bodies)


def joint_angles(x: float, z: float, angle: float) -> tuple[float, float, float]:
    """Return the angles of boom, stick and bucket for a tip position.

    Each angle is relative to the previous link (rad).

    Args:
        x: distance of the tip from the swing axis (m).
        z: height of the tip above the ground (m).
        angle: elevation of the line from the bucket's hinge to the bucket's tip (rad).
    """
    offset = complex(x - HINGE[0], z - HINGE[1]) - BUCKET * cmath.exp(1j * angle)
    square = abs(offset) ** 2
    stick = -math.acos((square - BOOM**2 - STICK**2) / (2.0 * BOOM * STICK))
    boom = cmath.phase(offset) + math.acos((square + BOOM**2 - STICK**2) / (2.0 * BOOM * abs(offset)))
    bucket = (angle - boom - stick + math.pi) % (2.0 * math.pi) - math.pi
    return boom, stick, bucket
