"""Compare the speeds of two checkouts on the native backend, and optionally of MuJoCo.

    python ci/compare_speed.py OLD NEW [--case NAME]... [--rounds 7] [--specialize] [--mujoco] [--write FILE]

``OLD`` and ``NEW`` are folders of checkouts. Each case runs in a separate process for each checkout, on one thread. The
processes run alternately, so other work on the computer slows both checkouts equally. The table contains the median CPU
time for a step of one world in each checkout, and the ratio of the times. It also shows whether the final states are
bit-identical. With ``--specialize``, the kernels in NEW have the sizes of the model as constants. ``--mujoco`` adds
MuJoCo's time (Euler, Newton) for cases whose model is also available as MJCF (ci/peers).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import hashlib
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CASES = {
    "lying": 400, "standing": 240, "moving": 300, "biped": 300, "chain": 400, "boom": 3000, "hydraulic_lift": 3000,
    "rtk_m": 20, "excavator": 20, "lying:1024": 3, "standing:1024": 60, "moving:1024": 20, "biped:1024": 3,
    "chain:1024": 20, "boom:1024": 60, "crowd_lying": 20, "crowd_falling": 20,
}  # fmt: skip
"""Number of steps by case."""
PEERS = {"lying": "HUMANOID_LYING", "standing": "HUMANOID_STANDING", "moving": "HUMANOID_MOVING", "biped": "BIPED",
         "chain": "CHAIN", "boom": "BOOM", "crowd_lying": "HUMANOID_LYING",
         "crowd_falling": "HUMANOID_MOVING"}  # fmt: skip
"""Names of MuJoCo's models in gpusim.bench.workloads. A crowd consists of several copies and gets no commands."""
CROWD = 100
"""Number of humanoids in the world of a crowd."""


def gpusim_stepper(name: str, worlds: int, specialize: bool) -> tuple[Callable[[int], float], Callable[[], str]]:
    """Return a function that runs steps and returns their CPU time (s), and a function for a digest of the state.

    The time excludes resets and new commands.
    """
    import numpy as np

    import gpusim
    from gpusim.bench import humanoid, workloads
    from gpusim.bench.drive import command
    from gpusim.scene import load_scene

    settle, hold, restart, config = 100, 0, 0, gpusim.SolverConfig(dt=humanoid.DT)
    settles = {
        "lying": humanoid.SETTLE, "moving": humanoid.FALL, "standing": 0, "crowd_lying": humanoid.SETTLE,
        "crowd_falling": humanoid.FALL,
    }  # fmt: skip
    if name in settles:
        several = {"count": CROWD} if name.startswith("crowd") else {}  # old checkouts have no count
        builder, settle = humanoid.humanoid(lying=name.endswith("lying"), **several), settles[name]
        hold, restart = (
            (humanoid.HOLD if name == "moving" else 0),
            (humanoid.STANDING_STEPS if name == "standing" else 0),
        )
    elif name in PEERS:
        builder, config = workloads.MODELS[getattr(workloads, PEERS[name])](), gpusim.SolverConfig()
    else:
        scene = load_scene(name)
        builder, config = scene.builder, scene.config
    sim = gpusim.Simulation(builder.finalize(), worlds, "native", config=config, threads=1, specialize=specialize)
    count = 0

    def advance(steps: int) -> float:
        nonlocal count
        done, taken = 0, 0.0
        while done < steps:
            now = min(steps - done, hold or restart or steps)
            if restart:
                sim.reset()
            if hold:
                command(sim, count := count + 1, True)
            began = time.process_time()
            sim.step(now)
            taken += time.process_time() - began
            done += now
        return taken

    def digest() -> str:
        arrays = sim.state.arrays
        return hashlib.sha256(b"".join(np.ascontiguousarray(arrays[k]).tobytes() for k in sorted(arrays))).hexdigest()

    advance(settle)
    return advance, digest


def mujoco_stepper(name: str, worlds: int) -> tuple[Callable[[int], float], Callable[[], str]]:
    """Return a function that runs steps in MuJoCo and returns the CPU time (s), and one that returns an empty text.

    The time includes resets and new commands, which take about 0.2 us per step.
    """
    import mujoco
    import numpy as np
    from mujoco import rollout

    from ci.peers import mujoco_peers as peers
    from ci.peers.humanoid_mjcf import humanoid_mjcf
    from ci.peers.peer_models import peer_models
    from gpusim.bench import workloads

    workload = getattr(workloads, PEERS[name])
    peer = next(m for m in peer_models() if m.name == workload and "PGS" not in (m.note or ""))
    if name.startswith("crowd"):
        text = humanoid_mjcf(lying=name == "crowd_lying", count=CROWD)
        peer = dataclasses.replace(peer, text=text, commands=0.0, hold=0)
    model = mujoco.MjModel.from_xml_string(peer.text)
    data = peers.settled(peer, model)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data, state, full)
    if worlds == 1:
        run = peers.fallen(peer, peers._stepped(peer, model, data, state))
    else:
        run = peers.fallen(
            peer, peers._rollout(rollout.Rollout(nthread=1), model, np.tile(state, (worlds, 1)), 1, peer)
        )

    def advance(steps: int) -> float:
        began = time.process_time()
        run(steps)
        return time.process_time() - began

    return advance, lambda: ""


def work(case: str, which: str) -> None:
    """Read numbers of steps from standard input, run them, and print the time per step of one world (microseconds)."""
    name, _, count = case.partition(":")
    worlds = int(count or 1)
    made = mujoco_stepper(name, worlds) if which == "mujoco" else gpusim_stepper(name, worlds, which == "specialize")
    advance, digest = made
    print("ready", flush=True)
    for line in sys.stdin:
        print(1e6 * advance(int(line)) / int(line) / worlds, digest(), flush=True)


def start(folder: Path, case: str, which: str) -> subprocess.Popen[str]:
    """Start a process that runs a case in one checkout."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "GPUSIM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, __file__, "--work", case, which], env=environment, cwd=folder, text=True,
        stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def compare(case: str, processes: Sequence[subprocess.Popen[str]], rounds: int) -> list[str]:
    """Run a case in all processes and return its table row."""
    steps, name = CASES.get(case, 20), case.partition(":")[0]
    if "1024" in case and name != "standing":
        steps = max(steps, 20)  # MuJoCo's rollouts have 20 steps
    times: list[list[float]] = [[] for _ in processes]
    bits = [""] * len(processes)
    if any(p.stdout is None or p.stdout.readline().strip() != "ready" for p in processes):
        for process in processes:
            process.terminate()
        return [case, "failed"]
    for _ in range(rounds):
        for k, process in enumerate(processes):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
            step_time, _, bits[k] = process.stdout.readline().strip().partition(" ")
            times[k].append(float(step_time))
    for process in processes:
        process.terminate()
    old, new, *peer = (statistics.median(t) for t in times)
    cells = [case, rounded(old), rounded(new), f"{old / new:.2f}", "equal" if bits[0] == bits[1] else "differ"]
    return [*cells, *([rounded(peer[0]), f"{old / peer[0]:.2f}", f"{new / peer[0]:.2f}"] if peer else [])]


def rounded(microseconds: float) -> str:
    """Format a time with three digits, without an exponent."""
    return f"{float(f'{microseconds:.3g}'):g}"


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--case", action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--specialize", action="store_true")
    parser.add_argument("--mujoco", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    head = ["case", "old", "new", "old / new", "bits", "MuJoCo", "old / MuJoCo", "new / MuJoCo"]
    rows = []
    for case in options.case or CASES:
        kinds: list[tuple[Any, str]] = [(options.old, ""), (options.new, "specialize" if options.specialize else "")]
        if options.mujoco and case.partition(":")[0] in PEERS:
            kinds.append((options.new, "mujoco"))
        rows.append(compare(case, [start(folder.resolve(), case, which) for folder, which in kinds], options.rounds))
        print(" | ".join(rows[-1]), flush=True)
    lines = [f"| {' | '.join(row + [''] * (len(head) - len(row)))} |" for row in (head, ["---"] * len(head), *rows)]
    text = f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n\n"
    text += "\n".join(lines) + "\n"
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
    else:
        main()
