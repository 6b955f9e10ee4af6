"""Run the kernels' PTX on the CPU for small models. Check all memory accesses, and compare with the native backend.

    python ci/ptx/check.py [--only robot] [--all] [--arch compute_100] [--nvrtc 13] [--seed 2] [--jobs 2] [--list]

The script reports races, reads of unwritten memory, accesses out of bounds and barriers that not all threads reach. A
report contains the source lines. Threads and blocks run in random order, and new memory contains 0xff. The user's cache
folder keeps the compiled files. The exit code is 1 if the script finds a fault, or if states are not bit-identical. The
script needs NVRTC, a C++ compiler, Linux and x86-64, but no GPU.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for a checkout that is not installed

from ci.ptx.device import installed, mark_unwritten  # noqa: E402
from ci.ptx.executor import ARCH, NOTES, NVRTC_MAJOR, Finding, executor, why_not  # noqa: E402
from ci.ptx.models import MODELS  # noqa: E402
from gpusim import Simulation, SolverConfig  # noqa: E402
from gpusim.actuators import PACKAGE_KINDS  # noqa: E402
from gpusim.backends.codegen.header import TILE_GAP  # noqa: E402
from gpusim.backends.codegen.variants import Variant, model_variant  # noqa: E402
from gpusim.backends.kinds import Kinds, kinds_of  # noqa: E402
from gpusim.backends.native.backend import general_sizes  # noqa: E402
from gpusim.compile_cache import CompileError  # noqa: E402
from gpusim.model.model import Model  # noqa: E402

WORLDS = 3
# Threads of a world with a separate block. The backend would use fewer threads for small models, but items of one
# thread cannot race with each other. Some fused cases have two worlds per block, each with a part of a warp.
THREADS, TILE = 128, 16
IN_TILES = ("robot", "hydraulic_lift", "grid", "rays")
# Model with a specialized build in fused launch, as for many worlds. Each such model takes half a minute more.
SIZED = ("hydraulic_lift",)
# Settings of the staged launch: minimum number of pairs for parallel coloring, threads per block, and number of
# processors. The settings give a world several blocks.
MIN_QUEUED, STAGED_THREADS, PROCESSORS = 8, 32, 3
# Tolerance for signals that the host computes.
TOLERANCE = 1e-12
KNOWN = {
    ("unwritten memory read", "locate_shape"): "unset boxes can only cause an additional search",
}
"""Harmless findings: kind, function and reason."""


@dataclass(frozen=True)
class Case:
    """A model and the kernel build that runs the model."""

    model: str
    launch: str
    solver: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.model} {self.launch} {self.solver} {self.dtype}"


# Both launches, both solvers, and two pairs of number types: float64 with a state in float32, and only float32.
BUILDS = (("fused", "direct", "float32"), ("staged", "colored", "float32"))
ALL_BUILDS = tuple(itertools.product(("fused", "staged"), ("direct", "colored"), ("float32", "float64")))


@dataclass
class Result:
    """Result of one case.

    Attributes:
        differing: names of arrays and signals that are not bit-identical to the native backend.
        missed: expected flags that the last step has not set.
        findings: findings of the executor's checks.
        contacts: number of contact points at the end, to prove that the case had contacts.
    """

    case: Case
    differing: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    contacts: int = 0
    seconds: float = 0.0

    def faults(self) -> list[Finding]:
        """Return the findings, without notes and known harmless findings."""
        known = KNOWN.keys()
        new = (f for f in self.findings if not any(f.kind == kind and name in f.position for kind, name in known))
        return [f for f in new if f.kind not in NOTES]

    def failed(self) -> bool:
        """Return whether the case has a finding."""
        return bool(self.differing or self.missed or self.faults())


def run_case(
    case: Case,
    seed: int = 1,
    fault: tuple[str, str, str] | None = None,
    arch: str = ARCH,
    nvrtc: int = NVRTC_MAJOR,
) -> Result:
    """Run a case and return its result.

    Args:
        case: the case.
        seed: random seed for the order of threads and blocks.
        fault: a deliberate fault in the kernels, see ``device.installed``.
        arch: virtual architecture of the PTX.
        nvrtc: major version of NVRTC.
    """
    result, begin = Result(case), time.process_time()
    with (
        installed(fault, _linked(case), arch, nvrtc),
        _shared_builds(),
        mock.patch("gpusim.compiler.contact_topology.MAX_SEQUENTIAL", MIN_QUEUED),
        mock.patch("gpusim.backends.cuda.backend._STAGED_THREADS", STAGED_THREADS),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", UserWarning)  # failed worlds and overflow of the pair buffer
        # With few sweeps and large steps, joints may open on both backends.
        warnings.filterwarnings("ignore", r"world \d+: joint .* more than", UserWarning)
        executor().configure(seed)
        cuda, native = (_simulation(case, backend) for backend in ("cuda", "native"))
        _prepare(cuda, TILE if case.model in IN_TILES else THREADS)
        _run(cuda, native, MODELS[case.model].steps, result)
        if case.solver == "direct":
            result.missed = [name for name in MODELS[case.model].sets_flags if not _flag(native, name)]
        if case.launch == "fused":
            # The fused build also contains the kernels of signals, writes and resets.
            _compare_signals(cuda, native, result)
            for sim in (cuda, native):
                _interfere(sim)
            _run(cuda, native, 2, result)
        result.contacts = len(native.contacts()) if native.model.shapes else 0
    result.findings = executor().findings()
    result.seconds = time.process_time() - begin
    return result


@contextmanager
def _shared_builds() -> Iterator[None]:
    """Share one build between all models with the same launch, solver and number type, to save compile time.

    Specialized builds are not shared.
    """

    def general(main: str, real: Any, stored: Any, sizes: dict[str, int], *more: Any) -> Variant:
        specialized = len(more) > 2 and more[2]
        return model_variant(main, real, stored, sizes if specialized else general_sizes(sizes), *more)

    def kinds(model: Model) -> Kinds:
        named = {kind.name: kind for kind in (*PACKAGE_KINDS, *kinds_of(model))}
        return tuple(named[name] for name in sorted(named))

    with (
        mock.patch("gpusim.backends.cuda.backend.model_variant", general),
        mock.patch("gpusim.backends.memory.kinds_of", kinds),
        mock.patch("gpusim.signals.observe.kinds_of", kinds),
    ):
        yield


def _linked(case: Case) -> bool:
    """Return whether the kernels of a case are linked from separately compiled parts."""
    return (case.launch == "fused") == (case.dtype == "float32")


def _simulation(case: Case, backend: str) -> Simulation:
    """Return a simulation with different gravity and commands in each world."""
    run = MODELS[case.model]
    config = SolverConfig(dt=run.dt, joint_solver=case.solver, max_pairs=run.max_pairs)
    # Native uses one thread, so its slab contains the flags of the last world.
    options: dict[str, Any] = {"launch": case.launch, "threads": 1}
    options["specialize"] = backend == "cuda" and case.model in SIZED and case.launch == "fused"
    sim = Simulation(run.build().finalize(), WORLDS, backend, case.dtype, config, **options)
    for world in range(WORLDS):
        sim.write("sim.gravity", (0.0, 0.1 * world, -9.81), worlds=world)
    driven = sim.runtime.drivers
    for k, command in enumerate(name for name in sim.control if name not in driven):
        sim.control[command] = np.array([0.1, 0.5, -0.3, 0.2, 0.8])[(np.arange(WORLDS) + k) % 5]
    return sim


def _flag(native: Simulation, name: str) -> bool:
    backend: Any = native.backend
    return bool(backend.layout.view(backend._slab, name, 1)[0])


def _prepare(sim: Simulation, lanes: int) -> None:
    """Set the number of threads per world, and mark the slabs (buffers of the worlds) as unwritten."""
    backend: Any = sim.backend
    backend._processors = PROCESSORS
    block = max(lanes, 2 * TILE)
    shared = block // lanes * (backend.layout.size + TILE_GAP) if backend._shape.shared else 0
    backend._shape = replace(backend._shape, lanes=lanes, block=block, shared=shared)
    slabs = backend.memory.arrays["slab"]
    mark_unwritten(slabs)
    if sim.model.shapes:
        offset = backend.layout.fields["search_owner"].offset
        for slab in slabs.reshape(-1, backend.layout.size):
            slab[offset : offset + 4] = 0
            executor().mark(slab[offset:].ctypes.data, 4, True, True)


def _run(cuda: Simulation, native: Simulation, steps: int, result: Result) -> None:
    """Run steps in three calls, and compare the states of both backends."""
    for n in (1, 1, steps - 2):
        for sim in (cuda, native):
            sim.step(n)
    states = [sim.state.variables() for sim in (cuda, native)]
    for name, expected in states[1].items():
        if np.ascontiguousarray(states[0][name]).tobytes() != np.ascontiguousarray(expected).tobytes():
            result.differing.append(name)
    if cuda.control.array.tobytes() != native.control.array.tobytes():
        result.differing.append("control")


def _compare_signals(cuda: Simulation, native: Simulation, result: Result) -> None:
    for signal, info in native.signals().items():
        got, expected = cuda.read(signal, numpy=True), native.read(signal)
        tolerance = 0.0 if info.device else TOLERANCE
        if not np.allclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True):
            result.differing.append(signal)


def _interfere(sim: Simulation) -> None:
    """Push a body in the first world, reset the second world, and stop the third world."""
    body = sim.model.bodies[0].label
    sim.write(f"body.{body}.linear_velocity", (0.1, 0.0, 0.2), worlds=2)
    sim.reset(np.arange(WORLDS) == 1)
    sim.override(worlds=[0])


def cases(every: bool = False) -> Iterator[Case]:
    """Yield models with their usual kernel builds, or with all builds if ``every`` is True.

    Consecutive cases have different builds, so that two processes can compile two builds.
    """
    for model, run in MODELS.items():
        for build in ALL_BUILDS:
            if every or build in (BUILDS if run.builds is None else run.builds):
                yield Case(model, *build)


def print_result(result: Result) -> None:
    """Print one line for a result, and one line for each of its faults."""
    bits = f"OTHER BITS in {', '.join(result.differing[:5])}" if result.differing else "bits equal"
    print(f"{result.case}: {bits}, {result.contacts} contacts, {result.seconds:.1f} s", flush=True)
    for flag in result.missed:
        print(f"  FAULT {flag} was not set, so a part of the schedule has not run", flush=True)
    for fault in result.faults():
        print(f"  FAULT {fault}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and return the exit code."""
    options = _parser().parse_args(arguments)
    chosen = [case for case in cases(options.all) if options.only in str(case)]
    if not chosen:
        print(f"no case contains {options.only!r}; --list shows the cases", file=sys.stderr)
        return 1
    if options.list:
        print(*chosen, sep="\n")
        return 0
    missing = why_not(options.nvrtc)
    if missing:
        if options.allow_missing:
            print(f"skipped: {missing}")
            return 0
        print(missing, file=sys.stderr)
        return 1
    results = []
    try:
        for result in _run_all(chosen, options):
            results.append(result)
            print_result(result)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    notes = sorted({f"{f.kind}, {f.position}" for r in results for f in r.findings if f not in r.faults()})
    print(f"\n{len(notes)} notes" + "".join(f"\n  {note}" for note in (notes if options.notes else [])))
    failed = sum(result.failed() for result in results)
    print(f"{len(results) - failed} of {len(results)} cases without a fault")
    return 1 if failed else 0


def _run_all(chosen: Sequence[Case], options: argparse.Namespace) -> Iterator[Result]:
    """Yield the results in the order of the cases."""
    run, jobs = partial(run_case, seed=options.seed, arch=options.arch, nvrtc=options.nvrtc), options.jobs
    if min(jobs, len(chosen)) <= 1:
        yield from map(run, chosen)
        return
    # do not fork, because libraries that are already loaded may have threads
    with ProcessPoolExecutor(min(jobs, len(chosen)), mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    parser.add_argument("--all", action="store_true", help="every launch, solver and number type: about seven minutes")
    parser.add_argument("--arch", default=ARCH, help=f"virtual architecture of the PTX (default {ARCH})")
    parser.add_argument("--nvrtc", type=int, default=NVRTC_MAJOR, help="major version of NVRTC: 12 or 13")
    parser.add_argument(
        "--seed", type=int, default=1, help="random seed for the order of threads and blocks; 0: ascending numbers"
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of processes; 1 runs the cases in this process")
    parser.add_argument("--notes", action="store_true", help="also report copies of unwritten local memory")
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument("--allow-missing", action="store_true", help="exit code 0 without NVRTC or a compiler")
    return parser


if __name__ == "__main__":
    sys.exit(main())
