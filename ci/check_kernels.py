"""Compiles every variant of the kernels for every architecture with NVRTC 12, on a machine that needs no GPU.

    python ci/check_kernels.py [--arch sm_90]... [--variant NAME]... [--full] [--jobs 2] [--allow-missing]

The PTX of the last architecture is the one that users get, and may have instructions alone whose result IEEE 754
settles (``ci/ptx/forms.py``); that of the others is the same but for its name, so they are checked with those variants
alone that hold every source and every condition of a build. ptxas takes the PTX at its fastest; with ``--full`` as
users have it, several times as long, for what each kernel takes: registers, static shared memory, stack and spills
(``ci/gpu_check.sh`` tells it for the card that is there). Exit code 1 where a variant does not compile or has another
instruction, or where NVRTC 12 is missing without ``--allow-missing``. NVRTC 12, because 13 has given up sm_70.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # an uninstalled checkout must do

from ci.ptx.forms import check_forms  # noqa: E402
from ci.ptx.reader import read_module  # noqa: E402
from gpusim.backends.compile import CompileError  # noqa: E402
from gpusim.backends.compile_cuda import compile_cubin  # noqa: E402
from gpusim.backends.kernel_sources import reachable_sources  # noqa: E402
from gpusim.backends.nvrtc import NvrtcMissingError, load_nvrtc  # noqa: E402
from gpusim.errors import GpusimError  # noqa: E402

ARCHS = ("sm_70", "sm_75", "sm_80", "sm_90")
NVRTC_MAJOR = 12
MAX_JOBS = 2
FAULTS_SHOWN = 5
# What ptxas spends its time on is registers; the front end's PTX stays as it is. Known to ptxas from 12.8 on.
FAST, FAST_FROM = "--ptxas-options=--Ofast-compile=min", (12, 8)

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FIGURES = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared": re.compile(r"(\d+) bytes smem"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "spills": re.compile(r"(\d+) bytes spill (?:stores|loads)"),
}


@dataclass
class Kernel:
    """What one kernel takes: registers a thread; bytes of static shared memory a block; bytes of stack and of spill
    loads and stores, summed over the kernel and the functions that it calls."""

    name: str
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spills: int = 0


@dataclass
class Result:
    """One variant compiled for one architecture."""

    variant: str
    arch: str
    seconds: float = 0.0
    kernels: list[Kernel] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True)
class Job:
    """A variant and an architecture, in a form that another process can be given."""

    variant: str
    main: str
    generated: dict[str, str]
    defines: dict[str, str]
    arch: str
    forms: bool = False
    """Look at its instructions."""
    full: bool = False
    """ptxas as users have it."""


def read_resources(log: str) -> list[Kernel]:
    """The kernels in the log of a compilation with ``--ptxas-options=-v``."""
    kernels: list[Kernel] = []
    for line in log.splitlines():
        entry = _ENTRY.search(line)
        if entry:
            kernels.append(Kernel(entry[1]))
        elif kernels:
            for figure, pattern in _FIGURES.items():
                value = sum(int(number) for number in pattern.findall(line))
                setattr(kernels[-1], figure, getattr(kernels[-1], figure) + value)
    return kernels


def compile_job(job: Job) -> Result:
    """Compile one variant for one architecture; an error goes into the result."""
    result = Result(job.variant, job.arch)
    begin = time.perf_counter()
    try:
        sources = reachable_sources(job.main, job.generated)
        nvrtc = load_nvrtc(NVRTC_MAJOR)
        # lines of the sources in the PTX change no instruction
        extra = ["--ptxas-options=-v", *(["-lineinfo"] if job.forms else [])]
        extra += [FAST] if not job.full and nvrtc.version >= FAST_FROM else []
        compiled = compile_cubin(nvrtc, job.main, sources, job.defines, job.arch, extra=extra)
        result.kernels = read_resources(compiled.log)
        if not result.kernels:
            raise CompileError(f"{job.main} holds no kernel: mark one with GPUSIM_KERNEL")
        if job.forms:
            result.error = told_forms(compiled.ptx)
    except GpusimError as error:
        result.error = str(error)
    result.seconds = time.perf_counter() - begin
    return result


def told_forms(ptx: str) -> str:
    """The instructions of a PTX text that are not allowed, a line each; empty where there is none."""
    faults = check_forms(read_module(ptx))
    lines = [str(fault) for fault in faults[:FAULTS_SHOWN]]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"... and {len(faults) - FAULTS_SHOWN} more")
    return "\n  ".join(lines)


def compile_all(variants: Iterable[Any], archs: Sequence[str], jobs: int, full: bool = False) -> list[Result]:
    """Every variant for every architecture, in this order.

    Args:
        variants: objects with ``name, main, generated, defines``; those that are not ``everywhere`` are compiled for
            the last architecture only.
        archs: e.g. ``["sm_90"]``.
        jobs: processes, no more than MAX_JOBS; one compiles in this process.
        full: ptxas as users have it.
    """
    todo = [
        Job(v.name, v.main, dict(v.generated), dict(v.defines), arch, arch == archs[-1], full)
        for v in variants
        for arch in (archs if getattr(v, "everywhere", True) else archs[-1:])
    ]
    jobs = min(jobs, MAX_JOBS, len(todo))
    if jobs <= 1:
        return [compile_job(job) for job in todo]
    # not forked: the libraries that are loaded already may have threads
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(compile_job, todo))


def table(results: Sequence[Result]) -> str:
    """The results as aligned text, one line a kernel; the errors follow."""
    head = ("variant", "arch", "seconds", "kernel", "registers", "shared B", "stack B", "spills B")
    rows: list[tuple[str, ...]] = [head]
    for result in results:
        first = (result.variant, result.arch, f"{result.seconds:.2f}")
        if result.error:
            rows.append((*first, "FAILED", "", "", "", ""))
        for kernel in result.kernels:
            figures = (kernel.registers, kernel.shared, kernel.stack, kernel.spills)
            rows.append((*first, kernel.name, *(str(figure) for figure in figures)))
            first = ("", "", "")
    columns = zip(head, zip(*rows, strict=True), strict=True)
    aligned = [_aligned(column, left=name in ("variant", "arch", "kernel")) for name, column in columns]
    lines = ["  ".join(cells).rstrip() for cells in zip(*aligned, strict=True)]
    errors = [f"\n{result.variant} {result.arch}: {result.error}" for result in results if result.error]
    return "\n".join(lines + errors)


def _aligned(column: Sequence[str], left: bool) -> list[str]:
    width = max(map(len, column))
    return [text.ljust(width) if left else text.rjust(width) for text in column]


def main(arguments: Sequence[str] | None = None, variants: Iterable[Any] | None = None) -> int:
    """Run the check; the exit code. ``variants`` stands in for the project's own."""
    options = _parser().parse_args(arguments)
    try:
        nvrtc = load_nvrtc(NVRTC_MAJOR)
    except NvrtcMissingError as error:
        if options.allow_missing:
            print(f"skipped: {error}")
            return 0
        print(error, file=sys.stderr)
        return 1
    chosen = _chosen(variants, options.variant)
    if not chosen:
        print("there is no variant to compile", file=sys.stderr)
        return 1
    how = "" if options.full else ", ptxas at its fastest: registers and spills are those of users with --full alone"
    print(f"{nvrtc.name}, {len(chosen)} variants{how}", flush=True)
    results = compile_all(chosen, options.arch or ARCHS, options.jobs, options.full)
    print(table(results))
    failed = sum(bool(result.error) for result in results)
    print(f"\n{len(results) - failed} of {len(results)} compiled")
    return 1 if failed else 0


def diagram_variant() -> Any:
    """A diagram of 200 blocks of mixed kinds: each diagram is a build of its own."""
    from gpusim.backends.variants import program_variant
    from gpusim.bench.diagrams import cart, mixed_diagram
    from gpusim.simulation import Simulation

    sim = Simulation(cart(mixed_diagram(200)), backend="numpy")
    assert sim.programs is not None
    return program_variant(sim.programs.running[0].program)


def _chosen(variants: Iterable[Any] | None, names: Sequence[str]) -> list[Any]:
    if variants is None:
        from gpusim.backends.variants import kernel_variants

        variants = [*kernel_variants(), diagram_variant()]
    return [variant for variant in variants if not names or variant.name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile every variant of the kernels for every architecture")
    parser.add_argument("--arch", action="append", help=f"may be given again (default {' '.join(ARCHS)})")
    parser.add_argument("--variant", action="append", default=[], help="only this one; may be given again")
    parser.add_argument("--full", action="store_true", help="ptxas as users have it, for what kernels take")
    parser.add_argument("--jobs", type=int, default=MAX_JOBS, help=f"processes, at most {MAX_JOBS}")
    parser.add_argument("--allow-missing", action="store_true", help="exit code 0 where NVRTC 12 is not installed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
