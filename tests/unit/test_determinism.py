"""The same world gives the same bits alone, among others, in any place, and from run to run.

On the machine with limits, friction, a motor, a cylinder, a servo and a closed loop (machine.py); worlds
differ in masses, gravity, parameters, first angles and commands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig

from .helpers import SOLVERS, bits, different
from .machine import machine, scatter

WORLDS = 64
MODEL = machine().finalize()
VALUES = scatter(WORLDS)
ALONE = (0, 63)


def run(worlds: np.ndarray, steps: int, dtype: str, **config: Any) -> Simulation:
    """The chosen worlds of the 64, in the given order."""
    sim = Simulation(MODEL, worlds.size, dtype=dtype, config=SolverConfig(dt=2e-3, **config))
    for name, values in VALUES.items():
        sim.write(name, values[worlds])
    sim.step(steps)
    return sim


@pytest.mark.parametrize(
    ("solver", "dtype", "steps"),
    [("direct", "float64", 200), ("direct", "float32", 40), ("colored", "float64", 30), ("colored", "float32", 30)],
)
def test_permuted_and_alone(solver: str, dtype: str, steps: int) -> None:
    """World i of 64 = its place in a permutation of 8 of them = alone: identical bytes in every variable."""
    config = {} if solver == "direct" else {"iterations": 4, "epsilon": 1e-7}
    together = run(np.arange(WORLDS), steps, dtype, joint_solver=solver, **config)
    assert np.all(together.health()), together.health_report()
    # The worlds do run apart, and the limits are reached.
    assert np.ptp(together.read("joint.hinge.position")) > 0.5
    modes = np.unique(together.state.arrays["axis_mode"] & 7)
    assert set(modes) >= {0, 1, 2} | ({4, 5} if steps == 200 else set())
    some = np.random.default_rng(1).permutation(WORLDS)[:8]
    permuted = run(some, steps, dtype, joint_solver=solver, **config)
    for place, world in enumerate(some):
        assert different(bits(permuted, place), bits(together, int(world))) == [], world
    for world in ALONE:
        alone = run(np.array([world]), steps, dtype, joint_solver=solver, **config)
        assert different(bits(alone, 0), bits(together, world)) == [], world


@pytest.mark.parametrize("solver", SOLVERS)
def test_run_to_run(solver: str) -> None:
    """Two simulations, and the same one after a reset, give the same bits."""
    worlds = np.array([3, 9])
    first, second = (run(worlds, 20, "float64", joint_solver=solver) for _ in range(2))
    ends = [bits(first, world) for world in range(2)]
    for world in range(2):
        assert different(bits(second, world), ends[world]) == []
    second.reset()
    for name, values in VALUES.items():
        second.write(name, values[worlds])
    second.step(20)
    for world in range(2):
        assert different(bits(second, world), ends[world]) == []


def test_a_fresh_model_gives_the_same_bits() -> None:
    """finalize() twice orders rows, colors and eliminations alike."""
    ends = []
    for model in (MODEL, machine().finalize()):
        sim = Simulation(model, config=SolverConfig(dt=2e-3))
        sim.control["motor"] = 0.5
        sim.step(20)
        ends.append(bits(sim, 0))
    assert different(*ends) == []


def test_papers_scheme_and_substeps_are_deterministic_too() -> None:
    """World alone = world among others, with 2 substeps and with the papers' scheme."""
    for config in ({"substeps": 2}, {"scheme": "papers"}):
        together = run(np.arange(6), 20, "float64", **config)
        alone = run(np.array([4]), 20, "float64", **config)
        assert different(bits(alone, 0), bits(together, 4)) == [], config
