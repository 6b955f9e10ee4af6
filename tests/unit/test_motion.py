from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelError, Simulation, Transform, rotations
from gpusim.control import Diagram
from gpusim.recording.motion import MotionRecorder, load_motion, part_of, save_motion
from gpusim.recording.player import MotionPlayer, slerp
from tests.message_snapshot import naming


def tumbling(num_worlds: int = 1) -> Simulation:
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for k in range(2):
        b.add_body(
            mass=1.0, inertia=(1.0, 1.0, 1.0), com=(0.1, 0.0, 0.0), xform=Transform((k, 0, 0)), label=f"top{k}",
            linear_velocity=(0.0, 1.0, 0.0), angular_velocity=(0.0, 0.0, 2.0),
        )  # fmt: skip
    return Simulation(b.finalize(), num_worlds, backend="numpy", config=gpusim.SolverConfig(dt=0.01))


def record(path: Path, steps: int = 50, rate: float = 25.0, **more: object) -> Simulation:
    sim = tumbling(num_worlds=3)
    sim.write("body.top0.linear_velocity", (0.0, 0.0, 3.0), worlds=2)
    with MotionRecorder(sim, path, worlds=[0, 2], rate=rate, **more) as recorder:
        recorder.sample(0.0)
        for k in range(steps):
            sim.step()
            recorder.sample((k + 1) * 0.01, half_step=0.005)
    return sim


def test_what_is_recorded_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    sim = record(path, target="pile", parameters={"count": 3}, fixed_base=True)
    assert os.listdir(tmp_path) == ["a.npz"]
    motion = load_motion(path)
    header = motion.header
    assert (header.target, header.parameters, header.fixed_base) == ("pile", {"count": "3"}, True)
    assert list(header.bodies) == ["top0", "top1"] and list(header.worlds) == [0, 2]
    assert motion.complete and len(motion) == 13 and motion.duration == pytest.approx(0.48)
    assert motion.time == pytest.approx(0.04 * np.arange(13))
    assert motion.center_of_mass.shape == (13, 2, 2, 3) and motion.orientation.shape == (13, 2, 2, 4)
    state = sim.read_state()
    assert motion.center_of_mass[-1, 1, 0] == pytest.approx(state["position"][2, 0] - [0, 0, 0.06])
    with np.load(path) as archive:
        assert sorted(archive.files) == ["center_of_mass", "header", "orientation", "time"]
        assert json.loads(str(archive["header"]))["rate"] == 25.0


def test_frames_are_the_steps_nearest_to_their_times(tmp_path: Path) -> None:
    record(tmp_path / "a.npz", rate=30.0)
    ideal = np.arange(15) / 30.0
    assert np.abs(load_motion(tmp_path / "a.npz").time[:15] - ideal).max() <= 0.005 + 1e-12


def test_steps_longer_than_a_frame_are_all_recorded(tmp_path: Path) -> None:
    record(tmp_path / "a.npz", rate=1000.0)
    assert len(load_motion(tmp_path / "a.npz")) == 51


CUT = """
import os, sys
from tests.unit.test_motion import *
sim = tumbling()
recorder = MotionRecorder(sim, sys.argv[1], rate=100.0)
recorder.sample(0.0)
for k in range(7):
    sim.step()
    recorder.sample(0.01 * (k + 1))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_leaves_what_was_recorded(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    code = "import sys; sys.path.insert(0, '.')\n" + CUT
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.npz")], cwd=root, timeout=240)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["a.npz.part"]
    for name in ("a.npz", "a.npz.part"):
        motion = load_motion(tmp_path / name)
        assert len(motion) == 8 and not motion.complete
    save_motion(motion, tmp_path / "b.npz")
    assert np.array_equal(load_motion(tmp_path / "b.npz").orientation, motion.orientation)


def test_a_torn_frame_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    recorder = MotionRecorder(tumbling(), path, rate=100.0)
    recorder.sample(0.0)
    recorder.sample(0.01)
    part = part_of(path)
    whole = part.read_bytes()
    part.write_bytes(whole[:-5])
    assert len(load_motion(path)) == 1
    part.write_bytes(whole[:-5] + bytes(5))
    recorder.close()
    assert len(load_motion(path)) == 2 and os.listdir(tmp_path) == ["a.npz"]


def test_what_follows_a_frame_that_is_no_frame_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    recorder = MotionRecorder(tumbling(), path, rate=100.0)
    for k in range(5):
        recorder.sample(0.01 * k)
    part = part_of(path)
    whole, size = part.read_bytes(), recorder.header.block().itemsize
    part.write_bytes(whole + np.random.default_rng(3).bytes(7 * size))
    assert len(load_motion(part)) == 5
    part.write_bytes(whole[: -2 * size] + b"\xff" * size + whole[-size:])  # not numbers
    assert len(load_motion(part)) == 3
    recorder._stream.close()


def test_a_recording_that_was_broken_off_is_put_aside(tmp_path: Path) -> None:
    for number in range(3):
        recorder = MotionRecorder(tumbling(), tmp_path / "a.npz")
        recorder.sample(0.0)
        with pytest.raises(ModelError, match=naming("recorder writes close")):
            MotionRecorder(tumbling(), tmp_path / "a.npz")
        recorder._stream.close(), recorder._lock.close()  # as if the process had ended here
        assert (recorder.rescued is None) == (number == 0)
    assert sorted(os.listdir(tmp_path)) == ["a-broken-2.npz.part", "a-broken.npz.part", "a.npz.part"]
    assert len(load_motion(tmp_path / "a-broken.npz.part")) == 1


def test_without_a_frame_there_is_no_file(tmp_path: Path) -> None:
    recorder = MotionRecorder(tumbling(), tmp_path / "a.npz")
    with pytest.raises(ModelError, match=naming("a.npz.part")):
        load_motion(tmp_path / "a.npz")
    recorder.close()
    recorder.close()
    assert os.listdir(tmp_path) == []


def test_poses_between_frames(tmp_path: Path) -> None:
    sim = record(tmp_path / "a.npz")
    player = MotionPlayer(load_motion(tmp_path / "a.npz"), sim.model)
    assert player.num_worlds == 2
    player.time = 0.31
    state = player.read_state()
    # free bodies: a straight line, and a turn at constant speed
    assert state["position"][0, 0] == pytest.approx([0.1, 0.31, 0.0], abs=1e-12)
    assert state["position"][1, 0, 2] == pytest.approx(0.93)
    turned = rotations.rotation_vector_from_quaternion(state["orientation"][0, 1])
    assert turned == pytest.approx([0.0, 0.0, 0.62], abs=1e-6)
    assert state["position"].shape == (2, 3, 3) and state["orientation"][0, -1] == pytest.approx([0, 0, 0, 1])
    player.go_to_frame(99)
    assert player.time == pytest.approx(0.48) and player.frame() == 12


def test_slerp_takes_the_short_way_at_constant_speed() -> None:
    first = rotations.quaternion_from_rotation_vector(np.array([0.0, 0.0, 0.2]))
    second = -rotations.quaternion_from_rotation_vector(np.array([0.0, 0.0, 1.8]))
    for share in (0.0, 0.25, 1.0):
        turned = rotations.rotation_vector_from_quaternion(slerp(first, second, share))
        assert turned == pytest.approx([0.0, 0.0, 0.2 + 1.6 * share])
    assert slerp(first, first, 0.3) == pytest.approx(first)


def test_a_model_with_other_bodies_is_refused(tmp_path: Path) -> None:
    record(tmp_path / "a.npz")
    b = gpusim.ModelBuilder()
    b.add_body(mass=1.0, inertia=(1, 1, 1), label="top0")
    with pytest.raises(ModelError, match=naming("2 1")):
        MotionPlayer(load_motion(tmp_path / "a.npz"), b.finalize())


HEADER = {
    "target": "pile", "parameters": {}, "bodies": ["a"], "worlds": [0], "rate": 60.0, "fixed_base": False,
    "format": "gpusim motion 1",
}  # fmt: skip


def arrays(frames: int = 2, **changes: object) -> dict[str, object]:
    return {
        "header": np.array(json.dumps({**HEADER, **changes})),
        "time": 0.1 * np.arange(frames),
        "center_of_mass": np.zeros((frames, 1, 1, 3)),
        "orientation": np.zeros((frames, 1, 1, 4)),
    }


@pytest.mark.parametrize(
    "content, reported",
    [
        (None, ""),
        (b"", ""),
        (b"no zip file", ""),
        (np.random.default_rng(1).bytes(4096), ""),
        (pickle.dumps({"a": [1, 2]}), ""),
        (b'{"a": 1}', ""),
        (b"PK\x03\x04 and nothing more", ""),
        ({"time": [0.0]}, ""),
        ({"a": [0.0]}, ""),
        ({"header": np.array("{}"), "time": [0.0]}, ""),
        ({"header": np.array([{}]), "time": [0.0]}, ""),
        ({"header": arrays()["header"]}, "'center_of_mass'"),
        (arrays(format="gpusim motion 2"), "2"),
        (arrays(bodies=7), ""),
        (arrays(worlds=["a"]), ""),
        (arrays(parameters=[]), ""),
        (arrays(strange=1), ""),
        (arrays(bodies=["a", "b"]), ""),
        (arrays() | {"time": np.array(0.0)}, ""),
        (arrays() | {"time": np.array(["a", "b"])}, ""),
        (arrays() | {"time": np.array([0.1, 0.0])}, "1 2"),
        (arrays() | {"time": np.array([0.0, np.nan])}, "1 2"),
        (arrays() | {"orientation": np.full((2, 1, 1, 4), np.nan)}, "0 2"),
        (arrays(0), ""),
    ],
)
def test_what_is_no_motion(tmp_path: Path, content: object, reported: str) -> None:
    path = tmp_path / "a.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    with pytest.raises(ModelError, match=naming(reported)) as found:
        load_motion(path)
    assert "a.npz" in str(found.value) and "pickle" not in str(found.value)


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays())
    assert len(load_motion(tmp_path / "a.npz")) == 2


def test_an_array_in_a_file_of_its_own(tmp_path: Path) -> None:
    with open(tmp_path / "a.npz", "wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(ModelError, match=naming("a.npz")):
        load_motion(tmp_path / "a.npz")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.npz").mkdir()
    with pytest.raises(ModelError, match=naming("a.npz")):
        load_motion(tmp_path / "a.npz")
    with pytest.raises(ModelError, match=naming("'.' folder")):
        load_motion(".")


def test_a_growing_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.npz.part"
    path.write_bytes(b"something else")
    with pytest.raises(ModelError, match=naming("a.npz.part")):
        load_motion(path)


@pytest.mark.parametrize("name, reported", [("a.mp4", ".npz"), ("none/a.npz", "")])
def test_where_nothing_can_be_written(tmp_path: Path, name: str, reported: str) -> None:
    with pytest.raises(ModelError, match=naming(reported)):
        MotionRecorder(tumbling(), tmp_path / name)


def test_no_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gpusim.recording.motion.open", refuse, raising=False)
    with pytest.raises(ModelError, match=naming("a.npz.part")):
        MotionRecorder(tumbling(), tmp_path / "a.npz")


def test_wires_of_diagrams_are_recorded_and_played(tmp_path: Path) -> None:
    b = gpusim.ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (1, 1, 1), label="cart")
    b.add_servo(b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail"), stiffness=5.0, label="push")
    d = Diagram("d")
    d.add("constant", "two", value=[3.0, 4.0])
    d.connect(d.add("ramp", "time"), "command:push")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), 3, backend="numpy", config=gpusim.SolverConfig(dt=0.01))
    seen = []
    with MotionRecorder(sim, tmp_path / "a.npz", worlds=(0, 2), rate=100.0) as recorder:
        for k in range(5):
            recorder.sample(0.01 * k)
            seen.append(float(sim.read("diagram.d.time")[2]))
            sim.step()
        part = MotionPlayer(load_motion(part_of(tmp_path / "a.npz")), sim.model)
        part.time = 0.04
        assert part.read_signals()["diagram.d.time"][1, 0] == seen[4] == 0.03
    motion = load_motion(tmp_path / "a.npz")
    assert motion.header.signals == {"diagram.d.two": 2, "diagram.d.time": 1}
    player = MotionPlayer(motion, sim.model)
    for k, value in enumerate(seen):
        player.go_to_frame(k)
        assert player.read_signals()["diagram.d.time"].tolist() == [[value], [value]]
    assert player.read_signals()["diagram.d.two"].tolist() == [[3.0, 4.0], [3.0, 4.0]]
    assert MotionPlayer(motion.cut(2), sim.model).motion.signals.shape == (2, 2, 3)  # type: ignore[union-attr]


def test_motions_without_diagrams_are_as_they_were(tmp_path: Path) -> None:
    b = gpusim.ModelBuilder()
    b.add_body(1.0, (1, 1, 1), label="ball")
    sim = Simulation(b.finalize(), backend="numpy")
    with MotionRecorder(sim, tmp_path / "a.npz") as recorder:
        recorder.sample(0.0)
    motion = load_motion(tmp_path / "a.npz")
    assert "signals" not in motion.header.text() and motion.signals is None
    assert MotionPlayer(motion, sim.model).read_signals() == {}
    with np.load(tmp_path / "a.npz") as archive:
        assert "signals" not in archive.files


def test_worlds_of_a_recorder(tmp_path: Path) -> None:
    sim, path = tumbling(3), tmp_path / "a.npz"
    with MotionRecorder(sim, path, worlds=[True, False, True]) as recorder:
        assert recorder.header.worlds == (0, 2) and recorder.sample(0.0)
    with pytest.raises(ModelError, match=naming("closed new file")):
        recorder.sample(1.0)
    wrong: dict[str, dict[str, Any]] = {
        "world 5": {"worlds": [5]}, "worlds []": {"worlds": []}, "rate 'a'": {"rate": "a"},
    }  # fmt: skip
    for words, options in wrong.items():
        with pytest.raises(ModelError, match=naming(words)):
            MotionRecorder(sim, path, **options)
