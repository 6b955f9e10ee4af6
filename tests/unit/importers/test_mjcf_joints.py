"""MJCF bodies and joints: kinematics, mass matrix and smooth motion as in MuJoCo."""

import numpy as np
import pytest

import gpusim
from ci.check_one_model import check_kinematics, check_passive
from gpusim.importers import load_mjcf
from tests.backends import FASTEST

from .mjcf_tools import facts, mjcf, mujoco, positions_after, solid

pytestmark = pytest.mark.native

HINGE = "<joint name='{}' axis='{}' pos='0.02 0.01 -0.1' {}/>"


def hinge(name="h", axis="0.3 1 0.2", more=""):
    return HINGE.format(name, axis, more)


def slide(name="s", axis="1 0 0", more=""):
    return f"<joint type='slide' name='{name}' axis='{axis}' {more}/>"


AXES = (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))

CASES = {
    "hinge with spring, damper and rotor": solid(
        hinge(more="stiffness='3' springref='0.4' damping='0.05' armature='0.02'")
    ),
    "ref of hinge and slide": solid(
        hinge(more="ref='0.7' stiffness='2'") + solid(slide(more="ref='-0.2' stiffness='50'"), name="b", pos="0 0 0.3"),
    ),
    "slides, then hinges at right angles": solid(
        slide("x") + slide("y", "0 1 0") + hinge("a", "0 0 1") + hinge("b", "0 1 0"), pos="0 0 1"
    ),
    "refs of a slide and of the hinge after it": solid(
        slide(axis="1 0.2 0", more="ref='0.1'") + hinge(axis="0 1 0.5", more="ref='0.7' stiffness='2'"), pos="0 0 1"
    ),
    "three hinges at right angles": solid(
        "".join(hinge(n, a, "range='-60 60'") for n, a in (("a", "1 0 0"), ("b", "0 1 0"), ("c", "0 0 1")))
    ),
    "skew hinges": solid(hinge("a", "1 0 0.3") + hinge("b", "0 1 0.5")),
    "four skew joints": solid(
        hinge("a", "1 0 0.3") + slide("s", "1 1 0") + hinge("b", "0 1 0.5") + hinge("c", "0.3 0 1")
    ),
    "three slides and three hinges without limits": solid(
        "".join(slide(n, a) for n, a in AXES) + "".join(hinge(f"r{n}", a) for n, a in AXES)
    ),
    "a hinge before a slide": solid(hinge("a", "0 0 1") + slide("s")),
    "hinges with refs": solid(hinge("a", "1 0 0", "ref='0.3'") + hinge("b", "0 1 0", "ref='-0.5'")),
    "ball with damping and spring": solid("<joint type='ball' name='ball' damping='0.02' stiffness='1.5'/>"),
    "ball on a mover": solid(hinge() + solid("<joint type='ball' name='ball'/>", name="b", pos="0.3 0 0")),
    "ball with rotor on the world": solid("<joint type='ball' name='ball' armature='0.03'/>"),
    "free body": solid("<freejoint name='f'/>", pos="0 0 1"),
    "free body with damping and rotor": solid(
        "<joint type='free' name='f' damping='0.7' armature='0.3'/>", pos="0 0 1"
    ),
    "welded parts": solid(
        hinge() + "<body name='w' pos='0.1 0 0' euler='20 30 40'><geom size='0.1' mass='0.7'/></body>"
        + "<body name='massless' pos='0 0.1 0'>" + solid(hinge("h2", "0 1 0"), name="b") + "</body>"
    ),
    "gravity compensation below zero, which MuJoCo ignores": solid(hinge()).replace("<body", "<body gravcomp='-0.6'"),
    "gravity compensation below and above zero": solid(
        hinge() + solid(hinge("h2"), name="tip").replace("<body", "<body gravcomp='0.3'")
    ).replace("<body name='body'", "<body name='body' gravcomp='-0.6'"),
    "gravity compensation": solid(hinge()).replace("<body name='body'", "<body name='body' gravcomp='0.6'"),
}  # fmt: skip


def compiled(bodies, more=""):
    return mujoco.MjModel.from_xml_string(mjcf(bodies, more))


@pytest.mark.parametrize("name", CASES)
def test_kinematics_and_mass_matrix_are_those_of_mujoco(name):
    row = {}
    check_kinematics(compiled(CASES[name]), name, np.random.default_rng(1), row)
    assert row["fk"] < 1e-12
    assert row["mass_matrix"] < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_smooth_motion_is_that_of_mujoco(name):
    assert load_mjcf(mjcf(CASES[name]))[1].exact
    row = {}
    check_passive(compiled(CASES[name]), name, np.random.default_rng(2), row)
    assert row["passive"] < 3e-5
    assert row["passive_4"] < 0.3 * row["passive"] + 1e-8


def test_joints_that_fit_one_d6_joint_have_no_link_between_them():
    builder, report = load_mjcf(mjcf(CASES["three slides and three hinges without limits"]))
    assert [j.kind for j in builder.joints] == ["d6", "revolute"]
    assert [(name, j.label, j.axis) for name, j in report.joints.items()][-2:] == [("ry", "x", 4), ("rz", "rz", 0)]
    assert report.added_mass == pytest.approx(2e-7 * builder.bodies[-2].mass)


def test_coordinates_are_qpos():
    text = mjcf(CASES["ref of hinge and slide"], "<keyframe><key name='up' qpos='1.1 -0.35'/></keyframe>")
    builder, report = load_mjcf(text, pose="up")
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    assert sim.read("joint.h.position")[0] == pytest.approx(1.1, abs=1e-12)
    assert sim.read("joint.s.position")[0] == pytest.approx(-0.35, abs=1e-12)
    assert report.poses == ["up"]


def test_velocities_of_a_keyframe_also_move_light_links():
    bodies = CASES["three slides and three hinges without limits"]
    key = "qpos='0.1 0.2 0.3 0.2 0.1 0.3' qvel='0.1 0.2 0.3 1.5 -2 0.5'"
    ours, theirs = positions_after(mjcf(bodies, f"<keyframe><key name='k' {key}/></keyframe>"), 0.2, pose="k")
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    bodies = solid(hinge("a", "1 0 0.3") + hinge("b", "0 1 0.5"))
    text = mjcf(bodies, "<keyframe><key name='k' qpos='0.2 0.1' qvel='1.5 -2'/></keyframe>")
    ours, theirs = positions_after(text, 0.2, pose="k")
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    sim = gpusim.Simulation(load_mjcf(text, pose="k")[0].finalize(), backend="native")
    assert [float(sim.read(f"joint.{j}.velocity")[0]) for j in "ab"] == pytest.approx([1.5, -2.0], abs=1e-9)


def test_limits_damping_and_inertia_are_reported():
    _, report = load_mjcf(mjcf(solid(hinge(more="range='-30 60' damping='2' armature='0.1'"))))
    joint = report.joints["h"]
    assert (joint.kind, joint.parent, joint.child) == ("revolute", "world", "body")
    assert (joint.lower, joint.upper) == pytest.approx(np.radians([-30, 60]))
    assert joint.damping == 2.0
    m = compiled(solid(hinge()))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    column = np.zeros(1)
    mujoco.mj_mulM(m, d, column, np.ones(1))
    assert joint.load_inertia == pytest.approx(column[0], rel=1e-12)


def test_bodies_without_joints_merge_unless_kept():
    builder, report = load_mjcf(mjcf(CASES["welded parts"]))
    assert [b.label for b in builder.bodies] == ["body", "b"]
    assert report.merged == {"w": "body", "massless": "body"}
    np.testing.assert_allclose(report.link_frames["massless"][:3, 3], (0, 0.1, 0))
    kept, report = load_mjcf(mjcf(CASES["welded parts"]), keep=["w*"])
    assert [b.label for b in kept.bodies] == ["body", "w", "b"]
    assert report.merged == {"massless": "body"}
    assert [j.kind for j in kept.joints].count("fixed") == 1
    apart, _ = load_mjcf(mjcf(CASES["welded parts"]), merge_fixed=False)
    assert len(apart.bodies) == 4


def test_fixed_base_holds_and_frees_the_base():
    free = mjcf(solid("<freejoint name='f'/>" + solid(hinge(), name="arm"), pos="0 0 1"))
    builder, report = load_mjcf(free, fixed_base=True)
    assert report.fixed_base and report.base_joint == "body_fixed"
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(100)
    assert float(sim.read("body.body.position")[0][2]) == pytest.approx(1.0, abs=1e-9)
    builder, report = load_mjcf(free)
    assert not report.fixed_base and report.base_joint == "f"
    report = load_mjcf(mjcf(solid(hinge())))[1]
    assert report.fixed_base and report.base_joint is None
    still = mjcf(solid(solid(hinge(), name="arm"), pos="0 0 1"))
    builder, report = load_mjcf(still, fixed_base=False)
    assert not report.fixed_base
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(100)
    assert float(sim.read("body.body.position")[0][2]) < 0.99


def test_friction_of_a_free_joint_stops_it():
    text = mjcf(solid("<joint type='free' name='f' frictionloss='5'/>", off=False), option="gravity='4 0 0'")
    builder, report = load_mjcf(text)
    assert report.exact
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(200)
    assert float(sim.read("body.body.position")[0][0]) == pytest.approx(0.0, abs=1e-9)


def test_gravity_compensation_is_a_share_of_gravity():
    builder, _ = load_mjcf(mjcf(CASES["gravity compensation"]))
    assert builder.bodies[0].gravity_scale == pytest.approx(0.4)
    assert not builder.actuators


FLUID = "density='900' viscosity='0.5' wind='1 0.5 0'"


@pytest.mark.nightly
def test_drag_is_that_of_mujoco():
    row = {}
    model = mujoco.MjModel.from_xml_string(mjcf(solid("<freejoint/>", pos="0 0 1"), option=FLUID))
    assert load_mjcf(model)[1].exact
    check_passive(model, "fluid", np.random.default_rng(3), row)
    assert row["passive"] < 1e-4
    assert row["passive_4"] < 3e-5


def test_models_without_springs_and_dampers_have_no_drag_and_no_gravity_compensation():
    text = mjcf(
        solid("<joint axis='0 1 0' pos='-1 0 0'/>").replace("<body", "<body gravcomp='1'"),
        option=f"{FLUID}><flag spring='disable' damper='disable'/></option><option",
    )
    ours, theirs = positions_after(text, 0.2)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_drag_of_a_round_body_has_the_axes_of_mujocos_box():
    capsule = "<joint pos='-1 0 0' axis='0 1 0'/><geom type='capsule' size='0.1' fromto='0.1 0 0 0.3 0.2 0.1'/>"
    ours, theirs = positions_after(mjcf(f"<body name='b'>{capsule}</body>", option=FLUID))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_springs_and_dampers_that_are_not_linear_are_reported():
    body = "<joint name='j' type='{}' {}/>"
    for kind in ("hinge", "ball", "free"):
        _, report = load_mjcf(mjcf(solid(body.format(kind, "stiffness='1 2'"))))
        assert "joint 'j': stiffness that grows with the angle" in facts(report, "motion")
        off = "><flag spring='disable'/></option><option"
        _, report = load_mjcf(mjcf(solid(body.format(kind, "stiffness='1 2' damping='1 2'")), option=off))
        assert "joint 'j': damping that grows with the speed" in facts(report, "motion")
        assert "stiffness" not in facts(report, "motion")


def test_drag_of_welded_parts_and_ellipsoids_is_not_exact():
    part = "<body name='part' pos='0.3 0 0'><geom size='0.1' mass='1'/></body>"
    _, report = load_mjcf(mjcf(solid(hinge() + part), option=FLUID))
    assert "body 'body': drag of several parts" in facts(report, "motion")
    ellipsoid = "<geom size='0.1' fluidshape='ellipsoid'/>"
    _, report = load_mjcf(mjcf(solid(hinge() + ellipsoid), option=FLUID))
    assert "body 'body': drag of ellipsoids" in facts(report, "motion")


KEYS = {
    "chain": (CASES["ref of hinge and slide"], "0.4 -0.1"),
    "d6": (CASES["slides, then hinges at right angles"], "0.1 0.2 0.3 0.4"),
    "light links": (CASES["skew hinges"], "0.3 -0.2"),
    "ball": (CASES["ball on a mover"], "0.3 0.8 0.6 0 0"),
    "free": (CASES["free body"], "1 2 3 0.6 0 0.8 0"),
    "mocap": ("<body name='m' mocap='true'><geom size='0.1'/></body>" + solid(hinge()), "0.3"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keyframes_are_postures_of_the_model(name):
    bodies, qpos = KEYS[name]
    mocap = "mpos='1 2 3' mquat='0 1 0 0'" if name == "mocap" else ""
    text = mjcf(bodies, f"<keyframe><key name='k' qpos='{qpos}' {mocap}/></keyframe>")
    started = load_mjcf(text, pose="k")[0]
    builder, report = load_mjcf(text)
    assert report.poses == ["k"]
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(20)
    sim.reset(pose="k")
    for body in started.bodies:
        np.testing.assert_allclose(sim.read(f"body.{body.label}.position")[0], body.xform.position, atol=1e-12)


def test_mocap_bodies_are_kinematic():
    text = mjcf("<body name='target' mocap='true' pos='0 0 2'><geom size='0.1'/></body>" + solid(hinge()))
    builder, report = load_mjcf(text)
    assert [b.kinematic for b in builder.bodies] == [True, False]
    assert report.total_mass == pytest.approx(1.0)


def test_a_tendon_over_the_joints_of_one_body_does_not_open_them():
    bar = "<geom type='box' pos='.1 .2 .3' size='.1 .2 .3'/>"
    joints = hinge("a", "0.1 0.2 0.3", "damping='0.25'") + slide("b", "0.4 0.5 0.6", "damping='0.25'")
    tendon = "<joint joint='a' coef='.3'/><joint joint='b' coef='-.4'/>"
    builder, _ = load_mjcf(
        f"<mujoco><worldbody><body>{joints}{bar}</body></worldbody>"
        f"<tendon><fixed stiffness='0.3'>{tendon}</fixed></tendon></mujoco>"
    )
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=2e-3))
    sim.step(200)
    assert sim.read("sim.joint_drift_peak").max() < 1e-9


BODY = "<body name='body' pos='{}' euler='{}'><inertial pos='{}' mass='{}' diaginertia='0.0125 0.0147 0.015'/>{}</body>"
ONE = "<joint name='{}' type='{}' pos='{}' axis='{}' damping='0.1'/>"
LOOPS = {
    "spring tendon": (
        BODY.format(
            "-0.17 0.25 0.07", "-6.4 0.4 -4", "-0.08 -0.04 -0.09", 2.8,
            ONE.format("a", "hinge", "0.06 0.08 -0.09", "-1.12 1.35 0.19")
            + ONE.format("b", "hinge", "0.11 0.12 -0.14", "1.96 -0.46 -0.47"),
        ),
        "<tendon><fixed stiffness='97' damping='0.17'>"
        "<joint joint='b' coef='0.385'/><joint joint='a' coef='0.516'/></fixed></tendon>",
    ),
    "connect": (
        BODY.format(
            "-0.02 0.2 -0.1", "-12 -39 -8", "0.05 -0.04 -0.03", 0.8,
            ONE.format("a", "hinge", "0.04 -0.13 -0.07", "0.9 1.04 -0.75")
            + ONE.format("b", "slide", "0.03 0.01 0.05", "0.52 -0.48 -1.75")
            + ONE.format("c", "hinge", "0.08 0.14 0", "1.49 -0.17 -2.2"),
        ),
        "<equality><connect body1='body' anchor='0.05 -0.14 -0.08' solref='0.0008 1' solimp='0.9999 0.99995 0.001'/>"
        "</equality>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("closing", LOOPS)
def test_a_loop_does_not_make_joints_of_light_links_soft(closing):
    ours, theirs = positions_after(mjcf(*LOOPS[closing]), 0.2, step=1e-4)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
