"""``gpusim view`` as a user types it, in a window on a display without a screen."""

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
from gpusim.viewer.pictures import load_picture
from tests.unit.viewer.display import display_variables
from tests.unit.viewer.drawing import require_egl

# long steps, so that NumPy keeps pace on a busy computer
SMALL = ("--size", "128x96", "--backend", "numpy", "--dt", "0.01")


@pytest.fixture
def view(cli, tmp_path, monkeypatch):
    """Runs ``gpusim view ...`` in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    for name, value in display_variables().items():
        monkeypatch.setenv(name, value)

    def invoke(*arguments: object):
        return cli("view", *arguments)

    return invoke


@pytest.fixture
def nowhere(cli, tmp_path, monkeypatch):
    """The same where no window can be opened: what is wrong must be found before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("WAYLAND_DISPLAY", "")

    def invoke(*arguments: object):
        return cli("view", *arguments)

    return invoke


def started(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """``gpusim view`` in a process of its own."""
    command = [sys.executable, "-c", "from gpusim.cli.main import main; main()", "view", *arguments, *SMALL]
    environment = {**os.environ, **display_variables()}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def wait_for(part: Path, size: int) -> None:
    """Until a growing file has so many bytes."""
    for _ in range(600):
        if part.is_file() and part.stat().st_size > size:
            return
        time.sleep(0.05)
    raise AssertionError(f"{part} did not grow")


def test_a_scene_runs_in_its_window_and_is_recorded_and_played(tmp_path) -> None:
    process = started(
        "double_pendulum", "--set", "length1=1.5", "--duration", "0.6", "--record", "a.npz", folder=tmp_path
    )
    out, error = process.communicate(timeout=60)
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
    assert result.exit_code == 2 and "put it beside the recording" in result.output
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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT and SIGKILL to break a process off with")
@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_recording_that_is_broken_off_is_playable(view, tmp_path, how: signal.Signals, code: int) -> None:
    process = started("double_pendulum", "--record", "a.npz", "--duration", "60", folder=tmp_path)
    wait_for(tmp_path / "a.npz.part", 2000)
    process.send_signal(how)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code, error
    motion = load_motion("a.npz")
    assert len(motion) >= 10 and motion.complete is (how == signal.SIGINT)
    result = view("a.npz", "--size", "128x96", "--duration", "0.2")
    assert result.exit_code == 0 and ("broken off" in result.output) is (how == signal.SIGKILL)


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


# Errors: one sentence, exit code 2, and nothing left behind.


@pytest.mark.parametrize(
    "options, told",
    [
        (("--speed", "9"), "--speed must be from 0.1 to 4"),
        (("--max-worlds", "0"), "--max-worlds"),
        (("--num-worlds", "0"), "--num-worlds"),
        (("--size", "big"), "WIDTHxHEIGHT"),
        (("--size", "10x10"), "WIDTHxHEIGHT"),
        (("--duration", "0"), "--duration"),
        (("--dt", "0"), "--dt"),
        (("--set", "lenght=1"), "unknown parameter"),
        (("--quality", "best"), "--quality"),
        (("--record", "a.mp4"), "--record: 'a.mp4' must end in .npz"),
        (("--record", "none/a.npz"), "does not exist"),
        ((), "no display: "),
    ],
)
def test_bad_input_ends_with_one_sentence(nowhere, options: tuple[str, ...], told: str) -> None:
    result = nowhere("double_pendulum", "--backend", "numpy", *options)
    assert result.exit_code == 2, result.output
    assert told in result.output and len(result.output.strip().splitlines()) == 1
    assert os.listdir() == []


def test_no_display_with_a_recording_wished(nowhere) -> None:
    result = nowhere("double_pendulum", "--backend", "numpy", "--record", "a.npz")
    assert result.exit_code == 2 and "gpusim: no display: " in result.output


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("none.npz",), "does not exist"),
        (("signals.npz",), "holds signals but not the poses"),
        (("signals.npz", "--set", "a=1"), "--set is for simulations"),
        (("signals.npz", "--num-worlds", "2"), "--num-worlds is for simulations"),
        (("signals.npz", "--record", "b.npz"), "--record is for simulations"),
        (("robot.urdf",), "does not exist"),
        (("robot.txt",), "neither a scene nor a file"),
    ],
)
def test_what_cannot_be_shown(nowhere, arguments: tuple[str, ...], told: str) -> None:
    np.savez("signals.npz", time=np.zeros(1))
    result = nowhere(*arguments)
    assert result.exit_code == 2 and told in result.output, result.output


def test_no_write_permission_is_found_before_the_window_opens(nowhere, monkeypatch) -> None:
    def refuse(**where: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gpusim.recording.files.tempfile.TemporaryFile", refuse)
    result = nowhere("double_pendulum", "--record", "a.npz")
    assert result.exit_code == 2 and "not writable (Permission denied)" in result.output


def test_a_driver_that_is_too_old(view, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MESA_GL_VERSION_OVERRIDE", "3.3")  # read once in a process
    process = started("double_pendulum", "--duration", "5", folder=tmp_path)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2 and "no OpenGL 4.3 core profile" in error
    assert len(error.strip().splitlines()) == 1


def test_without_glfw(view, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "glfw", None)
    result = view("double_pendulum", *SMALL, "--duration", "5")
    assert result.exit_code == 2 and "pip install glfw" in result.output
