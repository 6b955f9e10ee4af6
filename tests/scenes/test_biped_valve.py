from __future__ import annotations

import math
from typing import Any

import pytest

import gpusim
from gpusim.scene import load_scene
from gpusim.scenes.machines.biped_valve import Times
from tests.scenes.runs import recorded

STRIDE = 10
WAYS: dict[str, dict[str, Any]] = {
    "the other way round, farther than it thinks": {"turn": -90.0, "misplaced": 0.02},
    "as far as it goes": {"turn": 110.0},
    "a little": {"turn": -20.0, "friction": 5.0},
}


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("way", WAYS)
def test_it_turns_otherwise(way: str) -> None:
    scene = load_scene("biped_valve", **WAYS[way])
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    recording = recorded(scene, sim, STRIDE)
    assert [check.statement for check in scene.checks if not check.passes(recording)] == []


def test_a_longer_turn_takes_longer() -> None:
    assert Times.of(math.radians(-90.0)) == Times.of(math.radians(90.0))
    assert (Times.of(0.5).back, Times.of(0.5).end) == (5.0, 9.0)
    far = Times.of(math.radians(-110.0))
    assert far.back == pytest.approx(2.3 + math.radians(110.0) / 0.6)
    assert far.end - far.back == pytest.approx(far.back - 1.0)
