from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from tests.analytic.control.sampled import respond


def assert_rates(found: dict[str, np.ndarray], rate: float, among: slice, bend: bool = True) -> None:
    pairs = [("out", "velocity"), ("velocity", "acceleration")]
    for of, name in pairs[: 2 if bend else 1]:
        slope = (found[of][2:] - found[of][:-2]) * rate / 2.0
        wanted = found[name][1:-1]
        scale = np.abs(wanted[among]).max()
        assert scale > 0.1
        np.testing.assert_allclose(slope[among], wanted[among], rtol=0.0, atol=1e-5 * scale)


@pytest.mark.parametrize("order", [3, 5])
@pytest.mark.parametrize("rate", [50.0, 333.0])
def test_a_move_is_its_polynomial(order: int, rate: float) -> None:
    duration, count = 0.8, int(1.2 * rate)
    found = respond(
        "point_to_point", rate, {"target": np.full(count, 5.0)}, duration=duration, order=order, initial=2.0
    )
    t = np.arange(count) / rate
    s = np.clip(t / duration, 0.0, 1.0)
    share = 3 * s**2 - 2 * s**3 if order == 3 else 10 * s**3 - 15 * s**4 + 6 * s**5
    speed = (6 * s - 6 * s**2 if order == 3 else 30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    bend = (6 - 12 * s if order == 3 else 60 * s - 180 * s**2 + 120 * s**3) / duration**2
    np.testing.assert_allclose(found["out"], 2.0 + 3.0 * share, atol=1e-12)
    np.testing.assert_allclose(found["velocity"], 3.0 * speed, atol=1e-12)
    np.testing.assert_allclose(found["acceleration"], np.where(t < duration, 3.0 * bend, 0.0), atol=1e-10)
    np.testing.assert_array_equal(found["done"], (t >= duration).astype(float))


@pytest.mark.parametrize("order", [3, 5])
def test_a_new_target_is_gone_for_without_a_jump(order: int) -> None:
    rate, duration = 10_000.0, 0.2
    target = np.where(np.arange(4000) < 900, 1.0, -0.5)
    found = respond("point_to_point", rate, {"target": target}, duration=duration, order=order)
    assert_rates(found, rate, slice(5, 890))
    assert_rates(found, rate, slice(905, 2880))
    speed, bend = np.abs(found["velocity"]).max(), np.abs(found["acceleration"]).max()
    assert speed > 5.0
    assert np.abs(np.diff(found["out"])).max() < 1.1 * speed / rate
    assert np.abs(np.diff(found["velocity"])).max() < 1.1 * bend / rate
    if order == 5:
        assert np.abs(np.diff(found["acceleration"][1:])).max() < 0.01 * bend
    assert found["out"][-1] == -0.5 and found["velocity"][-1] == 0.0 and found["acceleration"][-1] == 0.0


def test_a_move_that_is_given_new_targets_all_the_time_keeps_going() -> None:
    target = np.linspace(0.0, 1.0, 300)
    found = respond("point_to_point", 100.0, {"target": target}, duration=0.5)
    assert found["out"][-1] > 0.7 and np.all(np.diff(found["out"]) >= 0.0)


def test_a_trajectory_is_the_clamped_spline() -> None:
    times, points = [0.0, 0.3, 0.5, 1.2], [[0.0, 1.0], [1.0, -1.0], [0.5, 2.0], [2.0, 0.0]]
    found = respond("trajectory", 100.0, {}, 150, times=times, points=points)
    t = np.arange(150) / 100.0
    spline = CubicSpline(times, points, bc_type="clamped")
    inside = (t <= 1.2)[:, None]
    np.testing.assert_allclose(found["out"], spline(np.minimum(t, 1.2)), atol=1e-12)
    np.testing.assert_allclose(found["velocity"], np.where(inside, spline(np.minimum(t, 1.2), 1), 0.0), atol=1e-12)
    np.testing.assert_allclose(found["velocity"][[0, 120, 149]], 0.0, atol=1e-12)
    for time, point in zip(times, points, strict=True):
        np.testing.assert_allclose(found["out"][round(100 * time)], point, atol=1e-12)


def test_rates_of_a_trajectory() -> None:
    times, points = [0.0, 0.3, 0.5, 1.2], [0.0, 1.0, 0.5, 2.0]
    found = respond("trajectory", 10_000.0, {}, 11_990, times=times, points=points)
    for begin, end in zip(times, times[1:], strict=False):
        assert_rates(found, 10_000.0, slice(round(1e4 * begin) + 2, round(1e4 * end) - 12))


def test_a_trajectory_repeats() -> None:
    found = respond("trajectory", 100.0, {}, 250, times=[0.0, 0.4, 1.0], points=[0.0, 1.0, 0.0], repeat=True)["out"]
    np.testing.assert_allclose(found[100:200], found[:100], atol=1e-12)
    np.testing.assert_allclose(found[200:], found[:50], atol=1e-12)


def test_sources_of_time() -> None:
    t = np.arange(40) / 20.0
    np.testing.assert_allclose(respond("timer", 20.0, {}, 40)["out"], t, atol=1e-15)
    np.testing.assert_array_equal(respond("step", 20.0, {}, 40, time=0.35, before=2.0, after=5.0)["out"],
                                  np.where(np.arange(40) >= 7, 5.0, 2.0))  # fmt: skip
    ramp = respond("ramp", 20.0, {}, 40, slope=-2.0, time=0.5, start=1.0, end=-0.5)["out"]
    np.testing.assert_allclose(ramp, np.clip(1.0 - 2.0 * np.maximum(t - 0.5, 0.0), -0.5, None), atol=1e-14)
    wave = respond("sine", 20.0, {}, 40, amplitude=2.0, frequency=0.7, phase=0.3, offset=1.0)["out"]
    np.testing.assert_allclose(wave, 1.0 + 2.0 * np.sin(2.0 * np.pi * 0.7 * t + 0.3), atol=1e-13)
    held = respond("sequence", 20.0, {}, 40, times=[0.0, 0.25, 1.0], values=[1.0, 4.0, 2.0])["out"]
    np.testing.assert_array_equal(held, [1.0] * 5 + [4.0] * 15 + [2.0] * 20)
    lines = respond("sequence", 20.0, {}, 40, times=[0.0, 0.25, 1.0], values=[1.0, 4.0, 2.0], interpolate=True)["out"]
    np.testing.assert_allclose(lines, np.interp(t, [0.0, 0.25, 1.0], [1.0, 4.0, 2.0]), atol=1e-14)
    again = respond("sequence", 20.0, {}, 40, times=[0.0, 0.25, 0.5], values=[1.0, 4.0, 2.0], repeat=True)["out"]
    np.testing.assert_array_equal(again, ([1.0] * 5 + [4.0] * 5) * 4)
