"""A tippe top (ball with a low center of mass) turns over and spins upside down.

The scene is reference case D12 in ``tests/reference/multibody``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Scene, require

NAME = "tippe_top"


def build(
    spin: float = 150.0,
    tilt: float = 0.3,
    radius: Positive = 0.02,
    offset: float = 0.005,
    mass: Positive = 0.02,
    friction: NotNegative = 0.3,
) -> Scene:
    """Build the scene.

    Args:
        spin: initial rate about the top's axis, rad/s. A slow top does not turn over.
        tilt: initial angle of the axis from the vertical, rad.
        radius: radius of the ball, m, above 0.
        offset: distance of the center of mass below the ball's center, m, 0 to below the radius.
        mass: mass of the top, kg, above 0.
        friction: coefficient of sliding friction, 0 or more.
    """
    require(0.0 <= offset < radius, NAME, "offset", offset, "must be from 0 to below the radius")
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    # regularized friction, because a tippe top needs sliding contacts
    law = gpusim.ContactLaw(friction="regularized", regularization_speed=1e-3)
    material = gpusim.Material(friction=friction, law=law)
    b.add_shape_plane(-1, material=material, label="table")
    center = (0.0, 0.0, radius - offset * math.cos(tilt))
    top = b.add_body(
        mass=mass,
        inertia=(0.4 * mass * radius**2,) * 3,
        xform=gpusim.Transform.from_axis_angle(center, (1.0, 0.0, 0.0), tilt),
        angular_velocity=(0.0, -spin * math.sin(tilt), spin * math.cos(tilt)),
        label="top",
    )
    b.add_shape_sphere(top, radius, xform=gpusim.Transform((0.0, 0.0, offset)), material=material)
    return Scene(
        name=NAME,
        description="A spinning ball with a low center of mass turns over (tippe top).",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=4.0,
        plots=[
            Plot("Position", "m", ["body.top.position"]),
            Plot("Angular velocity", "rad/s", ["body.top.angular_velocity"]),
            Plot("Orientation", "quaternion", ["body.top.orientation"]),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
        ],
        camera=Camera((0.12, -0.2, 0.1), (0.0, 0.0, 0.02)),
        checks=[
            Check("the top turns over", _is_inverted),
            Check("the energy never increases", _energy_falls),
        ],
    )


def _is_inverted(recording: Mapping[str, np.ndarray]) -> bool:
    x, y = recording["body.top.orientation"][-1, :, 0], recording["body.top.orientation"][-1, :, 1]
    return bool(np.all(1.0 - 2.0 * (x**2 + y**2) < -0.7))


def _energy_falls(recording: Mapping[str, np.ndarray]) -> bool:
    energy = recording["sim.kinetic_energy"] + recording["sim.potential_energy"]
    return bool(np.all(np.diff(energy, axis=0) < 1e-6 * energy[0]))
