from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import gpusim
from gpusim.cli.main import app
from gpusim.description.actuator_kinds import ActuatorType
from gpusim.renamed import MOVED, OF_ACTUATORS, OF_CHAINS, OPTIONS, RENAMED, SINCE_0_3

PAGE = (Path(__file__).parents[2] / "docs/reference/renamed.md").read_text(encoding="utf-8").split("## Renamed in 0.2")
"""The tables of version 0.3, and those of version 0.2."""


@pytest.mark.parametrize(("old", "new"), [*RENAMED.items(), *OF_CHAINS.items(), *MOVED.items()])
def test_the_page_lists_each(old: str, new: str) -> None:
    part = PAGE[old not in SINCE_0_3]
    assert old.rsplit(".", 1)[-1] in part and new.rsplit(".", 1)[-1] in part


@pytest.mark.parametrize(
    ("call", "new"),
    [
        (lambda: gpusim.SolverConfig(epsilon=1e-6), "impulse_tolerance"),  # type: ignore[call-arg]
        (lambda: gpusim.ModelBuilder().add_joint_force(0, most_delay=1.0), "max_delay"),  # type: ignore[call-arg]
        (lambda: gpusim.ModelBuilder().add_brake(0, 1.0, safe=0.0), "set_command_map"),  # type: ignore[call-arg]
        (lambda: gpusim.control.Diagram(most_rate=3.0), "max_rate"),  # type: ignore[call-arg]
        (lambda: gpusim.importers.load_urdf("<robot/>", package_dirs=[]), "asset_dirs"),  # type: ignore[call-arg]
        (lambda: gpusim.control.Diagram().add("filter", "x", time=1.0), "lowpass"),
        (lambda: gpusim.geometry, "gpusim.shapes"),
        (lambda: importlib.import_module("gpusim.geometry"), "gpusim.shapes"),
        (lambda: exec("from gpusim import schedule"), "gpusim.command_schedule"),
        (lambda: exec("from gpusim.schedule import drive"), "gpusim.command_schedule"),
        (lambda: exec("from gpusim.control import add_imu"), "gpusim.sensors.add_imu"),
        (lambda: exec("from gpusim.model.actuator_kinds import ActuatorType"), "gpusim.description.actuator_kinds"),
        (lambda: gpusim.SolverConfig().epsilon, "impulse_tolerance"),  # type: ignore[attr-defined]
        (lambda: gpusim.control.add_imu, "gpusim.sensors.add_imu"),  # type: ignore[attr-defined]
    ],
)
def test_an_error_says_the_new_name(call, new: str) -> None:  # noqa: ANN001
    with pytest.raises((TypeError, AttributeError, ImportError, gpusim.ModelError), match=new):
        call()


@pytest.mark.parametrize(("old", "new"), OF_ACTUATORS.items())
def test_a_member_of_a_kind(old: str, new: str) -> None:
    part = PAGE[old not in SINCE_0_3]
    assert f"`{old}`" in part or f"<name>_{old}" in part
    for members in ({old: None}, {"kernel": (old,)}):
        with pytest.raises(gpusim.ModelError, match=f"Own.*{new}"):
            type("Own", (ActuatorType,), members)


@pytest.mark.parametrize(("changes", "new"), [({"place": [0] * 7}, "pose"), ({"kind": "turn"}, "revolute"),
                                             ({"kind": "slide"}, "prismatic")])  # fmt: skip
@pytest.mark.parametrize("kind", ["chain", "ik", "inverse_dynamics"])
def test_a_joint_of_a_chain(kind: str, changes: dict[str, object], new: str) -> None:
    joint = {"pose": [0, 0, 0, 0, 0, 0, 1], "axis": [0, 0, 1], "kind": "revolute"} | changes
    with pytest.raises(gpusim.ModelError, match=f"'{new}' since version 0[.]3"):
        gpusim.control.Diagram("d").add(kind, "b", joints=[joint])


@pytest.mark.parametrize("arguments", [("view", "chain", "--most-step", "0.1"), ("bench", "--peers")])
def test_an_old_option(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        app(list(arguments), prog_name="gpusim")
    assert f"since version 0.2, use {OPTIONS[next(a for a in arguments if a in OPTIONS)]}" in capsys.readouterr().err


def test_a_method(pendulum: gpusim.Simulation) -> None:
    with pytest.raises(AttributeError, match="Simulation.invalidate"):
        pendulum.changed()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Simulation.write.*'worlds' since version 0[.]3"):
        pendulum.write("sim.gravity", (0, 0, 1), world=0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Simulation.contacts.*'worlds' since version 0[.]3"):
        pendulum.contacts(world=0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Simulation.reset.*'worlds' since version 0[.]3"):
        pendulum.reset(mask=[True])  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="runtime.parameters"):
        pendulum.parameters  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="nothing"):
        pendulum.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.fixture
def pendulum() -> gpusim.Simulation:
    b = gpusim.ModelBuilder()
    b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0))
    return gpusim.Simulation(b.finalize(), backend="numpy")
