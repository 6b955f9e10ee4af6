from __future__ import annotations

import math
from math import inf

import numpy as np

from gpusim import ModelBuilder, Simulation, Transform
from tests.robustness.setups import DOWN, HINGE, NONE, Vector, chain, command, free, setup


@setup(10.0, gap=inf)
def loop_cannot_close() -> ModelBuilder:
    """Three links with a total length of 1 m between pins 1.5 m apart."""
    b = ModelBuilder(gravity=DOWN)
    last = chain(b, 3, length=1.0 / 3.0)[-1]
    b.add_joint_ball(-1, last, Transform((1.5, 0.0, 2.0)), Transform((1.0 / 6.0, 0.0, 0.0)))
    return b


@setup(2.0, gap=inf, end_speed=0.1)
def two_welds_disagree() -> ModelBuilder:
    """A body welded to the world at two points 0.2 m apart."""
    b = ModelBuilder(gravity=DOWN)
    body = free(b, (0.0, 0.0, 1.0))
    for x in (-0.1, 0.1):
        b.add_joint_fixed(-1, body, Transform((x, 0.0, 1.0)))
    return b


@setup(5.0, gap=inf)
def two_hinges_not_parallel() -> ModelBuilder:
    """A body on two hinges with different axes, so that it cannot move."""
    b = ModelBuilder(gravity=DOWN)
    body = free(b, (0.0, 0.0, 1.0))
    b.add_joint_revolute(-1, body, Transform((-0.5, 0.0, 1.0)), Transform((-0.5, 0.0, 0.0)), (0, 1, 0))
    b.add_joint_revolute(-1, body, Transform((0.5, 0.0, 1.0)), Transform((0.5, 0.0, 0.0)), (1, 0, 0))
    return b


def _wheels(b: ModelBuilder) -> tuple[int, int]:
    """Two bodies on hinges through their centers of mass."""
    joints = [b.add_joint_revolute(-1, free(b, (x, 0, 1)), Transform((x, 0, 1)), axis=HINGE) for x in (0.0, 1.0)]
    return joints[0], joints[1]


@setup(1.0, end_speed=1e-3)
def gears_contradict() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    first, second = _wheels(b)
    b.add_gear(first, second, 2.0)
    b.add_gear(first, second, -3.0)
    b.add_torque(0, (0.0, 100.0, 0.0))
    return b


@setup(1.0, end_speed=1e-3)
def mimic_limits_contradict() -> ModelBuilder:
    """A mimic joint at twice the angle of its leader. The limits of both joints contradict each other."""
    b = ModelBuilder(gravity=DOWN)
    first = b.add_joint_revolute(-1, free(b, (0, 0, 1)), Transform((0, 0, 1)), axis=HINGE, limit_lower=0.5)
    second = b.add_joint_revolute(-1, free(b, (1, 0, 1)), Transform((1, 0, 1)), axis=HINGE, limit_upper=0.2)
    b.add_mimic(second, first, 2.0)
    return b


@setup(5.0)
def gear_servos_fight() -> ModelBuilder:
    """Two arms with a gear ratio of 1. Their stiff servos have opposite targets."""
    b = ModelBuilder(gravity=DOWN)
    joints = []
    for x in (0.0, 1.0):
        body = free(b, (x + 0.25, 0.0, 1.0))
        joints.append(b.add_joint_revolute(-1, body, Transform((x, 0, 1)), Transform((-0.25, 0, 0)), axis=HINGE))
    b.add_gear(joints[0], joints[1], 1.0)
    for joint, target in zip(joints, (1.0, -1.0), strict=True):
        b.add_servo(joint, stiffness=1e6, damping=1e4, target=target)
    return b


@setup(10.0, seconds=1.5)
def mass_ratio_chain_heavy_end() -> ModelBuilder:
    """Ten tons at the end of five links of 1 kg."""
    b = ModelBuilder(gravity=DOWN)
    chain(b, 5)
    body = free(b, (1.1, 0.0, 2.0), 1e4, 100.0)
    b.add_joint_revolute(4, body, Transform((0.1, 0, 0)), Transform((-0.1, 0, 0)), axis=HINGE)
    return b


@setup(10.0, seconds=1.5)
def mass_ratio_compact_links() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    chain(b, 5, inertia=(0.01,) * 3)
    body = free(b, (1.1, 0.0, 2.0), 1e4, 100.0)
    b.add_joint_revolute(4, body, Transform((0.1, 0, 0)), Transform((-0.1, 0, 0)), axis=HINGE)
    return b


@setup(60.0, seconds=1.5)
def flat_links_under_tension() -> ModelBuilder:
    b = ModelBuilder(gravity=NONE)
    bodies = chain(b, 20, inertia=(0.03, 0.0032, 0.033), masses=[3.0] * 20)
    hook = free(b, (4.1, 0.0, 2.0), 10.0, 1.0)
    b.add_joint_ball(bodies[-1], hook, Transform((0.1, 0.0, 0.0)), Transform((-0.1, 0.0, 0.0)))
    b.add_force(hook, (1.5e3, 0.0, 15.0))
    return b


@setup(30.0)
def mass_ratio_light_end() -> ModelBuilder:
    """A link of 1 g on arms of 1 t."""
    b = ModelBuilder(gravity=DOWN)
    chain(b, 3, length=0.5, masses=(1e3, 1e3, 1e-3))
    return b


@setup(10.0, seconds=1.5)
def mass_ratio_rope_bridge() -> ModelBuilder:
    """A chain of 1 kg links between two pins carries ten tons in the middle."""
    b = ModelBuilder(gravity=DOWN)
    masses = [1.0] * 5 + [1e4] + [1.0] * 5
    last = chain(b, 11, masses=masses)[-1]
    b.add_joint_distance(-1, last, Transform((2.3, 0.0, 2.5)), Transform((0.1, 0.0, 0.0)), max_distance=0.7)
    return b


@setup(300.0, gap=inf)
def gravity_1000_chain() -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, -1000.0))
    chain(b, 5)
    return b


@setup(5.0)
def gimbal_lock() -> ModelBuilder:
    """Three hinges in gimbal lock: the first and the last are parallel, and a torque acts about the lost axis."""
    return _gimbal(0.01)


@setup(5.0)
def gimbal_lock_tiny() -> ModelBuilder:
    return _gimbal(1e-6)


def _gimbal(moment: float) -> ModelBuilder:
    b = ModelBuilder(gravity=NONE)
    parent = -1
    axes: tuple[Vector, ...] = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    for k, axis in enumerate(axes):
        pose = Transform((0, 0, 1)) if k < 2 else Transform.from_axis_angle((0, 0, 1), (0, 1, 0), 0.5 * math.pi)
        body = b.add_body(mass=moment * 100.0 if k < 2 else 1.0, inertia=(moment if k < 2 else 0.01,) * 3, xform=pose)
        at = Transform((0, 0, 1)) if k == 0 else Transform()
        if k == 2:
            at = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5 * math.pi)
        b.add_joint_revolute(parent, body, at, axis=axis)
        parent = body
    b.add_torque(parent, (0.0, 0.0, 0.1))
    return b


@setup(12.0)
def heavy_load_light_arm() -> ModelBuilder:
    """An arm of 1 kg links on servos with a load of 1 t."""
    b = ModelBuilder(gravity=DOWN)
    chain(b, 3, length=0.5, masses=(1.0, 1.0, 1e3))
    for joint in range(3):
        b.add_servo(joint, stiffness=1e4, damping=500.0, effort_limit=2000.0)
    return b


@setup(25.0)
def rope_snaps_tight() -> ModelBuilder:
    """A body of 1 kg on a slack rope falls 1 m, and then pulls a body of 100 kg on another rope."""
    b = ModelBuilder(gravity=DOWN)
    heavy = free(b, (0.0, 0.0, 2.0), 100.0, 1.0)
    light = free(b, (0.3, 0.0, 2.0), 1.0, 0.01, linear_velocity=(15.0, 0.0, 0.0))
    b.add_joint_distance(-1, heavy, Transform((0.0, 0.0, 3.0)), max_distance=1.0)
    b.add_joint_distance(heavy, light, Transform((0.0, 0.0, 0.1)), Transform((0.0, 0.0, 0.05)), max_distance=1.0)
    return b


@setup(15.0, gap=inf)
def rope_zero_length_start() -> ModelBuilder:
    """A slack rope with both ends at one point, and a rope of 1 um."""
    b = ModelBuilder(gravity=DOWN)
    b.add_joint_distance(-1, free(b, (0.0, 0.0, 1.0)), Transform((0.0, 0.0, 1.0)), max_distance=0.5)
    b.add_joint_distance(-1, free(b, (1.0, 0.0, 1.0)), Transform((1.0, 0.0, 1.0)), max_distance=1e-6)
    return b


@setup(15.0, gap=inf)
def rod_zero_length_start() -> ModelBuilder:
    """A rod of 0.3 m with both ends at one point, so that it has no direction."""
    b = ModelBuilder(gravity=DOWN)
    at = Transform((0.0, 0.0, 1.0))
    b.add_joint_distance(-1, free(b, (0.0, 0.0, 1.0)), at, min_distance=0.3, max_distance=0.3)
    return b


@setup(1e-6)
def spin_1e4_free() -> ModelBuilder:
    """A free body with three different moments of inertia, at 10,000 rad/s."""
    b = ModelBuilder(gravity=NONE)
    b.add_body(mass=1.0, inertia=(0.01, 0.02, 0.025), angular_velocity=(1e4, 1e3, 0.0))
    return b


def _spun(joint: str, rate: Vector, links: int = 1) -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    parent = -1
    for k in range(links):
        lever = np.array((0.2 * (k + 0.5), 0.0, 0.0))
        moving = tuple(float(x) for x in np.cross(rate, lever))
        place = (float(lever[0]), 0.0, 1.0)
        moments = (1e-3, 4e-3, 4e-3)
        pose = Transform(place)
        body = b.add_body(mass=1.0, inertia=moments, xform=pose, linear_velocity=moving, angular_velocity=rate)
        at, onto = Transform((0, 0, 1)) if k == 0 else Transform((0.1, 0, 0)), Transform((-0.1, 0, 0))
        if joint == "ball":
            b.add_joint_ball(parent, body, at, onto)
        else:
            b.add_joint_revolute(parent, body, at, onto, HINGE)
        parent = body
    return b


@setup(1.1e3, gap=inf)
def spin_1e4_hinge() -> ModelBuilder:
    """A hinged link at 10,000 rad/s, which is 100 rad per step at 10 ms."""
    return _spun("revolute", (0.0, 1e4, 0.0))


@setup(1.1e3, gap=inf)
def spin_1e4_rod_ball() -> ModelBuilder:
    """A rod on a ball joint at 10,000 rad/s."""
    return _spun("ball", (0.0, 1e4, 0.0))


@setup(4e3, gap=inf)
def spin_1e4_two_arm() -> ModelBuilder:
    """Two links in a row at 10,000 rad/s."""
    return _spun("revolute", (0.0, 1e4, 0.0), links=2)


@setup(2e9, gap=inf)
def force_1e9_on_chain() -> ModelBuilder:
    """A force of 1e9 N on the end of three links of 1 kg."""
    b = ModelBuilder(gravity=DOWN)
    bodies = chain(b, 3)
    b.add_force(bodies[-1], (0.0, 0.0, 1e9), point=(0.1, 0.0, 0.0))
    return b


@setup(60.0)
def limit_at_speed() -> ModelBuilder:
    """Links that hit their limits at 100 rad/s."""
    b = ModelBuilder(gravity=DOWN)
    for k in range(2):
        moving = {"linear_velocity": (0.0, 0.0, -20.0), "angular_velocity": (0.0, 100.0, 0.0)}
        body = free(b, (0.2, k, 1.0), **moving)
        at, onto = Transform((0.0, k, 1.0)), Transform((-0.2, 0.0, 0.0))
        b.add_joint_revolute(-1, body, at, onto, HINGE, limit_lower=-0.5, limit_upper=0.5, limit_restitution=float(k))
    return b


@setup(1.1e3)
def slider_limit_1000() -> ModelBuilder:
    """A slider that hits its stop at 1000 m/s."""
    b = ModelBuilder(gravity=DOWN)
    body = free(b, (0.0, 0.0, 1.0), linear_velocity=(1000.0, 0.0, 0.0))
    b.add_joint_prismatic(-1, body, Transform((0, 0, 1)), axis=(1, 0, 0), limit_lower=-1.0, limit_upper=1.0)
    return b


def _past_limit(past: float) -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    for k in range(3):
        body = free(b, (0.2, k, 1.0))
        at, onto = Transform((0.0, k, 1.0)), Transform((-0.2, 0.0, 0.0))
        b.add_joint_revolute(-1, body, at, onto, HINGE, limit_lower=past, limit_upper=past + 0.1)
    return b


@setup(10.0)
def limit_violated_at_start() -> ModelBuilder:
    """Hinges that start 0.2 rad below their lower limit."""
    return _past_limit(0.2)


@setup(10.0)
def limit_violated_far() -> ModelBuilder:
    """Hinges that start 3 rad below their lower limit."""
    return _past_limit(3.0)


@setup(1.0, end_speed=1e-3, begin=command(motor=1.0))
def locked_limits_motor() -> ModelBuilder:
    """A strong motor on a hinge with equal lower and upper limits."""
    b = ModelBuilder(gravity=DOWN)
    body = free(b, (0.2, 0.0, 1.0))
    at, onto = Transform((0.0, 0.0, 1.0)), Transform((-0.2, 0.0, 0.0))
    b.add_joint_revolute(-1, body, at, onto, HINGE, limit_lower=0.0, limit_upper=0.0)
    b.add_dc_motor(0, 100.0, 100.0, 0.01, gear_ratio=100.0, label="motor")
    return b


@setup(10.0)
def universal_at_lock() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    pose = Transform.from_axis_angle((0, 0, 1), (0, 1, 0), 0.5 * math.pi)
    body = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=pose)
    b.add_joint_universal(-1, body, Transform((0, 0, 1)), Transform((0.0, 0.0, 0.2)))
    return b


@setup(20.0)
def ball_limit_fast() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    for k, rate in enumerate(((50.0, 0.0, 0.0), (0.0, 30.0, 40.0))):
        moving = tuple(float(x) for x in np.cross(rate, (0.0, 0.0, 0.2)))
        body = free(b, (k, 0.0, 1.2), linear_velocity=moving, angular_velocity=rate)
        b.add_joint_ball(-1, body, Transform((k, 0.0, 1.0)), Transform((0.0, 0.0, -0.2)), limit=0.4)
    return b


def _part(sim: Simulation) -> None:
    sim.step(5)
    sim.write("body.link3.position", np.array(sim.read("body.link3.position"))[0] + (0.0, 1.0, 0.0))


@setup(30.0, gap=inf, begin=_part)
def teleport_joint_apart() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    chain(b, 4)
    return b


@setup(5.0)
def gear_ratio_1e6() -> ModelBuilder:
    b = ModelBuilder(gravity=DOWN)
    joints = []
    for x in (0.0, 1.0):
        body = free(b, (x + 0.25, 0.0, 1.0))
        joints.append(b.add_joint_revolute(-1, body, Transform((x, 0, 1)), Transform((-0.25, 0, 0)), axis=HINGE))
    b.add_gear(joints[0], joints[1], 1e6)
    return b
