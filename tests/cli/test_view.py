from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gpusim.recording.motion import load_motion
from gpusim.viewer.operator import OperatorRecording
from tests.backends import FASTEST
from tests.cli.recordings import record_motion
from tests.message_snapshot import names
from tests.pictures import load_picture
from tests.unit.viewer.display import display_variables
from tests.unit.viewer.drawing import require_egl

# long steps, so that NumPy keeps pace on a busy computer
SMALL = ("--size", "128x96", "--backend", FASTEST, "--dt", "0.01")


@pytest.fixture
def view(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in display_variables().items():
        monkeypatch.setenv(name, value)

    def invoke(*arguments: object):
        return cli("view", *arguments)

    return invoke


@pytest.fixture
def nowhere(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("WAYLAND_DISPLAY", "")

    def invoke(*arguments: object):
        return cli("view", *arguments)

    return invoke


def started(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from gpusim.cli.main import main; main()", "view", *arguments, *SMALL]
    environment = {**os.environ, **display_variables()}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    pipe, start = subprocess.PIPE, None if sys.platform == "win32" else hear_interrupts
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, preexec_fn=start)


def hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(part: Path, size: int) -> None:
    for _ in range(4800):
        if part.is_file() and part.stat().st_size > size:
            return
        time.sleep(0.05)
    raise AssertionError(f"{part} did not grow")


def test_a_scene_runs_in_its_window_and_is_recorded_and_played(tmp_path) -> None:
    process = started(
        "double_pendulum", "--set", "length1=1.5", "--duration", "0.6", "--record", "a.npz", folder=tmp_path
    )
    out, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    assert error == "" and "frames/s; jitter " in out and "a.npz: " in out
    motion = load_motion(tmp_path / "a.npz")
    assert motion.header.target == "double_pendulum" and motion.header.parameters["length1"] == "1.5"
    assert motion.header.parameters["length2"] == "1.0"  # defaults too
    assert 0.1 < motion.duration < 0.9
    assert os.listdir(tmp_path) == ["a.npz"]


def test_playing_and_rendering_a_recording(view, cli) -> None:
    assert view("double_pendulum", *SMALL, "--duration", "0.5", "--record", "a.npz").exit_code == 0
    result = view("a.npz", "--size", "128x96", "--duration", "0.2", "--paused")
    assert result.exit_code == 0 and "double_pendulum: 0.000 s" in result.output
    require_egl()
    for name, options in {"start": (), "later": ("--time", "0.15")}.items():
        result = cli("render", "a.npz", "--out", f"{name}.png", "--size", "128x72", *options)
        assert result.exit_code == 0, result.output
    result = cli("render", "double_pendulum", "--out", "scene.png", "--size", "128x72")
    assert np.array_equal(load_picture("start.png"), load_picture("scene.png"))
    assert not np.array_equal(load_picture("start.png"), load_picture("later.png"))


def test_a_film_of_a_recording(view, cli) -> None:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    require_egl()
    assert view("double_pendulum", *SMALL, "--duration", "0.5", "--record", "a.npz").exit_code == 0
    result = cli("render", "a.npz", "--out", "a.mp4", "--size", "64x36", "--duration", "0.2", "--fps", "20")
    assert result.exit_code == 0 and "4 frames" in result.output
    assert imageio_ffmpeg.count_frames_and_secs("a.mp4")[0] == 4


def test_a_robot_and_its_recording(view, arm) -> None:
    result = view(arm, "--fixed-base", *SMALL, "--duration", "0.3", "--record", "arm.npz")
    assert result.exit_code == 0, result.output
    header = load_motion("arm.npz").header
    assert Path(header.target) == arm.resolve() and header.fixed_base
    arm.rename("elsewhere.urdf")
    result = view("arm.npz", "--size", "128x96", "--duration", "0.1")
    assert result.exit_code == 2
    Path("elsewhere.urdf").rename(arm.name)
    assert view("arm.npz", "--size", "128x96", "--duration", "0.1").exit_code == 0


def test_many_worlds_faster_and_paused(view) -> None:
    result = view(
        "spinning_top", *SMALL, "--num-worlds", "3", "--max-worlds", "2", "--speed", "2", "--duration", "0.4",
        "--record", "a.npz",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert load_motion("a.npz").orientation.shape[1:] == (2, 1, 4)
    result = view("spinning_top", *SMALL, "--paused", "--duration", "0.2", "--record", "b.npz")
    assert "spinning_top: 0.000 s" in result.output and "b.npz: 1 frames" in result.output


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals SIGINT and SIGKILL, which Windows does not have")
@pytest.mark.parametrize("how, code", [("SIGINT", 130), ("SIGTERM", 130), ("SIGKILL", -9)])
def test_a_recording_that_is_broken_off_is_playable(view, cli, tmp_path, how: str, code: int) -> None:
    process = started("double_pendulum", "--record", "a.npz", "--duration", "60", folder=tmp_path)
    wait_for(tmp_path / "a.npz.part", 2000)
    process.send_signal(getattr(signal, how))
    _, error = process.communicate(timeout=240)
    assert process.returncode == code, error
    motion = load_motion("a.npz")
    assert len(motion) >= 10 and motion.complete is (how != "SIGKILL")
    result = view("a.npz", "--size", "128x96", "--duration", "0.2")
    assert result.exit_code == 0 and ("interrupted after" in result.output) is (how == "SIGKILL")
    drawn = cli("render", "a.npz", "--out", "a.png", "--size", "64x36")
    assert drawn.exit_code == 0 and ("interrupted after" in drawn.output) is (how == "SIGKILL")
    again = view("double_pendulum", *SMALL, "--duration", "0.1", "--record", "a.npz")
    assert again.exit_code == 0 and ("a-broken.npz.part" in again.output) is (how == "SIGKILL")
    if how == "SIGKILL":
        assert len(load_motion("a-broken.npz.part")) == len(motion)


def test_a_simulation_that_fails_leaves_its_recording(view, monkeypatch) -> None:
    from gpusim.errors import SimulationError
    from gpusim.simulation import Simulation

    step = Simulation.step

    def fail(self, n: int = 1, dt: float | None = None) -> None:
        if self.time > 0.05:
            raise SimulationError("worlds collided")
        step(self, n, dt)

    monkeypatch.setattr(Simulation, "step", fail)
    result = view("double_pendulum", *SMALL, "--duration", "5", "--record", "a.npz")
    assert result.exit_code == 1 and "worlds collided" in result.output
    assert 3 <= len(load_motion("a.npz")) <= 5


# What is in the picture.


@pytest.fixture
def seen(monkeypatch):
    from gpusim.viewer.window.pacing import Jitter
    from gpusim.viewer.window.window import Window

    windows = []

    def run(window, duration=None) -> Jitter:
        windows.append(window)
        window.frame(time.perf_counter())
        return window.pacer.overall()

    monkeypatch.setattr(Window, "run", run)
    return windows


PENDULUM = ("double_pendulum", *SMALL)


def test_camera_of_the_command_line(view, seen) -> None:
    assert view(*PENDULUM, "--camera", "3,-3,2,0.5,0,-0.5").exit_code == 0
    camera = seen[-1].sight.camera()
    assert camera.position == pytest.approx((3.0, -3.0, 2.0)) and camera.target == pytest.approx((0.5, 0.0, -0.5))
    for name, axis in {"front": (0.0, 1.0, 0.0), "right": (-1.0, 0.0, 0.0), "top": (0.0, 0.0, -1.0)}.items():
        assert view(*PENDULUM, "--camera", name).exit_code == 0
        assert seen[-1].sight.camera().forward @ axis > 0.99
    assert view(*PENDULUM).exit_code == 0
    usual = seen[-1].sight.camera().position
    assert view(*PENDULUM, "--camera", "scene").exit_code == 0
    assert seen[-1].sight.camera().position == pytest.approx(usual)


def test_overlays_of_the_command_line(view, seen) -> None:
    assert view(*PENDULUM, "--overlay", "joints,labels", "--overlay", "mass").exit_code == 0
    assert seen[-1].overlays == {"joints", "labels", "mass"}


@pytest.mark.parametrize("panel", ["--panel", "--no-panel"])
def test_following_a_body_of_the_command_line(view, seen, panel: str) -> None:
    assert view(*PENDULUM, "--follow", "rod2", panel).exit_code == 0
    sight = seen[-1].sight
    assert sight.followed is not None and sight.followed.body == 1
    assert sight.camera().target == pytest.approx(sight.center(sight.followed).tolist())


def test_one_world_of_the_command_line(view, seen) -> None:
    result = view(*PENDULUM, "--num-worlds", "4", "--world", "2", "--follow", "rod2", "--record", "a.npz")
    assert result.exit_code == 0, result.output
    assert seen[-1].sight.worlds == [2] and list(load_motion("a.npz").header.worlds) == [2]
    result = view(*PENDULUM, "--num-worlds", "4", "--max-worlds", "2", "--no-panel")
    assert "gpusim: drawing worlds 0 to 1 of 4; --max-worlds 4 draws all of them" in result.stderr
    assert seen[-1].sight.worlds == [0, 1]


def test_the_same_for_recordings_and_robots(view, seen, arm) -> None:
    record_motion("a.npz", 5, worlds=(1, 4))
    result = view("a.npz", "--size", "128x96", "--world", "4", "--camera", "front", "--overlay", "labels")
    assert result.exit_code == 0, result.output
    assert seen[-1].sight.worlds == [1] and seen[-1].overlays == {"labels"}
    assert view(arm, *SMALL, "--camera", "top", "--follow", "upper", "--overlay", "mass").exit_code == 0
    assert seen[-1].sight.followed.body == 0 and seen[-1].overlays == {"mass"}


def test_seeds_are_kept_through_restarts_and_in_recordings(view, seen, monkeypatch) -> None:
    from gpusim.viewer.window.window import Window

    look = Window.run

    def restart(window, duration=None):
        jitter = look(window, duration)
        window.session.restart({"count": 3})
        assert window.session.note == "restarted"
        window.session.source.operator.record("drive.jsonl")
        return jitter

    monkeypatch.setattr(Window, "run", restart)
    result = view("pile", "--seed", "7", "--set", "count=2", *SMALL, "--no-panel")
    assert result.exit_code == 0, result.output
    recorded = OperatorRecording.load("drive.jsonl").parameters
    assert (int(recorded["seed"]), int(recorded["count"])) == (7, 3)


@pytest.mark.parametrize(
    "options, reported",
    [
        (("--camera", "frnt"), "'front'"),
        (("--camera", "1,2"), "x,y,z,tx,ty,tz"),
        (("--overlay", "lables"), "'labels'"),
        (("--follow", "rod3"), "--follow 'rod3'"),
        (("--world", "2", "--num-worlds", "2"), "--world 2"),
        (("--backend", "gpu"), "--backend 'gpu'"),
        (("--quality", "ultra"), "--quality 'ultra'"),
        (("--set", "lenght=1"), "double_pendulum"),
        (("--replay", "none.jsonl"), "none.jsonl"),
        (("--mapping", "none.toml"), "none.toml"),
        (("--speed", "nan"), "--speed"),
        (("--duration", "inf"), "--duration"),
        (("--size", "0x0"), "WIDTHxHEIGHT"),
        (("--record", "."), "--record"),
    ],
)
def test_bad_options_are_reported_before_a_window_opens(nowhere, options: tuple[str, ...], reported: str) -> None:
    result = nowhere("double_pendulum", *options)
    assert result.exit_code == 2, result.output
    assert names(result.stderr, reported) and len(result.output.strip().splitlines()) == 1, result.output


@pytest.mark.parametrize(
    "name, content, reported",
    [
        ("empty.npz", b"", "'empty.npz'"),
        ("bad.npz", b"\x80\x04K\x01.", "'bad.npz'"),
        ("a.json", b"{}", ""),
        ("readme", b"words", ""),
        ("robot.urdf", None, ""),
        ("a.npz", None, ""),
    ],
)
def test_files_that_cannot_be_shown(nowhere, cli, name: str, content: bytes | None, reported: str) -> None:
    if content is None:
        Path(name).mkdir()
    else:
        Path(name).write_bytes(content)
    for result in (nowhere(name), cli("render", name, "--out", "a.png")):
        assert result.exit_code == 2 and names(result.stderr, reported), result.output
        assert len(result.output.strip().splitlines()) == 1


# Errors: one sentence, exit code 2, and nothing left behind.


@pytest.mark.parametrize(
    "options, reported",
    [
        (("--speed", "9"), "--speed 0.1 4"),
        (("--max-worlds", "0"), "--max-worlds"),
        (("--num-worlds", "0"), "--num-worlds"),
        (("--size", "big"), "WIDTHxHEIGHT"),
        (("--size", "10x10"), "WIDTHxHEIGHT"),
        (("--duration", "0"), "--duration"),
        (("--dt", "0"), "--dt"),
        (("--set", "lenght=1"), ""),
        (("--quality", "best"), "--quality"),
        (("--record", "a.mp4"), "--record 'a.mp4' .npz"),
        (("--record", "none/a.npz"), ""),
        ((), ""),
    ],
)
def test_bad_input_ends_with_one_sentence(nowhere, options: tuple[str, ...], reported: str) -> None:
    result = nowhere("double_pendulum", "--backend", FASTEST, *options)
    assert result.exit_code == 2, result.output
    assert names(result.output, reported) and len(result.output.strip().splitlines()) == 1
    assert os.listdir() == []


def test_no_display_with_a_recording_wished(nowhere) -> None:
    Path("a.npz").write_text("an older recording")
    result = nowhere("double_pendulum", "--backend", FASTEST, "--record", "a.npz")
    assert result.exit_code == 2
    assert Path("a.npz").read_text() == "an older recording"


@pytest.mark.parametrize(
    "arguments, reported",
    [
        (("none.npz",), ""),
        (("signals.npz",), ""),
        (("signals.npz", "--set", "a=1"), "--set"),
        (("signals.npz", "--num-worlds", "2"), "--num-worlds"),
        (("signals.npz", "--record", "b.npz"), "--record"),
        (("robot.urdf",), ""),
        (("robot.txt",), ""),
    ],
)
def test_what_cannot_be_shown(nowhere, arguments: tuple[str, ...], reported: str) -> None:
    np.savez("signals.npz", time=np.zeros(1))
    result = nowhere(*arguments)
    assert result.exit_code == 2 and names(result.output, reported), result.output


def test_no_write_permission_is_found_before_the_window_opens(nowhere, monkeypatch) -> None:
    def refuse(**where: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gpusim.output_files.tempfile.TemporaryFile", refuse)
    result = nowhere("double_pendulum", "--record", "a.npz")
    assert result.exit_code == 2


def test_a_driver_that_is_too_old(view, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MESA_GL_VERSION_OVERRIDE", "3.3")
    process = started("double_pendulum", "--duration", "5", folder=tmp_path)
    _, error = process.communicate(timeout=240)
    assert process.returncode == 2 and "no OpenGL 4.3 core profile" in error
    assert len(error.strip().splitlines()) == 1


def test_without_glfw(view, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "glfw", None)
    result = view("double_pendulum", *SMALL, "--duration", "5")
    assert result.exit_code == 2


def test_a_policy_drives_a_scene_next_to_the_operator(view, monkeypatch) -> None:
    pytest.importorskip("gymnasium")
    from gpusim.envs import MlpPolicy
    from gpusim.viewer.window.window import Window

    gains = np.array([[12.0, -1.0, 0.0, 0.0, 0.0, 0.0]])
    MlpPolicy([(gains, [0.0])], "tanh", "gpusim.envs.tasks.hydraulic_lift:HydraulicLift").save("lift.npz")
    found = {}

    def run(self: Window, duration: float | None) -> object:
        live = self.session.source
        assert live.operator is not None and "goal.height" in live.operator.inputs
        live.operator.set("goal.height", 0.33)
        live.run_to(2.0, 1e6, smooth=False)
        found["height"], found["dt"] = live.sim.read("joint.rail.position")[0], live.sim.config.dt
        live.operator.set("lift", 1.0)
        live.run_to(2.2, 1e6, smooth=False)
        found["command"] = live.sim.control["lift"][0]
        raise KeyboardInterrupt

    monkeypatch.setattr(Window, "run", run)
    view("hydraulic_lift", "--policy", "lift.npz", "--size", "128x96", "--backend", FASTEST)
    assert found["dt"] == 5e-3 and found["command"] == 1.0
    assert found["height"] == pytest.approx(0.33, abs=0.02)
