"""Command lines that can't work: one clear sentence on stderr, exit code 2, no traceback, no step done."""

from __future__ import annotations

import pytest

import gpusim

SCENE = "double_pendulum"

# command line (after "gpusim"; {tmp} is an empty folder) and what the sentence must say
BAD_LINES = [
    # commands and arguments
    ("simulate", ["simulate"]),
    ("run", ["SCENE|FILE"]),
    ("run a b", ["b"]),
    ("--speed", ["--speed"]),
    (f"run {SCENE} --speed 3", ["--speed"]),
    (f"run {SCENE} --dt", ["--dt", "argument"]),
    # scenes and files
    ("run double_pendulm", ["scene", "double_pendulm", "did you mean", "double_pendulum"]),
    ("run xyzzy", ["scene", "xyzzy", "known", "hydraulic_lift"]),
    ("list double_pendulm", ["scene", "double_pendulum"]),
    ("run _bodies", ["scene", "_bodies"]),
    ("run {tmp}/none.urdf", ["none.urdf", "does not exist", "path"]),
    ("run {tmp}/robot.xml", ["robot.xml", ".urdf"]),
    ("run robots/arm", ["robots/arm", ".urdf"]),
    ("run {tmp}", [".urdf"]),
    # --set
    (f"run {SCENE} --set masss1=2", ["parameter", "masss1", "mass1"]),
    (f"run {SCENE} --set xyzzy=2", ["parameter", "xyzzy", "length1", "angle2", "damping"]),
    (f"run {SCENE} --set xyzzy=2", ["--set", SCENE, f"see 'gpusim list {SCENE}'"]),
    (f"run {SCENE} --set mass1", ["--set", "mass1", "name=value", "--set mass=100"]),
    (f"run {SCENE} --set =3", ["--set", "name=value"]),
    (f"run {SCENE} --set mass1=heavy", ["mass1", "a finite number", "heavy"]),
    (f"run {SCENE} --set mass1=nan", ["mass1", "a finite number", "nan"]),
    (f"run {SCENE} --set mass1=-1", ["mass1", "above 0", "-1"]),
    (f"run {SCENE} --set mass1=", ["mass1", "a finite number"]),
    (f"run {SCENE} --set mass1=1 --set mass1=2", ["--set", "mass1", "twice"]),
    ("run bricard --set width=1e308", ["bricard", "width=1e+308", "too large", "give other values"]),
    ("run boom_crane --set length=1e308", ["boom_crane", "length=1e+308", "too large"]),
    ("run chain --set link_length=1e308", ["chain", "link_length=1e+308", "too large"]),
    ("run chain --set links=99999999999999999999", ["links", "at most 10000", "99999999999999999999"]),
    ("run four_bar --set windows=1000000", ["windows", "at most 10000"]),
    ("run chrono_crane --set crane_mass=1e308", ["crane", "mass = 1e+308", "units"]),
    ("run hydraulic_lift --set variant=sideways", ["variant", "step", "closed_center", "sideways"]),
    # numbers
    (f"run {SCENE} --dt 0", ["--dt", "above 0", "got 0", "--dt 0.001"]),
    (f"run {SCENE} --dt -0.001", ["--dt", "above 0", "-0.001"]),
    (f"run {SCENE} --dt nan", ["--dt", "finite", "nan"]),
    (f"run {SCENE} --dt inf", ["--dt", "finite", "inf"]),
    (f"run {SCENE} --dt soon", ["--dt", "number"]),
    (f"run {SCENE} --duration 0", ["--duration", "above 0"]),
    (f"run {SCENE} --duration -3", ["--duration", "-3"]),
    (f"run {SCENE} --duration inf", ["--duration", "finite"]),
    (f"run {SCENE} --duration 0.0001 --dt 0.01", ["--duration", "shorter than one step", "0.01"]),
    (f"run {SCENE} --substeps 0", ["--substeps", "at least 1", "got 0"]),
    (f"run {SCENE} --substeps 1.5", ["--substeps", "integer"]),
    (f"run {SCENE} --iterations 0", ["--iterations", "at least 1"]),
    (f"run {SCENE} --iterations -4", ["--iterations", "at least 1", "-4"]),
    (f"run {SCENE} --num-worlds 0", ["--num-worlds", "at least 1"]),
    (f"run {SCENE} --num-worlds many", ["--num-worlds", "integer"]),
    (f"run {SCENE} --seed -1", ["--seed", "at least 0"]),
    # words
    (
        f"run {SCENE} --backend gpu",
        ["--backend 'gpu' is not one of auto, numpy, native, cuda; see 'gpusim run --help'"],
    ),
    (f"run {SCENE} --dtype float16", ["--dtype 'float16' is not one of float32, float64;"]),
    (f"run {SCENE} --joint-solver fast", ["--joint-solver 'fast' is not one of auto, direct, colored;"]),
    (f"run {SCENE} --scheme euler", ["--scheme 'euler' is not one of second_order, semi_implicit;"]),
    (f"run {SCENE} --scheme papers", ["--scheme 'papers' is not one of second_order, semi_implicit;"]),
    (f"run {SCENE} --substeps 1.5", ["--substeps must be a valid integer, got '1.5'"]),
    ("bench --backend gpu", ["--backend 'gpu' is not one of"]),
    # recordings
    ("run a.npz", ["a.npz", "a recording", "gpusim view", "gpusim render"]),
    (f"run {SCENE} --replay none.jsonl", ["none.jsonl", "No such file"]),
    # outputs
    (f"run {SCENE} --out run.txt", ["--out", "run.txt", ".npz", "run.npz"]),
    (f"run {SCENE} --out {{tmp}}/none/run.npz", ["--out", "none", "does not exist", "make it"]),
    (f"run {SCENE} --out {{tmp}}", ["--out", ".npz"]),
    (f"run {SCENE} --plot run.gif", ["--plot", "run.gif", ".png", ".pdf", ".svg"]),
    (f"run {SCENE} --plot run", ["--plot", ".png"]),
    (f"run {SCENE} --plot {{tmp}}/none/run.png", ["--plot", "does not exist"]),
    # signals
    (f"run {SCENE} --signals joint.hinge1.positon", ["--signals", "joint.hinge1.positon", "joint.hinge1.position"]),
    (f"run {SCENE} --signals joint.elbow*.position", ["--signals", "joint.elbow*.position"]),
    (f"run {SCENE} --signals ,", ["--signals", "empty"]),
    (f"run {SCENE} --signals sim.time --signals nothing", ["--signals", "nothing"]),
    # options of robot files
    (f"run {SCENE} --fixed-base", ["--fixed-base", SCENE, "drop"]),
    ("run {arm} --set mass=2", ["--set", "mass", "drop"]),
    ("run {arm} --signals joint.elbow.position", ["--signals", "joint.elbow.position"]),
]


@pytest.mark.parametrize(("line", "words"), BAD_LINES, ids=[line for line, _ in BAD_LINES])
def test_bad_command_lines_get_one_clear_sentence(cli, arm, tmp_path, monkeypatch, line: str, words: list[str]) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the simulation was started")

    monkeypatch.setattr(gpusim.Simulation, "step", refuse)
    result = cli(*line.format(tmp=tmp_path, arm=arm).split())
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    sentences = result.stderr.splitlines()
    assert len(sentences) == 1 and sentences[0].startswith("gpusim: "), result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in sentences[0]
    assert [file.name for file in tmp_path.iterdir()] == ["arm.urdf"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["broken.urdf"]),
        ("no xml at all", ["broken.urdf"]),
        ("<robot name='r'><link name='a'>", ["broken.urdf"]),
        ("<robot name='r'/>", ["link"]),
        ("<sdf version='1.6'/>", ["robot"]),
    ],
)
def test_broken_robot_files_get_one_clear_sentence(cli, tmp_path, text: str, words: list[str]) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text(text)
    result = cli("run", path)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_too_many_samples_for_the_memory_are_refused(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gpusim.cli.run._memory_limit", lambda: 1e6)
    result = cli("run", SCENE, "--num-worlds", "100", "--plot", tmp_path / "run.png")
    assert result.exit_code == 2
    assert "GiB of memory" in result.stderr and "fewer" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_too_many_worlds_for_the_memory_are_refused(cli, monkeypatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr("gpusim.simulation.Simulation.__init__", refuse)
    result = cli("run", SCENE, "--num-worlds", "1000000000000")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "memory" in result.stderr and "fewer worlds" in result.stderr


def test_errors_that_nobody_foresaw_keep_their_traceback(cli, monkeypatch) -> None:
    def crash(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("gpusim.cli.targets.load_scene", crash)
    result = cli("run", SCENE)
    assert isinstance(result.exception, ZeroDivisionError)
