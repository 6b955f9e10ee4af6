"""``gpusim check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.backends import FASTEST
from tests.message_snapshot import names

STONE = """\
<robot name="stone"><link name="a"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>
"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.cli.commands.check.SECONDS", 0.05)


def test_a_good_robot(cli, arm: Path) -> None:
    result = cli("check", arm, "--backend", FASTEST)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"{arm}: fine, no findings"
    assert lines[1:3] == ["import: nothing was lost", "lint: nothing suspicious"]
    assert lines[3].startswith("run: fine, 0.05 s in 50 steps of 0.001 s, joints within")
    assert len(lines) == 4 and not result.stderr


def test_findings_fail_a_strict_check(cli, tmp_path: Path) -> None:
    text = """
add:
  - body: {label: bob, mass: 1, inertia: [1, 1, 1]}
  - joint_revolute: {label: hinge, parent: world, child: bob, axis: [0, 1, 0], limit_lower: 0.1, limit_upper: 0.2}
"""
    file = tmp_path / "pendulum.yaml"
    file.write_text(text)
    result = cli("check", file, "--backend", FASTEST)
    assert result.exit_code == 0 and "  motion: joint 'hinge': starts at 0, outside of 0.1 to 0.2" in result.stdout
    result = cli("check", file, "--backend", FASTEST, "--strict")
    assert result.exit_code == 1 and ": failed, " in result.stdout.splitlines()[0]


def test_failed_runs(cli, tmp_path: Path) -> None:
    text = """
add:
  - body: {label: bar, mass: 1, inertia: [1, 1, 1]}
  - for: {n: [left, right], x: [-0.5, 0.5]}
    add:
      - joint_ball: {label: "{n}", parent: world, child: bar, parent_xform: [= 2 * x, 0, 0], child_xform: [= x, 0, 0]}
"""
    (tmp_path / "bar.yaml").write_text(text)
    result = cli("check", tmp_path / "bar.yaml", "--backend", FASTEST)
    assert result.exit_code == 1
    assert ": failed, " in result.stdout.splitlines()[0]
    assert "it cannot close: 0.5 remains" in result.stdout and "run: failed" in result.stdout


def test_turned_joints_fail(cli, tmp_path: Path) -> None:
    text = """
add:
  - body: {label: bar, mass: 1, inertia: [1, 1, 1]}
  - joint_fixed: {label: straight, parent: world, child: bar}
  - joint_fixed: {label: turned, parent: world, child: bar, parent_xform: {rotation: [0, 0, 0.05, 0.99875]}}
"""
    (tmp_path / "bar.yaml").write_text(text)
    result = cli("check", tmp_path / "bar.yaml", "--backend", FASTEST)
    assert result.exit_code == 1, result.output
    assert "a locked rotation of a joint has an error of 0." in result.stdout and "m apart" not in result.stdout


def test_plots_of_missing_signals(cli, tmp_path: Path) -> None:
    file = tmp_path / "plots.yaml"
    plot = "plots: [{title: height, unit: m, signals: [body.z.position]}]"
    file.write_text(f"add:\n  - body: {{label: bob, mass: 1, inertia: [1, 1, 1]}}\n{plot}\n")
    result = cli("check", file, "--backend", FASTEST)
    assert result.exit_code == 1 and names(result.stdout, "plot 'height' signal 'body.z.position'"), result.output
    result = cli("run", file, "--backend", FASTEST, "--plot", tmp_path / "plot.png")
    assert result.exit_code == 2 and names(result.stderr, "plot 'height' signal 'body.z.position'"), result.output


def test_json(cli, tmp_path: Path) -> None:
    (tmp_path / "stone.urdf").write_text(STONE)
    result = cli("check", tmp_path / "stone.urdf", "--floating", "--backend", FASTEST, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["verdict"] == "fine, 1 finding" and found["failures"] == []
    assert found["import"]["robot_name"] == "stone"
    assert found["lint"][0]["effect"] == "they fall forever"
    assert found["run"]["steps"] == 50 and found["against"] is None
    result = cli("check", tmp_path / "stone.urdf", "--floating", "--floor", "--backend", FASTEST, "--json")
    assert json.loads(result.stdout)["lint"] == []


def test_several_files(cli, arm: Path, tmp_path: Path) -> None:
    (tmp_path / "stone.urdf").write_text(STONE)
    files = arm, tmp_path / "missing.urdf", tmp_path / "stone.urdf"
    result = cli("check", *files, "--backend", FASTEST)
    assert result.exit_code == 2 and names(result.stderr, "missing.urdf exist"), result.output
    heads = [line for line in result.stdout.splitlines() if line.startswith(str(tmp_path)) or line.startswith(str(arm))]
    assert heads == [f"{arm}: fine, no findings", f"{tmp_path / 'stone.urdf'}: fine, no findings"]
    result = cli("check", *files, "--backend", FASTEST, "--json")
    found = json.loads(result.stdout)
    assert [item["target"] for item in found] == [str(file) for file in files]
    assert [item.get("verdict") for item in found] == ["fine, no findings", None, "fine, no findings"]
    assert names(found[1]["error"], "missing.urdf exist")


def test_against_mujoco(cli, arm: Path) -> None:
    pytest.importorskip("mujoco")
    result = cli("check", arm, "--backend", FASTEST, "--against", "mujoco")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("against mujoco: equal, 2 bodies, poses within")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("check missing.urdf", "missing.urdf exist"),
        ("check {arm} --against drake", "--against 'drake' mujoco"),
        ("check double_pendulum --against mujoco", "--against model"),
        ("check nonsense", "'nonsense'"),
        ("check {tmp}/broken.urdf", "broken.urdf"),
        ("check {tmp}/broken.yaml", "broken.yaml line 1"),
    ],
)
@pytest.mark.messages_vary
def test_unreadable(cli, arm: Path, tmp_path: Path, arguments: str, reported: str) -> None:
    (tmp_path / "broken.urdf").write_text("<robot><link/>")
    (tmp_path / "broken.yaml").write_text("add: {{")
    result = cli(*arguments.format(arm=arm, tmp=tmp_path).split())
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1 and names(result.stderr, reported), result.stderr


def test_reports_of_a_machine_file(cli, arm: Path, tmp_path: Path) -> None:
    file, robot = tmp_path / "two.yaml", tmp_path / "stone.urdf"
    robot.write_text(STONE.replace('ixx="0.1"', 'ixx="-0.1"'))
    file.write_text(f"""
models:
  - {{file: {robot}, label_prefix: p_, fixed_base: false, xform: [0, 0, 5]}}
  - {{file: {robot}, label_prefix: q_, fixed_base: false, xform: [0, 3, 5]}}
""")
    one = json.loads(cli("check", robot, "--floating", "--backend", FASTEST, "--json").stdout)["import"]
    two = json.loads(cli("check", file, "--backend", FASTEST, "--json").stdout)["import"]
    assert one["findings"] and len(two["findings"]) == 2 * len(one["findings"])
    elements = " ".join(finding["element"] for finding in two["findings"])
    assert "'p_a'" in elements and "'q_a'" in elements and set(two["shapes"]) == {"p_a", "q_a"}
    strict = cli("check", file, "--backend", FASTEST, "--strict")
    assert strict.exit_code == 1 and "\nimport: " in strict.stdout
    run = cli("run", file, "--backend", FASTEST, "--duration", "0.01")
    assert "warning: motion: link 'p_a'" in run.stderr, run.stderr


def test_not_compared_fails_a_strict_check(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "ball.xml"
    file.write_text('<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>')
    assert cli("check", file, "--against", "mujoco", "--strict").exit_code == 0
    monkeypatch.setattr("gpusim.lint.compare._Pair._carrier", lambda pair, j: None)
    assert cli("check", file, "--against", "mujoco").exit_code == 0
    result = cli("check", file, "--against", "mujoco", "--strict")
    assert result.exit_code == 1 and "'joint0' of MuJoCo's joints have no counterpart in gpusim" in result.stdout


@pytest.mark.parametrize("arguments", [("missing.urdf",), ("missing.urdf", "--unknown")])
def test_errors_as_json(cli, arguments: tuple[str, ...]) -> None:
    result = cli("check", *arguments, "--json")
    assert result.exit_code == 2
    assert result.stderr == f"gpusim: {json.loads(result.stdout)['error']}\n"
