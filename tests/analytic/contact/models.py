"""The models of the reference cases D01 to D12 and of standing stacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gpusim
from gpusim import ContactLaw, Material, ModelBuilder, Transform

G = 9.81


def on_ground(material: Material, gravity: tuple[float, float, float] = (0.0, 0.0, -G)) -> ModelBuilder:
    """A builder with the ground."""
    b = ModelBuilder(gravity=gravity)
    b.add_shape_plane(-1, material=material, label="ground")
    return b


def incline(angle: float, friction: float) -> ModelBuilder:
    """Case D02: a block of 0.4 x 0.4 x 0.2 m and 2 kg on a plane with the angle ``angle`` (rad) about y."""
    b = ModelBuilder(gravity=(0.0, 0.0, -G))
    slope = Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), angle)
    material = Material(friction=friction)
    b.add_shape_plane(-1, xform=slope, material=material)
    block = b.add_body(mass=2.0, xform=slope * Transform((0.0, 0.0, 0.1)), label="block")
    b.add_shape_box(block, (0.2, 0.2, 0.1), material=material)
    return b


def sliding_sphere(speed: float = 2.0, spin: float = 0.0, friction: float = 0.2) -> ModelBuilder:
    """Case D01: a ball of 1 kg and radius 0.1 m, with a speed along x (m/s) and a spin about y (rad/s)."""
    material = Material(friction=friction)
    b = on_ground(material)
    _ball(b, 1.0, 0.1, (0.0, 0.0, 0.1), material, "ball", (speed, 0.0, 0.0), (0.0, spin, 0.0))
    return b


def bouncing_ball(restitution: float, height: float = 1.0) -> ModelBuilder:
    """Case D04: a ball of 1 kg and radius 0.1 m falls from ``height`` (m)."""
    material = Material(friction=0.0, restitution=restitution)
    b = on_ground(material)
    _ball(b, 1.0, 0.1, (0.0, 0.0, 0.1 + height), material, "ball")
    return b


def hertz_impact(speed: float, damping: float | None, radius: float = 0.05) -> ModelBuilder:
    """Case D05: a steel sphere hits a steel half space at ``speed`` (m/s) without gravity."""
    law = ContactLaw(normal="hertz")
    if damping is not None:
        law = ContactLaw(normal="hertz", damping="hunt_crossley", damping_coefficient=damping)
    steel = Material(friction=0.0, density=7800.0, young_modulus=2.1e11, poisson_ratio=0.3, law=law)
    b = on_ground(steel, gravity=(0.0, 0.0, 0.0))
    ball = b.add_body(xform=Transform((0.0, 0.0, radius)), linear_velocity=(0.0, 0.0, -speed), label="ball")
    b.add_shape_sphere(ball, radius, material=steel)
    return b


def spinning_disk(speed: float, spin: float, radius: float = 0.1, friction: float = 0.3) -> ModelBuilder:
    """Case D03: a thin disk slides along x (m/s) and spins about z (rad/s)."""
    law = ContactLaw(friction="contensou", patch_radius=radius, pressure="uniform")
    material = Material(friction=friction, law=law)
    b = on_ground(material)
    half = 5e-6
    inertia = (0.25 * radius**2, 0.25 * radius**2, 0.5 * radius**2)
    disk = b.add_body(
        mass=1.0,
        inertia=inertia,
        xform=Transform((0.0, 0.0, half)),
        linear_velocity=(speed, 0.0, 0.0),
        angular_velocity=(0.0, 0.0, spin),
        label="disk",
    )
    b.add_shape_cylinder(disk, radius, half, material=material)
    return b


def balls_on_a_plate() -> ModelBuilder:
    plate_material = Material(friction=0.4)
    ball_material = Material(friction=1.6)  # sqrt(0.4 * 1.6) = 0.8 on the plate
    b = on_ground(plate_material)
    plate = b.add_body(mass=10.0, xform=Transform((0.0, 0.0, 0.5)), com=(0.0, 0.0, 0.0), label="plate")
    b.add_shape_box(plate, (10.0, 10.0, 0.5), material=plate_material)
    for i in range(5):
        for j in range(5):
            place = (2.0 * (i - 2), 2.0 * (j - 2), 1.5)
            _ball(b, 1.0, 0.5, place, ball_material, f"ball{5 * i + j}")
    return b


def rattleback(record: dict[str, Any], friction: float = 1e3) -> ModelBuilder:
    """Case D11: an ellipsoid with principal axes of inertia at an angle to the axes of the ellipsoid."""
    b = on_ground(Material(friction=friction))
    w, x, y, z = record["initial"]["q"]
    pose = Transform((0.0, 0.0, 0.0), (x, y, z, w))
    axes = np.array([0.2, 0.03, 0.02])
    # Lowest point of the ellipsoid in the body frame, from its center of mass.
    down = pose.inverse().rotate(np.array([0.0, 0.0, -1.0]))
    support = axes**2 * down / math.sqrt(float(np.sum((axes * down) ** 2))) + np.array([0.0, 0.0, 0.01])
    contact = pose.rotate(support)
    rate = pose.rotate(np.asarray(record["initial"]["w_body"]))
    body = b.add_body(
        mass=record["mass"],
        inertia=np.asarray(record["inertia_body"]),
        xform=Transform((0.0, 0.0, -float(contact[2])), pose.rotation),
        linear_velocity=tuple(-np.cross(rate, contact)),
        angular_velocity=tuple(rate),
        label="stone",
    )
    b.add_shape_ellipsoid(body, tuple(axes), xform=Transform((0.0, 0.0, 0.01)), material=Material(friction=friction))
    return b


def tippe_top(regularization: float | None = 1e-3) -> ModelBuilder:
    """Case D12: a ball of radius 20 mm with a 5 mm low center of mass, tilted by 0.3 rad, spins about its axis."""
    law = None
    if regularization is not None:
        law = ContactLaw(friction="regularized", regularization_speed=regularization)
    material = Material(friction=0.3, law=law)
    b = on_ground(material)
    radius, offset, tilt, mass, spin = 0.02, 0.005, 0.3, 0.02, 150.0
    pose = Transform.from_axis_angle((0.0, 0.0, radius - offset * math.cos(tilt)), (1.0, 0.0, 0.0), tilt)
    body = b.add_body(
        mass=mass,
        inertia=(0.4 * mass * radius**2,) * 3,
        xform=pose,
        angular_velocity=tuple(pose.rotate(np.array([0.0, 0.0, spin]))),
        label="top",
    )
    b.add_shape_sphere(body, radius, xform=Transform((0.0, 0.0, offset)), material=material)
    return b


def stack(masses: list[float], half: float = 0.5, friction: float = 0.6) -> ModelBuilder:
    """A stack of cubes with the edge length 2 ``half`` (m), and with ``masses`` (kg) from bottom to top."""
    material = Material(friction=friction)
    b = on_ground(material)
    for i, mass in enumerate(masses):
        box = b.add_body(mass=mass, xform=Transform((0.0, 0.0, half * (2 * i + 1))), label=f"box{i}")
        b.add_shape_box(box, (half, half, half), material=material)
    return b


def pyramid(height: int, half: float = 0.5, friction: float = 0.6, space: float = 0.05) -> ModelBuilder:
    """A wall of cubes. Each layer has one cube fewer than the layer below."""
    material = Material(friction=friction)
    b = on_ground(material)
    for row in range(height):
        for k in range(height - row):
            x = (2.0 * half + space) * (k - 0.5 * (height - row - 1))
            box = b.add_body(mass=1.0, xform=Transform((x, 0.0, half * (2 * row + 1))), label=f"box{row}_{k}")
            b.add_shape_box(box, (half, half, half), material=material)
    return b


def leaning_tower(blocks: int, factor: float) -> ModelBuilder:
    """Case D10: blocks of 1 x 0.5 x 0.1 m. Block k from the top is shifted by ``factor``/(2 k) of its length."""
    material = Material(friction=0.8)
    b = on_ground(material)
    half = (0.5, 0.25, 0.05)
    x = 0.0
    for level in range(blocks):
        if level:
            x += factor / (2.0 * (blocks - level))
        body = b.add_body(mass=1.0, xform=Transform((x, 0.0, half[2] * (2 * level + 1))), label=f"block{level}")
        b.add_shape_box(body, half, material=material)
    return b


def cards(angle: float, friction: float, length: float = 0.1, thickness: float = 1e-3) -> ModelBuilder:
    """Case D10: two cards lean against each other at ``angle`` (rad) from the vertical."""
    floor = Material(friction=friction)
    b = ModelBuilder(gravity=(0.0, 0.0, -G))
    ground = b.add_shape_plane(-1, material=floor)
    half = (0.5 * thickness, 0.03, 0.5 * length)
    for sign, name in ((-1.0, "left"), (1.0, "right")):
        turn = Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), -sign * angle)
        top = turn.rotate(np.array([-sign * half[0], 0.0, half[2]]))
        lowest = min(turn.rotate(np.array([s * half[0], 0.0, -half[2]]))[2] for s in (-1.0, 1.0))
        body = b.add_body(mass=1e-3, xform=Transform((-float(top[0]), 0.0, -float(lowest)), turn.rotation), label=name)
        shape = b.add_shape_box(body, half, material=Material(friction=1.0))
        b.add_collision_pair(ground, shape, material=floor)
    return b


def _ball(
    b: ModelBuilder,
    mass: float,
    radius: float,
    place: tuple[float, float, float],
    material: Material,
    label: str,
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0),
    rate: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> int:
    ball = b.add_body(
        mass=mass,
        inertia=(0.4 * mass * radius**2,) * 3,
        xform=gpusim.Transform(place),
        linear_velocity=velocity,
        angular_velocity=rate,
        label=label,
    )
    b.add_shape_sphere(ball, radius, material=material)
    return ball
