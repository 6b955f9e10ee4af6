"""Models for benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import gpusim
from gpusim import ModelBuilder
from gpusim.errors import ModelError
from gpusim.transform import Transform

PITCH = 0.1
"""Distance between neighboring plates, m."""
MASS = 0.1


def joint_grid(columns: int, rows: int) -> ModelBuilder:
    """Return a grid of ``columns`` x ``rows`` plates with ball joints between neighbors.

    Ball joints also connect the first column to the world. A large grid has about two joints per plate, with 3
    constraint rows each.

    Raises:
        ModelError: there is no column or no row.
    """
    if columns < 1 or rows < 1:
        raise ModelError(f"joint_grid: {columns} x {rows} plates are too few; give at least 1 x 1")
    b = gpusim.ModelBuilder()
    half = 0.5 * PITCH
    inertia = (MASS * PITCH**2 / 12.0, MASS * PITCH**2 / 12.0, MASS * PITCH**2 / 6.0)
    for i in range(columns):
        for k in range(rows):
            pose = Transform((i * PITCH, k * PITCH, 0.0))
            plate = b.add_body(mass=MASS, inertia=inertia, xform=pose, label=f"plate{i}_{k}")
            side = Transform((-half, 0.0, 0.0))
            if i == 0:
                side_frame = Transform((-half, k * PITCH, 0.0))
                b.add_joint_ball(-1, plate, parent_xform=side_frame, child_xform=side, label=f"held{k}")
            else:
                other = Transform((half, 0.0, 0.0))
                b.add_joint_ball(plate - rows, plate, parent_xform=other, child_xform=side, label=f"x{i}_{k}")
            if k > 0:
                ends = Transform((0.0, half, 0.0)), Transform((0.0, -half, 0.0))
                b.add_joint_ball(plate - 1, plate, parent_xform=ends[0], child_xform=ends[1], label=f"y{i}_{k}")
    return b


# Limbs of one side of the biped: name, parent, joint in the parent (m), axis, mass (kg), half of the box (m).
_LIMBS = (
    ("hip_yaw", "pelvis", (0.0, 0.09, -0.04), "z", 0.8, (0.04, 0.04, 0.04)),
    ("hip_roll", "hip_yaw", (0.0, 0.0, 0.0), "x", 0.8, (0.04, 0.04, 0.04)),
    ("thigh", "hip_roll", (0.0, 0.0, 0.0), "y", 4.0, (0.06, 0.06, 0.15)),
    ("shin", "thigh", (0.0, 0.0, -0.32), "y", 3.0, (0.05, 0.05, 0.15)),
    ("ankle", "shin", (0.0, 0.0, -0.32), "y", 0.5, (0.03, 0.03, 0.03)),
    ("foot", "ankle", (0.0, 0.0, 0.0), "x", 1.2, (0.11, 0.055, 0.02)),
    ("shoulder_pitch", "torso", (0.0, 0.20, 0.36), "y", 0.5, (0.04, 0.04, 0.04)),
    ("shoulder_roll", "shoulder_pitch", (0.0, 0.0, 0.0), "x", 0.5, (0.04, 0.04, 0.04)),
    ("upper_arm", "shoulder_roll", (0.0, 0.0, 0.0), "z", 1.2, (0.04, 0.04, 0.12)),
    ("forearm", "upper_arm", (0.0, 0.0, -0.26), "y", 0.9, (0.035, 0.035, 0.11)),
    ("wrist", "forearm", (0.0, 0.0, -0.24), "x", 0.2, (0.02, 0.02, 0.02)),
    ("hand", "wrist", (0.0, 0.0, 0.0), "y", 0.3, (0.03, 0.02, 0.05)),
)
_TRUNK = (
    ("torso", "pelvis", (0.0, 0.0, 0.08), "z", 12.0, (0.09, 0.15, 0.2)),
    ("head", "torso", (0.0, 0.0, 0.42), "z", 2.0, (0.08, 0.07, 0.1)),
)
PELVIS, PELVIS_MASS, PELVIS_HALF = 0.76, 8.0, (0.08, 0.13, 0.07)
"""Height (m), mass (kg) and half edge lengths (m) of the pelvis of the biped."""
STIFFNESS, DAMPING, EFFORT = 2000.0, 50.0, 200.0
"""Stiffness, damping and effort limit of the servos of the biped."""
SOLE = (0.03, 0.0, -0.06)
"""Center of a foot's box, in the foot frame (m)."""
Vector = tuple[float, float, float]


class BipedLink(NamedTuple):
    """Link of the biped. ``anchor`` is in the parent frame, ``com`` is in the link frame. Lengths are in m."""

    name: str
    parent: str
    anchor: Vector
    axis: Vector
    mass: float
    half: Vector
    com: Vector


_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def biped() -> ModelBuilder:
    """Return a biped with 27 bodies and 26 driven hinges that stands on two box feet."""
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1, label="floor")
    positions, bodies = {"pelvis": (0.0, 0.0, PELVIS)}, {}
    inertia = box_inertia(PELVIS_MASS, PELVIS_HALF)
    bodies["pelvis"] = b.add_body(PELVIS_MASS, inertia, xform=Transform(positions["pelvis"]), label="pelvis")
    for link in biped_links():
        position = tuple(p + q for p, q in zip(positions[link.parent], link.anchor, strict=True))
        positions[link.name] = position  # type: ignore[assignment]
        inertia = box_inertia(link.mass, link.half)
        bodies[link.name] = b.add_body(link.mass, inertia, com=link.com, xform=Transform(position), label=link.name)  # type: ignore[arg-type]
        joint = b.add_joint_revolute(
            bodies[link.parent], bodies[link.name], Transform(link.anchor), Transform(), axis=link.axis, label=link.name
        )
        b.add_servo(joint, stiffness=STIFFNESS, damping=DAMPING, effort_limit=EFFORT, label=link.name)
        if link.name.endswith("foot"):
            b.add_shape_box(bodies[link.name], link.half, Transform(SOLE), label=link.name)
    return b


def biped_links() -> Iterator[BipedLink]:
    """Yield all links of the biped except the pelvis, parents first."""
    limbs = [*_TRUNK, *((f"{side}_{limb[0]}", _parent(side, limb[1]), *limb[2:]) for side in "lr" for limb in _LIMBS)]
    for name, parent, (x, y, z), axis, mass, half in limbs:
        anchor = (x, -y if name.startswith("r_") else y, z)
        yield BipedLink(name, parent, anchor, _AXES[axis], mass, half, (0.0, 0.0, -half[2] if z < 0.0 else 0.0))


def _parent(side: str, name: str) -> str:
    return name if name in ("pelvis", "torso") else f"{side}_{name}"


def box_inertia(mass: float, half: Vector) -> Vector:
    """Return the principal moments of inertia of a box."""
    x, y, z = (k * k for k in half)
    return mass / 3.0 * (y + z), mass / 3.0 * (x + z), mass / 3.0 * (x + y)
