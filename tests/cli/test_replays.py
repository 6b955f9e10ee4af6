from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.cli.loop import simulate
from gpusim.cli.target_files import model_scene
from gpusim.recording.recorder import load_recording
from gpusim.scene import Scene, load_scene
from gpusim.viewer.operator import Operator
from gpusim.viewer.window.sources import Live
from tests.backends import FASTEST
from tests.cli.recordings import record_motion
from tests.message_snapshot import names
from tests.unit.viewer.display import display_variables
from tests.unit.viewer.drawing import require_egl
from tests.unit.viewer.test_operator_recording import bits

SCENE = ("hydraulic_lift", "--set", "command_time=0.02", "--backend", FASTEST)
STEPS = 200


def record(path: Path, steps: int = STEPS, **parameters: Any) -> gpusim.Simulation:
    scene = load_scene("hydraulic_lift", **{"command_time": 0.02, **parameters})
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    operator = Operator(sim, scene, parameters={"command_time": 0.02, **parameters})
    operator.record(path)
    for k in range(steps):
        if k == 40:
            operator.set("lift", 0.1 + 0.2)
        if k == 120:
            operator.release("lift")
        if k == 150:
            operator.set("lift", 1.0 / 3.0)
        operator.before_steps(sim.time)
        sim.step()
    operator.stop_recording()
    return sim


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[gpusim.Simulation]:
    found: list[gpusim.Simulation] = []
    original = gpusim.Simulation.__init__

    def spy(self: Any, *arguments: Any, **more: Any) -> None:
        original(self, *arguments, **more)
        found.append(self)

    monkeypatch.setattr(gpusim.Simulation, "__init__", spy)
    return found


@pytest.mark.nightly
def test_a_run_repeats_it_bit_for_bit(cli, folder, made) -> None:
    recorded = record(folder / "drive.jsonl")
    result = cli("run", *SCENE, "--replay", "drive.jsonl", "--out", "run.npz", "--signals", "cylinder.*")
    assert result.exit_code == 0, result.output
    assert f"in {STEPS} steps" in result.stdout
    assert bits(made[-1]) == bits(recorded)
    for name, samples in load_recording("run.npz").signals.items():
        assert samples[-1].tobytes() == np.asarray(recorded.read(name, numpy=True)).tobytes(), name
    assert "recorded with" not in result.stderr
    result = cli("run", *SCENE, "--replay", "drive.jsonl", "--substeps", "3", "--dtype", "float32")
    assert result.exit_code == 0
    assert "recorded with dtype float64 (here float32), substeps 1 (here 3); this run will not" in result.stderr
    # without the operator it is another run
    assert cli("run", *SCENE, "--duration", str(STEPS * recorded.config.dt)).exit_code == 0
    assert bits(made[-1]) != bits(recorded)


@pytest.mark.nightly
def test_a_part_of_it_and_what_follows(cli, folder, made) -> None:
    recorded = record(folder / "drive.jsonl", 100)
    record(folder / "longer.jsonl")
    seconds = 100 * recorded.config.dt
    assert cli("run", *SCENE, "--replay", "longer.jsonl", "--duration", seconds).exit_code == 0
    assert bits(made[-1]) == bits(recorded)
    result = cli("run", *SCENE, "--replay", "drive.jsonl", "--duration", 2 * seconds)
    assert result.exit_code == 0 and "in 200 steps" in result.stdout
    summary = " ".join(result.stdout.replace("│", " ").split())
    assert "they need the scene's schedule, and --replay replaces it" in summary


@pytest.mark.nightly
def test_pictures_and_films_of_it(cli, folder, made) -> None:
    require_egl()
    recorded = record(folder / "drive.jsonl")
    dt = recorded.config.dt
    common = (*SCENE, "--replay", "drive.jsonl", "--size", "64x36")
    result = cli("render", *common, "--out", "a.png", "--time", STEPS * dt)
    assert result.exit_code == 0, result.output
    assert bits(made[-1]) == bits(recorded)
    pytest.importorskip("imageio_ffmpeg")
    result = cli("render", *common, "--out", "a.mp4", "--fps", "50", "--time", 50 * dt)
    assert result.exit_code == 0, result.output
    assert bits(made[-1]) == bits(recorded)
    assert f"{round((STEPS - 50) * dt * 50)} frames, " in result.output
    result = cli("render", *common, "--out", "a.mp4", "--time", STEPS * dt)
    assert result.exit_code == 2


def test_a_window_repeats_it(cli, folder, made, monkeypatch) -> None:
    for name, value in display_variables().items():
        monkeypatch.setenv(name, value)
    from gpusim.viewer.window.window import Window

    run = Window.run

    def quick(self: Window, duration: float | None = None) -> Any:
        self.session.pause()
        self.session.single_step(STEPS)
        return run(self, duration)

    monkeypatch.setattr(Window, "run", quick)
    recorded = record(folder / "drive.jsonl")
    result = cli("view", *SCENE, "--replay", "drive.jsonl", "--duration", "0.05", "--size", "128x96", "--no-panel")
    assert result.exit_code == 0, result.output
    assert bits(made[-1]) == bits(recorded)


def swinging_lift() -> tuple[Scene, gpusim.Simulation]:
    scene = load_scene("hydraulic_lift")

    def schedule(sim: gpusim.Simulation, time: float) -> None:
        sim.control.update({"lift": 0.5 * math.sin(40.0 * time), "lift.brake": 0.0})

    config = dataclasses.replace(scene.config, substeps=3)
    scene = dataclasses.replace(scene, schedule=schedule, config=config)
    return scene, gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=config)


@pytest.mark.nightly
def test_what_was_recorded_in_a_window_has_the_same_bits(folder) -> None:
    scene, sim = swinging_lift()
    live = Live(sim, scene)
    live.operator = Operator(sim, scene)
    live.operator.record(folder / "drive.jsonl")
    for k in range(1, 6):
        if k == 4:
            live.operator.set("lift", 0.3)
        live.run_to(0.02 * k, math.inf, smooth=False)
    recording = live.operator.stop_recording()
    assert recording is not None and recording.steps == 100
    scene, again = swinging_lift()
    operator = Operator(again, scene)
    operator.replay(folder / "drive.jsonl")
    simulate(again, scene, recording.steps, None, operator=operator)
    assert bits(again) == bits(sim)


def test_robots_in_many_worlds(cli, folder, made, arm) -> None:
    scene = model_scene(str(arm), hold=True)
    sim = gpusim.Simulation(scene.builder.finalize(), 2, backend=FASTEST, config=scene.config)
    operator = Operator(sim, scene)
    operator.record("drive.jsonl")
    first = next(iter(operator.inputs))
    for k in range(60):
        if k == 10:
            operator.set(first, 0.2)
        if k == 40:
            operator.emergency_stop()
        operator.before_steps(sim.time)
        sim.step()
    operator.stop_recording()
    sim.read("sim.kinetic_energy")
    common = ("run", arm, "--backend", FASTEST, "--replay", "drive.jsonl")
    assert cli(*common, "--num-worlds", 2).exit_code == 0
    assert bits(made[-1]) == bits(sim)
    result = cli(*common, "--num-worlds", 3)
    assert result.exit_code == 2 and names(result.stderr, "--num-worlds 2")


@pytest.mark.parametrize(
    "arguments, reported",
    [
        ((*SCENE, "--dt", "0.0007"), "--dt"),
        (("hydraulic_lift",), "--set command_time 0.02"),
        ((*SCENE, "--set", "mass=500"), "--set mass"),
        (("boom_crane",), "'hydraulic_lift' 'boom_crane'"),
    ],
)
def test_what_does_not_fit_is_reported(cli, folder, arguments: tuple[str, ...], reported: str) -> None:
    record(folder / "drive.jsonl", 20)
    for command in (("run",), ("render", "--out", "a.png")):
        result = cli(*command, *arguments, "--replay", "drive.jsonl")
        assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
        assert names(result.stderr, reported), result.stderr
    assert not Path("a.png").exists()


def test_the_same_values_in_other_words_fit(cli, folder) -> None:
    record(folder / "drive.jsonl", 20, mass=400.0)
    result = cli("run", *SCENE[:1], "--set", "mass=4e2", "--set", "command_time=0.020", "--replay", "drive.jsonl",
                 "--backend", FASTEST)  # fmt: skip
    assert result.exit_code == 0, result.output


def edited(path: Path, **changes: Any) -> None:
    lines = path.read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), **changes})
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "changes, reported",
    [
        ({"time": 1.5}, "1.5"),
        ({"scene": ""}, ""),
        ({"parameters": {"weight": 3}}, ""),
        ({"inputs": ["lift", "lift.brake", "joystick"]}, "joystick"),
        ({"format": "other"}, ""),
    ],
)
def test_recordings_that_cannot_be_repeated(cli, folder, changes: dict[str, Any], reported: str) -> None:
    record(folder / "drive.jsonl", 20)
    edited(folder / "drive.jsonl", **changes)
    result = cli("run", *SCENE, "--replay", "drive.jsonl")
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert names(result.stderr, reported)


@pytest.mark.parametrize(
    "name, content, reported",
    [
        ("none.jsonl", None, ""),
        ("empty.jsonl", b"", ""),
        ("random.jsonl", bytes(range(256)), ""),
        ("a.npz", b"PK\x03\x04", "1"),
    ],
)
def test_files_that_are_no_recordings(cli, folder, name: str, content: bytes | None, reported: str) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    result = cli("run", *SCENE, "--replay", name)
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert names(result.stderr, reported) and name in result.stderr


def test_motions_are_not_replayed_by_an_operator(cli, folder) -> None:
    record_motion("a.npz", 3)
    result = cli("render", "a.npz", "--out", "a.png", "--replay", "drive.jsonl")
    assert result.exit_code == 2 and names(result.stderr, "--replay")
