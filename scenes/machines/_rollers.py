"""Functions for vehicles with omni or mecanum wheels: platform, wheels, drives and commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

import gpusim
from gpusim.command_schedule import Schedule
from gpusim.machines import OmniWheel, add_omni_drive, add_omni_wheel
from gpusim.machines.omni_wheel import THINNEST
from gpusim.scene import Check, Plot, require
from gpusim.scenes._bodies import box_inertia
from gpusim.scenes._checks import Recording, near

PATH_END = (1.54898, 2.15577)
"""End position of a platform that follows the default commands exactly, m."""
RADIUS = 0.1
#: Initial gap (m) between wheels and ground, about ``contact_slop``. With a smaller gap, contacts would lift the
#: platform at the start.
LIFT = 0.99e-5
Drive = Literal["speeds", "motors", "torques"]
#: Platform velocities (m/s, m/s, rad/s) in the platform's axes: forward, to the left, then forward, left and yaw
#: together.
MOTIONS = {
    "forward": ((0.0, 0.0), (0.5, 1.0), (2.0, 1.0), (2.5, 0.0), (4.5, 0.0), (5.0, 1.0), (7.5, 1.0), (8.0, 0.0)),
    "left": ((0.0, 0.0), (2.0, 0.0), (2.5, 1.0), (4.5, 1.0), (5.0, 0.0)),
    "turn": ((0.0, 0.0), (5.0, 0.0), (5.5, 2.0), (7.5, 2.0), (8.0, 0.0)),
}
#: Wheel: roller radius, m, and hub mass, kg.
ROLLER_RADIUS, HUB_MASS = 0.02, 1.0
#: Motor of a wheel (rotor side) and its gear.
MOTOR: dict[str, Any] = {
    "stall_torque": 1.2, "no_load_speed": 500.0, "mechanical_time_constant": 0.01, "gear_ratio": 20.0,
}  # fmt: skip
MAX_TORQUE = 2.0
#: Fraction of the maximum torque for each wheel. The four fractions move and rotate the platform.
TORQUES = (0.25, -0.15, 0.05, 0.1)
#: Gains of the servos on the platform's velocity, N s/m, and yaw rate, N m s/rad.
VELOCITY_GAIN, YAW_GAIN = 2000.0, 200.0


def min_rollers() -> int:
    """Return the minimum number of rollers that form a closed circle."""
    return math.floor(math.pi / math.acos(1.0 - (1.0 - THINNEST) * ROLLER_RADIUS / RADIUS)) + 1


def require_rollers(scene: str, rollers: int) -> None:
    """Raise a ModelError if there are too few rollers to form a closed circle."""
    minimum = min_rollers()
    rule = f"must be at least {minimum}: fewer rollers of {ROLLER_RADIUS:g} m do not close a circle of {RADIUS:g} m"
    require(rollers >= minimum, scene, "rollers", rollers, rule)


def platform(size: tuple[float, float, float], mass: float, friction: float) -> tuple[gpusim.ModelBuilder, int]:
    """Return a builder with a ground and a platform, and the platform's body index. The center is at axle height."""
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    b.add_shape_plane(-1, material=gpusim.Material(friction=friction), label="ground")
    body = b.add_body(mass, box_inertia(mass, size), xform=gpusim.Transform((0, 0, RADIUS + LIFT)), label="platform")
    half = tuple(0.5 * edge for edge in size)
    b.add_visual(body, "box", half, xform=gpusim.Transform((0, 0, 0.04)), color="#c75437")
    b.add_visual(body, "box", (0.05, 0.05, 0.02), xform=gpusim.Transform((half[0] - 0.06, 0, 0.1)), color="#f2c14e")
    return b, body


def add_wheels(
    b: gpusim.ModelBuilder, body: int, frames: Sequence[gpusim.Transform], angles: Sequence[float], **options: Any
) -> list[OmniWheel]:
    """Add wheels w0, w1, ... to the platform. ``frames`` are the wheel frames, and ``angles`` the roller angles."""
    return [
        add_omni_wheel(
            b,
            body,
            frame,
            RADIUS,
            roller_radius=ROLLER_RADIUS,
            hub_mass=HUB_MASS,
            label=f"w{k}",
            roller_angle=angle,
            **options,
        )  # fmt: skip
        for k, (frame, angle) in enumerate(zip(frames, angles, strict=True))
    ]


def add_drives(b: gpusim.ModelBuilder, wheels: Sequence[OmniWheel], drive: Drive, max_speed: float) -> None:
    """Add the chosen drives: velocity servos for the platform, or DC motors or torque motors for the wheels.

    The commands of servos are limited to ``max_speed`` times the maximum velocities in ``MOTIONS``.
    """
    tendons = add_omni_drive(b, wheels)
    if drive == "speeds":
        for name in MOTIONS:
            gain = YAW_GAIN if name == "turn" else VELOCITY_GAIN
            limit = max_speed * max(value for _, value in MOTIONS[name])
            tendon = getattr(tendons, name)
            b.add_servo(tendon, "velocity", damping=gain, label=name, command_range=(-limit, limit))
    for k, wheel in enumerate(wheels):
        if drive == "motors":
            b.add_dc_motor(wheel.spin, **MOTOR, label=f"motor{k}")
        elif drive == "torques":
            b.add_torque_motor(wheel.spin, MAX_TORQUE, label=f"motor{k}")


def commands(speed: float) -> dict[str, Schedule]:
    """Return the commands forward, left and turn as functions of time."""
    return {name: Schedule([(t, speed * v) for t, v in points]) for name, points in MOTIONS.items()}


def schedule(wheels: Sequence[OmniWheel], drive: Drive, speed: float) -> Callable[[gpusim.Simulation, float], None]:
    """Return a function ``(sim, time)`` that writes servo velocities, motor voltages or motor torques."""
    tables = commands(speed)
    no_load_speed = MOTOR["no_load_speed"] / MOTOR["gear_ratio"]

    def write(sim: gpusim.Simulation, t: float) -> None:
        if drive == "torques":
            for k, fraction in enumerate(TORQUES[: len(wheels)]):
                sim.control[f"motor{k}"] = fraction
            return
        velocities = {name: table.mean(t, t + sim.step_size) for name, table in tables.items()}
        if drive == "speeds":
            for name, value in velocities.items():
                sim.control[name] = value
            return
        for k, wheel in enumerate(wheels):
            sim.control[f"motor{k}"] = float(np.clip(wheel.ideal(list(velocities.values())) / no_load_speed, -1.0, 1.0))

    return write


def plots(count: int) -> list[Plot]:
    """Return plots of the platform's motion and the wheel speeds."""
    spins = [f"joint.w{k}_spin.velocity" for k in range(count)]
    return [
        Plot("Position x, y, z", "m", ["body.platform.position"]),
        Plot("Velocity x, y, z", "m/s", ["body.platform.linear_velocity"]),
        Plot("Angular velocity x, y, z", "rad/s", ["body.platform.angular_velocity"]),
        Plot("Wheels", "rad/s", spins, labels=[f"wheel {k}" for k in range(count)]),
    ]


def around(count: int, distance: float) -> list[gpusim.Transform]:
    """Return the frames of wheels that roll along a circle around the platform. The first wheel is on the left."""
    frames = []
    for k in range(count):
        angle = 0.5 * math.pi + 2.0 * math.pi * k / count
        position = (distance * math.cos(angle), distance * math.sin(angle), 0.0)
        frames.append(gpusim.Transform.from_axis_angle(position, (0, 0, 1), angle + 0.5 * math.pi))
    return frames


def checks(tolerance: float) -> list[Check]:
    """Return the checks of a platform. The platform must stop within ``tolerance`` (m) of the path's end."""

    def arrives(run: Recording) -> bool:
        position = run["body.platform.position"][:, 0, :2]
        return near(np.linalg.norm(position[-1] - position[0] - PATH_END), 0.0, tolerance)

    def stays_up(run: Recording) -> bool:
        return near(run["body.platform.position"][:, :, 2], RADIUS, 1e-4)

    def moves_aside(run: Recording) -> bool:
        """Check the mean sideways velocity and the mean yaw rate of the platform."""
        t = (run["time"] > 3.0) & (run["time"] < 4.4)
        lateral = np.mean(run["body.platform.linear_velocity"][t, 0, 1])
        return near(lateral, 0.5, 0.01) and near(np.mean(run["body.platform.angular_velocity"][t, 0, 2]), 0.0, 0.01)

    return [
        Check(f"the platform stops within {1e3 * tolerance:g} mm of the end of its path", arrives),
        Check("the platform keeps its height within 0.1 mm", stays_up),
        Check("the platform moves sideways without rotation", moves_aside),
    ]
