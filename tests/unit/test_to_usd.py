from __future__ import annotations

import math
import re

import numpy as np
import pytest

import gpusim
from gpusim import Material, ModelBuilder, ModelError, Transform
from gpusim.exporters import to_usd
from gpusim.importers import load_usd
from gpusim.joints.ball import cone_of
from gpusim.scene import load_scene
from tests.backends import FASTEST
from tests.unit.test_to_mjcf import BACK, KINDS, SHAPES, TURN, X, Y, Z, about, link
from tests.unit.test_usd_shapes import colliding

pytest.importorskip("pxr")


def again(builder, **options):
    text, report = to_usd(builder)
    read, read_report = load_usd(text, merge_fixed=False, **options)
    return read, report, read_report


def positions(builder):
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    moving = [joint.label for joint in builder.joints if joint.label != "middle" or joint.kind != "fixed"]
    return {label: np.ravel(sim.read(f"joint.{label}.position")) for label in moving}


def compare(builder, read):
    found = {spec.label: spec for spec in read.bodies}
    for spec in builder.finalize().bodies:
        other = found[spec.label]
        assert other.mass == pytest.approx(spec.mass, rel=2e-7)
        assert np.allclose(other.com, spec.com, atol=1e-6)
        assert np.allclose(other.inertia, spec.inertia, atol=1e-6 * np.abs(spec.inertia).max())
        assert np.allclose(other.xform.position, spec.xform.position, atol=2e-7)
        assert np.allclose(other.xform.matrix(), spec.xform.matrix(), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_joint_comes_back_with_its_coordinates(kind):
    b = ModelBuilder()
    first = link(b, -1, "revolute", axis=(0, 1, 0), moved=about(Y, 0.2), limit_lower=-1.0, label="base")
    middle = link(b, first, kind, **KINDS[kind], label="middle")
    link(b, middle, "prismatic", axis=(1, 0, 0), moved=about(X, 0.0), limit_lower=-3.0, limit_upper=2.0, label="last")
    read, report, read_report = again(b)
    assert report.exact and read_report.exact
    compare(b, read)
    ours, theirs = positions(b), positions(read)
    if kind == "ball":
        theirs["middle"] *= np.sign(theirs["middle"] @ ours["middle"])
    for label, q in ours.items():
        assert np.allclose(q, theirs[label], atol=1e-6)
    joints = {joint.label: joint for joint in read.joints}
    assert joints["base"].params["limit_lower"][0] == pytest.approx(-1.0, abs=1e-7)
    assert math.isinf(joints["base"].params["limit_upper"][0])
    assert (joints["last"].params["limit_lower"][0], joints["last"].params["limit_upper"][0]) == pytest.approx((-3, 2))
    for name in ("damping", "armature"):
        given = KINDS[kind].get(name)
        if given:
            assert joints["middle"].params[name][0] == pytest.approx(given)


def test_three_hinges_keep_their_order_signs_limits_and_actuators():
    b = ModelBuilder()
    axes, lower, upper = ((1, 0, 0), (0, 0, 1), (0, 1, 0)), (-0.4, -1.0, -1.92), (0.1, 0.6, 0.35)  # left-handed
    turn = about(X, -0.2) * about(Z, 0.3) * about(Y, -0.8)
    link(b, -1, "d6", angular_axes=axes, moved=turn, limit_lower=lower, limit_upper=upper, label="hip")
    for axis in range(3):
        b.add_servo(0, stiffness=9.0, target=0.1 * axis - 0.5, axis=axis, label=f"{'xzy'[axis]}_drive")
    read, report, read_report = again(b)
    hip = read.joints[0].params
    assert np.allclose(positions(read)["hip"], (-0.2, 0.3, -0.8), atol=1e-6)
    assert np.allclose([hip["limit_lower"], hip["limit_upper"]], [lower, upper], atol=1e-6)
    assert [a.label for a in read.actuators] == ["x_drive", "z_drive", "y_drive"]
    assert [a.params["first_target"] for a in read.actuators] == pytest.approx([-0.5, -0.4, -0.3])
    assert any("coordinate 2 is -rotZ" in warning for warning in report.warnings)
    infos = list(read_report.joints.values())
    assert list(read_report.joints) == ["hip:rotX", "hip:rotY", "hip:rotZ"] and [i.axis for i in infos] == [0, 1, 2]
    assert np.allclose(
        [(i.lower, i.upper, i.initial_position) for i in infos],
        np.transpose((lower, upper, (-0.2, 0.3, -0.8))),
        atol=1e-6,
    )


def test_a_loop_keeps_its_closing_joint_and_ropes_their_lengths():
    read, report, _ = again(load_scene("four_bar").builder)
    assert report.exact and len(read.joints) == len(load_scene("four_bar").builder.joints)
    b = ModelBuilder()
    ball = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0, 0, -0.4)))
    b.add_joint_distance(-1, ball, min_distance=0.3, max_distance=0.5, label="rope")
    rope = again(b)[0].joints[0]
    assert (rope.params["limit_lower"][0], rope.params["limit_upper"][0]) == pytest.approx((0.3, 0.5))


def test_a_cone_limit_comes_back_about_its_axis():
    b = ModelBuilder()
    bob = b.add_body(1.0, (0.1, 0.1, 0.1), xform=TURN, label="bob")
    b.add_joint_ball(-1, bob, at=(0, 0.1, 0), cone_limit=0.7, cone_axis=(0.6, 0, 0.8), label="pin")
    read, report, read_report = again(b)
    assert report.exact and read_report.exact
    compare(b, read)
    pins = [next(j for j in model.joints if j.label == "pin") for model in (b, read)]
    assert np.allclose(cone_of(pins[1])[0], 0.7, atol=1e-6)
    for frame in ("parent_xform", "child_xform"):
        axes = [getattr(pin, frame).rotate(cone_of(pin)[1]) for pin in pins]
        assert np.allclose(axes[0], axes[1], atol=1e-6)


@pytest.mark.parametrize(("axis", "exact"), [((0, 0, 1), True), ((0.6, 0, 0.8), False)])
def test_friction_of_a_cone_limited_joint_acts_about_the_axes_of_the_cone(axis, exact):
    b = ModelBuilder()
    bob = b.add_body(1.0, (0.1, 0.1, 0.1), label="bob")
    b.add_joint_ball(-1, bob, cone_limit=0.7, cone_axis=axis, friction=0.1, label="pin")
    assert to_usd(b)[1].exact == exact


def test_a_closed_latch_of_a_point_is_a_spherical_joint():
    b = gpusim.ModelBuilder()
    rod = b.add_body(1.0, (0.1, 0.1, 0.1), label="rod")
    b.add_latch(-1, rod, attached=True, rotation=False, label="grip")
    read, *_ = again(b)
    assert [joint.kind for joint in read.joints] == ["ball"]


def test_a_closed_latch_comes_back_with_its_limits():
    b = ModelBuilder()
    for name, attached in (("shut", True), ("open", False)):
        rod = b.add_body(1.0, (0.1, 0.1, 0.1), xform=TURN, label=name)
        b.add_latch(-1, rod, at=TURN, attached=attached, break_force=20.0, label=f"{name}_latch")
    read, report, read_report = again(b)
    assert [f.what for f in report.findings if f.severity == "motion"] == ["an open latch"] and read_report.exact
    assert [joint.label for joint in read.joints] == ["shut_latch"]
    assert read.joints[0].kind == "latch" and read.joints[0].params["break_force"] == pytest.approx(20.0)
    assert math.isinf(read.joints[0].params["break_torque"])


def arm(count=4):
    b = ModelBuilder()
    parent = -1
    for k in range(count):
        body = b.add_body(1.0, (0.05, 0.06, 0.07), xform=Transform((0.3 * k, 0, 0)), label=f"link{k}")
        b.add_joint_revolute(parent, body, at=(0.3 * k, 0, 0), axis=(0, 1, 0), label=f"joint{k}")
        parent = body
    return b


def test_drives_followers_and_springs_come_back():
    b = arm(6)
    b.add_servo(0, stiffness=40.0, damping=2.0, effort_limit=5.0, target=0.4, label="position")
    b.add_tracking_servo(1, 30.0, 1.0, target=-0.3, label="tracking")
    b.add_servo(2, "velocity", damping=3.0, target=1.0, label="velocity")
    b.add_joint_force(3, 2.0, label="push")
    b.add_torsion_spring(4, 5.0, 0.2, 0.5, label="spring")
    b.add_mimic(5, 4, multiplier=-2.0, offset=0.3)
    read, report, _ = again(b)
    assert report.exact
    springs = [a for a in read.actuators if "rest_length" in a.params]
    servos = {a.params["joint"]: a.params for a in read.actuators if "rest_length" not in a.params}
    assert [servos[k]["stiffness"] for k in range(4)] == pytest.approx([40, 30, 0, 0])
    assert [servos[k]["damping"] for k in range(4)] == pytest.approx([2, 1, 3, 0])
    assert [servos[k]["upper"] for k in range(4)] == pytest.approx([5, math.inf, math.inf, 2])
    assert [servos[k]["first_target"] for k in range(2)] == pytest.approx([0.4, -0.3])
    assert servos[2]["first_velocity"] == pytest.approx(1.0)
    assert (springs[0].params["stiffness"], springs[0].params["rest_length"]) == pytest.approx((5.0, 0.5))
    assert read.joints[4].params["damping"][0] == pytest.approx(0.2)
    factors = {joint: factor for joint, _, factor in read.couplings[0].terms}
    assert factors[4] / factors[5] == pytest.approx(2.0)
    assert read.couplings[0].offset / factors[5] == pytest.approx(0.3)


def test_a_follower_with_a_curve_comes_back():
    b = arm(3)
    b.add_mimic(2, 0, multiplier=-2.0, offset=0.3, curve=(0.5, -0.7, 0.2))
    read, report, _ = again(b)
    assert report.exact
    for given, found in zip(b.couplings, read.couplings, strict=True):
        assert found.terms == given.terms
        assert (found.offset, *found.curve) == pytest.approx((given.offset, *given.curve))


def test_maps_of_commands_keep_their_drives_and_are_reported():
    b = arm(4)
    b.add_joint_force(0, label="plain")
    b.set_command_map("plain", initial=0.0)
    b.add_joint_force(1, 50.0, label="push")
    b.set_command_map("push", factor=-10.0, lower=-1.0, upper=1.0)
    b.add_servo(2, stiffness=40.0, damping=2.0, label="servo")
    b.set_command_map("servo", factor=0.5, offset=0.1, lower=-1.0, upper=1.0, initial=0.6)
    b.add_tracking_servo(3, 30.0, 1.0, label="slow")
    b.set_command_map("slow", time_constant=0.2)
    read, report, _ = again(b)
    servos = {a.params["joint"]: a.params for a in read.actuators}
    assert sorted(servos) == [0, 1, 2, 3]
    assert servos[1]["upper"] == pytest.approx(10.0)
    assert servos[2]["first_target"] == pytest.approx(0.5 * 0.6 + 0.1)
    said = {f.element: f for f in report.findings if "command '" in f.what}
    assert {element: f.severity for element, f in said.items()} == {
        "joint_force 'push'": "info",
        "servo 'servo'": "motion",
        "tracking_servo 'slow'": "motion",
    }
    assert "has factor 0.5 and offset 0.1 and is clipped to -1 to 1" in said["servo 'servo'"].what


def test_the_model_that_comes_back_moves_alike():
    b = arm(3)
    b.add_servo(1, stiffness=4.0, damping=0.5, target=0.4, label="elbow")
    config = gpusim.SolverConfig(dt=1e-3)
    ends = []
    for builder in (b, again(b)[0]):
        sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, dtype="float64", config=config)
        sim.step(100)
        ends.append([float(sim.read(f"joint.joint{k}.position")[0]) for k in range(3)])
    assert np.allclose(ends[0], ends[1], atol=1e-6) and abs(ends[0][0]) > 0.01


@pytest.mark.parametrize("kind", SHAPES)
def test_colliders_come_back_where_they_lay(kind):
    b = ModelBuilder()
    body = b.add_body(xform=TURN)
    getattr(b, f"add_shape_{kind}")(body, *SHAPES[kind], BACK, material=Material(friction=0.7, combine="min"))
    read, _, _ = again(b)
    shape = read.shapes[0]
    same = kind not in ("barrel", "ellipsoid")
    assert shape.kind == (kind if same else "hull")
    assert np.allclose(shape.xform.position, BACK.position, atol=1e-7)
    assert shape.material.friction == pytest.approx(0.7) and shape.material.combine == "min"
    if same and kind != "hull":
        for name, value in b.shapes[0].params.items():
            assert np.allclose(shape.params[name], value, rtol=1e-6)


def test_static_shapes_planes_and_terrain():
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), xform=Transform((0, 0, 9)))
    b.add_shape_plane(xform=TURN)
    b.add_shape_box(-1, (1, 2, 3), xform=BACK)
    b.add_shape_height_field(-1, np.array([[0.0, 0.1], [0.2, 0.9]]), (1.0, 1.0))
    read, _, read_report = again(b)
    plane, box, terrain = read.shapes
    assert plane.body == box.body == terrain.body == -1
    assert np.allclose(plane.xform.rotate((0, 0, 1)), TURN.rotate((0, 0, 1)), atol=1e-12)
    assert np.allclose(box.params["half_extents"], (1, 2, 3))


def test_shapes_share_materials_with_numbered_names():
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    for friction in (0.1, 0.2, 0.1):
        b.add_shape_box(body, (1, 1, 1), material=Material(friction=friction))
    text, _ = to_usd(b)
    assert re.findall(r'def Material "(\w+)"', text) == ["material_0", "material_1"]


def test_groups_and_excluded_pairs_come_back():
    b = ModelBuilder()
    for k, name in enumerate("abcd"):
        body = b.add_body(1.0, (1, 1, 1), xform=Transform((k, 0, 0)), label=name)
        b.add_shape_sphere(
            body,
            0.2,
            label=f"{name}_ball",
            group=("red", "blue", 1, 4)[k],
            mask=(2**32 - 1, 2**32 - 1, 2**32 - 1, 1)[k],
        )
    b.set_group_collision("red", "blue", False)
    b.exclude_collision_pair(0, 2)
    assert colliding(again(b)[0]) == {"bc", "cd"}


def test_visuals_velocities_sites_and_kinematic_bodies():
    b = ModelBuilder(gravity=(0, 0, -1.62))
    ball = b.add_body(
        1.0, (1, 1, 1), linear_velocity=(1, 2, 3), angular_velocity=(0.1, 0.2, 0.3), gravity_scale=0.0, label="ball"
    )
    b.add_shape_sphere(ball, 0.1, color="#00ff00", label="s")
    b.add_body(1.0, (1, 1, 1), kinematic=True, linear_velocity=(0, 0, 2), label="lift")
    boxed = b.add_body(1.0, (1, 1, 1), xform=Transform((0, 0, 4)), label="boxed")
    b.add_shape_sphere(boxed, 0.1, label="hidden")
    b.add_visual(boxed, "box", (0.1, 0.2, 0.3), xform=TURN, color="#804020", alpha=0.25, label="look")
    b.add_site(ball, TURN, label="tip")
    read, report, read_report = again(b)
    found = {spec.label: spec for spec in read.bodies}
    assert np.allclose(read.gravity, b.gravity, atol=1e-7) and report.exact and read_report.exact
    assert np.allclose(found["ball"].linear_velocity, (1, 2, 3)) and found["ball"].gravity_scale == 0.0
    assert np.allclose(found["ball"].angular_velocity, (0.1, 0.2, 0.3), atol=1e-7)
    assert found["lift"].kinematic and np.allclose(found["lift"].linear_velocity, (0, 0, 2))
    assert np.allclose(read.shapes[0].color, (0, 1, 0)) and len(read.visuals) == 1
    assert np.allclose(read.visuals[0].color, np.array([0x80, 0x40, 0x20]) / 255, atol=1e-3)
    assert read.visuals[0].look.alpha == 0.25
    assert np.allclose(read.sites[0].xform.position, TURN.position) and read.sites[0].label == "tip"


def test_the_name_of_the_model_comes_back():
    text, _ = to_usd(arm(1), name="Unitree Go2")
    assert load_usd(text)[1].robot_name == "Unitree Go2"


def test_what_usd_cannot_say_is_in_the_report():
    _, report = to_usd(load_scene("hydraulic_lift").builder)
    assert not report.exact and "USD has no cylinder" in report.summary()
    with pytest.raises(ModelError, match="USD has no cylinder"):
        report.raise_if_not_exact()


@pytest.mark.parametrize("suffix", [".usda", ".usd", ".usdc"])
def test_files_are_written_whole(tmp_path, suffix):
    path = tmp_path / f"arm{suffix}"
    text, report = to_usd(arm().finalize(), path)
    assert list(tmp_path.iterdir()) == [path] and report.file == str(path)
    assert path.read_bytes().startswith(b"#usda" if suffix == ".usda" else b"PXR-USDC")
    assert [spec.label for spec in load_usd(path)[0].bodies] == [f"link{k}" for k in range(4)]


def test_bad_arguments_are_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match="to_usd: str"):
        to_usd("robot.urdf")
    with pytest.raises(ModelError, match="must end in .usda"):
        to_usd(arm(), tmp_path / "a.xml")
    with pytest.raises(ModelError, match="name = ''"):
        to_usd(arm(), name="")
    monkeypatch.setitem(__import__("sys").modules, "pxr", None)
    with pytest.raises(ModelError, match=r"gpusim\[usd\]"):
        to_usd(arm())


SCENES = """boom_crane bricard card_house chain double_pendulum flyball four_bar quarter_car rattleback slope
    spinning_top""".split()


@pytest.mark.parametrize(
    "name", [*SCENES, *(pytest.param(n, marks=pytest.mark.nightly) for n in ("excavator", "rtk_m", "krt100m"))]
)
def test_scenes_come_back(name):
    builder = load_scene(name).builder
    compare(builder, again(builder)[0])
