"""Run the scene biped_walk with other parameters, masses and friction of the soles, and write a table.

    python ci/bench/biped_walk.py [--only ["40 N back" ...]] [--worlds 20] [--out biped_walk.json]

Each case runs the scene's whole schedule on the native backend with one thread.

The controller does not know the changes of a case. In the cases "seeds", each world has a different random seed. The
exit code is 1 if a robot falls in a case that does not allow falls.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scene_runs import MACHINE, figure, steps_of, timed_run

import gpusim
from gpusim.bench.machine import describe
from gpusim.scene import load_scene
from gpusim.scenes.machines import biped_walk

CASES: dict[str, dict[str, Any]] = {
    "as it comes: 40 N to the left": {},
    "flat and straight: no board, push, bend": {"board": 0.0, "push": 0.0, "turn": 0.0},
    "no push": {"push": 0.0},
    "board that the plan does not know of": {"seen": False},
    "40 N ahead": {"side": 0.0},
    "40 N back": {"side": 180.0},
    "40 N to the right, over the foot that bears": {"side": 270.0},
    "40 N ahead, 30 degrees to the left": {"side": 30.0},
    "60 N to the left": {"push": 60.0},
    "60 N ahead": {"push": 60.0, "side": 0.0},
    "60 N back": {"push": 60.0, "side": 180.0},
    "60 N to the right": {"push": 60.0, "side": 270.0},
    "80 N to the left: too much": {"push": 80.0},
    "1 ms": {"dt": 1e-3},
    "5 ms": {"dt": 5e-3},
    "steps of 0.2 m": {"length": 0.2},
    "right bend": {"turn": -60.0},
    "seeds": {"worlds": True},
    "seeds, 40 N ahead": {"side": 0.0, "worlds": True},
    "seeds, 40 N back": {"side": 180.0, "worlds": True},
    "seeds, 40 N to the right": {"side": 270.0, "worlds": True},
    "seeds, board that the plan does not know of": {"seen": False, "worlds": True},
}
FIGURES = ("off_end_mm", "late_ms", "slip_mm", "lean_deg", "load", "gap_mm")
FALLEN = 0.5
"""Height of the pelvis below which the robot has fallen, m."""


def vary(sim: gpusim.Simulation, worlds: int) -> None:
    """Vary the mass of each body, and the friction of all shapes by a common factor."""
    bodies, shapes = sim.model.labels("body"), sim.model.labels("shape")
    draws = np.array([np.random.default_rng(seed).uniform(-1.0, 1.0, len(bodies) + 1) for seed in range(worlds)])
    for k, body in enumerate(bodies):
        mass = sim.read(f"body.{body}.mass", numpy=True)
        sim.write(f"body.{body}.mass", mass * (1.0 + 0.02 * draws[:, k]))
    for shape in shapes:
        friction = sim.read(f"shape.{shape}.friction", numpy=True)
        sim.write(f"shape.{shape}.friction", friction * (1.0 + 0.1 * draws[:, -1]))


def run_case(changes: dict[str, Any], many: int) -> dict[str, Any]:
    """Run a case and return its results."""
    changes = dict(changes)
    dt, worlds = changes.pop("dt", None), many if changes.pop("worlds", False) else 1
    scene = load_scene("biped_walk", **changes)
    config = scene.config if dt is None else replace(scene.config, dt=dt)
    sim = gpusim.Simulation(scene.builder.finalize(), worlds, backend="native", config=config, threads=1)
    if worlds > 1:
        vary(sim, worlds)
    run, load, spent = timed_run(scene, sim, "diagram.robot.load")
    known = ("steps", "length", "turn", "board")
    plan = biped_walk.walk(**{k: v for k, v in changes.items() if k in known}, **_board(changes))[0]
    height = run["body.pelvis.position"][..., 2]
    return {
        "worlds": worlds,
        "fell": int(((height.min(axis=0) < FALLEN) | ~np.asarray(sim.health())).sum()),
        "off_end_mm": 1e3 * biped_walk.off_end(plan, run),
        "late_ms": 1e3 * biped_walk.late(plan, run),
        "slip_mm": 1e3 * biped_walk.slip(plan, run),
        "lean_deg": math.degrees(float(np.abs(run["diagram.robot.lean"][..., 1:]).max())),
        "load": load,
        "gap_mm": 1e3 * float(run["sim.joint_drift"].max()),
        "us_a_step": 1e6 * spent / steps_of(scene, sim) / worlds,
        "real_time_factor": scene.duration / spent * worlds,
    }


def _board(changes: dict[str, Any]) -> dict[str, float]:
    return {} if changes.get("seen", True) else {"board": 0.0}


def table(found: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    machine = describe()
    lines = [
        "# A biped that walks\n",
        f"`python ci/bench/biped_walk.py`, native, float64, one thread; {MACHINE}, {machine['compiler']},",
        f"{machine['date'][:10]}. Number of robots that fell; maximum values over the walk and all worlds, sampled",
        "each 10 ms (load: each step): final position error of the pelvis, delay of a foot's contact, slip of a",
        "loaded sole, lean, torque over stall torque, joint gap. Process time of a step of one world, with all",
        "control; simulated time over process time.\n",
        "| case | fell | off, mm | late, ms | slip, mm | lean, degrees | load | gap, mm | us a step | times real |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, x in found.items():
        figures = " | ".join(figure(x[key]) for key in FIGURES)
        times = f"{x['us_a_step']:.0f} | {x['real_time_factor']:.0f}"
        lines.append(f"| {name} | {x['fell']} of {x['worlds']} | {figures} | {times} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES), help="none: the table alone")
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs" / "biped_walk.json")
    args = parser.parse_args()
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    found = {name: found[name] for name in CASES if name in found}
    for name in args.only:
        found[name] = run_case(CASES[name], args.worlds)
        print(name, {k: round(v, 4) for k, v in found[name].items()}, flush=True)
        found = {name: found[name] for name in CASES if name in found}
        args.out.write_text(json.dumps(found, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(table(found))
    return 1 if any(x["fell"] for name, x in found.items() if "too much" not in name) else 0


if __name__ == "__main__":
    sys.exit(main())
