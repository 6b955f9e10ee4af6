"""A house of cards stands by friction alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Range, Scene

NAME = "card_house"
LENGTH, WIDTH, THICKNESS, DENSITY = 0.09, 0.06, 1e-3, 800.0


def build(
    levels: Annotated[int, Range(1, 10)] = 3,
    angle: Annotated[float, Range(5.0, 30.0)] = 20.0,
    friction: NotNegative = 0.6,
) -> Scene:
    """Build the scene.

    Args:
        levels: number of levels, 1 to 10. The lowest level has ``levels`` card pairs.
        angle: angle of the cards from the vertical, deg, 5 to 30. Pairs of cards stand if ``friction`` is at least
            tan(angle) / 2.
        friction: coefficient of sliding friction, 0 or more.
    """
    material = gpusim.Material(friction=friction, density=DENSITY)
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    b.add_shape_plane(-1, material=material, label="table")
    lean = math.radians(angle)
    half = (0.5 * THICKNESS, 0.5 * WIDTH, 0.5 * LENGTH)
    # half width of a pair of cards at its feet, and its height
    half_span = 2.0 * half[2] * math.sin(lean) + 2.0 * half[0] * math.cos(lean)
    rise = 2.0 * half[2] * math.cos(lean) + 2.0 * half[0] * math.sin(lean)
    pitch = max(2.0 * half_span, LENGTH) + 2e-3
    for level in range(levels):
        floor = level * (rise + THICKNESS)
        for k in range(levels - level):
            x = pitch * (k - 0.5 * (levels - level - 1))
            _add_pair(b, f"{level}_{k}", x, floor, lean, material)
            if k:
                flat = gpusim.Transform((x - 0.5 * pitch, 0.0, floor + rise + half[0]))
                roof = b.add_body(xform=flat, label=f"roof{level}_{k}")
                b.add_shape_box(roof, (0.5 * pitch + 5e-3, half[1], half[0]), material=material)
    return Scene(
        name=NAME,
        description="A house of cards stands by friction alone.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3, substeps=2, iterations=16),
        duration=3.0,
        plots=[
            Plot("Position of the highest card", "m", [f"body.left{levels - 1}_0.position"]),
            Plot("Kinetic energy", "J", ["sim.kinetic_energy"]),
            Plot("Maximum overlap", "m", ["sim.penetration"]),
        ],
        camera=Camera((0.2, -0.6, 0.3), (0.0, 0.0, 0.45 * levels * rise)),
        checks=[Check("the highest card moves by less than 1 mm", lambda r: _stands(r, levels))],
    )


def _add_pair(
    b: gpusim.ModelBuilder, name: str, x: float, floor: float, lean: float, material: gpusim.Material
) -> None:
    """Add two cards that lean against each other above ``x``."""
    half = (0.5 * THICKNESS, 0.5 * WIDTH, 0.5 * LENGTH)
    for sign, side in ((-1.0, "left"), (1.0, "right")):
        tilt = gpusim.Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), -sign * lean)
        inner = tilt.rotate(np.array([-sign * half[0], 0.0, half[2]]))
        height = half[2] * math.cos(lean) + half[0] * math.sin(lean)
        pose = gpusim.Transform((x - float(inner[0]), 0.0, floor + height), tilt.rotation)
        card = b.add_body(xform=pose, label=f"{side}{name}")
        b.add_shape_box(card, half, material=material)


def _stands(recording: Mapping[str, np.ndarray], levels: int) -> bool:
    card = recording[f"body.left{levels - 1}_0.position"]
    return bool(np.abs(card - card[:1]).max() < 1e-3)
