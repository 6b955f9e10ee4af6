"""``gpusim render`` as a user types it."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpusim.viewer.pictures import Film
from tests.backends import FASTEST
from tests.cli.recordings import record_motion
from tests.message_snapshot import names
from tests.pictures import load_picture
from tests.unit.viewer.drawing import require_egl

needs_films = pytest.mark.skipif(
    importlib.util.find_spec("imageio_ffmpeg") is None,
    reason='imageio-ffmpeg is not installed; pip install "gpusim[video]"',
)


@pytest.fixture
def render(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: object):
        small = () if "--size" in arguments else ("--size", "64x36")
        return cli("render", *arguments, *small, "--backend", FASTEST)

    return invoke


@pytest.fixture
def draws() -> None:
    require_egl()


def frames_of(path: Path) -> int:
    import imageio_ffmpeg

    reader = imageio_ffmpeg.read_frames(str(path))
    next(reader)
    return sum(1 for _ in reader)


def test_a_picture_of_a_scene(render, draws) -> None:
    result = render("double_pendulum", "--out", "a.png", "--size", "128x72")
    assert result.exit_code == 0, result.output
    assert "a.png: 128x72, at 0 s, drawn by " in result.output
    assert load_picture("a.png").shape == (72, 128, 3)
    assert os.listdir() == ["a.png"]


@pytest.mark.nightly
def test_a_picture_at_a_time_with_other_parameters_and_from_elsewhere(render, draws) -> None:
    common = ("double_pendulum", "--dt", "0.01")
    calls = {
        "start": (),
        "later": ("--time", "0.4"),
        "longer": ("--time", "0.4", "--set", "length1=1.5"),
        "elsewhere": ("--time", "0.4", "--camera", "3,-3,2,0,0,-0.5"),
        "top": ("--time", "0.4", "--camera", "top"),
        "followed": ("--time", "0.4", "--follow", "rod2"),
        "medium": ("--time", "0.4", "--quality", "medium"),
    }
    pictures = {}
    for name, options in calls.items():
        result = render(*common, *options, "--out", f"{name}.png")
        assert result.exit_code == 0, result.output
        pictures[name] = load_picture(f"{name}.png")
    names = list(pictures)
    for k, name in enumerate(names):
        assert all(not np.array_equal(pictures[name], pictures[other]) for other in names[:k]), name


def test_overlays(render, draws) -> None:
    common = ("double_pendulum", "--size", "128x72")
    calls = {"none": (), "one": ("--overlay", "joints"), "two": ("--overlay", "joints, labels")}
    calls["each"] = ("--overlay", "joints", "--overlay", "labels")
    pictures = {}
    for name, options in calls.items():
        result = render(*common, "--out", f"{name}.png", *options)
        assert result.exit_code == 0, result.output
        pictures[name] = load_picture(f"{name}.png")
    assert not np.array_equal(pictures["none"], pictures["one"])
    assert not np.array_equal(pictures["one"], pictures["two"])
    assert np.array_equal(pictures["two"], pictures["each"])


def test_walls_and_shapes_as_they_are(render, draws) -> None:
    options = ("--size", "160x90")
    for scene, option in (("pile", "--no-glass"), ("double_pendulum", "--no-decoration")):
        assert render(scene, *options, "--out", "a.png").exit_code == 0
        assert render(scene, *options, "--out", "b.png", option).exit_code == 0
        assert not np.array_equal(load_picture("a.png"), load_picture("b.png"))


def test_model_files_have_no_decoration(render, draws, arm) -> None:
    shown = arm.with_name("shown.urdf")
    shape = "<collision><geometry><box size='1 0.1 0.1'/></geometry></collision>"
    shown.write_text(arm.read_text().replace('<link name="upper">', f'<link name="upper">{shape}'))
    for file, default in ((shown, "--no-decoration"), (arm, "--decoration")):
        pictures = {}
        for option in ("", "--no-decoration", "--decoration"):
            result = render(file, *filter(None, [option]), "--size", "160x90", "--out", "a.png")
            assert result.exit_code == 0, result.output
            pictures[option] = load_picture("a.png")
        assert not np.array_equal(pictures["--decoration"], pictures["--no-decoration"])
        assert np.array_equal(pictures[""], pictures[default])


def test_worlds(render, draws) -> None:
    for name, options in {"two": (), "one": ("--max-worlds", "1"), "second": ("--world", "1")}.items():
        result = render("spinning_top", "--num-worlds", "2", *options, "--out", f"{name}.png")
        assert result.exit_code == 0, result.output
    assert np.array_equal(load_picture("one.png"), load_picture("second.png"))
    assert not np.array_equal(load_picture("one.png"), load_picture("two.png"))


def test_a_robot(render, draws, arm) -> None:
    assert render(arm, "--out", "arm.png", "--fixed-base", "--time", "0.05").exit_code == 0


@needs_films
def test_a_film_has_the_frames_that_its_length_asks_for(render, draws) -> None:
    result = render("double_pendulum", "--out", "a.mp4", "--dt", "0.01", "--duration", "0.5", "--fps", "20")
    assert result.exit_code == 0, result.output
    assert "10 frames, 0.5 s at 20 frames/s" in result.output
    assert frames_of(Path("a.mp4")) == 10
    assert os.listdir() == ["a.mp4"]


@needs_films
def test_a_film_that_is_cut_short_is_playable(tmp_path) -> None:
    path = tmp_path / "a.mp4"
    with pytest.raises(KeyboardInterrupt), Film(path, 64, 36, 30.0) as film:
        for _ in range(5):
            film.add(np.zeros((36, 64, 3), dtype=np.uint8))
        raise KeyboardInterrupt
    assert frames_of(path) == 5
    with Film(tmp_path / "b.mp4", 64, 36, 30.0):
        pass
    assert os.listdir(tmp_path) == ["a.mp4"]


@pytest.mark.nightly
@needs_films
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX limit on the size of files, which simulates a full disk")
def test_a_film_on_a_full_disk_is_no_file(tmp_path) -> None:
    code = (
        "import resource, signal, sys, numpy as np\n"
        "from gpusim.viewer.pictures import Film\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "noise = np.random.default_rng(1)\n"
        "try:\n"
        "    with Film(sys.argv[1], 128, 72, 30.0) as film:\n"
        "        for _ in range(int(sys.argv[2])):\n"
        "            film.add(noise.integers(0, 255, (72, 128, 3), dtype=np.uint8))\n"
        "except OSError as error:\n"
        "    sys.exit(str(error))\n"
    )
    for frames in (3, 400):
        command = [sys.executable, "-c", code, str(tmp_path / "a.mp4"), str(frames)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1 and "a.mp4' could not be written; ffmpeg says: " in done.stderr, done.stderr
        assert os.listdir(tmp_path) == []


def test_without_the_film_writer(render, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    result = render("double_pendulum", "--out", "a.mp4")
    assert result.exit_code == 2
    assert 'pip install "gpusim[video]"' in result.output


def test_a_failed_simulation_leaves_its_picture(render, draws, monkeypatch) -> None:
    from gpusim.errors import SimulationError
    from gpusim.simulation import Simulation

    def fail(self, n: int = 1, dt: float | None = None) -> None:
        raise SimulationError("worlds collided")

    monkeypatch.setattr(Simulation, "step", fail)
    result = render("double_pendulum", "--out", "a.png", "--time", "1")
    assert result.exit_code == 1 and "worlds collided" in result.output
    assert Path("a.png").is_file()


@pytest.mark.parametrize(
    "options, reported",
    [
        (("--out", "a.gif"), ".png"),
        (("--out", "nowhere/a.png"), ""),
        (("--out", "a.png", "--camera", "1,2,3"), "x,y,z,tx,ty,tz"),
        (("--out", "a.png", "--camera", "frnt"), "'front'"),
        (("--out", "a.png", "--camera", "1,1,1,1,1,1"), ""),
        (("--out", "a.png", "--size", "large"), "WIDTHxHEIGHT"),
        (("--out", "a.mp4", "--size", "65x36"), ""),
        (("--out", "a.png", "--time", "-1"), "--time"),
        (("--out", "a.png", "--fps", "0"), "--fps"),
        (("--out", "a.png", "--duration", "1"), "--duration"),
        (("--out", "a.png", "--max-worlds", "0"), "--max-worlds"),
        (("--out", "a.png", "--world", "1"), "--world 1"),
        (("--out", "a.png", "--set", "lenght=1"), ""),
        (("--out", "a.png", "--set", "lenght=1"), "'length2' 'length1'"),
        (("--out", "a.png", "--set", "lenght=1"), "double_pendulum"),
        (("--out", "a.png", "--quality", "best"), "--quality 'best'"),
        (("--out", "a.png", "--time", "nan"), "--time"),
        (("--out", "a.png", "--time", "soon"), "--time 'soon'"),
        (("--out", "a.png", "--size", "0x0"), "WIDTHxHEIGHT"),
        (("--out", "a.png", "--size", "99999x10"), "WIDTHxHEIGHT"),
        (("--out", "a.png", "--size", "-5x10"), "WIDTHxHEIGHT"),
        (("--out", "a.png", "--camera", "nan,0,0,0,0,1"), ""),
        (("--out", "a.png", "--camera", ""), ""),
        (("--out", "a.png", "--world", "-1"), "--world -1"),
        (("--out", "a.png", "--fps", "inf"), "--fps"),
        (("--out", "a.png", "--num-worlds", "0"), "--num-worlds 1"),
        (("--out", "a.png", "--replay", "none.jsonl"), "none.jsonl"),
        (("--out", "."), ".png"),
        (("--out", "a.mp4", "--duration", "0"), "--duration"),
        (("--out", "a.png", "--overlay", "joints,lables"), "'labels'"),
        ((), "--out"),
    ],
)
def test_bad_input_ends_with_one_sentence(render, options: tuple[str, ...], reported: str) -> None:
    result = render("double_pendulum", *options)
    assert result.exit_code == 2, result.output
    assert names(result.output, reported) and len(result.output.strip().splitlines()) == 1
    assert os.listdir() == []


def test_an_unknown_body_to_follow(render, draws) -> None:
    result = render("double_pendulum", "--out", "a.png", "--follow", "rod3")
    assert result.exit_code == 2 and names(result.output, "rod2")


def test_a_backend_that_does_not_work_here_is_reported_at_any_time(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpusim.backends.why_not", lambda name: "there is no GPU")
    for time in ("0", "0.1"):
        result = cli("render", "double_pendulum", "--out", "a.png", "--backend", "cuda", "--time", time)
        assert result.exit_code == 2 and names(result.stderr, "backend 'cuda'")
    assert os.listdir() == []


def test_worlds_that_are_not_drawn_are_reported(render, draws) -> None:
    common = ("spinning_top", "--out", "a.png", "--num-worlds", "5")
    result = render(*common, "--max-worlds", "3")
    assert result.exit_code == 0
    assert result.stderr == (
        "gpusim: drawing worlds 0 to 2 of 5; --max-worlds 5 draws all of them, --world N draws one\n"
    )
    assert "drawing world 0 of 5" in render(*common, "--max-worlds", "1").stderr
    assert render(*common).stderr == "" and render(*common, "--world", "4").stderr == ""


# Recordings.


def test_worlds_of_a_recording_have_the_numbers_with_which_they_were_recorded(render, cli, draws) -> None:
    record_motion("a.npz", 20, worlds=(0, 3, 5))
    size, pictures = ("--size", "64x36", "--time", "0.2"), {}
    for world in (0, 3, 5):
        assert cli("render", "a.npz", "--out", "a.png", "--world", world, *size).exit_code == 0
        pictures[world] = load_picture("a.png")
    assert not np.array_equal(pictures[3], pictures[5]) and not np.array_equal(pictures[0], pictures[3])
    result = cli("render", "a.npz", "--out", "a.png", "--world", "1", *size)
    assert result.exit_code == 2 and names(result.stderr, "--world 1")
    result = cli("render", "a.npz", "--out", "a.png", "--max-worlds", "2", *size)
    assert result.exit_code == 0 and "drawing worlds 0, 3 of 3" in result.stderr


@pytest.mark.nightly
@needs_films
def test_a_film_of_a_whole_recording_ends_with_its_last_frame(cli, draws, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    record_motion("a.npz")  # 0.5 s
    pictures = []
    add = Film.add
    monkeypatch.setattr(Film, "add", lambda film, picture: (pictures.append(picture), add(film, picture)))
    size = ("--size", "64x36")
    result = cli("render", "a.npz", "--out", "a.mp4", *size, "--fps", "16")
    assert result.exit_code == 0 and result.stderr == ""
    assert "a.mp4: 64x36, 9 frames, 0.5625 s at 16 frames/s, up to 0.5 s, drawn by " in result.stdout
    assert frames_of(Path("a.mp4")) == 9
    assert cli("render", "a.npz", "--out", "end.png", *size, "--time", "0.5").exit_code == 0
    assert np.array_equal(pictures[-1], load_picture("end.png"))
    # where the end lies between two frames of the film, it is shown in the next
    assert "7 frames, 0.636364 s at 11 frames/s, up to 0.5 s" in cli(
        "render", "a.npz", "--out", "a.mp4", *size, "--fps", "11"
    ).stdout  # fmt: skip
    assert np.array_equal(pictures[-1], load_picture("end.png"))


@needs_films
def test_a_film_that_is_shorter_than_asked_for_is_reported(cli, draws, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    record_motion("a.npz")
    film = ("render", "a.npz", "--out", "a.mp4", "--size", "64x36", "--fps", "10")
    result = cli(*film, "--duration", "100", "--time", "0.2")
    assert result.exit_code == 0
    assert (
        result.stderr == "gpusim: the recording ends 0.3 s after --time 0.2, so the film is shorter than --duration\n"
    )
    assert "4 frames, 0.4 s at 10 frames/s, up to 0.5 s" in result.stdout
    result = cli(*film, "--duration", "0.3")
    assert result.stderr == "" and "3 frames, 0.3 s at 10 frames/s" in result.stdout


@pytest.mark.parametrize(
    "options, reported",
    [
        (("--time", "3"), "0.05"),
        (("--follow", "rod3"), "--follow 'rod3' 'rod2' 'rod1'"),
        (("--world", "1"), "--world 1"),
        (("--max-worlds", "0"), "--max-worlds"),
        (("--backend", "numpy"), "--backend"),
        (("--num-worlds", "2"), "--num-worlds"),
        (("--duration", "nan", "--out", "a.mp4"), "--duration"),
        (("--duration", "-1", "--out", "a.mp4"), "--duration"),
        (("--overlay", "contcts"), "'contacts'"),
    ],
)
def test_bad_options_for_recordings(cli, tmp_path, monkeypatch, options: tuple[str, ...], reported: str) -> None:
    monkeypatch.chdir(tmp_path)
    record_motion("a.npz", 5)
    out = () if "--out" in options else ("--out", "a.png")
    result = cli("render", "a.npz", *out, "--size", "64x36", *options)
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert names(result.stderr, reported) and os.listdir() == ["a.npz"]


def test_a_recording_of_a_scene_that_has_changed(cli, tmp_path, monkeypatch) -> None:
    from gpusim.recording.motion import load_motion, save_motion

    monkeypatch.chdir(tmp_path)
    record_motion("a.npz", 5)
    motion = load_motion("a.npz")
    header = dataclasses.replace(motion.header, parameters={"stiffness": "3"})
    save_motion(dataclasses.replace(motion, header=header), "a.npz")
    result = cli("render", "a.npz", "--out", "a.png")
    assert result.exit_code == 2 and names(result.stderr, "recording 'a.npz'")


def test_a_recording_of_signals_cannot_be_drawn(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("run.npz", time=np.zeros(1))
    result = cli("render", "run.npz", "--out", "a.png")
    assert result.exit_code == 2 and names(result.output, "--record")
    assert names(cli("render", "run.npz", "--out", "a.png", "--dt", "0.1").output, "--dt")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root may write into any folder; the next test raises this error itself",
)
def test_a_folder_without_write_permission(render, tmp_path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    result = render("double_pendulum", "--out", folder / "a.png")
    assert result.exit_code == 2


def test_no_write_permission_is_found_before_anything_is_drawn(render, monkeypatch) -> None:
    def refuse(**where: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gpusim.output_files.tempfile.TemporaryFile", refuse)
    result = render("double_pendulum", "--out", "a.png")
    assert result.exit_code == 2


def test_nothing_to_draw_with(render, monkeypatch) -> None:
    from gpusim.viewer import ViewerError, offscreen

    def refuse() -> None:
        raise ViewerError("cannot draw: the EGL library is missing")

    monkeypatch.setattr(offscreen, "OffscreenContext", refuse)
    result = render("double_pendulum", "--out", "a.png")
    assert result.exit_code == 2
    assert os.listdir() == []


def test_a_robot_as_painted_or_by_what_collides(render, draws) -> None:
    rover = Path(__file__).parents[1] / "data" / "urdf" / "rover.urdf"
    pictures = []
    for option in ((), ("--no-visuals",)):
        assert render(rover, "--out", "a.png", "--size", "160x90", *option).exit_code == 0
        pictures.append(load_picture("a.png").astype(int))
    assert (np.abs(pictures[0] - pictures[1]).max(axis=2) > 40).mean() > 0.02
