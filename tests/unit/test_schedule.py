"""Command schedules: values, steps, means and periods."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim.command_schedule import Path, Schedule, drive, follow_paths
from gpusim.errors import ModelError
from tests.message_snapshot import naming

RAMP = Schedule([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (2.0, 0.5)])


@pytest.mark.parametrize(
    ("t", "expected"), [(-1.0, 0.0), (0.999, 0.0), (1.0, 1.0), (1.5, 0.75), (2.0, 0.5), (9.0, 0.5)]
)
def test_value_takes_the_side_after_a_step(t, expected):
    assert RAMP.value(t) == RAMP(t) == pytest.approx(expected)


def test_constant_holds_each_value():
    table = Schedule([(0.0, 1.0), (0.6, -0.5), (1.0, 0.0)], kind="constant")
    assert [table(t) for t in (0.0, 0.5, 0.6, 0.99, 1.0, 2.0)] == [1.0, 1.0, -0.5, -0.5, 0.0, 0.0]


@pytest.mark.parametrize("period", [None, 1.3])
def test_the_mean_of_a_value_that_holds_is_that_value(period):
    table = Schedule([(0.0, 0.1), (0.6, -0.7), (1.0, 0.3)], kind="constant", period=period)
    for t in np.arange(0.0005, 4.0, 0.001):
        at = t % 1.3 if period else t
        if all(not at < jump < at + 1e-4 for jump in (0.6, 1.0, 1.3)):
            assert table.mean(t, t + 1e-4) == table.value(t)
    assert table.mean(0.55, 0.65) == pytest.approx(0.5 * (0.1 - 0.7))


@pytest.mark.parametrize("period", [None, 2.5])
def test_mean_equals_a_fine_sum(period):
    table = Schedule([(0.2, 1.0), (1.0, 0.0), (1.0, 2.0), (2.0, 0.5)], period=period)
    for start, stop in ((-0.5, 0.1), (0.0, 0.3), (0.9, 1.1), (0.0, 2.2), (1.9, 7.3)):
        n = 200_000
        middles = start + (np.arange(n) + 0.5) * (stop - start) / n
        fine = float(np.mean([table(float(t)) for t in middles[::20]]))
        assert table.mean(start, stop) == pytest.approx(fine, abs=2e-4)


def test_mean_of_a_step_inside_the_span():
    assert Schedule([(1.0, 0.0), (1.0, 1.0)]).mean(0.75, 1.75) == pytest.approx(0.75)


def test_mean_of_an_empty_span_is_the_value():
    assert RAMP.mean(1.5, 1.5) == RAMP(1.5)


@pytest.mark.parametrize(
    ("arguments", "words"), [({"kind": "cubic"}, "schedule kind cubic"), ({"period": 0.0}, "schedule period 0.0")]
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ModelError, match=naming(words)):
        Schedule([(0.0, 1.0)], **arguments)


def test_scaled():
    assert RAMP.scaled(-2.0)(1.5) == pytest.approx(-1.5)


def test_drive_writes_the_mean_over_the_step():
    class FakeSimulation:
        control: dict[str, float] = {}
        step_size = 0.1

    sim = FakeSimulation()
    drive({"lift": Schedule([(0.0, 0.0), (1.0, 1.0)])})(sim, 0.5)  # type: ignore[arg-type]
    assert sim.control == {"lift": pytest.approx(0.55)}


@pytest.mark.parametrize(
    ("points", "period", "words"),
    [
        ([], None, ""),
        ([(1.0, 0.0), (0.5, 0.0)], None, "0.5 1.0"),
        ([(0.0, math.nan)], None, ""),
        ([(0.0, 0.0), (2.0, 0.0)], 1.0, "period"),
        (5, None, "5"),
        ([(0.0, "a")], None, "'a'"),
        ([(0.0, 0.0, 0.0)], None, "0.0"),
    ],
)
def test_bad_tables_are_named(points, period, words):
    with pytest.raises(ModelError, match=naming(words)):
        Schedule(points, period=period)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (5, "5"),
        ([(0, 0), (1, "a")], "'a'"),
        ([(0, 0, 0)], "0"),
        (None, ""),
        ([], "0"),
        ([(0, 0)], "1"),
        ([(0, math.nan), (1, 1)], ""),
    ],
)
def test_bad_paths_are_named(points, words):
    with pytest.raises(ModelError, match=naming(words)):
        Path(points)


@pytest.mark.parametrize(("function", "name"), [(drive, "Schedule"), (follow_paths, "Path")])
def test_other_things_than_tables_are_named(function, name):
    with pytest.raises(ModelError, match=naming(f"3 'm' {name} {name}")):
        function({"m": 3})
    with pytest.raises(ModelError, match=naming(f"7 {name}")):
        function(7)
