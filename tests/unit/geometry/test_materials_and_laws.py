from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from gpusim import ContactLaw, Material, ModelBuilder, ModelError, Tire
from gpusim.compiler.contact_topology import pair_material
from gpusim.contact.law import FLOATS, NUMBERS, PAIRS, SOCKETS
from gpusim.contact.material import combine, contact_modulus
from gpusim.description.specs import PairSpec
from tests.message_snapshot import naming

TIRE: dict[str, Any] = {"friction": "tire", "slip_stiffness": 1e4, "relaxation_length": 0.1}
HERTZ = ContactLaw(normal="hertz", damping="hunt_crossley", damping_coefficient=0.3)


def test_combination_is_symmetric_and_of_one_kind_the_same() -> None:
    a = Material(0.4, 0.01, 0.002, 0.3, 800.0, 2e9, 0.3)
    b = Material(0.9, 0.04, 0.0, 0.7, 500.0, 1e6, 0.5, HERTZ)
    c = combine(a, b)
    assert c == combine(b, a)
    assert (c.friction, c.rolling_friction, c.spinning_friction) == pytest.approx((0.6, 0.02, 0.002))
    assert (c.restitution, c.law) == (0.7, HERTZ)
    modulus = 1.0 / ((1.0 - 0.09) / 2e9 + (1.0 - 0.25) / 1e6)
    assert contact_modulus(a, b) == pytest.approx(modulus) and c.contact_modulus == pytest.approx(modulus)
    same = combine(b, b)
    assert same.friction == pytest.approx(b.friction) and same.law == b.law
    assert (same.young_modulus, same.poisson_ratio) == pytest.approx((1e6, 0.5))


def test_pair_of_shapes() -> None:
    b = ModelBuilder()
    b.add_shape_plane(material=Material(law=HERTZ), label="road")
    b.add_shape_sphere(b.add_body(), 1.0, material=Material(law=ContactLaw(normal="hertz")), label="tire")
    road, tire = b.shapes
    with pytest.raises(ModelError, match=naming("shape 'road' 'tire' add_collision_pair")):
        pair_material(road, tire)
    own = Material(friction=0.9)
    assert pair_material(road, tire, PairSpec(0, 1, True, own)) is own
    tire.material = Material(friction=0.02)
    assert pair_material(road, tire, PairSpec(0, 1, True)).friction == pytest.approx(0.1)
    tire.material = Material(law=dataclasses.replace(HERTZ))
    assert pair_material(road, tire).law == HERTZ


@pytest.mark.parametrize(
    "values, words",
    [
        ({"friction": -0.1}, "friction -0.1"),
        ({"rolling_friction": float("nan")}, "rolling_friction"),
        ({"spinning_friction": "much"}, "spinning_friction 'much'"),
        ({"restitution": 1.1}, "restitution 1.1 0 1"),
        ({"density": 0.0}, "density"),
        ({"young_modulus": -1.0}, "young_modulus"),
        ({"poisson_ratio": 0.6}, "poisson_ratio 0.6 0.5"),
        ({"law": "hertz"}, "'hertz' gpusim.ContactLaw"),
    ],
)
def test_bad_materials(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=naming(f"Material {words}")):
        Material(**values)


TIRES = Material(law=HERTZ), Material(law=dataclasses.replace(HERTZ, stiffness=2e6))


def tires(**given: Any) -> ModelBuilder:
    b = ModelBuilder()
    for label, material in zip(("front", "rear"), TIRES, strict=True):
        b.add_shape_sphere(b.add_body(1.0, (1.0,) * 3), 0.3, material=material, label=label, **given)
    return b


APART: dict[str, Callable[[], ModelBuilder]] = {}


def apart(build: Callable[[], ModelBuilder]) -> Callable[[], ModelBuilder]:
    APART[build.__name__] = build
    return build


@apart
def bits() -> ModelBuilder:
    return tires(group=2, mask=1)


@apart
def names() -> ModelBuilder:
    b = tires(group="tires")
    b.set_group_collision("tires", "tires", False)
    return b


@apart
def excluded() -> ModelBuilder:
    b = tires()
    b.exclude_collision_pair(0, 1)
    return b


@apart
def neighbors() -> ModelBuilder:
    b = tires()
    b.add_joint_revolute(0, 1)
    return b


@apart
def welded_through_a_third() -> ModelBuilder:
    b = tires()
    axle = b.add_body(1.0, (1.0,) * 3)
    b.add_joint_fixed(axle, 0)
    b.add_joint_fixed(axle, 1)
    return b


@apart
def on_one_body() -> ModelBuilder:
    b = ModelBuilder()
    body = b.add_body(1.0, (1.0,) * 3)
    for material in TIRES:
        b.add_shape_sphere(body, 0.3, material=material)
    return b


@apart
def that_no_force_moves() -> ModelBuilder:
    b = ModelBuilder()
    lift = b.add_body(kinematic=True)
    b.add_shape_sphere(lift, 0.3, material=TIRES[0])
    b.add_shape_sphere(-1, 0.3, material=TIRES[1])
    return b


@pytest.mark.parametrize("name", APART)
def test_laws_of_shapes_that_cannot_meet_may_differ(name: str) -> None:
    with pytest.raises(ModelError, match=naming("set_group_collision")):
        tires().finalize()
    assert APART[name]().finalize().contact.laws.shape[0] == 3


def test_numbers_of_a_law() -> None:
    rest = (0.0,) * 6 + (1.0, 1.0)
    assert ContactLaw().numbers() == (0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, *rest)
    law = ContactLaw("volumetric", "linear", "contensou", stiffness=1e6, damping_coefficient=5.0, pressure="hertz")
    assert law.numbers() == (2, 1, 2, 1, 1e6, 5.0, 0.0, 0.0, *rest)
    soft = ContactLaw(friction="regularized", regularization_speed=1e-3)
    assert soft.numbers() == (0, 0, 1, 0, 0.0, 0.0, 1e-3, 0.0, *rest)
    assert ContactLaw(friction="contensou", patch_radius=0.01).numbers()[7] == 0.01
    tire = Tire((6e4, 4e4), 0.3, 2e5, 500.0, (1.0, 0.9), 0.01, 0.2)
    assert tire.numbers() == (3, 1, 3, 0, 2e5, 500.0, 0.0, 0.0, 0.01, 0.2, 6e4, 4e4, 0.3, 0.3, 1.0, 0.9)
    assert Tire(6e4, 0.3).numbers() == (0, 0, 3, 0, *(0.0,) * 6, 6e4, 6e4, 0.3, 0.3, 1.0, 1.0)
    assert tire == Tire((6e4, 4e4), (0.3, 0.3), 2e5, 500.0, (1.0, 0.9), 0.01, 0.2) != Tire(6e4, 0.3)
    assert len(NUMBERS) == len(tire.numbers())
    assert str(soft) == (
        "ContactLaw(normal='rigid', damping='none', friction='regularized', regularization_speed=0.001)"
    )


def test_sockets_are_numbered_from_zero_and_reported() -> None:
    for table in SOCKETS.values():
        assert [c.number for c in table.values()] == list(range(len(table)))
        assert all(c.doc and c.equation and set(c.needs) <= set(c.uses) for c in table.values())
        assert {n for c in table.values() for n in c.uses} <= {*FLOATS, *PAIRS, "pressure"}


@pytest.mark.parametrize(
    "values, words",
    [
        ({"normal": "soft"}, "normal 'soft'"),
        ({"damping": 3}, "damping 3 linear"),
        ({"friction": "dry"}, "friction 'dry'"),
        ({"friction": "contensou", "patch_radius": 0.1, "pressure": "flat"}, "pressure 'flat'"),
        ({"normal": "volumetric"}, "'volumetric'"),
        ({"normal": "hertz", "stiffness": 0.0}, "stiffness"),
        ({"stiffness": 1e6}, "stiffness normal 'rigid' 'hertz'"),
        ({"normal": "hertz", "damping": "linear"}, "'linear' damping_coefficient"),
        ({"normal": "hertz", "damping_coefficient": 1.0}, "damping_coefficient damping 'linear'"),
        ({"damping": "hunt_crossley", "damping_coefficient": 0.1}, "rigid restitution"),
        ({"damping": "linear", "damping_coefficient": 0.1}, "rigid"),
        ({"friction": "regularized"}, "regularization_speed"),
        ({"patch_radius": 0.1}, "patch_radius friction 'contensou'"),
        ({"pressure": "hertz"}, "pressure friction 'contensou'"),
        ({"friction": "contensou"}, "patch patch_radius"),
        ({"friction": "tire", "slip_stiffness": 1e4}, "'tire' relaxation_length wheel"),
        ({"slip_stiffness": 1e4}, "slip_stiffness friction 'tire'"),
        (TIRE | {"slip_stiffness": (1e4, 0.0)}, "slip_stiffness"),
        (TIRE | {"slip_stiffness": (1, 2, 3)}, "3"),
        (TIRE | {"width": 0.1}, "width 'spring'"),
    ],
)
def test_bad_laws(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=naming(f"ContactLaw {words}")):
        ContactLaw(**values)


@pytest.mark.parametrize(
    "values, words",
    [
        ({"width": 0.1}, "radial_stiffness"),
        ({"radial_damping": 5.0}, "radial_stiffness"),
        ({"radial_stiffness": -1.0}, "radial_stiffness"),
        ({"rolling_resistance": -0.01}, "Tire rolling_resistance -0.01"),
        ({"radial_stiffness": -2.0}, "Tire radial_stiffness -2"),
        ({"radial_stiffness": 1e5, "radial_damping": -2.0}, "Tire radial_damping -2"),
        ({"radial_stiffness": 1e5, "width": -0.2}, "Tire width -0.2"),
        ({"friction_ellipse": "round"}, "friction_ellipse 'round'"),
    ],
)
def test_bad_tires(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        Tire(1e4, 0.1, **values)


def test_a_tire_is_for_wheels() -> None:
    b = ModelBuilder()
    road = b.add_shape_plane(label="road")
    box = b.add_shape_box(b.add_body(), (0.1, 0.1, 0.1), material=Material(law=Tire(1e4, 0.1)), label="sledge")
    b.add_shape_wheel(b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0)), 0.2, material=Material(law=Tire(1e4, 0.1)))
    with pytest.raises(ModelError, match=naming("shape 'road' 'sledge' add_shape_wheel")):
        b.finalize()
    b.exclude_collision_pair(road, box)
    b.finalize()
