from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation

from .helpers import SOLVERS, G, ball_body, both_backends, rows_of, simulate
from .helpers import Transform as T

Y = (0.0, 1.0, 0.0)
PINS = np.array([(0, 0, 0), (0.2, 0, 0.8), (1.3, 0, 1.1), (1.5, 0, 0)], dtype=float)


def four_bar(closed_by: str, **closing: Any) -> ModelBuilder:
    b = ModelBuilder()
    for k, label in enumerate(("crank", "coupler", "rocker")):
        place = T.from_axis_angle(PINS[k] if k < 2 else PINS[3], Y, 0.3 * k)
        b.add_body(1.0 + k, (0.1, 0.12, 0.05), com=(0.3, 0.0, 0.2), xform=place, label=label)
    b.add_joint_revolute(-1, 0, axis=Y, label="a", at=PINS[0])
    b.add_joint_revolute(0, 1, axis=Y, label="b", at=PINS[1])
    b.add_joint_revolute(-1, 2, axis=Y, label="d", at=PINS[3])
    getattr(b, f"add_joint_{closed_by}")(1, 2, axis=Y, label="c", at=PINS[2], **closing)
    return b


def rank_and_rows(sim: Simulation) -> tuple[int, int]:
    sim.step()
    w = sim.backend.work
    t = w.topology
    matrix = np.zeros((t.num_constraints * t.block, (t.num_bodies + 1) * 6))
    for c in range(t.num_constraints):
        for s, body in enumerate(t.constraint_bodies[c]):
            rows = w.jacobian[0].reshape(t.num_constraints, t.slots, t.block, 6)[c, s]
            matrix[c * t.block : (c + 1) * t.block, 6 * body : 6 * body + 6] += rows * t.dynamic[body]
    used = matrix[t.row_used.ravel()]
    return int(np.linalg.matrix_rank(used, tol=1e-9)), len(used)


def test_it_has_two_rows_and_the_loop_no_row_too_many() -> None:
    pinned, hinged = (simulate(four_bar(kind), backend="numpy") for kind in ("planar_pin", "revolute"))
    assert rows_of(pinned.model, "c") == 2
    assert rank_and_rows(pinned) == (17, 17)
    assert rank_and_rows(hinged) == (17, 20)


@pytest.mark.nightly
@both_backends
def test_a_four_bar_moves_as_with_a_hinge(backend: str) -> None:
    kinds = ("planar_pin", "revolute")
    sims = [simulate(four_bar(kind, damping=0.1), backend=backend, dt=1e-3, joint_solver="direct") for kind in kinds]
    names = [f"joint.{label}.{name}" for label in "abcd" for name in ("position", "velocity", "reaction")]
    runs: list[list[np.ndarray]] = [[], []]
    for _ in range(150):
        for sim, run in zip(sims, runs, strict=True):
            sim.step(2)
            run.append(np.concatenate([np.ravel(sim.read(name)[0]) for name in names]))
    pinned, hinged = np.array(runs)
    np.testing.assert_allclose(pinned, hinged, rtol=1e-9, atol=1e-9)
    assert np.ptp(hinged[:, 0]) > 0.3 and np.ptp(hinged[:, 2]) > 5.0
    assert sims[0].read("sim.joint_drift")[0] < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_its_angle_has_limits_and_drives(solver: str) -> None:
    b = four_bar("planar_pin", limit_upper=0.0, limit_lower=0.0)
    sim = simulate(b, dt=2e-3, joint_solver=solver, iterations=60)
    sim.step(300)
    assert abs(sim.read("joint.c.position")[0]) < 1e-6
    driven = four_bar("planar_pin")
    driven.add_servo(3, stiffness=1e6, damping=1e4, target=0.1)
    sim = simulate(driven, dt=2e-3, joint_solver=solver, iterations=60)
    sim.step(500)
    assert sim.read("joint.c.position")[0] == pytest.approx(0.1, abs=1e-3)


def test_it_leaves_the_axis_and_tilts_free() -> None:
    """The body falls along the axis by g t^2/2."""
    b = ModelBuilder()
    body = ball_body(b, angular_velocity=(1.0, 0.0, 0.0), label="ball")
    b.add_joint_planar_pin(-1, body, axis=(0, 0, 1))
    sim = simulate(b, dt=1e-3)
    sim.step(200)
    np.testing.assert_allclose(sim.read("body.ball.position")[0], (0.0, 0.0, -0.5 * G * 0.04), atol=1e-9)
    np.testing.assert_allclose(sim.read("body.ball.angular_velocity")[0], (1.0, 0.0, 0.0), atol=1e-12)
