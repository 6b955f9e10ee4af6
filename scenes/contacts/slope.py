"""A block on an incline sticks below the friction angle and slides above the friction angle.

The scene is reference case D02 in ``tests/reference/multibody``. At 30 degrees, the block slides with friction 0.5 and
sticks with friction 0.6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Range, Scene

NAME = "slope"
G = 9.81
HALF = (0.2, 0.2, 0.1)


def build(
    angle: Annotated[float, Range(minimum=0.0, below=60.0)] = 30.0, friction: NotNegative = 0.5, mass: Positive = 2.0
) -> Scene:
    """Build the scene. The slope falls along x.

    Args:
        angle: angle of the slope, deg, 0 to below 60. At 60 degrees or more, the block tips over.
        friction: coefficient of sliding friction, 0 or more.
        mass: mass of the block, kg, above 0.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -G))
    frame = gpusim.Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), math.radians(angle))
    material = gpusim.Material(friction=friction)
    b.add_shape_plane(-1, xform=frame, material=material, label="slope")
    block = b.add_body(mass=mass, xform=frame * gpusim.Transform((0.0, 0.0, HALF[2])), label="block")
    b.add_shape_box(block, HALF, material=material)
    return Scene(
        name=NAME,
        description="A block on an incline sticks below the friction angle and slides above it.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=2.0,
        plots=[
            Plot("Position", "m", ["body.block.position"]),
            Plot("Velocity", "m/s", ["body.block.linear_velocity"]),
        ],
        camera=Camera((0.6, -2.5, 0.8), (0.4, 0.0, -0.2)),
        checks=[_distance_check(math.radians(angle), friction)],
    )


def _distance_check(angle: float, friction: float) -> Check:
    """Return a check of the sliding distance."""
    pull = max(0.0, math.sin(angle) - friction * math.cos(angle))

    def passes(recording: Mapping[str, np.ndarray]) -> bool:
        path = recording["body.block.position"] - recording["body.block.position"][:1]
        distance = path[..., 0] * math.cos(angle) - path[..., 2] * math.sin(angle)
        expected = 0.5 * G * pull * recording["time"] ** 2
        return bool(np.all(np.abs(distance - expected[:, None]) <= 1e-3 * expected[-1] + 1e-6))

    return Check("the sliding distance follows Coulomb's law", passes)
