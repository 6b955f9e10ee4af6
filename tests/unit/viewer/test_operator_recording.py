from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelError, Simulation
from gpusim.description.operator_names import KEYS
from gpusim.scene import Scene, load_scene
from gpusim.viewer.operator import Operator, OperatorRecording
from tests.message_snapshot import naming

FRAME = 1.0 / 60.0
STEPS = 240


def start(**parameters: Any) -> tuple[Scene, Simulation, Operator]:
    scene = load_scene("hydraulic_lift", command_time=0.02, **parameters)
    sim = Simulation(scene.builder.finalize(), backend="numpy", config=scene.config)
    return scene, sim, Operator(sim, scene)


def run(operator: Operator, steps: int = STEPS, actions: dict[int, Any] | None = None) -> list[list[float]]:
    seen = []
    for k in range(steps):
        if actions and k in actions:
            actions[k]()
        if k % 16 == 0:
            operator.poll(FRAME)
        operator.before_steps(operator.sim.time)
        seen.append(operator.sim.control.array[0].tolist())
        operator.sim.step()
    return seen


def bits(sim: Simulation) -> dict[str, bytes]:
    found = {name: np.asarray(array).tobytes() for name, array in sim.read_state().items()}
    for group in sim.state.groups:
        found |= {f"{group.type.name}.{name}": np.asarray(array).tobytes() for name, array in group.state.items()}
    return found


def drive(operator: Operator) -> dict[int, Any]:
    return {
        30: lambda: operator.key(KEYS["1"], True),
        70: lambda: operator.key(KEYS["1"], False),
        110: lambda: operator.set("lift", 0.1 + 0.2),
        140: lambda: operator.release("lift"),
        150: lambda: operator.set("lift.brake", 1.0),
        170: lambda: operator.release("lift.brake"),
        200: lambda: operator.emergency_stop(),
        220: lambda: operator.release_stop(),
        225: lambda: operator.set("lift", 1.0 / 3.0),
    }


@pytest.mark.nightly
def test_a_run_is_repeated_bit_for_bit(tmp_path: Path) -> None:
    file = tmp_path / "drive.jsonl"
    _, sim, operator = start()
    operator.record(file)
    seen = run(operator, actions=drive(operator))
    operator.stop_recording()
    assert len({tuple(row) for row in seen}) > 10 and sim.read("cylinder.lift.position")[0] > 0.01

    _, again, repeater = start()
    repeater.replay(file)
    assert run(repeater) == seen
    assert bits(again) == bits(sim)
    assert not repeater.stopped

    _, other, idle = start()
    run(idle)
    assert bits(other) != bits(sim)


@pytest.mark.nightly
def test_a_run_is_repeated_after_a_reset_in_the_same_simulation(tmp_path: Path) -> None:
    _, sim, operator = start()
    operator.record(tmp_path / "drive.jsonl")
    run(operator, actions=drive(operator))
    first = bits(sim)
    sim.reset()
    operator.reset()
    operator.replay(tmp_path / "drive.jsonl")
    run(operator)
    assert bits(sim) == first
    run(operator, 1)
    assert not operator.replaying and operator.note == "replay finished"


@pytest.mark.nightly
def test_steps_at_once_never_skip_a_change() -> None:
    scene = load_scene("boom_crane")
    scene.schedule = None
    model = scene.builder.finalize()
    recording = OperatorRecording(("lift", "lift.brake"), scene.config.dt, steps=50)
    recording.note(7, "lift", 0.5)
    recording.note(31, "lift", None)

    def final(most: int) -> dict[str, bytes]:
        sim = Simulation(model, backend="numpy", config=scene.config)
        operator = Operator(sim, scene)
        operator.replay(recording)
        done = 0
        while done < 60:
            count = min(most, operator.free_steps(), 60 - done)
            operator.before_steps(sim.time, count)
            sim.step(count)
            done += count
        return bits(sim)

    assert final(1) == final(64)


def test_touching_takes_over_from_a_replay() -> None:
    _, sim, operator = start()
    recording = OperatorRecording(("lift", "lift.brake"), sim.config.dt, steps=50)
    recording.note(0, "lift", 0.5)
    recording.note(20, "lift", -0.5)
    operator.replay(recording)
    run(operator, 10)
    assert operator.source("lift") == "replay" and operator.value("lift") == 0.5
    operator.set("lift", 0.2)
    run(operator, 30)
    assert not operator.replaying and operator.value("lift") == 0.2 and "took over" in operator.note
    sim.reset()
    operator.reset()
    operator.replay(recording)
    operator.emergency_stop()
    run(operator, 30)
    assert not operator.replaying and operator.value("lift") == 0.0
    with pytest.raises(ModelError):
        operator.replay(recording)


def test_the_file_is_lines_of_json(tmp_path: Path) -> None:
    file = tmp_path / "drive.jsonl"
    _, _, operator = start()
    operator.set("lift", 0.1)
    operator.record(file)
    run(operator, 10, {5: lambda: operator.release("lift")})
    assert not file.exists()
    operator.stop_recording()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["format"] == "gpusim operator recording" and lines[0]["scene"] == "hydraulic_lift"
    assert lines[1:] == [
        {"step": 0, "time": 0.0, "set": {"lift": 0.1}},
        {"step": 5, "time": 0.005, "set": {"lift": None}},
        {"step": 10, "time": 0.01, "end": True},
    ]
    assert list(tmp_path.iterdir()) == [file]


HEAD = '{"format": "gpusim operator recording", "version": 1, "dt": 0.001, "time": 0.0, "inputs": ["lift"]}\n'


@pytest.mark.parametrize(
    "text, words",
    [
        (None, ""),
        ("", ""),
        ('{"format": "other"}\n', ""),
        (HEAD.replace('"dt": 0.001, ', ""), "1 'dt'"),
        (HEAD + "{", "2"),
        (HEAD + "[]", "2"),
        (HEAD + '{"set": {"lift": 1}}', "2"),
        (HEAD + '{"step": 5}\n{"step": 4}', "3 4"),
        (HEAD + '{"step": 0, "set": {"boom": 1}}', "2 'boom' 1"),
        (HEAD + '{"step": 0, "set": {"lift": "up"}}', "2 'lift' 'up'"),
        (HEAD + '{"step": 0, "set": {"lift": NaN}}', "2 'lift'"),
        (HEAD.replace('"lift"', '"boom"'), "'boom'"),
        (HEAD.replace("0.001", "0.002"), "0.002 0.001 --dt"),
        (HEAD.replace('"time": 0.0', '"time": 1.0'), "1 0"),
    ],
)
def test_bad_recordings_are_reported(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "drive.jsonl"
    if text is not None:
        file.write_text(text)
    _, _, operator = start()
    with pytest.raises(ModelError, match=naming(words)):
        operator.replay(file)
    assert not operator.replaying


def test_bad_places_for_recordings_are_reported_at_once(tmp_path: Path) -> None:
    _, _, operator = start()
    with pytest.raises(ModelError, match=naming(".jsonl")):
        operator.record(tmp_path / "drive.npz")
    with pytest.raises(ModelError):
        operator.record(tmp_path / "gone" / "drive.jsonl")
    assert not operator.recording


def test_values_of_many_worlds_are_kept(tmp_path: Path) -> None:
    recording = OperatorRecording(("s",), 0.01, steps=3)
    recording.note(1, "s", (0.1, 0.2))
    recording.save(tmp_path / "drive.jsonl")
    assert OperatorRecording.load(tmp_path / "drive.jsonl") == recording
