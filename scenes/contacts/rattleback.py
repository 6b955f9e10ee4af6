"""A rattleback that spins against its preferred direction starts to rock, stops, and then reverses its spin.

The scene is reference case D11 in ``tests/reference/multibody`` (Kane and Levinson 1982).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Range, Scene

NAME = "rattleback"
SEMI_AXES = np.array([0.2, 0.03, 0.02])
#: Height of the ellipsoid's center above the center of mass, m.
HEIGHT = 0.01
INERTIA = (2e-4, 1.6e-3, 1.7e-3)


def build(
    spin: float = -5.0,
    skew: Annotated[float, Range(-5e-4, 5e-4)] = -2e-5,
    tilt: Annotated[float, Range(-10.0, 10.0)] = 0.5,
    friction: NotNegative = 100.0,
) -> Scene:
    """Build the scene. The stone is an ellipsoid whose principal axes of inertia differ from its geometric axes.

    Args:
        spin: initial spin about the vertical, rad/s.
        skew: product of inertia Ixy, kg m2, between -5e-4 and 5e-4.
        tilt: initial tilt about both horizontal axes, deg, -10 to 10.
        friction: coefficient of sliding friction, 0 or more.
    """
    material = gpusim.Material(friction=friction)
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    b.add_shape_plane(-1, material=material, label="table")
    half = 0.5 * math.radians(tilt)
    c, s = math.cos(half), math.sin(half)
    rotation = (s * c, c * s, s * s, c * c)  # about x, then about the rotated y
    arm, pose = _contact_arm(rotation)
    rate = pose.rotate(np.array([0.0, 0.0, spin]))
    stone = b.add_body(
        mass=1.0,
        inertia=(*INERTIA, skew, 0.0, 0.0),
        xform=pose,
        linear_velocity=tuple(-np.cross(rate, arm)),
        angular_velocity=tuple(rate),
        label="stone",
    )
    b.add_shape_ellipsoid(stone, SEMI_AXES, xform=gpusim.Transform((0.0, 0.0, HEIGHT)), material=material)
    return Scene(
        name=NAME,
        description="A rattleback that spins against its preferred direction reverses its spin.",
        builder=b,
        config=gpusim.SolverConfig(dt=5e-4),
        duration=5.0,
        plots=[
            Plot("Angular velocity", "rad/s", ["body.stone.angular_velocity"]),
            Plot("Position", "m", ["body.stone.position"]),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
        ],
        camera=Camera((0.3, -0.6, 0.3), (0.0, 0.0, 0.0)),
        checks=[Check("the spin reverses between 2.4 and 2.9 s", _reverses)],
    )


def _contact_arm(rotation: tuple[float, float, float, float]) -> tuple[np.ndarray, gpusim.Transform]:
    """Return the vector from the center of mass to the contact point (world axes), and the initial pose."""
    frame = gpusim.Transform((0.0, 0.0, 0.0), rotation)
    down = frame.inverse().rotate(np.array([0.0, 0.0, -1.0]))
    lowest = SEMI_AXES**2 * down / np.linalg.norm(SEMI_AXES * down) + np.array([0.0, 0.0, HEIGHT])
    arm = frame.rotate(lowest)
    return arm, gpusim.Transform((0.0, 0.0, -float(arm[2])), rotation)


def _reverses(recording: Mapping[str, np.ndarray]) -> bool:
    spin, time = recording["body.stone.angular_velocity"][..., 2], recording["time"]
    first = time[np.argmax(spin > 0.0, axis=0)]
    return bool(np.all((first > 2.4) & (first < 2.9) & (spin[-1] > 2.0)))
