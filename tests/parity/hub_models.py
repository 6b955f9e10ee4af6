"""Machines with many joints on one body."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import ModelBuilder, Transform

LEGS = 8
OPTIONS: list[dict[str, Any]] = [
    {"armature": 0.01, "damping": 0.5}, {"limit_lower": -0.1, "limit_upper": 0.1}, {"friction": 1.5},
]  # fmt: skip


def octopod(
    feet: str = "sphere",
    ground: bool = False,
    height: float = 0.55,
    bars: bool = False,
    keel: bool = False,
    held: bool = False,
) -> ModelBuilder:
    """Return a platform with eight legs. The hips have armature, limits or friction."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    hull = b.add_body(20.0, (0.6, 0.7, 0.9), xform=Transform((0.0, 0.0, height)), label="hull")
    b.add_shape_box(hull, (0.3, 0.3, 0.05))
    if keel:
        b.add_shape_sphere(hull, 0.05, Transform((0.0, 0.0, -0.51)))
    if ground:
        rail = Transform((0.0, 0.0, height))
        b.add_joint_prismatic(-1, hull, rail, Transform(), axis=(0, 0, 1), label="rail", damping=3.0)
    if held:  # redundant: the rail already prevents the motion to the sides
        b.add_joint_ball(-1, hull, Transform((0.0, 0.3, height - 0.002)), Transform((0.0, 0.3, 0.0)))
    for k in range(LEGS):
        angle = 2.0 * math.pi * (k + 0.1) / LEGS
        out, axis = np.array([math.cos(angle), math.sin(angle), 0.0]), (-math.sin(angle), math.cos(angle), 0.0)
        hip = 0.4 * out + [0.0, 0.0, height]
        thigh = b.add_body(1.0, (0.004, 0.004, 0.004), xform=Transform(tuple(hip + 0.1 * out)), label=f"thigh{k}")
        shin = b.add_body(0.5, (0.003, 0.003, 0.001), xform=Transform(tuple(hip + 0.2 * out - [0, 0, 0.2])))
        options = OPTIONS[k % len(OPTIONS)]
        b.add_joint_revolute(
            hull, thigh, Transform(tuple(0.4 * out)), Transform(tuple(-0.1 * out)), axis=axis, **options
        )
        knee = Transform(tuple(0.1 * out)), Transform((0.0, 0.0, 0.2))
        joint = b.add_joint_revolute(thigh, shin, *knee, axis=axis)
        b.add_servo(joint, "position", stiffness=60.0, damping=3.0, effort_limit=30.0)
        if bars and k % 2:  # a closed loop through the hull
            ends = Transform(tuple(0.35 * out - [0, 0, 0.1])), Transform((0.0, 0.0, 0.05))
            b.add_joint_distance(hull, shin, *ends)
        if feet == "sphere":
            b.add_shape_sphere(shin, 0.05, Transform((0.0, 0.0, -0.3)))
        else:
            b.add_shape_box(shin, (0.05, 0.05, 0.05), Transform((0.0, 0.0, -0.3)))
    return b
