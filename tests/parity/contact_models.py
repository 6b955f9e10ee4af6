from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import ContactLaw, Material, ModelBuilder, Tire, Transform

Case = tuple[ModelBuilder, dict[str, Any]]


def _turn(axis: int, angle: float) -> tuple[float, float, float, float]:
    q = [0.0, 0.0, 0.0, math.cos(0.5 * angle)]
    q[axis] = math.sin(0.5 * angle)
    return q[0], q[1], q[2], q[3]


def _swing(rate: float) -> dict[str, Any]:
    return {"linear_velocity": (0.5 * rate, 0.0, 0.0), "angular_velocity": (0.0, -rate, 0.0)}


def _ground(b: ModelBuilder, material: Material, slope: float = 0.0) -> None:
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, 0.0), _turn(1, slope)), material=material)


def ball(restitution: float) -> Case:
    b, m = ModelBuilder(), Material(restitution=restitution)
    _ground(b, m)
    body = b.add_body(
        xform=Transform((0, 0, 0.104)), linear_velocity=(0.3, 0.1, -1.0), angular_velocity=(1.0, 2.0, 3.0)
    )
    b.add_shape_sphere(body, radius=0.1, material=m)
    return b, {}


def slope(friction: float, **config: Any) -> Case:
    """A box that slides or sticks on a slope of 0.4 rad."""
    b, m = ModelBuilder(), Material(friction=friction)
    _ground(b, m, 0.4)
    turn = _turn(1, 0.4)
    up = np.array([math.sin(0.4), 0.0, math.cos(0.4)])
    body = b.add_body(xform=Transform(tuple(0.0999 * up), turn), angular_velocity=(0.0, 0.0, 0.2))
    b.add_shape_box(body, half_extents=(0.3, 0.2, 0.1), material=m)
    return b, config


def stack(count: int = 5, **config: Any) -> Case:
    """A stack of slightly rotated boxes that overlap."""
    b, m = ModelBuilder(), Material(friction=0.6)
    _ground(b, m)
    for k in range(count):
        body = b.add_body(xform=Transform((0.004 * k, 0.0, 0.1 + 0.1995 * k), _turn(2, 0.05 * k)))
        b.add_shape_box(body, half_extents=(0.1, 0.1, 0.1), material=m)
    return b, config


def heap(**config: Any) -> Case:
    b, m = ModelBuilder(), Material(friction=0.4)
    _ground(b, m)
    rng = np.random.default_rng(5)
    for k in range(10):
        place = (0.16 * (k % 2) + 0.02 * rng.uniform(), 0.17 * (k // 2 % 2), 0.099 + 0.19 * (k // 4))
        velocity = tuple(0.3 * rng.normal(size=3))
        spin = tuple(rng.normal(size=3))
        turn = _turn(2, 0.3 * rng.uniform())
        body = b.add_body(xform=Transform(place, turn), linear_velocity=velocity, angular_velocity=spin)
        if k % 3 == 2:
            b.add_shape_sphere(body, radius=0.1, material=m)
        else:
            b.add_shape_box(body, half_extents=(0.1, 0.1, 0.1), material=m)
    return b, {"max_colors": 2, **config}


def pendulum(**config: Any) -> Case:
    """A ball at the end of a pendulum that hits a box on the ground."""
    b, m = ModelBuilder(), Material(friction=0.5)
    _ground(b, m)
    arm = b.add_body(mass=2.0, inertia=(0.1, 0.1, 0.01), xform=Transform((0.0, 0.0, 0.65)), **_swing(3.0))
    b.add_joint_revolute(-1, arm, Transform((0, 0, 1.15)), Transform((0, 0, 0.5)), axis=(0, 1, 0), limit_lower=-1.0)
    b.add_shape_sphere(arm, radius=0.1, xform=Transform((0, 0, -0.5)), material=m)
    box = b.add_body(xform=Transform((0.203, 0.0, 0.0995)))
    b.add_shape_box(box, half_extents=(0.1, 0.15, 0.1), material=m)
    return b, config


def leg(**config: Any) -> Case:
    b, m = ModelBuilder(), Material(friction=0.8)
    _ground(b, m)
    _add_leg(b, 0.0, m)
    block = b.add_body(xform=Transform((0.249, 0, 0.0999)))
    b.add_shape_box(block, half_extents=(0.1, 0.1, 0.1), material=m)
    return b, config


def legs(**config: Any) -> Case:
    """Three islands: a leg, a leg with regularized friction, which is swept, and a leg that touches a fourth leg."""
    b, m = ModelBuilder(), Material(friction=0.8)
    _ground(b, m)
    smooth = Material(friction=0.8, law=ContactLaw(friction="regularized", regularization_speed=0.01))
    for x, material in ((0.0, m), (1.0, smooth), (2.0, m), (2.299, m)):
        _add_leg(b, x, material)
    return b, config


def _add_leg(b: ModelBuilder, x: float, material: Material) -> None:
    foot = b.add_body(mass=0.5, inertia=(0.002, 0.002, 0.002), xform=Transform((x, 0, 0.0499)))
    b.add_shape_box(foot, half_extents=(0.15, 0.08, 0.05), material=material)
    shin = b.add_body(mass=3.0, inertia=(0.05, 0.05, 0.01), xform=Transform((x, 0, 0.3)))
    thigh = b.add_body(mass=8.0, inertia=(0.2, 0.2, 0.05), xform=Transform((x, 0, 0.7)))
    options: dict[str, Any] = {"axis": (0, 1, 0), "damping": 2.0, "friction": 3.0}
    b.add_joint_revolute(foot, shin, Transform((0, 0, 0.05)), Transform((0, 0, -0.2)), **options)
    b.add_joint_revolute(shin, thigh, Transform((0, 0, 0.2)), Transform((0, 0, -0.2)), **options)


def soft(law: ContactLaw, **config: Any) -> Case:
    b, m = ModelBuilder(), Material(friction=0.3, law=law)
    _ground(b, m)
    body = b.add_body(xform=Transform((0, 0, 0.0985)), linear_velocity=(0.5, 0, -0.4), angular_velocity=(1.0, 2.0, 3.0))
    b.add_shape_sphere(body, radius=0.1, material=m)
    return b, config


def disk(pressure: str = "uniform", spinning: float = 0.0, rolling: float = 0.0, patch: bool = True) -> Case:
    """A cylinder that slides and spins on its flat side."""
    law = ContactLaw(friction="contensou", patch_radius=0.08, pressure=pressure) if patch else None
    m = Material(friction=0.4, law=law, spinning_friction=spinning, rolling_friction=rolling)
    b = ModelBuilder()
    _ground(b, m)
    body = b.add_body(xform=Transform((0, 0, 0.0499)), linear_velocity=(0.3, 0.2, 0), angular_velocity=(0, 0, 6.0))
    b.add_shape_cylinder(body, radius=0.1, half_length=0.05, material=m)
    return b, {}


def rolling_ball() -> Case:
    """A ball that rolls and spins against rolling and spinning friction."""
    b, m = ModelBuilder(), Material(friction=0.5, rolling_friction=0.01, spinning_friction=0.005)
    _ground(b, m)
    body = b.add_body(xform=Transform((0, 0, 0.0999)), linear_velocity=(0.5, 0, 0), angular_velocity=(0, 5.0, 4.0))
    b.add_shape_sphere(body, radius=0.1, material=m)
    return b, {}


def rolling_stones() -> Case:
    b, m = ModelBuilder(), Material(friction=0.5)
    _ground(b, m)
    stone = b.add_body(xform=Transform((0, 0, 0.0499)), angular_velocity=(1.0, 3.0, 2.0))
    b.add_shape_ellipsoid(stone, (0.2, 0.1, 0.05), material=m)
    lying = Transform.from_axis_angle((1, 0, 0.0999), (1, 0, 0), 1.5707963)
    roll = b.add_body(xform=lying, angular_velocity=(0, 4.0, 0))
    b.add_shape_cylinder(roll, radius=0.1, half_length=0.2, material=m)
    ball = b.add_body(xform=Transform((0, 1, 0.0999)), linear_velocity=(0.5, 0, 0.5), angular_velocity=(0, 5.0, 4.0))
    b.add_shape_sphere(ball, radius=0.1, material=m)
    swaying = Transform.from_axis_angle((0, 2, 0.1028), (1, 0, 0), 1.4)
    roller = b.add_body(xform=swaying, angular_velocity=(1.0, 4.0, 2.0))
    b.add_shape_barrel(roller, radius=0.1, arc_radius=0.3, half_length=0.15, material=m)
    return b, {"substeps": 3}


def limit(**config: Any) -> Case:
    """A pendulum that bounces on its limits."""
    b = ModelBuilder()
    arm = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), xform=Transform((0, 0, 0.5)), **_swing(2.0))
    b.add_joint_revolute(
        -1, arm, Transform((0, 0, 1)), Transform((0, 0, 0.5)),
        axis=(0, 1, 0), limit_lower=-0.01, limit_upper=0.01, limit_restitution=1.0,
    )  # fmt: skip
    return b, config


def own_material() -> Case:
    b = ModelBuilder()
    law = ContactLaw(friction="regularized", regularization_speed=0.01)
    ground = b.add_shape_plane(-1, material=Material(friction=0.2))
    for k in range(2):
        body = b.add_body(xform=Transform((0.5 * k, 0, 0.0999)), linear_velocity=(0.3, 0.1, 0))
        shape = b.add_shape_box(body, half_extents=(0.1, 0.1, 0.1), material=Material(friction=0.3))
        if k:
            b.add_collision_pair(ground, shape, material=Material(friction=0.9, law=law))
    return b, {}


def tires(**config: Any) -> Case:
    b = ModelBuilder()
    soft = Tire((3e3, 2e3), (0.1, 0.2), 2e4, 50.0, (1.0, 0.8), rolling_resistance=0.02, width=0.1)
    stiff = Tire(2e4, 0.05, friction_ellipse=(0.7, 1.0))
    _ground(b, Material(friction=0.8))
    box = b.add_body(xform=Transform((0, 3, 0.0999)))
    b.add_shape_box(box, half_extents=(0.5, 0.5, 0.1))
    for k, (law, spin) in enumerate(((soft, 6.0), (soft, -20.0), (stiff, 5.0), (soft, 3.0))):
        lean = _turn(0, 0.5 * math.pi + 0.1 * (k < 2))
        place = (0.0, float(k), 0.195 if law is stiff else 0.19 + 0.2 * (k == 3))
        wheel = b.add_body(
            mass=5.0, inertia=(0.08, 0.08, 0.15), xform=Transform(place, lean),
            linear_velocity=(1.0, 0.2, 0.0), angular_velocity=(0.2, spin, 0.3),
        )  # fmt: skip
        m = Material(friction=1.0, spinning_friction=0.01, law=law)
        b.add_shape_wheel(wheel, 0.2, 0.05, material=m, group=2, mask=1)
    return b, config


def cart(**config: Any) -> Case:
    """A cart on four tires. The hinge of one wheel has friction, which brakes the wheel."""
    b = ModelBuilder()
    _ground(b, Material(friction=0.8), 0.05)
    frame = b.add_body(mass=40.0, inertia=(2.0, 4.0, 5.0), xform=Transform((0, 0, 0.2)), linear_velocity=(2.0, 0.1, 0))
    law = Tire((6e3, 4e3), 0.1, 5e4, 200.0, rolling_resistance=0.01, width=0.06)
    for x in (-0.4, 0.4):
        for y in (-0.3, 0.3):
            steer = _turn(2, 0.1 * (x > 0.0))
            wheel = b.add_body(
                mass=3.0, inertia=(0.03, 0.06, 0.03), xform=Transform((x, y, 0.195 - 0.05 * x), steer),
                linear_velocity=(2.0, 0.1, 0), angular_velocity=(0, 10.0, 0),
            )  # fmt: skip
            b.add_joint_revolute(
                frame, wheel, Transform((x, y, -0.005 - 0.05 * x), steer),
                axis=(0, 1, 0), friction=3.0 * (x < y), damping=0.01,
            )  # fmt: skip
            turn = Transform((0, 0, 0), _turn(0, 0.5 * math.pi))
            b.add_shape_wheel(wheel, 0.2, 0.03, turn, Material(friction=1.0, law=law), group=2, mask=1)
    return b, config


def tiled(**config: Any) -> Case:
    b = ModelBuilder()
    road = Material(friction=0.3)
    for k, kind in enumerate(("box", "height_field", "hull", "box", "height_field")):
        place = Transform((0.5 * k - 1.0, 0.0, 0.0))
        if kind == "box":
            b.add_shape_box(-1, (0.25, 1.0, 0.1), place * Transform((0, 0, -0.1)), road)
        elif kind == "hull":
            corners = [(x, y, z) for x in (-0.25, 0.25) for y in (-1, 1) for z in (-0.2, 0)]
            b.add_shape_hull(-1, corners, xform=place, material=road)
        else:
            b.add_shape_height_field(-1, np.zeros((3, 3)), (0.25, 1.0), xform=place, material=road)
    places = ((-0.851, -0.6, 0.09999), (-0.3, -0.1, 0.098), (-0.2506, 0.3, 0.09999), (0.249, 0.7, 0.19))
    crate, soft_box, rolling, wheel = (
        b.add_body(xform=Transform(place), linear_velocity=(1.0, 0.1, 0.0), angular_velocity=(0.0, spin, 0.0))
        for place, spin in zip(places, (0.0, 0.0, 10.0, 5.0), strict=True)
    )
    b.add_shape_hull(crate, [(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)], material=road)
    law = ContactLaw(normal="spring", stiffness=5e4, damping="linear", damping_coefficient=50.0)
    spongy = b.add_shape_box(soft_box, (0.1, 0.1, 0.1), material=Material(friction=0.3, law=law))
    b.add_shape_sphere(rolling, 0.1, material=road)
    tread = Material(friction=1.0, density=300, law=Tire((6e3, 4e3), 0.1, 5e4, 200.0))
    tire = b.add_shape_wheel(wheel, 0.2, 0.03, Transform((0, 0, 0), _turn(0, 0.5 * math.pi)), tread)
    b.exclude_collision_pair(spongy, tire)
    return b, config


def valleys(**config: Any) -> Case:
    b, m = ModelBuilder(), Material(friction=0.4, rolling_friction=0.002)
    x, y = np.meshgrid(np.arange(-8, 9) * 0.1, np.arange(-18, 19) * 0.1)
    b.add_shape_height_field(-1, np.maximum(np.abs(x), -y - 0.8), (0.1, 0.1), material=m)
    ball, end_ball, box, roll, wheel = (
        b.add_body(xform=Transform(place, turn), linear_velocity=velocity)
        for place, turn, velocity in (
            ((0.0, -0.4, 0.1413), _turn(0, 0.0), (0.05, 0.5, 0.0)),
            ((0.0, -0.795, 0.2121), _turn(0, 0.0), (0.0, -0.3, 0.0)),
            ((0.001, 0.1, 0.19), _turn(2, 0.1), (0.0, 0.3, -0.5)),
            ((0.0, 0.7, 0.1413), _turn(0, 0.5 * math.pi), (0.0, 0.4, 0.0)),
            ((0.0, 1.4, 0.38), _turn(1, 0.5 * math.pi), (0.0, 0.5, 0.0)),
        )
    )
    b.add_shape_sphere(ball, 0.1, material=m)
    b.add_shape_sphere(end_ball, 0.15, material=m)
    b.add_shape_box(box, (0.15, 0.1, 0.05), material=m)
    b.add_shape_cylinder(roll, 0.1, 0.15, material=m)
    tread = Material(friction=1.0, density=300, law=Tire((6e3, 4e3), 0.1, 5e4, 200.0))
    b.add_shape_wheel(wheel, 0.3, 0.05, material=tread)
    return b, config


def rock_mesh(seed: int, columns: int = 15, size: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(*[np.linspace(-0.5, 0.5, columns) * size] * 2)
    x, y = (c + rng.uniform(-0.25, 0.25, x.shape) * size / (columns - 1) for c in (x, y))
    z = 0.1 * np.sin(3.0 * x) * np.cos(2.0 * y) + 0.02 * rng.normal(size=x.shape)
    low = (np.arange(columns - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    ways = np.array([[(0, 1, columns + 1), (0, columns + 1, columns)], [(0, 1, columns), (1, columns + 1, columns)]])
    triangles = low[:, None, None] + ways[rng.integers(0, 2, low.size)]
    return np.column_stack([x.ravel(), y.ravel(), z.ravel()]), triangles.reshape(-1, 3)


def rocks(**config: Any) -> Case:
    """A ball, a box, a cylinder and a tire on a triangle mesh, and a hull on a kinematic tray."""
    b, m = ModelBuilder(), Material(friction=0.4, rolling_friction=0.002)
    b.add_shape_triangle_mesh(-1, rock_mesh(1), material=m)
    ball, box, roll, wheel, load = (
        b.add_body(xform=Transform(place, turn), linear_velocity=velocity)
        for place, turn, velocity in (
            ((-0.6, -0.4, 0.25), _turn(0, 0.0), (0.5, 0.2, 0.0)),
            ((0.1, 0.5, 0.2), _turn(2, 0.1), (0.0, 0.3, -0.5)),
            ((0.6, -0.5, 0.25), _turn(0, 0.5 * math.pi), (0.0, 0.4, 0.0)),
            ((-0.7, 0.6, 0.4), _turn(0, 0.5 * math.pi), (0.5, 0.0, 0.0)),
            ((0.05, 0.0, 1.06), _turn(2, 0.3), (0.0, 0.0, 0.0)),
        )
    )
    b.add_shape_sphere(ball, 0.1, material=m)
    b.add_shape_box(box, (0.15, 0.1, 0.05), material=m)
    b.add_shape_cylinder(roll, 0.1, 0.15, material=m)
    b.add_shape_hull(load, [(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.05, 0.05)], material=m)
    tread = Material(friction=1.0, density=300, law=Tire((6e3, 4e3), 0.1, 5e4, 200.0))
    b.add_shape_wheel(wheel, 0.3, 0.05, material=tread)
    tray = b.add_body(xform=Transform((0.0, 0.0, 1.0)), linear_velocity=(0.3, 0.0, 0.0), kinematic=True)
    corners = [(x, y, z) for z, s in ((0.0, 0.3), (0.2, 0.4)) for x, y in ((-s, -s), (s, -s), (s, s), (-s, s))]
    sides = [(k, (k + 1) % 4, 4 + k) for k in range(4)] + [((k + 1) % 4, 4 + (k + 1) % 4, 4 + k) for k in range(4)]
    b.add_shape_triangle_mesh(tray, (corners, [(0, 1, 2), (0, 2, 3), *sides]), material=m)
    return b, config


HUNT_CROSSLEY = ContactLaw(normal="hertz", damping="hunt_crossley", damping_coefficient=0.5)
VOLUMETRIC = ContactLaw(
    normal="volumetric",
    stiffness=1e8,
    damping="linear",
    damping_coefficient=20.0,
    friction="contensou",
    pressure="hertz",
)
MODELS: dict[str, Callable[[], Case]] = {
    "ball_dead": lambda: ball(0.0),
    "ball_half": lambda: ball(0.5),
    "ball_elastic": lambda: ball(1.0),
    "slope_slides": lambda: slope(0.2),
    "slope_sticks": lambda: slope(0.8),
    "slope_substeps": lambda: slope(0.8, substeps=3),
    "slope_papers": lambda: slope(0.8, scheme="semi_implicit"),
    "stack": stack,
    "stack_few_sweeps": lambda: stack(iterations=2),
    "stack_converges": lambda: stack(2, impulse_tolerance=1e-6, iterations=20),
    "heap": heap,
    "pendulum_direct": pendulum,
    "pendulum_colored": lambda: pendulum(joint_solver="colored"),
    "leg_direct": leg,
    "legs_direct": legs,
    "leg_colored": lambda: leg(joint_solver="colored"),
    "leg_papers": lambda: leg(scheme="semi_implicit", joint_solver="colored"),
    "hunt_crossley": lambda: soft(HUNT_CROSSLEY),
    "volumetric": lambda: soft(VOLUMETRIC),
    "disk_uniform": disk,
    "disk_hertz": lambda: disk("hertz"),
    "disk_torques": lambda: disk(spinning=0.05, rolling=0.01, patch=False),
    "rolling_ball": rolling_ball,
    "rolling_stones": rolling_stones,
    "own_material": own_material,
    "tires": tires,
    "tires_substeps": lambda: tires(substeps=3),
    "tires_papers": lambda: tires(scheme="semi_implicit"),
    "cart_direct": cart,
    "cart_colored": lambda: cart(joint_solver="colored"),
    "tiled": tiled,
    "tiled_substeps": lambda: tiled(substeps=3),
    "valleys": valleys,
    "valleys_substeps": lambda: valleys(substeps=3),
    "valleys_colored": lambda: valleys(scheme="semi_implicit", joint_solver="colored"),
    "rocks": rocks,
    "rocks_substeps": lambda: rocks(substeps=3),
    "rocks_colored": lambda: rocks(scheme="semi_implicit", joint_solver="colored"),
    "limit_direct": limit,
    "limit_colored": lambda: limit(joint_solver="colored"),
}
