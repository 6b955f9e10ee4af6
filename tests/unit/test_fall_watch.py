from __future__ import annotations

import warnings

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.signals.fall_watch import FIRST
from tests.backends import FASTEST

FLOORS = {
    "height field": lambda b: b.add_shape_height_field(-1, np.full((5, 5), -0.5), (0.5, 0.5)),
    "triangle mesh": lambda b: b.add_shape_triangle_mesh(-1, (SQUARE, [(0, 1, 2), (0, 2, 3)])),
    "box": lambda b: b.add_shape_box(-1, half_extents=(1, 1, 0.1)),
    "kinematic box": lambda b: b.add_shape_box(
        b.add_body(1.0, (1, 1, 1), kinematic=True, label="lift"), half_extents=(1, 1, 0.1)
    ),
}
SQUARE = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float)


def ball(b: ModelBuilder, x: float, label: str = "ball", z: float = 0.5) -> int:
    body = b.add_body(xform=Transform((x, 0, z)), label=label)
    b.add_shape_sphere(body, radius=0.1)
    return body


def said(b: ModelBuilder, steps: int = 256, worlds: int = 1) -> list[str]:
    sim = Simulation(b.finalize(), worlds, backend=FASTEST, config=SolverConfig(dt=5e-3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(steps // 16):
            sim.step(16)
    return [str(w.message) for w in caught]


@pytest.mark.nightly
@pytest.mark.parametrize("floor", list(FLOORS))
def test_what_passes_the_rim_is_named_once(floor: str) -> None:
    b = ModelBuilder()
    FLOORS[floor](b)
    ball(b, 0.3, "kept")
    ball(b, 5.0, "lost")
    (text,) = said(b, 512)
    assert text.startswith("world 0: body 'lost' fell ") and text.endswith("check what it collides with")


def test_the_way_is_that_of_a_free_fall() -> None:
    b = ModelBuilder()
    FLOORS["triangle mesh"](b)
    ball(b, 5.0)
    (text,) = said(b)
    way = 0.5 * 9.81 * (FIRST * 5e-3) ** 2 - 0.5
    assert f"fell {way:.3g} m below every shape of the world and falls forever" in text


def test_worlds_are_counted() -> None:
    b = ModelBuilder()
    FLOORS["box"](b)
    ball(b, 5.0)
    (text,) = said(b, worlds=3)
    assert "(2 more in all worlds)" in text


def test_bodies_that_can_land_or_are_held_are_not_named() -> None:
    b = ModelBuilder()
    FLOORS["box"](b)
    b.add_shape_plane(-1, xform=Transform((0, 0, -500.0)))
    ball(b, 5.0)
    rope = ball(b, 3.0, "bob")
    b.add_joint_prismatic(-1, rope, axis=(0, 0, 1))
    assert said(b) == []


def test_below_a_plane_nothing_catches() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1, group=1, mask=1)
    body = b.add_body(xform=Transform((0, 0, 0.5)), label="ghost")
    b.add_shape_sphere(body, radius=0.1, group=2, mask=2)
    (text,) = said(b)
    assert "'ghost'" in text


def test_without_gravity_or_floor_nothing_is_said() -> None:
    floating = ModelBuilder(gravity=(0, 0, 0))
    FLOORS["box"](floating)
    body = ball(floating, 5.0)
    floating.bodies[body].linear_velocity = np.array((0.0, 0.0, -9.0))
    bare = ModelBuilder()
    ball(bare, 5.0)
    assert said(floating) == [] and said(bare) == []
