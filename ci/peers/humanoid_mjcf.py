"""MJCF version of the benchmark humanoid: the same bodies, joints and motors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ci.peers.mjcf import mjcf_text, numbers
from gpusim.bench.humanoid import COMMAND_RANGE, DT, FLOOR_FRICTION, ORIGIN, Geom, Link, humanoid_copies
from gpusim.transform import Transform


def humanoid_mjcf(lying: bool = False, options: str = "", count: int = 1) -> str:
    """Return one or more humanoids as MJCF, without gymnasium's visuals and tendons.

    Args:
        lying, count: as in :func:`gpusim.bench.humanoid.humanoid`.
        options: integrator and solver, as attributes of MJCF's ``<option>``.
    """
    bodies = f'<geom name="floor" type="plane" size="20 20 0.125" condim="3" friction="{FLOOR_FRICTION} 0.1 0.1"/>'
    motors = ""
    for links, pose in humanoid_copies(lying, count):
        position = f'pos="{numbers(pose.position)}" quat="{_quaternion(pose)}"'
        bodies += _body_mjcf(links[0], links, position, "<freejoint/>")
        hinges = [hinge for link in links for hinge in link.hinges]
        motors += "".join(f'<motor name="{h.name}_motor" joint="{h.name}" gear="{h.gear}"/>' for h in hinges)
    defaults = (
        '<default><geom condim="1" margin="0.001"/>'
        f'<motor ctrllimited="true" ctrlrange="-{COMMAND_RANGE} {COMMAND_RANGE}"/></default>'
    )
    return mjcf_text(bodies, f"{defaults}<actuator>{motors}</actuator>", DT, options)


def _body_mjcf(link: Link, links: Sequence[Link], position: str, joints: str) -> str:
    geoms = "".join(map(_geom_mjcf, link.geoms))
    children = "".join(_link_mjcf(child, links) for child in links if child.parent == link.name)
    return f'<body name="{link.name}" {position}>{joints}{geoms}{children}</body>'


def _link_mjcf(link: Link, links: Sequence[Link]) -> str:
    rotation = _quaternion(Transform.from_axis_angle(ORIGIN, (0.0, 1.0, 0.0), link.tilt))
    joints = "".join(
        f'<joint name="{h.name}" pos="{numbers(link.anchor)}" axis="{numbers(h.axis)}" limited="true" '
        f'range="{numbers([math.radians(angle) for angle in h.range])}" armature="{h.armature}" '
        f'stiffness="{h.stiffness}" damping="{h.damping}"/>'
        for h in link.hinges
    )
    return _body_mjcf(link, links, f'pos="{numbers(link.position)}" quat="{rotation}"', joints)


def _geom_mjcf(geom: Geom) -> str:
    where = numbers([x for point in geom.points for x in point])
    if len(geom.points) == 1:
        return f'<geom name="{geom.name}" type="sphere" size="{geom.radius}" pos="{where}"/>'
    return f'<geom name="{geom.name}" type="capsule" size="{geom.radius}" fromto="{where}"/>'


def _quaternion(pose: Transform) -> str:
    """Return MuJoCo's quaternion: w first."""
    x, y, z, w = pose.rotation
    return numbers((w, x, y, z))
