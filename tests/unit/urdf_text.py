"""URDF snippets for the importer's tests."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "urdf"

SOLID = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="2"/>'


def robot(*elements: str) -> str:
    """A document with one robot."""
    return '<robot name="bot">\n' + "\n".join(elements) + "\n</robot>"


def link(name: str, content: str = SOLID) -> str:
    return f'<link name="{name}">{content}</link>'


def inertial(mass: str, inertia: tuple[str, ...], origin: str = "") -> str:
    """An <inertial> with inertia (ixx, iyy, izz, ixy, ixz, iyz)."""
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    values = " ".join(f'{name}="{value}"' for name, value in zip(names, inertia, strict=True))
    return f'<inertial>{origin}<mass value="{mass}"/><inertia {values}/></inertial>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", content: str = LIMIT) -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{content}</joint>'


def arm(content: str = LIMIT, kind: str = "revolute", base: str = SOLID, tip: str = SOLID) -> str:
    """Two links and one joint "elbow"."""
    return robot(link("base", base), link("tip", tip), joint("elbow", "base", "tip", kind, content))
