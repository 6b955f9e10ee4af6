from __future__ import annotations

import math
from math import inf

import numpy as np

from gpusim import ContactLaw, Material, ModelBuilder, Simulation, Transform
from tests.robustness.setups import DOWN, NONE, Vector, ball, box, chain, command, ground, setup


def turned(place: Vector, axis: Vector, angle: float) -> Transform:
    """Pose at ``place``, rotated by ``angle`` (rad) about ``axis``."""
    return Transform.from_axis_angle(place, axis, angle)


@setup(2.0, overlap=inf, end_speed=0.1)
def jam_between_walls() -> ModelBuilder:
    b = ground()
    for side in (-1.0, 1.0):
        b.add_shape_box(-1, (0.5, 2.0, 2.0), xform=Transform((side * 0.95, 0.0, 2.0)))
    box(b, (0.0, 0.0, 1.0), (0.5, 0.5, 0.5), label="box")
    return b


@setup(2.0, overlap=inf, end_speed=0.1)
def jam_between_planes() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    for side in (-1.0, 1.0):
        b.add_shape_plane(-1, xform=turned((-side * 0.45, 0.0, 0.0), (0.0, 1.0, 0.0), side * 0.5 * math.pi))
    ball(b, (0.0, 0.0, 1.0), 0.5)
    return b


def _knuckle(b: ModelBuilder, start: Vector, weld: bool, fixed: bool) -> None:
    bodies: list[int] = []
    for k in range(3):
        body = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((start[0] + 0.1 * k, start[1], start[2])))
        if k != 1:
            b.add_shape_sphere(body, 0.15)
        bodies.append(body)
        if k == 0 and not fixed:
            continue
        parent, at = (-1, Transform(start)) if k == 0 else (bodies[k - 1], Transform((0.1, 0.0, 0.0)))
        if weld:
            b.add_joint_fixed(parent, body, at)
        else:
            b.add_joint_revolute(parent, body, at, axis=(0, 1, 0), limit_lower=-0.1, limit_upper=0.1)


@setup(3.0, overlap=inf)
def selfoverlap_spheres_free() -> ModelBuilder:
    """A free robot without gravity. Its outer links always overlap."""
    b = ModelBuilder(gravity=NONE)
    _knuckle(b, (0.0, 0.0, 1.0), weld=False, fixed=False)
    return b


@setup(3.0, overlap=inf)
def selfoverlap_arm_fixed() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    _knuckle(b, (0.0, 0.0, 1.0), weld=False, fixed=True)
    return b


@setup(5.0, overlap=inf)
def selfoverlap_on_ground() -> ModelBuilder:
    b = ground()
    _knuckle(b, (0.0, 0.0, 0.3), weld=False, fixed=False)
    return b


@setup(3.0, overlap=inf)
def selfoverlap_welded() -> ModelBuilder:
    """Overlapping links that are welded together."""
    b = ground()
    _knuckle(b, (0.0, 0.0, 0.2), weld=True, fixed=False)
    return b


@setup(5.0, gap=inf, overlap=inf)
def selfoverlap_same_body_chain() -> ModelBuilder:
    b = ground()
    for k, body in enumerate(chain(b, 6, length=0.1, start=(0.0, 0.0, 0.4), free=True, inertia=(1e-3,) * 3)):
        b.add_shape_sphere(body, 0.12, label=f"ball{k}")
    return b


@setup(8.0, overlap=0.05)
def overlapping_hip() -> ModelBuilder:
    """Torso and thigh overlap. Between them are three hinges with light bodies."""
    b = ground()
    parent = b.add_body(mass=8.0, inertia=(0.1,) * 3, xform=Transform((0.0, 0.0, 1.0)), label="torso")
    b.add_shape_capsule(parent, 0.1, 0.07)
    axes: tuple[Vector, ...] = ((1, 0, 0), (0, 0, 1), (0, 1, 0))
    for k, axis in enumerate(axes):
        thigh = k == 2
        place = Transform((0.0, 0.05, 0.85))
        body = b.add_body(mass=4.0 if thigh else 0.2, inertia=(0.05 if thigh else 1e-3,) * 3, xform=place)
        if thigh:
            b.add_shape_capsule(body, 0.1, 0.1, xform=Transform((0.0, 0.0, -0.1)))
        at = Transform((0.0, 0.05, -0.15)) if k == 0 else Transform()
        b.add_joint_revolute(parent, body, at, axis=axis, limit_lower=-0.4, limit_upper=0.4)
        parent = body
    return b


@setup(8.0, overlap=0.02, seconds=2.0)
def wedge_hammer() -> ModelBuilder:
    """A heavy block falls on a wedge between two free blocks."""
    b = ground()
    for side in (-1.0, 1.0):
        box(b, (side * 0.35, 0.0, 0.25), (0.25, 0.25, 0.25), 10.0)
    wedge = b.add_body(mass=1.0, inertia=(0.02,) * 3, xform=Transform((0.0, 0.0, 0.7)))
    b.add_shape_hull(wedge, [(x, y, z) for y in (-0.2, 0.2) for x, z in ((-0.2, 0.2), (0.2, 0.2), (0.0, -0.3))])
    box(b, (0.0, 0.0, 1.5), (0.3, 0.3, 0.3), 1000.0)
    return b


@setup(7.0, overlap=0.5)
def mass_ratio_stack() -> ModelBuilder:
    """A stack of boxes with 10 t, 1 kg and 10 t."""
    b = ground()
    for k, mass in enumerate((1e4, 1.0, 1e4)):
        box(b, (0.0, 0.0, 0.2 + 0.4 * k), (0.2, 0.2, 0.2), mass)
    return b


@setup(60.0, overlap=1.0)
def gravity_1000_pile() -> ModelBuilder:
    """A heap of boxes with a gravity of 1000 m/s2."""
    b = ground((0.0, 0.0, -1000.0))
    for k in range(6):
        box(b, (0.03 * (k % 2), 0.02 * (k % 3), 0.25 + 0.5 * k), (0.25, 0.25, 0.25))
    return b


@setup(6.0)
def big_chain_on_ground() -> ModelBuilder:
    b = ground()
    chain(b, 30, start=(0.0, 0.0, 0.3), radius=0.04, free=True)
    return b


@setup(5.0, gap=inf, overlap=inf, begin=command(motor=1.0))
def motor_against_wall() -> ModelBuilder:
    """A geared motor of 1 rad/s and 10 kN m rotates an arm whose second link is inside a wall."""
    b = ModelBuilder(gravity=DOWN)
    chain(b, 2, length=0.5, start=(0.0, 0.0, 1.0), radius=0.05, inertia=(0.0233,) * 3)
    b.add_shape_box(-1, (0.1, 1.0, 1.0), xform=Transform((0.6, 0.0, 0.2)))
    b.add_dc_motor(0, 100.0, 100.0, 0.01, gear_ratio=100.0, label="motor")
    return b


@setup(12.0)
def motor_squeeze_box() -> ModelBuilder:
    """Two sliders press a box of 1 kg between them with 1 kN each."""
    b = ground()
    box(b, (0.0, 0.0, 0.2), (0.2, 0.2, 0.2))
    for side in (-1.0, 1.0):
        jaw = box(b, (side * 0.5, 0.0, 0.3), (0.1, 0.2, 0.2), 5.0)
        slide = b.add_joint_prismatic(-1, jaw, Transform((side * 0.5, 0.0, 0.3)), axis=(1, 0, 0))
        b.add_servo(slide, stiffness=1e6, damping=1e4, effort_limit=1000.0, target=-side * 0.4)
    return b


@setup(5.0, overlap=inf)
def kinematic_press() -> ModelBuilder:
    b = ground()
    b.add_shape_box(-1, (0.5, 1.0, 1.0), xform=Transform((0.7, 0.0, 1.0)))
    box(b, (0.0, 0.0, 0.2), (0.2, 0.2, 0.2))
    press = b.add_body(xform=Transform((-0.4, 0.0, 0.5)), kinematic=True, linear_velocity=(1.0, 0.0, 0.0))
    b.add_shape_box(press, (0.1, 0.5, 0.5))
    return b


@setup(12.0, overlap=inf)
def same_point_spheres() -> ModelBuilder:
    """Five balls at one point."""
    b = ground()
    for _ in range(5):
        ball(b, (0.0, 0.0, 0.5), 0.1)
    return b


@setup(12.0, overlap=inf)
def same_point_boxes() -> ModelBuilder:
    """Five boxes at one point."""
    b = ground()
    for _ in range(5):
        box(b, (0.0, 0.0, 0.5), (0.1, 0.1, 0.1))
    return b


@setup(12.0, overlap=inf)
def same_point_capsules_cylinders() -> ModelBuilder:
    """Two capsules and two cylinders at one point."""
    b = ground()
    for k in range(4):
        body = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((0.0, 0.0, 0.5)))
        (b.add_shape_capsule if k % 2 else b.add_shape_cylinder)(body, 0.1, 0.2)
    return b


@setup(12.0, overlap=inf)
def same_point_hulls() -> ModelBuilder:
    """Four octahedra at one point."""
    b = ground()
    points = 0.15 * np.vstack([np.eye(3), -np.eye(3)])
    for _ in range(4):
        b.add_shape_hull(b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((0.0, 0.0, 0.5))), points)
    return b


@setup(5.0, overlap=inf)
def deep_in_ground() -> ModelBuilder:
    """A box and a ball 3 m under the ground."""
    b = ground()
    box(b, (0.0, 0.0, -3.0), (0.3, 0.3, 0.3))
    ball(b, (2.0, 0.0, -3.0), 0.3)
    return b


@setup(60.0, overlap=0.05)
def spin_1e4_ground() -> ModelBuilder:
    b = ground()
    body = b.add_body(mass=1.0, inertia=(0.004,) * 3, xform=Transform((0.0, 0.0, 0.1)), angular_velocity=(0, 1e4, 0))
    b.add_shape_sphere(body, 0.1)
    return b


def _rods(b: ModelBuilder, seed: int) -> list[int]:
    r = np.random.default_rng(seed)
    bodies = []
    for k in range(8):
        place = (float(r.uniform(-0.2, 0.2)), 0.0, 0.5 + 0.2 * k)
        bodies.append(b.add_body(xform=turned(place, tuple(r.normal(size=3)), 1.5)))
    return bodies


@setup(20.0, overlap=2.0, seconds=2.0)
def thin_rods() -> ModelBuilder:
    b = ground()
    for k, body in enumerate(_rods(b, 1)):
        (b.add_shape_capsule if k % 2 else b.add_shape_cylinder)(body, 2e-3, 2.5)
    return b


@setup(20.0, overlap=2.0, seconds=2.0)
def thin_rod_boxes() -> ModelBuilder:
    b = ground()
    for body in _rods(b, 2):
        b.add_shape_box(body, (2e-3, 2e-3, 2.5))
    return b


@setup(20.0, overlap=0.05)
def thin_plate() -> ModelBuilder:
    """Slightly tilted plates on each other, 1 m wide and 2 mm thick."""
    b = ground()
    for k in range(3):
        body = b.add_body(xform=turned((0.0, 0.0, 0.3 + 0.2 * k), (1.0, 0.3, 0.0), 0.1))
        b.add_shape_box(body, (0.5, 0.5, 1e-3))
    return b


@setup(8.0, overlap=1e-3)
def tiny_bodies() -> ModelBuilder:
    """Cubes of 1 mm."""
    b = ground()
    for k in range(4):
        b.add_shape_box(b.add_body(xform=Transform((0.0, 0.0, 1e-3 + 1.2e-3 * k))), (5e-4,) * 3)
    return b


@setup(20.0, overlap=0.5)
def huge_bodies() -> ModelBuilder:
    """Cubes of 1 km and 1e12 kg on each other."""
    b = ground()
    for k in range(3):
        b.add_shape_box(b.add_body(xform=Transform((0.0, 0.0, 500.0 + 1001.0 * k))), (500.0,) * 3)
    return b


@setup(8.0)
def far_from_origin() -> ModelBuilder:
    """A stack of boxes 10,000 km from the origin."""
    b = ground()
    for k in range(4):
        box(b, (1e7, -1e7, 0.25 + 0.5 * k), (0.25, 0.25, 0.25))
    return b


def _sink(sim: Simulation) -> None:
    sim.step(5)
    for k in range(4):
        place = np.array(sim.read(f"body.link{k}.position"))[0]
        sim.write(f"body.link{k}.position", place - (0.0, 0.0, 0.5))


@setup(8.0, overlap=inf, begin=_sink)
def teleport_into_ground() -> ModelBuilder:
    b = ground()
    chain(b, 4, start=(0.0, 0.0, 0.2), radius=0.04, free=True)
    return b


@setup(6.0)
def friction_1e6() -> ModelBuilder:
    """Boxes that fall with friction of a million."""
    b = ModelBuilder(gravity=DOWN)
    rough = Material(friction=1e6)
    b.add_shape_plane(-1, material=rough)
    for k in range(4):
        body = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=turned((0.05 * k, 0.0, 0.3 + 0.35 * k), (1, 1, 0), 0.3))
        b.add_shape_box(body, (0.12, 0.12, 0.12), material=rough)
    return b


@setup(10.0, overlap=0.02)
def restitution_1_pile() -> ModelBuilder:
    """Balls that keep bouncing on each other."""
    b = ModelBuilder(gravity=DOWN)
    hard = Material(restitution=1.0)
    b.add_shape_plane(-1, material=hard)
    for k in range(6):
        body = b.add_body(mass=1.0, inertia=(0.004,) * 3, xform=Transform((0.01 * (k % 2), 0.0, 0.15 + 0.25 * k)))
        b.add_shape_sphere(body, 0.1, material=hard)
    return b


def _ragdoll(b: ModelBuilder, height: float, speed: float = 0.0) -> None:
    """A person of capsules on ball joints and hinges. Arms and legs have two links each."""
    moving: Vector = (speed, 0.0, 0.0)

    def limb(place: Vector, half: float, mass: float) -> int:
        thin = 0.4 * mass * 0.05**2
        long = mass * half**2 / 3.0 + thin
        body = b.add_body(mass=mass, inertia=(long, long, thin), xform=Transform(place), linear_velocity=moving)
        b.add_shape_capsule(body, 0.05, half - 0.05)
        return body

    torso = limb((0.0, 0.0, height), 0.3, 30.0)
    head = limb((0.0, 0.0, height + 0.42), 0.1, 4.0)
    b.add_joint_ball(torso, head, Transform((0.0, 0.0, 0.31)), Transform((0.0, 0.0, -0.11)), limit=0.5)
    for y, top, bend in ((0.2, 0.25, 1.0), (-0.2, 0.25, 1.0), (0.12, -0.32, -1.0), (-0.12, -0.32, -1.0)):
        upper = limb((0.0, y, height + top - 0.17), 0.15, 3.0)
        b.add_joint_ball(torso, upper, Transform((0.0, y, top)), Transform((0.0, 0.0, 0.17)), limit=1.2)
        lower = limb((0.0, y, height + top - 0.51), 0.15, 2.0)
        ends = (0.0, 2.0) if bend > 0.0 else (-2.0, 0.0)
        at, onto = Transform((0.0, 0.0, -0.17)), Transform((0.0, 0.0, 0.17))
        b.add_joint_revolute(upper, lower, at, onto, (0, 1, 0), limit_lower=ends[0], limit_upper=ends[1])


@setup(40.0)
def ragdoll_into_wall() -> ModelBuilder:
    """A person thrown against a wall at 20 m/s."""
    b = ground()
    b.add_shape_box(-1, (0.5, 3.0, 3.0), xform=Transform((1.0, 0.0, 3.0)))
    _ragdoll(b, 1.2, speed=20.0)
    return b


@setup(20.0, gap=inf, overlap=inf)
def ragdoll_in_press() -> ModelBuilder:
    """A person on the ground under a kinematic plate that moves down."""
    b = ground()
    _ragdoll(b, 0.9)
    press = b.add_body(xform=Transform((0.0, 0.0, 1.8)), kinematic=True, linear_velocity=(0.0, 0.0, -1.0))
    b.add_shape_box(press, (1.0, 1.0, 0.1))
    return b


@setup(15.0, gap=inf, overlap=inf)
def corridor_squeeze_robot() -> ModelBuilder:
    """A four-legged robot in a corridor 0.2 m too narrow for it."""
    b = ground()
    for side in (-1.0, 1.0):
        b.add_shape_box(-1, (3.0, 0.5, 1.0), xform=Transform((0.0, side * 0.6, 1.0)))
    torso = box(b, (0.0, 0.0, 0.6), (0.3, 0.15, 0.05), 10.0)
    for x in (-0.25, 0.25):
        for y in (-0.2, 0.2):
            upper = box(b, (x, y, 0.45), (0.03, 0.03, 0.12), 1.0)
            hip = b.add_joint_revolute(torso, upper, Transform((x, y, 0.0)), Transform((0.0, 0.0, 0.15)), (0, 1, 0))
            foot = b.add_body(mass=0.5, inertia=(2e-3,) * 3, xform=Transform((x, y, 0.15)))
            b.add_shape_capsule(foot, 0.03, 0.1)
            knee = b.add_joint_revolute(upper, foot, Transform((0, 0, -0.15)), Transform((0, 0, 0.15)), (0, 1, 0))
            for joint in (hip, knee):
                b.add_servo(joint, stiffness=200.0, damping=5.0, effort_limit=50.0)
    return b


@setup(20.0, overlap=0.3, seconds=2.0)
def hull_flat_needle() -> ModelBuilder:
    b = ground()
    e = 1e-4
    points = np.array([[-1, 0, 0], [1, 0, 0], [0, e, 0], [0, 0, e], [0, -e, 0]])
    for k in range(4):
        b.add_shape_hull(b.add_body(xform=turned((0.0, 0.0, 0.2 + 0.3 * k), (0.0, 1.0, 0.0), 0.4)), points)
    return b


@setup(12.0, overlap=0.05)
def wheel_on_edge_field() -> ModelBuilder:
    """A wheel rolls over a height field of steps that are narrower than its radius."""
    b = ModelBuilder(gravity=DOWN)
    heights = 0.1 * (np.indices((40, 12)).sum(axis=0) % 2)
    b.add_shape_height_field(-1, heights, spacing=(0.15, 0.15))
    pose = turned((-2.0, 0.0, 0.5), (1.0, 0.0, 0.0), 0.5 * math.pi)
    wheel = b.add_body(mass=5.0, inertia=(0.1, 0.1, 0.2), xform=pose, linear_velocity=(4, 0, 0))
    b.add_shape_wheel(wheel, 0.3, 0.02)
    return b


@setup(8.0, overlap=0.5)
def soft_contact_absurd() -> ModelBuilder:
    """Boxes on ground of 1e12 N/m^1.5 without damping."""
    b = ModelBuilder(gravity=DOWN)
    stiff = Material(law=ContactLaw(normal="hertz", stiffness=1e12))
    b.add_shape_plane(-1, material=stiff)
    for k in range(3):
        body = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((0.0, 0.0, 0.15 + 0.25 * k)))
        b.add_shape_box(body, (0.1, 0.1, 0.1), material=stiff)
    return b


@setup(60.0, overlap=inf)
def soft_contact_deep() -> ModelBuilder:
    """A ball starts 0.4 m deep in soft ground."""
    b = ModelBuilder(gravity=DOWN)
    soft = Material(law=ContactLaw(normal="hertz", stiffness=2e4))
    b.add_shape_plane(-1, material=soft)
    body = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, 0.0, 0.1)))
    b.add_shape_sphere(body, 0.5, material=soft)
    return b
