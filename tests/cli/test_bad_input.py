from __future__ import annotations

import pytest

import gpusim
from tests.message_snapshot import names

SCENE = "double_pendulum"

# sentences of typer
UNKNOWN_LINES = [
    ("simulate", "simulate"),
    ("run", "SCENE|FILE"),
    ("run a b", "b"),
    ("--speed", "--speed"),
    (f"run {SCENE} --speed 3", "--speed"),
    (f"run {SCENE} --dt", "--dt"),
]
# command line (after "gpusim"; {tmp} is an empty folder) and what the sentence must say
BAD_LINES = [
    # scenes and files
    ("run double_pendulm", "double_pendulm double_pendulum"),
    ("run xyzzy", "xyzzy hydraulic_lift"),
    ("list double_pendulm", "double_pendulum"),
    ("run _bodies", "_bodies"),
    ("run {tmp}/none.urdf", "none.urdf"),
    ("run {tmp}/robot.xml", "robot.xml does not exist"),
    ("run robots/arm", "robots/arm .urdf"),
    ("run .", "'.' folder"),
    (f"bench {SCENE} pile", f"{SCENE} pile one"),
    (f"run {SCENE} --out {{tmp}}/x.npz --save {{tmp}}/./x.npz", "--out --save same"),
    (f"run {SCENE} --resume {{tmp}}/x.npz --out {{tmp}}/x.npz", "--out --resume same"),
    ("convert {tmp}/x.xml {tmp}/x.xml", "IN OUT same"),
    ("check ..", "'..' folder"),
    (f"render {SCENE} --out x.png --fps 60", "--fps films"),
    (f"view {SCENE} --port 8081", "--port --web"),
    ("run {tmp}", ".urdf"),
    # --set
    (f"run {SCENE} --set masss1=2", "masss1 mass1"),
    (f"run {SCENE} --set xyzzy=2", "xyzzy length1 angle2 damping"),
    (f"run {SCENE} --set xyzzy=2", f"--set {SCENE}"),
    (f"run {SCENE} --set mass1", "--set mass1 name=value mass 100"),
    (f"run {SCENE} --set =3", "--set name=value"),
    (f"run {SCENE} --set mass1=heavy", "mass1 heavy"),
    (f"run {SCENE} --set mass1=nan", "mass1 nan"),
    (f"run {SCENE} --set mass1=-1", "mass1 0 -1.0"),
    (f"run {SCENE} --set mass1=", "mass1"),
    (f"run {SCENE} --set mass1=1 --set mass1=2", "--set mass1"),
    ("run bricard --set width=1e308", "bricard width 1e+308"),
    ("run boom_crane --set length=1e308", "boom_crane length 1e+308"),
    ("run chain --set link_length=1e308", "chain link_length 1e+308"),
    ("run chain --set links=99999999999999999999", "links 10000 99999999999999999999"),
    ("run four_bar --set windows=1000000", "windows 10000"),
    ("run chrono_crane --set crane_mass=1e308", "crane mass 1e+308 units"),
    ("run hydraulic_lift --set variant=sideways", "variant step closed_center sideways"),
    # numbers
    (f"run {SCENE} --dt 0", "--dt 0 0.001"),
    (f"run {SCENE} --dt -0.001", "--dt 0 -0.001"),
    (f"run {SCENE} --dt nan", "--dt nan"),
    (f"run {SCENE} --dt inf", "--dt inf"),
    (f"run {SCENE} --dt soon", "--dt"),
    (f"run {SCENE} --duration 0", "--duration 0"),
    (f"run {SCENE} --duration -3", "--duration -3"),
    (f"run {SCENE} --duration inf", "--duration"),
    (f"run {SCENE} --duration 0.0001 --dt 0.01", "--duration 0.01"),
    (f"run {SCENE} --substeps 0", "--substeps 1 0"),
    (f"run {SCENE} --substeps 1.5", "--substeps"),
    (f"run {SCENE} --iterations 0", "--iterations 1"),
    (f"run {SCENE} --iterations -4", "--iterations 1 -4"),
    (f"run {SCENE} --num-worlds 0", "--num-worlds 1"),
    (f"run {SCENE} --num-worlds many", "--num-worlds"),
    (f"run {SCENE} --seed -1", "--seed 0"),
    # words
    (
        f"run {SCENE} --backend gpu",
        "--backend 'gpu'",
    ),
    (f"run {SCENE} --dtype float16", "--dtype 'float16'"),
    (f"run {SCENE} --joint-solver fast", "--joint-solver 'fast'"),
    (f"run {SCENE} --scheme euler", "--scheme 'euler' second_order semi_implicit"),
    (f"run {SCENE} --scheme papers", "--scheme 'papers' second_order semi_implicit"),
    (f"run {SCENE} --substeps 1.5", "--substeps '1.5'"),
    ("bench --backend gpu", "--backend 'gpu'"),
    # recordings
    ("run a.npz", "a.npz"),
    (f"run {SCENE} --replay none.jsonl", "none.jsonl"),
    # outputs
    (f"run {SCENE} --out run.txt", "--out run.txt .npz run.npz"),
    (f"run {SCENE} --out {{tmp}}/none/run.npz", "--out none"),
    (f"run {SCENE} --out-dtype float32", "--out-dtype --out"),
    (f"run {SCENE} --out {{tmp}}", "--out .npz"),
    (f"run {SCENE} --plot run.gif", "--plot run.gif .png .pdf .svg"),
    (f"run {SCENE} --plot run", "--plot .png"),
    (f"run {SCENE} --plot {{tmp}}/none/run.png", "--plot"),
    # signals
    (f"run {SCENE} --signals joint.hinge1.positon", "--signals joint.hinge1.positon joint.hinge1.position"),
    (f"run {SCENE} --signals joint.elbow*.position", "--signals joint.elbow*.position"),
    (f"run {SCENE} --signals ,", "--signals"),
    (f"run {SCENE} --signals sim.time --signals nothing", "--signals nothing"),
    # options of robot files
    (f"run {SCENE} --fixed-base", f"--fixed-base {SCENE}"),
    ("run {arm} --set mass=2", "--set mass"),
    ("run {arm} --signals joint.elbow.position", "--signals joint.elbow.position"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("line", "words"),
    [
        *(pytest.param(*case, id=case[0]) for case in BAD_LINES),
        *(pytest.param(*case, id=case[0], marks=pytest.mark.messages_vary) for case in UNKNOWN_LINES),
    ],
)
def test_bad_command_lines_get_one_clear_sentence(cli, arm, tmp_path, monkeypatch, line: str, words: str) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the simulation was started")

    monkeypatch.setattr(gpusim.Simulation, "step", refuse)
    result = cli(*line.format(tmp=tmp_path, arm=arm).split())
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    sentences = result.stderr.splitlines()
    assert len(sentences) == 1 and sentences[0].startswith("gpusim: "), result.stderr
    assert "Traceback" not in result.stderr
    assert names(sentences[0], words)
    assert [file.name for file in tmp_path.iterdir()] == ["arm.urdf"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "broken.urdf"),
        ("no xml at all", "broken.urdf"),
        ("<robot name='r'><link name='a'>", "broken.urdf"),
        ("<robot name='r'/>", ""),
        ("<sdf version='1.6'/>", ""),
    ],
)
def test_broken_robot_files_get_one_clear_sentence(cli, tmp_path, text: str, words: str) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text(text)
    result = cli("run", path)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    assert names(result.stderr, words)


@pytest.mark.nightly
def test_too_many_samples_for_the_memory_are_refused(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gpusim.cli.commands.run._memory_limit", lambda: 1e6)
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


def test_errors_that_no_one_foresaw_keep_their_traceback(cli, monkeypatch) -> None:
    def crash(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("gpusim.cli.targets.load_scene", crash)
    result = cli("run", SCENE)
    assert isinstance(result.exception, ZeroDivisionError)
