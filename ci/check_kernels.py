"""Compile the variants of the kernels for every architecture with NVRTC 12. The script needs no GPU.

    python ci/check_kernels.py [--arch sm_90]... [--variant NAME]... [--all] [--full] [--limits]
                               [--jobs 2] [--allow-missing]

The PTX may contain only instructions whose results IEEE 754 defines (``ci/ptx/forms.py``).

Registers, stack, spills and memory accesses must be within ``ci/kernel_limits.json``. ``--limits`` rewrites this file
with the current values, rounded up.

The table has the resources of each kernel. The exit code is 1 if a variant does not compile, exceeds its limits, or has
a forbidden instruction. If NVRTC 12 is missing, the exit code is 1, or 0 with ``--allow-missing``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for a checkout that is not installed

from ci.ptx.forms import check_forms  # noqa: E402
from ci.ptx.reader import Module, read_module  # noqa: E402
from gpusim.backends.codegen.kernel_sources import gpu_sources  # noqa: E402
from gpusim.backends.codegen.variants import OUTER  # noqa: E402
from gpusim.backends.cuda.compile import compile_cubin, nvrtc_options  # noqa: E402
from gpusim.backends.cuda.nvrtc import Nvrtc, NvrtcMissingError, load_nvrtc  # noqa: E402
from gpusim.compile_cache import CompileError, cached, digest, found  # noqa: E402
from gpusim.errors import GpusimError, UnknownNameError, unknown_name  # noqa: E402

# First architecture for which NVRTC 12.9 optimizes differently. For a virtual architecture, NVRTC only makes PTX.
NEWER = "compute_100"
# The script compiles every build for the last architecture, NEXT_VARIANTS for NEWER, and the build EVERYWHERE for each
# other architecture. NVRTC 12 writes the same PTX for all architectures before sm_100. The allowed instructions exist
# since sm_70.
EVERYWHERE = "fused colored float64"
ARCHS = ("sm_70", "sm_75", "sm_80", "sm_100", "sm_120", NEWER, "sm_90")
NVRTC_MAJOR = 12
# NVRTC of gpusim[cuda13]. The PTX of NVRTC 13 is different, because the optimizer is different.
NEXT_MAJOR, NEXT_ARCH = 13, "compute_90"
# Together, the builds in NEXT_VARIANTS contain every phase, every shape, both solvers and both launches.
NEXT_VARIANTS = (
    "fused direct float32 in float64 with all contacts",
    "staged colored float32 with all contacts 32 side by side, part 1",
    "staged colored float32 with all contacts 32 side by side, part 2",
    "signals float64",
    "robotics",
    "rays",
)
# Builds that differ from another build only in the number type of the state. The check leaves them out without --all.
REPEATED = re.compile(
    r"(staged|signals) .* in float64.*|fused direct (float32 in float64( in shared memory)?|float64 with all contacts)"
)
MAX_JOBS = 2
FAULTS_SHOWN = 5
# Without the search for registers, ptxas is fast. The PTX is the same. ptxas accepts the option since version 12.8.
FAST, FAST_FROM = "--ptxas-options=--Ofast-compile=min", (12, 8)

# Folder of the cache, and the sources that affect a result.
FOLDER, CODE = "checked", [Path(__file__), *(ROOT / "ci" / "ptx" / name for name in ("reader.py", "forms.py"))]

# Linker of the CUDA toolkit, to check that the driver can link the parts.
LINKER = "nvlink"

LIMITS = Path(__file__).with_name("kernel_limits.json")
# The script rounds limits up to multiples, because ptxas is not deterministic and sources grow.
ROUNDED = {"registers": 8, "stack": 256, "spills": 256, "local": 100, "generic": 50}
INCREASE = {"spills": 1.01}  # two runs of ptxas on the same code may differ by 50 bytes
MAX_REGISTERS = 255

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_GENERIC = re.compile(r"(?:ld|st)\.(?!global|local|shared|param)")
_FIGURES = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared": re.compile(r"(\d+) bytes smem"),
    "stack": re.compile(r"(\d+) bytes cumulative stack size"),
    "spills": re.compile(r"(\d+) bytes spill (?:stores|loads)"),
}


@dataclass
class Kernel:
    """Resources of one kernel.

    Attributes:
        registers: number of registers per thread.
        shared: bytes of static shared memory per block.
        stack: bytes of stack.
        spills: bytes of spill loads and stores in the kernel and in the functions that it calls.
        local, generic: number of instructions that access local memory, and number of instructions with generic
            addresses, in the kernel and its functions. 0 without a check of the PTX.
    """

    name: str
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spills: int = 0
    local: int = 0
    generic: int = 0


@dataclass
class Result:
    """One variant compiled for one architecture.

    ``accesses`` contains the sums of ``local`` and ``generic`` (see :class:`Kernel`) over all functions of the variant.
    """

    variant: str
    arch: str
    seconds: float = 0.0
    kernels: list[Kernel] = field(default_factory=list)
    accesses: dict[str, int] = field(default_factory=dict)
    spills: int = 0
    """Spills in all functions of the variant (bytes), including registers that a function saves for its caller."""
    error: str = ""
    cubin: bytes = b""
    """Cubin of a variant with linked parts, or of a part."""

    def figures(self) -> dict[str, int]:
        """Return the resources of the variant, as maxima over its kernels or as sums over its functions."""
        maxima = {name: max((getattr(k, name) for k in self.kernels), default=0) for name in ("registers", "stack")}
        return maxima | {"spills": self.spills} | self.accesses


@dataclass(frozen=True)
class Job:
    """A variant and an architecture, as picklable data for another process."""

    variant: str
    main: str
    generated: dict[str, str]
    defines: dict[str, str]
    arch: str
    forms: bool = False
    """Whether to check the instructions of the PTX."""
    full: bool = False
    """Whether ptxas optimizes fully, as for users."""
    options: tuple[str, ...] = ()
    """Options of NVRTC."""
    outer: tuple[str, ...] = ()
    """Functions that other linked parts contain."""
    nvrtc: int = NVRTC_MAJOR


def read_resources(log: str) -> list[Kernel]:
    """Return the kernels in the log of a compilation with ``--ptxas-options=-v``."""
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
    """Compile a variant for an architecture, or read the result from the cache."""
    result, begin = Result(job.variant, job.arch), time.perf_counter()
    try:
        sources, nvrtc = gpu_sources(job.main, job.generated), load_nvrtc(job.nvrtc)
        inputs = [nvrtc.name, *nvrtc_options(job.defines, job.arch), repr(replace(job, generated={}))]
        inputs += [*itertools.chain(*sorted(sources.items())), *(path.read_text(encoding="utf-8") for path in CODE)]
        name = f"{FOLDER}/{digest(inputs)}.json"
        if (kept := found(name)) is not None:
            content = json.loads(kept.read_text(encoding="utf-8"))
            kernels = [Kernel(**kernel) for kernel in content["kernels"]]
            return Result(**content | {"kernels": kernels, "cubin": bytes.fromhex(content["cubin"])})
        _compile(job, sources, nvrtc, result)
        result.seconds = time.perf_counter() - begin
        if not result.error:
            cached(name, lambda _: json.dumps(asdict(result) | {"cubin": result.cubin.hex()}).encode())
    except GpusimError as error:
        result.error = str(error)
    return result


def _compile(job: Job, sources: dict[str, str], nvrtc: Nvrtc, result: Result) -> None:
    # adds source lines to the PTX, and does not change instructions
    extra = ["--ptxas-options=-v", *(["-lineinfo"] if job.forms else [])]
    extra += [*job.options, *([FAST] if not job.full and nvrtc.version >= FAST_FROM else [])]
    if job.arch.startswith("compute_"):
        options = [*nvrtc_options(job.defines, job.arch), *job.options, "-lineinfo"]
        result.error = reported_forms(read_module(_ptx(nvrtc, job.main, sources, options)), job.outer)
        return
    compiled = compile_cubin(nvrtc, job.main, sources, job.defines, job.arch, extra=extra)
    result.kernels = read_resources(compiled.log)
    result.spills = sum(map(int, _FIGURES["spills"].findall(compiled.log)))
    result.cubin = compiled.cubin or b"" if job.options else b""
    if not result.kernels and not job.options:
        raise CompileError(f"{job.main} contains no kernel: mark one with GPUSIM_KERNEL")
    if job.forms:
        module = read_module(compiled.ptx)
        result.error = reported_forms(module, job.outer)
        count_accesses(module, result)


def _ptx(nvrtc: Nvrtc, main: str, sources: dict[str, str], options: list[str]) -> str:
    """Return the PTX for a virtual architecture."""
    compiled = nvrtc.compile(main, sources, options)
    if compiled.cubin is None:
        raise CompileError(f"{main} by {nvrtc.name}: {compiled.log}")
    return compiled.ptx


def count_accesses(module: Module, result: Result) -> None:
    """Count accesses to local memory and accesses with generic addresses, for each kernel and for all functions."""
    counts = {
        name: {
            "local": sum(s.name.startswith(("ld.local", "st.local")) for s in function.instructions()),
            "generic": sum(bool(_GENERIC.match(s.name)) for s in function.instructions()),
        }
        for name, function in module.functions.items()
    }
    result.accesses = {figure: sum(c[figure] for c in counts.values()) for figure in ("local", "generic")}
    for kernel in result.kernels:
        for figure in result.accesses:
            setattr(kernel, figure, sum(counts[name][figure] for name in module.reached(kernel.name)))


def reported_forms(module: Module, outer: Sequence[str] = ()) -> str:
    """List the forbidden instructions of a PTX module, one per line."""
    faults = check_forms(module, outer)
    lines = [str(fault) for fault in faults[:FAULTS_SHOWN]]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"... and {len(faults) - FAULTS_SHOWN} more")
    return "\n  ".join(lines)


def compile_all(variants: Iterable[Any], archs: Sequence[str], jobs: int, full: bool = False) -> list[Result]:
    """Compile every variant for every architecture.

    Args:
        variants: objects with ``name, main, generated, defines``.
        archs: e.g. ``["sm_90"]``.
        jobs: number of processes, at most MAX_JOBS. With 1, compile in this process.
        full: run ptxas with the optimization level of a full build.
    """
    variants = list(variants)
    everywhere = next((v for v in variants if v.name == EVERYWHERE), variants[0])
    todo = [
        Job(v.name, v.main, dict(v.generated), dict(v.defines), arch, arch == archs[-1], full, *_linking(v))
        for v in variants
        for arch in archs
        if arch == archs[-1] or v is everywhere or (arch == NEWER and v.name in NEXT_VARIANTS)
    ]
    return _run(todo, jobs)


def check_next(variants: Iterable[Any], jobs: int) -> list[Result]:
    """Check the PTX that the next version of NVRTC makes from the variants.

    Raises:
        NvrtcMissingError: this NVRTC is not installed.
    """
    load_nvrtc(NEXT_MAJOR)
    return _run([
        Job(v.name, v.main, dict(v.generated), dict(v.defines), NEXT_ARCH, True, False, *_linking(v), nvrtc=NEXT_MAJOR)
        for v in variants
    ], jobs)  # fmt: skip


def _run(todo: Sequence[Job], jobs: int) -> list[Result]:
    jobs = min(jobs, MAX_JOBS, len(todo))
    if jobs <= 1:
        return [compile_job(job) for job in todo]
    # do not fork, because libraries that are already loaded may have threads
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(compile_job, todo))


def _linking(variant: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the NVRTC options of a part, and its linked functions."""
    return tuple(getattr(variant, "options", ())), OUTER if getattr(variant, "linked", ()) else ()


def link_all(results: Sequence[Result], variants: Iterable[Any], arch: str) -> list[str]:
    """Link variants that consist of several parts, for one architecture. Return their resources as text.

    Raises:
        CompileError: the parts do not fit together.
    """
    tool = shutil.which(LINKER)
    if tool is None:
        return [f"parts are not linked: {LINKER} is not installed"]
    cubins, reported = {(r.variant, r.arch): r.cubin for r in results}, []
    for variant in variants:
        names = [variant.name, *(part.name for part in getattr(variant, "linked", ()))]
        parts = [cubins.get((name, arch), b"") for name in names]
        if len(parts) > 1 and all(parts):
            reported.append(f"{variant.name} {arch}: {_link(tool, parts, arch)}")
    return reported


def _link(tool: str, parts: Sequence[bytes], arch: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"part{number}.cubin" for number in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part)
        command = [tool, f"-arch={arch}", "-v", *map(str, files), "-o", str(Path(folder) / "whole.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode:
        raise CompileError(f"{LINKER}: {output.strip()[-300:]}")
    figures = re.findall(r"used (\d+) registers.*?(\d+) stack", output)
    registers, stack = (max(map(int, column)) for column in zip(*figures, strict=True))
    return f"linked, {len(figures)} kernels with at most {registers} registers and {stack} B of stack"


def table(results: Sequence[Result]) -> str:
    """Format the results as aligned text, one line per kernel, followed by the errors."""
    head = ("variant", "arch", "seconds", "kernel", "registers", "shared B", "stack B", "spills B", "local", "generic")
    rows: list[tuple[str, ...]] = [head]
    for result in results:
        first = (result.variant, result.arch, f"{result.seconds:.2f}")
        if result.error:
            rows.append((*first, "FAILED", *[""] * 6))
        for kernel in result.kernels:
            figures = (kernel.registers, kernel.shared, kernel.stack, kernel.spills, kernel.local, kernel.generic)
            rows.append((*first, kernel.name, *(str(figure) for figure in figures)))
            first = ("", "", "")
    columns = zip(head, zip(*rows, strict=True), strict=True)
    aligned = [_aligned(column, left=name in ("variant", "arch", "kernel")) for name, column in columns]
    lines = ["  ".join(cells).rstrip() for cells in zip(*aligned, strict=True)]
    errors = [f"\n{result.variant} {result.arch}: {result.error}" for result in results if result.error]
    return "\n".join(lines + errors)


def limits_of(result: Result) -> dict[str, int]:
    """Return the limits for a variant: its values plus a margin."""
    figures = {name: int(value * INCREASE.get(name, 1.0)) for name, value in result.figures().items()}
    limits = {name: -(-value // ROUNDED[name]) * ROUNDED[name] for name, value in figures.items()}
    return limits | {"registers": min(limits["registers"], MAX_REGISTERS)}


def over_limits(results: Sequence[Result], limits: dict[str, dict[str, int]]) -> list[str]:
    """List the variants that exceed their limits or have no limits."""
    over = []
    for result in results:
        known = limits.get(result.variant)
        if known is None:
            over.append(f"{result.variant}: has no limits in {LIMITS.name}; run ci/check_kernels.py --limits")
            continue
        more = [f"{name} {value} > {known[name]}" for name, value in result.figures().items() if value > known[name]]
        if more:
            over.append(f"{result.variant}: {', '.join(more)}; fix it, or accept it with --limits")
    return over


def _reported_limits(results: Sequence[Result], nvrtc: tuple[int, int], write: bool) -> list[str]:
    """Compare the results with the limits file, or write the file."""
    content = json.loads(LIMITS.read_text(encoding="utf-8"))
    version = ".".join(map(str, nvrtc))
    if write:
        content["variants"] |= {r.variant: limits_of(r) for r in results}
        content["nvrtc"] = version
        LIMITS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if content["nvrtc"] != version:
        print(f"limits not checked: {LIMITS.name} is of NVRTC {content['nvrtc']}, this is {version}")
        return []
    return over_limits(results, content["variants"])


def _aligned(column: Sequence[str], left: bool) -> list[str]:
    width = max(map(len, column))
    return [text.ljust(width) if left else text.rjust(width) for text in column]


def main(arguments: Sequence[str] | None = None, variants: Iterable[Any] | None = None) -> int:
    """Run the check and return the exit code.

    ``variants``: variants to check, by default all variants of the project.
    """
    options = _parser().parse_args(arguments)
    try:
        nvrtc = load_nvrtc(NVRTC_MAJOR)
    except NvrtcMissingError as error:
        if options.allow_missing:
            print(f"skipped: {error}")
            return 0
        print(error, file=sys.stderr)
        return 1
    try:
        chosen = _chosen(variants, options.variant, options.all or options.limits)
    except UnknownNameError as error:
        print(error, file=sys.stderr)
        return 1
    if not chosen:
        print("there is no variant to compile", file=sys.stderr)
        return 1
    how = "" if options.full else ", fast ptxas (--full gives the registers and spills of users)"
    print(f"{nvrtc.name}, {len(chosen)} variants{how}", flush=True)
    results = compile_all(chosen, options.arch or ARCHS, options.jobs, options.full)
    print(table(results))
    failed = sum(bool(result.error) for result in results)
    print(f"\n{len(results) - failed} of {len(results)} compiled")
    if variants is None and not options.arch:
        failed += _reported_next(chosen, options)
    try:
        # linkers and NVRTC of other versions may not know old architectures
        print("\n".join(link_all(results, chosen, (options.arch or ARCHS)[-1])))
    except CompileError as error:
        failed += 1
        print(error)
    over = []
    if variants is None and not options.full:
        looked_at = [result for result in results if result.accesses and not result.error]
        over = _reported_limits(looked_at, nvrtc.version, options.limits)
        print("\n".join(over) if over else f"{len(looked_at)} variants checked for {LIMITS.name}")
    return 1 if failed or over else 0


def _reported_next(chosen: Sequence[Any], options: argparse.Namespace) -> int:
    """Check the PTX of the next NVRTC. Return the number of variants with errors."""
    try:
        results = check_next([v for v in chosen if v.name in NEXT_VARIANTS], options.jobs)
    except NvrtcMissingError as error:
        print(f"skipped: {error}" if options.allow_missing else error)
        return 0 if options.allow_missing else 1
    wrong = [result for result in results if result.error]
    print(f"{load_nvrtc(NEXT_MAJOR).name}, PTX of {len(results)} variants for {NEXT_ARCH}: {len(wrong)} with faults")
    print(*(f"{result.variant}: {result.error}" for result in wrong), sep="\n")
    return len(wrong)


def diagram_variant() -> Any:
    """Return the build of a diagram with 200 blocks of different types."""
    from ci.bench.mixed_diagram import cart, mixed_diagram
    from gpusim.backends.codegen.variants import program_variant
    from gpusim.simulation import Simulation

    sim = Simulation(cart(mixed_diagram(200)), backend="numpy")
    return program_variant(sim.runtime.running[0].program)


def sized_variants() -> Iterator[Any]:
    """Yield builds for many worlds, with the sizes of a boom and of a humanoid as constants."""
    from gpusim.backends.codegen.variants import model_variant
    from gpusim.bench.humanoid import humanoid
    from gpusim.bench.workloads import BOOM, MODELS
    from gpusim.simulation import Simulation

    for name, build, shared in (("boom", MODELS[BOOM], True), ("humanoid", humanoid, False)):
        with mock.patch("gpusim.backends.native.backend.load_library"):  # the code needs only the sizes
            backend: Any = Simulation(build().finalize(), backend="native", launch="fused").backend
        known = backend.real, backend.stored, backend.sizes, backend.direct, backend.kinds
        variant = model_variant("fused.cu", *known, specialize=True, shared=shared)
        yield replace(variant, name=f"{variant.name} {name}")


def _chosen(variants: Iterable[Any] | None, names: Sequence[str], every: bool = False) -> list[Any]:
    if variants is None:
        from gpusim.backends.codegen.variants import kernel_variants

        variants = [*kernel_variants(), diagram_variant(), *sized_variants()]
    known = {variant.name: variant for variant in variants}
    for name in names:
        if name not in known:
            raise unknown_name("variant", name, known)
    return [v for name, v in known.items() if name in names or not names and (every or not REPEATED.fullmatch(name))]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile every variant of the kernels for every architecture")
    parser.add_argument("--arch", action="append", help=f"you can repeat this option (default {' '.join(ARCHS)})")
    parser.add_argument("--variant", action="append", default=[], help="only this variant; you can repeat this option")
    parser.add_argument("--all", action="store_true", help="also variants that repeat the code of another variant")
    parser.add_argument(
        "--full", action="store_true", help="full optimization in ptxas, for the resources of users' kernels"
    )
    parser.add_argument("--limits", action="store_true", help=f"rewrite {LIMITS.name} for the chosen variants")
    parser.add_argument("--jobs", type=int, default=MAX_JOBS, help=f"processes, at most {MAX_JOBS}")
    parser.add_argument("--allow-missing", action="store_true", help="exit code 0 if NVRTC 12 is not installed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
