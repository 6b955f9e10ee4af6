"""Measure the sample time of a diagram of 200 mixed blocks, and check that its results are reproducible.

    python ci/bench/diagrams.py [--blocks 200] [--threads 1] [--steps 2000] [--out diagrams.md]

The simulation samples the diagram in each step, with 1, 64 and 1024 worlds. The table contains median times.

The exit code is 1 if a step of one world takes more than 5 us on the native backend, or if results are not
bit-identical.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from mixed_diagram import cart, mixed_diagram

import gpusim
from gpusim.bench.machine import describe
from gpusim.control import Diagram
from gpusim.description.program_clock import WORLD

BAR = 5.0
"""Maximum time for a step of one world on the native backend (microseconds)."""
DT = 1e-3
WORLDS = (1, 64, 1024)
PARTS = 10
NAME = "diagram.mixed"


def simulation(diagram: Diagram, worlds: int, backend: str, threads: int) -> gpusim.Simulation:
    """Return a simulation of the diagram with a different command in each world."""
    config = gpusim.SolverConfig(dt=DT)
    options = {"threads": threads} if backend == "native" else {}
    sim = gpusim.Simulation(cart(diagram), worlds, backend=backend, config=config, **options)
    sim.control["stick"] = np.linspace(-1.0, 1.5, worlds)
    return sim


def sample_time(sim: gpusim.Simulation, steps: int) -> float:
    """Return the time of one sample of all worlds (microseconds)."""
    spent = [0.0]
    running = sim.runtime.running
    samples = [one.sample for one in running]

    def timed(sample: Callable[[], None]) -> None:
        start = time.perf_counter()
        sample()
        spent[0] += time.perf_counter() - start

    sim.step(2)  # the kernels are compiled now
    for one, sample in zip(running, samples, strict=True):
        one.sample = partial(timed, sample)
    parts = []
    for _ in range(PARTS):
        spent[0] = 0.0
        sim.step(max(1, steps // PARTS))
        parts.append(1e6 * spent[0] / max(1, steps // PARTS))
    return float(np.median(parts))


def states(sim: gpusim.Simulation, steps: int) -> dict[str, np.ndarray]:
    """Run ``steps`` steps and return the state arrays to compare."""
    sim.step(steps)
    arrays = sim.read_state()
    found = {name: np.array(arrays[name]) for name in (NAME, "position", "linear_velocity")}
    found[NAME] = np.delete(found[NAME], WORLD, axis=1)  # the number of the world
    return found


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Return whether two sets of arrays are bit-identical."""
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


def bits(diagram: Diagram, threads: int, steps: int = 400, worlds: int = 70) -> dict[str, bool]:
    """Return a dict: name of a comparison -> whether the results are bit-identical."""
    first = simulation(diagram, worlds, "native", threads)
    found = states(first, steps)
    host = states(simulation(diagram, worlds, "numpy", threads), steps)
    order = np.random.default_rng(1).permutation(worlds)
    mixed = simulation(diagram, worlds, "native", threads)
    mixed.control["stick"] = np.linspace(-1.0, 1.5, worlds)[order]
    again = simulation(diagram, worlds, "native", threads)
    again.step(steps // 2)
    saved, commands = again.state.copy(), again.control.array.copy()
    again.step(30)
    again.state.restore(saved, np.arange(worlds))
    again.control.array[:] = commands
    again.invalidate()
    moved = float(np.ptp(found["position"][:, 0, 0]))
    return {
        "finite, and different from world to world": bool(np.isfinite(found[NAME]).all()) and moved > 1e-3,
        "native is NumPy": same(found, host),
        "worlds in another order": same({k: v[order] for k, v in found.items()}, states(mixed, steps)),
        "again from a copied state": same(found, states(again, steps - steps // 2)),
    }


def main() -> int:
    """Measure, print and write the table. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("diagrams.md"))
    options = parser.parse_args()
    diagram = mixed_diagram(options.blocks)
    machine = describe()
    lines = [
        f"# A diagram of {len(diagram.blocks)} blocks", "",
        f"{machine['cpu']}, {options.threads} thread(s), {machine['compiler']}, NumPy {np.__version__}, "
        f"{machine['date'][:10]}; `ci/bench/diagrams.py`", "",
        "Microseconds of a world-step with a sample in each step, including reads of signals.", "",
        "| worlds | native | NumPy |", "| --- | --- | --- |",
    ]  # fmt: skip
    good = True
    for worlds in WORLDS:
        steps = max(200, options.steps // max(1, worlds // 64))
        native = sample_time(simulation(diagram, worlds, "native", options.threads), steps) / worlds
        host = sample_time(simulation(diagram, worlds, "numpy", options.threads), steps // 10) / worlds
        good &= native <= BAR
        lines.append(f"| {worlds} | {native:.2f} | {host:.2f} |")
        print(lines[-1], flush=True)
    checked = bits(diagram, options.threads)
    reported = [f"| {what} | {'yes' if equal else 'NO'} |" for what, equal in checked.items()]
    lines += ["", "| bit for bit | |", "| --- | --- |", *reported]
    print("\n".join(reported))
    options.out.write_text("\n".join(lines) + "\n")
    return int(not (good and all(checked.values())))


if __name__ == "__main__":
    sys.exit(main())
