from __future__ import annotations

import math

from gpusim import ModelBuilder, Simulation, Transform
from tests.robustness.setups import DOWN, HINGE, Vector, chain, command, free, setup


@setup(3e4)
def servo_kp_1e9() -> ModelBuilder:
    """Undamped servos of 1e9 N m/rad, 0.5 rad from their targets."""
    return _servos(1e9, 0.5)


@setup(9e3)
def servo_kp_1e15() -> ModelBuilder:
    return _servos(1e15, 0.5, damping=1e15)


@setup(20.0)
def servo_kp_1e9_switch() -> ModelBuilder:
    """Undamped servos of 1e9 N m/rad that start at their targets."""
    return _servos(1e9, 0.0)


def _servos(stiffness: float, target: float, damping: float = 0.0, mode: str = "position") -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    chain(b, 3)
    for joint in range(3):
        b.add_servo(joint, mode=mode, stiffness=stiffness, damping=damping, target=target)
    return b


@setup(2e3)
def servo_velocity_1e6() -> ModelBuilder:
    """Velocity servos of 1e6 N m s/rad with a target of 1000 rad/s on three hinges."""
    return _servos(0.0, 1000.0, damping=1e6, mode="velocity")


def _on_springs(stretch: float) -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    body = free(b, (0.0, 0.0, 1.0))
    for x in (-1.0, 1.0):
        for y in (-1.0, 1.0):
            rest = math.sqrt(3.0) - stretch
            b.add_spring(-1, body, (x, y, 2.0), (0.0, 0.0, 0.0), stiffness=1e12, rest_length=rest)
    return b


@setup(1.0, end_speed=0.1)
def springs_1e12() -> ModelBuilder:
    """A body at rest on four springs of 1e12 N/m."""
    return _on_springs(0.0)


@setup(3e5)
def springs_1e12_stretched() -> ModelBuilder:
    return _on_springs(0.1)


@setup(60.0)
def spring_zero_length() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    for x, off in ((0.0, 0.0), (1.0, 0.05)):
        b.add_spring(-1, free(b, (x + off, 0.0, 1.0)), (x, 0.0, 1.0), (0.0, 0.0, 0.0), stiffness=1e6)
    return b


@setup(1.8e5)
def torsion_1e12() -> ModelBuilder:
    """Torsion springs of 1e12 N m/rad, 0.1 rad from rest."""
    b = ModelBuilder(gravity=DOWN)
    chain(b, 3)
    for joint in range(3):
        b.add_torsion_spring(joint, 1e12, rest_angle=0.1)
    return b


def _cylinder(b: ModelBuilder, onto: int, point: Vector, base: Vector, length: float, label: str) -> None:
    volumes = {"volume_a": 5e-4, "volume_b": 2e-3, "stroke_min": 0.0, "stroke_max": 0.5, "flow_gain": 1e-6}
    areas = {"area_a": 3e-3, "area_b": 2e-3, "supply_pressure": 2e7, "viscous_friction": 1e4}
    b.add_hydraulic_cylinder(-1, onto, base, point, length_offset=length - 0.25, label=label, **areas, **volumes)


def _boom(b: ModelBuilder, **limits: float) -> int:
    """A boom of 200 kg and 2 m on a hinge, with its cylinder."""
    body = b.add_body(mass=200.0, inertia=(5.0, 67.0, 67.0), xform=Transform((1.0, 0.0, 1.0)), label="boom")
    b.add_joint_revolute(-1, body, Transform((0, 0, 1)), Transform((-1.0, 0, 0)), HINGE, **limits)
    _cylinder(b, body, (-0.5, 0.0, 0.0), (0.5, 0.0, 0.2), 0.8, "lift")
    return body


@setup(5.0, begin=command(lift=1.0))
def cylinder_blocked_boom() -> ModelBuilder:
    """A cylinder lifts a boom whose hinge is locked by its limits."""
    b = ModelBuilder(gravity=DOWN)
    _boom(b, limit_lower=0.0, limit_upper=0.0)
    return b


@setup(5.0, overlap=0.05, begin=command(lift=1.0))
def cylinder_against_wall() -> ModelBuilder:
    """A cylinder lifts a boom against a ceiling."""
    b = ModelBuilder(gravity=DOWN)
    body = _boom(b)
    b.add_shape_box(body, (1.0, 0.1, 0.1))
    b.add_shape_box(-1, (0.2, 1.0, 0.1), xform=Transform((1.8, 0.0, 1.35)))
    return b


def _throw(sim: Simulation) -> None:
    sim.control["lift"] = 1.0
    sim.write("joint.joint0.velocity", -3.0)


@setup(10.0, begin=_throw)
def cylinder_into_stops_fast() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    _boom(b)
    return b


@setup(5.0, begin=command(lift=1.0, lower=-1.0))
def two_cylinders_fight() -> ModelBuilder:
    """Two cylinders on one boom: one extends, the other retracts."""
    b = ModelBuilder(gravity=DOWN)
    body = _boom(b)
    _cylinder(b, body, (0.5, 0.0, 0.0), (1.5, 0.0, 0.2), 0.8, "lower")
    return b
