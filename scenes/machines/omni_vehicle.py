"""A platform on three omni wheels drives forward, sideways, and forward while turning.

In the reference cases F01 and F02 in ``tests/reference/multibody``, the rollers of this vehicle are massless (Zobova
and Tatarinov 2009; Borisov, Kilin and Mamaev 2015).
"""

from __future__ import annotations

from typing import Annotated

import gpusim
from gpusim.scene import Camera, NotNegative, Positive, Range, Scene
from gpusim.scenes.machines import _rollers

NAME = "omni_vehicle"
MAX_SPEED = 1.5
"""Maximum speed, m/s."""


def build(
    drive: _rollers.Drive = "speeds",
    speed: Annotated[float, Range(-MAX_SPEED, MAX_SPEED)] = 0.5,
    mass: Positive = 24.0,
    distance: Annotated[float, Range(0.2)] = 0.3,
    rollers: int = 10,
    roller_mass: Positive = 0.05,
    friction: NotNegative = 0.8,
) -> Scene:
    """Build the scene.

    Args:
        drive: "speeds" (commands forward, left, turn), "motors" (one DC motor per wheel) or "torques" (one torque motor
            per wheel).
        speed: speed of the platform, m/s, -1.5 to 1.5. The maximum yaw rate is 2 rad/m times ``speed``.
        mass: mass of the platform, kg, above 0.
        distance: distance of the wheels from the center, m, at least 0.2.
        rollers: number of rollers per wheel, 6 or more.
        roller_mass: mass of each roller, kg, above 0.
        friction: friction of rollers and ground, 0 or more.
    """
    _rollers.require_rollers(NAME, rollers)
    b, platform = _rollers.platform((0.36, 0.36, 0.06), mass, friction)
    frames = _rollers.around(3, distance)
    options = {"rollers": rollers, "roller_mass": roller_mass, "material": gpusim.Material(friction=friction)}
    wheels = _rollers.add_wheels(b, platform, frames, [0.0] * 3, **options)
    _rollers.add_drives(b, wheels, drive, MAX_SPEED)
    return Scene(
        name=NAME,
        description="A platform on three omni wheels drives forward, sideways, and forward while turning.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3),
        duration=8.5,
        plots=_rollers.plots(3),
        camera=Camera((1.6, -1.6, 1.2), (0.6, 0.4, 0.0)),
        schedule=_rollers.schedule(wheels, drive, speed),
        checks=_rollers.checks(0.01),
    )
