"""Boxes and balls fall into a pit and come to rest in a pile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Range, Scene

NAME = "pile"
WALL = 0.2


def build(
    count: Annotated[int, Range(1, 100000)] = 60,
    balls: Annotated[float, Range(0.0, 1.0)] = 0.5,
    size: Positive = 0.2,
    friction: NotNegative = 0.5,
    restitution: Annotated[float, Range(0.0, 1.0)] = 0.0,
    seed: Annotated[int, Range(0)] = 1,
) -> Scene:
    """Build the scene.

    Args:
        count: number of bodies, 1 to 100000.
        balls: fraction of balls, 0 to 1.
        size: maximum edge length or diameter, m, above 0. Bodies have random sizes of 0.7 to 1 times ``size``.
        friction: coefficient of sliding friction, 0 or more.
        restitution: coefficient of restitution, 0 to 1.
        seed: seed of the random shapes, sizes and poses, 0 or more.
    """
    material = gpusim.Material(friction=friction, restitution=restitution)
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    side = max(2, math.ceil((2.0 * count) ** (1.0 / 3.0)))
    half = 0.6 * side * size
    _add_pit(b, half, material)
    random = np.random.default_rng(seed)
    pitch = 2.0 * half / side
    for k in range(count):
        layer, index = divmod(k, side * side)
        cell = np.array([index % side + 0.5 - 0.5 * side, index // side + 0.5 - 0.5 * side, 0.0]) * pitch
        jitter = random.uniform(-0.05, 0.05, 3) * pitch
        center = cell + jitter + np.array([0.0, 0.0, (1.0 + 1.2 * layer) * pitch])
        _add_body(b, k, random.random() < balls, size * random.uniform(0.7, 1.0), center, random, material)
    return Scene(
        name=NAME,
        description="Boxes and balls drop into a walled pit and come to rest.",
        builder=b,
        config=gpusim.SolverConfig(dt=1.0 / 120.0, substeps=2),
        duration=5.0,
        plots=[
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
            Plot("Maximum overlap", "m", ["sim.penetration"]),
            Plot("Contacts", "-", ["sim.contacts"]),
        ],
        camera=Camera((2.5 * half, -4.0 * half, 3.5 * half), (0.0, 0.0, 0.5 * half)),
        checks=[
            Check("the pile comes to rest", _rests),
            Check("overlaps in the pile are below 5 % of the size", lambda r: _shallow(r, 0.05 * size)),
            Check("no body falls through the floor", lambda r: bool(np.min(r["sim.potential_energy"]) > 0.0)),
        ],
    )


def _add_pit(b: gpusim.ModelBuilder, half: float, material: gpusim.Material) -> None:
    """Add a floor and four walls around a square with the half edge length ``half``, m."""
    b.add_shape_plane(-1, material=material, label="floor")
    for k in range(4):
        rotation = gpusim.Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.5 * math.pi * k)
        pose = rotation * gpusim.Transform((half + WALL, 0.0, half))
        b.add_shape_box(-1, (WALL, half + 2.0 * WALL, half), xform=pose, material=material, label=f"wall{k}")


def _add_body(
    b: gpusim.ModelBuilder,
    number: int,
    ball: bool,
    size: float,
    center: np.ndarray,
    random: np.random.Generator,
    material: gpusim.Material,
) -> None:
    rotation = random.normal(size=4)
    body = b.add_body(
        xform=gpusim.Transform(tuple(center), tuple(rotation)), label=f"{'ball' if ball else 'box'}{number}"
    )
    if ball:
        b.add_shape_sphere(body, 0.5 * size, material=material)
    else:
        b.add_shape_box(body, (0.5 * size, 0.4 * size, 0.3 * size), material=material)


def _rests(recording: Mapping[str, np.ndarray]) -> bool:
    """Check that less than 0.1 % of the maximum kinetic energy remains at the end."""
    kinetic = recording["sim.kinetic_energy"]
    return bool(np.all(kinetic[-1] < 1e-3 * kinetic.max(axis=0)))


def _shallow(recording: Mapping[str, np.ndarray], max_depth: float) -> bool:
    late = recording["time"] > 0.6 * recording["time"][-1]
    return bool(np.max(recording["sim.penetration"][late]) < max_depth)
