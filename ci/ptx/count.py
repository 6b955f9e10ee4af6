"""Count the instructions, memory accesses and executed code of a step on a GPU, from the kernels' PTX.

    python ci/ptx/count.py [CASE ...] [--card h200] [--limits] [--functions 20] [--list]

The worlds fill one warp. Each world has as many threads as in a run of 8192 worlds on an H200. The script counts for a
step of one world:

* PTX instructions of all threads, and of warps. The ratio of both counts is the mean number of active threads.
* Number of instructions that run at least once.
* Requests of warps to global memory, in 128-byte lines and 32-byte sectors, and shared memory accesses.
* Bytes that a cache of a given size fetches. The cache replaces the least recently used line.
* Lower bounds of the time (ns) on a GPU with 8192 worlds.

``ci/kernel_limits.json`` contains limits for the counts of LIMITED cases. ``--limits`` rewrites the file. The exit code
is 1 if a count exceeds its limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for a checkout that is not installed

from ci.cards import CARDS, Card  # noqa: E402
from ci.check_kernels import LIMITS  # noqa: E402
from ci.ptx import device  # noqa: E402
from ci.ptx.executor import NVRTC_MAJOR, TRAFFIC, Module, build, executor, why_not  # noqa: E402
from ci.ptx.reader import join, read_module, short_name  # noqa: E402
from ci.ptx.translator import BasicBlock, basic_blocks  # noqa: E402
from gpusim import Simulation, SolverConfig  # noqa: E402
from gpusim.backends.codegen.header import TILE_GAP  # noqa: E402
from gpusim.backends.cuda.device import WARP, Gpu, launch_shape  # noqa: E402
from gpusim.backends.cuda.nvrtc import load_nvrtc  # noqa: E402
from gpusim.bench.drive import run_driven  # noqa: E402
from gpusim.bench.workloads import Case, chosen_cases  # noqa: E402

WORLDS = 8192
CACHES = (4096, 6144, 7475, 28672)
"""Cache sizes, bytes per world."""
CASES = {
    "boom": ("many_worlds", "boom with cylinder"),
    "chain": ("many_worlds", "chain of 10 joints"),
    "biped": ("many_worlds", "standing biped"),
    "lying": ("humanoid", "humanoid lying"),
    "moving": ("humanoid", "humanoid moving"),
    "pile": ("pile_1000", "1000 boxes, 4 x 1 sweeps"),
    "excavator": ("latency", "excavator"),
    "rtk_m": ("latency", "rtk_m"),
}
"""Workload and name of the benchmark's case."""
CHECKED = ("boom", "chain", "biped", "lying", "moving")
"""Cases with limits."""
MACHINE_CODE = 1.6
"""Instructions of machine code per PTX instruction, counted for boom and humanoids."""
SCHEDULERS = 4
L2 = "kB at 6.0"
"""Bytes of the L2 cache of an H100 for each world."""
LIMITED = ("warp instructions", "code", "lines", "sectors", "passes")
ROUNDED = 2
"""Number of digits of a limit. The script rounds counts up."""
INCREASE = {"lines": 1.002, "sectors": 1.002}
"""Factors on limits of counts that depend slightly on memory addresses."""
KINDS = {"fp64": ".f64", "fp32": ".f32"}
_MEMORY = ("ld", "st", "atom", "red")
_CONTROL = ("bra", "ret", "call", "bar", "trap", "setp", "selp")


@dataclass
class Counts:
    """Counts for one world-step.

    Attributes:
        figures: counts by name.
        shares: percentage of warp instructions by instruction type (see :func:`kind_of`).
        functions: numbers of warp instructions and of global memory lines by function, largest sums first.
    """

    case: str
    figures: dict[str, float] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    functions: list[tuple[str, float, float]] = field(default_factory=list)


def kind_of(name: str) -> str:
    """Return the type of an instruction from its name: fp64, fp32, memory, control or integer."""
    opcode = name.split(".")[0]
    if opcode in _MEMORY:
        return "memory"
    if opcode in _CONTROL:
        return "control"
    return next((kind for kind, suffix in KINDS.items() if name.endswith(suffix)), "integer")


class CountedModules:
    """Modules that are built with counters, and their PTX.

    Args:
        threads: maximum size of a block.
        caches: sizes of the caches (bytes).
    """

    def __init__(self, threads: int, caches: Sequence[int]) -> None:
        self.caches, self._threads = caches, threads
        self.loaded: list[tuple[Module, list[tuple[str, BasicBlock]]]] = []

    def load(self, *parts: device.Part) -> Module:
        """Load modules in the same way as ``device.load_module``. Modules with the kernels of a step get counters."""
        steps = any(main.startswith(("fused", "staged")) for main, *_ in parts)
        texts = [device.make_ptx(*part) for part in parts]
        module = Module(build(*texts, counted=steps))
        module.load_tables(device._permanent_copy)
        if steps:
            functions = join([read_module(text) for text in texts]).functions.values()
            self.loaded.append((module, [(short_name(f.name), b) for f in functions for b in basic_blocks(f)]))
            self._count(*self.loaded[-1])
        return module

    def _count(self, module: Module, blocks: Sequence[Any]) -> None:
        executor().count(module.number, len(blocks), module.sites(), self._threads, self.caches)

    def restart(self) -> None:
        """Set all counts to zero and empty the caches."""
        for module, blocks in self.loaded:
            self._count(module, blocks)


def _bench_case(name: str) -> Case:
    workload, case = CASES[name]
    return next(c for c in chosen_cases([workload], False) if c.name == case)


def _shape(case: Case, model: Any, worlds: int) -> Any:
    """Return the launch shape of a case on an H200."""
    sizes: Any = Simulation(model, 1, "native", config=SolverConfig(**case.config), launch="fused", threads=1).backend
    return launch_shape(sizes.sizes, sizes.layout.size, worlds, CARDS["h200"].gpu)


@contextmanager
def _on_executor(modules: CountedModules, shape: Any) -> Iterator[None]:
    """Run ``backend="cuda"`` on the executor with a launch shape of one block."""

    def one_block(sizes: dict[str, int], slab: int, worlds: int, gpu: Gpu) -> Any:
        block = max(shape.lanes, WARP)
        shared = block // shape.lanes * (slab + TILE_GAP) if shape.shared else 0
        return replace(shape, block=block, shared=shared, tiles=worlds)

    with (
        device.installed(),
        mock.patch("gpusim.backends.cuda.backend.launch_shape", one_block),
        mock.patch.object(device, "load_module", modules.load),
        mock.patch.dict(device._loaded, clear=True),
    ):
        yield


def count_case(name: str) -> Counts:
    """Run two steps, and count only the second step, which has warm caches.

    Args:
        name: key of CASES.
    """
    case = _bench_case(name)
    model, config = case.build().finalize(), SolverConfig(**case.config)
    alone = case.worlds == 1
    shape = _shape(case, model, 1 if alone else WORLDS)
    worlds = 1 if alone else max(WARP // shape.lanes, 1)
    launch = "staged" if case.pile else "fused"
    make = partial(Simulation, model, worlds, dtype="float32", config=config, launch=launch)
    native = make("native", threads=1)
    run_driven(native, max(case.settle, 50), case.hold)
    threads = 256 if case.pile else max(shape.lanes, WARP)
    modules = CountedModules(threads, [size * worlds for size in CACHES])
    with _on_executor(modules, shape):
        executor().configure()
        cuda = make("cuda", specialize=launch == "fused")
        cuda.restore(native.snapshot())
        for sim in (cuda, native):
            sim.step()
        for module, _ in modules.loaded:
            executor().take_counts(module.number)
        for sim in (cuda, native):
            sim.step()
        same_bits(cuda, native)
        return summary(name, modules, worlds)


def same_bits(cuda: Simulation, native: Simulation) -> None:
    """Raise RuntimeError if the two states are not bit-identical, because the counts would be wrong."""
    states = [sim.state.variables() for sim in (cuda, native)]
    wrong = [name for name, array in states[0].items() if array.tobytes() != states[1][name].tobytes()]
    if wrong:
        raise RuntimeError(f"the bits of {', '.join(wrong[:3])} differ from native's")


def summary(name: str, modules: CountedModules, worlds: int) -> Counts:
    """Return the counts since the last restart or summary.

    Args:
        name: name of the case.
        modules: all modules whose kernels were launched.
        worlds: divisor of the counts: number of worlds, or number of steps of one world.
    """
    counts, kinds, functions, lines = Counts(name), Counter[str](), Counter[str](), Counter[str]()
    memory = [0] * (3 * TRAFFIC + len(modules.caches))
    threads_total = warps_total = code_size = 0
    for module, blocks in modules.loaded:
        threads, warps, by_site, memory_of_module = executor().take_counts(module.number)
        for site, n in enumerate(by_site.tolist()):
            lines[module.site(site).rpartition(", in ")[2]] += n
        memory = [a + b for a, b in zip(memory, memory_of_module, strict=True)]
        for (function, block), by_thread, by_warp in zip(blocks, threads.tolist(), warps.tolist(), strict=True):
            size = len(block.instructions)
            threads_total, warps_total = threads_total + size * by_thread, warps_total + size * by_warp
            code_size += size if by_thread else 0
            functions[function] += size * by_warp
            for s in block.instructions if by_warp else ():
                kinds[kind_of(s.name)] += by_warp
    far, near, local = (memory[k * TRAFFIC : (k + 1) * TRAFFIC] for k in range(3))
    per_world = {
        "instructions": threads_total,
        "warp instructions": warps_total,
        "requests": far[0],
        "lines": far[1],
        "sectors": far[2] + far[3],
        "stored sectors": far[3],
        "shared requests": near[0],
        "passes": near[1],
        "local accesses": local[4],
    }
    for size, fetched in zip(modules.caches, memory[3 * TRAFFIC :], strict=True):
        per_world[f"kB at {size / worlds / 1024:.1f}"] = fetched / 1e3
    counts.figures = {key: value / worlds for key, value in per_world.items()}
    counts.figures |= {"code": code_size, "active threads": threads_total / warps_total}
    counts.shares = {kind: 100.0 * n / warps_total for kind, n in kinds.most_common()}
    ranked = sorted(functions, key=lambda f: -lines[f] - functions[f])
    counts.functions = [(f, functions[f] / worlds, lines[f] / worlds) for f in ranked]
    return counts


def bounds(counts: Counts, card: Card) -> dict[str, float]:
    """Return lower bounds for the time per step and world (ns), for many worlds that use the whole GPU."""
    warp = counts.figures["warp instructions"]
    cycles = {
        "issue": warp * MACHINE_CODE / SCHEDULERS,
        "fp64": 0.01 * counts.shares.get("fp64", 0.0) * warp * card.fp64_cycles,
        "lines": counts.figures["lines"] + counts.figures["passes"],
    }
    found = {name: 1e9 * x / (card.clock * card.gpu.processors) for name, x in cycles.items()}
    return found | {"memory": 1e12 * counts.figures[L2] / card.bandwidth}


def over_limits(found: Sequence[Counts], limits: dict[str, dict[str, float]]) -> list[str]:
    """Return a sentence for each count that exceeds its limit."""
    over = []
    for counts in found:
        for name, limit in limits.get(counts.case, {}).items():
            if counts.figures[name] > limit:
                fix = "reduce it, or accept it with ci/ptx/count.py --limits"
                over.append(f"{counts.case}: {name} = {counts.figures[name]:.0f} exceeds {limit:g}; {fix}")
    return over


def limit_of(figure: float) -> float:
    """Return the limit for a count: the count, rounded up to ROUNDED digits."""
    if not figure:
        return 0.0
    unit = 10.0 ** (len(str(int(figure))) - ROUNDED)
    return float(-(-figure // unit) * unit)


def print_counts(found: Sequence[Counts], card: str, functions: int) -> None:
    """Print a table with a column for each case."""
    print(f"{'of a world-step':20s}" + "".join(f"{c.case:>12s}" for c in found))
    for name in found[0].figures:
        print(f"{name:20s}" + "".join(f"{c.figures[name]:12,.1f}" for c in found))
    for kind in sorted({kind for c in found for kind in c.shares}):
        print(f"{kind + ' %':20s}" + "".join(f"{c.shares.get(kind, 0.0):12.1f}" for c in found))
    times = [bounds(c, CARDS[card]) for c in found]
    for name in times[0]:
        print(f"{f'{card} {name} ns':20s}" + "".join(f"{time[name]:12,.1f}" for time in times))
    for counts in found if functions else ():
        print(f"\n{counts.case}: warp instructions and lines of global memory by function")
        for name, instructions, lines in counts.functions[:functions]:
            print(f"{instructions:12,.0f}{lines:12,.0f}  {name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Count the cases and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        print(*CASES, sep="\n")
        return 0
    if missing := why_not():
        print(missing, file=sys.stderr)
        return 0 if options.allow_missing else 1
    found = [count_case(name) for name in options.cases or CHECKED]
    print_counts(found, options.card, options.functions)
    content = json.loads(LIMITS.read_text(encoding="utf-8"))
    if options.limits:
        new = {c.case: {n: limit_of(INCREASE.get(n, 1.0) * c.figures[n]) for n in LIMITED} for c in found}
        content["counts"] = content.get("counts", {}) | new
        LIMITS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    version = ".".join(map(str, load_nvrtc(NVRTC_MAJOR).version))
    if content["nvrtc"] != version:
        print(f"no limits checked: {LIMITS.name} is of NVRTC {content['nvrtc']}, this is {version}")
        return 0
    over = over_limits(found, content.get("counts", {}))
    print(*over, sep="\n", end="\n" * bool(over))
    return 1 if over else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []], help="default: those with limits")
    parser.add_argument("--card", default="h200", choices=CARDS, help="of the bounds (default h200)")
    parser.add_argument("--limits", action="store_true", help=f"write the limits of the cases to {LIMITS.name}")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="also print the N largest functions")
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument("--allow-missing", action="store_true", help="exit code 0 without NVRTC or a compiler")
    return parser


if __name__ == "__main__":
    sys.exit(main())
