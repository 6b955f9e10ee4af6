"""The states of a world are bit-identical alone, with other worlds, and with any launch."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable

import numpy as np

from gpusim import Simulation
from gpusim.scene import Scene, list_scenes, load_scene

STEPS, HEAP_STEPS, PIECE = 200, 40, 50
MANY_STEPS, HEAP_MANY_STEPS = 60, 10
HEAP = 10
WORLDS = 4
SCENES = sorted(list_scenes())
COMBINATIONS = [(dtype, solver) for dtype in ("float64", "float32") for solver in ("direct", "colored")]
State = dict[str, np.ndarray]
HEAPS = ("mecanum_vehicle", "omni_vehicle", "pile", "pyramid")
LARGE = ("rtk_m",)
ELSEWHERE = ("excavator",)
CONTACTS = ("card_house", "krt100m", "rattleback", "slope", "tippe_top")
FIRST = {name: number // 2 % 2 for number, name in enumerate(SCENES)}
FIRST |= dict.fromkeys((*CONTACTS, *HEAPS, *LARGE, "biped_valve"), 0) | {"rattleback": 1}
Case = tuple[str, str, str]


def cases(scenes: Iterable[str]) -> list[Case]:
    """Return two cases for each scene. Both cases together cover both number types and both solvers."""
    return [(name, *COMBINATIONS[number]) for name in scenes for number in (FIRST[name], 3 - FIRST[name])]


class Runner:
    def __init__(self, name: str, dtype: str, solver: str) -> None:
        self.scene: Scene = load_scene(name)
        self.model = self.scene.builder.finalize()
        heap = len(self.model.shapes) > HEAP
        self.steps, self.many_steps = (HEAP_STEPS, HEAP_MANY_STEPS) if heap else (STEPS, MANY_STEPS)
        self.dtype, self.config = dtype, dataclasses.replace(self.scene.config, joint_solver=solver)
        rng = np.random.default_rng(7)
        self.gravity = rng.normal(size=(64, 3)) * 0.2 + np.array([0.0, 0.0, -9.81])
        self.factor = rng.uniform(0.9, 1.1, 64)
        self.command = rng.uniform(0.5, 1.0, 64)

    def make(self, worlds: np.ndarray, **options: object) -> Simulation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {"backend": "native", **options}
            sim = Simulation(self.model, worlds.size, dtype=self.dtype, config=self.config, **given)  # type: ignore[arg-type]
        sim.write("sim.gravity", self.gravity[worlds])
        for body in self.model.bodies[:2]:
            name = f"body.{body.label}.mass"
            sim.write(name, sim.read(name) * self.factor[worlds])
        return sim

    def run(self, sim: Simulation, worlds: np.ndarray, steps: int = STEPS) -> State:
        for k in range(0, steps, PIECE):
            if self.scene.schedule is not None:
                self.scene.schedule(sim, k * self.config.dt)
                driven = sim.runtime.drivers
                for label in [name for name in sim.control if name not in driven]:
                    sim.control[label] = sim.control[label] * self.command[worlds]
            sim.step(min(PIECE, steps - k))
        assert np.all(sim.health()), sim.health_report()
        sim.runtime.current_angles()
        found = {name: np.array(array) for name, array in sim.state.variables().items()}
        # Diagrams know the numbers of their worlds.
        return {k: np.delete(v, 1, axis=1) if k.startswith("diagram.") else v for k, v in found.items()}

    def state(self, worlds: np.ndarray, steps: int = STEPS, **options: object) -> State:
        return self.run(self.make(worlds, **options), worlds, steps)


def differing(a: State, b: State, at_a: np.ndarray, at_b: np.ndarray) -> list[str]:
    """Variables whose bytes differ between worlds of two runs."""
    assert a.keys() == b.keys()
    return [name for name in a if a[name][at_a].tobytes() != b[name][at_b].tobytes()]


def apart(state: State) -> bool:
    return any(not np.array_equal(state[name][0], state[name][1]) for name in ("position", "orientation"))


def check_neighbors(name: str, dtype: str, solver: str) -> None:
    runner, order = Runner(name, dtype, solver), np.arange(WORLDS)
    sim = runner.make(order, launch="fused", threads=2)
    short = runner.steps // 2
    early = runner.run(sim, order, short)
    assert apart(early)
    shuffled = np.array([2, 0, 3, 1])
    staged = runner.state(shuffled, short, launch="staged", threads=1)
    assert differing(staged, early, order, shuffled) == []
    sim.reset()
    together = runner.run(sim, order, runner.steps)
    for world in (0, WORLDS - 1):
        alone = runner.state(np.array([world]), runner.steps, launch="fused", threads=1)
        assert differing(alone, together, np.array([0]), np.array([world])) == []


def check_64_worlds(name: str) -> None:
    kept = cases([name])
    runner, order = Runner(*kept[SCENES.index(name) % len(kept)]), np.arange(64)
    sim, early_steps = runner.make(order, threads=2), min(20, runner.many_steps // 3)
    early = runner.run(sim, order, early_steps)
    assert differing(runner.state(order, early_steps, threads=2), early, order, order) == []
    staged = runner.state(order[::-1], early_steps, launch="staged", threads=1)
    assert differing(staged, early, order, order[::-1]) == []
    sim.reset()
    together = runner.run(sim, order, runner.many_steps)
    for world, launch in ((37, "staged"), (63, "fused")):
        alone = runner.state(np.array([world]), runner.many_steps, launch=launch, threads=1)
        assert differing(alone, together, np.array([0]), np.array([world])) == []
