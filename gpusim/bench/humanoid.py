"""The humanoid of gymnasium: 13 bodies, 23 degrees of freedom, 17 motors.

The numbers are from gymnasium's humanoid.xml. The model combines all hinges of a body into one joint with several axes.
As in humanoid.xml (``condim``), contacts between links have no friction. The model omits the two tendons of
humanoid.xml, which exert no force.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import gpusim
from gpusim import Material, ModelBuilder
from gpusim.bench.models import Vector
from gpusim.transform import Transform

DT = 3e-3
"""Step size, s."""
COMMAND_RANGE = 0.4
"""Maximum command of a motor, as a fraction of ``gear``."""
STANDING, LYING = 1.293, 0.122
"""Torso height of a standing humanoid, and of a humanoid lying on the back, m."""
STANDING_STEPS, SETTLE, FALL = 60, 600, 400
"""Numbers of steps: between restarts of a standing humanoid, until a lying humanoid rests, and for a complete fall."""
HOLD = 20
"""Number of steps (60 ms) between random torques."""
FLOOR_FRICTION = 1.0
SPACING = 3.0
"""Distance between neighbors if the model contains several humanoids, m."""
ORIGIN: Vector = (0.0, 0.0, 0.0)


class Hinge(NamedTuple):
    """Hinge with a motor.

    ``axis`` is in the link frame. ``gear`` is the torque at command 1 in gymnasium. Units: ``range`` in degrees,
    ``armature`` in kg m2, ``stiffness`` in N m/rad, ``damping`` in N m s/rad, ``gear`` in N m.
    """

    name: str
    axis: Vector
    range: tuple[float, float]
    armature: float
    stiffness: float
    damping: float
    gear: float


class Geom(NamedTuple):
    """A capsule between two points, or a sphere about one point. Points are in the link frame. Lengths are in m."""

    name: str
    radius: float
    points: tuple[Vector, ...]


class Link(NamedTuple):
    """Link of the humanoid.

    ``position`` is the position in the parent link (m). ``tilt`` is the rotation about y (rad).
    """

    name: str
    parent: str
    position: Vector
    geoms: tuple[Geom, ...]
    hinges: tuple[Hinge, ...] = ()
    anchor: Vector = ORIGIN
    tilt: float = 0.0


TILT = -2.0 * math.atan(0.002)
"""Rotation angle of the quaternions (1, 0, -0.002, 0) in humanoid.xml (rad)."""
LINKS = (
    Link("torso", "", ORIGIN, (
        Geom("torso1", 0.07, ((0.0, -0.07, 0.0), (0.0, 0.07, 0.0))),
        Geom("head", 0.09, ((0.0, 0.0, 0.19),)),
        Geom("uwaist", 0.06, ((-0.01, -0.06, -0.12), (-0.01, 0.06, -0.12))),
    )),
    Link("lwaist", "torso", (-0.01, 0.0, -0.26), (
        Geom("lwaist", 0.06, ((0.0, -0.06, 0.0), (0.0, 0.06, 0.0))),
    ), (
        Hinge("abdomen_z", (0.0, 0.0, 1.0), (-45.0, 45.0), 0.02, 20.0, 5.0, 100.0),
        Hinge("abdomen_y", (0.0, 1.0, 0.0), (-75.0, 30.0), 0.02, 10.0, 5.0, 100.0),
    ), (0.0, 0.0, 0.065), TILT),
    Link("pelvis", "lwaist", (0.0, 0.0, -0.165), (
        Geom("butt", 0.09, ((-0.02, -0.07, 0.0), (-0.02, 0.07, 0.0))),
    ), (
        Hinge("abdomen_x", (1.0, 0.0, 0.0), (-35.0, 35.0), 0.02, 10.0, 5.0, 100.0),
    ), (0.0, 0.0, 0.1), TILT),
    Link("right_thigh", "pelvis", (0.0, -0.1, -0.04), (
        Geom("right_thigh1", 0.06, (ORIGIN, (0.0, 0.01, -0.34))),
    ), (
        Hinge("right_hip_x", (1.0, 0.0, 0.0), (-25.0, 5.0), 0.01, 10.0, 5.0, 100.0),
        Hinge("right_hip_z", (0.0, 0.0, 1.0), (-60.0, 35.0), 0.01, 10.0, 5.0, 100.0),
        Hinge("right_hip_y", (0.0, 1.0, 0.0), (-110.0, 20.0), 0.008, 20.0, 5.0, 300.0),
    )),
    Link("right_shin", "right_thigh", (0.0, 0.01, -0.403), (
        Geom("right_shin1", 0.049, (ORIGIN, (0.0, 0.0, -0.3))),
    ), (
        Hinge("right_knee", (0.0, -1.0, 0.0), (-160.0, -2.0), 0.006, 0.0, 1.0, 200.0),
    ), (0.0, 0.0, 0.02)),
    Link("right_foot", "right_shin", (0.0, 0.0, -0.45), (Geom("right_foot", 0.075, ((0.0, 0.0, 0.1),)),)),
    Link("left_thigh", "pelvis", (0.0, 0.1, -0.04), (
        Geom("left_thigh1", 0.06, (ORIGIN, (0.0, -0.01, -0.34))),
    ), (
        Hinge("left_hip_x", (-1.0, 0.0, 0.0), (-25.0, 5.0), 0.01, 10.0, 5.0, 100.0),
        Hinge("left_hip_z", (0.0, 0.0, -1.0), (-60.0, 35.0), 0.01, 10.0, 5.0, 100.0),
        Hinge("left_hip_y", (0.0, 1.0, 0.0), (-110.0, 20.0), 0.01, 20.0, 5.0, 300.0),
    )),
    Link("left_shin", "left_thigh", (0.0, -0.01, -0.403), (
        Geom("left_shin1", 0.049, (ORIGIN, (0.0, 0.0, -0.3))),
    ), (
        Hinge("left_knee", (0.0, -1.0, 0.0), (-160.0, -2.0), 0.006, 1.0, 1.0, 200.0),
    ), (0.0, 0.0, 0.02)),
    Link("left_foot", "left_shin", (0.0, 0.0, -0.45), (Geom("left_foot", 0.075, ((0.0, 0.0, 0.1),)),)),
    Link("right_upper_arm", "torso", (0.0, -0.17, 0.06), (
        Geom("right_uarm1", 0.04, (ORIGIN, (0.16, -0.16, -0.16))),
    ), (
        Hinge("right_shoulder1", (2.0, 1.0, 1.0), (-85.0, 60.0), 0.0068, 1.0, 1.0, 25.0),
        Hinge("right_shoulder2", (0.0, -1.0, 1.0), (-85.0, 60.0), 0.0051, 1.0, 1.0, 25.0),
    )),
    Link("right_lower_arm", "right_upper_arm", (0.18, -0.18, -0.18), (
        Geom("right_larm", 0.031, ((0.01, 0.01, 0.01), (0.17, 0.17, 0.17))),
        Geom("right_hand", 0.04, ((0.18, 0.18, 0.18),)),
    ), (
        Hinge("right_elbow", (0.0, -1.0, 1.0), (-90.0, 50.0), 0.0028, 0.0, 1.0, 25.0),
    )),
    Link("left_upper_arm", "torso", (0.0, 0.17, 0.06), (
        Geom("left_uarm1", 0.04, (ORIGIN, (0.16, 0.16, -0.16))),
    ), (
        Hinge("left_shoulder1", (2.0, -1.0, 1.0), (-60.0, 85.0), 0.0068, 1.0, 1.0, 25.0),
        Hinge("left_shoulder2", (0.0, 1.0, 1.0), (-60.0, 85.0), 0.0051, 1.0, 1.0, 25.0),
    )),
    Link("left_lower_arm", "left_upper_arm", (0.18, 0.18, -0.18), (
        Geom("left_larm", 0.031, ((0.01, -0.01, 0.01), (0.17, -0.17, 0.17))),
        Geom("left_hand", 0.04, ((0.18, -0.18, 0.18),)),
    ), (
        Hinge("left_elbow", (0.0, -1.0, -1.0), (-90.0, 50.0), 0.0028, 0.0, 1.0, 25.0),
    )),
)  # fmt: skip
"""Links, parents first."""


def humanoid(lying: bool = False, count: int = 1) -> ModelBuilder:
    """Return one or more humanoids on a floor, standing or lying. All hinge angles are zero.

    The motor commands (``right_knee_motor``, ...) are fractions of the maximum torques, -1 to 1.

    Args:
        lying: whether the humanoids lie on their backs.
        count: number of humanoids, see :func:`humanoid_copies`.
    """
    b = gpusim.ModelBuilder()
    floor = b.add_shape_plane(-1, label="floor")
    for links, torso in humanoid_copies(lying, count):
        poses, bodies = {"": torso}, {"": -1}
        for link in links:
            frame = Transform.from_axis_angle(link.position, (0.0, 1.0, 0.0), link.tilt)
            pose = poses[link.name] = poses[link.parent] * frame
            body = bodies[link.name] = b.add_body(xform=pose, label=link.name)
            for geom in link.geoms:
                shape = _add_geom(b, body, geom)
                b.add_collision_pair(floor, shape, Material(friction=FLOOR_FRICTION))
            if link.parent:
                _add_joint(b, bodies[link.parent], body, frame, link)
    return b


def humanoid_copies(lying: bool, count: int) -> Iterator[tuple[tuple[Link, ...], Transform]]:
    """Yield the links and the initial torso pose of each humanoid.

    The humanoids are on a square grid. The names of the first humanoid have no prefix. The names of the next humanoids
    have the prefixes ``humanoid1_``, ``humanoid2_``, ...
    """
    columns = math.ceil(math.sqrt(count))
    for k in range(count):
        x, y = SPACING * (k % columns), SPACING * (k // columns)
        torso = Transform((x, y, STANDING))
        if lying:
            torso = Transform.from_axis_angle((x, y, LYING), (0.0, 1.0, 0.0), -0.5 * math.pi)
        prefix = f"humanoid{k}_" if k else ""
        yield tuple(_renamed(link, prefix) for link in LINKS), torso


def _renamed(link: Link, prefix: str) -> Link:
    return link._replace(
        name=prefix + link.name,
        parent=link.parent and prefix + link.parent,
        geoms=tuple(geom._replace(name=prefix + geom.name) for geom in link.geoms),
        hinges=tuple(hinge._replace(name=prefix + hinge.name) for hinge in link.hinges),
    )


def _add_geom(b: ModelBuilder, body: int, geom: Geom) -> int:
    smooth = Material(friction=0.0)
    if len(geom.points) == 1:
        return b.add_shape_sphere(body, geom.radius, Transform(geom.points[0]), material=smooth, label=geom.name)
    start, end = np.array(geom.points)
    half = 0.5 * float(np.linalg.norm(end - start))
    pose = _along(0.5 * (start + end), 0.5 * (end - start) / half)
    return b.add_shape_capsule(body, geom.radius, half, pose, material=smooth, label=geom.name)


def _along(middle: Any, axis: Any) -> Transform:
    """Return a frame at ``middle`` whose z axis is parallel to the unit vector ``axis``."""
    if axis[2] < -0.5:  # a capsule is symmetric, so its axis may be reversed
        axis = -axis
    x, y, z = (float(c) for c in axis)
    return Transform(tuple(middle), (-y, x, 0.0, 1.0 + z))


def _add_joint(b: ModelBuilder, parent: int, child: int, frame: Transform, link: Link) -> None:
    """Add one joint for all hinges of a link, with springs and motors."""
    at_parent, at_child = frame * Transform(link.anchor), Transform(link.anchor)
    if not link.hinges:
        b.add_joint_fixed(parent, child, at_parent, at_child, label=link.name)
        return
    joint = b.add_joint_d6(
        parent, child, at_parent, at_child,
        angular_axes=[hinge.axis for hinge in link.hinges],
        limit_lower=tuple(math.radians(hinge.range[0]) for hinge in link.hinges),
        limit_upper=tuple(math.radians(hinge.range[1]) for hinge in link.hinges),
        damping=tuple(hinge.damping for hinge in link.hinges),
        armature=tuple(hinge.armature for hinge in link.hinges),
        label=link.name,
    )  # fmt: skip
    for axis, hinge in enumerate(link.hinges):
        if hinge.stiffness:
            b.add_torsion_spring(joint, hinge.stiffness, axis=axis, label=hinge.name)
        b.add_torque_motor(joint, COMMAND_RANGE * hinge.gear, axis=axis, label=f"{hinge.name}_motor")
