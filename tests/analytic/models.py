from __future__ import annotations

import gpusim
from gpusim.scene import Scene

from .reference_data import load

#: Height of the springs' upper ends over the free length in case 3a, m: more than the mass can ever rise.
ANCHOR_HEIGHT = 10.0
#: Inertia of the point mass of A01, kg m2, as the record asks for: its share of the whole moves the mass by 2e-5 m.
POINT_INERTIA = 1e-6


def simple_pendulum() -> Scene:
    """Case A01: a point mass 1 m from its ball joint, released from rest at (-1, 0) in the x-z plane."""
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    start = gpusim.Transform((-1.0, 0.0, 0.0))
    mass = b.add_body(mass=1.0, inertia=(POINT_INERTIA,) * 3, xform=start, label="mass")
    b.add_joint_ball(-1, mass, child_xform=gpusim.Transform((1.0, 0.0, 0.0)), label="pivot")
    return _scene("simple_pendulum", b, 10.0)


def spring_masses() -> Scene:
    record = load("case3a").record
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -record["g"]))
    mass = record["m"]
    for i, variant in enumerate(record["columns"]):
        x = float(i)
        pose = gpusim.Transform((x, 0.0, 0.0))
        body = b.add_body(mass=mass, inertia=(mass / 6.0,) * 3, xform=pose, label=f"mass{i}")
        b.add_joint_prismatic(-1, body, parent_xform=pose, axis=(0.0, 0.0, 1.0), label=f"rail{i}")
        b.add_spring(
            -1,
            body,
            (x, 0.0, ANCHOR_HEIGHT),
            (0.0, 0.0, 0.0),
            stiffness=variant["k"],
            damping=variant["c"],
            rest_length=ANCHOR_HEIGHT,
            label=f"spring{i}",
        )
    return _scene("spring_masses", b, 5.0)


def _scene(name: str, builder: gpusim.ModelBuilder, duration: float) -> Scene:
    config = gpusim.SolverConfig(dt=1e-3)
    return Scene(name=name, description=name, builder=builder, config=config, duration=duration)
