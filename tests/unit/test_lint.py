"""Lint of models, and their comparison with MuJoCo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.importers import Finding, load_urdf
from gpusim.lint import check_model, compare, compare_with_mujoco, fallen
from gpusim.lint.subject import Subject
from gpusim.scene import load_scene
from tests.message_snapshot import naming

from .urdf_text import robot

SOLID = (2.0, (0.1, 0.1, 0.1))


def pendulum(**joint: Any) -> ModelBuilder:
    """A body on a hinge, with a floor far below."""
    b = ModelBuilder()
    b.add_shape_plane(-1, xform=Transform((0, 0, -5)), label="floor")
    body = b.add_body(*SOLID, xform=Transform((0.5, 0, 0)), label="bob")
    b.add_joint_revolute(-1, body, axis=(0, 1, 0), at=(0, 0, 0), label="hinge", **joint)
    return b


def words(findings: list[Finding], text: str) -> list[Finding]:
    return [finding for finding in findings if text in finding.sentence]


@pytest.mark.parametrize("name", ["double_pendulum", "robot_arm", "slider_crank", "boom_crane", "quarter_car"])
def test_good_models_have_no_findings(name: str) -> None:
    scene = load_scene(name)
    assert [f for f in check_model(scene.builder, dt=scene.config.dt) if f.severity != "info"] == []


def test_start_outside_of_limits() -> None:
    assert not check_model(pendulum(limit_lower=-0.1, limit_upper=0.1))
    (found,) = check_model(pendulum(limit_lower=0.2, limit_upper=0.5))
    assert (found.severity, found.element) == ("motion", "joint 'hinge'")
    assert "starts at 0, outside of 0.2 to 0.5" in found.what


def test_limits_in_degrees() -> None:
    assert not check_model(pendulum(limit_lower=-1.5, limit_upper=4 * np.pi))
    (found,) = check_model(pendulum(limit_lower=-90, limit_upper=45))
    assert (found.severity, found.element) == ("info", "joint 'hinge'")
    assert "-90 and 45 rad" in found.what and "math.radians" in found.fix
    b = ModelBuilder()
    b.add_joint_ball(-1, b.add_body(*SOLID, label="bob"), label="socket", limit=90)
    b.add_joint_prismatic(-1, b.add_body(*SOLID, label="load"), label="crane", limit_upper=50.0)
    assert [f.element for f in check_model(b)] == ["joint 'socket'"]


@pytest.mark.parametrize("limit", ["limit", "cone_limit"])
def test_start_outside_of_a_ball_joints_limit(limit: str) -> None:
    def ball(angle: float) -> ModelBuilder:
        b = ModelBuilder()
        tilted = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), angle)
        body = b.add_body(*SOLID, xform=tilted, label="bob")
        b.add_joint_ball(-1, body, label="socket", **{limit: 0.5})
        return b

    assert not check_model(ball(0.0)) and not check_model(ball(0.49))
    (found,) = check_model(ball(0.6))
    assert (found.severity, found.element) == ("motion", "joint 'socket'")
    assert f"{'cone' if 'cone' in limit else 'rotation'} at 0.6, outside of" in found.what and "to 0.5" in found.what


def test_joints_that_are_built_open() -> None:
    b = pendulum()
    other = b.add_body(*SOLID, xform=Transform((1.5, 0, 0)), label="other")
    b.add_joint_revolute(0, other, Transform((0.5, 0, 0)), Transform((-0.49, 0, 0)), axis=(0, 1, 0), label="elbow")
    (found,) = words(check_model(b), "initial gap")
    assert found.element == "joint 'elbow'" and "gap of 0.01 m" in found.what and "assemble() closes" in found.effect
    # A bar between two points of the world that are too far from each other.
    b = ModelBuilder()
    bar = b.add_body(*SOLID, label="bar")
    for label, x in (("left", -0.5), ("right", 0.5)):
        b.add_joint_ball(-1, bar, Transform((2 * x, 0, 0)), Transform((x, 0, 0)), label=label)
    found = words(check_model(b), "cannot close")
    assert {f.element for f in found} == {"joint 'left'", "joint 'right'"}


def test_redundant_loops() -> None:
    b = pendulum()
    other = b.add_body(*SOLID, xform=Transform((0.5, 0, 1)), label="other")
    bar = b.add_body(*SOLID, xform=Transform((1, 0, 0.5)), label="bar")
    b.add_joint_revolute(-1, other, axis=(0, 1, 0), at=(0, 0, 1), label="top")
    b.add_joint_revolute(0, bar, axis=(0, 1, 0), at=(1, 0, 0), label="a")
    b.add_joint_revolute(other, bar, axis=(0, 1, 0), at=(1, 0, 1), label="b")
    (found,) = words(check_model(b), "redundant")
    assert found.what == "3 of 5 constraints of closed loops are redundant" and found.severity == "info"


def test_overlaps() -> None:
    b = pendulum()
    body = b.add_body(*SOLID, xform=Transform((3, 0, 0)), label="free")
    for label, z in (("low", 0.0), ("high", 0.0)):
        b.add_shape_sphere(body, 0.1, xform=Transform((0, 0, z)), label=label)
    b.add_shape_box(-1, (0.1, 0.1, 0.1), xform=Transform((3, 0, 0.18)), label="lid")
    found = words(check_model(b), "overlap")
    assert {f.element for f in found} == {"shapes 'low' and 'lid'", "shapes 'high' and 'lid'"}
    assert all(f.severity == "contact" and "0.02 m" in f.what for f in found)


def test_soft_shapes_may_overlap() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    body = b.add_body(*SOLID, xform=Transform((0, 0, 0.09)))
    law = ContactLaw(normal="spring", stiffness=1e4)
    b.add_shape_sphere(body, 0.1, material=Material(law=law))
    assert not words(check_model(b), "overlap")


def test_masses_and_inertias() -> None:
    b = pendulum()
    b.add_shape_box(0, (0.1, 0.1, 0.1))
    light = b.add_body(1e-5, (1e-8, 1e-8, 1e-8), xform=Transform((1, 0, 0)), label="light")
    b.add_joint_revolute(0, light, axis=(0, 1, 0), at=(1, 0, 0), label="tip")
    (found,) = words(check_model(b), "ratio")
    assert found.element == "joint 'tip'" and "2e+05" in found.effect
    b.bodies[light].mass = 1e-7  # a link between joints, as importers add
    assert not words(check_model(b), "ratio")
    b.add_shape_sphere(light, 0.01)
    assert words(check_model(b), "ratio")
    for inertia, com, text in (
        ((1.0, 1.0, 1.0), (0, 0, 0), "25 times the largest inertia"),
        ((1e-5, 1e-5, 1e-5), (0, 0, 0), "0.00075 of the inertia"),
        ((0.02, 0.02, 0.02), (0, 0, 0.4), "0.3 m outside"),
        ((0.02, 0.02, 0.02), (0, 0, 0.05), ""),
    ):
        b = ModelBuilder()
        b.add_shape_plane(-1, xform=Transform((0, 0, -1)))
        body = b.add_body(2.0, inertia, com=com, label="box")
        b.add_shape_box(body, (0.1, 0.1, 0.1))
        found = check_model(b)
        assert len(found) == (1 if text else 0) and all(text in f.what and f.severity == "motion" for f in found)


def test_hulls_of_hollow_meshes() -> None:
    corners = np.array([[x, y, z] for x in (0, 1.0) for y in (0, 1.0) for z in (0, 1.0)])
    box = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6],
                    [0, 6, 4], [1, 5, 7], [1, 7, 3]])  # fmt: skip
    dented = np.vstack([corners, [0.5, 0.5, 0.2]])  # the lid z = 1 is pulled in
    faces = np.array([f for f in box.tolist() if not {1, 3, 5, 7} >= set(f)])
    lid = np.array([[8, 1, 5], [8, 5, 7], [8, 7, 3], [8, 3, 1]])
    for mesh, count in (((corners, box), 0), ((dented, np.vstack([faces, lid])), 1)):
        b = pendulum()
        b.add_shape_hull(0, corners)
        b.add_visual(0, "mesh", mesh)
        found = words(check_model(b), "hulls")
        assert len(found) == count
    assert "1.36 times" in found[0].what and found[0].severity == "contact"  # 1 / (1 - 0.8/3)


def test_the_step_is_the_given_one() -> None:
    assert Subject(pendulum(), 4e-3).simulation().step_size == 4e-3
    with pytest.raises(ModelError, match=naming("dt -1")):
        check_model(pendulum(), dt=-1.0)


def test_stiff_gains() -> None:
    for stiffness, damping, count in ((100.0, 1.0, 0), (1e7, 0.0, 1), (1e7, 1e5, 0)):
        b = pendulum()
        b.add_servo(0, stiffness=stiffness, damping=damping, label="drive")
        found = words(check_model(b, dt=1e-3), "too long")
        assert len(found) == count
    (found,) = words(check_model(stiff := pendulum_with_servo(1e7), dt=1e-3), "oscillates")
    frequency = np.sqrt(1e7 / (0.1 + 2.0 * 0.25)) / 2.0 / np.pi
    assert found.element == "servo 'drive'" and f"{frequency:.3g} Hz" in found.what
    assert not check_model(stiff, dt=1e-4)


def pendulum_with_servo(stiffness: float) -> ModelBuilder:
    """A pendulum with a position servo without damping."""
    b = pendulum()
    b.add_servo(0, stiffness=stiffness, damping=0.0, label="drive")
    return b


def test_falling() -> None:
    b = ModelBuilder()
    b.add_body(*SOLID, label="stone")
    (found,) = check_model(b)
    assert "nothing holds 'stone'" in found.what
    b.add_shape_plane(-1, xform=Transform((0, 0, -1)))
    (found,) = check_model(b)
    assert found.element == "body 'stone'" and "no shape" in found.what
    weightless = ModelBuilder(gravity=(0, 0, 0))
    weightless.add_body(*SOLID)
    assert not check_model(weightless)


@pytest.mark.nightly
def test_bodies_that_fall_past_the_floor() -> None:
    b = ModelBuilder()
    b.add_shape_box(-1, (1, 1, 0.1), label="floor")
    for label, position in (("on", (0, 0, 0.4)), ("outside", (3, 0, 1)), ("high", (0.5, 0.5, 50.0))):
        body = b.add_body(*SOLID, xform=Transform(position), label=label)
        b.add_shape_box(body, (0.2, 0.2, 0.2))
    bob = b.add_body(*SOLID, xform=Transform((5, 0, -9)), label="bob")
    b.add_joint_revolute(-1, bob, axis=(0, 1, 0), at=(5, 0, -8))
    sim = Simulation(b.finalize(), config=SolverConfig(dt=0.01), backend="numpy")
    sim.step(100)
    (found,) = fallen(b, sim, check_model(b))
    assert "'outside' fell past" in found.what and found.severity == "info"
    b.add_shape_plane(-1, xform=Transform((0, 0, -100)))
    sim = Simulation(b.finalize(), config=SolverConfig(dt=0.01), backend="numpy")
    sim.step(100)
    assert not fallen(b, sim)


def test_bad_arguments() -> None:
    with pytest.raises(ModelError, match=naming("check_model ModelBuilder")):
        check_model("model.xml")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=naming("mujoco a.sdf")):
        compare_with_mujoco("a.sdf")


ARM = robot(
    '<link name="world"/>',
    *(
        f'<link name="{name}"><inertial><origin xyz="0.1 0.02 -0.2" rpy="0.3 0.1 0"/><mass value="{mass}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
        for name, mass in (("a", 2), ("b", 1.5), ("c", 0.5))
    ),
    '<joint name="j1" type="revolute"><parent link="world"/><child link="a"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="2" effort="10" velocity="1"/><dynamics damping="0.1"/></joint>',
    '<joint name="j2" type="continuous"><origin xyz="0.3 0 0" rpy="0 0.4 1"/><parent link="a"/><child link="b"/>'
    '<axis xyz="1 0 0"/></joint>',
    '<joint name="j3" type="prismatic"><origin xyz="0 0.2 0"/><parent link="b"/><child link="c"/><axis xyz="0 0 1"/>'
    '<limit lower="-0.1" upper="0.1" effort="10" velocity="1"/></joint>',
)


def test_comparison_with_mujoco(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("yourdfpy")
    file = tmp_path / "arm.urdf"
    file.write_text(ARM, encoding="utf-8")
    found = compare_with_mujoco(file)
    assert found.bodies == 3 and not found.failures and not found.skipped
    assert found.poses is not None and found.poses < 1e-14
    assert found.mass_matrix is not None and found.mass_matrix < 1e-12
    assert found.motion is not None and found.motion < 1e-5


def test_comparison_without_names(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "chain.xml"
    geom = '<geom size="0.1" pos="0.2 0 0.1"/>'
    inner = f'<body name="body1" pos="0.5 0 0"><joint name="joint0" type="slide"/><joint axis="1 0 0"/>{geom}</body>'
    free = f'<body pos="0 3 1"><freejoint/>{geom}</body>'
    file.write_text(f'<mujoco><worldbody><body pos="0 0 1"><joint/>{geom}{inner}</body>{free}</worldbody></mujoco>')
    found = compare_with_mujoco(file)
    assert found.bodies == 3 and not found.failures and not found.skipped
    assert found.motion is not None and found.motion < 1e-5


def test_motion_of_a_body_about_its_own_origin_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "pendulum.xml"
    body = '<body><joint axis="1 0 0" damping="0.1"/><geom size="0.1" pos="0 1 0"/></body>'
    file.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    monkeypatch.setattr(compare, "_unconstrained", _undamped)
    assert [text[:6] for text in compare_with_mujoco(file).failures] == ["motion"]


def _undamped(builder: ModelBuilder) -> ModelBuilder:
    builder.joints[0].params["damping"] = 0.0 * builder.joints[0].params["damping"]
    return builder


ROPE = '<tendon><spatial armature="0.3"><site site="a"/><site site="b"/></spatial></tendon>'
SWINGING = """<body><joint/><geom size="0.1" pos="0 1 0"/><site name="b" pos="0 1 0"/></body>
<site name="a" pos="0 0 2"/>"""


def test_the_armature_of_a_rope_is_in_the_mass_matrix(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "rope.xml"
    file.write_text(f"<mujoco><worldbody>{SWINGING}</worldbody>{ROPE}</mujoco>")
    found = compare_with_mujoco(file)
    assert not found.failures and not found.skipped
    assert found.mass_matrix is not None and found.mass_matrix < 1e-12


@pytest.mark.parametrize("coupled", ['joint joint1="a" polycoef="0 1 0.2 0 0" joint2="b"', 'tendon tendon1="t"'])
def test_poses_of_models_with_couplings_are_compared(coupled: str, tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "coupled.xml"
    arm = '<body><joint name="{0}"/><geom size="0.1" pos="0 1 0"/><site name="s{0}" pos="0 1 0"/></body>'
    rope = '<tendon><spatial name="t"><site site="sa"/><site site="sb"/></spatial></tendon>'
    bodies = f"<worldbody>{arm.format('a')}{arm.format('b')}</worldbody>"
    file.write_text(f"<mujoco>{bodies}{rope}<equality><{coupled}/></equality></mujoco>")
    found = compare_with_mujoco(file)
    assert not found.failures and found.skipped == ["motion: the file has equality constraints"]
    assert found.mass_matrix is not None and found.mass_matrix < 1e-12


@pytest.mark.parametrize("what", ["poses", "mass matrix", "motion"])
def test_differences_from_mujoco_are_found(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("yourdfpy")
    file = tmp_path / "arm.urdf"
    file.write_text(ARM, encoding="utf-8")

    def wrong(path: Any, **options: Any) -> Any:
        builder, report = load_urdf(path, **options)
        if what == "poses":
            builder.joints[1].parent_xform = builder.joints[1].parent_xform * Transform((0, 1e-6, 0))
        elif what == "mass matrix":
            builder.bodies[2].mass *= 1.001
        else:
            builder.joints[0].params["damping"] = builder.joints[0].params["damping"] * 2.0
        return builder, report

    monkeypatch.setattr(compare, "load_model", wrong)
    failures = compare_with_mujoco(file).failures
    assert any(text.startswith(what) for text in failures), failures


def test_comparison_keeps_warnings_of_mujoco_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    body = '<body><joint axis="0 1 0"/><geom size="1" pos="1 0 0"/></body>'
    Path("old.xml").write_text(f'<mujoco><compiler settotalmass="3"/><worldbody>{body}</worldbody></mujoco>')
    assert compare_with_mujoco("old.xml").poses is not None
    assert "WARNING" not in "".join(capfd.readouterr()) and [path.name for path in tmp_path.iterdir()] == ["old.xml"]
