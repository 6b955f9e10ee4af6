from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gpusim.cli.commands.run as run_module
from gpusim import GpusimError, ModelBuilder, Simulation, SolverConfig
from gpusim.cli.main import app
from gpusim.errors import SimulationError
from gpusim.scene import Scene
from tests.message_snapshot import naming

from .resting import add_ball, ground

BALLS, PLACES = 6, 4
CASES = [("native", "fused"), ("native", "staged"), ("numpy", "auto")]
each_case = pytest.mark.parametrize(("backend", "launch"), CASES)


def row_of_balls() -> ModelBuilder:
    b = ground()
    for k in range(BALLS):
        add_ball(b, x=0.5 * k, label=f"ball{k}")
    return b


def simulate(backend: str, launch: str = "auto", **config: Any) -> Simulation:
    settings = SolverConfig(**{"dt": 0.005, "max_pairs": PLACES, **config})
    sim = Simulation(row_of_balls().finalize(), 2, backend=backend, launch=launch, config=settings)
    for k in range(PLACES, BALLS):
        sim.write(f"body.ball{k}.position", (0, 0, 2.0 + k), worlds=0)
    return sim


@pytest.mark.nightly
@each_case
def test_a_run_warns_once_with_the_number_to_give(backend, launch) -> None:
    sim = simulate(backend, launch)
    with pytest.warns(UserWarning, match=naming("1 6")) as found:
        sim.step(2)
    assert len(found) == 1 and found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(2)
        sim.reset()
        sim.step()
    enough = int(re.search(r"max_pairs=(\d+)", str(found[0].message)).group(1))  # type: ignore[union-attr]
    assert enough >= BALLS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more = simulate(backend, launch, max_pairs=enough)
        more.step(2)
    assert not more.read("sim.health").any()
    assert more.health_report() == "all worlds are fine"


@each_case
def test_health_reports_until_the_reset(backend, launch) -> None:
    sim = simulate(backend, launch)
    with pytest.warns(UserWarning, match=naming("max_pairs")):
        sim.step(2)
    assert sim.read("sim.health").tolist() == [0, 2]
    assert sim.health().all(), "worlds go on"
    assert sim.read("sim.pairs").tolist() == [PLACES, PLACES]
    assert sim.read("sim.pair_peak").tolist() == [PLACES, BALLS]
    assert sim.read_state()["pair_overflow"].tolist() == [0, 2 * (BALLS - PLACES)]
    report = sim.health_report().splitlines()
    assert len(report) == 1 and report[0].startswith("world 1: 6 pairs")
    sim.reset([1])
    assert sim.read("sim.health").tolist() == [0, 0]
    assert sim.read("sim.pair_peak").tolist() == [PLACES, 0]
    assert sim.health_report() == "all worlds are fine"


@each_case
def test_strict_settings_raise_in_every_run_that_loses_pairs(backend, launch) -> None:
    sim = simulate(backend, launch, strict=True)
    for _ in range(2):
        with pytest.raises(SimulationError, match=naming("1 6 max_pairs SolverConfig")):
            sim.step()
    assert isinstance(SimulationError(""), GpusimError)
    for k in range(PLACES, BALLS):
        sim.write(f"body.ball{k}.position", (0, 0, 2.0 + k))
    sim.step(3)
    assert sim.read("sim.health").tolist() == [0, 2], "the lost contacts stay reported"


def test_reading_signals_alone_raises_nothing() -> None:
    sim = simulate("native", strict=True)
    assert sim.read("sim.contacts").tolist() == [PLACES, PLACES]
    assert sim.read("sim.health").tolist() == [0, 0]


def test_of_several_worlds_the_message_serves_all() -> None:
    sim = simulate("native")
    sim.write("body.ball4.position", (2.0, 0, 0.1), worlds=0)
    with pytest.warns(UserWarning, match=naming("1 6")):
        sim.step()


@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 1)])
def test_gpusim_run_reports_and_fails_in_strict_mode(monkeypatch, strict, code) -> None:
    config = SolverConfig(dt=0.005, max_pairs=PLACES, strict=strict)
    scene = Scene("balls", "balls on the ground", row_of_balls(), config, duration=0.02)
    monkeypatch.setattr(run_module, "load_target", lambda options, **more: scene)
    result = CliRunner().invoke(app, ["run", "balls", "--backend", "native"])
    assert result.exit_code == code, result.output
    table = " ".join(result.stdout.split())
    assert "close pairs of shapes │ at most 6, capacity 4" in table
    assert result.stderr.count("6 pairs of shapes are close") == 1
    assert ("health │ failed" if strict else "health │ warned: world 0: 6 pairs") in table


def test_high_water_mark_is_kept_while_worlds_go_on() -> None:
    sim = simulate("native", max_pairs=BALLS)
    sim.step()
    for k in range(BALLS):
        sim.write(f"body.ball{k}.position", (0, 0, 5.0 + k))
    sim.step()
    np.testing.assert_array_equal(sim.read("sim.pairs"), (0, 0))
    np.testing.assert_array_equal(sim.read("sim.pair_peak"), (PLACES, BALLS))
