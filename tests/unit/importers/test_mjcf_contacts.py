"""MJCF geoms: shapes, collision rules and friction as in MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.importers import load_mjcf

from .mjcf_tools import facts, mjcf, mujoco, solid

pytestmark = pytest.mark.native

CUBE = "-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1  -1 -1 1  1 -1 1  -1 1 1  1 1 1"


def ball(name, pos, more="", joint="<freejoint/>", inner=""):
    """Return a ball of radius 0.1 on a body of the same name."""
    geom = f"<geom name='{name}' size='0.1' mass='1' {more}/>"
    return f"<body name='{name}' pos='{pos}'>{joint}{geom}{inner}</body>"


def touching(text, **options):
    """Return the pairs of geoms that touch, by gpusim and by MuJoCo."""
    builder, _ = load_mjcf(text, **options)
    sim = gpusim.Simulation(builder.finalize(), backend="native", config=gpusim.SolverConfig(dt=1e-5, max_pairs=200))
    contacts = sim.contacts()
    labels = [s.label for s in builder.shapes]
    ours = {frozenset((labels[a], labels[b])) for a, b in zip(contacts.shape_a, contacts.shape_b, strict=True)}
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    theirs = {frozenset((m.geom(c.geom1).name, m.geom(c.geom2).name)) for c in d.contact}
    return ours, theirs


FLOOR = "<geom name='floor' type='plane' size='5 5 1'/>"
HINGE = "<joint axis='0 1 0'/>"
CHAIN = ball(
    "a", "0 0 0.05", joint=HINGE, inner=ball("b", "0.1 0 0", joint=HINGE, inner=ball("c", "0 0.1 0", joint=HINGE))
)
"""Three balls that overlap each other and the floor, in a chain from the world."""
FILTERS = {
    "free balls": mjcf(FLOOR + ball("a", "0 0 0.05") + ball("b", "0.1 0 0.05")),
    "contype and conaffinity": mjcf(
        FLOOR
        + ball("a", "0 0 0.05", "contype='2' conaffinity='0'")
        + ball("b", "0.1 0 0.05", "contype='0' conaffinity='2'")
        + ball("c", "0 0.1 0.05", "contype='1' conaffinity='4'")
        + ball("d", "0.1 0.1 0.05", "contype='4' conaffinity='0'")
    ),
    "a chain: parents and children do not touch": mjcf(FLOOR + CHAIN),
    "a chain without that rule": mjcf(FLOOR + CHAIN, option="><flag filterparent='disable'/></option><option"),
    "welded parts count as one": mjcf(FLOOR + ball("a", "0 0 0.05", inner=ball("w", "0.1 0 0", joint=""))),
    "exclude": mjcf(
        FLOOR + ball("a", "0 0 0.05") + ball("b", "0.1 0 0.05") + ball("c", "0 0.1 0.05"),
        "<contact><exclude body1='a' body2='b'/></contact>",
    ),
    "pair of geoms without bits": mjcf(
        FLOOR
        + ball("a", "0 0 0.05", "contype='0' conaffinity='0'")
        + ball("b", "0.1 0 0.05", "contype='0' conaffinity='0'")
        + ball("c", "0 0.1 0.05", "contype='0' conaffinity='0'"),
        "<contact><pair geom1='a' geom2='b'/></contact>",
    ),
    "pair of parent and child": mjcf(FLOOR + CHAIN, "<contact><pair geom1='a' geom2='b'/></contact>"),
    "a mocap body": mjcf(
        FLOOR
        + "<body name='m' mocap='true' pos='0 0 0.05'><geom name='m' size='0.1'/></body>"
        + ball("b", "0.1 0 0.05")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_the_same_geoms_touch_as_in_mujoco(name):
    ours, theirs = touching(FILTERS[name])
    assert ours == theirs
    assert ours


@pytest.mark.parametrize("most", [30, 3])
def test_many_classes_of_bits(most, monkeypatch):
    monkeypatch.setattr("gpusim.importers.mjcf_parts.mjcf_filters.MAX_GROUPS", most)
    bodies = "".join(
        ball(f"g{i}", f"{0.06 * i} 0 0", f"contype='{1 << i % 5 | i}' conaffinity='{i % 7 << 2}'") for i in range(1, 40)
    )
    ours, theirs = touching(mjcf(bodies))
    assert ours == theirs
    assert len(ours) > 20


def test_self_collisions_option():
    text = mjcf(FLOOR + ball("a", "0 0 0.05") + ball("b", "0.1 0 0.05", "contype='2' conaffinity='1'"))
    floor = {frozenset(("floor", "a")), frozenset(("floor", "b"))}
    assert touching(text, self_collisions=False)[0] == floor
    assert touching(text, self_collisions=True)[0] == floor | {frozenset("ab")}
    assert not load_mjcf(text, collisions=False)[0].shapes


def pair_material(floor, own, more=""):
    """Return friction, spinning and rolling friction of a ball on the floor, by gpusim and by MuJoCo."""
    plane = f"<geom name='floor' type='plane' size='5 5 1' {floor}/>"
    text = mjcf(plane + ball("a", "0 0 0.095", own), more)
    builder, _ = load_mjcf(text)
    if builder.pairs and builder.pairs[0].material is not None:
        material = builder.pairs[0].material
    else:
        material = gpusim.contact.material.combine(*(s.material for s in builder.shapes))
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    contact = d.contact[0]
    mu, dim = contact.friction, int(contact.dim)
    theirs = (mu[0] if dim >= 3 else 0.0, mu[2] if dim >= 4 else 0.0, mu[3] if dim >= 6 else 0.0)
    return (material.friction, material.spinning_friction, material.rolling_friction), theirs


@pytest.mark.parametrize(
    ("floor", "own", "more"),
    [
        ("friction='0.3'", "friction='0.9'", ""),
        ("friction='0.3' priority='1'", "friction='0.9'", ""),
        ("friction='0.3 0.02 0.001' condim='4'", "friction='0.9 0.01 0.003' condim='6'", ""),
        ("condim='1' friction='1.4'", "condim='3' friction='0.5'", ""),
        ("condim='1'", "condim='1'", ""),
        ("condim='1' priority='2'", "condim='6'", ""),
        ("condim='3' friction='1 0.02 0.1'", "condim='6' friction='0.4 0.003 0.002'", ""),
        ("", "", "<contact><pair geom1='floor' geom2='a' condim='4' friction='0.2 0.2 0.03 0 0'/></contact>"),
    ],
)
def test_friction_of_a_pair_is_that_of_mujoco(floor, own, more):
    ours, theirs = pair_material(floor, own, more)
    # MuJoCo raises numbers below its mjMINMU of 1e-5
    assert ours == pytest.approx(theirs, abs=1.1e-5)


def test_common_frictions_need_no_pair_materials():
    builder, _ = load_mjcf(mjcf(FLOOR + ball("a", "0 0 1", "friction='0.2'") + ball("b", "1 0 1", "priority='1'")))
    assert not builder.pairs


@pytest.mark.parametrize("priority", [0, 1])
def test_a_block_slides_by_the_friction_of_mujoco(priority):
    """a = g (sin - mu cos) on a slope of 30 degrees."""
    slope = f"<geom type='plane' size='50 50 1' euler='0 30 0' friction='0.45' priority='{priority}'/>"
    box = "<geom type='box' size='0.2 0.2 0.1' friction='0.1'/>"
    block = f"<body name='b' euler='0 30 0' pos='0.05 0 0.0866'><freejoint/>{box}</body>"
    builder, report = load_mjcf(mjcf(slope + block))
    assert report.exact
    sim = gpusim.Simulation(builder.finalize(), backend="native", config=gpusim.SolverConfig(dt=1e-3))
    sim.step(1000)
    speed = float(np.linalg.norm(sim.read("body.b.linear_velocity")[0]))
    assert speed == pytest.approx(9.81 * (0.5 - 0.45 * np.sqrt(0.75)), rel=0.02)


def test_every_kind_of_geom_has_its_shape():
    kinds = {"sphere": "0.1", "capsule": "0.1 0.2", "ellipsoid": "0.1 0.2 0.3", "cylinder": "0.1 0.2", "box": "1 2 3"}
    geoms = "".join(f"<geom name='{kind}' type='{kind}' size='{size}'/>" for kind, size in kinds.items())
    more = f"<asset><mesh name='cube' vertex='{CUBE}'/></asset>"
    builder, report = load_mjcf(mjcf(solid("<freejoint/>" + geoms + "<geom type='mesh' mesh='cube'/>"), more))
    assert [s.kind for s in builder.shapes] == [*kinds, "hull"]
    assert report.shapes == {"body": [0, 1, 2, 3, 4, 5]}
    params = {s.kind: s.params for s in builder.shapes}
    np.testing.assert_allclose(params["box"]["half_extents"], (1, 2, 3))
    assert (params["capsule"]["radius"], params["capsule"]["half_length"]) == (0.1, 0.2)


def test_concave_meshes_can_be_decomposed():
    pytest.importorskip("coacd", reason="decomposition needs coacd")
    outline = [(0, 0), (2, 0), (2, 0.4), (0.4, 0.4), (0.4, 2), (0, 2)]
    vertex = " ".join(f"{x} {y} {z}" for z in (0, 0.3) for x, y in outline)
    sides = [(i, (i + 1) % 6, (i + 1) % 6 + 6, i + 6) for i in range(6)]
    quads = [(a, b, c) for a, b, c, _ in sides] + [(a, c, d) for a, _, c, d in sides]
    caps = [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 5, 4)]
    triangles = quads + caps + [(a + 6, c + 6, b + 6) for a, b, c in caps]
    face = " ".join(str(i) for t in triangles for i in t)
    asset = f"<asset><mesh name='l' vertex='{vertex}' face='{face}'/></asset>"
    mesh = "<geom name='l' type='mesh' mesh='l' contype='2' conaffinity='2'/>"
    text = mjcf(
        solid("<freejoint/>" + mesh) + ball("a", "9 9 9"), asset + "<contact><pair geom1='l' geom2='a'/></contact>"
    )
    assert len(load_mjcf(text)[0].shapes) == 2
    builder, report = load_mjcf(text, meshes="decompose")
    parts = report.shapes["body"]
    assert len(parts) >= 2
    assert len(builder.pairs) == len(parts)


def test_height_field_has_rows_along_y():
    data = " ".join(str(h) for h in [0, 0, 0, 0, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5])
    asset = f"<asset><hfield name='h' nrow='3' ncol='4' size='3 2 0.8 0.1' elevation='{data}'/></asset>"
    ground = "<geom type='hfield' hfield='h' pos='1 0 0.2'/>"
    builder, _ = load_mjcf(mjcf(ground + ball("a", "1 0.01 1.2", joint="<joint type='slide' axis='0 0 1'/>"), asset))
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(2000)
    assert float(sim.read("body.a.position")[0][2]) == pytest.approx(0.2 + 0.8 + 0.1, abs=0.01)


def test_soft_contacts_and_margins_are_reported():
    soft = "<geom name='s' size='0.1' solref='0.1 1' margin='0.01'/>"
    _, report = load_mjcf(mjcf(solid("<freejoint/>" + soft)))
    text = facts(report, "contact")
    assert report.exact
    assert "geom 's': custom solref or solimp" in text
    assert "geom 's': a margin" in text
    assert not facts(load_mjcf(mjcf(ball("a", "0 0 0")))[1], "contact")


def test_soft_pairs_limits_and_frictions_are_reported():
    joint = "<joint name='j' range='-1 1' {}/>"
    limits = joint.format("solimplimit='.8 .9 .01' frictionloss='1' solreffriction='.1 1'")
    tendon = "<fixed name='t' range='0 1' {}><joint joint='j' coef='1'/></fixed>"
    soft = tendon.format("margin='.1' solreflimit='.1 1' frictionloss='1' solimpfriction='.8 .9 .01'")
    pair = "<contact><pair geom1='f' geom2='g' {}/></contact>"
    bodies = "<geom name='f' type='plane' size='1 1 1'/><body pos='0 0 1'>{}<geom name='g' size='.1'/></body>"
    plain = mjcf(
        bodies.format(joint.format("frictionloss='1'")), f"<tendon>{tendon.format('')}</tendon>{pair.format('')}"
    )
    assert not facts(load_mjcf(plain)[1], "contact")
    own = pair.format("margin='.01' solref='.1 1'")
    report = load_mjcf(mjcf(bodies.format(limits), f"<tendon>{soft}</tendon>{own}"))[1]
    text = facts(report, "contact")
    for what in (
        "joint 'j': custom solref or solimp of the limits",
        "joint 'j': custom solref or solimp of the friction",
        "tendon 't': custom solref or solimp of the limits",
        "tendon 't': custom solref or solimp of the friction",
        "tendon 't': a margin of the limits",
        "pair 'f/g': custom solref or solimp",
        "pair 'f/g': a margin or gap of contacts",
    ):
        assert what in text
    assert report.exact


def test_visible_geoms_are_drawn():
    more = "<asset><material name='red' rgba='1 0 0 0.5'/></asset>"
    drawn = "<geom type='box' size='.1 .1 .1' contype='0' conaffinity='0' material='red' name='look'/>"
    hidden = "<geom name='hit' size='0.1' group='3'/>"
    builder, report = load_mjcf(mjcf(solid("<freejoint/>" + drawn + hidden), more))
    assert [v.label for v in builder.visuals] == ["look"]
    assert builder.visuals[0].color == (1.0, 0.0, 0.0)
    assert [s.label for s in builder.shapes] == ["hit"]
    assert builder.visuals[0].look.alpha == 0.5 and not facts(report, "look")
    assert not load_mjcf(mjcf(solid("<freejoint/>" + drawn), more), visuals=False)[0].visuals
