"""A pyramid of boxes stands still."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Range, Scene

NAME = "pyramid"


def build(
    height: Annotated[int, Range(1, 100)] = 10,
    size: Positive = 1.0,
    space: Annotated[float, Range(minimum=0.0, below=0.5)] = 0.05,
    friction: NotNegative = 0.6,
    mass: Positive = 1.0,
) -> Scene:
    """Build the scene.

    Args:
        height: number of rows, 1 to 100. The lowest row has ``height`` boxes.
        size: edge length of a box, m, above 0.
        space: gap between the boxes of a row, as a fraction of the edge length, 0 to below 0.5.
        friction: coefficient of sliding friction, 0 or more.
        mass: mass of a box, kg, above 0.
    """
    material = gpusim.Material(friction=friction)
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    b.add_shape_plane(-1, material=material, label="ground")
    for row in range(height):
        for k in range(height - row):
            x = size * (1.0 + space) * (k - 0.5 * (height - row - 1))
            label = "top" if row == height - 1 else f"box{row}_{k}"
            box = b.add_body(mass=mass, xform=gpusim.Transform((x, 0.0, size * (row + 0.5))), label=label)
            b.add_shape_box(box, (0.5 * size,) * 3, material=material)
    span = size * height
    return Scene(
        name=NAME,
        description="A pyramid of boxes stands still.",
        builder=b,
        config=gpusim.SolverConfig(dt=1.0 / 60.0, substeps=4),
        duration=5.0,
        plots=[
            Plot("Position of the top box", "m", ["body.top.position"]),
            Plot("Kinetic energy", "J", ["sim.kinetic_energy"]),
            Plot("Maximum overlap", "m", ["sim.penetration"]),
        ],
        camera=Camera((0.5 * span, -1.6 * span, 0.8 * span), (0.0, 0.0, 0.4 * span)),
        checks=[
            Check("the top box moves by less than 1 mm", _stands),
            Check("overlaps are below 1 mm", lambda r: bool(np.max(r["sim.penetration"]) < 1e-3)),
        ],
    )


def _stands(recording: Mapping[str, np.ndarray]) -> bool:
    top = recording["body.top.position"]
    return bool(np.abs(top - top[:1]).max() < 1e-3)
