from __future__ import annotations

import numpy as np
import pytest

from gpusim.scene import Plot, load_scene
from gpusim.viewer.panel.axis_range import FLOOR, MIN_RATIO, Span
from gpusim.viewer.panel.history import History, number
from tests.unit.viewer.operators import arm


@pytest.mark.parametrize("level, noise", [(0.0, 1e-16), (0.0, 1e-7), (1e-16, 1e-16), (1e4, 1e-9), (-250.0, 0.02)])
def test_noise_does_not_fill_a_scope(level: float, noise: float) -> None:
    values = level + noise * np.random.default_rng(1).uniform(-1.0, 1.0, size=(400, 2))
    low, high = Span().around(values)
    assert low < values.min() and values.max() < high
    assert high - low >= max(FLOOR, MIN_RATIO * abs(level)) > 20.0 * noise
    assert number(low, high - low) != number(high, high - low)


def test_what_moves_fills_it() -> None:
    low, high = Span().around(np.array([-3.0, 0.0, 7.3]))
    assert (low, high) == (-4.0, 8.0)
    assert Span().around(np.array([0.0, 0.013])) == pytest.approx((0.0, 0.014))
    assert Span(2.0).around(np.array([0.0, 0.1])) == pytest.approx((-1.0, 1.2))


def test_ends_hold_still_while_values_wander() -> None:
    span, generator = Span(), np.random.default_rng(2)
    course, moves, before = np.zeros(400), 0, None
    for k in range(3000):
        course = np.append(course[1:], np.sin(0.05 * k) + 0.1 * generator.normal())
        ends = span.around(course)
        moves += ends != before and k > 100
        before = ends
        assert ends[0] <= course.min() and course.max() <= ends[1]
    assert moves <= 3 and before is not None and before[1] - before[0] < 4.0


def test_ends_follow_what_leaves_and_what_calms_down() -> None:
    span = Span()
    assert span.around(np.array([0.0, 1.0])) == (0.0, 1.0)
    assert span.around(np.array([0.0, 1.0, 1.01]))[1] > 1.01
    held = span.around(np.array([0.0, 0.7]))
    assert held[1] > 1.01
    assert span.around(np.array([0.5, 0.6])) == pytest.approx((0.5, 0.6))
    creeping = {span.around(np.array([x, x + 1.0])) for x in np.linspace(0.0, 10.0, 1001)}
    assert len(creeping) < 100


def test_values_that_are_not_finite_count_for_nothing() -> None:
    span = Span()
    assert span.around(np.array([np.nan])) == (0.0, 1.0)
    held = span.around(np.array([np.nan, 2.0, 5.0]))
    assert held == (2.0, 5.0) == span.around(np.array([np.nan, np.inf]))
    span.clear()
    assert span.around(np.zeros(0)) == (0.0, 1.0)


def test_gauges_of_resting_signals_show_rest() -> None:
    sim = arm(num_worlds=3)
    history = History(sim, [Plot("Rate", "rad/s", ["joint.hinge0.velocity"])], worlds=[0, 1, 2])
    (scope,) = history.scopes
    for k in range(60):
        sim.write("joint.hinge0.velocity", 1e-16 * (-1) ** k)
        sim.write("joint.hinge0.velocity", 1.0, worlds=2)
        history._times[history._next] = 0.025 * k
        history._read(history._values[history._next])
        history._next, history._count = history._next + 1, history._count + 1
    times, values = history.course(scope)
    low, high = history.gauge_ends(scope, 0, values)
    assert np.ptp(values) < 1e-12 and high - low >= FLOOR and low <= 0.0 <= high
    assert history.ends(scope, values) == (low, high)
    history.show(2)
    assert history.course(scope)[1][-1, 0] == pytest.approx(1.0)


def test_a_known_range_is_the_gauges() -> None:
    from gpusim import Simulation

    scene = load_scene("hydraulic_lift")
    history = History(Simulation(scene.builder.finalize(), backend="numpy"), scene.plots)
    history.sample()
    scope = history.scopes[0]
    values = history.course(scope)[1]
    assert history.gauge_ends(scope, 0, values) == (0.0, 0.5)
    low, high = history.ends(scope, values)
    assert 0.05 <= high - low <= 0.08
