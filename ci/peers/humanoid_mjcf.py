"""MJCF version of the benchmark humanoid: the same bodies, joints and motors."""

from __future__ import annotations

import math

from ci.peers.mjcf import mjcf_text, numbers
from gpusim.bench.humanoid import COMMAND_RANGE, DT, FLOOR_FRICTION, LINKS, ORIGIN, Geom, Link, torso_pose
from gpusim.transform import Transform


def humanoid_mjcf(lying: bool = False, options: str = "") -> str:
    """Return the humanoid as MJCF, without gymnasium's visuals and tendons.

    Args:
        lying: as in :func:`gpusim.bench.humanoid.humanoid`.
        options: integrator and solver, as attributes of MJCF's ``<option>``.
    """
    pose = torso_pose(lying)
    torso = _body_mjcf(LINKS[0], f'pos="{numbers(pose.position)}" quat="{_quaternion(pose)}"', "<freejoint/>")
    hinges = [hinge for link in LINKS for hinge in link.hinges]
    motors = "".join(f'<motor name="{h.name}_motor" joint="{h.name}" gear="{h.gear}"/>' for h in hinges)
    defaults = (
        '<default><geom condim="1" margin="0.001"/>'
        f'<motor ctrllimited="true" ctrlrange="-{COMMAND_RANGE} {COMMAND_RANGE}"/></default>'
    )
    floor = f'<geom name="floor" type="plane" size="20 20 0.125" condim="3" friction="{FLOOR_FRICTION} 0.1 0.1"/>'
    return mjcf_text(floor + torso, f"{defaults}<actuator>{motors}</actuator>", DT, options)


def _body_mjcf(link: Link, position: str, joints: str) -> str:
    geoms = "".join(map(_geom_mjcf, link.geoms))
    children = "".join(_link_mjcf(child) for child in LINKS if child.parent == link.name)
    return f'<body name="{link.name}" {position}>{joints}{geoms}{children}</body>'


def _link_mjcf(link: Link) -> str:
    rotation = _quaternion(Transform.from_axis_angle(ORIGIN, (0.0, 1.0, 0.0), link.tilt))
    joints = "".join(
        f'<joint name="{h.name}" pos="{numbers(link.anchor)}" axis="{numbers(h.axis)}" limited="true" '
        f'range="{numbers([math.radians(angle) for angle in h.range])}" armature="{h.armature}" '
        f'stiffness="{h.stiffness}" damping="{h.damping}"/>'
        for h in link.hinges
    )
    return _body_mjcf(link, f'pos="{numbers(link.position)}" quat="{rotation}"', joints)


def _geom_mjcf(geom: Geom) -> str:
    where = numbers([x for point in geom.points for x in point])
    if len(geom.points) == 1:
        return f'<geom name="{geom.name}" type="sphere" size="{geom.radius}" pos="{where}"/>'
    return f'<geom name="{geom.name}" type="capsule" size="{geom.radius}" fromto="{where}"/>'


def _quaternion(pose: Transform) -> str:
    """Return MuJoCo's quaternion: w first."""
    x, y, z, w = pose.rotation
    return numbers((w, x, y, z))
