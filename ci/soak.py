"""Run a scene for many steps, and repeat the second half from a checkpoint.

    python ci/soak.py [--scene krt100m] [--steps 1000000]

A new process repeats the second half. The script prints the resident memory after each tenth of the steps, and whether
both final states are bit-identical. The exit code is 1 if the states differ, if memory has grown by more than 1 %, or
if a world failed.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpusim
from gpusim.scene import Scene, load_scene

CHUNK = 10
"""Number of steps between two writes of the commands."""


def resident() -> float:
    """Return the resident memory of this process (MiB)."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096 / (1 << 20)


def run(sim: gpusim.Simulation, scene: Scene, steps: int) -> None:
    """Run steps with the scene's schedule."""
    for _ in range(steps // CHUNK):
        if scene.schedule is not None:
            scene.schedule(sim, sim.time % scene.duration)
        sim.step(CHUNK)


def digest(sim: gpusim.Simulation) -> str:
    """Return a hash of the state."""
    arrays = sim.read_state()
    return hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()[:16]


def whole(name: str, steps: int, folder: Path) -> bool:
    """Run all steps. Repeat the second half from the checkpoint in another process."""
    scene, path = load_scene(name), folder / "half.npz"
    sim = gpusim.Simulation(scene.builder.finalize(), config=scene.config, backend="native", threads=1)
    memory, start = [], time.perf_counter()
    for tenth in range(10):
        run(sim, scene, steps // 10)
        memory.append(resident())
        print(f"{sim.time:9.1f} s: {memory[-1]:.1f} MiB, {time.perf_counter() - start:.0f} s", flush=True)
        if tenth == 4:
            sim.save(path)
    command = [sys.executable, __file__, "--scene", name, "--steps", str(steps), "--from", str(path)]
    other = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
    grown = memory[-1] / memory[5] - 1.0  # gpusim has loaded specialized kernels and saved the checkpoint before
    print(f"{steps} steps: memory {100.0 * grown:+.2f} %, {digest(sim)} and {other} after the restart")
    return grown < 0.01 and other == digest(sim) and bool(sim.health().all())


def main() -> int:
    """Run the soak test, or its second half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", default="krt100m")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--from", dest="start", help="checkpoint to continue from")
    options = parser.parse_args()
    if options.start:
        sim = gpusim.Simulation.load(options.start, backend="native", threads=1)
        run(sim, load_scene(options.scene), options.steps // 2)
        print(digest(sim))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return int(not whole(options.scene, options.steps, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
