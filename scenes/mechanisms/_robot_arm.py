"""6-axis arm with the dimensions and masses of a UR5e, driven by brushed DC motors through harmonic drives.

Denavit-Hartenberg dimensions, masses and centers of mass: Universal Robots, "DH parameters for calculations of
kinematics and dynamics", UR5e. Motors: maxon catalog, RE 50 (370354, 200 W, 24 V) and RE 40 (148867, 150 W, 24 V). The
links have the inertias of uniform cylinders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim import ModelBuilder, Transform, robotics

Vector = tuple[float, float, float]
GEAR = 101.0


@dataclass(frozen=True)
class Motor:
    """Catalog data of a motor: stall and continuous torque (N m), no-load speed (rad/s) and time constants (s)."""

    stall: float
    steady: float
    idle: float
    mechanical: float
    electrical: float


LARGE = Motor(8.92, 0.405, 5950.0 * math.pi / 30.0, 3.75e-3, 0.072e-3 / 0.103)
SMALL = Motor(2.42, 0.177, 7580.0 * math.pi / 30.0, 4.67e-3, 0.0823e-3 / 0.299)


@dataclass(frozen=True)
class Link:
    """Link of the arm. The Denavit-Hartenberg frame of a link is at the joint to the next link.

    ``a``, ``d`` (m) and ``alpha`` (rad) define the pose of the link's frame relative to the link's joint (the joint to
    the previous link). ``limit`` (N m) is the maximum effort of the link's joint. ``radius`` and ``length`` (m) are the
    size of the cylinder that defines the inertia. ``along`` is the index (0 to 2) of the cylinder's axis.
    """

    name: str
    a: float
    d: float
    alpha: float
    mass: float
    com: Vector
    radius: float
    length: float
    along: int
    motor: Motor
    limit: float

    @property
    def link_frame(self) -> Transform:
        """Transform from the frame of the link's joint (at angle zero) to the link's frame."""
        return Transform((self.a, 0.0, self.d), (math.sin(0.5 * self.alpha), 0.0, 0.0, math.cos(0.5 * self.alpha)))

    @property
    def inertia(self) -> Vector:
        """Principal moments of inertia of the cylinder (kg m2)."""
        r2, axial = self.radius**2, 0.5 * self.mass * self.radius**2
        moments = [self.mass * (3.0 * r2 + self.length**2) / 12.0] * 3
        moments[self.along] = axial
        return moments[0], moments[1], moments[2]


_RIGHT, REVOLUTION = 0.5 * math.pi, 2.0 * math.pi
LINKS = (
    Link("pan", 0.0, 0.1625, _RIGHT, 3.761, (0, -0.02561, 0.00193), 0.06, 0.15, 1, LARGE, 150.0),
    Link("lift", -0.425, 0.0, 0.0, 8.058, (0.2125, 0, 0.11336), 0.06, 0.54, 0, LARGE, 150.0),
    Link("elbow", -0.3922, 0.0, 0.0, 2.846, (0.15, 0, 0.0265), 0.05, 0.47, 0, LARGE, 150.0),
    Link("wrist1", 0.0, 0.1333, _RIGHT, 1.37, (0, -0.0018, 0.01634), 0.045, 0.11, 1, SMALL, 28.0),
    Link("wrist2", 0.0, 0.0997, -_RIGHT, 1.3, (0, 0.0018, 0.01634), 0.045, 0.11, 1, SMALL, 28.0),
    Link("wrist3", 0.0, 0.0996, 0.0, 0.365, (0, 0, -0.001159), 0.0375, 0.05, 2, SMALL, 28.0),
)
NAMES = [link.name for link in LINKS]
TOOL = 0.12
"""Distance from the flange to the center of the load in the tool, m."""
BALL = 0.035
"""Radius of the load, m."""
ELBOW_UP = (-0.3, -2.0, -1.9, -0.9, 1.57, 0.0)
"""Initial guess for the inverse kinematics with the elbow up, rad."""
GREY, BLUE, ORANGE = (0.62, 0.65, 0.68), (0.25, 0.5, 0.68), (0.95, 0.5, 0.1)


def add_arm(b: ModelBuilder, posture: np.ndarray, load: float) -> None:
    """Add the arm on the floor, with one motor per joint, a load of ``load`` kg at the tool, and the site ``tool``.

    Joints are ``pan``, ``lift``, ``elbow``, ``wrist1`` to ``wrist3``, with the manufacturer's zero positions.
    """
    parent = b.add_body(4.0, (0.02, 0.02, 0.02), label="base")
    b.add_joint_fixed(-1, parent, label="base")
    b.add_visual(parent, "cylinder", 0.075, 0.05, xform=Transform((0, 0, 0.05)), color=GREY, label="base")
    at = Transform()
    for link, q in zip(LINKS, posture.tolist(), strict=True):
        at = at * Transform.from_axis_angle((0, 0, 0), (0, 0, 1), q) * link.link_frame
        body = b.add_body(link.mass, link.inertia, link.com, at, label=link.name)
        # The child's joint frame is the near joint at angle 0, so the joint coordinate is the angle of the near joint.
        joint = b.add_joint_revolute(
            parent,
            body,
            Transform(),
            link.link_frame.inverse(),
            limit_lower=-REVOLUTION,
            limit_upper=REVOLUTION,
            label=link.name,
        )
        m = link.motor
        b.add_dc_motor(joint, m.stall, m.idle, m.mechanical, m.electrical, gear_ratio=GEAR, label=link.name)
        _draw(b, body, link)
        parent = body
    tool = Transform((0, 0, TOOL))
    b.add_site(parent, tool, label="tool")
    b.add_visual(
        parent, "cylinder", 0.02, 0.5 * (TOOL - BALL), xform=Transform((0, 0, 0.5 * (TOOL - BALL))), color=GREY
    )
    if load > 0.0:
        ball = b.add_body(load, (0.4 * load * BALL**2,) * 3, xform=at * tool, label="load")
        b.add_joint_fixed(parent, ball, tool, Transform(), label="load")
        b.add_visual(ball, "sphere", BALL, color=ORANGE, label="load")


def _draw(b: ModelBuilder, body: int, link: Link) -> None:
    """Add visuals of a link: tubes along the link and along the axes of its two joints."""
    half, color = math.sqrt(0.5), BLUE if link.motor is LARGE else GREY
    if link.a:
        offset = link.com[2] + 0.02
        tube = Transform((-0.5 * link.a, 0, offset), (0, half, 0, half))
        b.add_visual(body, "capsule", 0.8 * link.radius, -0.5 * link.a, xform=tube, color=GREY)
        for x in (0.0, -link.a):
            b.add_visual(
                body, "cylinder", link.radius, 0.5 * offset, xform=Transform((x, 0, 0.5 * offset)), color=color
            )
        return
    pose = Transform((0, 0, 0), (half, 0, 0, half) if link.along == 1 else (0, 0, 0, 1))
    b.add_visual(body, "cylinder", link.radius, 0.5 * link.length, xform=pose, color=color)
    if link.along == 1:
        b.add_visual(body, "cylinder", 0.98 * link.radius, 0.08, xform=Transform((0, 0, 0.02)), color=color)


def posture_at(pose: Transform) -> np.ndarray:
    """Return the elbow-up joint angles (6,), rad, for a pose of the tool."""
    b = ModelBuilder()
    add_arm(b, np.zeros(len(LINKS)), 0.0)
    tree = robotics.Tree(b.finalize())
    ik = robotics.IK(tree, [robotics.PoseTask("tool")])
    target = np.concatenate([pose.position, pose.rotation])
    q, report = ik.solve(list(ELBOW_UP), {"tool": target}, iterations=60)
    assert bool(report.converged[0]) and float(report.residual["tool"][0]) < 1e-9, report
    return np.asarray(q[0])


def inertias_at(b: ModelBuilder, posture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of the mass matrix (kg m2) and the gravity torques (N m) in a posture."""
    tree = robotics.Tree(b.finalize())
    return np.diag(tree.mass_matrix(posture)[0]).copy(), tree.gravity_torques(posture)[0]
