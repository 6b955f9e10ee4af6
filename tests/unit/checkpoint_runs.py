from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import GpusimError
from gpusim.scene import load_scene
from gpusim.sensors import add_imu
from tests.builds import optimize_less

from .helpers import ball_body
from .test_snapshots import builder

ROOT = Path(__file__).parents[2]
EVERYTHING = "everything"
WRITTEN = ("mass", "damping", "friction", "supply_pressure", "kp", "stall_torque", "stiffness", "delay")


def everything(contacts: bool = True) -> gpusim.ModelBuilder:
    b = builder(contacts)
    far = [ball_body(b, 1.0, 0.05, xform=gpusim.Transform((k, 0, 5)), label=f"far{k}") for k in range(3)]
    rail = b.add_joint_prismatic(-1, far[0], at=(0, 0, 5), axis=(0, 0, 1), label="rail")
    b.add_motion(rail, label="path")
    b.add_latch(far[1], far[2], label="grip")
    slide = b.add_joint_prismatic(-1, far[1], at=(1, 0, 5), axis=(1, 0, 0), label="slide")
    b.add_joint_force(slide, label="lagging")
    b.set_command_map("lagging", factor=5.0, lower=-2.0, upper=2.0, time_constant=0.03)
    cart = b.add_joint_prismatic(-1, far[2], at=(2, 0, 5), axis=(1, 0, 0), label="cart")
    b.add_tracking_servo(cart, 50.0, 5.0, label="creep")
    b.set_command_map("creep", integrate=True, activation_range=(-0.5, 0.02))
    b.add_site(far[1], label="imu")
    add_imu(b, "imu", "imu", rate=100.0, acceleration_noise=0.2, rate_noise=0.1, latency=0.02, seed=4)
    b.add_pose("up", joints={"slide": 0.2}, commands={"lagging": 0.5}, activations={"creep": 0.01})
    return b


def commanded(sim: gpusim.Simulation, name: str, scene: Any) -> None:
    if name != EVERYTHING:
        if scene.schedule is not None:
            scene.schedule(sim, sim.time)
        return
    time = sim.read("sim.time")
    sim.control["motor"] = np.sin(30.0 * time + np.arange(sim.num_worlds))
    sim.control["drive"], sim.control["lagging"], sim.control["lever"] = 1.0 + time, np.cos(9.0 * time), 0.2
    sim.control["creep"] = 0.5 - time
    sim.control["path"], sim.control["path.velocity"], sim.control["path.acceleration"] = time * time, 2.0 * time, 2.0


def run(sim: gpusim.Simulation, name: str, steps: int) -> None:
    """Run a scene or the machine. Worlds fail on purpose, so there are warnings."""
    scene = None if name == EVERYTHING else load_scene(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(steps):
            commanded(sim, name, scene)
            sim.step()


def under_way(name: str, backend: str, worlds: int, steps: int, **options: Any) -> gpusim.Simulation:
    scene = None if name == EVERYTHING else load_scene(name)
    config = scene.config if scene else gpusim.SolverConfig(dt=2e-3)
    config = dataclasses.replace(config, **options.pop("config", {}))
    model = (scene.builder if scene else everything(backend == "native")).finalize()
    sim = gpusim.Simulation(model, worlds, backend, config=config, **options)
    factor = 1.0 + 0.01 * np.arange(worlds)
    parameters = [s for s, info in sim.signals().items() if info.writable and s.rpartition(".")[2] in WRITTEN]
    for signal in parameters[:12]:
        with contextlib.suppress(GpusimError):
            sim.write(signal, factor * (sim.read(signal, numpy=True) + 0.01 * signal.endswith("damping")))
    run(sim, name, steps // 2)
    number = np.arange(worlds)
    if worlds > 1:
        sim.write(f"body.{model.bodies[-1].label}.linear_velocity", (0.0, 1e30, 0.0), number % 7 == 1)
    if name == EVERYTHING:
        sim.write("joint.rod.damping", 0.1 * factor)
        sim.write("joint.grip.attached", 1.0, number % 3 == 0)
        sim.reset(number % 5 == 3, pose="up")
        sim.control.array[number % 7 == 2, model.controls["motor"]] = np.nan
        sim.invalidate()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sim.step()
    sim.override(worlds=number % 7 == 5)
    run(sim, name, steps - steps // 2)
    return sim


def digest(sim: gpusim.Simulation) -> str:
    """Hash of the state, the commands and the health report."""
    found = hashlib.sha256()
    for key, array in sorted(sim.state.variables().items()):
        found.update(key.encode() + np.ascontiguousarray(array).tobytes())
    found.update(np.ascontiguousarray(sim.control.array).tobytes() + sim.health_report().encode())
    return found.hexdigest()


def continued(sim: gpusim.Simulation, name: str, steps: int) -> list[str]:
    run(sim, name, steps)
    found = [digest(sim)]
    sim.reset()
    run(sim, name, min(steps, 5))
    return [*found, digest(sim)]


def in_a_new_process(jobs: list[dict[str, Any]]) -> list[list[str]]:
    """Continue checkpoints in a new process. A job has ``path``, ``name``, ``steps`` and ``options``."""
    command = [sys.executable, "-m", "tests.unit.checkpoint_runs"]
    done = subprocess.run(command, input=json.dumps(jobs), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


def main() -> None:
    if os.environ.get("GPUSIM_TEST_BUILDS") != "shipped":
        optimize_less(pytest.MonkeyPatch())
    found = []
    for job in json.load(sys.stdin):
        sim = gpusim.Simulation.load(job["path"], **job["options"])
        found.append(continued(sim, job["name"], job["steps"]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
