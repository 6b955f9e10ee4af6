from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from gpusim.viewer.operator import Operator, OperatorRecording
from gpusim.viewer.operator.recording import newest, next_free
from gpusim.viewer.panel import PanelState
from gpusim.viewer.window.operator_client import OperatorClient
from tests.unit.viewer.operators import machine, step
from tests.unit.viewer.persons import panel_state_of


@pytest.fixture
def panel_state(tmp_path: Path) -> PanelState:
    return panel_state_of("hydraulic_lift", tmp_path)


def operator_of(panel_state: PanelState) -> Operator:
    assert panel_state.operator is not None
    return panel_state.operator


def record(panel_state: PanelState, value: float, steps: int = 3) -> str:
    panel_state.toggle_recording()
    name = operator_of(panel_state).log
    operator_of(panel_state).set("lift", value)
    panel_state.session.single_step(steps)
    panel_state.toggle_recording()
    return name


def replayed(panel_state: PanelState) -> tuple[str, float]:
    panel_state.toggle_replay()
    name = operator_of(panel_state).log
    panel_state.session.single_step()
    value = operator_of(panel_state).value("lift")
    panel_state.toggle_replay()
    return name, value


def test_recordings_take_the_next_free_name_and_the_newest_is_replayed(panel_state: PanelState, tmp_path: Path) -> None:
    (tmp_path / "operator-7.jsonl.txt").write_text("something else")
    assert record(panel_state, 0.1) == "operator.jsonl"
    first = (tmp_path / "operator.jsonl").read_bytes()
    assert record(panel_state, 0.2) == "operator-2.jsonl" and replayed(panel_state) == ("operator-2.jsonl", 0.2)
    assert record(panel_state, 0.3) == "operator-3.jsonl" and replayed(panel_state) == ("operator-3.jsonl", 0.3)
    assert (tmp_path / "operator.jsonl").read_bytes() == first
    names = {"operator.jsonl", "operator-2.jsonl", "operator-3.jsonl", "operator-7.jsonl.txt"}
    assert {file.name for file in tmp_path.iterdir()} == names
    assert (
        operator_of(panel_state).note == "replay ended"
        and panel_state.problem == ""
        and operator_of(panel_state).log == ""
    )


def test_without_one_of_this_session_the_newest_of_the_folder_is_replayed(
    panel_state: PanelState, tmp_path: Path
) -> None:
    panel_state.toggle_replay()
    assert panel_state.problem.startswith("replay: there is no operator.jsonl in ") and panel_state.problem.endswith(
        "Record first"
    )
    for name, value, age in (("operator", 0.1, 30), ("operator-2", 0.2, 10), ("operator-3", 0.3, 20)):
        recording = OperatorRecording(("lift", "lift.brake"), operator_of(panel_state).sim.config.dt, steps=5)
        recording.note(0, "lift", value)
        recording.save(tmp_path / f"{name}.jsonl")
        os.utime(tmp_path / f"{name}.jsonl", (1e9 - age, 1e9 - age))
    assert replayed(panel_state) == ("operator-2.jsonl", 0.2)
    assert record(panel_state, 0.4) == "operator-4.jsonl" and replayed(panel_state) == ("operator-4.jsonl", 0.4)
    (tmp_path / "operator-4.jsonl").unlink()
    assert replayed(panel_state) == ("operator-2.jsonl", 0.2) and panel_state.problem == ""


def test_a_file_that_came_meanwhile_is_not_lost(panel_state: PanelState, tmp_path: Path) -> None:
    panel_state.toggle_recording()
    (tmp_path / "operator.jsonl").write_text("another program's")
    panel_state.session.single_step(2)
    panel_state.toggle_recording()
    assert (tmp_path / "operator.jsonl").read_text() == "another program's"
    assert operator_of(panel_state).recorded == tmp_path / "operator-2.jsonl"
    assert OperatorRecording.load(tmp_path / "operator-2.jsonl").steps == 2


def test_a_folder_that_cannot_be_written_is_reported_at_once(panel_state: PanelState, tmp_path: Path) -> None:
    panel_state.record_path = tmp_path / "gone" / "operator.jsonl"
    panel_state.toggle_recording()
    assert not operator_of(panel_state).recording
    assert repr(str(tmp_path / "gone")) in panel_state.problem


def test_a_disk_that_fails_leaves_the_recording_running(
    panel_state: PanelState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel_state.toggle_recording()
    panel_state.session.single_step(2)

    def full(recording: Any, path: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(OperatorRecording, "save", full)
        panel_state.toggle_recording()
        assert operator_of(panel_state).recording and list(tmp_path.iterdir()) == []
        assert panel_state.problem == (
            f"operator recording '{tmp_path / 'operator.jsonl'}': it cannot be written (No space left on device); "
            "make room there"
        )
        panel_state.toggle_replay()
        assert operator_of(panel_state).recording and not operator_of(panel_state).replaying
    panel_state.toggle_recording()
    assert not operator_of(panel_state).recording and panel_state.problem == ""
    assert OperatorRecording.load(tmp_path / "operator.jsonl").steps == 2


def test_a_disk_that_fails_in_a_reset_or_at_the_end_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Operator(machine("a"))
    (tmp_path / "there").mkdir()

    def lose_the_folder() -> None:
        (tmp_path / "there").mkdir(exist_ok=True)
        operator.record(tmp_path / "there" / "a.jsonl")
        step(operator)
        (tmp_path / "there").rmdir()

    lose_the_folder()
    operator.reset()
    assert not operator.recording and "there" in operator.note
    lose_the_folder()
    with pytest.warns(UserWarning):
        OperatorClient(operator).close()


def test_names_of_recordings(tmp_path: Path) -> None:
    base = tmp_path / "a.b.jsonl"
    assert next_free(base) == base and newest(base) is None
    (tmp_path / "a.b-9.jsonl").touch()
    (tmp_path / "axb-11.jsonl").touch()
    (tmp_path / "a.b-09.jsonl").touch()
    assert next_free(base) == tmp_path / "a.b-10.jsonl" and newest(base) == tmp_path / "a.b-9.jsonl"
    assert next_free(tmp_path / "gone" / "a.jsonl") == tmp_path / "gone" / "a.jsonl"
