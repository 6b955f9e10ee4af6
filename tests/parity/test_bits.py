"""The same bits: alone or among others, in any place, by any launch, on any number of threads, and on a GPU.

Every scene runs 1000 steps, heaps 60 (each step of them has a hundred contacts), and those that take long to compile
with two of the four combinations of number type and solver; on a GPU all run all. Worlds differ in gravity, masses and
commands. What two runs share beside what a test is about differs as well (places, launch, threads), so that few runs
show all.
"""

from __future__ import annotations

import dataclasses
import os
import warnings

import numpy as np
import pytest

from gpusim import Simulation
from gpusim.scene import Scene, list_scenes, load_scene

STEPS, HEAP_STEPS, PIECE = 1000, 60, 50
HEAP = 10
"""A scene of more shapes is a heap."""
WORLDS = 4
SCENES = sorted(list_scenes())
COMBINATIONS = [(dtype, solver) for dtype in ("float64", "float32") for solver in ("direct", "colored")]
State = dict[str, np.ndarray]
SLOW = {"pile": 0, "pyramid": 0, "card_house": 1, "rattleback": 1}
"""Scenes whose kernels take long to compile, and the first of the two combinations that they keep."""
CASES = [
    (name, *combination)
    for name in SCENES
    for number, combination in enumerate(COMBINATIONS)
    if name not in SLOW or number in (SLOW[name], 3 - SLOW[name])
]


class Runner:
    """Runs chosen ones of 64 different worlds of a scene."""

    def __init__(self, name: str, dtype: str, solver: str) -> None:
        self.scene: Scene = load_scene(name)
        self.model = self.scene.builder.finalize()
        self.steps = STEPS if len(self.model.shapes) <= HEAP else HEAP_STEPS
        self.dtype, self.config = dtype, dataclasses.replace(self.scene.config, joint_solver=solver)
        rng = np.random.default_rng(7)
        self.gravity = rng.normal(size=(64, 3)) * 0.2 + np.array([0.0, 0.0, -9.81])
        self.factor = rng.uniform(0.9, 1.1, 64)
        self.command = rng.uniform(0.5, 1.0, 64)

    def make(self, worlds: np.ndarray, **options: object) -> Simulation:
        """A simulation of these worlds, in this order."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of colors that overflow
            given = {"backend": "native", **options}
            sim = Simulation(self.model, worlds.size, dtype=self.dtype, config=self.config, **given)  # type: ignore[arg-type]
        sim.write("sim.gravity", self.gravity[worlds])
        for body in self.model.bodies[:2]:
            name = f"body.{body.label}.mass"
            sim.write(name, sim.read(name) * self.factor[worlds])
        return sim

    def run(self, sim: Simulation, worlds: np.ndarray, steps: int = STEPS) -> State:
        """The state after ``steps``; the scene's commands are set once in a piece of 50 steps."""
        for k in range(0, steps, PIECE):
            if self.scene.schedule is not None:
                self.scene.schedule(sim, k * self.config.dt)
                for label in sim.control:
                    sim.control[label] = sim.control[label] * self.command[worlds]
            sim.step(min(PIECE, steps - k))
        assert np.all(sim.health()), sim.health_report()
        sim.current_angles()
        return {name: np.array(array) for name, array in sim.state.variables().items()}

    def state(self, worlds: np.ndarray, steps: int = STEPS, **options: object) -> State:
        """The same of a new simulation."""
        return self.run(self.make(worlds, **options), worlds, steps)


def differing(a: State, b: State, at_a: np.ndarray, at_b: np.ndarray) -> list[str]:
    """Variables whose bytes differ between worlds of two runs."""
    assert a.keys() == b.keys()
    return [name for name in a if a[name][at_a].tobytes() != b[name][at_b].tobytes()]


def apart(state: State) -> bool:
    """Whether worlds 0 and 1 went different ways."""
    return any(not np.array_equal(state[name][0], state[name][1]) for name in ("position", "orientation"))


@pytest.mark.native
@pytest.mark.parametrize(("name", "dtype", "solver"), CASES)
def test_neighbors_places_launches_and_threads(name: str, dtype: str, solver: str) -> None:
    """Four worlds fused on two threads = the same alone on one thread = staged in another order (200 steps)."""
    runner, order = Runner(name, dtype, solver), np.arange(WORLDS)
    sim = runner.make(order, launch="fused", threads=2)
    early = runner.run(sim, order, 200)
    assert apart(early)
    shuffled = np.array([2, 0, 3, 1])
    staged = runner.state(shuffled, 200, launch="staged", threads=1)
    assert differing(staged, early, order, shuffled) == []
    sim.reset()
    together = runner.run(sim, order, runner.steps)
    for world in (0, WORLDS - 1):
        alone = runner.state(np.array([world]), runner.steps, launch="fused", threads=1)
        assert differing(alone, together, np.array([0]), np.array([world])) == []


@pytest.mark.native
@pytest.mark.parametrize(("number", "name"), list(enumerate(SCENES)), ids=SCENES)
def test_64_worlds_and_run_to_run(number: int, name: str) -> None:
    """64 worlds on two threads = 1 world = staged; twice the same. Number types and solvers take turns."""
    runner, order = Runner(name, *COMBINATIONS[number % 4]), np.arange(64)
    sim = runner.make(order, threads=2)
    early = runner.run(sim, order, 20)
    assert differing(runner.state(order, 20, threads=2), early, order, order) == []
    staged = runner.state(order[::-1], 20, launch="staged", threads=1)
    assert differing(staged, early, order, order[::-1]) == []
    sim.reset()
    together = runner.run(sim, order, runner.steps)
    for world in (0, 37, 63):
        launch = "staged" if world == 37 else "fused"
        alone = runner.state(np.array([world]), runner.steps, launch=launch, threads=1)
        assert differing(alone, together, np.array([0]), np.array([world])) == []


@pytest.mark.native
@pytest.mark.parametrize(("dtype", "solver"), COMBINATIONS)
def test_staged_launches_on_two_threads(dtype: str, solver: str) -> None:
    """Items of 64 worlds spread over threads. Two steps: threads that share a busy core wait after every phase."""
    runner, order = Runner("four_bar", dtype, solver), np.arange(64)
    two = runner.state(order, 2, launch="staged", threads=2)
    assert differing(two, runner.state(order, 2, launch="staged", threads=1), order, order) == []
    assert differing(two, runner.state(order, 2, launch="fused", threads=1), order, order) == []


@pytest.mark.native
def test_the_number_of_threads_is_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUSIM_THREADS changes the speed only."""
    runner, order, states = Runner("four_bar", "float32", "direct"), np.arange(8), []
    for threads in ("1", "2", "3"):
        monkeypatch.setitem(os.environ, "GPUSIM_THREADS", threads)
        sim = runner.make(order)
        assert sim.backend.threads == int(threads)  # type: ignore[union-attr]
        states.append(runner.run(sim, order, 100))
    for other in states[1:]:
        assert differing(other, states[0], order, order) == []


@pytest.mark.gpu
@pytest.mark.native
@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.parametrize(("dtype", "solver"), COMBINATIONS)
@pytest.mark.parametrize("name", SCENES)
def test_cuda_gives_the_bits_of_native(name: str, dtype: str, solver: str, launch: str) -> None:
    """Eight worlds, 1000 steps, every variable of the state."""
    runner, order = Runner(name, dtype, solver), np.arange(8)
    expected = runner.state(order, backend="native", launch="fused")
    got = runner.state(order, backend="cuda", launch=launch)
    assert differing(got, expected, order, order) == []
    shuffled = np.random.default_rng(2).permutation(64)
    many = runner.state(shuffled, 100, backend="cuda", launch=launch)
    few = runner.state(order, 100, backend="native")
    assert differing(few, many, order, np.argsort(shuffled)[:8]) == []
