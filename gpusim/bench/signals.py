"""What reading, commanding and writing cost beside a step: the workload ``signals``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

READS, COMMANDS = 60, 30
ROUNDS, INNER = 15, 20
WANTED = {"read_60": 0.02, "command_30": 0.02, "first_velocity": 0.1, "write_pose": 1.0}
"""Greatest shares of a step."""


def figures(sim: Simulation, step_us: float) -> dict[str, float]:
    """Microseconds of each, and shares of a step (``<name>_share``).

    60 signals of a list, 30 commands of a list, the first velocity by name after a step, and all joint positions.
    """
    infos = sim.signals()
    joints = [n for n in infos if n.startswith("joint.") and n.endswith((".position", ".velocity")) and not infos[n].shape]
    bodies = [n for n in infos if n.startswith("body.") and n.endswith(".linear_velocity")]
    observation = sim.observe([*joints, *bodies][: max(READS - 2 * len(bodies), len(joints))] if len(joints) < READS else joints[:READS])
    command = sim.command(list(sim.control)[:COMMANDS])
    pose = {n: sim.read(n) for n in joints if n.endswith(".position") and infos[n].writable}
    velocity = next(n for n in joints if n.endswith(".velocity"))
    values = np.array(command.array)
    sim.read(velocity)
    timed: dict[str, Callable[[], Any]] = {
        "read_60": observation.read,
        "command_30": lambda: command.write(values),
        "first_velocity": lambda: sim.read(velocity),
        "write_pose": lambda: sim.write_state(pose),
    }
    result = {}
    for name, call in timed.items():
        once = name in ("first_velocity", "write_pose")
        result[name] = spent = 1e6 * _median(sim, call, once)
        result[f"{name}_share"] = spent / step_us
    return result


def _median(sim: Simulation, call: Callable[[], Any], once: bool) -> float:
    """Seconds of a call, from rounds after a step each; ``once``: only the first call after it counts."""
    from gpusim.bench.runner import synchronize

    times, calls = [], 1 if once else INNER
    for _ in range(ROUNDS):
        sim.step(1)
        synchronize(sim)
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize(sim)
        times.append((time.perf_counter() - begin) / calls)
    return float(np.median(times))
