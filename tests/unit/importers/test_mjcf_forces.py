import numpy as np
import pytest

import gpusim
from gpusim.errors import UnknownNameError
from gpusim.importers import Mimic, add_holding_servos, load_mjcf
from tests.message_snapshot import naming

from .mjcf_tools import facts, mjcf, mujoco, positions_after, solid

pytestmark = pytest.mark.native

ARM = solid("<joint name='a' axis='0 1 0'/><site name='sa' pos='0.2 0 0.1'/>", name="one") + solid(
    "<joint name='b' axis='1 0 0'/><site name='sb' pos='0 0 -0.1'/>", name="two", pos="0.6 0 0"
)
"""Two pendulums, each with a site."""
GROUND = "<site name='g' pos='0.3 0.2 0.5'/>"
ASIDE = "<site name='h' pos='0.3 -0.4 0.5'/>"
STIFF = "solref='0.0005 1' solimp='0.9999 0.9999 0.001'"
"""A constraint of MuJoCo that is nearly rigid."""


def tendon(path, more=""):
    return f"<tendon><spatial name='t' {more}>{path}</spatial></tendon>"


def sites(*names):
    return "".join(f"<site site='{name}'/>" for name in names)


FORCES = {
    "fixed tendon": "<tendon><fixed name='t' stiffness='5' damping='0.1' springlength='0.3'>"
    "<joint joint='a' coef='1'/><joint joint='b' coef='-2'/></fixed></tendon>",
    "spring with a dead band": "<tendon><fixed name='t' stiffness='30' springlength='-0.02 0.05'>"
    "<joint joint='a' coef='1'/></fixed></tendon>",
    "spring between two sites": tendon(sites("sa", "sb"), "stiffness='40' damping='0.5'"),
    "rope over a point": tendon(sites("sa", "g", "sb"), "stiffness='40' springlength='0 0.9'"),
    "pulley": tendon(sites("sa", "g") + "<pulley divisor='2'/>" + sites("g", "sb"), "stiffness='60' damping='1'"),
    "armature": tendon(sites("g", "sa"), "stiffness='20' armature='0.2'"),
}


@pytest.mark.parametrize("name", FORCES)
def test_tendons_pull_as_in_mujoco(name):
    text = mjcf(ARM + GROUND, FORCES[name])
    assert load_mjcf(text)[1].exact
    ours, theirs = positions_after(text)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("name", ["stiffness", "damping"])
def test_tendons_with_only_a_nonlinear_part_are_reported(name):
    report = load_mjcf(mjcf(ARM + GROUND, tendon(sites("g", "sa"), f"{name}='0 5'")))[1]
    assert f"tendon 't': {name}poly that is not linear" in facts(report, "motion")


def test_armature_over_several_branches_is_reported():
    for path, exact in ((("sa", "sb"), False), (("g", "sa"), True)):
        report = load_mjcf(mjcf(ARM + GROUND, tendon(sites(*path), "armature='0.2'")))[1]
        assert report.exact is exact
        assert ("tendon 't': armature over several branches" in facts(report, "motion")) is not exact


def test_constant_part_of_a_tendon_counts():
    more = tendon(sites("g", "h", "sa"), "stiffness='40' springlength='1.2'")
    text = mjcf(ARM + GROUND + ASIDE, more)
    ours, theirs = positions_after(text)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_limited_rope_stops_at_its_length():
    more = tendon(sites("g", "s"), "limited='true' range='0 0.4'")
    body = solid("<joint type='slide' axis='0 0 1'/><site name='s'/>", pos="0.3 0.2 0.3", off=False)
    builder, _ = load_mjcf(mjcf(body + GROUND, more))
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(2000)
    assert float(sim.read("joint.t.position")[0]) == pytest.approx(0.4, abs=1e-6)
    assert float(sim.read("body.body.position")[0][2]) == pytest.approx(0.1, abs=1e-6)


def test_passive_tendons_are_left_out_and_wrapping_ones_are_exact():
    more = tendon(sites("sa", "sb"))
    assert load_mjcf(mjcf(ARM + GROUND, more))[1].exact
    wrap = "<site site='sa'/><geom geom='ball'/><site site='sb'/>"
    ball = "<geom name='ball' size='0.05' pos='0.3 0 0.4' contype='0' conaffinity='0'/>"
    builder, report = load_mjcf(mjcf(ARM + ball, tendon(wrap, "stiffness='3'")))
    assert report.exact and "t_part0" in [joint.label for joint in builder.joints]
    assert "tendon 't'" not in report.summary()
    red = load_mjcf(mjcf(ARM + ball, tendon(wrap, "stiffness='3' rgba='1 0 0 1'")))[1]
    assert red.exact and "tendon 't': a color or a width" in red.summary()


EQUALITIES = {
    "joint": f"<joint joint1='a' joint2='b' polycoef='0.1 0.5 0 0 0' {STIFF}/>",
    "polynomial": f"<joint joint1='a' joint2='b' polycoef='0 0.5 0.8 -0.6 0.4' {STIFF}/>",
    "polynomial without a linear term": f"<joint joint1='a' joint2='b' polycoef='0 0 1 0 0' {STIFF}/>",
    "locked joint": f"<joint joint1='a' polycoef='0.0 0 0 0 0' {STIFF}/>",
    "connect": f"<connect body1='one' body2='three' anchor='0 0 0.2' {STIFF}/>",
    "weld": f"<weld body1='one' body2='three' {STIFF}/>",
    "weld of a point": f"<weld body1='one' body2='three' torquescale='0' {STIFF}/>",
    "connect of sites": f"<connect site1='sa' site2='s3' {STIFF}/>",
}


@pytest.mark.parametrize("name", EQUALITIES)
def test_equality_constraints_hold_as_in_mujoco(name):
    three = solid("<freejoint/><site name='s3' pos='0.2 0 0'/>", name="three", pos="0 0 0.1", off=False)
    more = f"<equality>{EQUALITIES[name]}</equality>"
    text = mjcf(ARM + three, more)
    ours, theirs = positions_after(text, 0.3)
    np.testing.assert_allclose(ours, theirs, atol=3e-3 if "joint" in name else 1e-3)


@pytest.mark.parametrize("name", ["connect", "weld", "weld of a point", "connect of sites"])
def test_switchable_constraints_are_released_and_closed_as_in_mujoco(name):
    three = solid("<freejoint/><site name='s3' pos='0.2 0 0'/>", name="three", pos="0 0 0.1", off=False)
    constraint = EQUALITIES[name].replace(" ", " name='e' ", 1)
    text = mjcf(ARM + three, f"<equality>{constraint}</equality>")
    builder, report = load_mjcf(text, switchable=["e"])
    sim = gpusim.Simulation(builder.finalize(), backend="native", config=gpusim.SolverConfig(dt=1e-3))
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = 1e-4
    data = mujoco.MjData(model)
    assert report.exact and sim.read("joint.e.attached").tolist() == [1.0]
    for closed in (1, 0):
        sim.write("joint.e.attached", float(closed))
        data.eq_active[0] = closed
        sim.step(100)
        mujoco.mj_step(model, data, 1000)
    np.testing.assert_allclose(sim.read("body.three.position")[0], data.body("three").xpos, atol=2e-3)


def test_tendon_equality_couples_lengths():
    more = (
        "<tendon><fixed name='t'><joint joint='a' coef='1'/><joint joint='b' coef='1'/></fixed></tendon>"
        f"<equality><tendon tendon1='t' polycoef='0.2 0 0 0 0' {STIFF}/></equality>"
    )
    builder, report = load_mjcf(mjcf(ARM, more))
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.assemble()
    sim.step(100)
    assert report.exact
    total = sum(float(sim.read(f"joint.{j}.position")[0]) for j in "ab")
    assert total == pytest.approx(0.2, abs=1e-6)


LEADERS = {
    "joint": "<fixed name='t'><joint joint='a' coef='-0.7'/></fixed>",
    "sites": "<spatial name='t'><site site='sa'/><site site='sw'/></spatial>",
}


@pytest.mark.parametrize("leader", LEADERS)
def test_a_tendon_follows_a_polynomial_of_another_as_in_mujoco(leader):
    fixed = "<site name='sw' pos='0.3 0.4 1.2'/>"
    follower = "<fixed name='s'><joint joint='b' coef='1.5'/><joint joint='a' coef='0.2'/></fixed>"
    equality = f"<tendon tendon1='s' tendon2='t' polycoef='0 1 5 -8 6' {STIFF}/>"
    more = f"<tendon>{follower}{LEADERS[leader]}</tendon><equality>{equality}</equality>"
    text = mjcf(fixed + ARM, more)
    builder, report = load_mjcf(text)
    assert report.exact and any(builder.couplings[0].curve)
    ours, theirs = positions_after(text, 0.4)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    linear = positions_after(text.replace("5 -8 6", "0 0 0"), 0.4)[1]
    assert np.abs(theirs - linear).max() > 0.01


@pytest.mark.parametrize("softness", ["solref='0.01 1'", "solimp='0.8 0.9 0.01'"])
def test_softness_of_a_constraint_is_reported(softness):
    more = "<equality><joint joint1='b' joint2='a' {}/></equality>"
    what = "custom solref or solimp"
    assert what in facts(load_mjcf(mjcf(ARM, more.format(softness)))[1], "contact")
    assert what not in facts(load_mjcf(mjcf(ARM, more.format("")))[1], "contact")


def test_followers_get_no_holding_servo():
    equality = "<equality><joint joint1='b' joint2='a' polycoef='0.1 -2 0 0 0'/></equality>"
    builder, report = load_mjcf(mjcf(ARM, equality))
    assert report.joints["b"].mimic == Mimic("a", -2.0, 0.1)
    servos = add_holding_servos(builder, report)
    assert "a" in servos and "b" not in servos


def test_weld_to_a_mocap_body_pulls_softly_and_holds_a_load():
    """A load m g deflects MuJoCo's weld by g (1 - d)/(d^2 k)."""
    bodies = "<body name='target' mocap='true' pos='0 0 1'/>" + solid("<freejoint/>", pos="0 0 1.2", off=False)
    text = mjcf(bodies, "<equality><weld body1='target' body2='body' relpose='0 0 0 1 0 0 0'/></equality>")
    builder, report = load_mjcf(text)
    assert report.exact
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    sim.step(3000)
    assert bool(np.all(sim.health()))
    d, k = 0.95, 1 / (0.95 * 0.02) ** 2
    sag = 1.0 - float(sim.read("body.body.position")[0][2])
    assert sag == pytest.approx(9.81 * (1 - d) / (d**2 * k), rel=1e-3)


def test_inactive_and_polynomial_constraints_are_reported():
    more = (
        "<equality><weld name='w' body1='one' active='false'/>"
        "<connect name='c' body1='one' anchor='0 0 0' active='false'/>"
        "<tendon name='p' tendon1='s' tendon2='t' polycoef='0 1 2 0 0'/></equality>"
        "<tendon><fixed name='s'><joint joint='a' coef='1'/></fixed>"
        "<fixed name='t'><joint joint='a' coef='0.5'/><joint joint='b' coef='1'/></fixed></tendon>"
    )
    builder, report = load_mjcf(mjcf(ARM, more))
    assert "equality 'w': a weld that is not active; an open latch" in facts(report, "info")
    assert "equality 'c': a connect that is not active; an open latch" in facts(report, "info")
    latches = {j.label: j.params.get("rotation", True) for j in builder.joints if j.kind == "latch"}
    assert latches == {"w": True, "c": False}
    with pytest.raises(UnknownNameError, match=naming("constraint 'v' w")):
        load_mjcf(mjcf(ARM, more), switchable=["v"])
    assert "equality 'p': a polynomial of a tendon with several parts" in facts(report, "motion")
    assert len(builder.couplings) == 1


@pytest.mark.parametrize("active", ["true", "false"])
@pytest.mark.parametrize("ends", ["body1='target'", "body1='target' body2='other'", "body1='one' body2='tip'"])
def test_constraints_of_parts_that_cannot_move_are_left_out(ends, active):
    still = "<body name='target' mocap='true'/><body name='other' mocap='true'/>"
    arm = ARM.replace("<site name='sa'", "<body name='tip'/><site name='sa'")
    builder, report = load_mjcf(mjcf(arm + still, f"<equality><weld name='e' {ends} active='{active}'/></equality>"))
    assert builder.finalize() and report.exact
    assert "equality 'e': it connects parts that cannot move relative to each other" in facts(report, "info")


ACTUATORS = {
    "motor with gear": "<motor name='u' joint='a' gear='3' ctrlrange='-1 1'/>",
    "position": "<position name='u' joint='a' kp='20' kv='1'/>",
    "position with gear": "<position name='u' joint='a' kp='20' gear='2'/>",
    "velocity": "<velocity name='u' joint='a' kv='3'/>",
    "velocity with an uneven force range": "<velocity name='u' joint='a' kv='3' forcerange='-0.3 2'/>",
    "limited position": "<position name='u' joint='a' kp='200' kv='5' forcerange='-0.5 1'/>",
    "general affine": "<general name='u' joint='a' biastype='affine' gainprm='4' biasprm='0.5 -8 -0.3'/>",
    "constant bias": "<general name='u' joint='a' biastype='affine' gainprm='2' biasprm='0.4 0 0'/>",
    "filtered motor": "<general name='u' joint='a' dyntype='filterexact' dynprm='0.1' gainprm='2'/>",
    "filter with a range": "<general name='u' joint='a' dyntype='filter' dynprm='0.1' actrange='-0.5 0.5'/>",
    "integrated velocity": "<intvelocity name='u' joint='a' kp='30' kv='2' actrange='-0.3 0.2'/>",
    "integrated motor": "<general name='u' joint='a' dyntype='integrator' gainprm='3' ctrlrange='-1 0.8'/>",
    "fixed tendon": "<motor name='u' tendon='f' gear='0.7'/>",
    "spatial tendon": "<motor name='u' tendon='t' gear='-2'/>",
    "position of a tendon with a part on one body": "<position name='u' tendon='c' kp='20' kv='1' gear='2'/>",
    "tendon with a range, which limits the force before the gear": "<motor name='u' tendon='r' gear='-2'/>",
    "site": "<motor name='u' site='sa' gear='1 0.3 0 0 0 0'/>",
}
TENDONS = (
    "<tendon><fixed name='f'><joint joint='a' coef='1'/><joint joint='b' coef='-1'/></fixed>"
    f"<spatial name='t'>{sites('g', 'sa')}</spatial><spatial name='c'>{sites('g', 'h', 'sa')}</spatial>"
    "<fixed name='r' actuatorfrcrange='-0.2 0.3'><joint joint='a' coef='2'/></fixed></tendon>"
)


@pytest.mark.parametrize("name", ACTUATORS)
@pytest.mark.parametrize("ctrl", [0.0, 1.6])
def test_actuators_act_as_in_mujoco(name, ctrl):
    text = mjcf(ARM + GROUND + ASIDE, f"{TENDONS}<actuator>{ACTUATORS[name]}</actuator>")
    assert load_mjcf(text)[1].exact
    ours, theirs = positions_after(text, 0.4, ctrl=[ctrl])
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_commands_start_as_the_keyframe_says():
    more = (
        "<actuator><motor name='m' joint='a'/><position name='p' joint='b' kp='5' ctrlrange='-1 0.4'/></actuator>"
        "<keyframe><key name='k' ctrl='0.7 0.9'/></keyframe>"
    )
    text = mjcf(ARM, more)
    builder, report = load_mjcf(text, pose="k")
    assert (report.commands["p"].lower, report.commands["p"].upper) == (-1.0, 0.4)
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    assert float(np.ravel(sim.control["m"])[0]) == 0.7
    assert float(np.ravel(sim.control["p"])[0]) == 0.4
    ours, theirs = positions_after(text, 0.3, pose="k")
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_actuators_without_names_do_not_take_the_names_of_others():
    _, report = load_mjcf(mjcf(ARM, "<actuator><motor name='actuator1' joint='a'/><motor joint='b'/></actuator>"))
    assert [info.command for info in report.commands.values()] == ["actuator1", "actuator1_"]


def test_a_force_and_a_torque_of_one_actuator_have_one_command():
    builder, report = load_mjcf(mjcf(ARM, "<actuator><motor name='u' site='sa' gear='0 0 9 0 2 0'/></actuator>"))
    assert report.exact and list(report.commands) == ["u"] and len(builder.actuators) == 1
    sim = gpusim.Simulation(builder.finalize(), backend="native")
    assert float(np.ravel(sim.control["u"])[0]) == 0.0
    free = solid("<freejoint name='f'/>")
    report = load_mjcf(mjcf(free, "<actuator><motor name='u' joint='f' gear='0 0 9 0 2 0'/></actuator>"))[1]
    assert "actuator 'u': a force and a torque in different axes" in facts(report, "motion")
    assert list(report.commands) == ["u", "u_torque"]


WRENCHES = {
    "force on a free joint": ("<freejoint name='f'/>", "joint='f' gear='3 1 4 0 0 0'"),
    "torque on a free joint": ("<freejoint name='f'/>", "joint='f' gear='0 0 0 0.3 0.1 0.2'"),
    "torque on a free joint in the world": ("<freejoint name='f'/>", "jointinparent='f' gear='0 0 0 0.3 0.1 0.2'"),
    "torque on a ball joint": ("<joint type='ball' name='f' pos='0.1 1 0'/>", "joint='f' gear='0.3 0.1 0.2'"),
    "torque in the parent": ("<joint type='ball' name='f' pos='0.1 1 0'/>", "jointinparent='f' gear='0.3 0.1 0.2'"),
    "force on a site with a range": ("<freejoint/>", "site='s' gear='3 1 4 0 0 0' forcerange='-0.5 0.7'"),
    "force and torque on a site": ("<freejoint/>", "site='s' gear='2 1 3 0.03 0.05 -0.04'"),
    "site with a reference site": ("<freejoint/>", "site='s' refsite='ground' gear='1 0.5 1.5 0.03 0.05 -0.04'"),
    "bias and a range": (
        "<freejoint/>",
        "site='s' gear='1 0 2 0 0 0.02' gainprm='0.5' biastype='affine' biasprm='0.4' forcerange='0 1'",
    ),
    "only a bias": ("<freejoint/>", "site='s' gear='1 0 2 0 0 0.02' gainprm='0' biastype='affine' biasprm='0.7'"),
    "range above zero": ("<freejoint/>", "site='s' gear='0 0 4 0 0 0' forcerange='0.5 0.7' ctrlrange='0 0.1'"),
}


@pytest.mark.parametrize("name", WRENCHES)
def test_wrenches_act_as_in_mujoco(name):
    joint, motor = WRENCHES[name]
    tag = "general" if "bias" in motor else "motor"
    body = solid(f"{joint}<site name='s' pos='0.1 0.2 0' euler='10 50 0'/>")
    turned = body.replace("<body", "<body euler='20 30 40'")
    ground = "<site name='ground' pos='1 2 3' euler='40 10 -30'/>"
    text = mjcf(turned + ground, f"<actuator><{tag} name='u' {motor}/></actuator>")
    report = load_mjcf(text)[1]
    assert report.exact
    ctrl = [1.6] if report.commands else None
    ours, theirs = positions_after(text, 0.3, ctrl=ctrl, step=5e-5)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("name", ["site with a reference site", "torque in the parent"])
def test_wrenches_along_axes_of_the_world_turn_with_xform(name):
    joint, motor = WRENCHES[name]
    site = "<site name='ground' euler='40 10 -30'/>"
    body = solid(f"{joint}<site name='s' pos='0.1 0.2 0'/>")
    text = mjcf(body + site, f"<actuator><motor name='u' {motor}/></actuator>", "gravity='0 0 0'")
    turn, ends = gpusim.Transform.from_axis_angle((1, 2, 3), (1, 2, -1), 0.8), []
    for xform in (turn, None):
        sim = gpusim.Simulation(load_mjcf(text, xform=xform)[0].finalize(), backend="native")
        sim.control["u"] = 1.0
        sim.step(200)
        ends.append(np.ravel(sim.read("body.body.position")))
    np.testing.assert_allclose(ends[0], turn.apply(ends[1]), atol=1e-9)


@pytest.mark.parametrize("bias", ["0 -20 -1", "2 0 0", "0 0 -1"])
def test_commands_without_gain_have_no_effect(bias):
    actuator = f"<general name='u' joint='a' gainprm='0' biastype='affine' biasprm='{bias}'/>"
    builder, report = load_mjcf(mjcf(ARM, f"<actuator>{actuator}</actuator>"))
    assert report.exact and not report.commands
    ends = []
    for command in (None, 0.5):
        sim = gpusim.Simulation(builder.finalize(), backend="numpy")
        if command is not None:
            sim.control["u"] = command
        sim.step(20)
        ends.append(sim.read("joint.a.position")[0])
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


@pytest.mark.parametrize(
    ("actuator", "what"),
    [
        ("<damper name='u' joint='a' kv='3' ctrlrange='0 1'/>", "a gain that depends on the velocity"),
        ("<general name='u' joint='a' gaintype='affine' gainprm='1 2 0'/>", "a gain that depends on the length"),
        ("<general name='u' joint='a' dyntype='muscle' dynprm='1 1'/>", "activation dynamics 'muscle'"),
        ("<motor name='u' site='sa' refsite='sb'/>", "a reference site on a body that moves"),
        ("<adhesion name='u' body='one' ctrlrange='0 1'/>", "adhesion"),
        ("<general name='u' joint='a' biastype='affine' biasprm='0 3 0'/>", "a negative stiffness"),
    ],
)
def test_actuators_that_the_builder_lacks_are_reported(actuator, what):
    _, report = load_mjcf(mjcf(ARM, f"<actuator>{actuator}</actuator>"))
    assert not report.exact
    assert f"actuator 'u': {what}" in facts(report, "motion")


RANGED = "actuatorfrcrange='-1 1'"
SHARED = "actuatorfrcrange with several actuators"
TWICE = "<motor joint='a'/><motor joint='a'/>"
SUMS = {
    "two on a joint": (RANGED, TWICE, f"joint 'a': {SHARED}"),
    "one on the joint and one on a site of the arm": (
        RANGED,
        "<motor joint='a'/><motor site='end' gear='0 0 1 0 0 0'/>",
        f"joint 'a': {SHARED}",
    ),
    "one on a site": (
        RANGED,
        "<motor site='end' gear='0 0 1 0 0 0'/>",
        "joint 'a': actuatorfrcrange with an actuator on",
    ),
    "one on a fixed tendon": (RANGED, "<motor tendon='sum'/>", "joint 'a': actuatorfrcrange with an actuator on"),
    "one on a spatial tendon": (RANGED, "<motor tendon='rope'/>", "joint 'a': actuatorfrcrange with an actuator on"),
    "two on a tendon": ("", "<motor tendon='short'/><motor tendon='short'/>", f"tendon 'short': {SHARED}"),
    "gravity compensation": (
        f"{RANGED} actuatorgravcomp='true'",
        "<motor joint='a'/>",
        "joint 'a': actuatorfrcrange with actuatorgravcomp",
    ),
    "gravity compensation without actuators": (
        "actuatorgravcomp='true'",
        "",
        "joint 'a': actuatorgravcomp, but no actuator acts",
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_ranges_of_sums_of_actuator_forces_are_reported(name):
    joint, actuators, what = SUMS[name]
    arm = solid(f"<joint name='a' {joint}/><site name='end' pos='1 0 0'/>").replace(" name='body'", " gravcomp='1'")
    bodies = arm + "<site name='base' pos='0 0 2'/>" + solid("<joint name='other'/>", name="two", pos="0 3 0")
    tendons = (
        "<fixed name='sum'><joint joint='a' coef='1'/></fixed>"
        "<fixed name='short' actuatorfrcrange='-1 1'><joint joint='other' coef='1'/></fixed>"
        "<spatial name='rope'><site site='base'/><site site='end'/></spatial>"
    )
    text = mjcf(bodies, f"<tendon>{tendons}</tendon><actuator>{actuators}</actuator>")
    found = facts(load_mjcf(text)[1], "motion")
    assert what in found
    assert found.count("actuatorfrcrange") <= 1
    only_other = text.replace(actuators, "<motor joint='other'/>") if actuators else text.replace(joint, "")
    if "gravcomp='true'" not in joint or not actuators:
        assert load_mjcf(only_other)[1].exact


def test_disabled_parts_are_left_out():
    option = "><flag actuation='disable' limit='disable' gravity='disable'/></option><option"
    more = "<actuator><motor name='u' joint='a'/></actuator>"
    builder, _ = load_mjcf(mjcf(ARM.replace("<joint name='a'", "<joint name='a' range='-10 10'"), more, option))
    assert not builder.actuators
    assert not np.any(builder.gravity)
    assert np.isinf(builder.joints[0].params["limit_upper"]).all()
