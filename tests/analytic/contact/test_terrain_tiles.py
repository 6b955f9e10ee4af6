from __future__ import annotations

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.typing import Array

CELL, COLUMNS = 0.25, 21
BUMP = 1e-4
SPAN = 0.2


def heights(wavy: bool) -> Array:
    x, y = np.meshgrid((np.arange(2 * COLUMNS - 1) - COLUMNS + 1) * CELL, (np.arange(11) - 5) * CELL)
    return wavy * (0.15 * np.sin(0.7 * x) + 0.05 * np.cos(0.9 * y))


def track(kind: str, wavy: bool, split: bool) -> Array:
    b = ModelBuilder(gravity=(3.0, 0.0, -9.81) if wavy else (0.0, 0.0, -9.81))
    ground, material = heights(wavy), Material(friction=0.8 if kind == "sphere" else 0.0)
    half = 0.5 * (COLUMNS - 1) * CELL
    parts = [(ground[:, :COLUMNS], -half), (ground[:, COLUMNS - 1 :], half)] if split else [(ground, 0.0)]
    for part, x in parts:
        b.add_terrain(part, cell=CELL, xform=Transform((x, 0.0, 0.0)), material=material)
    z = float(wavy * (0.15 * np.sin(-0.7) + 0.05)) + 0.2
    mover = b.add_body(xform=Transform((-1.0, 0.07, z)), linear_velocity=(2.0, 0.0, 0.0), label="mover")
    if kind == "sphere":
        b.add_shape_sphere(mover, radius=SPAN, material=material)
    else:
        b.add_shape_box(mover, half_extents=(SPAN, 0.15, 0.1), material=material)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3))
    found = []
    while not found or found[-1][0] < SPAN:
        sim.step()
        found.append(sim.read("body.mover.position")[0])
        assert len(found) < 2000
    return np.array(found)


@pytest.mark.native
@pytest.mark.parametrize("wavy", [False, True])
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_the_seam_of_two_height_fields_is_no_bump(kind: str, wavy: bool) -> None:
    one, two = track(kind, wavy, split=False), track(kind, wavy, split=True)
    steps = min(len(one), len(two))
    assert one[0, 0] < -SPAN and abs(len(one) - len(two)) <= 1
    assert np.abs(one[:steps] - two[:steps])[:, 2].max() < BUMP
