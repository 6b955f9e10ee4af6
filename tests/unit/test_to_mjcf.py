from __future__ import annotations

import math

import numpy as np
import pytest

import gpusim
from gpusim import Material, ModelBuilder, ModelError, Transform, robotics
from gpusim.exporters import to_mjcf
from gpusim.importers import load_mjcf
from gpusim.meshes.pieces import mesh_pieces
from gpusim.scene import load_scene
from tests.backends import FASTEST

mujoco = pytest.importorskip("mujoco")

TURN = Transform.from_axis_angle((0.1, -0.2, 0.3), (1, 2, 3), 0.7)
BACK = Transform.from_axis_angle((-0.2, 0.05, 0.1), (2, -1, 1), -0.4)


def compiled(builder):
    """Return MuJoCo's model and data at the file's start."""
    text, report = to_mjcf(builder)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return model, data, report


def body_of(model, label):
    return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, label)


def gap(builder, model, data, read=None):
    """Return the greatest distance of a body's position from MuJoCo's, m."""
    worst = 0.0
    for spec in builder.bodies:
        place = spec.xform.position if read is None else np.ravel(read(f"body.{spec.label}.position"))
        worst = max(worst, float(np.abs(data.xpos[body_of(model, spec.label)] - place).max()))
    return worst


def after(builder, model, data, seconds=0.1):
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 2.5e-4
    config = gpusim.SolverConfig(dt=1e-3)
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, dtype="float64", config=config)
    sim.step(round(seconds / 1e-3))
    while data.time < seconds - 1e-9:
        mujoco.mj_step(model, data)
    mujoco.mj_kinematics(model, data)
    return gap(builder, model, data, sim.read)


def link(b, parent, kind, at=(0.3, 0, 0), **more):
    base = b.bodies[parent].xform if parent >= 0 else Transform()
    inertia, pose = np.diag([0.02, 0.03, 0.04]) + 0.002, base * Transform(at) * TURN * more.pop("moved") * BACK
    body = b.add_body(1.5, inertia, com=(0.05, 0.02, -0.1), xform=pose)
    getattr(b, f"add_joint_{kind}")(parent, body, Transform(at) * TURN, BACK.inverse(), **more)
    return body


def about(axis, angle, at=(0, 0, 0)):
    return Transform.from_axis_angle(at, axis, angle)


X, Y, Z = np.eye(3)
KINDS = {
    "revolute": dict(axis=(0, 0.6, 0.8), moved=about((0, 0.6, 0.8), 0.5), armature=0.02, damping=0.3),
    "prismatic": dict(axis=(1, 0, 0), moved=Transform((0.2, 0, 0)), armature=0.2),
    "cylindrical": dict(axis=(0, 1, 0), moved=about(Y, -0.3, (0, 0.1, 0))),
    "planar": dict(axis=(0, 0, 1), moved=about(Z, 0.4, (0.1, -0.2, 0))),
    "universal": dict(axis=X, axis2=Y, moved=about(X, 0.3) * about(Y, -0.5)),
    "ball": dict(moved=about((1, 1, 0), 0.6)),
    "d6": dict(
        linear_axes=[Z],
        angular_axes=[Y, X, -Z],
        moved=Transform((0, 0, 0.1)) * about(Y, 0.4) * about(X, 0.3) * about(-Z, 0.2),
    ),
    "fixed": dict(moved=Transform()),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_joint_of_a_tree_has_mujocos_mass_matrix_and_motion(kind):
    b = ModelBuilder()
    first = link(b, -1, "revolute", axis=(0, 1, 0), moved=about(Y, 0.2))
    middle = link(b, first, kind, **KINDS[kind])
    link(b, middle, "revolute", axis=(1, 0, 0), moved=about(X, -0.7), limit_lower=-3.0)
    model, data, report = compiled(b)
    assert report.exact and gap(b, model, data) < 1e-14
    assert model.body_mass.sum() == pytest.approx(4.5, rel=1e-15)
    sim = gpusim.Simulation(b.finalize(), backend="numpy")
    tree = robotics.Tree(sim.model)
    ours = np.linalg.eigvalsh(tree.mass_matrix(tree.posture(sim))[0])
    theirs = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, theirs)
    assert np.abs(ours - np.linalg.eigvalsh(theirs)).max() < 1e-10 * ours.max()
    for label, names in report.joints.items():
        if len(names) and kind != "ball":
            given = np.ravel(sim.read(f"joint.{label}.position"))
            found = [float(data.qpos[model.joint(name).qposadr[0]]) for name in names]
            assert np.allclose(given, found, atol=1e-12)
    assert after(b, model, data) < 2e-6


def test_a_free_body_starts_with_its_velocities():
    b = ModelBuilder()
    b.add_body(
        2.0, (0.1, 0.2, 0.25), com=(0.1, 0, 0.2), xform=TURN, linear_velocity=(1, 2, 3), angular_velocity=(3, -2, 1)
    )
    model, data, report = compiled(b)
    assert report.exact and model.nv == 6
    assert after(b, model, data) < 2e-6


def test_carried_bodies_start_with_their_velocities():
    b = ModelBuilder()
    rod = b.add_body(
        1.0, (0.1, 0.1, 0.1), xform=Transform((0.5, 0, 0)), linear_velocity=(0, 0, -1), angular_velocity=(0, 2, 0)
    )
    b.add_joint_revolute(-1, rod, at=(0, 0, 0), axis=(0, 1, 0))
    tip = b.add_body(
        1.0, (0.1, 0.1, 0.1), xform=Transform((1.5, 0, 0)), linear_velocity=(0, 0, -3.5), angular_velocity=(0, 3, 0)
    )
    b.add_joint_revolute(rod, tip, at=(1, 0, 0), axis=(0, 1, 0))
    model, data, report = compiled(b)
    assert np.allclose(data.qvel, (2, 1), atol=1e-12) and report.exact
    b.bodies[1].linear_velocity = np.array([0.0, 5.0, 0.0])
    assert not to_mjcf(b)[1].exact


def test_loops_are_closed():
    scene = load_scene("four_bar")
    model, data, report = compiled(scene.builder)
    assert report.exact and model.neq >= 1
    assert after(scene.builder, model, data, 0.05) < 2e-4


def test_gears_mimics_and_differentials():
    b = ModelBuilder()
    wheels = [b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((k, 0, 0))) for k in range(5)]
    joints = [b.add_joint_revolute(-1, wheel, at=(k, 0, 0), axis=(0, 0, 1)) for k, wheel in enumerate(wheels)]
    b.add_mimic(joints[1], joints[0], multiplier=-2.0, offset=0.3)
    b.add_linear_coupling([(joints[2], 1.0), (joints[3], 1.0), (joints[4], -2.0)], offset=0.1)
    b.add_joint_force(joints[0], label="push")
    b.add_joint_force(joints[4], label="turn")
    model, data, report = compiled(b)
    assert report.exact
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data.ctrl[:] = (0.5, 0.3)
    for _ in range(500):
        mujoco.mj_step(model, data)
    q = data.qpos
    assert q[1] == pytest.approx(-2 * q[0] + 0.3, abs=2e-4) and abs(q[0]) > 0.05
    assert q[2] + q[3] - 2 * q[4] == pytest.approx(0.1, abs=2e-4)


def test_ropes_rods_springs_and_tendons():
    b = ModelBuilder()
    ball = b.add_body(1.0, (0.01, 0.01, 0.01), xform=Transform((0.3, 0, -0.4)), label="ball")
    b.add_joint_distance(-1, ball, min_distance=0.5, max_distance=0.5, label="rod")
    b.add_spring(-1, ball, (1, 0, 0), stiffness=20.0, damping=1.0, rest_length=0.6, label="coil")
    model, data, report = compiled(b)
    assert report.exact and model.ntendon == 2
    assert after(b, model, data, 0.1) < 2e-3
    assert np.linalg.norm(data.xpos[body_of(model, "ball")]) == pytest.approx(0.5, abs=1e-3)


def test_servos_motors_and_joint_springs_drive_alike():
    b = ModelBuilder(gravity=(0, 0, 0))
    parent = -1
    for k in range(5):
        body = b.add_body(1.0, (0.05, 0.06, 0.07), xform=Transform((0.3 * k, 0, 0)))
        b.add_joint_revolute(parent, body, at=(0.3 * k, 0, 0), axis=(0, 0, 1))
        parent = body
    b.add_servo(0, stiffness=40.0, damping=2.0, effort_limit=5.0, target=0.4, label="position")
    b.add_servo(1, "velocity", damping=3.0, target=1.0, label="velocity")
    b.add_tracking_servo(2, 30.0, 1.0, (-4.0, 2.0), target=-0.3, label="tracking")
    b.add_torque_motor(3, 2.0, label="motor")
    b.add_torsion_spring(4, 5.0, 0.2, 0.5, label="spring")
    model, data, report = compiled(b)
    assert report.exact and report.counts["actuators"] == 4
    assert after(b, model, data) < 1e-4


def test_forces_on_bodies():
    b = ModelBuilder()
    body = b.add_body(1.0, (0.05, 0.06, 0.07), com=(0.1, 0, 0), xform=TURN)
    b.add_force(body, (3, 0, 5), (0.2, 0.1, 0.0), frame="body", label="thrust")
    b.add_torque(body, (0, 0.2, 0), label="twist")
    b.set_command_map("thrust", factor=2.0, offset=0.3, lower=0.0, upper=0.25, initial=0.2)
    model, data, report = compiled(b)
    assert report.exact
    assert after(b, model, data) < 1e-5


def test_integrators_and_muscles():
    b = ModelBuilder()
    for k, axis in enumerate(((0, 1, 0), (1, 0, 0))):
        body = b.add_body(1.0, (0.02, 0.03, 0.04), com=(0.1, 0, -0.2), xform=Transform((k, 0, 0)), label=f"b{k}")
        b.add_joint_revolute(-1, body, at=(k, 0, 0), axis=axis, damping=0.1, label=f"j{k}")
    b.add_tracking_servo(0, 20.0, 2.0, label="servo")
    b.set_command_map("servo", lower=-1, upper=2, initial=1.5, integrate=True, activation_range=(-0.2, 0.1))
    b.add_joint_force(1, label="lag")
    b.set_command_map("lag", factor=2.0, initial=0.4, time_constant=0.05, activation=-0.3, activation_range=(-1, 0.2))
    b.add_muscle(1, 90.0, (-0.06, 0.06), gear=0.05, tausmooth=0.1, activation=0.4, label="muscle")
    b.add_muscle(b.add_tendon([(0, 0.04), (1, -0.03)], label="t"), 50.0, (-0.05, 0.05), fpmax=0.0, label="line")
    b.set_command_map("line", lower=0.1, upper=0.8, initial=0.7)
    b.add_pose("p", joints={"j0": 0.1}, activations={"servo": 0.05, "line": 0.9})
    model, data, report = compiled(b)
    assert report.exact
    assert np.allclose(data.act, (0, -0.3, 0.4, 0)) and np.allclose(model.key_act[1], (0.05, -0.3, 0.4, 0.9))
    assert after(b, model, data) < 1e-4
    assert np.allclose(data.act[0], 0.1) and data.act[3] > 0.5
    assert load_mjcf(to_mjcf(b)[0], pose="start")[1].exact


def filtered(model, a, c):
    """Return whether MuJoCo's filter lets two geoms collide, from their numbers."""
    first, second = (mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in (a, c))
    return bool(
        model.geom_contype[first] & model.geom_conaffinity[second]
        or model.geom_contype[second] & model.geom_conaffinity[first]
    )


def test_groups_masks_and_excluded_pairs():
    b = ModelBuilder()
    names = "abcd"
    for k, name in enumerate(names):
        body = b.add_body(1.0, (1, 1, 1), xform=Transform((k, 0, 0)), label=name)
        b.add_shape_sphere(
            body, 0.2, label=name, group=("red", "blue", 1, 4)[k], mask=(2**32 - 1, 2**32 - 1, 2**32 - 1, 1)[k]
        )
    b.set_group_collision("red", "blue", False)
    b.exclude_collision_pair(0, 2)
    model, _, _ = compiled(b)
    collide = {a + c: filtered(model, a, c) for a in names for c in names if a < c}
    assert collide == {"ab": False, "ac": True, "ad": False, "bc": True, "bd": False, "cd": True}
    assert model.nexclude == 1


SHAPES = {
    "sphere": (0.2,),
    "capsule": (0.1, 0.3),
    "cylinder": (0.2, 0.3),
    "box": ((0.1, 0.2, 0.3),),
    "ellipsoid": ((0.1, 0.2, 0.3),),
    "cone": (0.2, 0.3),
    "barrel": (0.1, 0.3, 0.2),
    "hull": ([(0, 0, 0), (0.3, 0, 0), (0, 0.4, 0), (0, 0, 0.5), (0.3, 0.4, 0.1)],),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_lie_where_they_lay(kind):
    b = ModelBuilder()
    body = b.add_body(xform=TURN)
    getattr(b, f"add_shape_{kind}")(body, *SHAPES[kind], BACK)
    model, data, _ = compiled(b)
    expected = TURN * BACK
    for way in np.vstack([np.eye(3), -np.eye(3), np.random.default_rng(3).normal(size=(6, 3))]):
        way = way / np.linalg.norm(way)
        inside = expected.apply(np.mean(SHAPES[kind][0], axis=0)) if kind == "hull" else expected.position
        start, ray = inside + 3 * way, -way
        hit = mujoco.mj_ray(model, data, start, ray, None, 1, -1, np.zeros(1, np.int32))
        sim_ray = ray_on(b, start, ray)
        assert hit == pytest.approx(sim_ray, abs=3e-3 if kind in ("cone", "barrel") else 3e-4)


def ray_on(b, start, way):
    from gpusim.description.shape_kinds import shape_type

    shape = b.shapes[0]
    points, triangles = shape_type(shape.kind).mesh(shape.params, 120)
    pose = (b.bodies[shape.body].xform if shape.body >= 0 else Transform()) * shape.xform
    a, c, d = (pose.apply(np.asarray(points))[np.asarray(triangles)[:, k]] for k in range(3))
    e, f = c - a, d - a
    h = np.cross(way, f)
    det = np.einsum("ij,ij->i", e, h)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = start - a
        u = np.einsum("ij,ij->i", s, h) / det
        q = np.cross(s, e)
        v = q @ way / det
        t = np.einsum("ij,ij->i", f, q) / det
    hit = (np.abs(det) > 1e-14) & (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (t > 0)
    return float(t[hit].min())


def test_a_height_field_has_its_heights_and_orientation():
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), xform=Transform((0, 0, 9)))
    heights = np.array([[-0.2, 0.1, 0.3, 0.0], [0.5, 0.2, 0.1, 0.4], [0.3, 0.3, 0.2, 0.6]])
    b.add_shape_height_field(-1, heights, (0.5, 0.4), xform=Transform((1, 2, 3)))
    model, data, _ = compiled(b)
    for row in range(3):
        for column in range(4):
            x, y = 1 + 0.5 * (column - 1.5) * 0.999, 2 + 0.4 * (row - 1) * 0.999
            hit = mujoco.mj_ray(
                model, data, np.array([x, y, 7.0]), np.array([0, 0, -1.0]), None, 1, -1, np.zeros(1, np.int32)
            )
            assert 7 - hit == pytest.approx(3 + heights[row, column], abs=2e-3)


def test_visuals_have_colors_and_no_contacts():
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    b.add_shape_sphere(body, 0.2, material=Material(friction=0.8, rolling_friction=0.01))
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1.0)])
    b.add_visual(body, "mesh", (corners, np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])), color="#ff0000")
    model, _, _ = compiled(b)
    assert model.ngeom == 2 and model.body_mass[1] == 1.0
    assert list(model.geom_contype) == [1, 0] and np.allclose(model.geom_rgba[1], (1, 0, 0, 1))
    assert np.allclose(model.geom_friction[0], (0.8, 0.005, 0.01)) and model.geom_condim[0] == 6


@pytest.mark.parametrize("given", [False, True])
def test_visuals_keep_their_sharp_edges_and_given_normals(given):
    cube = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1.0)])
    faces = np.array([(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6),
                      (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)])  # fmt: skip
    round_ = (cube[faces] - 0.5) / np.sqrt(0.75)
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    pieces = mesh_pieces("cube", (cube, faces), normals=round_ if given else None)
    assert (pieces[0].normals is not None) == given
    b.add_visual(body, "mesh", pieces, alpha=0.5, metallic=1.0)
    assert "has a finish" in to_mjcf(b)[1].summary()
    model, _, _ = compiled(b)
    assert np.allclose(model.geom_rgba[0], (0.5, 0.5, 0.5, 0.5))
    corners = model.mesh_vert[model.mesh_face]
    sharp = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    expected = corners / np.sqrt(0.75) if given else np.repeat(sharp[:, None], 3, axis=1)
    assert model.nmeshvert == (8 if given else 24) and model.body_mass[1] == 1.0
    assert np.allclose(model.mesh_normal[model.mesh_facenormal], expected, atol=1e-3)


def test_limits_that_are_equal_lock_the_joint():
    b = ModelBuilder()
    body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0.5, 0, 0)))
    b.add_joint_revolute(-1, body, at=(0, 0, 0), axis=(0, 1, 0), limit_lower=0.0, limit_upper=0.0)
    model, data, _ = compiled(b)
    for _ in range(300):
        mujoco.mj_step(model, data)
    assert abs(data.qpos[0]) < 2e-3


def test_what_mjcf_cannot_say_is_in_the_report():
    _, report = to_mjcf(load_scene("hydraulic_lift").builder)
    assert not report.exact and any("no cylinder" in finding.what for finding in report.findings)
    with pytest.raises(ModelError, match="MJCF has no cylinder"):
        report.raise_if_not_exact()
    assert "warning" in report.summary() and '"exact": false' in report.json()
    _, report = to_mjcf(load_scene("robot_arm").builder)
    assert any("diagram" in finding.element for finding in report.findings)


def test_the_file_is_written_whole_and_exact(tmp_path):
    b = ModelBuilder()
    b.add_body(1.0 / 3.0, (math.pi, 3.0, 2.0), xform=Transform((0.1, 0.2, 0.3)), label="one")
    path = tmp_path / "robot.xml"
    text, report = to_mjcf(b.finalize(), path)
    assert path.read_text() == text and repr(1.0 / 3.0) in text and report.file == str(path)
    assert list(tmp_path.iterdir()) == [path]
    assert mujoco.MjModel.from_xml_path(str(path)).body_mass[1] == 1.0 / 3.0


def test_a_cone_limit_is_a_finding():
    b = ModelBuilder()
    b.add_joint_ball(-1, b.add_body(1.0, (0.1, 0.1, 0.1)), cone_limit=0.5, label="pin")
    text, report = to_mjcf(b)
    assert "range" not in text and [f.what for f in report.findings] == ["its cone limit"]


def test_bad_arguments_are_one_sentence(tmp_path):
    with pytest.raises(ModelError, match="to_mjcf: str"):
        to_mjcf("robot.urdf")
    with pytest.raises(ModelError, match="must end in .xml"):
        to_mjcf(load_scene("chain").builder, tmp_path / "a.urdf")
    with pytest.raises(ModelError, match="name = 3"):
        to_mjcf(load_scene("chain").builder, name=3)
    with pytest.raises(ModelError, match="does not exist"):
        to_mjcf(load_scene("chain").builder, tmp_path / "no" / "a.xml")


SCENES = """boom_crane bricard card_house chain double_pendulum flyball four_bar krt100m quarter_car rattleback
    slope""".split()
HEAVY = """biped_valve excavator mecanum_vehicle omni_vehicle pile pyramid robot_arm rtk_m slider_crank spinning_top
    suspension_rig""".split()


@pytest.mark.parametrize("name", [*SCENES, *(pytest.param(name, marks=pytest.mark.nightly) for name in HEAVY)])
def test_scenes_have_the_same_masses_and_poses(name):
    builder = load_scene(name).builder
    model, data, _ = compiled(builder)
    total = math.fsum(spec.mass for spec in builder.finalize().bodies)
    assert model.body_mass.sum() == pytest.approx(total, rel=1e-12)
    assert gap(builder, model, data) < 1e-12


@pytest.mark.parametrize("fixed", [True, False])
def test_robots_of_others(fixed):
    upkie = pytest.importorskip("upkie_description")
    pytest.importorskip("yourdfpy")
    from gpusim.importers import load_urdf

    builder, _ = load_urdf(upkie.URDF_PATH, fixed_base=fixed, visuals=False)
    model, data, report = compiled(builder)
    assert report.exact and gap(builder, model, data) < 1e-14
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    tree = robotics.Tree(sim.model)
    ours = np.linalg.eigvalsh(tree.mass_matrix(tree.posture(sim))[0])
    theirs = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, theirs)
    assert np.abs(ours - np.linalg.eigvalsh(theirs)).max() < 1e-10 * ours.max()


def test_shares_of_gravity_and_damping_of_free_bodies():
    b = ModelBuilder()
    floating = b.add_body(2.0, (0.1, 0.1, 0.1), gravity_scale=0.25, linear_velocity=(1, 0, 0), label="floating")
    b.add_joint_free(-1, floating, damping=0.5)
    model, data, report = compiled(b)
    assert report.exact and after(b, model, data) < 2e-6


def test_command_maps_and_postures():
    b = ModelBuilder(gravity=(0, 0, 0))
    turret = b.add_body(1.0, (0.1, 0.1, 0.1), label="turret")
    hinge = b.add_joint_revolute(-1, turret, axis=(0, 0, 1), label="turn")
    b.add_servo(hinge, stiffness=20.0, damping=2.0, label="aim")
    b.set_command_map("aim", factor=2.0, offset=0.1, lower=-0.5, upper=0.5)
    b.add_body(1.0, (0.1, 0.1, 0.1), label="stone")
    b.add_pose("away", joints={"turn": 0.7}, bodies={"stone": TURN}, commands={"aim": 0.3})
    model, data, report = compiled(b)
    key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, "away")
    mujoco.mj_resetDataKeyframe(model, data, key)
    mujoco.mj_forward(model, data)
    assert report.exact and data.joint("turn").qpos[0] == 0.7 and data.ctrl[0] == 0.3
    assert np.allclose(data.body("stone").xpos, TURN.position)
    assert data.actuator_force[0] == pytest.approx(20.0 * (2.0 * 0.3 + 0.1 - 0.7))
    data.ctrl[0] = 9.0
    mujoco.mj_forward(model, data)
    assert data.actuator_force[0] == pytest.approx(20.0 * (2.0 * 0.5 + 0.1 - 0.7))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mjcf_reader_gets_the_model_back(kind):
    from gpusim.importers import load_mjcf

    b = ModelBuilder()
    first = link(b, -1, "revolute", axis=(0, 1, 0), moved=about(Y, 0.2), limit_lower=-1.0, limit_upper=2.0, label="one")
    link(b, first, kind, **KINDS[kind], label="two")
    b.add_servo(0, stiffness=40.0, damping=2.0, effort_limit=5.0, label="hold")
    read, _ = load_mjcf(to_mjcf(b)[0], merge_fixed=False, pose="start")
    ours, theirs = b.finalize().bodies, {spec.label: spec for spec in read.finalize().bodies}
    for spec in ours:
        other = theirs[spec.label]
        assert other.mass == pytest.approx(spec.mass, rel=1e-14)
        assert np.allclose(other.xform.position, spec.xform.position, atol=1e-12)
        assert np.allclose(other.xform.apply(other.com), spec.xform.apply(spec.com), atol=1e-12)
    assert len(read.actuators) == 1


def test_labels_with_quotes_and_the_name_of_the_world() -> None:
    b = ModelBuilder()
    for label in ("pump's", "world"):
        body = b.add_body(1.0, (1, 1, 1), label=label)
        joint = b.add_joint_revolute(-1, body, axis=(0, 1, 0), label=label)
        b.add_torsion_spring(joint, 10.0, 1.0, label=f"{label}_spring")
        b.add_joint_force(joint, label=label)
        b.add_visual(body, "mesh", (np.eye(4, 3), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])), label=label)
        b.add_shape_sphere(body, 0.1)
    b.exclude_collision_pair(0, 1)
    again, _ = load_mjcf(to_mjcf(b)[0])
    assert [body.label for body in again.bodies] == ["pump's", "world_"]
    assert [joint.label for joint in again.joints] == ["pump's", "world"]
