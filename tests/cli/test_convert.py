from __future__ import annotations

import json

import pytest

from gpusim.importers.load import load


def test_a_scene_becomes_mjcf(cli, tmp_path):
    pytest.importorskip("mujoco")
    out = tmp_path / "pendulum.xml"
    result = cli("convert", "double_pendulum", out)
    assert result.exit_code == 0 and "2 bodies, 2 joints" in result.stdout
    assert len(load(out)[0].bodies) == 2
    assert '<mujoco model="double_pendulum">' in out.read_text()


def test_a_robot_becomes_usd_and_comes_back(cli, tmp_path, arm):
    pytest.importorskip("yourdfpy")
    pytest.importorskip("pxr")
    out = tmp_path / "arm.usda"
    result = cli("convert", arm, out)
    assert result.exit_code == 0 and "arm.urdf" in result.stdout and str(out) in result.stdout
    read, _ = load(arm)
    again, _ = load(out)
    assert {body.label: round(body.mass, 5) for body in again.bodies} == {
        b.label: round(b.mass, 5) for b in read.bodies
    }
    third = tmp_path / "arm.xml"
    assert cli("convert", out, third, "--floating").exit_code == 0
    assert f'<mujoco model="{load(arm)[1].robot_name}">' in third.read_text()


def test_json_has_both_reports(cli, tmp_path):
    result = cli("convert", "hydraulic_lift", tmp_path / "lift.xml", "--json")
    content = json.loads(result.stdout)
    assert content["import"] is None and content["export"]["exact"] is False
    assert "cylinder" in content["export"]["findings"][0]["what"]


def test_strict_writes_nothing_that_is_not_exact(cli, tmp_path):
    out = tmp_path / "lift.xml"
    result = cli("convert", "hydraulic_lift", out, "--strict")
    assert result.exit_code == 2 and "no cylinder" in result.stderr and not out.exists()


BAD = {
    "suffix": (("chain", "out.urdf"), "must end in .xml"),
    "scene": (("chainn", "out.xml"), "did you mean 'chain'"),
    "file": (("missing.xml", "out.xml"), "there is no file"),
    "folder": (("chain", "no/out.xml"), "does not exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(cli, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    arguments, words = BAD[name]
    result = cli("convert", *arguments)
    assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1


MACHINE = """
models: [{file: arm.urdf, label_prefix: one_}]
add:
  - body: {label: crate, mass: 2, inertia: [1, 1, 1], xform: [3, 0, 1]}
"""
PYTHON = """
from gpusim.machine_files import load_machine

def build():
    return load_machine("machine.yaml")
"""


@pytest.mark.parametrize("source", ["machine.yaml", "machine.py", "machine.py:build", "convertible_machine:build"])
def test_machines_become_mjcf(source, cli, tmp_path, arm, monkeypatch):
    pytest.importorskip("mujoco")
    pytest.importorskip("yourdfpy")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machine.yaml").write_text(MACHINE)
    for name in ("machine.py", "convertible_machine.py"):
        (tmp_path / name).write_text(PYTHON)
    result = cli("convert", source, "out.xml", "--json")
    assert result.exit_code == 0, result.output
    read = json.loads(result.stdout)["import"]
    assert set(read["joints"]) == {"one_shoulder", "one_rail"}
    assert [body.label for body in load(tmp_path / "out.xml")[0].bodies] == ["one_upper", "one_slide", "crate"]
    assert cli("convert", source, "out.xml", "--floating").exit_code == 2
