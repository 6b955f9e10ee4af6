"""Run the machines of the scenes in typical uses, and write a table.

    python ci/bench/machines.py [--only krt100m ...] [--minutes 10] [--worlds 256] [--out machines.json]
                                 [--machine "what computer it is"]

Each scene runs with its own settings on the native backend with one thread:

* with its schedule: real-time factor, maximum joint gap and penetration, and energy balance (gpusim.EnergyAudit)
* with random commands that jump every 0.5 to 3 s
* in many worlds with different commands, with a comparison of some worlds with runs alone

The script adds the results to the existing JSON file. The exit code is 1 if a world fails, if bits differ, or if the
relative error of an energy balance is 1 % or more.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gpusim
from gpusim.bench.machine import describe
from gpusim.model.model import Model
from gpusim.scene import Scene, load_scene
from gpusim.viewer.operator.inputs import Input, command_inputs

SCENES = ("suspension_rig", "krt100m", "rtk_m", "excavator", "omni_vehicle", "mecanum_vehicle")
AUDITED = 0.01
STATE = ("position", "orientation", "linear_velocity", "angular_momentum")


def simulation(scene: Scene, worlds: int = 1, **config: Any) -> gpusim.Simulation:
    """Return a simulation of the scene on one thread."""
    settings = replace(scene.config, **config)
    return gpusim.Simulation(scene.builder.finalize(), worlds, backend="native", config=settings, threads=1)


def run_schedule(name: str) -> dict[str, Any]:
    """Return the real-time factor of the schedule, and the maximum joint gap and penetration."""
    scene = load_scene(name)
    sim = simulation(scene)
    sim.step(2)  # the kernels are compiled now
    sim.reset()
    spent, depth = 0.0, 0.0
    steps = round(scene.duration / scene.config.dt)
    for k in range(steps):
        if scene.schedule:
            scene.schedule(sim, float(sim.time))
        start = time.process_time()
        sim.step()
        spent += time.process_time() - start
        if k % 20 == 0:
            depth = max(depth, float(sim.read("sim.penetration")[0]))
    gap = float(sim.state.arrays["joint_drift_peak"][0])
    return {
        "bodies": len(sim.model.bodies), "dt": scene.config.dt, "step_us": 1e6 * spent / steps,
        "real_time_factor": scene.duration / spent, "gap": gap, "overlap": depth, "healthy": bool(sim.health().all()),
    }  # fmt: skip


def energy(name: str) -> dict[str, Any]:
    """Return the energy balance of a run of the schedule."""
    scene = load_scene(name)
    sim = simulation(scene)
    audit = gpusim.EnergyAudit(sim)
    for _ in range(round(scene.duration / scene.config.dt)):
        if scene.schedule:
            scene.schedule(sim, float(sim.time))
        audit.step()
    found = audit.balance()
    return {"audit": float(found.relative_error[0]), "turnover": float(found.turnover[0])}


def moved(model: Model) -> list[Input]:
    """Return the operator inputs, without ``idle`` inputs."""
    return [item for item in command_inputs(model).values() if not item.idle]


class Operator:
    """Commands that jump at random within their ranges."""

    def __init__(self, sim: gpusim.Simulation, seed: int) -> None:
        self.sim, self.random = sim, np.random.default_rng(seed)
        self.inputs = moved(sim.model)
        self.next = np.zeros(len(self.inputs))

    def write(self) -> None:
        """Write new random values to all commands that are due for a change."""
        for k, item in enumerate(self.inputs):
            if float(self.sim.time) < self.next[k]:
                continue
            self.next[k] = float(self.sim.time) + self.random.uniform(0.5, 3.0)
            rests = self.random.random() < 0.3
            value = item.initial if rests else self.random.uniform(item.lower, item.upper)
            self.sim.control[item.name] = round(value) if item.switch else value


def run_random_commands(name: str, minutes: float) -> dict[str, Any]:
    """Run for ``minutes`` of simulated time with random commands."""
    scene = load_scene(name)
    sim = simulation(scene)
    operator, depth = Operator(sim, 7), 0.0
    steps = round(60.0 * minutes / scene.config.dt)
    for k in range(steps):
        operator.write()
        sim.step()
        if k % 50 == 0:
            depth = max(depth, float(sim.read("sim.penetration")[0]))
            if not sim.health().all():
                break
    gap = float(sim.state.arrays["joint_drift_peak"][0])
    report = {"operated": float(sim.time), "operated_gap": gap, "operated_overlap": depth}
    return report | {"operated_healthy": bool(sim.health().all()), "report": str(sim.health_report())[:300]}


def compare_with_single_runs(name: str, worlds: int, steps: int = 25) -> dict[str, Any]:
    """Return whether the results of many worlds and of separate runs are bit-identical."""
    scene = load_scene(name)
    inputs = moved(scene.builder.finalize())
    random = np.random.default_rng(3)
    commands = {item.name: random.uniform(item.lower, item.upper, worlds) for item in inputs}

    def run(chosen: slice | None) -> dict[str, np.ndarray]:
        sim = simulation(load_scene(name), worlds if chosen is None else 1)
        for label, values in commands.items():
            sim.control[label] = values if chosen is None else values[chosen]
        sim.step(steps)
        return {key: np.array(sim.state.arrays[key]) for key in STATE}

    together, start = run(None), time.process_time()
    same = True
    for world in (0, worlds // 3, worlds - 1):
        alone = run(slice(world, world + 1))
        same &= all(np.array_equal(alone[key][0], together[key][world]) for key in STATE)
    return {"worlds": worlds, "same_bits": bool(same), "spent": time.process_time() - start}


def cpu() -> str:
    """Return the name of the processor and its number of cores."""
    found = describe()
    return f"{found.get('cpu', 'unknown')}, {found.get('cores', '?')} cores"


def table(results: dict[str, dict[str, Any]], machine: str) -> str:
    """Return the table as Markdown."""
    head = (
        "| scene | bodies | step, ms | us a step | times real time | gap, mm | overlap, mm | energy, % "
        "| worlds, same bits | random operator, s | its gap, mm |"
    )
    day = datetime.date.today().isoformat()
    lines = [f"# Machines of the scenes, native, one thread ({machine}, {day})", "", head, "|" + " --- |" * 11]
    for name, r in results.items():
        lines.append(
            f"| {name} | {r.get('bodies')} | {1e3 * r.get('dt', 0):g} | {r.get('step_us', 0):.0f} "
            f"| {r.get('real_time_factor', 0):.2f} | {1e3 * r.get('gap', 0):.2g} | {1e3 * r.get('overlap', 0):.2g} "
            f"| {100 * r.get('audit', float('nan')):.2g} | {r.get('worlds')}, {'yes' if r.get('same_bits') else 'NO'} "
            f"| {r.get('operated', 0):.0f}{'' if r.get('operated_healthy') else ' FAILED'} "
            f"| {1e3 * r.get('operated_gap', 0):.2g} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the scenes, print and write the results, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=SCENES)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--out", type=Path, default=Path("ci/bench/runs/machines.json"))
    parser.add_argument("--machine", default=cpu())
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only:
        figures = (
            run_schedule(name)
            | energy(name)
            | compare_with_single_runs(name, options.worlds)
            | run_random_commands(name, options.minutes)
        )
        results[name] = figures
        print(name, figures, flush=True)
        ordered = {key: results[key] for key in SCENES if key in results}
        options.out.write_text(json.dumps(ordered, indent=1) + "\n")
        options.out.with_suffix(".md").write_text(table(ordered, options.machine))
    bad = [n for n, r in results.items() if not (r["same_bits"] and r["operated_healthy"] and r["audit"] < AUDITED)]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
