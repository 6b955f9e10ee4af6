"""Commands on users' files: machine.yaml, machine.py, module:function, and models of other programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform
from gpusim.cli.extents import lowest_point
from gpusim.cli.options import RunOptions
from gpusim.cli.recorded import recorded_motion, recorded_target, scene_of
from gpusim.cli.replays import Replay
from gpusim.cli.target_files import add_floor, kind_of, show_findings
from gpusim.cli.targets import load_target, target_parameters, with_parameters
from gpusim.importers import ImportReport
from gpusim.recording.motion import MotionRecorder
from gpusim.viewer.operator import Operator, OperatorRecording
from tests.backends import FASTEST
from tests.message_snapshot import names
from tests.pictures import load_picture
from tests.unit.helpers import bits
from tests.unit.viewer.drawing import require_egl

YAML = """\
name: pendulum
values: {mass: 2.0, length: 0.5}
add:
  - body: {label: bob, mass: = mass, inertia: [0.1, 0.1, 0.1], xform: [= length, 0, 0]}
  - joint_revolute: {label: hinge, parent: world, child: bob, axis: [0, 1, 0], at: [0, 0, 0]}
  - servo: {label: drive, joint: hinge, stiffness: 50, damping: 5, command_range: [-1, 1]}
  - pose: {label: home, joints: {hinge: 0.4}, commands: {drive: 0.3}}
config: {dt: 0.002}
duration: 0.1
plots:
  - {title: angle, unit: rad, signals: [joint.hinge.position]}
"""
PYTHON = '''\
"""A pendulum of the user."""
import gpusim
from gpusim.scene import Plot, Scene
from parts import bob


def build(mass: float = 2.0, length: float = 0.5, seed: int = 0) -> Scene:
    b = gpusim.ModelBuilder()
    body = bob(b, mass + seed, length)
    hinge = b.add_joint_revolute(-1, body, axis=(0, 1, 0), at=(0, 0, 0), label="hinge")
    b.add_servo(hinge, stiffness=50, damping=5, command_range=(-1, 1), label="drive")
    b.add_pose("home", joints={"hinge": 0.4}, commands={"drive": 0.3})
    plots = [Plot("angle", "rad", ["joint.hinge.position"])]
    return Scene("pendulum", "of the user", b, gpusim.SolverConfig(dt=0.002), 0.1, plots)


def bare():
    b = gpusim.ModelBuilder()
    bob(b, 1.0, 1.0)
    return b


def nothing():
    return 3


def broken():
    return 1 / 0
'''
PARTS = """\
import gpusim


def bob(b, mass, length):
    return b.add_body(mass, (0.1, 0.1, 0.1), xform=gpusim.Transform((length, 0, 0)), label="bob")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user with a machine in YAML and in Python."""
    monkeypatch.chdir(tmp_path)
    Path("pendulum.yaml").write_text(YAML)
    Path("pendulum.py").write_text(PYTHON)
    Path("parts.py").write_text(PARTS)
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    for name in ("parts", "pendulum"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("double_pendulum", None),
        ("a.urdf", "model"),
        ("A.XML", "model"),
        ("a/b.sdf", "model"),
        ("a.yaml", "machine"),
        ("a.py", "python"),
        ("a/b.py:build", "python"),
        ("package.module:build", "python"),
        ("a.npz", None),
        ("module:", None),
    ],
)
def test_kinds(target: str, kind: str | None) -> None:
    assert kind_of(target) == kind


@pytest.mark.parametrize("target", ["pendulum.yaml", "pendulum.py", "pendulum.py:build", "pendulum:build"])
def test_run(cli, folder: Path, target: str) -> None:
    result = cli("run", target, "--backend", FASTEST, "--set", "mass=3", "--out", "run.npz")
    assert result.exit_code == 0, result.output
    assert "0.1 s in 50 steps" in result.stdout
    assert np.load("run.npz")["joint.hinge.position"].shape[0] == 51
    body = load_target(RunOptions(target, settings=("mass=3",))).builder.bodies[0]
    assert body.mass == 3.0


def test_xacro_arguments_and_postures_of_an_srdf_file(cli, folder: Path, arm: Path) -> None:
    pytest.importorskip("xacro")
    name, argument = '<robot name="arm"', '<xacro:arg name="at" default="1"/>'
    text = arm.read_text().replace(name, f'{name} xmlns:xacro="http://www.ros.org/wiki/xacro"')
    text = text.replace('xyz="1 0 0"/><parent', 'xyz="$(arg at) 0 0"/><parent')
    Path("arm.urdf.xacro").write_text(text.replace(">", f">{argument}", 1))
    state = '<group_state name="up" group="all"><joint name="shoulder" value="0.7"/></group_state>'
    Path("arm.srdf").write_text(f'<robot name="arm">{state}</robot>')
    given = ("--signals", "joint.shoulder.position,body.slide.position", "--duration", "0.1", "--backend", FASTEST)
    result = cli("run", "arm.urdf.xacro", "--set", "at=2", "--pose", "up", "--out", "run.npz", *given)
    assert result.exit_code == 0, result.output
    run = np.load("run.npz")
    assert run["joint.shoulder.position"][0].item() == pytest.approx(0.7)
    assert np.linalg.norm(run["body.slide.position"][0]) == pytest.approx(2.0)
    listed = cli("list", "arm.urdf.xacro").stdout
    assert "Postures: up" in listed and "--set NAME=VALUE: at" in listed
    options = RunOptions("arm.urdf.xacro", settings=("at=2",), pose="up")
    assert with_parameters(RunOptions("arm.urdf.xacro"), target_parameters(options)) == options
    result = cli("run", "arm.urdf.xacro", "--set", "ab=2")
    assert result.exit_code == 2 and names(result.stderr, "argument 'ab' 'at'"), result.output


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["pendulum.yaml", "pendulum.py", "pendulum:build"])
def test_postures(cli, folder: Path, target: str) -> None:
    signals = ("--signals", "joint.hinge.position,servo.drive.target")
    result = cli("run", target, "--backend", FASTEST, "--pose", "home", "--out", "run.npz", *signals)
    assert result.exit_code == 0, result.output
    run = np.load("run.npz")
    assert run["joint.hinge.position"].ravel()[0] == pytest.approx(0.4)
    assert run["servo.drive.target"].ravel()[-1] == pytest.approx(0.3)
    assert cli("check", target, "--backend", FASTEST, "--pose", "home").exit_code == 0
    assert cli("check", target, "--backend", FASTEST, "--pose", "hone").exit_code == 2
    options = RunOptions(target, settings=("mass=3",), pose="home")
    assert with_parameters(RunOptions(target), target_parameters(options)) == options


def test_all_kinds_are_one_machine(folder: Path) -> None:
    made = [load_target(RunOptions(target)).builder for target in ("pendulum.yaml", "pendulum.py", "pendulum:build")]
    assert made[0].to_dict() == made[1].to_dict() == made[2].to_dict()


def test_builders_and_seeds(cli, folder: Path) -> None:
    assert cli("run", "pendulum.py:bare", "--backend", FASTEST, "--duration", "0.01").exit_code == 0
    assert load_target(RunOptions("pendulum.py", seed=4)).builder.bodies[0].mass == 6.0
    result = cli("run", "pendulum.yaml", "--backend", FASTEST, "--seed", "4")
    assert result.exit_code == 0 and "--seed changes nothing" in result.stderr


def test_models_without_moving_bodies(cli, folder: Path, arm: Path) -> None:
    pytest.importorskip("mujoco")
    post = '<mujoco><worldbody><body name="post"><geom size="1"/></body></worldbody></mujoco>'
    Path("post.xml").write_text(post)
    Path("ground.xml").write_text(post.replace("<body", "<frame").replace("</body", "</frame").replace("post", "x"))
    for command in ("check post.xml", "run post.xml", "check ground.xml"):
        result = cli(*command.split())
        assert result.exit_code == 2 and names(result.stderr, "fixed world --floating"), result.output
    assert cli("check", "post.xml", "--floating", "--backend", FASTEST).exit_code == 0
    result = cli("check", "ground.xml", "--floating", "--backend", FASTEST)
    assert result.exit_code == 2 and names(result.stderr, "fixed world bodies"), result.output
    assert "visual" not in cli("list", arm).stdout


def test_models_without_moving_bodies_are_listed_and_drawn(cli, folder: Path) -> None:
    pytest.importorskip("mujoco")
    box = '<geom type="box" size="1 1 1" rgba="1 0 0 1"/>'
    Path("post.xml").write_text(f'<mujoco><worldbody><body name="post">{box}</body></worldbody></mujoco>')
    Path("post.yaml").write_text("add:\n  - shape_box: {body: world, half_extents: [1, 1, 1], color: '#ff0000'}\n")
    for file in ("post.xml", "post.yaml"):
        result = cli("list", file)
        assert result.exit_code == 0 and "0 bodies" in result.stdout and "1 box" in result.stdout, result.output
        require_egl()
        result = cli("render", file, "--size", "64x36", "--quality", "software", "--out", "post.png")
        assert result.exit_code == 0, result.output
        red, green, _ = load_picture("post.png")[18, 32].astype(int)
        assert red > green + 50


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("run pendulum.py:nothing", "nothing int Scene"),
        ("run pendulum.py:broken", "line 28 ZeroDivisionError"),
        ("run pendulum.py:bild", "'bild' 'build'"),
        ("run pendulum:bild", "'bild' 'build'"),
        ("run nothing_here:build", "nothing_here"),
        ("run missing.py", "missing.py exist"),
        ("run missing.yaml", "missing.yaml exist"),
        ("run pendulum.py --set mas=1", "'mas' 'mass'"),
        ("run pendulum.py --set mass=heavy", "mass heavy"),
        ("run pendulum.yaml --set mas=1", "'mas' 'mass'"),
        ("run pendulum.yaml --pose hone", "pose 'hone' 'home'"),
        ("run double_pendulum --pose home", "pose 'home'"),
        ("run pendulum.py --floor", "--floor model"),
        ("run double_pendulum --floating", "--floating scene"),
        ("run {arm} --fixed-base --floating", "--fixed-base --floating"),
        ("run {arm} --set mass=1", "--set 'mass'"),
        ("diagram {arm}", "model diagrams"),
        ("list missing.yaml", "missing.yaml exist"),
        ("run syntax.py", "syntax.py line 2 SyntaxError"),
    ],
)
def test_errors(cli, folder: Path, arm: Path, arguments: str, reported: str) -> None:
    Path("syntax.py").write_text("x = 1\nif:\n")
    result = cli(*arguments.format(arm=arm.name).split())
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    assert names(result.stderr, reported), result.stderr


@pytest.mark.parametrize("target", ["pendulum.yaml", "pendulum.py:build", "pendulum:build"])
def test_motions_are_played(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    options = RunOptions(target, settings=("mass=3",))
    scene = load_target(options)
    sim = Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    given = {"target": recorded_target(options), "parameters": target_parameters(options)}
    with MotionRecorder(sim, folder / "motion.npz", **given) as recorder:
        for _ in range(20):
            sim.step()
            recorder.sample(sim.time)
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    again = scene_of(recorded_motion("../motion.npz"), "../motion.npz")
    assert again.builder.to_dict() == scene.builder.to_dict()


def test_motions_of_models_keep_their_options(folder: Path, arm: Path) -> None:
    options = RunOptions(str(arm), floating=True, floor=True)
    scene = load_target(options, visuals=False)
    sim = Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    given = {"target": recorded_target(options), "parameters": target_parameters(options)}
    with MotionRecorder(sim, "motion.npz", **given) as recorder:
        recorder.sample(sim.time)
    arm.rename(folder / "moved.urdf")
    Path("motions").mkdir()
    Path("motion.npz").rename("motions/motion.npz")
    (folder / "moved.urdf").rename("motions/arm.urdf")
    again = scene_of(recorded_motion("motions/motion.npz"), "motions/motion.npz")
    assert again.builder.to_dict() == scene.builder.to_dict()
    assert [shape.label for shape in again.builder.shapes] == ["floor"]


def test_replays(cli, folder: Path) -> None:
    options = RunOptions("pendulum.yaml", settings=("mass=3",))
    scene = load_target(options)
    sim = Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    operator = Operator(sim, scene, parameters=target_parameters(options))
    operator.record("drive.jsonl")
    for k in range(30):
        if k == 5:
            operator.set("drive", 0.5)
        operator.before_steps(sim.time)
        sim.step()
    operator.stop_recording()
    common = ("run", "pendulum.yaml", "--backend", FASTEST, "--replay", "drive.jsonl")
    assert cli(*common, "--set", "mass=3").exit_code == 0
    result = cli(*common)
    assert result.exit_code == 2 and names(result.stderr, "mass 3 same options"), result.stderr
    replay = Replay(Path("drive.jsonl"), OperatorRecording.load("drive.jsonl"))
    again = Simulation(load_target(options).builder.finalize(), backend=FASTEST, config=scene.config)
    replayed = replay.operator(again, scene)
    for _ in range(30):
        replayed.before_steps(again.time)
        again.step()
    assert bits(again, 0) == bits(sim, 0)


def test_list(cli, folder: Path, arm: Path) -> None:
    result = cli("list", "pendulum.yaml")
    assert result.exit_code == 0, result.output
    for text in ("1 bodies, 2 kg", "hinge", "revolute", "drive", "-1 to 1", "mass, length"):
        assert text in result.stdout, text
    result = cli("list", "pendulum.py")
    assert "Parameters, for --set NAME=VALUE: mass, length, seed" in result.stdout
    result = cli("list", arm)
    assert "-0.2 to 0.2" in result.stdout and "shoulder" in result.stdout
    ball = "  - joint_ball: {parent: world, child: bob, limit: 0.5, cone_limit: 0.25}"
    Path("ball.yaml").write_text("\n".join((*YAML.splitlines()[:4], ball)))
    result = cli("list", "ball.yaml")
    assert "rotation up to 0.5, cone up to 0.25" in " ".join(result.stdout.split()), result.output


def test_bench(cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.cli.commands.bench_target._QUICK_SECONDS", 0.01)
    monkeypatch.setattr("gpusim.cli.commands.bench_target.NUM_WORLDS", (1, 2))
    result = cli("bench", "pendulum.yaml", "--quick", "--backend", "numpy", "--dtype", "float64")
    assert result.exit_code == 0, result.output
    assert "pendulum: 1 bodies, steps of 0.002 s" in result.stdout and "numpy" in result.stdout


@pytest.mark.nightly
@pytest.mark.native
def test_bench_shows_the_stages(cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.cli.commands.bench_target._QUICK_SECONDS", 0.01)
    monkeypatch.setattr("gpusim.cli.commands.bench_target.NUM_WORLDS", (1,))
    result = cli("bench", "pendulum.yaml", "--quick", "--profile", "--backend", "native", "--dtype", "float64")
    assert result.exit_code == 0, result.output
    rows = [line.split("│") for line in result.stdout.splitlines() if line.count("│") == 5]
    shares = {row[1].strip(): float(row[3].strip().rstrip("%")) for row in rows if "%" in row[3]}
    assert {"solve", "prepare"} <= set(shares) and 90.0 < sum(shares.values()) < 110.0
    refused = cli("bench", "pendulum.yaml", "--quick", "--profile", "--backend", "numpy", "--dtype", "float64")
    assert refused.exit_code == 2 and "profile" in refused.stderr


def test_the_floor_touches_the_model() -> None:
    b = ModelBuilder()
    body = b.add_body(xform=Transform.from_axis_angle((0, 0, 1), (1, 0, 0), 0.3))
    b.add_shape_box(body, (0.1, 0.2, 0.3))
    assert lowest_point(b) == pytest.approx(1.0 - 0.2 * np.sin(0.3) - 0.3 * np.cos(0.3), abs=1e-12)
    b.add_shape_sphere(body, 0.1, xform=Transform((0, 0, -0.5)))
    true = 1.0 - 0.5 * np.cos(0.3) - 0.1
    assert true - 1e-3 < lowest_point(b) <= true
    add_floor(b)
    assert b.shapes[-1].kind == "plane"
    assert b.shapes[-1].xform.position[2] == lowest_point(b)


@pytest.mark.nightly
def test_a_floating_robot_falls_onto_the_floor(cli, folder: Path) -> None:
    solid = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    shape = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    Path("stone.urdf").write_text(f'<robot name="stone"><link name="a">{solid}{shape}</link></robot>')
    for options, height in (((), 0.0), (("--floating",), -0.19), (("--floating", "--floor"), 0.0)):
        given = ("--duration", "0.2", "--backend", FASTEST, "--signals", "body.a.position", "--out", "run.npz")
        result = cli("run", "stone.urdf", *options, *given)
        assert result.exit_code == 0, result.output
        assert abs(np.load("run.npz")["body.a.position"][-1, 0, 2] - height) < 0.01


def test_findings_are_few_and_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    report = ImportReport("r.xml", "r", "a", None, True)
    for k in range(12):
        report.add("look", f"material 'm{k}'", f"shine {'x' * k} is dropped")
    report.add("motion", "joint 'knee'", "spring is dropped", "it swings freely", "add one")
    show_findings(report, "r.xml")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "gpusim: warning: motion: joint 'knee': spring is dropped; it swings freely; add one"
    assert len(lines) == 11
    assert lines[-1] == "gpusim: 3 more findings; see 'gpusim check r.xml'"
