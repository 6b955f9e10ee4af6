from __future__ import annotations

import io

import numpy as np
import pytest

import gpusim
from gpusim.importers import CommandInfo, add_holding_servos, load_urdf
from tests.backends import FASTEST
from tests.unit.urdf_text import LIMIT, SOLID, inertial, joint, link, robot

pytest.importorskip("yourdfpy")
trimesh = pytest.importorskip("trimesh")

BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
LOOK = '<visual><geometry><box size="1 1 1"/></geometry><material name=""><color rgba="1 1 1 1"/></material></visual>'
TURN = '<axis xyz="0 0 1"/>' + LIMIT


def arm(*more: str, tip: str = SOLID + BOX, content: str = TURN, kind: str = "revolute") -> str:
    away = '<origin xyz="3 0 0"/>'
    return robot(
        link("base", SOLID + BOX), link("tip", tip), joint("elbow", "base", "tip", kind, away + content), *more
    )


def findings(report, severity):
    return [f.sentence for f in report.findings if f.severity == severity]


def material_of(builder, label):
    return next(shape.material for shape in builder.shapes if shape.label == label)


def test_quaternions_of_origins():
    turned, plain = (
        '<origin xyz="0 0 1" quat_xyzw="0 0.6 0 0.8"/>',
        f'<origin xyz="0 0 1" rpy="0 {2 * np.arcsin(0.6)} 0"/>',
    )
    box = BOX.replace("<collision>", "<collision>{}")
    found = [
        load_urdf(robot(link("base", SOLID + box.format(o)), link("tip", SOLID), joint("j", "base", "tip", "fixed", o)))
        for o in (turned, plain)
    ]
    (a, _), (b, _) = found
    np.testing.assert_allclose(a.bodies[0].com, b.bodies[0].com, atol=1e-14)
    np.testing.assert_allclose(a.bodies[0].inertia, b.bodies[0].inertia, atol=1e-14)
    np.testing.assert_allclose(a.shapes[0].xform.matrix(), b.shapes[0].xform.matrix(), atol=1e-14)


def test_friction_of_gazebo_and_of_pybullet():
    gazebo = '<gazebo reference="tip"><mu1>0.3</mu1><mu2>0.3</mu2></gazebo>'
    builder, report = load_urdf(arm(gazebo))
    assert material_of(builder, "tip") == gpusim.Material(friction=0.3, combine="min")
    assert material_of(builder, "base") == gpusim.Material()
    assert not report.findings
    builder, report = load_urdf(arm('<gazebo reference="tip"><mu1 value="1e9"/><mu2>0.3</mu2></gazebo>'))
    assert material_of(builder, "tip").friction == 100.0
    assert "along and 0.3 across" in findings(report, "contact")[0]
    contact = (
        '<contact><lateral_friction value="0.9"/><rolling_friction value="0.01"/><spinning_friction value="0.02"/>'
        '<restitution value="0.4"/><stiffness value="30000"/><damping value="10"/><inertia_scaling value="3"/>'
        "</contact>"
    )
    builder, report = load_urdf(arm(tip=SOLID + BOX + contact))
    assert material_of(builder, "tip") == gpusim.Material(
        friction=0.9, combine="multiply", rolling_friction=0.01, spinning_friction=0.02, restitution=0.4
    )
    assert len(findings(report, "contact")) == 2 and "<inertia_scaling> 3" in findings(report, "motion")[0]


def test_a_block_slides_at_the_angle_of_its_friction():
    block = '<inertial><mass value="1"/><inertia ixx="0.2" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = robot(
        link("block", block + BOX.replace("1 1 1", "1 1 0.2")),
        '<gazebo reference="block"><mu1>0.3</mu1><mu2>0.3</mu2></gazebo>',
    )
    angle, gravity = 0.5, 9.81
    builder, _ = load_urdf(
        text, fixed_base=False, gravity=(gravity * np.sin(angle), 0, -gravity * np.cos(angle)),
        xform=gpusim.Transform((0, 0, 0.1)),
    )  # fmt: skip
    builder.add_shape_plane(-1, material=gpusim.Material(friction=0.8), label="ground")
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=5e-3))
    sim.step(20)
    speed = sim.read("body.block.linear_velocity")[0][0]
    assert speed == pytest.approx(0.1 * gravity * (np.sin(angle) - 0.3 * np.cos(angle)), rel=0.01)


def test_self_collision_of_the_links_that_ask_for_it():
    def excluded(*more, **options):
        three = (link("end", SOLID + BOX), joint("wrist", "tip", "end", content='<origin xyz="3 0 0"/>' + TURN))
        builder, _ = load_urdf(arm(*three, *more), **options)
        labels = [shape.label for shape in builder.shapes]
        return {frozenset((labels[pair.shape_a], labels[pair.shape_b])) for pair in builder.pairs}

    asked = [f'<gazebo reference="{name}"><selfCollide>true</selfCollide></gazebo>' for name in ("base", "end")]
    assert len(excluded()) == 3
    assert excluded(*asked) == {frozenset(("base", "tip")), frozenset(("tip", "end"))}
    assert excluded("<gazebo><self_collide>1</self_collide></gazebo>") == set()
    assert len(excluded(*asked, self_collisions=False)) == 3
    groups = (
        '<collision_filter_group name="a"><member link="base"/><ignored_collision_filter_group name="b"/>'
        '</collision_filter_group><collision_filter_group name="b"><member link="end"/></collision_filter_group>'
    )
    assert excluded(groups, self_collisions=True) == {frozenset(("base", "end"))}


def test_gazebo_materials_replace_colors():
    builder, report = load_urdf(
        arm(
            '<gazebo reference="tip"><material>Gazebo/Orange</material></gazebo>',
            '<gazebo reference="base"><visual><material><diffuse>0.2 0.4 0.6 1</diffuse></material></visual></gazebo>',
            tip=SOLID + LOOK,
        ).replace(SOLID + BOX, SOLID + LOOK)
    )
    assert [visual.color for visual in builder.visuals] == [(0.2, 0.4, 0.6), (1.0, 0.5088, 0.0468)]
    report = load_urdf(arm('<gazebo reference="tip"><material>Mine/Plaid</material></gazebo>'))[1]
    assert "'Mine/Plaid'" in findings(report, "look")[0]


def test_gravity_off_holds_a_free_arm_still():
    text = arm('<gazebo reference="tip"><turnGravityOff>true</turnGravityOff></gazebo>', content='<axis xyz="0 1 0"/>'
               + LIMIT, tip=inertial("2", ("0.1", "0.1", "0.1", "0", "0", "0"), '<origin xyz="1 0 0"/>'))  # fmt: skip
    builder, report = load_urdf(text)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    sim.step(20)
    assert abs(sim.read("joint.elbow.position")[0]) < 1e-9
    assert report.exact and not report.findings and builder.bodies[1].gravity_scale == 0.0


def test_a_weightless_part_of_a_body_pulls_with_the_others_alone():
    mass = inertial("2", ("0.1", "0.1", "0.1", "0", "0", "0"), '<origin xyz="1 0 0"/>')
    other = inertial("1", ("0.1", "0.1", "0.1", "0", "0", "0"), '<origin xyz="0.5 0 0"/>')
    text = arm(
        link("part", other), joint("weld", "tip", "part", "fixed", ""),
        '<gazebo reference="tip"><gravity>0</gravity></gazebo>', content='<axis xyz="0 1 0"/>' + LIMIT, tip=mass,
    )  # fmt: skip
    builder, report = load_urdf(text)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=1e-3))
    sim.step(10)
    inertia = 0.1 + 0.1 + 2.0 * 1.0 + 1.0 * 0.25
    assert sim.read("joint.elbow.velocity")[0] == pytest.approx(9.81 * 0.5 / inertia * 0.01, rel=1e-3)
    assert report.exact


def test_springs_of_joints():
    spring = (
        '<gazebo reference="elbow"><springStiffness>2</springStiffness><springReference>0.4</springReference></gazebo>'
    )
    builder, _ = load_urdf(arm(spring, tip=SOLID))
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=5e-3))
    sim.step(60)
    expected = 0.4 * (1.0 - np.cos(np.sqrt(2.0) * 0.3))
    assert sim.read("joint.elbow.position")[0] == pytest.approx(expected, rel=5e-3)


def test_what_gazebo_has_and_the_model_has_not_is_reported():
    text = arm(
        '<gazebo><plugin filename="libgo.so" name="go"/><model name="extra"/></gazebo>',
        '<gazebo reference="tip"><kp>1e6</kp><sensor type="camera" name="eye"/><dampingFactor>0.1</dampingFactor>'
        "<mystery/></gazebo>",
        '<gazebo reference="missing"><mu1>1</mu1></gazebo>',
        '<gazebo reference="elbow"><stopCfm>0</stopCfm><implicitSpringDamper>1</implicitSpringDamper></gazebo>',
        '<mujoco><compiler inertiafromgeom="true"/><size njmax="500"/></mujoco>',
    )
    report = load_urdf(text)[1]
    assert [w.split(":")[0] for w in findings(report, "motion")] == ["<gazebo>", "link 'tip'", "<mujoco>"]
    assert [w.split(":")[0] for w in findings(report, "contact")] == ["link 'tip'", "<gazebo reference='missing'>"]
    assert len(findings(report, "info")) == 4 and report.cameras == []
    assert report.ignored == {"gazebo/mystery": 1, "gazebo/implicitSpringDamper": 1}
    camera = '<gazebo reference="tip"><sensor type="camera" name="eye"><camera/></sensor></gazebo>'
    builder, report = load_urdf(arm(camera))
    assert report.cameras == [site.label for site in builder.sites] == ["tip::eye"] and builder.cameras[0].body == 1


ACTING = {
    "static": "<gazebo><static>true</static></gazebo>",
    "decay": '<gazebo reference="tip"><velocity_decay><linear>1</linear></velocity_decay></gazebo>',
    "gravity": '<gravity value="0"/>',
    "spring": "<force_element/>",
}


@pytest.mark.parametrize("name", ACTING)
def test_extensions_that_act_and_are_not_read_are_reported(name):
    assert len(findings(load_urdf(arm(ACTING[name]))[1], "motion")) == 1


def transmission(interface: str, name: str = "motor", more: str = "", kind: str = "SimpleTransmission") -> str:
    hardware = f"<hardwareInterface>hardware_interface/{interface}</hardwareInterface>" if interface else ""
    return (
        f'<transmission name="{name}"><type>transmission_interface/{kind}</type><joint name="elbow">{hardware}</joint>'
        f'<actuator name="m">{more}</actuator></transmission>'
    )


@pytest.mark.parametrize("interface", ["EffortJointInterface", ""])
def test_transmissions_with_efforts_become_joint_forces(interface):
    builder, report = load_urdf(arm(transmission(interface), tip=SOLID))
    assert report.commands == {"motor": CommandInfo("motor", lower=-10.0, upper=10.0)}
    add_holding_servos(load_urdf(arm(transmission(interface, "elbow")))[0], report)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=1e-3))
    sim.control["motor"] = 2.0
    sim.step(20)
    assert sim.read("joint.elbow.velocity")[0] == pytest.approx(0.04, rel=1e-6)
    sim.control["motor"] = 50.0
    sim.step(20)
    assert sim.read("joint.elbow.velocity")[0] == pytest.approx(0.24, rel=0.02)
    assert not load_urdf(arm(transmission(interface)), actuators=False)[1].commands


def test_transmissions_without_efforts_are_reported():
    report = load_urdf(arm(transmission("PositionJointInterface")))[1]
    assert not report.commands and report.exact and "PositionJointInterface" in report.warnings[0]
    report = load_urdf(arm('<transmission name="gripper" type="PR2GripperTransmission"><gap_joint/></transmission>'))[1]
    assert not report.commands and not report.exact
    both = transmission("EffortJointInterface", kind="DifferentialTransmission")
    both = both.replace("<actuator", '<joint name="wrist"/><actuator')
    more = (link("end"), joint("wrist", "tip", "end"), both)
    assert list(load_urdf(arm(*more))[1].commands) == ["elbow_effort", "wrist_effort"]
    control = (
        '<ros2_control name="hw" type="system"><hardware/><joint name="elbow"><command_interface name="effort">'
        '<param name="min">-3</param><param name="max">3</param></command_interface></joint></ros2_control>'
    )
    report = load_urdf(arm(control))[1]
    assert report.commands == {"elbow_effort": CommandInfo("elbow_effort", lower=-3.0, upper=3.0)}
    report = load_urdf(arm(control.replace('"effort"', '"position"')))[1]
    assert not report.commands and "'position'" in report.warnings[0]
    report = load_urdf(arm(transmission("EffortJointInterface"), control))[1]
    assert list(report.commands) == ["motor"] and "already" in report.warnings[0]


@pytest.mark.parametrize(
    ("ratio", "rotor"),
    [
        ("<mechanicalReduction>50</mechanicalReduction>", "<motorInertia>4e-4</motorInertia>"),
        ('<drake:gear_ratio value="50"/>', '<drake:rotor_inertia value="4e-4"/>'),
    ],
)
def test_inertia_of_rotors(ratio, rotor):
    builder, _ = load_urdf(arm(transmission("EffortJointInterface", more=ratio + rotor), tip=SOLID))
    sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=1e-3))
    sim.control["motor"] = 2.0
    sim.step(20)
    assert sim.read("joint.elbow.velocity")[0] == pytest.approx(0.02, rel=1e-6)


def test_transparency_and_texture():
    image = pytest.importorskip("PIL.Image")
    picture = io.BytesIO()
    image.new("RGB", (2, 2), (255, 0, 0)).save(picture, "PNG")
    ball = '<visual><geometry><sphere radius="1"/></geometry>{}</visual>'
    looks = [
        ball.format('<material name=""><color rgba="1 0 0 0.25"/></material>'),
        ball.format('<material name="wood"><texture filename="package://bot/wood.png"/></material>'),
        ball.format('<material name="wood"/>'),
        ball.format('<material name=""><texture filename="gone.png"/></material>'),
    ]
    text = robot(link("base", SOLID + "".join(looks)))
    builder, report = load_urdf(text, assets={"bot/wood.png": picture.getvalue()})
    first, second, third, last = (visual.look for visual in builder.visuals)
    assert first.alpha == 0.25 and second.texture is not None and third.texture is not None
    assert last.texture is None and [f.severity for f in report.findings] == ["look"]


def test_colors_of_a_mesh_come_before_those_of_the_file():
    red = trimesh.creation.box((1, 1, 1))
    red.visual.face_colors = (255, 0, 0, 255)
    plain = trimesh.creation.box((1, 1, 1))
    assets = {
        "red.ply": red.export(file_type="ply"),
        "plain.stl": plain.export(file_type="stl"),
        "both.glb": trimesh.Scene([red, plain.copy().apply_translation((3, 0, 0))]).export(file_type="glb"),
    }
    looks = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry><material name=""><color rgba="1 1 0 1"/></material>'
        "</visual>"
        for name in assets
    )
    builder, _ = load_urdf(robot(link("base", SOLID + looks)), assets=assets)
    shown = [{v.color or piece.color for piece in v.params["pieces"]} for v in builder.visuals]
    assert shown[0] == {(1.0, 0.0, 0.0)} and shown[1] == {(1.0, 1.0, 0.0)}
    assert shown[2] == {(1.0, 0.0, 0.0), (1.0, 1.0, 0.0)}


FOUR_BAR = robot(
    link("base"), link("crank"), link("rod"), link("rocker"),
    joint("a", "base", "crank", "continuous", '<axis xyz="0 1 0"/>'),
    joint("b", "crank", "rod", "continuous", '<origin xyz="0 0 1"/><axis xyz="0 1 0"/>'),
    joint("c", "base", "rocker", "continuous", '<origin xyz="2 0 0"/><axis xyz="0 1 0"/>'),
    '<gazebo><joint name="d" type="revolute"><parent>rod</parent><child>rocker</child><pose>0 0 1 0 0 0</pose>'
    "<axis><xyz>0 1 0</xyz></axis></joint></gazebo>",
)  # fmt: skip


def test_a_joint_of_gazebo_between_welded_links_is_left_out():
    weld = FOUR_BAR.replace("continuous", "fixed")
    builder, report = load_urdf(weld)
    assert len(builder.bodies) == 1 and "d" not in report.joints and report.exact
    assert "links of one body" in report.warnings[-1]


def test_a_joint_of_gazebo_closes_a_loop():
    builder, report = load_urdf(FOUR_BAR)
    assert report.joints["d"].parent == "rod" and report.exact
    sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=2e-3))
    sim.write_state({"joint.a.velocity": 1.0})
    sim.project_velocities()
    sim.step(20)
    angles = [sim.read(f"joint.{name}.position")[0] for name in "abcd"]
    assert abs(angles[0]) > 0.01
    np.testing.assert_allclose(angles, angles[0] * np.array([1.0, -1.0, 1.0, 1.0]), atol=1e-6)
    report = load_urdf(FOUR_BAR.replace("<child>rocker<", "<child>gone<"))[1]
    assert not report.exact and "joint 'd'" in report.warnings[0]
