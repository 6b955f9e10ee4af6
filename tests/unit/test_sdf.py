from __future__ import annotations

import math

import numpy as np
import pytest

import gpusim
from gpusim.errors import ModelError, UnknownNameError
from gpusim.importers import JointLimits, Mimic, add_holding_servos, load_sdf, load_urdf
from gpusim.robotics import Tree
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.sdf_text import BOX, axis, collision, inertial, joint, link, model, sdf

ARM = (link("base"), link("tip", pose="1 0 0 0 0 0"))


def simulate(text, dt=1e-3, backend=FASTEST, **options):
    builder, report = load_sdf(text, **options)
    return gpusim.Simulation(builder.finalize(), backend=backend, config=gpusim.SolverConfig(dt=dt)), report


def hanging(kind, content, tip="", gravity="0 0 0"):
    parts = (link("tip", tip), joint("j", kind, "world", "tip", content))
    return sdf(f'<world name="w"><gravity>{gravity}</gravity>{model(*parts)}</world>')


def read(sim, signal):
    return np.asarray(sim.read(signal)[0], dtype=float)


def test_a_pendulum_swings_with_its_period():
    text = hanging("revolute", axis("0 1 0"), inertial(2.0, (0.1, 0.1, 0.1), "0 0 -0.5 0 0 0"), "0 0 -9.81")
    sim, report = simulate(text)
    assert report.exact and report.joints["j"].load_inertia == pytest.approx(0.6)
    sim.write_state({"joint.j.position": 0.01})
    quarter = 0.5 * math.pi / math.sqrt(2.0 * 9.81 * 0.5 / 0.6)
    sim.step(round(quarter / 1e-3))
    assert abs(read(sim, "joint.j.position")) < 1e-4


def test_limits_efforts_damping_and_friction():
    inside = (
        "<limit><lower>-0.5</lower><upper>1e16</upper><effort>7</effort><velocity>-1</velocity></limit>"
        "<dynamics><damping>2</damping><friction>0.1</friction></dynamics>"
    )
    builder, report = load_sdf(hanging("revolute", axis(inside=inside)))
    info = report.joints["j"]
    assert (info.lower, info.upper, info.limits) == (-0.5, math.inf, JointLimits(7.0, math.inf))
    assert (info.damping, info.friction) == (2.0, 0.1)
    assert report.joint_limits == {"j": JointLimits(7.0, math.inf)}
    (spec,) = builder.joints
    assert spec.params["limit_lower"][0] == -0.5 and math.isinf(spec.params["limit_upper"][0])
    assert math.isinf(load_sdf(hanging("continuous", axis(inside=inside)))[1].joints["j"].lower)


def test_damping_slows_as_the_exponential():
    sim, _ = simulate(hanging("prismatic", axis(inside="<dynamics><damping>2</damping></dynamics>")))
    sim.write_state({"joint.j.velocity": 1.0})
    sim.step(100)
    assert read(sim, "joint.j.velocity") == pytest.approx(math.exp(-0.2), rel=2e-3)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_springs_pull_to_their_reference(kind):
    spring = "<dynamics><spring_stiffness>4</spring_stiffness><spring_reference>0.3</spring_reference></dynamics>"
    sim, _ = simulate(hanging(kind, axis(inside=spring)))
    sim.step(200)
    assert read(sim, "joint.j.position") == pytest.approx(0.3 * (1.0 - math.cos(2.0 * 0.2)), rel=0.02)


def test_axes_are_in_the_frame_that_the_file_says():
    turned = "1.5707963267948966 0 0"
    parts = [link("base"), link("tip", pose=f"0 0 0 {turned}")]

    def direction(content, version="1.9"):
        builder, report = load_sdf(sdf(model(*parts, joint("j", "revolute", "base", "tip", content)), version=version))
        spec = builder.joints[report.joints["j"].index]
        frame = builder.bodies[spec.child].xform * spec.child_xform
        return frame.matrix() @ spec.params["columns"][:, 2]

    frame = '<frame name="f"><pose>0 0 0 0 1.5707963267948966 0</pose></frame>'
    np.testing.assert_allclose(direction(axis("0 0 1")), (0, -1, 0), atol=1e-12)
    np.testing.assert_allclose(direction(axis("0 0 1"), "1.4"), (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(direction(axis("0 0 1", "<use_parent_model_frame>1</use_parent_model_frame>"), "1.6"),
                               (0, 0, 1), atol=1e-12)  # fmt: skip
    parts.append(frame)
    expressed = '<axis><xyz expressed_in="f">0 0 2</xyz></axis>'
    np.testing.assert_allclose(direction(expressed), (1, 0, 0), atol=1e-12)


def test_the_coordinate_of_a_joint_to_the_world_keeps_its_sign():
    for ends in (("world", "tip"), ("tip", "world")):
        text = sdf(model(link("tip"), joint("j", "prismatic", *ends)))
        builder, report = load_sdf(text)
        sim = gpusim.Simulation(builder.finalize(), backend="numpy")
        sim.write_state({"joint.j.position": 0.25})
        # The child moves along the axis, as seen from the parent.
        assert read(sim, "body.tip.position")[2] == pytest.approx(0.25 if ends[0] == "world" else -0.25)


def test_universal_joint_with_limits():
    content = axis("1 0 0", "<limit><lower>-0.1</lower><upper>0.2</upper></limit>") + axis("0 1 0", tag="axis2")
    sim, report = simulate(hanging("universal", content))
    assert report.exact
    sim.write_state({"joint.j.velocity": (3.0, 1.0)})
    sim.step(150)
    angles = read(sim, "joint.j.position")
    assert angles[0] == pytest.approx(0.2, abs=1e-3) and angles[1] == pytest.approx(0.15, rel=0.02)
    skew = axis("1 0 0") + axis("1 1 0", tag="axis2")
    assert not load_sdf(hanging("revolute2", skew))[1].exact
    with pytest.raises(ModelError, match=naming("joint 'j' axes")):
        load_sdf(hanging("universal", axis("1 0 0") + axis("2 0 0", tag="axis2")))


@pytest.mark.parametrize(
    ("pitch", "travel"),
    [("<screw_thread_pitch>0.5</screw_thread_pitch>", 0.5 / (2 * math.pi)), ("<thread_pitch>-20</thread_pitch>", 0.05)],
)
def test_a_screw_moves_with_its_angle(pitch, travel):
    sim, report = simulate(hanging("screw", axis("0 0 1") + pitch))
    assert report.exact
    sim.write_state({"joint.j.velocity": (travel * 2.0, 2.0)})
    sim.step(100)
    height, angle = read(sim, "joint.j.position")
    assert report.joints["j"].axis == 1
    assert angle == pytest.approx(0.2, rel=1e-6) and height == pytest.approx(travel * angle, rel=1e-6)


def test_a_gearbox_couples_two_hinges():
    """Closed form: theta_2 = -ratio theta_1."""
    gear = "<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>"
    parts = (
        link("base"), link("a"), link("b"), joint("fix", "fixed", "world", "base"),
        joint("ja", "revolute", "base", "a"),
    )  # fmt: skip
    for ends, direction, sign in (
        (("base", "b"), "0 0 1", 1),
        (("base", "b"), "0 0 -1", -1),
        (("b", "base"), "0 0 1", -1),
    ):
        couple = joint("g", "gearbox", "a", "b", axis() + axis(tag="axis2") + gear)
        sim, report = simulate(
            sdf(model(*parts, joint("jb", "revolute", *ends, axis(direction)), couple)), gravity=(0,) * 3
        )
        assert report.exact
        sim.write_state({"joint.ja.velocity": 0.5})
        sim.project_velocities(hold=["joint.ja.velocity"])
        sim.step(50)
        assert read(sim, "joint.jb.position") == pytest.approx(-3.0 * sign * read(sim, "joint.ja.position"), rel=1e-6)
    lost = joint("g", "gearbox", "a", "b", axis() + axis(tag="axis2") + gear)
    assert not load_sdf(sdf(model(*parts, joint("jb", "ball", "base", "b", ""), lost)))[1].exact


def test_mimic():
    follow = '<mimic joint="ja"><multiplier>2</multiplier><offset>0.1</offset><reference>0.05</reference></mimic>'
    text = sdf(model(
        link("base"), link("a"), link("b"), joint("ja", "revolute", "base", "a"),
        joint("jb", "revolute", "base", "b", axis(inside=follow)),
    ), version="1.11")  # fmt: skip
    sim, report = simulate(text, gravity=(0, 0, 0))
    assert report.exact
    sim.write_state({"joint.ja.velocity": 0.5, "joint.jb.velocity": 1.0})
    sim.step(50)
    # 2 (q_a - 0.05) + 0.1
    assert read(sim, "joint.jb.position") == pytest.approx(2.0 * read(sim, "joint.ja.position"), rel=1e-6)
    assert read(sim, "joint.ja.position") == pytest.approx(0.025, rel=1e-3)
    with pytest.raises(ModelError, match=naming("'jc'")):
        load_sdf(text.replace('mimic joint="ja"', 'mimic joint="jc"'))


def test_a_follower_of_a_screw_follows_its_angle_and_gets_no_servo():
    follow = '<mimic joint="screw"><multiplier>2</multiplier><offset>0.1</offset></mimic>'
    text = sdf(model(
        link("base"), link("a"), link("b"), joint("w", "fixed", "world", "base"),
        joint("screw", "screw", "base", "a", axis() + "<screw_thread_pitch>0.5</screw_thread_pitch>"),
        joint("jb", "revolute", "base", "b", axis(inside=follow)),
    ), version="1.11")  # fmt: skip
    builder, report = load_sdf(text, gravity=(0, 0, 0))
    assert report.joints["jb"].mimic == Mimic("screw", 2.0, 0.1)
    assert [f.element for f in report.findings] == ["joint 'jb'"]
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    sim.write_state({"joint.screw.velocity": (0.25 / math.pi, 1.0), "joint.jb.velocity": 2.0, "joint.jb.position": 0.1})
    sim.step(100)
    angle = read(sim, "joint.screw.position")[1]
    assert angle > 0.05 and read(sim, "joint.jb.position") == pytest.approx(2.0 * angle + 0.1, rel=1e-6)
    assert "jb" not in add_holding_servos(builder, report)


def test_soft_limits_and_initial_positions_are_reported():
    inside = "<limit><lower>-1</lower><upper>1</upper>{}</limit>"
    soft = "<initial_position>0.2</initial_position>" + inside.format("<stiffness>100</stiffness>")
    found = {f.severity for f in load_sdf(hanging("revolute", axis(inside=soft)))[1].findings}
    assert found == {"contact", "info"}
    rigid = inside.format("<stiffness>1e8</stiffness><dissipation>1</dissipation>")
    assert not load_sdf(hanging("revolute", axis(inside=rigid)))[1].findings


def test_ball_and_fixed_joints():
    sim, report = simulate(hanging("ball", ""))
    assert [info.kind for info in report.joints.values()] == ["ball"]
    assert report.base_joint is None and report.fixed_base
    builder, report = load_sdf(hanging("fixed", ""))
    assert [spec.kind for spec in builder.joints] == ["fixed"] and report.base_joint == "j" and report.fixed_base


def test_gravity_off_and_gravity_of_the_file():
    free = "<gravity>false</gravity>" + inertial(2.0, pose="0.3 0 0 0 0 0")
    text = sdf(f'<world name="w"><gravity>0 0 -3</gravity>{model(link("a", free), link("b"))}</world>')
    sim, report = simulate(text)
    sim.step(100)
    assert np.abs(read(sim, "body.a.position")).max() < 1e-12
    assert read(sim, "body.b.position")[2] == pytest.approx(-0.5 * 3.0 * 0.01, rel=0.02)
    assert report.exact and report.robot_name == "w"
    assert [body.gravity_scale for body in load_sdf(text)[0].bodies] == [0.0, 1.0]
    mixed = sdf(model(link("a", free), link("b"), joint("j", "fixed", "a", "b")))
    sim, report = simulate(mixed)
    sim.step(10)
    assert read(sim, "body.a.linear_velocity")[2] == pytest.approx(-9.8 / 3.0 * 0.01, rel=1e-3)
    assert tuple(load_sdf(sdf(model(*ARM)))[0].gravity) == (0.0, 0.0, -9.8)
    assert tuple(load_sdf(text, gravity=(0, 1, 0))[0].gravity) == (0.0, 1.0, 0.0)


def test_kinematic_and_static_links():
    ground = link("ground", inertial() + collision(BOX, pose="0 0 1 0 0 0"))
    text = sdf(model("<static>true</static>", ground, name="g"),
               model(link("lift", "<kinematic>1</kinematic>" + inertial()), name="m"))  # fmt: skip
    builder, report = load_sdf(text, xform=gpusim.Transform((0, 0, 5)))
    assert [body.label for body in builder.bodies] == ["m::lift"] and builder.bodies[0].kinematic
    (shape,) = builder.shapes
    assert shape.body == -1 and shape.label == "g::ground"
    np.testing.assert_allclose(shape.xform.position, (0, 0, 6))
    assert report.body_of("g::ground") == "world"
    assert report.base_link == "m::lift" and not report.fixed_base
    np.testing.assert_allclose(builder.bodies[0].xform.position, (0, 0, 5))


def test_merged_links_keep_mass_and_moments():
    text = sdf(model(
        link("a", inertial(2.0, (0.2, 0.3, 0.4), "0.1 0 0 0.3 0 0")), link("b", inertial(1.0), "0 1 0 0 0.5 0"),
        link("c", inertial(3.0), "0 0 2 0 0 0"), joint("ab", "fixed", "a", "b"), joint("bc", "fixed", "b", "c"),
    ))  # fmt: skip
    whole, report = load_sdf(text)
    assert report.merged == {"b": "a", "c": "a"} and report.total_mass == 6.0
    np.testing.assert_allclose(report.link_frames["c"][:3, 3], (0, 0, 2))
    (body,) = whole.bodies
    parts, _ = load_sdf(text, merge_fixed=False)
    assert len(parts.bodies) == 3 and len(parts.joints) == 2
    coms = [b.xform.apply(b.com) for b in parts.bodies]
    total = sum(b.mass * c for b, c in zip(parts.bodies, coms, strict=True)) / 6.0
    np.testing.assert_allclose(body.com, total, atol=1e-12)
    tensor = np.zeros((3, 3))
    for b, c in zip(parts.bodies, coms, strict=True):
        r, d = b.xform.matrix(), c - total
        tensor += r @ b.inertia @ r.T + b.mass * (d @ d * np.eye(3) - np.outer(d, d))
    np.testing.assert_allclose(body.inertia, tensor, atol=1e-12)
    kept, report = load_sdf(text, keep=["b"])
    assert [b.label for b in kept.bodies] == ["a", "b"] and report.merged == {"c": "b"}


def test_fixed_base():
    text = sdf(model(*ARM, joint("j", "revolute", "base", "tip")))
    builder, report = load_sdf(text, fixed_base=True)
    assert [spec.kind for spec in builder.joints] == ["fixed", "revolute"] and report.base_joint == "world_to_base"
    assert len(load_sdf(text)[0].joints) == 1
    anchored = text.replace("</model>", joint("anchor", "fixed", "world", "base") + "</model>")
    assert len(load_sdf(anchored)[0].joints) == len(load_sdf(anchored, fixed_base=True)[0].joints) == 2
    builder, report = load_sdf(anchored, fixed_base=False)
    assert len(builder.joints) == 1 and "anchor" in report.warnings[0]


def test_holding_servos_hold():
    parts = (*ARM, joint("j", "revolute", "base", "tip", axis("0 1 0")), joint("w", "fixed", "world", "base"))
    builder, report = load_sdf(sdf(model(*parts)))
    assert add_holding_servos(builder, report) == ["j"]
    sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=5e-3))
    sim.step(60)
    assert abs(read(sim, "joint.j.position")) < 1e-6


@pytest.mark.parametrize(("parent", "child", "first"), [("world", "a", 1), ("a", "world", 0)])
def test_a_follower_of_the_second_axis(parent, child, first):
    """Axes of a joint whose child is the world are exchanged."""
    cross = joint("u", "universal", parent, child, axis("1 0 0") + axis("0 1 0", tag="axis2"))
    follower = joint("f", "revolute", "world", "b", axis("1 0 0", '<mimic joint="u" axis="axis2"/>'))
    builder, _ = load_sdf(sdf(model(link("a"), link("b"), cross, follower)))
    assert builder.couplings[0].terms == [(0, first, -1.0), (1, 0, 1.0)]


def test_masses_that_cannot_be():
    report = load_sdf(sdf(model(link("a", inertial(0.0)), link("b"))))[1]
    assert not report.exact and "mass 0" in report.warnings[0] and report.added_mass > 0.0
    builder, report = load_sdf(sdf(model(link("a", inertial(1.0, (1.0, 1.0, 3.0))))))
    assert not report.exact and builder.bodies[0].inertia[2, 2] == pytest.approx(3.0)
    builder, report = load_sdf(sdf(model(link("a", collision(BOX)))))
    assert builder.bodies[0].mass == 1.0 and report.exact  # SDF's defaults
    auto = '<inertial auto="true"/>' + collision(BOX).replace("<geometry>", "<density>20</density><geometry>")
    model_of = load_sdf(sdf(model(link("a", auto))))[0].finalize()
    assert float(gpusim.Simulation(model_of, backend="numpy").read("body.a.mass")[0]) == pytest.approx(20.0)
    heavy = auto.replace('auto="true"/>', 'auto="true"><mass>6</mass></inertial>')
    parts = (link("a", heavy, "0 0 0 0 0 0"), joint("j", "revolute", "world", "a"))
    builder, report = load_sdf(sdf(model(*parts)))
    assert builder.bodies[0].mass == pytest.approx(6.0) and report.total_mass == pytest.approx(6.0)
    assert report.joints["j"].load_inertia == pytest.approx(1.0)  # 6 kg (1 + 1) m2 / 12
    lost = collision("<mesh><uri>missing.stl</uri></mesh>", name="d")
    assert not load_sdf(sdf(model(link("a", auto + lost))))[1].exact
    builder, report = load_sdf(sdf(model(link("a", auto))), collisions=False)
    assert builder.bodies[0].mass == 1.0 and not report.exact


def robots(seed):
    rng = np.random.default_rng(seed)
    kinds = [("revolute", "prismatic", "continuous", "fixed")[k] for k in rng.integers(0, 4, 9)]
    links_u, links_s, joints_u, joints_s = ['<link name="l0"/>'], [link("l0")], [], []
    for k, kind in enumerate(kinds, 1):
        parent = f"l{rng.integers(0, k)}"
        pose = " ".join(map(repr, rng.uniform(-2, 2, 6).tolist()))
        numbers, direction = pose.split(), " ".join(map(repr, rng.normal(size=3).tolist()))
        content = (
            '<inertial><origin xyz="0.1 0.2 0.3"/><mass value="2"/>'
            '<inertia ixx="1" iyy="1.2" izz="1.4" ixy="0.1" ixz="0" iyz="0"/></inertial>'
        )
        links_u.append(f'<link name="l{k}">{content}</link>')
        tensor = "<inertia><ixx>1</ixx><iyy>1.2</iyy><izz>1.4</izz><ixy>0.1</ixy></inertia>"
        mass = f"<inertial><pose>0.1 0.2 0.3 0 0 0</pose><mass>2</mass>{tensor}</inertial>"
        links_s.append(link(f"l{k}", mass, pose, parent))
        limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>' if kind in ("revolute", "prismatic") else ""
        joints_u.append(
            f'<joint name="j{k}" type="{kind}"><parent link="{parent}"/><child link="l{k}"/>{limit}'
            f'<origin xyz="{" ".join(numbers[:3])}" rpy="{" ".join(numbers[3:])}"/><axis xyz="{direction}"/></joint>'
        )
        joints_s.append(joint(f"j{k}", kind, parent, f"l{k}", axis(direction)))
    urdf = f'<robot name="r">{"".join(links_u + joints_u)}</robot>'
    return urdf, sdf(model(*links_s, *joints_s))


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_forward_kinematics_and_mass_matrix_are_those_of_urdf(seed, merged):
    pytest.importorskip("yourdfpy")
    urdf, text = robots(seed)
    (a, report_a), (b, report_b) = (
        load_urdf(urdf, merge_fixed=merged),
        load_sdf(text, merge_fixed=merged, fixed_base=True),
    )
    one, other = Tree(a.finalize()), Tree(b.finalize())
    rng = np.random.default_rng(seed + 100)
    movable = [label for label, info in report_a.joints.items() if info.kind != "fixed"]
    q, p = one.start[0].copy(), other.start[0].copy()
    for label in movable:
        q[one.slice(label)] = p[other.slice(label)] = rng.uniform(-2, 2)
    for link_name in report_a.link_frames:
        body = report_a.body_of(link_name)
        np.testing.assert_allclose(one.pose(q, f"body.{body}")[0][:3], other.pose(p, f"body.{body}")[0][:3], atol=1e-12)
        np.testing.assert_allclose(report_a.link_frames[link_name], report_b.link_frames[link_name], atol=1e-12)
    rows_a = [one.rate_slice(label).start for label in movable]
    rows_b = [other.rate_slice(label).start for label in movable]
    first = one.mass_matrix(q)[0][np.ix_(rows_a, rows_a)]
    second = other.mass_matrix(p)[0][np.ix_(rows_b, rows_b)]
    np.testing.assert_allclose(first, second, atol=1e-9)
    for label in movable:
        assert report_a.joints[label].load_inertia == pytest.approx(report_b.joints[label].load_inertia)


def test_pose_is_unknown():
    with pytest.raises(UnknownNameError, match=naming("'home'")):
        load_sdf(sdf(model(*ARM)), pose="home")


def test_a_closed_loop_and_a_start_outside_of_its_limits():
    inside = "<limit><lower>0.2</lower><upper>1</upper></limit>"
    text = sdf(model(
        link("base"), link("crank"), link("rod", pose="0 0 1 0 0 0"), link("rocker", pose="2 0 0 0 0 0"),
        joint("w", "fixed", "world", "base"), joint("a", "revolute", "base", "crank", axis("0 1 0", inside)),
        joint("b", "revolute", "crank", "rod", axis("0 1 0")),
        joint("c", "revolute", "base", "rocker", axis("0 1 0")),
        joint("d", "revolute", "rod", "rocker", "<pose>0 0 1 0 0 0</pose>" + axis("0 1 0")),
    ))  # fmt: skip
    sim, report = simulate(text, dt=5e-3, gravity=(0, 0, 0))
    assert [f.element for f in report.findings] == ["joint 'a'"] and report.exact
    sim.step(60)
    angles = [read(sim, f"joint.{name}.position") for name in "abcd"]
    assert sim.health().all() and angles[0] >= 0.2 - 1e-3
    np.testing.assert_allclose(angles, angles[0] * np.array([1.0, -1.0, 1.0, 1.0]), atol=1e-6)
