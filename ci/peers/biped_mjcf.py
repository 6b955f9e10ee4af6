"""MJCF version of the benchmark biped: the same bodies, hinges, servos and soles."""

from __future__ import annotations

from ci.peers.mjcf import mjcf_text, numbers
from gpusim.bench.models import (
    DAMPING,
    EFFORT,
    PELVIS,
    PELVIS_HALF,
    PELVIS_MASS,
    SOLE,
    STIFFNESS,
    BipedLink,
    Vector,
    biped_links,
    box_inertia,
)


def biped_mjcf(dt: float) -> str:
    """Return an MJCF model with steps of ``dt`` seconds. Only the feet collide with the floor."""
    links = list(biped_links())
    servos = "".join(
        f'<general joint="{link.name}" gainprm="{STIFFNESS}" biasprm="0 -{STIFFNESS} 0" biastype="affine" '
        f'forcelimited="true" forcerange="-{EFFORT} {EFFORT}"/>'
        for link in links
    )
    pelvis = (
        f'<body name="pelvis" pos="0 0 {PELVIS}"><freejoint/>{_inertial(PELVIS_MASS, PELVIS_HALF, (0.0, 0.0, 0.0))}'
        f"{_children('pelvis', links)}</body>"
    )
    floor = '<geom type="plane" size="9 9 1" contype="1" conaffinity="2"/>'
    return mjcf_text(floor + pelvis, f"<actuator>{servos}</actuator>", dt)


def _children(parent: str, links: list[BipedLink]) -> str:
    return "".join(_link(link, links) for link in links if link.parent == parent)


def _link(link: BipedLink, links: list[BipedLink]) -> str:
    sole = ""
    if link.name.endswith("foot"):
        size, position = numbers(link.half), numbers(SOLE)
        sole = f'<geom type="box" size="{size}" pos="{position}" contype="2" conaffinity="1" mass="0"/>'
    return (
        f'<body name="{link.name}" pos="{numbers(link.anchor)}">'
        f'<joint name="{link.name}" axis="{numbers(link.axis)}" damping="{DAMPING}"/>'
        f"{_inertial(link.mass, link.half, link.com)}{sole}{_children(link.name, links)}</body>"
    )


def _inertial(mass: float, half: Vector, com: Vector) -> str:
    return f'<inertial mass="{mass}" pos="{numbers(com)}" diaginertia="{numbers(box_inertia(mass, half))}"/>'
