from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Transform
from gpusim.compiler.mass import complete_bodies, mass_properties
from gpusim.description.specs import BodySpec
from tests.message_snapshot import naming

TURN = Transform.from_rpy((0.3, -0.2, 0.5), (0.4, 1.0, -0.7))


def body_of(b: ModelBuilder) -> BodySpec:
    return complete_bodies(b)[0]


def test_one_box() -> None:
    b = ModelBuilder()
    b.add_body()
    assert not b.bodies[0].complete
    b.add_shape_box(0, (0.1, 0.2, 0.3), density=500.0)
    body = body_of(b)
    mass = 500.0 * 0.2 * 0.4 * 0.6
    assert body.mass == pytest.approx(mass) and body.complete
    np.testing.assert_allclose(body.com, 0.0)
    np.testing.assert_allclose(body.inertia, mass / 12 * np.diag([0.16 + 0.36, 0.04 + 0.36, 0.04 + 0.16]), rtol=1e-12)
    assert not b.bodies[0].complete  # the builder stays as it was: more shapes may follow


def test_two_halves_are_the_whole() -> None:
    whole, halves = ModelBuilder(), ModelBuilder()
    whole.add_body()
    halves.add_body()
    whole.add_shape_box(0, (0.4, 0.2, 0.3), xform=TURN)
    for side in (-1, 1):
        place = TURN * Transform((0.2 * side, 0, 0), (1, 0, 0, 0))
        halves.add_shape_box(0, (0.2, 0.2, 0.3), xform=place)
    a, b = body_of(whole), body_of(halves)
    assert a.mass == pytest.approx(b.mass)
    np.testing.assert_allclose(b.com, TURN.position, atol=1e-14)
    np.testing.assert_allclose(b.inertia, a.inertia, rtol=1e-12)


def test_hull_of_a_box_weighs_the_same() -> None:
    box, hull = ModelBuilder(), ModelBuilder()
    box.add_body()
    hull.add_body()
    half, middle = np.array([0.4, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half + middle
    box.add_shape_box(0, half, xform=TURN * Transform(middle))
    hull.add_shape_hull(0, corners, xform=TURN)
    a, b = body_of(box), body_of(hull)
    assert b.mass == pytest.approx(a.mass)
    np.testing.assert_allclose(b.com, a.com, rtol=1e-12)
    np.testing.assert_allclose(b.inertia, a.inertia, rtol=1e-11, atol=1e-12)


def test_parallel_axes_by_hand() -> None:
    b = ModelBuilder()
    b.add_body()
    b.add_shape_sphere(0, 0.1, xform=Transform((-1, 0, 0)), density=1000.0)
    b.add_shape_sphere(0, 0.1, xform=Transform((2, 0, 0)), material=Material(density=2000.0))
    mass, com, inertia = mass_properties(b.shapes)
    m = 4000.0 / 3.0 * np.pi * 1e-3
    assert mass == pytest.approx(3 * m)
    np.testing.assert_allclose(com, (1, 0, 0), atol=1e-14)
    own = 0.4 * 3 * m * 0.01
    np.testing.assert_allclose(inertia, np.diag([own, own + 6 * m, own + 6 * m]), rtol=1e-12, atol=1e-12)
    assert mass_properties([])[0] == 0.0


def test_given_values_stay() -> None:
    b = ModelBuilder()
    b.add_body(3.0, (1, 1, 1))
    b.add_body(3.0, (1, 1, 1), (0.1, 0, 0))
    b.add_shape_cone(0, 1.0, 1.0)
    done = complete_bodies(b)
    assert done[0] is b.bodies[0] and done[1] is b.bodies[1]
    assert done[0].com.tolist() == [0, 0, 0] and done[1].com.tolist() == [0.1, 0, 0]


def test_given_mass_scales_the_shapes() -> None:
    b = ModelBuilder()
    b.add_body(mass=7.0)
    b.add_shape_cone(0, 0.3, 0.4, density=123.0)
    body = body_of(b)
    assert body.mass == 7.0
    np.testing.assert_allclose(body.com, (0, 0, -0.2))
    assert body.inertia[2, 2] == pytest.approx(0.3 * 7.0 * 0.09)


def test_given_center_of_mass_moves_nothing_else() -> None:
    b = ModelBuilder()
    b.add_body(com=(0, 0, 0.1))
    b.add_shape_sphere(0, 0.5, xform=Transform((1, 0, 0)))
    body = body_of(b)
    assert body.com.tolist() == [0, 0, 0.1]
    np.testing.assert_allclose(body.inertia, 0.4 * body.mass * 0.25 * np.eye(3))


def test_kinematic_body_needs_no_mass() -> None:
    b = ModelBuilder()
    b.add_body(kinematic=True)
    b.add_body(kinematic=True)
    b.add_shape_plane(0)
    b.add_shape_box(1, (1, 1, 1))
    lift, press = complete_bodies(b)
    assert (lift.mass, press.mass) == (1.0, 8000.0) and lift.complete


def _no_shape(b: ModelBuilder) -> None:
    b.add_body(label="x")


def _sharp_wheel(b: ModelBuilder) -> None:
    b.add_shape_wheel(b.add_body(label="x"), 0.5)


def _mass_alone(b: ModelBuilder) -> None:
    b.add_body(mass=2.0, label="x")


@pytest.mark.parametrize(
    "make, words",
    [
        (_no_shape, "mass add_shape_box"),
        (_sharp_wheel, "'x'"),
        (_mass_alone, "'x'"),
    ],
)
def test_errors(make: Any, words: str) -> None:
    b = ModelBuilder()
    make(b)
    with pytest.raises(ModelError, match=naming(f"'x' {words}")):
        complete_bodies(b)
