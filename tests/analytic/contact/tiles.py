from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Tire, Transform

SMOOTH = Material(friction=0.0)
ROAD = Material(friction=1.0)
TIRE = Material(friction=1.0, law=Tire((60e3, 50e3), 0.3, 200e3, 2000.0, width=0.15))
R = 0.2
CUBE = [(x, y, z) for x in (-R, R) for y in (-R, R) for z in (-R, R)]
ACROSS = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)
ALONG = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5 * math.pi)


def add_tile(b: ModelBuilder, kind: str, xform: Transform, half: float, material: Material, body: int = -1) -> int:
    if kind == "box":
        return b.add_shape_box(body, (half, 1.0, 0.1), xform=xform * Transform((0, 0, -0.1)), material=material)
    if kind == "hull":
        corners = [(x, y, z) for x in (-half, half) for y in (-1, 1) for z in (-0.2, 0)]
        return b.add_shape_hull(body, corners, xform=xform, material=material)
    return b.add_shape_height_field(body, np.zeros((9, 3)), spacing=(half, 0.25), xform=xform, material=material)


def add_floor(
    b: ModelBuilder,
    kinds: str = "box",
    material: Material = SMOOTH,
    yaw: float = 0.0,
    rows: tuple[float, ...] = (0.0,),
    steps: float = 0.0,
    count: int = 6,
    half: float = 0.25,
) -> None:
    turn, names = Transform.from_axis_angle((0, 0, 0), (0, 0, 1), yaw), kinds.split()
    for y in rows:
        for k in range(count):
            place = turn * Transform((2.0 * half * (k - 1), y, steps * ((7 * k) % 3 - 1)))
            add_tile(b, names[k % len(names)], place, half, material)


ADD: dict[str, Callable[[ModelBuilder, int, Material], int]] = {
    "box": lambda b, body, m: b.add_shape_box(body, (R, R, R), material=m),
    "hull": lambda b, body, m: b.add_shape_hull(body, CUBE, material=m),
    "cylinder": lambda b, body, m: b.add_shape_cylinder(body, R, R, material=m),
    "capsule": lambda b, body, m: b.add_shape_capsule(body, R, 0.15, xform=ALONG, material=m),
    "sphere": lambda b, body, m: b.add_shape_sphere(body, R, material=m),
    "wheel": lambda b, body, m: b.add_shape_wheel(body, R, 0.03, xform=ACROSS, material=m),
    "roller": lambda b, body, m: b.add_shape_cylinder(body, R, 0.15, xform=ACROSS, material=m),
}


def mover(b: ModelBuilder, shape: str, speed: float, material: Material = SMOOTH, x: float = 0.0) -> None:
    rolls = shape in ("sphere", "wheel", "roller")
    spin = (0.0, speed / R if rolls else 0.0, 0.0)
    body = b.add_body(xform=Transform((x, 0, R)), linear_velocity=(speed, 0, 0), angular_velocity=spin, label="mover")
    ADD[shape](b, body, material)


def simulate(b: ModelBuilder, backend: str = "native", **settings: Any) -> Simulation:
    return Simulation(b.finalize(), backend=backend, config=SolverConfig(**settings))
