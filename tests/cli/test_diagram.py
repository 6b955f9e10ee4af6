from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import Result

from gpusim import ModelBuilder, SolverConfig
from gpusim.control import Diagram
from gpusim.scene import Scene

Cli = Callable[..., Result]


def lift(label: str, driven: str) -> Diagram:
    d = Diagram(label, rate=200.0)
    d.connect(d.add("input", f"{label}_height", lower=0.0, unit="m"), d.add("sum", "error", signs="+-")["a"])
    d.connect("signal:joint.rail.position", "error.b")
    d.connect("error", d.add("gain", "law", gain=20.0))
    d.connect("law", f"command:{driven}")
    return d


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1), label="cart")
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    for name in ("push", "hold"):
        b.add_servo(rail, stiffness=5.0, damping=1.0, label=name)
    b.add_diagram(lift("left", "push"))
    b.add_diagram(lift("right", "hold"))
    made = Scene("chain", "two diagrams", b, SolverConfig(dt=0.01), 1.0)
    monkeypatch.setattr("gpusim.cli.commands.diagram.load_target", lambda *given, **more: made)


def said(result: Result) -> str:
    assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def test_a_file_is_drawn(cli: Cli, tmp_path: Path) -> None:
    lift("left", "push").save(tmp_path / "left.yaml")
    result = cli("diagram", tmp_path / "left.yaml", "--out", tmp_path / "left.svg")
    assert result.exit_code == 0 and "wrote" in result.stderr
    texts = [t.text for t in ElementTree.parse(tmp_path / "left.svg").getroot().iter()]
    assert {"left_height", "error", "law", "push"} <= set(texts)


def test_a_list_names_signals_of_blocks_that_read_several(cli: Cli, tmp_path: Path) -> None:
    d = Diagram("both")
    d.add("signal", "at", signal=["joint.rail.position", "joint.rail.velocity"])
    d.connect("at", d.add("select_element", "first", index=0))
    d.connect("first", "command:push")
    d.save(tmp_path / "both.yaml")
    result = cli("diagram", tmp_path / "both.yaml")
    assert result.exit_code == 0, result.output
    assert "position" in result.output and "velocity" in result.output


def test_a_scene_with_several_needs_a_label(cli: Cli, scene: None, tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    assert "has several diagrams (left, right); choose one, as --label left" in said(
        cli("diagram", "chain", "--out", out)
    )
    assert "unknown diagram 'lefd'; did you mean 'left'" in said(cli("diagram", "chain", "--label", "lefd"))
    assert cli("diagram", "chain", "--label", "right", "--out", out).exit_code == 0
    assert ">right_height<" in out.read_text()


def test_a_scenes_diagram_is_written_to_a_file(cli: Cli, scene: None, tmp_path: Path) -> None:
    assert cli("diagram", "chain", "--label", "left", "--out", tmp_path / "left.yaml").exit_code == 0
    assert Diagram.load(tmp_path / "left.yaml").driven == ["push"]


def test_without_out_they_are_listed(cli: Cli, scene: None) -> None:
    result = cli("diagram", "chain")
    assert result.exit_code == 0
    words = " ".join(result.stdout.replace("│", " ").split())
    assert "left 200" in words and "right 200" in words and "hold" in words
    assert "right 200" not in " ".join(cli("diagram", "chain", "--label", "left").stdout.replace("│", " ").split())


def test_what_is_wrong_is_reported(cli: Cli, tmp_path: Path, arm: Path) -> None:
    (tmp_path / "bad.yaml").write_text("label: d\nblocks:\n  a: {kind: gian}\n")
    bad = tmp_path / "bad.yaml"
    assert "line 3, block 'a': unknown kind of block 'gian'" in said(cli("diagram", bad))
    assert "check the path" in said(cli("diagram", tmp_path / "none.yaml"))
    assert "--out: 'x.png' must end in .svg or .yaml" in said(cli("diagram", bad, "--out", "x.png"))
    assert "--set: a diagram's file has no parameters" in said(cli("diagram", bad, "--set", "a=1"))
    assert "is a model file, which has no diagrams" in said(cli("diagram", arm))
    assert "scene 'chain' has no diagrams; give one" in said(cli("diagram", "chain"))
    assert "unknown scene 'chian'" in said(cli("diagram", "chian"))
