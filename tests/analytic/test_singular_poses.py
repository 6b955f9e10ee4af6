from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform
from gpusim.scene import load_scene

STEPS = (0.9, 0.9125, 0.9625, 0.9725, 0.9975, 1.0125, 1.0775, 1.0925, 1.1127098081)
ENERGY = 6e-4
pytestmark = pytest.mark.native


def errors(milliseconds: float, seconds: float, windows: int = 2, ball: bool = False) -> tuple[float, float]:
    """Return the greatest energy error over ENERGY, and the greatest distance (m) of the verticals from parallel."""
    scene, dt = load_scene("four_bar", windows=windows), 1e-3 * milliseconds
    if ball:
        add_ball(scene.builder)
    sim = Simulation(scene.builder.finalize(), backend="native", config=dataclasses.replace(scene.config, dt=dt))
    energy, apart = [], []
    for _ in range(round(seconds / dt / 20)):
        sim.step(20)
        energy.append(float((sim.read("sim.kinetic_energy") + sim.read("sim.potential_energy"))[0]))
        place = sim.read_state()["position"][0, : windows + 1]
        apart.append(max(np.ptp(place[:, 0] - np.arange(windows + 1)), np.ptp(place[:, 2])))
    return np.ptp(energy) / (ENERGY * milliseconds**2), max(apart)


def add_ball(b: ModelBuilder) -> None:
    b.add_shape_plane(xform=Transform((0.0, 0.0, -3.0)))
    ball = b.add_body(1.0, (0.1,) * 3, xform=Transform((0.0, 0.0, -2.9)), label="ball")
    b.add_shape_sphere(ball, radius=0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("milliseconds", STEPS)
def test_two_windows_at_any_step_size(milliseconds: float) -> None:
    energy, apart = errors(milliseconds, 10.0)
    assert energy < 1.0
    assert apart < 1e-4


@pytest.mark.parametrize("milliseconds", [0.91, 1.01])
def test_in_a_world_that_touches(milliseconds: float) -> None:
    energy, apart = errors(milliseconds, 1.6, ball=True)
    assert energy < 1.0
    assert apart < 1e-4


@pytest.mark.nightly
def test_forty_windows() -> None:
    energy, apart = errors(1.0, 3.0, windows=40)
    assert energy < 16.0
    assert apart < 1e-4
