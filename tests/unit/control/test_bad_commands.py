from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation
from gpusim.control import Diagram
from tests.message_snapshot import naming
from tests.unit.helpers import both_backends, slider


def pushed(backend: str, delay: float = 0.0, diagram: bool = True) -> Simulation:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    late = {"delay": delay, "max_delay": delay} if delay else {}
    b.add_joint_force(slider(b), label="push", **late)
    if diagram:
        d = Diagram("law")
        d.add("input", "stick", lower=-1.0, upper=1.0, default=1.0)
        d.add("expression", "share", text="log(stick)")
        d.connect("stick", "share.stick")
        d.connect("share", "command:push")
        b.add_diagram(d)
    return Simulation(b.finalize(), 2, backend=backend)


@both_backends
def test_the_command_and_its_diagram_are_named(backend: str) -> None:
    sim = pushed(backend)
    sim.step(2)
    sim.control["stick"] = [1.0, 0.0]
    with pytest.warns(UserWarning, match=naming("1 'push' -inf 'law'")):
        sim.step(2)
    assert sim.health().tolist() == [True, False]
    report = sim.health_report()
    assert report.startswith("world 1: body 'slide' has ") and report.endswith("-inf, which diagram 'law' gives")
    sim.control["stick"] = 1.0
    sim.step(2)
    assert sim.health_report() == report
    sim.reset([1])
    assert sim.health_report() == "all worlds are fine"


@both_backends
def test_a_command_on_its_way_stops_its_world_before_it_acts(backend: str) -> None:
    sim = pushed(backend, delay=5e-3)
    sim.step(2)
    sim.control["stick"] = [1.0, 0.0]
    with pytest.warns(UserWarning, match=naming("1 'push' -inf 'law'")):
        sim.step(1)


@both_backends
def test_a_command_that_a_person_gave_is_named_too(backend: str) -> None:
    sim = pushed(backend, diagram=False)
    sim.control.array[0] = np.nan
    sim.invalidate()
    with pytest.warns(UserWarning, match=naming("0 'push' nan")):
        sim.step(2)


@both_backends
def test_the_range_of_a_block_does_not_hide_a_bad_command(backend: str) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_joint_force(slider(b), label="push")
    d = Diagram("law")
    d.add("command", "c", command="push", lower=-1.0, upper=1.0)
    d.connect(d.add("expression", "share", text="inf - inf"), "c")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend=backend)
    with pytest.warns(UserWarning, match=naming("0 'push' nan 'law'")):
        sim.step(2)


@both_backends
def test_other_failures_are_reported_as_they_were(backend: str) -> None:
    sim = pushed(backend)
    sim.write("body.slide.linear_velocity", (1e12, 0.0, 0.0), worlds=0)
    with pytest.warns(UserWarning, match=naming("t 0")):
        sim.step(1)
    assert "command" not in sim.health_report()


def test_a_command_written_as_an_attribute_is_refused() -> None:
    sim = pushed("numpy", diagram=False)
    with pytest.raises(AttributeError, match=r"sim\.control\['push'\]"):
        sim.control.push = 1.0  # type: ignore[attr-defined]
    sim.control["push"] = 1.0
    assert sim.control["push"].tolist() == [1.0, 1.0]
