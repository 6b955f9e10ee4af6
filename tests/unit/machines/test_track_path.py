from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim.machines.track_path import Circle, Path, Wheels, close
from gpusim.machines.track_taut import tighten

PITCH, TEETH = 0.12, 11
APOTHEM = 0.5 * PITCH / math.tan(math.pi / TEETH)
ROAD = tuple(Circle(x, 0.18, 0.16) for x in (-0.6, -0.3, 0.0, 0.3, 0.6))


def wheels(side: float = -1.0, lift: float = 0.0, roller: bool = False) -> Wheels:
    more = (Circle(0.1, 0.53, 0.06),) if roller else ()
    idler = Circle(-0.9 * side, 0.36 + lift, APOTHEM)
    return Wheels(Circle(0.9 * side, 0.36, APOTHEM), idler, ROAD + more, PITCH, TEETH)


def distances(path: Path, circle: Circle) -> np.ndarray:
    way = np.diff(path.pins, axis=0) / PITCH
    to = np.array([circle.x, circle.z]) - path.pins[:-1]
    return np.asarray(way[:, 0] * to[:, 1] - way[:, 1] * to[:, 0])


@pytest.mark.parametrize("shoes", [None, 41, 43])
@pytest.mark.parametrize("lift", [0.0, 0.1])
@pytest.mark.parametrize("roller", [False, True])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_links_close_and_touch_without_cutting(side: float, roller: bool, lift: float, shoes: int | None) -> None:
    given = wheels(side, lift, roller)
    path = close("track", given, shoes)
    assert shoes is None or len(path.pins) == shoes + 1
    assert shoes is not None or abs(path.shift) <= 0.26 * PITCH
    assert np.abs(path.pins[-1] - path.pins[0]).max() < 1e-12
    assert np.abs(np.linalg.norm(np.diff(path.pins, axis=0), axis=1) - PITCH).max() < 1e-12
    x, z = np.array([given.idler.x, given.idler.z]) + path.shift * given.axis
    for circle in (given.sprocket, Circle(x, z, APOTHEM), *given.others):
        assert distances(path, circle).min() > circle.radius - 1e-12
    for circle in (given.sprocket, Circle(x, z, APOTHEM)):
        assert distances(path, circle).min() == pytest.approx(circle.radius, abs=1e-12)
    assert area(path) > 0.5  # counterclockwise


@pytest.mark.parametrize("lift", [0.0, 0.1])
@pytest.mark.parametrize("roller", [False, True])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_taut_loop_has_its_idler_farther_out(side: float, roller: bool, lift: float) -> None:
    given = wheels(side, lift, roller)
    start = close("track", given, 42)
    path = tighten(given, start)
    assert start.shift + 1e-4 < path.shift < start.shift + 0.25 * PITCH
    assert np.abs(np.linalg.norm(np.diff(path.pins, axis=0), axis=1) - PITCH).max() < 1e-12
    np.testing.assert_array_equal(path.pins[-1], path.pins[0])
    np.testing.assert_allclose(path.pins[path.tooth], start.pins[path.tooth], atol=1e-15)
    x, z = np.array([given.idler.x, given.idler.z]) + path.shift * given.axis
    for circle in (given.sprocket, Circle(x, z, APOTHEM), *given.others):
        assert distances(path, circle).min() > circle.radius - 1e-12
    assert area(path) > 0.5


def area(path: Path) -> float:
    x, z = path.pins.T
    return float(0.5 * np.sum(x[:-1] * z[1:] - x[1:] * z[:-1]))


def test_pins_lie_on_the_corners_of_the_sprocket() -> None:
    path = close("track", wheels(), None)
    corner = 0.5 * PITCH / math.sin(math.pi / TEETH)
    away = path.pins[:-1] - (-0.9, 0.36)
    radii = np.hypot(*away.T)
    on = np.abs(radii - corner) < 1e-12
    assert on.sum() >= 5
    angles = np.unwrap(np.arctan2(away[on, 1], away[on, 0])[np.argsort(np.flatnonzero(on))])
    turns = np.diff(angles) * TEETH / (2.0 * math.pi)
    assert np.abs(turns - np.round(turns)).max() < 1e-9


def test_length_is_that_of_a_belt_to_second_order() -> None:
    for pitch, teeth in ((0.12, 11), (0.06, 22), (0.03, 44)):
        apothem = 0.5 * pitch / math.tan(math.pi / teeth)
        path = close("track", Wheels(Circle(0, 0, apothem), Circle(1.5, 0, apothem), (), pitch, teeth), None)
        distance, length = 1.5 + path.shift, pitch * (len(path.pins) - 1)
        belt = 2.0 * math.pi * apothem
        worst = belt * (pitch / apothem) / math.atan(pitch / apothem)
        assert belt < length - 2.0 * distance < worst


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_strands_pull_the_idler_to_the_sprocket(side: float) -> None:
    given = Wheels(Circle(0, 0, APOTHEM), Circle(1.5 * side, 0, APOTHEM), (), PITCH, TEETH)
    path = close("track", given, None)
    assert path.strands @ given.axis == pytest.approx([1.0, -1.0], abs=1e-3)
    rising = wheels(-side)
    shares = close("track", rising, None).strands @ rising.axis
    assert sorted(np.abs(shares)) == pytest.approx([0.9, 1.0], abs=0.02)
