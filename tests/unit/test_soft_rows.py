from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
G = 9.81


def heavy_arm(stiffness: float) -> ModelBuilder:
    b = ModelBuilder()
    arm = b.add_body(300.0, (30.0,) * 3, com=(1.5, 0, 0), label="arm")
    k, c = (stiffness,) * 3 + (1e7,) * 3, (1e-4 * stiffness,) * 3 + (1e5,) * 3
    b.add_bushing(-1, arm, at=(0, 0, 0), stiffness=k, damping=c, label="mount")
    return b


def six_springs(**options: Any) -> ModelBuilder:
    b = ModelBuilder()
    body = b.add_body(50.0, (5.0, 6.0, 7.0), com=(1.0, 0.1, -0.2))
    axes = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    joint = b.add_joint_d6(-1, body, linear_axes=axes, angular_axes=axes, label="mount", **options)
    for axis in range(6):
        b.add_torsion_spring(joint, stiffness=1e5, damping=1e2, axis=axis)
    return b


def universal(limit: float) -> ModelBuilder:
    b = ModelBuilder()
    body = b.add_body(50.0, (5.0, 6.0, 7.0), com=(1.0, 0.4, -0.2))
    b.add_joint_universal(-1, body, Transform((0, 0, 0)), label="mount", limit_lower=-limit, limit_upper=limit)
    for axis in range(2):
        b.add_torsion_spring(0, stiffness=1e7, damping=1e4, axis=axis)
    return b


def run(b: ModelBuilder, backend: str, solver: str = "colored", steps: int = 60, **options: Any) -> Simulation:
    config = SolverConfig(**{"dt": 1e-2, "joint_solver": solver, **options})
    sim = Simulation(b.finalize(), backend=backend, config=config)
    sim.step(steps)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("stiffness", [1e7, 1e8, 1e9])
def test_a_heavy_arm_hangs_in_a_stiff_bushing(backend: str, stiffness: float) -> None:
    sim = run(heavy_arm(stiffness), backend, steps=100)
    assert sim.read("joint.mount.position")[0, 4] == pytest.approx(300.0 * G * 1.5 / 1e7, rel=1e-3)
    assert sim.read("sim.not_converged")[0] == 0 and sim.read("sim.residual")[0] < 1e-10


MODELS: dict[str, Callable[[], ModelBuilder]] = {
    "free": six_springs,
    "friction": lambda: six_springs(friction=50.0),
    "limits": lambda: six_springs(limit_lower=-1e-3, limit_upper=1e-3),
    "universal": lambda: universal(1.0),
    "universal at its limits": lambda: universal(1e-5),
}


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
def test_soft_rows_move_as_with_the_direct_solver(backend: str, name: str) -> None:
    found = [run(MODELS[name](), backend, s).read("joint.mount.position")[0] for s in ("colored", "direct")]
    assert np.abs(found[0] - found[1]).max() < 0.02 * np.abs(found[1]).max()


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision_and_the_papers_scheme_hold_it_too(backend: str) -> None:
    right = 300.0 * G * 1.5 / 1e7
    for dtype, scheme in (("float32", "second_order"), ("float64", "semi_implicit")):
        config = SolverConfig(dt=1e-2, joint_solver="colored", scheme=scheme)
        sim = Simulation(heavy_arm(1e8).finalize(), backend=backend, dtype=dtype, config=config)
        sim.step(100)
        assert sim.read("joint.mount.position")[0, 4] == pytest.approx(right, rel=2e-3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_sweeps_leave_of_soft_rows_is_reported(backend: str) -> None:
    b, parent = ModelBuilder(), -1
    for k in range(3):
        body = b.add_body(100.0, (10.0,) * 3, com=(0.7, 0, 0), xform=Transform((1.5 * k, 0, 0)))
        b.add_bushing(parent, body, at=(1.5 * k, 0, 0), stiffness=1e7, damping=1e4, label=f"mount{k}")
        parent = body
    sim = run(b, backend, steps=5, iterations=1)
    assert sim.read("sim.residual")[0] > 1e-2 and sim.read("sim.not_converged")[0] > 0
