"""Test a GPU in about two minutes: print its properties, compare a small model with NumPy, and time launch shapes.

    python ci/gpu_preflight.py

The times are for a step of one world in the workloads boom and humanoid of ``gpusim bench``. The script varies the
number of threads per world and the number of warps per multiprocessor. It writes each result immediately to
$OUT/preflight.json (default: this folder). It uses cached kernels.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for a checkout that is not installed

import numpy as np  # noqa: E402

from gpusim.backends.codegen.header import TILE_GAP  # noqa: E402
from gpusim.backends.cuda.device import WARP, LaunchShape  # noqa: E402
from gpusim.bench import machine  # noqa: E402
from gpusim.bench.drive import command, synchronize  # noqa: E402
from gpusim.bench.runner import Options, make_simulation  # noqa: E402
from gpusim.bench.workloads import Case, chosen_cases  # noqa: E402

COMPARED = {"num_worlds": 3}
COMPARED_STEPS = 20
LANES = (4, 8, 16, 32)
WARPS = (16, 8, 4)
"""Warps per multiprocessor for slabs in global memory."""
MIN_BLOCK = 64
TIMED_STEPS, TIMES = 10, 3


def first_cases() -> list[Case]:
    """Return the case of the boom and the case of the humanoids with the maximum number of worlds."""
    booms = [case for case in chosen_cases(["many_worlds"], False) if case.name.startswith("boom")]
    humanoids = chosen_cases(["humanoid"], False)
    max_worlds = max(case.worlds for case in booms)
    return [case for case in [*booms, *humanoids] if case.worlds == max_worlds]


def greatest_difference(case: Case) -> float:
    """Return the maximum difference (m) of positions between the cuda backend and NumPy after some steps."""
    positions = []
    for backend in ("cuda", "numpy"):
        sim = make_simulation(case, case.build().finalize(), backend, Options(backend), **COMPARED)
        sim.step(COMPARED_STEPS)
        positions.append(np.array(sim.read_state()["position"]))
    return float(np.abs(positions[0] - positions[1]).max())


def shapes(backend: Any) -> Iterator[tuple[str, LaunchShape]]:
    """Yield names and launch shapes that fit the GPU, beginning with the backend's default shape."""
    shape = backend._shape
    for lanes in dict.fromkeys((shape.lanes, *LANES)):
        block = max(MIN_BLOCK, lanes)
        shared = block // lanes * (backend.layout.size + TILE_GAP) if shape.shared else 0
        if shared > backend._max_shared:
            continue
        for warps in WARPS[:1] if shared else WARPS:
            resident = backend._processors * warps * WARP // block * (block // lanes)
            tiles = shape.tiles if shared else max(1, min(shape.tiles, resident))
            yield f"{lanes} lanes, {warps} warps", replace(shape, lanes=lanes, block=block, shared=shared, tiles=tiles)


def world_step(sim: Any) -> float:
    """Return the median time per step and world (ns) of several launches."""
    times = []
    for _ in range(TIMES):
        synchronize(sim)
        begin = time.perf_counter()
        sim.step(TIMED_STEPS)
        synchronize(sim)
        times.append(time.perf_counter() - begin)
    return round(1e9 * median(times) / TIMED_STEPS / sim.num_worlds, 1)


def times_by_shape(case: Case) -> Iterator[tuple[str, float]]:
    """Yield the name of each launch shape, and its time for a step of one world (ns)."""
    sim: Any = make_simulation(case, case.build().finalize(), "cuda", Options("cuda"), specialize=True)
    sim.step(case.settle or COMPARED_STEPS)
    command(sim, 1, case.hold > 0)
    for name, shape in list(shapes(sim.backend)):
        sim.backend._shape = shape
        if case.restart:
            sim.reset()
        yield name, world_step(sim)


def main(cases: list[Case] | None = None) -> int:
    """Run the preflight and return the exit code."""
    import cupy

    device = cupy.cuda.Device(0)
    facts = machine.describe() | {"cupy": cupy.__version__, "compute_capability": device.compute_capability}
    found: dict[str, Any] = {"machine": facts, "attributes": dict(device.attributes), "ns": {}}
    file = Path(os.environ.get("OUT", ".")) / "preflight.json"

    def keep(name: str, value: Any) -> None:
        print(f"{name}: {value}", flush=True)
        file.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")

    keep("card", facts["gpu"])
    cases = first_cases() if cases is None else cases
    found["difference"] = greatest_difference(cases[0])
    keep(f"{cases[0].name}, cuda against NumPy, m", found["difference"])
    for case in cases:
        for shape, ns in times_by_shape(case):
            found["ns"][f"{case.name}, {case.worlds} worlds, {shape}"] = ns
            keep(f"{case.name}, {shape}, ns of a world-step", ns)
        cupy.get_default_memory_pool().free_all_blocks()
    return 0


if __name__ == "__main__":
    os.environ.setdefault("GPUSIM_CUDA_BUILD", "full")
    sys.exit(main())
