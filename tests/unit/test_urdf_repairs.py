from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusim
from gpusim import validate
from gpusim.importers import load_urdf
from gpusim.importers.inertia import MassProperties, combine, inertia_fault, repair_inertia, sphere_inertia
from tests.backends import FASTEST
from tests.unit.urdf_text import DATA, LIMIT, SOLID, arm, inertial, joint, link, robot

pytest.importorskip("yourdfpy")

ENTRIES = st.floats(-1e6, 1e6, allow_nan=False) | st.floats(-1e-6, 1e-6) | st.sampled_from([0.0, 1.0, 1e-12, -1.0])
MASSES = st.floats(1e-6, 1e6)


def symmetric(values):
    xx, yy, zz, xy, xz, yz = values
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@settings(deadline=None, max_examples=500)
@given(st.tuples(*[ENTRIES] * 6), MASSES)
def test_a_repaired_tensor_is_always_possible(values, mass):
    tensor = symmetric(values)
    repaired = repair_inertia(tensor, mass)
    assert inertia_fault(repaired, mass) is None
    validate.body_inertia("body", repaired, mass)  # the builder agrees
    moments = np.linalg.eigvalsh(repaired)
    assert moments[0] > 0.0
    assert moments[0] + moments[1] >= moments[2] * (1.0 - 1e-6)
    if inertia_fault(tensor, mass) is None:
        assert repaired.tobytes() == tensor.tobytes()


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(*[st.floats(-2, 2)] * 3), min_size=4, max_size=8),
    st.lists(st.floats(0.01, 10), min_size=8, max_size=8),
)
def test_a_possible_tensor_is_left_bit_identical(points, masses):
    parts = [
        MassProperties(m, np.array(p), np.zeros((3, 3)))
        for p, m in zip(points, masses[: len(points)], strict=True)
    ]  # fmt: skip
    total = combine(parts)
    tensor = 0.5 * (total.inertia + total.inertia.T)
    moments = np.linalg.eigvalsh(tensor)
    if moments[0] > max(1e-9 * moments[2], validate.min_moment(total.mass)):
        assert inertia_fault(tensor, total.mass) is None
        assert repair_inertia(tensor, total.mass).tobytes() == tensor.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_a_tensor_that_is_not_finite_becomes_a_sphere(bad):
    tensor = np.diag([1.0, 1.0, bad])
    assert inertia_fault(tensor) == "not finite"
    np.testing.assert_array_equal(repair_inertia(tensor, 2.0), sphere_inertia(2.0))


def test_repair_is_small():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    repaired = repair_inertia(turn @ np.diag([1.0, 2.0, 3.5]) @ turn.T, 1.0)
    np.testing.assert_allclose(turn.T @ repaired @ turn, np.diag([1.25, 2.25, 3.5]), atol=1e-5)
    repaired = repair_inertia(np.diag([-1.0, 1.0, 1.0]), 1.0)
    np.testing.assert_allclose(repaired, np.diag([1e-3, 1.0, 1.0]), atol=1e-6)


def test_sphere_of_water():
    mass = 1000.0 * 4.0 / 3.0 * math.pi * 0.1**3
    np.testing.assert_allclose(sphere_inertia(mass), np.eye(3) * 0.4 * mass * 0.01, rtol=1e-12)


# What programs of geometry write for a part without inertia: round-off of either sign.
ROUND_OFF = {
    "positive": ("2e-18", "2e-18", "4e-18", "0", "0", "0"),
    "1e-15": ("1e-15", "1e-15", "1e-15", "0", "0", "0"),
    "products alone": ("0", "0", "0", "1.355e-20", "0", "0"),
    "smallest of all": ("2e-35", "1e-35", "2e-35", "0", "0", "-1e-35"),
    "broken triangle": ("4.888e-21", "3.547e-20", "5.45e-20", "0", "0", "0"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("values", ROUND_OFF.values(), ids=ROUND_OFF)
def test_round_off_is_repaired_as_zero_is(values):
    free = '<limit effort="1" velocity="1"/>'
    text = robot(
        link("base"), link("cross", inertial("0.2", values)), link("bar", inertial("1", ("0.01",) * 3 + ("0",) * 3)),
        joint("first", "base", "cross", content='<origin xyz="0.1 0 0"/><axis xyz="0 0 1"/>' + free),
        joint("second", "cross", "bar", content='<origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>' + free),
    )  # fmt: skip
    builder, report = load_urdf(text)
    np.testing.assert_array_equal(builder.bodies[1].inertia, sphere_inertia(0.2))
    reported = [warning for warning in report.warnings if "'cross'" in warning]
    assert len(reported) == 1 and "zero except for round-off" in reported[0]
    sim = gpusim.Simulation(builder.finalize(), config=gpusim.SolverConfig(dt=1e-3), backend=FASTEST)
    sim.step(200)
    assert sim.health().all()
    assert sim.read("sim.joint_drift")[0] < 1e-9


def test_a_single_moment_of_round_off_is_raised():
    content = inertial("0.01", ("1.5e-17", "0.215", "0.215", "0", "0", "0"))
    builder, report = load_urdf(arm(tip=content))
    np.testing.assert_allclose(np.diagonal(builder.bodies[1].inertia), [2.15e-4, 0.215, 0.215], rtol=2e-3)
    assert any("'tip'" in text for text in report.warnings)


def test_what_is_small_and_possible_is_kept():
    values = ("2e-8", "3e-8", "2e-8", "0", "0", "0")
    builder, report = load_urdf(arm(tip=inertial("0.3", values)))
    np.testing.assert_array_equal(builder.bodies[1].inertia, np.diag([2e-8, 3e-8, 2e-8]))
    assert report.warnings == []


@pytest.mark.parametrize(("own", "kept"), [("1e-6", False), ("1", True)])
def test_a_point_that_a_speck_is_welded_to_is_repaired(own, kept):
    speck, none = inertial("1e-6", (own,) * 3 + ("0",) * 3), inertial("4.72", ("0",) * 6)
    text = robot(link("base", speck), link("trunk", none), joint("weld", "base", "trunk", "fixed", ""))
    builder, report = load_urdf(text, fixed_base=False)
    mass = 4.72 + 1e-6
    expected = np.eye(3) if kept else sphere_inertia(mass)
    np.testing.assert_allclose(builder.bodies[0].inertia, expected, rtol=1e-9)
    assert any("almost no inertia" in warning for warning in report.warnings) != kept


ZERO = ("0",) * 6
GOOD = ("0.1", "0.1", "0.1", "0", "0", "0")
REPAIRS = {
    "missing inertial": ("", "missing <inertial>", 0.01, None),
    "missing mass": ("<inertial/>", "mass 0", 0.01, None),
    "zero mass, zero inertia": (inertial("0", ZERO), "mass 0", 0.01, None),
    "zero mass, good inertia": (inertial("0", GOOD), "with its inertia from the file", 0.01, [0.1, 0.1, 0.1]),
    "NaN mass": (inertial("nan", GOOD), "mass is nan", 0.01, [0.1, 0.1, 0.1]),
    "infinite mass": (inertial("inf", GOOD), "mass is inf", 0.01, [0.1, 0.1, 0.1]),
    "zero inertia": (inertial("2", ZERO), "inertia zero", 2.0, None),
    "missing inertia": ('<inertial><mass value="2"/></inertial>', "inertia zero", 2.0, None),
    "NaN inertia": (inertial("2", ("nan", "1", "1", "0", "0", "0")), "not finite", 2.0, None),
    "infinite inertia": (
        inertial("2", ("inf", "1", "1", "0", "0", "0"), '<origin rpy="0.1 0.2 0.3"/>'), "not finite", 2.0, None,
    ),
    "all negative": (inertial("2", ("-1", "-1", "-1", "0", "0", "0")), "not positive definite", 2.0, None),
    "one negative": (inertial("2", ("-1", "1", "1", "0", "0", "0")), "not positive definite", 2.0, [1e-3, 1, 1]),
    "products too large": (inertial("2", ("1", "1", "1", "2", "0", "0")), "not positive definite", 2.0, [1, 2, 3]),
    "triangle": (inertial("2", ("1", "1", "3", "0", "0", "0")), "triangle rule", 2.0, [1.5, 1.5, 3]),
    "missing entry": (
        '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"/></inertial>',
        "lacks iyz", 2.0, [1, 1, 1],
    ),
    "missing diagonal": (
        '<inertial><mass value="2"/><inertia ixx="1" iyy="1"/></inertial>',
        "lacks ixy, ixz, iyz, izz", 2.0, [1e-3, 1, 1],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "words", "mass", "moments"), REPAIRS.values(), ids=REPAIRS)
def test_repairs_are_named_and_possible(content, words, mass, moments):
    builder, report = load_urdf(arm(tip=content))
    body = builder.bodies[1]
    assert body.mass == pytest.approx(mass)
    expected = np.diagonal(sphere_inertia(mass)) if moments is None else sorted(moments)
    np.testing.assert_allclose(np.linalg.eigvalsh(body.inertia), expected, rtol=2e-3)
    assert any("link 'tip'" in text and words in text for text in report.warnings), report.warnings
    assert not any("'base'" in text for text in report.warnings)
    assert report.added_mass == pytest.approx(0.01 if mass == 0.01 else 0.0)


def test_good_bodies_get_no_warning():
    assert load_urdf(arm())[1].warnings == []


def test_a_point_mass_or_a_rod_may_be_part_of_a_body():
    rod = inertial("1", ("0", "0.1", "0.1", "0", "0", "0"))
    text = robot(
        link("base"), link("bar", rod), link("lead", inertial("3", ZERO)),
        joint("elbow", "base", "bar"), joint("tie", "bar", "lead", "fixed", '<origin xyz="0 0.2 0.1"/>'),
    )  # fmt: skip
    builder, report = load_urdf(text)
    assert report.warnings == []
    body = builder.bodies[1]
    np.testing.assert_allclose(body.com, [0, 0.15, 0.075])
    np.testing.assert_allclose(np.trace(body.inertia), 0.2 + 2 * 0.75 * 0.05)


def test_a_lump_of_points_is_repaired_as_a_whole():
    point = inertial("1", ZERO)
    text = robot(
        link("base"), link("a", point), link("b", point), joint("elbow", "base", "a"),
        joint("tie", "a", "b", "fixed", '<origin xyz="1 0 0"/>'),
    )  # fmt: skip
    builder, report = load_urdf(text)
    assert len(report.warnings) == 1
    assert "link 'a' (with 'b')" in report.warnings[0]
    np.testing.assert_allclose(np.linalg.eigvalsh(builder.bodies[1].inertia), [5e-4, 0.5, 0.5], rtol=2e-3)


def test_a_broken_part_is_repaired_before_it_is_merged():
    bad = inertial("1", ("1", "1", "3", "0", "0", "0"))
    text = robot(link("base"), link("tool", bad), joint("tie", "base", "tool", "fixed", ""))
    builder, report = load_urdf(text)
    assert len(report.warnings) == 1 and "link 'tool'" in report.warnings[0]
    np.testing.assert_allclose(builder.bodies[0].inertia, np.diag([2.5, 2.5, 4.0]), rtol=1e-5)


def test_a_broken_part_without_mass_is_dropped():
    text = robot(
        link("base"), link("tool", inertial("0", ("-1", "1", "1", "0", "0", "0"))),
        joint("tie", "base", "tool", "fixed", ""),
    )  # fmt: skip
    builder, report = load_urdf(text)
    assert len(report.warnings) == 1
    np.testing.assert_array_equal(builder.bodies[0].inertia, np.eye(3))


def test_a_robot_without_any_mass_gets_one_kilogram_each():
    builder, report = load_urdf(arm(base="", tip=""))
    assert [body.mass for body in builder.bodies] == [1.0, 1.0]
    assert report.added_mass == report.total_mass == 2.0


LIMIT_WARNINGS = {
    "no bounds": ("revolute", '<limit effort="1" velocity="1"/>', "lacks lower and upper", (-math.inf, math.inf)),
    "no upper": ("revolute", '<limit lower="-1" effort="1" velocity="1"/>', "lacks upper; 0", (-1.0, 0.0)),
    "no effort": ("prismatic", '<limit lower="-1" upper="1" velocity="1"/>', "lacks effort", (-1.0, 1.0)),
    "no velocity": ("prismatic", '<limit lower="-1" upper="1" effort="1"/>', "lacks velocity", (-1.0, 1.0)),
    "zero effort": ("revolute", LIMIT.replace('"10"', '"0"'), 'effort="0" is not positive', (-1.0, 1.0)),
    "NaN velocity": ("revolute", LIMIT.replace('"2"', '"nan"'), 'velocity="nan" is not positive', (-1.0, 1.0)),
    "locked": ("revolute", '<limit lower="0" upper="0" effort="1" velocity="1"/>', "lock it", (0.0, 0.0)),
    "bounds of a wheel": ("continuous", LIMIT, "lower and upper ignored", (-math.inf, math.inf)),
    "bounds of a table": ("planar", LIMIT, "lower and upper ignored", (-math.inf, math.inf)),
    "damped floating": ("floating", '<dynamics damping="1"/>', "no <dynamics>", (-math.inf, math.inf)),
    "mimic of a weld": ("fixed", '<mimic joint="elbow"/>', "no <mimic>", (-math.inf, math.inf)),
}


@pytest.mark.parametrize(("kind", "content", "words", "bounds"), LIMIT_WARNINGS.values(), ids=LIMIT_WARNINGS)
def test_gaps_in_joints_are_filled_with_a_warning(kind, content, words, bounds):
    _, report = load_urdf(arm(content, kind), merge_fixed=False)
    assert len(report.warnings) == 1
    assert "joint 'elbow'" in report.warnings[0] and words in report.warnings[0]
    info = report.joints["elbow"]
    assert (info.lower, info.upper) == bounds
    if "effort" in words:
        assert info.limits.effort == math.inf
    if "velocity" in words:
        assert info.limits.velocity == math.inf


def test_a_mimic_with_multiplier_zero_is_fixed():
    text = (DATA / "mimic.urdf").read_text().replace('multiplier="-2"', 'multiplier="0"')
    _, report = load_urdf(text, merge_fixed=False)
    assert report.joints["right_finger"].kind == "fixed"
    assert any("multiplier 0" in warning for warning in report.warnings)


def test_a_robot_without_a_name_is_called_robot():
    _, report = load_urdf(f"<robot>{link('base', SOLID)}</robot>")
    assert report.robot_name == "robot"
    assert "no name" in report.warnings[0]
