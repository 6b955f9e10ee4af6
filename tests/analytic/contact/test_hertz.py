"""D05: an impact with Hertz's force and Hunt and Crossley's damping."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ContactLaw, Material, Transform
from tests.backends import on_backends

from ..reference_data import load
from . import models
from .runs import positions, read, simulation

RECORD = load("D05").record
TABLE = {row[0]: (row[1], row[3], row[4]) for row in RECORD["cor_table"]}


def _impact(builder, backend: str, dt: float, speed: float, radius: float, longest: float) -> tuple[float, ...]:
    sim = simulation(builder, backend, dt)
    depth = [0.0]
    for _ in range(round(longest / dt)):
        sim.step()
        depth.append(radius - positions(sim)[0, 2])
        if depth[-1] < -speed * dt:
            break
    last = int(np.flatnonzero(np.array(depth) > 0.0)[-1])
    time = (last + depth[last] / (depth[last] - depth[last + 1])) * dt
    return read(sim, "body.ball.linear_velocity")[2] / speed, time, _peak(np.array(depth))


def _peak(values: np.ndarray) -> float:
    k = int(np.argmax(values))
    a, b, c = values[k - 1 : k + 2]
    return float(b + (c - a) ** 2 / (8.0 * (2.0 * b - a - c)))


def _errors(backend: str, speed: float, dt: float) -> np.ndarray:
    found = _impact(models.hertz_impact(speed, 0.3), backend, dt, speed, 0.05, 3.0 * TABLE[speed][1])
    return np.abs(np.array(found) / TABLE[speed] - 1.0)


@pytest.mark.parametrize(("speed", "backend"), on_backends([0.01, 0.1, 1.0, 5.0], [1.0]))
def test_restitution_time_and_depth(speed, backend):
    assert np.all(_errors(backend, speed, TABLE[speed][1] / 30.0) < [1e-3, 5e-3, 5e-3])


@pytest.mark.parametrize(("speed", "backend"), on_backends([1.0], []))
def test_second_order(speed, backend):
    errors = [_errors(backend, speed, TABLE[speed][1] / n)[1] for n in (20, 40, 80)]
    assert np.all(np.diff(np.log2(errors)) < -1.8)


@pytest.mark.parametrize(("steps", "backend"), on_backends([30], []))
def test_elastic_impact_returns_all_speed(steps, backend):
    check = RECORD["undamped_check"]
    dt = check["t_contact"] / steps
    found = _impact(models.hertz_impact(1.0, None), backend, dt, 1.0, 0.05, 1e-3)
    assert found[0] == pytest.approx(1.0, abs=1e-3)
    assert found[1] == pytest.approx(check["t_contact"], rel=5e-3)
    assert found[2] == pytest.approx(check["delta_max"], rel=5e-3)


@pytest.mark.parametrize(("x", "backend"), on_backends([0.1, 0.3, 1.0, 3.0], [0.3]))
def test_restitution_at_one_millisecond(x, backend):
    exact = next(e for value, e in RECORD["universal_cor"] if value == x)
    law = ContactLaw(normal="hertz", damping="hunt_crossley", damping_coefficient=x, stiffness=2e5)
    rubber = Material(friction=0.0, law=law)
    b = models.on_ground(rubber, gravity=(0.0, 0.0, 0.0))
    ball = b.add_body(
        mass=4.0,
        inertia=(0.1, 0.1, 0.1),
        xform=Transform((0.0, 0.0, 0.5)),
        linear_velocity=(0.0, 0.0, -1.0),
        label="ball",
    )
    b.add_shape_sphere(ball, 0.5, material=rubber)
    assert _impact(b, backend, 1e-3, 1.0, 0.5, 0.2)[0] == pytest.approx(exact, rel=5e-3)
