"""``gpusim list``, ``gpusim doctor``, ``--version`` and ``--help``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import gpusim
from gpusim.backends.native.compile import find_compiler
from gpusim.cli import probes
from gpusim.cli.commands import doctor as doctor_module
from gpusim.scene import list_scenes, load_scene, scene_parameters
from tests.unit.viewer.display import display_variables
from tests.unit.viewer.drawing import require_egl


def test_list_shows_every_scene_with_its_line(cli) -> None:
    result = cli("list")
    assert result.exit_code == 0, result.output
    for name, description in list_scenes().items():
        assert re.search(rf"│ {name} +│ {re.escape(description[:40])}", result.stdout)


@pytest.mark.parametrize("scene", list_scenes())
def test_list_shows_every_parameter_with_its_meaning(cli, scene: str) -> None:
    result = cli("list", scene)
    assert result.exit_code == 0, result.output
    for parameter in scene_parameters(scene):
        assert parameter.doc, f"{parameter.name} is not documented"
        assert re.search(rf"│ {parameter.name} +│ (?!- )", result.stdout)


def test_list_shows_the_defaults_of_variants(cli) -> None:
    shown = {parameter.name: parameter.left_out for parameter in scene_parameters("hydraulic_lift")}
    assert shown["mass"] == "100, ramped 5000, closed_center 1000" and shown["tank_pressure"] == "100000"
    for variant, mass in (("step", 100.0), ("ramped", 5000.0), ("closed_center", 1000.0)):
        bodies = load_scene("hydraulic_lift", variant=variant).builder.bodies
        assert mass in [body.mass for body in bodies]
    assert re.search(r"│ mass +│ 100, ramped", cli("list", "hydraulic_lift").stdout)
    assert re.search(r"│ spin +│ 100, 5 if free", cli("list", "spinning_top").stdout)
    assert re.search(r"│ rate +│ none +│", cli("list", "robot_arm").stdout)


def test_version(cli) -> None:
    result = cli("--version")
    assert result.exit_code == 0
    assert result.stdout == f"gpusim {gpusim.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_the_commands(cli, arguments: list[str]) -> None:
    result = cli(*arguments)
    assert result.exit_code == 0
    for command in ("run", "list", "bench", "doctor"):
        assert command in result.stdout


def test_help_of_run_names_every_option(cli) -> None:
    result = cli("run", "--help")
    assert result.exit_code == 0
    options = "set duration dt substeps iterations backend dtype joint-solver scheme num-worlds seed signals out plot"
    for option in [*options.split(), "fixed-base"]:
        assert f"--{option}" in result.stdout


@pytest.mark.nightly
def test_doctor_finds_a_working_backend(cli) -> None:
    result = cli("doctor")
    assert result.exit_code == 0, result.output
    assert re.search(r"│ numpy +│ works +│ runs the stages in NumPy", result.stdout)
    parts = "Python,scipy,matplotlib,C++ compiler,OpenMP,cache folder,NVIDIA driver,cupy,NVRTC,native"
    parts += ",PyOpenGL,glfw,imgui-bundle,imageio-ffmpeg,EGL,display,drawing"
    for name in parts.split(","):
        assert f"│ {name} " in result.stdout
    assert "the first that works of cuda, native, numpy" in result.stdout


@pytest.fixture
def no_viewer(monkeypatch) -> None:
    monkeypatch.setattr(doctor_module, "probe_viewer", lambda: [])
    monkeypatch.setattr(doctor_module, "probe_readers", lambda: [])


def test_doctor_without_any_backend_exits_with_1(cli, monkeypatch, no_viewer) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ImportError("scipy needs an older numpy")

    monkeypatch.setattr(gpusim.Simulation, "__init__", broken)
    result = cli("doctor")
    assert result.exit_code == 1
    assert "scipy needs an older numpy" in result.stdout
    assert "No backend works" in result.stdout


def test_doctor_finds_wrong_results(monkeypatch) -> None:
    monkeypatch.setattr(doctor_module, "_fall", lambda backend: 0.04)
    finding = doctor_module.try_backend("numpy")
    assert not finding.good and "wrong results" in finding.detail


def test_doctor_survives_a_bare_computer(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert not probes.probe_compiler().good
    assert not probes.probe_driver().good


def test_doctor_names_a_package_that_is_missing() -> None:
    finding = probes.probe_package("gpusim_no_such_package")
    assert not finding.good and finding.detail == "not installed"
    assert finding.hint == "pip install --upgrade gpusim_no_such_package"


def test_doctor_knows_the_extras_of_readers() -> None:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for (name, _, extra, _), found in zip(probes.READERS, probes.probe_readers(), strict=True):
        assert any(re.match(rf"{name}\b", requirement) for requirement in project["optional-dependencies"][extra]), name
        assert found.good or found.hint == f'pip install "gpusim[{extra}]"'


def test_doctor_prints_the_hint_for_what_is_missing(cli, monkeypatch, no_viewer) -> None:
    monkeypatch.setattr(doctor_module, "probe_computer", lambda: [probes.Finding("part", False, "gone", "buy one")])
    assert re.search(r"│ part +│ missing +│ gone; fix: buy one +│", cli("doctor").stdout)


@pytest.mark.nightly
def test_doctor_draws_a_picture() -> None:
    require_egl()
    finding = probes.probe_picture()
    assert finding.good, finding.detail
    assert re.fullmatch(r"off screen: OpenGL 4\.\d core, .+, quality \w+", finding.detail)


@pytest.mark.nightly
def test_doctor_names_what_is_missing_to_draw(monkeypatch) -> None:
    monkeypatch.setenv("MESA_GL_VERSION_OVERRIDE", "3.3")
    monkeypatch.setenv("LIBGL_ALWAYS_SOFTWARE", "1")
    finding = probes.probe_picture()
    assert not finding.good and finding.hint == "install a graphics driver, or Mesa"
    assert "no OpenGL 4.3 core profile" in finding.detail or "EGL" in finding.detail


@pytest.mark.parametrize(
    "code, trouble",
    [
        ("print(1)", ""),
        ("import os; os.kill(os.getpid(), 11)", "it crashes (SIGSEGV)"),
        ("raise SystemExit(7)", "it ends with code 7"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("print('no card'); raise SystemExit(3)", "no card"),
    ],
)
@pytest.mark.skipif(
    sys.platform == "win32", reason="needs signals: on Windows, a crashed process has an exit code instead"
)
def test_a_driver_that_crashes_leaves_the_doctor_alive(code: str, trouble: str) -> None:
    assert probes.run_child(code)[0] == trouble


def test_a_driver_that_hangs_leaves_the_doctor_alive(monkeypatch) -> None:
    monkeypatch.setattr(probes, "TIMEOUT", 0.2)
    assert probes.run_child("import time; time.sleep(60)")[0] == "it does not answer within 0.2 s"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux selects a display by its name (DISPLAY)")
def test_doctor_names_the_display(monkeypatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "")
    finding = probes.probe_display()
    assert not finding.good and "neither DISPLAY nor WAYLAND_DISPLAY is set" in finding.detail
    monkeypatch.setenv("DISPLAY", ":987")
    pytest.importorskip("glfw")
    finding = probes.probe_display()
    assert not finding.good and finding.detail.startswith("DISPLAY=:987, ")


def test_doctor_sees_a_display_that_is_there(monkeypatch) -> None:
    variables = display_variables()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    finding = probes.probe_display()
    assert finding.good and finding.detail.startswith(f"DISPLAY={variables['DISPLAY']}, 1280 x 800")


def test_doctor_names_the_extra_for_a_viewer_package(monkeypatch) -> None:
    def missing(wanted: str) -> str:
        raise PackageNotFoundError(wanted)

    monkeypatch.setattr(probes, "version", missing)
    monkeypatch.setattr(probes, "run_child", lambda code: ("not tried", ""))
    findings = {finding.name: finding for finding in probes.probe_viewer()}
    for name, extra in (("imgui-bundle", "panel"), ("imageio-ffmpeg", "video")):
        assert not findings[name].good and findings[name].detail.startswith("for ")
        assert findings[name].hint == f'pip install "gpusim[{extra}]"'


@pytest.mark.parametrize(("driver", "hint"), [(13000, "cuda13"), (12040, "cuda12"), (11080, "driver"), (0, "driver")])
def test_hint_for_cuda_follows_the_driver(driver: int, hint: str) -> None:
    assert hint in probes.cuda_hint(driver)


def test_doctor_names_a_cache_that_cannot_be_written(monkeypatch, tmp_path) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("GPUSIM_CACHE", str(file / "cache"))
    finding = probes.probe_cache()
    assert not finding.good and "GPUSIM_CACHE" in finding.hint


@pytest.mark.nightly
@pytest.mark.native
def test_doctor_writes_headers_that_a_compiler_follows(cli, tmp_path) -> None:
    folder = tmp_path / "headers"
    result = cli("doctor", "--headers", str(folder))
    assert result.exit_code == 0, result.output
    assert f"clangd --compile-commands-dir={folder}" in result.stdout
    assert {file.name for file in folder.iterdir()} >= {"world.cuh", "kinds.cuh", "sizes.cuh", "compile_commands.json"}
    commands = json.loads((folder / "compile_commands.json").read_text())
    assert {Path(command["file"]).name for command in commands} == {"fused.cu", "staged.cu", "signals.cu", "rays.cu"}
    for command in (commands[0], *commands[2:]):
        arguments = [find_compiler(), *command["arguments"][1:]]
        done = subprocess.run(arguments, cwd=command["directory"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_doctor_writes_all_headers_or_none(cli, tmp_path, monkeypatch) -> None:
    write, written = Path.write_text, []

    def full_disk(file, text, **options) -> int:
        written.append(file.name)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        return write(file, text, **options)

    monkeypatch.setattr(Path, "write_text", full_disk)
    result = cli("doctor", "--headers", str(tmp_path))
    assert result.exit_code == 2, result.output
    assert "No space left on device" in result.output
    assert list(tmp_path.iterdir()) == []
