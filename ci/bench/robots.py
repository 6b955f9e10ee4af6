"""Drop robots of other projects from a height of 10 cm, and write a table of the results.

    python ci/bench/robots.py DIR [DIR ...] [--only go2 --only icub] [--seconds 10] [--limit 60] [--out robots.json]

``DIR`` are folders with the files of ``ROBOTS``, at any depth. Each robot falls with and without self collisions, with
steps of 1 and 5 ms, and with the direct and the colored solver. The script adds the results to the existing JSON file,
and writes the table to the same folder. The exit code is 1 if a limit is not met.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gpusim
from gpusim.bench.machine import describe
from gpusim.builder.builder import ModelBuilder
from gpusim.description.shape_kinds import shape_type
from gpusim.importers import load_urdf
from gpusim.model.model import Model

ROBOTS = (
    "a1_description/urdf/a1.urdf",
    "alex_description/urdf/alex_nub_hands.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "b1_description/urdf/b1-z1.urdf",
    "baxter_description/urdf/baxter.urdf",
    "bolt_description/robots/bolt.urdf",
    "borinot_description/urdf/borinot_flying_arm_2.urdf",
    "centauro_description/urdf/centauro.urdf",
    "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf",
    "go1_description/urdf/go1.urdf",
    "go2_description/urdf/go2.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf",
    "icub_description/robots/icub.urdf",
    "kinova_description/robots/kinova.urdf",
    "laikago_description/urdf/laikago.urdf",
    "panda_description/urdf/panda.urdf",
    "pr2_description/urdf/pr2.urdf",
    "romeo_description/urdf/romeo_small.urdf",
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "so_arm_description/urdf/so101.urdf",
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_reduced_box.urdf",
    "talos_data/robots/talos_reduced_corrected.urdf",
    "tiago_description/robots/tiago.urdf",
    "tiago_pro_description/robots/tiago_pro.urdf",
    "ur_description/urdf/ur10_robot.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
    "iCub/robots/iCubGazeboV2_5/model.urdf",
    "iCub/robots/iCubGenova11/model.urdf",
    "iCub/robots/iCubLisboa01/model.urdf",
    "iCub/robots/left_hand_mk3/model.urdf",
    "pybullet_data/kuka_iiwa/model_vr_limits.urdf",
    "pybullet_data/laikago/laikago_toes_zup.urdf",
    "pybullet_data/mini_cheetah/mini_cheetah.urdf",
    "pybullet_data/quadruped/minitaur_rainbow_dash.urdf",
    "pybullet_data/quadruped/vision60.urdf",
)
CASES = tuple(itertools.product((True, False), (1e-3, 5e-3), ("direct", "colored")))
"""Self collisions, step size (s), solver."""
HEIGHT = 0.1
FALL = 1.0
"""Time after which robots lie on the ground, s."""
GREATEST_SPEED, GREATEST_GAP = 5.0, 1e-3
LOOK = 0.01
"""Time between two samples of the speeds, s."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected robots and cases. Return the exit code."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")
    results = json.loads(options.out.read_text())["results"] if options.out.exists() else {}
    for robot in ROBOTS:
        if options.only and not any(part in robot for part in options.only):
            continue
        path = find(robot, options.folders)
        if path is None:
            print(f"{robot}: not found", file=sys.stderr)
            continue
        models = {self_collisions: read(path, self_collisions) for self_collisions in (True, False)}
        for self_collisions, dt, solver in CASES:
            name = case_name(robot, self_collisions, dt, solver)
            if options.cases and not all(f"|{word}" in name for word in options.cases):
                continue
            results[name] = drop(models[self_collisions], dt, solver, options.seconds, options.limit)
            print(f"{name}: {cell(results[name])} {results[name]['stopped']}", flush=True)
            options.out.write_text(json.dumps({"machine": describe(), "results": results}, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(table(results))
    return int(any(broken(result) for result in results.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--only", action="append", metavar="PART", help="robots whose file's name has that in it")
    parser.add_argument("--cases", action="append", metavar="WORD", help="self or ground, 1 ms or 5 ms, a solver")
    parser.add_argument("--seconds", type=float, default=10.0, help="simulated time")
    parser.add_argument("--limit", type=float, default=300.0, help="processor time of a case, s; then it ends early")
    parser.add_argument("--out", type=Path, default=Path("robots.json"))
    return parser


def case_name(robot: str, self_collisions: bool, dt: float, solver: str) -> str:
    """Return the key of a case in the results."""
    return f"{robot}|{'self' if self_collisions else 'ground'}|{1000 * dt:g} ms|{solver}"


def find(robot: str, folders: Sequence[Path]) -> Path | None:
    """Return the first file below ``folders`` whose path ends with ``robot``."""
    name = Path(robot).name
    return next((path for folder in folders for path in folder.rglob(name) if str(path).endswith("/" + robot)), None)


def read(path: Path, self_collisions: bool) -> Model:
    """Return a model of the robot with a free base, and with its lowest point HEIGHT above the ground."""
    builder, _ = load_urdf(path, fixed_base=False, visuals=False, self_collisions=self_collisions)
    ground = gpusim.Transform((0.0, 0.0, lowest(builder) - HEIGHT))
    builder.add_shape_plane(-1, xform=ground, label="ground")
    return builder.finalize()


def lowest(builder: ModelBuilder) -> float:
    """Return the height of the lowest point of all shapes (m)."""
    heights = [0.0]
    for shape in builder.shapes:
        points, _ = shape_type(shape.kind).mesh(shape.params)
        pose = builder.bodies[shape.body].xform * shape.xform
        heights.append(float(pose.apply(points)[:, 2].min()))
    return min(heights[1:], default=0.0)


def drop(model: Model, dt: float, solver: str, seconds: float, limit: float) -> dict[str, Any]:
    """Let the robot fall. Return the measured values in m, m/s, J and microseconds."""
    config = gpusim.SolverConfig(dt=dt, joint_solver=solver)
    sim = gpusim.Simulation(model, backend="native", threads=1, config=config)
    seen = {"speed": 0.0, "late": 0.0, "gap": 0.0, "gained": 0.0, "pairs": 0, "contacts": 0, "overlap": 0.0}
    energy, spent, looks = np.inf, 0.0, 0
    while sim.time < seconds - 0.5 * dt and spent < limit and sim.health().all():
        begin = time.process_time()
        sim.step(max(1, round(LOOK / dt)))
        spent += time.process_time() - begin
        looks += 1
        energy = look(sim, seen, looks, energy)
    return seen | {
        "time": round(sim.time, 3),
        "stopped": "" if sim.health().all() else sim.health_report(),
        "step": 1e6 * spent * dt / max(sim.time, dt),
        "not_converged": int(sim.read("sim.not_converged")[0]),
    }


def look(sim: gpusim.Simulation, seen: dict[str, Any], looks: int, energy: float) -> float:
    """Update the maximum values in ``seen``, and return the minimum total energy so far (J)."""
    velocities = sim.state.arrays["linear_velocity"][0].astype(float)
    speed = float(np.linalg.norm(velocities, axis=1).max())
    seen["speed"] = max(seen["speed"], speed)
    seen["pairs"] = max(seen["pairs"], int(sim.read("sim.pairs")[0]))
    if sim.time > FALL:
        seen["late"] = max(seen["late"], speed)
    if looks % 2 == 0:
        seen["gap"] = max(seen["gap"], float(sim.read("sim.joint_drift")[0]))
    if looks % 10 == 0:
        seen["contacts"] = int(sim.read("sim.contacts")[0])
        seen["overlap"] = max(seen["overlap"], float(sim.read("sim.penetration")[0]))
        now = float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])
        seen["gained"] = max(seen["gained"], now - energy)
        energy = min(energy, now)
    return energy


def broken(result: dict[str, Any]) -> bool:
    """Return True if a limit is not met."""
    return bool(result["stopped"]) or result["late"] > GREATEST_SPEED or not result["gap"] < GREATEST_GAP


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table with a row for each robot and a column for each case."""
    robots: dict[str, list[dict[str, Any] | None]] = {}
    for robot in ROBOTS:
        robots[robot] = [results.get(case_name(robot, *case)) for case in CASES]
    heads = [case_name("", *case)[1:].replace("|", ", ") for case in CASES]
    lines = [f"| robot | {' | '.join(heads)} |", "|---" * (1 + len(CASES)) + "|"]
    for robot, cells in robots.items():
        if any(cells):
            name = f"{robot.split('/')[-3]}/{Path(robot).stem}"
            lines.append(f"| {name} | {' | '.join(cell(result) for result in cells)} |")
    return "\n".join(lines) + "\n"


def cell(result: dict[str, Any] | None) -> str:
    """Return a table cell: maximum speed after the fall, maximum joint gap, and time per step."""
    if result is None:
        return ""
    reported = [f"{result['late']:.2g}", f"{1e3 * result['gap']:.2g}"]
    reported = [f"**{reported[0]}**" if result["late"] > GREATEST_SPEED else reported[0], reported[1]]
    reported[1] = reported[1] if result["gap"] < GREATEST_GAP else f"**{reported[1]}**"
    return ("**stopped** " if result["stopped"] else "") + " / ".join([*reported, f"{result['step']:.0f}"])


if __name__ == "__main__":
    sys.exit(main())
