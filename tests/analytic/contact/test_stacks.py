from __future__ import annotations

import math

import numpy as np
import pytest

from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import angles, positions, simulation, speeds

#: As in games: 1/60 s, 4 substeps.
GAME = {"dt": 1.0 / 60.0, "substeps": 4}


def _stand(builder, duration: float, settle: float = 1.0, backend: str = FASTEST, **settings):
    start = np.array([body.xform.position for body in builder.bodies])
    sim = simulation(builder, backend, **(GAME | settings))
    dt = sim.config.dt
    sim.step(round(settle / dt))
    settled = positions(sim)
    sim.step(round((duration - settle) / dt))
    assert sim.health().all(), sim.health_report()
    moved = np.abs(positions(sim) - settled).max()
    return sim, float(moved), float(np.abs(positions(sim) - start)[:, :2].max())


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ten_boxes_stand(dtype):
    sim, moved, aside = _stand(models.stack([1.0] * 10), 60.0, dtype=dtype)
    assert moved < 1e-4 and aside < 1e-5
    assert speeds(sim).max() < 1e-4


@pytest.mark.native
def test_pyramid_stands():
    sim, moved, aside = _stand(models.pyramid(10), 5.0)
    assert moved < 1e-4 and aside < 1e-4
    assert speeds(sim).max() < 1e-3


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("light", [1, 9])
def test_heavy_box_on_light_ones_stands(light):
    _, moved, aside = _stand(models.stack([1.0] * light + [100.0]), 20.0, iterations=64)
    assert moved < 1e-4 and aside < 1e-4


HEAVY_TOP = pytest.mark.xfail(
    strict=True,
    reason="documented limit (docs/concepts/limitations.md): 8 sweeps do not converge for 100 kg on 4 or 9 boxes of "
    "1 kg. The top box moves sideways by 70 mm in 10 s. With 64 sweeps, the test above passes.",
)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("light", [1, pytest.param(4, marks=HEAVY_TOP), pytest.param(9, marks=HEAVY_TOP)])
def test_heavy_box_stands_with_eight_sweeps(light):
    _, moved, aside = _stand(models.stack([1.0] * light + [100.0]), 60.0)
    assert moved < 1e-3 and aside < 1e-3


def test_tower_leans_as_far_as_the_record_says():
    overhang = load("D10").columns["max_overhang_in_block_lengths"]
    for blocks in (2, 4, 8):
        places = [body.xform.position[0] for body in models.leaning_tower(blocks, 1.0).bodies]
        assert places[-1] - places[0] == pytest.approx(overhang[blocks - 2], rel=1e-9)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("blocks", [4, 8])
@pytest.mark.parametrize("settings", [{}, {"dt": 1e-3, "substeps": 1}], ids=["game", "1 ms"])
def test_leaning_tower(blocks, settings):
    _, moved, aside = _stand(models.leaning_tower(blocks, 0.98), 10.0, **settings)
    assert moved < 1e-3 and aside < 1e-3
    fallen, _, _ = _stand(models.leaning_tower(blocks, 1.02), 4.0, **settings)
    assert positions(fallen)[-1, 2] < 0.05 * (2 * blocks - 1) - 0.05


@pytest.mark.native
@pytest.mark.parametrize("angle", [15.0, 25.0])
def test_two_cards(angle):
    limit = 0.5 * math.tan(math.radians(angle))
    standing, moved, _ = _stand(models.cards(math.radians(angle), 1.1 * limit), 3.0, settle=0.2, dt=1e-3, substeps=1)
    assert moved < 1e-4
    assert angles(standing) == pytest.approx(math.radians(angle), abs=2e-2)
    fallen, _, _ = _stand(models.cards(math.radians(angle), 0.9 * limit), 1.0, settle=0.2, dt=1e-3, substeps=1)
    assert angles(fallen).max() > 0.9 * math.pi / 2.0


@pytest.mark.nightly
def test_numpy_stands():
    _, moved, aside = _stand(models.stack([1.0] * 3), 0.15, settle=0.1, backend="numpy")
    assert moved < 1e-3 and aside < 1e-5
