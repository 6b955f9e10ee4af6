"""Models that several tests of the viewer draw."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpusim import ModelBuilder, Transform
from gpusim.model.model import Model


def _hull_points() -> np.ndarray:
    points = np.random.default_rng(3).normal(size=(24, 3))
    return 0.25 * points / np.linalg.norm(points, axis=1)[:, None]


def _heights() -> np.ndarray:
    x = np.linspace(-1.0, 1.0, 24)
    return 0.12 * np.sin(4.0 * x)[:, None] * np.cos(5.0 * x)[None] + 0.13


UPRIGHT = Transform.from_axis_angle((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.5 * math.pi)

#: Adds a shape to a body (or the world, -1) whose frame lies 0.3 m above the ground.
SHAPES: dict[str, Callable[[ModelBuilder, int], int]] = {
    "sphere": lambda b, k: b.add_shape_sphere(k, 0.25),
    "box": lambda b, k: b.add_shape_box(k, (0.2, 0.15, 0.25)),
    "capsule": lambda b, k: b.add_shape_capsule(k, 0.12, 0.15),
    "cylinder": lambda b, k: b.add_shape_cylinder(k, 0.2, 0.25),
    "cone": lambda b, k: b.add_shape_cone(k, 0.22, 0.25),
    "ellipsoid": lambda b, k: b.add_shape_ellipsoid(k, (0.28, 0.18, 0.15)),
    "superellipsoid": lambda b, k: b.add_shape_superellipsoid(k, (0.2, 0.22, 0.25), (0.3, 0.5)),
    "barrel": lambda b, k: b.add_shape_barrel(k, 0.2, 0.4, 0.2),
    "hull": lambda b, k: b.add_shape_hull(k, _hull_points()),
    "wheel": lambda b, k: b.add_shape_wheel(k, 0.25, 0.07, xform=UPRIGHT),
    "sharp_wheel": lambda b, k: b.add_shape_wheel(k, 0.25, 0.0, xform=UPRIGHT),
}


def shape_model(name: str) -> Model:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0), xform=Transform((0.0, 0.0, 0.3)))
    if name == "height_field":
        b.add_shape_sphere(body, 0.1)
        b.add_shape_height_field(-1, _heights(), (0.04, 0.04), base=0.0)
        return b.finalize()
    b.add_shape_plane(-1)
    SHAPES[name](b, body)
    return b.finalize()


def ball_and_wall() -> Model:
    b = ModelBuilder()
    ball = b.add_body(xform=Transform((0.0, 5.0, 1.0)), label="ball")
    b.add_shape_sphere(ball, 0.5)
    facing = Transform.from_axis_angle((0.0, 8.0, 0.0), (1.0, 0.0, 0.0), 0.5 * math.pi)
    b.add_shape_plane(-1, xform=facing)
    return b.finalize()


def pendulum(length: float = 1.0) -> Model:
    """A thin horizontal rod on a hinge at the origin."""
    b = ModelBuilder()
    moment = length**2 / 12.0
    pose = Transform((0.5 * length, 0.0, 0.0))
    rod = b.add_body(mass=1.0, inertia=(0.01 * moment, moment, moment), xform=pose, label="rod")
    b.add_joint_revolute(-1, rod, child_xform=Transform((-0.5 * length, 0.0, 0.0)), axis=(0, 1, 0), label="hinge")
    return b.finalize()
