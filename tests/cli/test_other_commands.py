"""``gpusim list``, ``gpusim doctor``, ``--version`` and ``--help``."""

from __future__ import annotations

import re

import pytest

import gpusim
from gpusim.cli import doctor as doctor_module
from gpusim.cli import probes
from gpusim.scene import list_scenes, scene_parameters


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
        assert re.search(rf"│ {parameter.name} +│", result.stdout)


def test_version(cli) -> None:
    result = cli("--version")
    assert result.exit_code == 0
    assert result.stdout == f"gpusim {gpusim.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_the_commands(cli, arguments: list[str]) -> None:
    result = cli(*arguments)
    assert result.exit_code == 0
    for command in ("run", "list", "doctor"):
        assert command in result.stdout


def test_help_of_run_names_every_option(cli) -> None:
    result = cli("run", "--help")
    assert result.exit_code == 0
    options = "set duration dt substeps iterations backend dtype joint-solver scheme num-worlds seed signals out plot"
    for option in [*options.split(), "fixed-base"]:
        assert f"--{option}" in result.stdout


def test_doctor_finds_a_working_backend(cli) -> None:
    result = cli("doctor")
    assert result.exit_code == 0, result.output
    assert re.search(r"│ numpy +│ works +│ runs the stages in NumPy", result.stdout)
    for name in ("Python", "numba", "scipy", "matplotlib", "C++ compiler", "NVIDIA driver", "cupy", "EGL", "native"):
        assert f"│ {name} " in result.stdout


def test_doctor_without_any_backend_exits_with_1(cli, monkeypatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ImportError("numba needs an older numpy")

    monkeypatch.setattr(gpusim.Simulation, "__init__", broken)
    result = cli("doctor")
    assert result.exit_code == 1
    assert "numba needs an older numpy" in result.stdout
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
    assert not finding.good and "pip install" in finding.detail
