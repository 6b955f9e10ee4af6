"""Recorder, recordings and their files."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

import numpy as np
import pytest

from gpusim.errors import ModelError, UnknownNameError, unknown_name
from gpusim.output_files import atomic_file, check_output_file
from gpusim.recording.recorder import Recorder, Recording, load_recording
from tests.message_snapshot import naming


@dataclass
class Info:
    shape: tuple[int, ...]
    unit: str = ""


class Seen:
    def __init__(self, clock: Clock, names: list[str]) -> None:
        self.clock, self.names, self.slices, start = clock, list(dict.fromkeys(names)), {}, 0
        known = clock.signals()
        for name in self.names:
            if name not in known:
                raise unknown_name("signal", name, known)
            size = int(np.prod(known[name].shape, dtype=int))
            self.slices[name] = slice(start, start + size)
            start += size

    def read(self) -> np.ndarray:
        worlds = self.clock.num_worlds
        return np.concatenate([self.clock.read(name).reshape(worlds, -1) for name in self.names], axis=1)


class Clock:
    num_worlds = 3

    def __init__(self) -> None:
        self._time = np.zeros(self.num_worlds)
        self._state = np.zeros((self.num_worlds, 3))

    def signals(self) -> dict[str, Info]:
        return {"sim.time": Info(()), "sim.angle": Info(()), "body.ball.position": Info((3,))}

    def step(self) -> None:
        self._time[1:] += 0.5
        self._state += 0.5

    def observe(self, names: list[str]) -> Seen:
        return Seen(self, names)

    def read(self, name: str, numpy: bool = False) -> np.ndarray:
        if name == "sim.time":
            return self._time
        return self._state if name.startswith("body") else self._state[:, 0]


def recorded(samples: int, capacity: int = 256) -> Recording:
    clock = Clock()
    recorder = Recorder(clock, clock.signals(), capacity=capacity)
    for _ in range(samples):
        recorder.sample()
        clock.step()
    assert len(recorder) == samples
    return recorder.recording()


@pytest.mark.parametrize("capacity", [1, 2, 5, 6, 64])
def test_samples_keep_time_and_values_whatever_the_room(capacity: int) -> None:
    recording = recorded(6, capacity)
    expected = 0.5 * np.arange(6)
    np.testing.assert_array_equal(recording.time, expected)
    np.testing.assert_array_equal(recording["sim.angle"], np.tile(expected[:, None], (1, 3)))
    assert recording["body.ball.position"].shape == (6, 3, 3)
    np.testing.assert_array_equal(recording["body.ball.position"][:, 2, 1], expected)


def test_recording_taken_in_the_middle_stays_as_it_was() -> None:
    clock = Clock()
    recorder = Recorder(clock, ["sim.angle"], capacity=4)
    recorder.sample()
    early = recorder.recording()
    clock.step()
    recorder.sample()
    assert len(early) == 1
    np.testing.assert_array_equal(early["sim.angle"], np.zeros((1, 3)))
    with pytest.raises(ValueError, match="read-only"):
        early.time[0] = 1.0


def test_signals_named_twice_are_recorded_once() -> None:
    recorder = Recorder(Clock(), ["sim.angle", "body.ball.position", "sim.angle"])
    assert recorder.names == ("sim.angle", "body.ball.position")


def test_a_recorder_takes_a_name_or_wildcards() -> None:
    assert Recorder(Clock(), "sim.angle").names == ("sim.angle",)
    assert Recorder(Clock(), ["sim.angle", "*.ang*"]).names == ("sim.angle",)


def test_unknown_signal_is_refused_before_the_first_sample() -> None:
    with pytest.raises(UnknownNameError, match=naming("sim.angel sim.angle")):
        Recorder(Clock(), ["sim.angel"])


def test_recording_without_samples_is_empty() -> None:
    recording = recorded(0)
    assert len(recording) == 0
    assert recording["sim.angle"].shape == (0, 3)


def test_unrecorded_signal_is_named() -> None:
    with pytest.raises(UnknownNameError, match=naming("sim.speed")):
        recorded(1)["sim.speed"]


def test_file_holds_time_and_one_array_for_each_signal(tmp_path) -> None:
    path = tmp_path / "run.npz"
    recording = recorded(4)
    recording.save(path)
    with np.load(path) as archive:
        assert sorted(archive.files) == ["body.ball.position", "sim.angle", "sim.time", "time"]
    loaded = load_recording(path)
    np.testing.assert_array_equal(loaded.time, recording.time)
    for name, samples in recording.signals.items():
        np.testing.assert_array_equal(loaded[name], samples)
        assert loaded[name].dtype == samples.dtype


def test_saved_file_replaces_an_older_one_and_leaves_nothing_else(tmp_path) -> None:
    path = tmp_path / "run.npz"
    recorded(4).save(path)
    recorded(2).save(path)
    assert len(load_recording(path)) == 2
    assert os.listdir(tmp_path) == ["run.npz"]


def test_saved_file_has_the_usual_permissions(tmp_path) -> None:
    path = tmp_path / "run.npz"
    usual = tmp_path / "usual"
    usual.write_text("")
    recorded(1).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_failure_while_writing_keeps_the_older_file(tmp_path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="crash"), atomic_file(path) as stream:
        stream.write(b"half of the n")
        raise RuntimeError("crash")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["run.npz"]


def test_writing_through_a_link_keeps_the_link(tmp_path) -> None:
    target = tmp_path / "real.npz"
    link = tmp_path / "run.npz"
    link.symlink_to(target)
    recorded(1).save(link)
    assert link.is_symlink()
    assert len(load_recording(target)) == 1


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("run.txt", ".npz 'run.npz'"),
        ("run", ".npz"),
        ("missing/run.npz", "missing"),
        ("folder.npz", "folder.npz"),
    ],
)
def test_output_paths_that_cannot_be_written_are_named(tmp_path, name: str, rule: str) -> None:
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ModelError, match=naming(rule)):
        check_output_file(tmp_path / name, (".npz",), "--out")
    with pytest.raises(ModelError, match=naming(rule)):
        recorded(1).save(tmp_path / name)


def test_output_paths_are_paths() -> None:
    with pytest.raises(ModelError, match=naming("--out None")):
        check_output_file(None, (".npz",), "--out")  # type: ignore[arg-type]


def test_read_only_folder_is_named(tmp_path, monkeypatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gpusim.output_files.tempfile.TemporaryFile", refuse)
    with pytest.raises(ModelError, match=naming("--out")):
        check_output_file(tmp_path / "run.npz", (".npz",), "--out")


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 broken"])
def test_broken_recordings_are_refused_in_one_sentence(tmp_path, content: bytes) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=naming("run.npz")):
        load_recording(path)


def test_missing_recording_is_refused(tmp_path) -> None:
    with pytest.raises(ModelError, match=naming("none.npz 2")):
        load_recording(tmp_path / "none.npz")


def test_file_without_time_is_no_recording(tmp_path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ModelError, match=naming("'time'")):
        load_recording(tmp_path / "other.npz")
