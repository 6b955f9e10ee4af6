from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.cli.options import RunOptions
from gpusim.cli.targets import load_target
from gpusim.recording.plots import draw
from gpusim.recording.recorder import Recording, load_recording
from gpusim.scene import Check
from tests.message_snapshot import names

SCENE = "double_pendulum"
SHORT = (SCENE, "--duration", "0.05")


def row(output: str, name: str) -> str:
    match = re.search(rf"│ {re.escape(name)} +│ (.*?) *│", output)
    assert match, output
    return match.group(1)


def test_summary_reports_what_the_run_came_to(cli) -> None:
    result = cli("run", *SHORT)
    assert result.exit_code == 0, result.output
    assert row(result.stdout, "simulated time") == "0.05 s in 50 steps"
    assert float(row(result.stdout, "wall time").split()[0]) > 0.0
    assert float(row(result.stdout, "real-time factor")) > 0.0
    start, end = (float(row(result.stdout, f"energy at {when}").split()[0]) for when in ("start", "end"))
    assert end == pytest.approx(start, abs=1e-3)
    assert float(row(result.stdout, "greatest joint drift").split()[0]) < 1e-6
    assert row(result.stdout, "health") == "good"
    assert result.stderr == ""


def test_recording_holds_time_and_the_signals_of_the_plots(cli, tmp_path) -> None:
    out = tmp_path / "run.npz"
    result = cli("run", *SHORT, "--out", out, "--num-worlds", 3)
    assert result.exit_code == 0, result.output
    recording = load_recording(out)
    np.testing.assert_allclose(recording.time, 0.001 * np.arange(51), atol=1e-12)
    assert recording["joint.hinge1.position"].shape == (51, 3)
    assert row(result.stdout, "health") == "good in all 3 worlds"
    assert row(result.stdout, "written") == str(out)


@pytest.mark.parametrize("suffix", ["parquet", "mcap", "csv", "rrd"])
def test_the_suffix_of_out_chooses_the_format(cli, tmp_path, suffix: str) -> None:
    arguments = ("run", *SHORT, "--rate", 100, "--out-dtype", "float32", "--out")
    for out in (tmp_path / f"run.{suffix}", tmp_path / "run.npz"):
        result = cli(*arguments, out)
        assert result.exit_code == 0, result.output
        assert row(result.stdout, "written").replace("\n", "") in str(out)
    found, wanted = (load_recording(tmp_path / f"run.{one}") for one in (suffix, "npz"))
    np.testing.assert_allclose(found.time, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05], atol=1e-9)
    for name, values in wanted.signals.items():
        np.testing.assert_array_equal(found[name].astype(np.float32), values)


def test_chosen_signals_are_recorded_and_their_last_values_shown(cli, tmp_path) -> None:
    out = tmp_path / "run.npz"
    names = "joint.*.velocity, body.rod2.position"
    result = cli("run", *SHORT, "--out", out, "--signals", names, "--signals", "sim.kinetic_energy")
    assert result.exit_code == 0, result.output
    recording = load_recording(out)
    assert sorted(recording.signals) == [
        "body.rod2.position",
        "joint.hinge1.velocity",
        "joint.hinge2.velocity",
        "sim.kinetic_energy",
    ]
    assert recording["body.rod2.position"].shape == (51, 1, 3)
    assert row(result.stdout, "joint.hinge1.velocity").endswith(" rad/s")
    shown = float(row(result.stdout, "sim.kinetic_energy").split()[0])
    assert shown == pytest.approx(recording["sim.kinetic_energy"][-1, 0], rel=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("more", [[], ["--out", "run.npz"], ["--plot", "run.png"]])
def test_checks_of_a_whole_run_are_reported(cli, tmp_path, monkeypatch, more: list[str]) -> None:
    seen: list[int] = []

    def passes(run: Mapping[str, np.ndarray]) -> bool:
        seen.append(len(run["time"]))
        assert run["joint.hinge1.position"].shape == (len(run["time"]), 1)
        return bool(run["time"][-1] < 10.0)

    def loaded(options: Any, visuals: bool) -> Any:
        scene = load_target(options, visuals=visuals)
        scene.duration, scene.checks = 0.1, [Check("it is short", passes), *broken]
        return scene

    broken: list[Check] = []
    monkeypatch.setattr("gpusim.cli.commands.run.load_target", loaded)
    monkeypatch.chdir(tmp_path)
    result = cli("run", SCENE, *more)
    assert result.exit_code == 0, result.output
    assert row(result.stdout, "checks") == "all met" and seen == [11]
    assert cli("run", SCENE, *more, "--duration", 0.2).exit_code == 0 and seen == [11, 11]
    broken += [Check("it spins", lambda run: False), Check("it sings", lambda run: False)]
    result = cli("run", SCENE, *more)
    assert result.exit_code == 1 and row(result.stdout, "checks") == "not met: it spins; it sings"
    assert result.stderr.splitlines()[-1] == "gpusim: checks not met: it spins; it sings"
    result = cli("run", SCENE, *more, "--iterations", 9)
    assert result.exit_code == 0 and "it sings (some checks need settings" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--set", "angle1=0.1", "--duration", 10], "they need the scene's default parameters, and --set changes"),
        (["--duration", 0.05], "--duration 0.05 ends before the scene's 10 s"),
        (["--num-worlds", 2, "--duration", 10], "they need one world, and --num-worlds is 2"),
        (["--signals", "sim.time", "--duration", 10], "they need the scene's signals, and --signals records others"),
        (["--num-worlds", 2, "--duration", 1], "--duration 1 ends before the scene's 10 s; they need one"),
    ],
)
def test_checks_that_a_run_leaves_out_are_reported_in_one_line(
    cli, monkeypatch, options: list[Any], reason: str
) -> None:
    never = Check("it sings", lambda run: False)

    def loaded(options: Any, visuals: bool) -> Any:
        scene = load_target(options, visuals=visuals)
        scene.checks = [never]
        return scene

    monkeypatch.setattr("gpusim.cli.commands.run.load_target", loaded)
    result = cli("run", SCENE, "--dt", 0.01, *options)
    assert result.exit_code == 0 and result.stderr == "", result.output
    assert row(result.stdout, "checks").startswith(f"not run: {reason}")


def test_a_robot_has_no_checks_to_report_of(cli, arm: Path) -> None:
    assert "checks" not in cli("run", arm, "--duration", "0.01").stdout


def test_checks_of_a_run_that_failed_are_not_run(cli, monkeypatch) -> None:
    def loaded(options: Any, visuals: bool) -> Any:
        scene = load_target(options, visuals=visuals)
        scene.duration, scene.checks = 0.1, [Check("it stands still", lambda run: True)]
        return scene

    original = gpusim.Simulation.step

    def step(self: Any, n: int = 1, dt: float | None = None) -> None:
        if 0.05 <= self.time < 0.051:
            self.write("body.rod1.linear_velocity", (1e12, 0.0, 0.0))
        original(self, n, dt)

    monkeypatch.setattr("gpusim.cli.commands.run.load_target", loaded)
    monkeypatch.setattr(gpusim.Simulation, "step", step)
    result = cli("run", SCENE)
    assert result.exit_code == 1 and row(result.stdout, "health") == "failed"
    assert row(result.stdout, "checks") == "not run: the run ended at 0.05 s"
    assert result.stderr.splitlines()[-1].startswith("gpusim: 1 of 1 worlds failed: world 0: ")


def test_joints_that_came_apart_exit_with_1(cli, monkeypatch) -> None:
    gap, turn = "joints came 0.03 m apart", "a locked rotation of a joint has an error of 0.03 rad"
    for error, found in (("joint_drift", gap), ("joint_tilt_peak", turn)):
        monkeypatch.setattr("gpusim.cli.loop._worst", lambda sim, name, error=error: 0.03 if name == error else 0.0)
        result, reported = cli("run", *SHORT), f"{found}; use a smaller step"
        assert result.exit_code == 1 and row(result.stdout, "health") == f"bad: {reported}"
        assert result.stderr == f"gpusim: {reported}\n"


def test_warnings_keep_the_exit_code(cli, monkeypatch) -> None:
    line = "world 0: 2 substeps ended before the solve converged"
    monkeypatch.setattr("gpusim.backends.accuracy_watch.AccuracyWatch.report", lambda self: [line])
    result = cli("run", *SHORT)
    assert result.exit_code == 0 and row(result.stdout, "health") == f"warned: {line}"


def test_of_many_worlds_that_failed_one_is_reported(cli, monkeypatch) -> None:
    monkeypatch.setattr(gpusim.Simulation, "health", lambda self: np.array([False, False, True]))
    monkeypatch.setattr(gpusim.Simulation, "health_report", lambda self: "world 0: NaN\nworld 1: NaN")
    result = cli("run", *SHORT, "--num-worlds", "3")
    assert result.exit_code == 1 and result.stderr == "gpusim: 2 of 3 worlds failed: world 0: NaN\n"


@pytest.mark.parametrize("signals", [None, "joint.hinge1.position,sim.kinetic_energy"])
def test_plot_is_drawn_from_the_scene_or_the_chosen_signals(cli, tmp_path, signals: str | None) -> None:
    plot = tmp_path / "run.svg"
    arguments = ["run", *SHORT, "--plot", plot] + (["--signals", signals] if signals else [])
    result = cli(*arguments)
    assert result.exit_code == 0, result.output
    assert plot.read_text().startswith("<?xml")
    assert [file.name for file in tmp_path.iterdir()] == ["run.svg"]


@pytest.mark.parametrize("more", [[], ["--dt", "0.0007"], ["--duration", "0.083"]])
def test_samples_of_a_picture_span_the_whole_run(cli, tmp_path, monkeypatch, more: list[str]) -> None:
    taken: list[Recording] = []

    def keep(plots: Any, recording: Recording, title: str) -> Any:
        taken.append(recording)
        return draw(plots, recording, title)

    monkeypatch.setattr("gpusim.cli.commands.run.draw", keep)
    monkeypatch.setattr("gpusim.cli.commands.run._PICTURE_SAMPLES", 20)
    result = cli("run", *SHORT, *more, "--plot", tmp_path / "run.png")
    assert result.exit_code == 0, result.output
    (recording,) = taken
    duration = float(row(result.stdout, "simulated time").split()[0])
    assert recording.time[0] == 0.0
    assert recording.time[-1] == pytest.approx(duration)
    assert np.all(np.diff(recording.time) > 0.0)
    assert 20 <= len(recording) <= 42


def test_parameters_reach_the_scene(cli, tmp_path) -> None:
    out = tmp_path / "run.npz"
    result = cli("run", *SHORT, "--set", "angle1=0", "--set", "angle2 = 0.25", "--out", out)
    assert result.exit_code == 0, result.output
    recording = load_recording(out)
    assert recording["joint.hinge1.position"][0, 0] == pytest.approx(0.0)
    assert abs(recording["joint.hinge2.position"][0, 0]) == pytest.approx(0.25)


def test_options_reach_the_simulation(cli, monkeypatch) -> None:
    seen: dict[str, Any] = {}
    original = gpusim.Simulation.__init__

    def spy(self: Any, model: Any, **arguments: Any) -> None:
        seen.update(arguments)
        original(self, model, **arguments)

    monkeypatch.setattr(gpusim.Simulation, "__init__", spy)
    options = "--dt 0.002 --substeps 3 --iterations 5 --joint-solver colored --scheme semi_implicit"
    more = "--backend numpy --dtype float32 --num-worlds 4"
    result = cli("run", *SHORT, *options.split(), *more.split())
    assert result.exit_code == 0, result.output
    config = seen["config"]
    assert (config.dt, config.substeps, config.iterations) == (0.002, 3, 5)
    assert (config.joint_solver, config.scheme) == ("colored", "semi_implicit")
    assert (seen["backend"], seen["dtype"], seen["num_worlds"]) == ("numpy", "float32", 4)


def test_a_fallback_to_the_slow_backend_is_reported(cli, monkeypatch) -> None:
    monkeypatch.setattr("gpusim.backends.why_not", lambda name: "" if name == "numpy" else f"no {name} here")
    result = cli("run", "double_pendulum", "--duration", "0.01")
    assert result.exit_code == 0 and "gpusim uses the slow NumPy backend" in result.stderr
    assert "no native here" in result.stderr
    assert "slow NumPy" not in cli("run", "double_pendulum", "--duration", "0.01", "--backend", "numpy").stderr


def test_same_command_line_gives_the_same_bits(cli, tmp_path) -> None:
    for name in ("a.npz", "b.npz"):
        result = cli("run", *SHORT, "--seed", "7", "--out", tmp_path / name)
        assert result.exit_code == 0, result.output
    first, second = (load_recording(tmp_path / name) for name in ("a.npz", "b.npz"))
    for name, samples in first.signals.items():
        assert samples.tobytes() == second[name].tobytes()


def test_seed_of_a_scene_without_randomness_is_reported(cli) -> None:
    result = cli("run", *SHORT, "--seed", "7")
    assert result.exit_code == 0
    assert "draws no random numbers" in result.stderr


def fail_after(monkeypatch: pytest.MonkeyPatch, steps: int, error: BaseException) -> None:
    """Make the simulation raise ``error`` once ``steps`` steps are done."""
    original = gpusim.Simulation.step
    done = 0

    def step(self: Any, n: int = 1, dt: float | None = None) -> None:
        nonlocal done
        if done >= steps:
            raise error
        done += n
        original(self, n, dt)

    monkeypatch.setattr(gpusim.Simulation, "step", step)


def test_failed_simulation_saves_what_it_has_and_exits_with_1(cli, tmp_path, monkeypatch) -> None:
    fail_after(monkeypatch, 20, gpusim.SimulationError("world 0: body 'rod1' has a NaN velocity"))
    out, plot = tmp_path / "run.npz", tmp_path / "run.png"
    result = cli("run", *SHORT, "--out", out, "--plot", plot)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == ["gpusim: world 0: body 'rod1' has a NaN velocity"]
    assert row(result.stdout, "health") == "failed"
    assert len(load_recording(out)) == 21
    assert plot.exists()


def test_interrupted_run_saves_what_it_has_and_exits_with_130(cli, tmp_path, monkeypatch) -> None:
    fail_after(monkeypatch, 20, KeyboardInterrupt())
    out = tmp_path / "run.npz"
    result = cli("run", *SHORT, "--out", out)
    assert result.exit_code == 130
    assert "interrupted at 0.02 s" in result.stderr
    assert len(load_recording(out)) == 21


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_interrupted_run_saves_a_checkpoint_between_two_steps(cli, tmp_path, monkeypatch, backend) -> None:
    path = tmp_path / "run.npz"
    assert cli("run", *SHORT, "--backend", backend, "--save", path).exit_code == 0
    fail_after(monkeypatch, 20, KeyboardInterrupt())
    result = cli("run", *SHORT, "--backend", backend, "--save", path)
    assert result.exit_code == 130
    assert ("no checkpoint" in result.stderr) == (backend == "numpy")
    assert gpusim.Simulation.load(path).time == pytest.approx(0.05 if backend == "numpy" else 0.02)


def test_sick_worlds_are_reported_and_exit_with_1(cli, monkeypatch) -> None:
    monkeypatch.setattr(gpusim.Simulation, "health", lambda self: np.array([True, False, True]))
    monkeypatch.setattr(gpusim.Simulation, "health_report", lambda self: "world 1: NaN in body 'rod1'")
    result = cli("run", *SHORT, "--num-worlds", "3")
    assert result.exit_code == 1
    assert row(result.stdout, "health") == "2 of 3 worlds good"
    assert "1 of 3 worlds failed: world 1: NaN in body 'rod1'" in result.stderr


def test_world_that_fails_leaves_the_others_running(cli, tmp_path, monkeypatch) -> None:
    original = gpusim.Simulation.step

    def step(self: Any, n: int = 1, dt: float | None = None) -> None:
        if 0.02 <= self.time < 0.021:
            self.write(f"body.{self.model.bodies[0].label}.linear_velocity", (1e12, 0.0, 0.0), worlds=0)
        original(self, n, dt)

    monkeypatch.setattr(gpusim.Simulation, "step", step)
    out = tmp_path / "run.npz"
    result = cli("run", *SHORT, "--num-worlds", "3", "--out", out)
    assert result.exit_code == 1
    assert row(result.stdout, "simulated time") == "0.05 s in 50 steps"
    assert row(result.stdout, "health") == "2 of 3 worlds good"
    notes = result.stderr.splitlines()
    assert len(notes) == 2 and notes[0].startswith("gpusim: warning: world 0 failed"), result.stderr
    assert notes[1].startswith("gpusim: 1 of 3 worlds failed: world 0: ")
    recording = load_recording(out)
    np.testing.assert_allclose(recording.time, 0.001 * np.arange(51), atol=1e-12)
    for samples in recording.signals.values():
        assert np.all(np.isfinite(samples))


def test_disk_that_fills_up_is_no_traceback(cli, tmp_path, monkeypatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpusim.recording.formats.npz_file.ZipFile", full)
    out = tmp_path / "run.npz"
    result = cli("run", *SHORT, "--out", out)
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr and repr(str(out)) in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz.part"]
    assert len(load_recording(tmp_path / "run.npz.part")) == 51


def test_robot_is_held_at_its_zero_pose(cli, arm: Path, tmp_path) -> None:
    out = tmp_path / "run.npz"
    result = cli("run", arm, "--dt", "0.005", "--out", out, "--plot", tmp_path / "run.png")
    assert result.exit_code == 0, result.output
    assert row(result.stdout, "simulated time") == "2 s in 400 steps"
    recording = load_recording(out)
    assert set(recording.signals) == {"joint.shoulder.position", "joint.rail.position"}
    assert np.max(np.abs(recording["joint.shoulder.position"])) < 0.02
    assert np.max(np.abs(recording["joint.rail.position"])) < 0.02


def test_robot_swings_from_its_fixed_base(cli, arm: Path, tmp_path) -> None:
    out = tmp_path / "run.npz"
    result = cli("run", arm, "--fixed-base", "--out", out, "--duration", "1", "--dt", "0.005")
    assert result.exit_code == 0, result.output
    assert np.max(load_recording(out)["joint.shoulder.position"]) > 1.0


def test_warnings_of_the_importer_are_shown(cli, arm: Path) -> None:
    arm.write_text(arm.read_text().replace('<mass value="0.5"/>', '<mass value="0"/>'))
    result = cli("run", arm, "--duration", "0.01")
    assert result.exit_code == 0, result.output
    assert "gpusim: warning: " in result.stderr and "slide" in result.stderr


def test_robot_without_movable_joints_runs(cli, tmp_path) -> None:
    path = tmp_path / "stone.urdf"
    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    link = f'<link name="a"><inertial><mass value="1"/>{inertia}</inertial></link>'
    path.write_text(f'<robot name="stone">{link}</robot>')
    result = cli("run", path, "--duration", "0.01", "--plot", tmp_path / "run.png")
    assert result.exit_code == 0, result.output


@pytest.mark.nightly
@pytest.mark.parametrize("fixed_base", [False, True])
@pytest.mark.parametrize(("robot", "path"), [("upkie_description", "URDF_PATH"), ("jvrc_description", "urdf_path")])
def test_robots_of_others_run(cli, robot: str, path: str, fixed_base: bool) -> None:
    description = pytest.importorskip(robot)
    arguments = ["run", getattr(description, path), "--duration", "0.5"] + (["--fixed-base"] if fixed_base else [])
    result = cli(*arguments)
    assert result.exit_code == 0, result.output
    assert row(result.stdout, "health") == "good"


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("duration", [4, 6, 7, 9])
def test_a_picture_leaves_the_checks_as_they_are(cli, tmp_path, duration: int) -> None:
    for more in ([], ["--plot", tmp_path / "lift.png"], ["--out", tmp_path / "lift.npz", "--rate", 10]):
        result = cli("run", "hydraulic_lift", "--duration", duration, *more)
        assert result.exit_code == 0 and row(result.stdout, "checks") == "all met", result.output


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("scene", "duration"), [("dc_motor_rig", 3), ("dc_motor_rig", 7), ("chrono_crane", 41)])
def test_other_scenes_with_a_picture_meet_their_checks(cli, tmp_path, scene: str, duration: int) -> None:
    if scene == "chrono_crane":
        duration = round(2 * load_target(RunOptions(scene)).duration) + 1
    result = cli("run", scene, "--duration", duration, "--plot", tmp_path / "a.png")
    assert result.exit_code == 0 and row(result.stdout, "checks") == "all met", result.output


@pytest.mark.native
@pytest.mark.parametrize("line", ["hydraulic_lift", "suspension_rig", "dc_motor_rig --dt 0.5", "quarter_car --dt 1"])
def test_coarse_steps_leave_checks_without_samples(cli, line: str) -> None:
    result = cli("run", *(line if "--dt" in line else f"{line} --dt 0.1").split())
    assert result.exit_code in (0, 1) and result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output and "Warning" not in result.stderr


def test_a_check_without_its_samples_is_reported(cli, monkeypatch) -> None:
    def loaded(options: Any, visuals: bool) -> Any:
        scene = load_target(options, visuals=visuals)
        scene.duration, scene.checks = 0.1, [Check("it rises late", lambda run: run["time"][run["time"] > 1].max() > 0)]
        return scene

    monkeypatch.setattr("gpusim.cli.commands.run.load_target", loaded)
    result = cli("run", SCENE, "--dt", 0.05)
    assert result.exit_code == 0, result.output
    assert row(result.stdout, "checks") == "not checked: it rises late, because 3 samples are too few"


@pytest.mark.parametrize(("rate", "dt", "times"), [(100, 0.001, 6), (400, 0.001, 21), (20, 0.005, 2), (1e-3, 0.001, 2)])
def test_rate_is_that_of_the_file(cli, tmp_path, rate: float, dt: float, times: int) -> None:
    out = tmp_path / "run.npz"
    result = cli("run", *SHORT, "--dt", dt, "--out", out, "--rate", rate)
    assert result.exit_code == 0, result.output
    time = load_recording(out).time
    wanted = np.minimum(np.arange(times) / rate, 0.05)
    assert len(time) == times and np.abs(time - wanted).max() <= 0.5 * dt + 1e-12 and time[-1] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ("--rate 100", "--rate --out"),
        ("--out a.npz --rate 1001", "--rate 1001 1000"),
        ("--out a.npz --rate 0", "--rate 0"),
        ("--out a.npz --rate nan", "--rate 0"),
    ],
)
def test_rates_that_make_no_sense_are_refused(cli, tmp_path, monkeypatch, options: str, reported: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("run", *SHORT, *options.split())
    assert result.exit_code == 2 and names(result.stderr, reported) and list(tmp_path.iterdir()) == []


def test_a_run_continues_from_its_checkpoint(cli, tmp_path) -> None:
    first, whole, last = (tmp_path / f"{name}.npz" for name in ("first", "whole", "last"))
    many = ("run", "hydraulic_lift", "--num-worlds", 2)
    for options in (("--duration", 0.05, "--save", first), ("--duration", 0.12, "--save", whole)):
        result = cli(*many, "--dt", 0.001, *options)
        assert result.exit_code == 0 and row(result.stdout, "written") == str(options[-1]), result.output
    resumed = ("run", "hydraulic_lift", "--resume", first, "--duration", 0.07)
    result = cli(*resumed, "--save", last)
    assert result.exit_code == 0, result.output
    assert row(result.stdout, "simulated time") == "0.07 s in 70 steps"
    assert row(result.stdout, "health") == "good in all 2 worlds"
    ends = [gpusim.Simulation.load(path).read_state() for path in (whole, last)]
    for name, array in ends[0].items():
        np.testing.assert_array_equal(array, ends[1][name], err_msg=name)
    for options, words in ((("--num-worlds", 2), "--num-worlds --resume"), (("--set", "mass=7"), "first.npz bodies")):
        result = cli(*resumed, *options)
        assert result.exit_code == 2 and names(result.stderr, words), result.output
    result = cli("run", "hydraulic_lift", "--resume", tmp_path / "missing.npz")
    assert result.exit_code == 2 and names(result.stderr, "missing.npz"), result.output
