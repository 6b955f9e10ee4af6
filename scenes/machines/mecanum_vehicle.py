"""A platform on four mecanum wheels drives forward, sideways, and forward while turning."""

from __future__ import annotations

import math

import gpusim
from gpusim.scene import Camera, Scene, require
from gpusim.scenes.machines import _rollers

NAME = "mecanum_vehicle"
MOST = 1.0
"""Maximum speed, m/s."""


def build(
    drive: _rollers.Drive = "speeds",
    speed: float = 0.5,
    mass: float = 24.0,
    wheelbase: float = 0.5,
    track: float = 0.4,
    roller_angle: float = 45.0,
    rollers: int = 10,
    roller_mass: float = 0.05,
    friction: float = 0.8,
) -> Scene:
    """Build the scene.

    Args:
        drive: "speeds" (commands forward, left, turn), "motors" (one DC motor per wheel) or "torques" (one torque motor
            per wheel).
        speed: speed of the platform, m/s, -1 to 1. The yaw rate is up to 2 rad/m times this speed.
        mass: mass of the platform, kg, above 0.
        wheelbase: distance between the axles, m, at least 0.3.
        track: distance between left and right wheels, m, at least 0.2.
        roller_angle: angle between the axis of a roller on the ground and the forward direction, degrees, 15 to 70.
        rollers: number of rollers per wheel, 6 or more.
        roller_mass: mass of each roller, kg, above 0.
        friction: friction of rollers and ground, 0 or more.
    """
    require(abs(speed) <= MOST, NAME, "speed", speed, "must lie between -1 and 1")
    require(mass > 0.0, NAME, "mass", mass, "must be above 0")
    require(wheelbase >= 0.3, NAME, "wheelbase", wheelbase, "must be at least 0.3")
    require(track >= 0.2, NAME, "track", track, "must be at least 0.2")
    require(15.0 <= roller_angle <= 70.0, NAME, "roller_angle", roller_angle, "must lie between 15 and 70")
    _rollers.require_rollers(NAME, rollers)
    require(roller_mass > 0.0, NAME, "roller_mass", roller_mass, "must be above 0")
    require(friction >= 0.0, NAME, "friction", friction, "must not be negative")
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
    _rollers.add_drives(b, wheels, drive, MOST)
    return Scene(
        name=NAME,
        description="A platform on four mecanum wheels drives forward, aside, and while it turns.",
        builder=b,
        config=gpusim.SolverConfig(dt=2e-3),
        duration=8.5,
        plots=_rollers.plots(4),
        camera=Camera((1.6, -1.6, 1.2), (0.6, 0.4, 0.0)),
        schedule=_rollers.schedule(wheels, drive, speed),
        checks=_rollers.checks(0.03),
    )
