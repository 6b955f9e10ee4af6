"""A platform on four mecanum wheels drives forward, sideways, and forward while turning."""

from __future__ import annotations

import math
from typing import Annotated

import gpusim
from gpusim.scene import Camera, NotNegative, Positive, Range, Scene
from gpusim.scenes.machines import _rollers

NAME = "mecanum_vehicle"
MAX_SPEED = 1.0
"""Maximum speed, m/s."""


def build(
    drive: _rollers.Drive = "speeds",
    speed: Annotated[float, Range(-MAX_SPEED, MAX_SPEED)] = 0.5,
    mass: Positive = 24.0,
    wheelbase: Annotated[float, Range(0.3)] = 0.5,
    track: Annotated[float, Range(0.2)] = 0.4,
    roller_angle: Annotated[float, Range(15.0, 70.0)] = 45.0,
    rollers: int = 10,
    roller_mass: Positive = 0.05,
    friction: NotNegative = 0.8,
) -> Scene:
    """Build the scene.

    Args:
        drive: "speeds" (commands forward, left, turn), "motors" (one DC motor per wheel) or "torques" (one torque motor
            per wheel).
        speed: speed of the platform, m/s, -1 to 1. The maximum yaw rate is 2 rad/m times ``speed``.
        mass: mass of the platform, kg, above 0.
        wheelbase: distance between the axles, m, at least 0.3.
        track: distance between left and right wheels, m, at least 0.2.
        roller_angle: angle between the axis of a roller on the ground and the forward direction, degrees, 15 to 70.
        rollers: number of rollers per wheel, 6 or more.
        roller_mass: mass of each roller, kg, above 0.
        friction: friction of rollers and ground, 0 or more.
    """
    _rollers.require_rollers(NAME, rollers)
    b, platform = _rollers.platform((wheelbase + 0.1, track - 0.12, 0.06), mass, friction)
    corners = [(x, y) for x in (0.5 * wheelbase, -0.5 * wheelbase) for y in (0.5 * track, -0.5 * track)]
    angles = [math.copysign(math.radians(roller_angle), -x * y) for x, y in corners]
    wheels = _rollers.add_wheels(
        b,
        platform,
        [gpusim.Transform((x, y, 0.0)) for x, y in corners],
        angles,
        rollers=rollers,
        roller_mass=roller_mass,
        material=gpusim.Material(friction=friction),
    )
    _rollers.add_drives(b, wheels, drive, MAX_SPEED)
    return Scene(
        name=NAME,
        description="A platform on four mecanum wheels drives forward, sideways, and forward while turning.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3),
        duration=8.5,
        plots=_rollers.plots(4),
        camera=Camera((1.6, -1.6, 1.2), (0.6, 0.4, 0.0)),
        schedule=_rollers.schedule(wheels, drive, speed),
        checks=_rollers.checks(0.03),
    )
