from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gpusim.viewer
from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.description.actuator_kinds import _KINDS, ActuatorType, Group, Parameter, Reading, actuator_kinds, register
from gpusim.description.joint_kinds import _KINDS as JOINTS
from gpusim.description.shape_kinds import shape_kinds
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.model.model import Model
from gpusim.reference.step_buffers import StepBuffers
from gpusim.scene import Plot
from gpusim.typing import Array
from gpusim.viewer.operator import Operator
from gpusim.viewer.panel.history import History
from gpusim.viewer.panel.ranges import signal_range
from tests.message_snapshot import naming


class Winch(ActuatorType):
    name: ClassVar[str] = "winch"
    prefix: ClassVar[str] = "winch"
    commands: ClassVar[tuple[str, ...]] = ("speed", "clutch", "trim")
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("fastest", "m/s", "greatest speed of the rope"),)

    @staticmethod
    def _speed(group: Group, work: StepBuffers) -> Array:
        return work.control[:, group.control["speed"]]

    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("speed", "m/s", "speed of the rope", _speed, range=lambda p: (-p["fastest"], p["fastest"])),
        Reading("free", "m/s", "of which nothing is known", _speed),
    )

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        return {"speed": 0.5, "clutch": 0.0, "trim": 3.0}[name]

    def ui_hints(self, model: Model, spec: ActuatorSpec, name: str) -> UiHints:
        if name == "speed":
            fastest = float(spec.params["fastest"])
            return UiHints(-fastest, fastest, safe=-0.25, unit="m/s", springs=False)
        if name == "clutch":
            return UiHints(0.0, 1.0, safe=1.0, switch=True, springs=False)
        return super().ui_hints(model, spec, name)


@pytest.fixture
def winch() -> Iterator[Simulation]:
    register(Winch)
    b = ModelBuilder()
    b.add_body(mass=1.0, inertia=(1.0,) * 3, xform=Transform((0.0, 0.0, 1.0)))
    b.add_actuator("winch", "rope", {"fastest": 2.0})
    yield Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=0.01))
    _KINDS.forget("winch")


def test_a_new_kind_is_steered_and_stopped(winch: Simulation) -> None:
    operator = Operator(winch)
    speed, clutch, trim = operator.inputs.values()
    assert (speed.name, speed.lower, speed.upper, speed.initial, speed.unit) == ("rope", -2.0, 2.0, 0.5, "m/s")
    assert not speed.springs and speed.doc == "speed of the rope"
    assert clutch.name == "rope.clutch" and clutch.switch
    assert (trim.lower, trim.upper, trim.safe, trim.springs) == (-1.0, 3.0, 0.0, True)  # nothing declared
    assert [(x.command, x.moved_by) for x in operator.mapping.bindings] == [
        ("rope", "1 2, left y"), ("rope.trim", "3 4, left x"), ("rope.clutch", "F5, a"),
    ]  # fmt: skip
    operator.set("rope", 1.5)
    operator.before_steps(0.0)
    assert winch.control["rope"][0] == 1.5
    operator.emergency_stop()
    operator.before_steps(0.0)
    assert [winch.control[name][0] for name in ("rope", "rope.clutch", "rope.trim")] == [-0.25, 1.0, 0.0]


def test_a_new_kind_is_gauged(winch: Simulation) -> None:
    assert signal_range(winch.model, "winch.rope.speed") == (-2.0, 2.0)
    assert signal_range(winch.model, "winch.rope.free") is None
    history = History(winch, [Plot("Rope", "cm/s", ["winch.rope.speed"], scale=100.0)])
    history.sample()
    (scope,) = history.scopes
    assert history.gauge_ends(scope, 0, history.course(scope)[1]) == (-200.0, 200.0)


@pytest.mark.parametrize("kind", actuator_kinds(), ids=lambda kind: kind.name)
def test_all_kinds_with_commands_declare_them(kind: ActuatorType) -> None:
    if kind.commands:
        assert type(kind).ui_hints is not ActuatorType.ui_hints
        assert "afe" in (type(kind).ui_hints.__doc__ or "")


def test_the_viewer_knows_no_kind_by_name() -> None:
    kinds = {kind.name for kind in (*actuator_kinds(), *JOINTS.all(), *shape_kinds())}
    names = "|".join(kinds - {"motion", "spring", "wheel"})
    by_name = re.compile(rf"""["']({names})["']|\.kind\s*(==|!=|in|not in)\s*[\[({{]?["']""")
    folders = [Path(room.__file__ or "").parent for room in (gpusim.viewer, gpusim.stage)]
    files = {
        file.relative_to(folder.parent).as_posix().removeprefix("viewer/"): file.read_text(encoding="utf-8")
        for folder in folders
        for file in folder.rglob("*.py")
    }
    assert {"stage/meshes.py", "gl/see_through.py", "window/picking.py", "panel/ranges.py"} <= files.keys()
    assert not [f"{name}: {found.group()}" for name, text in files.items() for found in by_name.finditer(text)]


def test_steering_has_its_values_in_its_range() -> None:
    from tests.unit.viewer.operators import arm, machine

    sims: list[Any] = [arm(), arm(mode="velocity"), machine("a", brake_force=1.0)]
    for model in (sim.model for sim in sims):
        for spec in model.actuators:
            kind = next(kind for kind in actuator_kinds() if kind.name == spec.kind)
            for command in kind.commands:
                ui_hints = kind.ui_hints(model, spec, command)
                assert np.isfinite([ui_hints.lower, ui_hints.upper]).all() and ui_hints.lower < ui_hints.upper
                assert ui_hints.lower <= kind.default_command(spec, command) <= ui_hints.upper
                assert (ui_hints.safe is None) == (ui_hints.measured is not None)


def test_a_servo_offers_the_range_that_it_is_given() -> None:
    b = ModelBuilder()
    slide = b.add_joint_prismatic(-1, b.add_body(1.0, (1, 1, 1)), axis=(0, 0, 1))
    b.add_servo(slide, "velocity", damping=1.0, label="lift", command_range=(-0.2, 7.0))
    (item,) = Operator(Simulation(b.finalize(), backend="numpy")).inputs.values()
    assert (item.lower, item.upper, item.safe) == (-0.2, 7.0, 0.0)
    for given, hint in (((1.0, -1.0), ""), ((1.0, 2.0), "0")):
        with pytest.raises(gpusim.ModelError, match=naming(hint)):
            b.add_servo(slide, "velocity", damping=1.0, command_range=given)
