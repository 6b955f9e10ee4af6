from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.backends import why_not

from .helpers import SOLVERS, bits, different
from .machine import machine, scatter

WORLDS = 64
MODEL = machine().finalize()
VALUES = scatter(WORLDS)
ALONE = (0, 63)
# Reached on a run of 200 steps only.
LATE_MODES = {4, 5}

on_backends = pytest.mark.parametrize(
    "backend",
    [
        "numpy",
        pytest.param(
            "native",
            marks=pytest.mark.skipif(bool(why_not("native")), reason=f"no native backend: {why_not('native')}"),
        ),
    ],
)


def start(worlds: np.ndarray, dtype: str, backend: str, **config: Any) -> Simulation:
    sim = Simulation(MODEL, worlds.size, backend, dtype, SolverConfig(dt=2e-3, **config))
    for name, values in VALUES.items():
        sim.write(name, values[worlds])
    return sim


def run(worlds: np.ndarray, steps: int, dtype: str, backend: str, **config: Any) -> Simulation:
    sim = start(worlds, dtype, backend, **config)
    sim.step(steps)
    return sim


@pytest.mark.slow_numpy
@on_backends
@pytest.mark.parametrize(
    ("solver", "dtype", "steps"),
    [
        ("direct", "float64", 40),
        pytest.param("direct", "float32", 40, marks=pytest.mark.nightly),
        ("colored", "float64", 30),
        ("colored", "float32", 30),
    ],
)
def test_permuted_and_alone(solver: str, dtype: str, steps: int, backend: str) -> None:
    check_permuted_and_alone(solver, dtype, steps, backend)


@pytest.mark.nightly
@pytest.mark.native
def test_permuted_and_alone_in_a_long_run() -> None:
    check_permuted_and_alone("direct", "float64", 200, "native")  # takes NumPy half a minute


def check_permuted_and_alone(solver: str, dtype: str, steps: int, backend: str) -> None:
    config: dict[str, Any] = {"backend": backend, "joint_solver": solver}
    config |= {} if solver == "direct" else {"iterations": 4, "impulse_tolerance": 1e-7}
    together = run(np.arange(WORLDS), steps, dtype, **config)
    assert np.all(together.health()), together.health_report()
    # The worlds do run apart, and the limits are reached.
    assert np.ptp(together.read("joint.hinge.position")) > 0.5
    modes = np.unique(together.state.arrays["axis_mode"] & 7)
    assert set(modes) >= {0, 1, 2} | (LATE_MODES if steps == 200 else set())
    some = np.random.default_rng(1).permutation(WORLDS)[:8]
    permuted = run(some, steps, dtype, **config)
    for place, world in enumerate(some):
        assert different(bits(permuted, place), bits(together, int(world))) == [], world
    for world in ALONE:
        alone = run(np.array([world]), steps, dtype, **config)
        assert different(bits(alone, 0), bits(together, world)) == [], world


@pytest.mark.nightly
@on_backends
@pytest.mark.parametrize("solver", SOLVERS)
def test_run_to_run(solver: str, backend: str) -> None:
    worlds = np.array([3, 9])
    first, second = (run(worlds, 20, "float64", backend, joint_solver=solver) for _ in range(2))
    ends = [bits(first, world) for world in range(2)]
    for world in range(2):
        assert different(bits(second, world), ends[world]) == []
    second.reset()
    for name, values in VALUES.items():
        second.write(name, values[worlds])
    second.step(20)
    for world in range(2):
        assert different(bits(second, world), ends[world]) == []


@pytest.mark.slow_numpy
@on_backends
def test_a_fresh_model_gives_the_same_bits(backend: str) -> None:
    ends = []
    for model in (MODEL, machine().finalize()):
        sim = Simulation(model, backend=backend, config=SolverConfig(dt=2e-3))
        sim.control["motor"] = 0.5
        sim.step(20)
        ends.append(bits(sim, 0))
    assert different(*ends) == []


@pytest.mark.nightly
@on_backends
def test_papers_scheme_and_substeps_are_deterministic_too(backend: str) -> None:
    for config in ({"substeps": 2}, {"scheme": "semi_implicit"}):
        together = run(np.arange(6), 20, "float64", backend, **config)
        alone = run(np.array([4]), 20, "float64", backend, **config)
        assert different(bits(alone, 0), bits(together, 4)) == [], config


@pytest.mark.nightly
@on_backends
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reading_changes_no_bit(dtype: str, backend: str) -> None:
    worlds = np.arange(4)
    unread, read = (start(worlds, dtype, backend) for _ in range(2))
    for _ in range(20):
        unread.step()
        read.step()
        for name in ("joint.hinge.position", "sim.kinetic_energy", "joint.hinge.reaction", "joint.hinge.position"):
            read.read(name)
    unread.step()
    read.step()
    for world in range(4):
        first = bits(read, world)
        assert different(bits(unread, world), first) == []
        assert different(bits(read, world), first) == []
