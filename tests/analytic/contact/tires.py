from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import Material, ModelBuilder, Tire, Transform

G = 9.81
RADIUS, LOAD, WHEEL_MASS = 0.3, 4000.0, 16.0
AXLE_ACROSS = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)
SLIP_STIFFNESS, LENGTH, RADIAL = (6e4, 4e4), 0.3, 2e5
TIRE = Tire(SLIP_STIFFNESS, LENGTH, RADIAL, 500.0, (1.0, 0.8))
ROLLING_RADIUS = RADIUS - 0.5 * LOAD / RADIAL


def brush(slip: tuple[float, float], load: float, friction: tuple[float, float]) -> tuple[float, float]:
    """Force (along, across) (N) of the brush model for a slip v/V (along, across); Pacejka 2012, section 3.2."""
    wanted = [c * s for c, s in zip(SLIP_STIFFNESS, slip, strict=True)]
    theta = math.hypot(*(x / mu for x, mu in zip(wanted, friction, strict=True))) / (3.0 * load)
    share = 1.0 - theta + theta**2 / 3.0 if theta < 1.0 else 1.0 / (3.0 * theta)
    return -share * wanted[0], -share * wanted[1]


def rig(
    tire: Tire, speed: float, steer: float = 0.0, camber: float = 0.0, turning: float = 1e7, ground_last: bool = False
) -> ModelBuilder:
    b, material = ModelBuilder(gravity=(0.0, 0.0, -G)), Material(friction=1.0, law=tire)
    if not ground_last:
        b.add_shape_plane(-1, material=material)
    height = (0.0, 0.0, RADIUS - LOAD / RADIAL)
    given: dict[str, Any] = {"xform": Transform(height), "linear_velocity": (speed, 0.0, 0.0)}
    carriage = b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0), kinematic=True, label="carriage", **given)
    post = b.add_body(mass=LOAD / G - WHEEL_MASS, inertia=(1.0, 1.0, 1.0), label="post", **given)
    b.add_joint_prismatic(carriage, post, axis=(0, 0, 1))
    turn = Transform.from_axis_angle((0, 0, 0), (0, 0, 1), steer)
    turn = turn * Transform.from_axis_angle((0, 0, 0), (1, 0, 0), camber)
    given["xform"] = Transform(height, turn.rotation)
    wheel = b.add_body(mass=WHEEL_MASS, inertia=(turning,) * 3, label="wheel", **given)
    b.add_joint_revolute(post, wheel, Transform((0, 0, 0), turn.rotation), axis=(0, 1, 0))
    b.add_shape_wheel(wheel, RADIUS, 0.05, AXLE_ACROSS, material)
    if ground_last:
        b.add_shape_plane(-1, material=material)
    return b


def free_wheel(tire: Tire, speed: float, spin: float, mass: float = 20.0, turning: float = 0.9) -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, -G))
    b.add_shape_plane(-1, material=Material(friction=1.0))
    height = RADIUS - mass * G / RADIAL
    wheel = b.add_body(
        mass=mass, inertia=(0.6 * turning, turning, 0.6 * turning), xform=Transform((0, 0, height)),
        linear_velocity=(speed, 0, 0), angular_velocity=(0, spin, 0), label="wheel",
    )  # fmt: skip
    b.add_shape_wheel(wheel, RADIUS, 0.02, AXLE_ACROSS, Material(friction=1.0, law=tire))
    return b


class Car:
    wheelbase, track, mass, height = 2.6, 1.5, 1200.0, 0.25

    def __init__(self, front: float, rear: float, friction: float = 1.0) -> None:
        self.friction, self.stiffness = friction, (front, rear)
        self.total = self.mass + 4.0 * WHEEL_MASS
        # From the center of mass, halfway, to both axles.
        self.arm = 0.5 * self.wheelbase
        self.understeer = self.total * self.arm / (2.0 * self.wheelbase) * (1.0 / front - 1.0 / rear)

    def yaw_rate(self, speed: float, steer: float) -> float:
        return speed * steer / (self.wheelbase + self.understeer * speed * speed)

    def build(self, speed: float = 0.0, steer: float = 0.0, slope: float = 0.0, brake: str = "none") -> ModelBuilder:
        """Build the car on a plane with the angle ``slope`` (rad) about y.

        Args:
            speed: speed, m/s.
            steer: angle of the bicycle model's front wheel, rad.
            slope: slope of the ground, rad.
            brake: "none", "weld" (wheels fixed to the chassis) or "hinge" (friction of the hinges).
        """
        b = ModelBuilder(gravity=(0.0, 0.0, -G))
        ground = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), slope)
        b.add_shape_plane(-1, xform=ground, material=Material(friction=self.friction))
        height = RADIUS - 0.25 * self.total * G * math.cos(slope) / RADIAL
        rate = self.yaw_rate(speed, steer)
        aside = (self.arm - 0.5 * self.total * speed**2 / (2.0 * self.stiffness[1])) * rate if speed else 0.0
        velocity = np.array([speed, aside, 0.0])
        inertia = (0.3 * self.mass, 1.5 * self.mass, 1.7 * self.mass)
        at = ground * Transform((0, 0, height + self.height))
        chassis = b.add_body(
            mass=self.mass, inertia=inertia, xform=at, label="chassis",
            linear_velocity=tuple(ground.rotate(velocity)), angular_velocity=(0, 0, rate),
        )  # fmt: skip
        for end, x in enumerate((self.arm, -self.arm)):
            tire = Tire((8e4, self.stiffness[end]), LENGTH, RADIAL, 1000.0, width=0.18)
            for y in (0.5 * self.track, -0.5 * self.track):
                radius = self.wheelbase / math.tan(steer) - y if steer and not end else math.inf
                angle = math.atan(self.wheelbase / radius)
                self._wheel(b, chassis, ground, (x, y, height), angle, tire, velocity, rate, brake)
        return b

    def _wheel(
        self, b: ModelBuilder, chassis: int, ground: Transform, place: tuple[float, float, float], steer: float,
        tire: Tire, velocity: np.ndarray, rate: float, brake: str,
    ) -> None:  # fmt: skip
        own = velocity + np.cross((0.0, 0.0, rate), place)
        axle = np.array([-math.sin(steer), math.cos(steer), 0.0])
        spin = (own[0] * axle[1] - own[1] * axle[0]) / (0.5 * (RADIUS + place[2]))
        turn = Transform.from_axis_angle((0, 0, 0), (0, 0, 1), steer).rotation
        wheel = b.add_body(
            mass=WHEEL_MASS, inertia=(0.5, 0.9, 0.5), xform=ground * Transform(place, turn),
            linear_velocity=tuple(ground.rotate(own)),
            angular_velocity=tuple(ground.rotate(spin * axle + (0, 0, rate))),
        )  # fmt: skip
        hub = (place[0], place[1], -self.height)
        if brake == "weld":
            b.add_joint_fixed(chassis, wheel, Transform(hub))
        else:
            friction = 3000.0 if brake == "hinge" else 0.0
            b.add_joint_revolute(chassis, wheel, Transform(hub, turn), axis=(0, 1, 0), friction=friction)
        b.add_shape_wheel(wheel, RADIUS, 0.04, AXLE_ACROSS, Material(self.friction, law=tire), group=2, mask=1)
