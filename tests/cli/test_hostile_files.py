from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import gpusim
from gpusim import input_files
from gpusim.control import Diagram
from tests.message_snapshot import names, naming

HEAD: dict[str, Any] = {
    "format": "gpusim operator recording", "version": 1, "scene": "hydraulic_lift", "parameters": {}, "dt": 0.001,
    "time": 0.0, "solver": {}, "inputs": ["lift", "lift.brake"],
}  # fmt: skip
MOTION = {
    "target": "double_pendulum", "parameters": {}, "bodies": ["rod1", "rod2"], "worlds": [0], "rate": 60.0,
    "fixed_base": False, "format": "gpusim motion 1", "signals": {"a": 10**12},
}  # fmt: skip


def one_sentence(result: Any, words: str) -> None:
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit), result.output
    assert len(result.stderr.splitlines()) == 1 and len(result.stderr) < 2000
    assert names(result.stderr, words), result.stderr


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["[" * 100_000], "1"),
        ([json.dumps(HEAD), "[" * 100_000], "2"),
        ([json.dumps(HEAD | {"dt": float("nan")})], "dt nan"),
        ([json.dumps(HEAD | {"dt": 0.0})], "dt 0"),
        ([json.dumps(HEAD | {"dt": -1e308})], "dt -1e+308"),
        ([json.dumps(HEAD | {"dt": 10**400})], "1"),
        ([json.dumps(HEAD | {"time": float("inf")})], "time inf"),
        ([json.dumps(HEAD), '{"step": 0, "set": null}'], "2"),
        ([json.dumps(HEAD), '{"step": 0, "set": [1]}'], "2 1"),
    ],
)
def test_operator_recordings(cli, tmp_path: Path, lines: list[str], words: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    one_sentence(cli("run", "hydraulic_lift", "--replay", path, "--backend", "numpy"), words)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("option", ["--replay", "--mapping", "diagram"])
def test_files_that_never_end_are_not_read(cli, tmp_path: Path, option: str, monkeypatch) -> None:
    name = {"--replay": "a.jsonl", "--mapping": "a.json", "diagram": "a.yaml"}[option]
    pipe, link, long = (tmp_path / kind / name for kind in ("pipe", "link", "long"))
    for path in (pipe, link, long):
        path.parent.mkdir()
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    long.write_text(" " * 200)
    monkeypatch.setattr(input_files, "MAX_TEXT", 100)
    for path in (pipe, link, long):
        command = "run" if option == "--replay" else "view"
        words = ["diagram", path] if option == "diagram" else [command, "hydraulic_lift", option, path]
        one_sentence(cli(*words), path.name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a + ...", "'d' 'e' Ellipsis"),
        ("a + " + "9" * 400, "'d' 'e' 1e+300"),
        ("a + 1e400", "'d' 'e' 1e+300"),
        ("sin + a", "'d' 'e' 'sin'"),
        ("+".join(["a"] * 2000), "'d' 'e' 200"),
        ("-" * 3000 + "a", "'d' 'e'"),
        ("-" * 90_000 + "a", "'d' 'e'"),
        ("not " * 500 + "a", "'d' 'e' 200"),
        ("a" + " if a else a" * 500, "'d' 'e' 200"),
    ],
)
def test_formulas_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(gpusim.ModelError, match=naming(words)) as error:
        run_formula(text)
    assert len(str(error.value)) < 500


def test_long_formulas_run() -> None:
    run_formula("(" * 150 + "a" + ")" * 150)
    run_formula("abs(" * 150 + "a" + ")" * 150)


def run_formula(text: str) -> None:
    d = Diagram("d")
    d.add("constant", "a", value=2.0)
    d.connect("a", d.add("expression", "e", text=text, names=["a"]))
    b = gpusim.ModelBuilder()
    b.add_body(1.0, (1.0, 1.0, 1.0))
    b.add_diagram(d)
    gpusim.Simulation(b.finalize(), backend="numpy").step()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label: d\nblocks: {b: {kind: gain, gain: " + "[" * 110 + "1" + "]" * 110 + "}}", ""),
        ("label: d\nblocks: {b: {kind: gain, gain: " + "[" * 9000 + "1" + "]" * 9000 + "}}", ""),
        ("label: d\nblocks: {a: {kind: gain, gain: 1.0, unit: '" + "^".join(["m"] * 400) + "'}}", ""),
        ("label: d\nblocks: {a: {kind: gain, gain: 1.0, unit: '" + "m" * 4000 + "'}}", ""),
        ('label: "a\\0b"\nblocks: {a: {kind: constant, value: 1.0}}', ""),
        ('label: d\nblocks: {"\\ud800": {kind: constant, value: 1.0}}', ""),
        ('label: d\nblocks: {"a\\x1bb": {kind: constant, value: 1.0}}', ""),
    ],
)
def test_diagrams(cli, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    one_sentence(cli("diagram", path, "--out", tmp_path / "a.svg"), words)


@pytest.mark.parametrize("label", ["a\0b", "\ud800", "a\x1bb", "a\u202eb", "a\x7f", "a\u2028b"])
def test_labels_that_no_file_could_hold(label: str) -> None:
    b = gpusim.ModelBuilder()
    with pytest.raises(gpusim.ModelError):
        b.add_body(1.0, (1.0, 1.0, 1.0), label=label)
    b.add_body(1.0, (1.0, 1.0, 1.0), label="ü€😀")


@pytest.mark.parametrize("line", [json.dumps(MOTION), "[" * 100_000])
def test_motions(cli, tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.npz.part"
    path.write_text(line + "\n" + " " * 300)
    one_sentence(cli("render", path, "--out", tmp_path / "a.png"), "a.npz.part")


def test_mapping_files(cli, tmp_path: Path) -> None:
    for name, text in (("a.json", "[" * 100_000), ("a.toml", "a = " + "[" * 100_000)):
        (tmp_path / name).write_text(text)
        one_sentence(cli("view", "hydraulic_lift", "--mapping", tmp_path / name), name)


def test_a_robot_of_absurd_mass(cli, tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    mass = '<mass value="1e308"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    path = tmp_path / "a.urdf"
    path.write_text(f'<robot name="r"><link name="a"><inertial>{mass}</inertial></link></robot>')
    one_sentence(cli("run", path, "--duration", 0.01), "'a' mass 1e+308")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("run double_pendulum --duration 1e308", "--duration 1e+308 1e+15"),
        ("run double_pendulum --dt 1e-308", "--duration 10 1e+15"),
        ("render double_pendulum --time 1e308 --out a.png", "--time 1e+308"),
        ("render double_pendulum --duration 1e308 --out a.mp4", "--duration 1e+308"),
        (f"run double_pendulum --substeps {'9' * 23}", "substeps 1000000"),
        (f"run double_pendulum --iterations {2**31}", "iterations 1000000"),
        ("run omni_vehicle --set distance=1e308", ""),
        (f"run {'x' * 100_000}", ""),
    ],
)
def test_numbers_that_no_computer_has(cli, tmp_path: Path, monkeypatch, options: str, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    if ".mp4" in options:
        pytest.importorskip("imageio_ffmpeg")
    one_sentence(cli(*options.split()), words)


def test_a_rate_of_nothing_writes_both_ends(cli, tmp_path: Path) -> None:
    result = cli("run", "double_pendulum", "--duration", 0.01, "--out", tmp_path / "a.npz", "--rate", "1e-308")
    assert result.exit_code == 0, result.output


@pytest.mark.nightly
@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_names_that_no_folder_takes(cli, tmp_path: Path, option: str) -> None:
    ending = ".npz" if option == "--out" else ".png"
    for length in (250, 300):
        name = tmp_path / ("n" * (length - len(ending)) + ending)
        one_sentence(cli("run", "double_pendulum", "--duration", 0.01, option, name), f"{option} 240")
    fits = tmp_path / ("n" * (240 - len(ending)) + ending)
    assert cli("run", "double_pendulum", "--duration", 0.01, option, fits).exit_code == 0 and fits.is_file()
    os.mkfifo(pipe := tmp_path / f"pipe{ending}")
    one_sentence(cli("run", "double_pendulum", "--duration", 0.01, option, pipe), f"{option} pipe{ending}")
