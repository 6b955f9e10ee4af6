"""Workload ``signals``: time to read signals, write commands and write the state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

READS, COMMANDS, ROUNDS = 60, 30, 25
MAX_COST = {"read_list": 0.02, "command_list": 0.02, "first_velocity": 0.1, "write_pose": 1.0}
"""Target: each operation takes at most this fraction of the time of a step."""
_WORDS = {
    "read_list": f"{READS} numbers as a list",
    "command_list": f"up to {COMMANDS} commands as a list",
    "first_velocity": "the first velocity after a step, by name",
    "write_pose": "all joint positions",
}


def figures(sim: Simulation, step_us: float) -> dict[str, float]:
    """Return the time (microseconds) of each operation in MAX_COST. Each operation runs right after a step.

    ``<name>_share`` is the time of the operation ``<name>`` divided by the time of a step.
    """
    infos = sim.signals()
    joints = [n for n, i in infos.items() if n.startswith("joint.") and n.endswith((".position", ".velocity"))]
    numbers = [n for n in (*joints, *(n for n in infos if n.startswith("servo."))) if not infos[n].shape]
    observation = sim.observe([n for n in numbers if infos[n].device][:READS])
    command = sim.command(list(sim.control)[:COMMANDS])
    velocity = next(n for n in joints if n.endswith(".velocity"))
    pose = {n: sim.read(n, numpy=True) for n in joints if n.endswith(".position") and infos[n].writable}
    values = np.array(command.array)
    calls: dict[str, Callable[[], Any]] = {
        "read_list": observation.read,
        "command_list": lambda: command.write(values),
        "first_velocity": lambda: sim.read(velocity),
        "write_pose": lambda: sim.write_state(pose),
    }
    result = {}
    for name, call in calls.items():
        result[name] = 1e6 * _median(sim, call)
        result[f"{name}_share"] = result[name] / step_us
    return result


def _median(sim: Simulation, call: Callable[[], Any]) -> float:
    """Return the median duration of ``call`` right after a step (s)."""
    from gpusim.bench.drive import synchronize

    times = []
    for _ in range(ROUNDS):
        sim.step(1)
        synchronize(sim)
        begin = time.perf_counter()
        call()
        synchronize(sim)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def lines(records: Sequence[Any]) -> list[str]:
    """Return the results of the workload, one line each."""
    return [
        f"signals: {_WORDS[name]}: {r.extra[name]:.3g} us, {100.0 * r.extra[f'{name}_share']:.2g} % of a step"
        f" (target: at most {100.0 * limit:g} %)"
        for r in records
        if r.workload == "signals" and not r.error
        for name, limit in MAX_COST.items()
    ]
