"""Run all checks on a GPU: compile, launch, compare bits with the CPU, benchmark, test.

The script ci/gpu_check.sh starts this program.

Every check step runs in a separate process with a time limit, so a hang or a crash does not affect the next steps. A
step writes its results to a JSON file, and the main process collects these files. The program imports only the standard
library, numpy and gpusim. The step "compile" starts with the kernels of the first launches and of the benchmarks. All
other kernels follow after the benchmarks.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "ci"))

from gpu_bench import step_bench  # noqa: E402
from gpu_cases import (  # noqa: E402
    LAUNCHES,
    PAIRS,
    WORLDS,
    Case,
    all_cases,
    as_fused,
    bench_builds,
    builds_of,
    first_difference,
    launch_index,
    name_of,
    simulation_of,
    why_missing,
)
from gpu_profile import step_profile  # noqa: E402
from gpu_report import markdown, write_report  # noqa: E402

STEPS = {
    "compile": 0.20, "launch": 0.08, "bench": 0.17, "profile": 0.07, "compile_rest": 0.15, "bits": 0.18,
    "sanitize": 0.08, "tests": 0.07,
}  # fmt: skip
"""Fraction of the time for each step."""
CASE_SECONDS = 3.0
"""Time limit of one case in the comparison of bits, s."""
LAUNCH_STEPS = 40
SANITIZED, SANITIZED_STEPS = 2, 2  # sanitized launches take 100 times as long
SANITIZERS = ("synccheck", "racecheck")
BEGIN = time.monotonic()  # start of this process
STOP_FRACTION = 0.9  # fraction of its time limit after which a step starts no more work
CHECK_EVERY = 50  # steps between two comparisons of bits
COMMAND_EVERY = 10


def step_compile(options: argparse.Namespace, everything: bool = False) -> dict[str, Any]:
    """Compile kernels for this GPU and for the CPU.

    The cache keeps the kernels for the next steps. The report has the compile time (s), registers and spills of each
    build.
    """
    import check_kernels

    report: dict[str, Any] = {"arch": "", "nvrtc": "", "variants": []}
    if options.backend == "cuda" or options.arch:
        from gpusim.backends.cuda.nvrtc import load_nvrtc

        report |= {"arch": options.arch or f"sm_{_compute_capability()}", "nvrtc": load_nvrtc().name}
    builds = _builds_to_compile(options, all_cases() if everything else list(LAUNCHES), report["arch"], not everything)
    report["builds"] = len(builds)
    jobs = min(len(builds), options.jobs or len(os.sched_getaffinity(0)))
    results: list[Any] = []
    pending = {number: cases for number, (_, _, cases) in enumerate(builds)}

    def reported(failed: str) -> dict[str, Any]:
        unready = sorted({name_of(case) for cases in pending.values() for case in cases})
        return report | {"unready": unready, "failed": failed}

    end = _end(options)
    # do not fork, because the driver may have threads
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        done = pool.imap_unordered(_compile, [(n, variant, arch) for n, (arch, variant, _) in enumerate(builds)])
        with contextlib.suppress(multiprocessing.TimeoutError):
            for _ in builds:
                number, result = done.next(max(0.0, end - time.monotonic()))
                results.append(result)
                report["variants"].append(_figures(result))
                if not result.error:
                    del pending[number]
                print(f"{result.variant} {result.arch}: {result.seconds:.1f} s {result.error}", flush=True)
                _leave(options, reported("not finished"))
    print(check_kernels.table(results))
    return reported("; ".join(f"{r.variant}: {r.error}" for r in results if r.error))


def _builds_to_compile(
    options: argparse.Namespace, cases: list[Case], arch: str, bench: bool
) -> list[tuple[str, Any, list[Case]]]:
    """Return tuples (architecture, kernel build, cases of the build) in the order of compilation."""
    from gpusim.backends import why_not

    requested = [(arch, *build) for build in builds_of(cases, "cuda")] if arch else []
    first = [build for build in requested if launch_index(build[2][0]) < len(LAUNCHES)]
    timed = [(arch, variant, []) for variant in bench_builds(options.quick)] if arch and bench else []
    native = []
    if not why_not("native"):
        # every case needs native's fused launch for comparison; a rehearsal also launches the case on native
        fused = [as_fused(case) for case in cases] + ([] if options.backend == "cuda" else cases)
        for variant, launching in builds_of(list(dict.fromkeys(fused)), "native"):
            launched = () if options.backend == "cuda" else launching
            native.append(("native", variant, [c for c in cases if as_fused(c) in launching or c in launched]))
    return [*first, *timed, *native, *requested[len(first) :]]


def _figures(result: Any) -> dict[str, Any]:
    return {
        "variant": result.variant,
        "arch": result.arch,
        "seconds": round(result.seconds, 2),
        "kernels": len(result.kernels),
        "registers": max((kernel.registers for kernel in result.kernels), default=0),
        "spills": sum(kernel.spills for kernel in result.kernels),
        "error": result.error,
    }


def _compile(job: tuple[int, Any, str]) -> tuple[int, Any]:
    """Compile one variant into the cache, in a separate process."""
    import check_kernels

    from gpusim.backends.cuda.compile import compile_cuda
    from gpusim.backends.native.backend import load_library
    from gpusim.errors import GpusimError

    number, variant, arch = job
    result = check_kernels.Result(variant.name, arch)
    begin = time.perf_counter()
    logs: list[str] = []
    try:
        if arch == "native":
            load_library(variant)
        else:
            compile_cuda(variant.main, variant.generated, variant.defines, arch, reported=logs.append)
        result.kernels = check_kernels.read_resources("".join(logs))
    except GpusimError as error:
        result.error = str(error)
    result.seconds = time.perf_counter() - begin
    return number, result


def _end(options: argparse.Namespace) -> float:
    """Return the time after which this step starts no more work."""
    return BEGIN + STOP_FRACTION * float(options.limit)


def _compute_capability() -> str:
    import cupy

    return str(cupy.cuda.Device(0).compute_capability)


def step_launch(options: argparse.Namespace) -> dict[str, Any]:
    """Run LAUNCHES on the GPU and compare their bits with the native backend."""
    cases = LAUNCHES[:SANITIZED] if options.few else LAUNCHES
    steps = SANITIZED_STEPS if options.few else LAUNCH_STEPS
    rows, failed, left, end, unready = [], [], [], _end(options), set() if options.few else _unready(options)
    for case in cases:
        if name_of(case) in unready or time.monotonic() > end:
            left.append(name_of(case))
            continue
        rows.append({"case": name_of(case), "result": _compare(case, options.backend, steps, every=steps // 2)})
        print(f"{rows[-1]['case']}: {rows[-1]['result']}", flush=True)
        failed += [rows[-1]["case"]] if rows[-1]["result"] != "same" else []
        _leave(options, {"cases": rows, "left_out": left, "failed": "not finished"})
    for cases in PAIRS[1:] if options.few else PAIRS:
        two = f"two live simulations: {cases[0][0]}, {cases[1][0]}"
        if set(left) & set(map(name_of, cases)):
            left.append(two)
            continue
        rows.append({"case": two, "result": _two_live(options.backend, steps, cases)})
        print(f"{two}: {rows[-1]['result']}", flush=True)
        failed += [two] if rows[-1]["result"] != "same" else []
    if options.backend == "cuda" and not options.few:
        linked = "linked parts"
        rows.append({"case": linked, "result": _linked(steps)})
        print(f"{linked}: {rows[-1]['result']}", flush=True)
        failed += [linked] if rows[-1]["result"] != "same" else []
    # always run the cases of LAUNCHES: the purpose of the check
    failed += [f"{name} not compiled in time" for name in left]
    return {"cases": rows, "left_out": left, "failed": ", ".join(failed)}


def _two_live(backend: str, steps: int, cases: Sequence[Case]) -> str:
    """Step two models with the same kernel build alternately, and compare their bits with the native backend."""
    try:
        pairs = [[simulation_of(case, b, WORLDS)[0] for case in cases] for b in ("native", backend)]
        for _ in range(2):
            for sims in pairs:
                for sim in sims:
                    sim.step(steps // 2)
        for case, first, second in zip(cases, *pairs, strict=True):
            if name := first_difference(first, second):
                return f"{case[0]}: {name} differs"
    except Exception as error:  # the report contains every error
        return f"{type(error).__name__}: {error}"[:300]
    return "same"


def _linked(steps: int) -> str:
    """Compare a model with contacts, with kernels that are linked from parts."""
    case = LAUNCHES[0]
    with mock.patch.dict(os.environ, {"GPUSIM_CUDA_BUILD": "quick"}):
        try:
            sims = [simulation_of(case, backend, WORLDS)[0] for backend in ("native", "cuda")]
            for sim in sims:
                sim.step(steps)
            if why := sims[1].backend.builds.unlinked:
                return f"not linked: {why}"
            if name := first_difference(*sims):
                return f"{case[0]}: {name} differs"
        except Exception as error:  # the report contains every error
            return f"{type(error).__name__}: {error}"[:300]
    return "same"


def step_sanitize(options: argparse.Namespace) -> dict[str, Any]:
    """Run NVIDIA's checks of barriers and shared memory (compute-sanitizer) on the first launches."""
    program = shutil.which("compute-sanitizer")
    if options.backend != "cuda" or program is None:
        why = "needs a GPU" if options.backend != "cuda" else "compute-sanitizer is not installed"
        return {"skipped": why}
    messages, failed = {}, []
    end = _end(options)
    for tool in SANITIZERS:
        arguments = [sys.executable, __file__, "--step", "launch", "--few", "--backend", "cuda"]
        arguments += ["--out", str(options.out / tool), "--limit", str(options.limit)]
        (options.out / tool).mkdir(exist_ok=True)
        try:
            remaining = max(1.0, end - time.monotonic())
            command = [program, "--tool", tool, "--error-exitcode", "9", *arguments]
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=remaining
            )
        except subprocess.TimeoutExpired:
            messages[tool] = "not finished in time"
            continue
        lines = [line for line in done.stdout.splitlines() if line.startswith("=========")]
        messages[tool] = lines[-1].strip("= ") if lines else f"exit code {done.returncode}"
        print(tool, done.stdout[-4000:], done.stderr[-2000:])
        failed += [f"{tool}: {messages[tool]}"] if done.returncode else []
        _leave(options, {"said": messages, "failed": "not finished"})
    shown = {"skipped": "not finished in time"} if all(v == "not finished in time" for v in messages.values()) else {}
    return {"said": messages, "failed": "; ".join(failed)} | shown


def step_tests(options: argparse.Namespace) -> dict[str, Any]:
    """Run the tests that need a GPU."""
    marker = "gpu" if options.backend == "cuda" else "not gpu and not nightly"
    # ignore the options of the project, because they need pytest-xdist
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "--import-mode=importlib", "-q", "-m", marker]
    command += ["-p", "no:cacheprovider", "tests/parity" if options.backend == "cuda" else "tests/parity/test_lanes.py"]
    missing = [name for name in ("pytest", "scipy") if importlib.util.find_spec(name) is None]
    if "pytest" in missing:
        return {"skipped": "pytest is not installed"}
    end, lines = _end(options), []
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(max(1.0, end - time.monotonic()), process.send_signal, [signal.SIGINT])
    timer.start()
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        lines += [line.strip("= \n")] if line.strip() else []
    code = process.wait()
    timer.cancel()
    summary = lines[-1] if lines else "pytest printed nothing"
    if code == 5:  # pytest collected nothing
        return {"summary": summary, "skipped": f"no test is marked {marker!r}"}
    if code == 2 and not any(word in summary for word in ("failed", "error")):  # interrupted by the timer
        return {"summary": f"{summary}; the other tests did not finish in time", "failed": ""}
    without = f", without {', '.join(missing)}" if missing else ""
    lacking = sum("ModuleNotFoundError" in line and line.startswith(("FAILED", "ERROR")) for line in lines)
    others = sum(line.startswith(("FAILED", "ERROR")) for line in lines) - lacking
    summary = f"{summary}{without}" + (f"; {lacking} for packages that are not installed" if lacking else "")
    return {"summary": summary, "failed": f"{others} failed: {summary}" if others or (code and not lacking) else ""}


def step_bits(options: argparse.Namespace) -> dict[str, Any]:
    """Compare the bits of every scene on the native and the cuda backend.

    Without a GPU, a rehearsal compares the fused launch with the staged launch.
    """
    from gpusim.backends import why_not

    missing = why_not("native")
    if missing:
        return {"skipped": f"nothing to compare with: {missing}"}
    cuda, end = options.backend == "cuda", _end(options)
    unready = _unready(options)
    rows, failed, left = [], [], []
    for case in all_cases():
        name = name_of(case)
        if not cuda and case[3] == "fused":
            continue  # native's fused launch is the reference
        if name in unready or time.monotonic() > end:
            left.append(name)
            continue
        # staged launches of small worlds are slow, and a few steps are enough
        steps = options.steps // 5 if cuda and case[3] == "staged" else options.steps
        result = _compare(case, options.backend, steps, limit=CASE_SECONDS)
        print(f"{name}: {result}", flush=True)
        rows.append({"case": name, "result": result})
        failed += [] if result.startswith(("same", "skipped")) else [name]
        _leave(options, {"steps": options.steps, "worlds": WORLDS, "cases": rows, "failed": "not finished"})
    if left:
        print(f"left out (not compiled, or no time left): {', '.join(left)}")
    report = {"steps": options.steps, "worlds": WORLDS, "cases": rows, "left_out": left}
    return report | {"failed": ", ".join(failed)}


def _unready(options: argparse.Namespace) -> set[str]:
    """Return the cases whose kernels were not compiled in time."""
    file = Path(options.out) / "gpu_check.json"
    results = json.loads(file.read_text()) if file.is_file() else {}
    compiled = results.get("compile_rest") or results.get("compile", {})
    return set(compiled.get("unready", ()))


def _compare(case: Case, backend: str, steps: int, every: int = CHECK_EVERY, limit: float = float("inf")) -> str:
    """Compare two backends step by step.

    Args:
        case: the case to run.
        backend: the backend to compare with native.
        steps: number of steps.
        every: number of steps between two comparisons.
        limit: seconds after which the comparison ends early.
    """
    try:
        pair = [simulation_of(as_fused(case), "native", WORLDS), simulation_of(case, backend, WORLDS)]
        begin = time.monotonic()
        for done in range(0, steps, COMMAND_EVERY):
            for sim, drive in pair:
                if drive is not None:
                    drive(sim, done * sim.config.dt)
                sim.step(COMMAND_EVERY)
            late = time.monotonic() - begin > limit
            last = done + COMMAND_EVERY >= steps
            if (done % every == 0 or last or late) and (name := first_difference(pair[0][0], pair[1][0])):
                return f"{name} differs after {done + COMMAND_EVERY} steps"
            if late and not last:
                return f"same in {done + COMMAND_EVERY} of {steps} steps"
    except ModuleNotFoundError as error:
        return f"skipped: {error}"
    except Exception as error:  # the report contains every error, and the next scene runs
        return f"{type(error).__name__}: {error}"[:300]
    return "same"


RUN: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "compile": step_compile,
    "compile_rest": partial(step_compile, everything=True),
    "launch": step_launch,
    "sanitize": step_sanitize,
    "bits": step_bits,
    "bench": lambda options: step_bench(options, _end(options), partial(_leave, options)),
    "profile": lambda options: step_profile(options, _end(options), partial(_leave, options)),
    "tests": step_tests,
}


def run_step(name: str, options: argparse.Namespace, limit: float) -> dict[str, Any]:
    """Run one check step in a separate process and return its results."""
    file = _step_file(options, name)
    file.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--step", name, "--backend", options.backend, "--out", str(options.out)]
    command += ["--steps", str(options.steps), "--limit", str(limit), *(["--quick"] if options.quick else [])]
    command += ["--jobs", str(options.jobs)]
    command += ["--arch", options.arch] if options.arch else []
    command += ["--workloads", options.workloads] if options.workloads else []
    print(f"\n== {name} (at most {limit:.0f} s)", flush=True)
    begin = time.perf_counter()
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(limit)
        failure = "" if code == 0 else f"exit code {code}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        failure = f"took longer than {limit:.0f} s"
    result: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    file.unlink(missing_ok=True)
    result["failed"] = "; ".join(filter(None, (failure, result.get("failed", ""))))
    result["seconds"] = round(time.perf_counter() - begin, 1)
    return result


def _step_file(options: argparse.Namespace, name: str) -> Path:
    return Path(options.out) / f".{name}.json"


def _leave(options: argparse.Namespace, result: dict[str, Any]) -> None:
    file = _step_file(options, options.step)
    scratch = file.with_suffix(".tmp")
    scratch.write_text(json.dumps(result))
    os.replace(scratch, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps, or one of them in this process. Return the exit code."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("GPUSIM_CUDA_BUILD", "full")  # specialized kernels, as in a long run
    options.out.mkdir(parents=True, exist_ok=True)
    if options.step:
        return _run_here(options)
    chosen = [name for name in options.only.split(",") if name] or list(STEPS)
    unknown = set(chosen) - set(STEPS)
    if unknown:
        print(f"unknown steps {sorted(unknown)}; known: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    missing = why_missing(options.backend)
    if missing:
        print(f"backend {options.backend!r} does not work here: {missing}", file=sys.stderr)
    results: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + options.seconds
    for number, name in enumerate(chosen):
        fraction = STEPS[name] / sum(STEPS[other] for other in chosen[number:])
        if missing and not (name.startswith("compile") and options.arch):
            results[name] = {"failed": f"backend {options.backend!r} does not work here: {missing}", "seconds": 0.0}
        else:
            results[name] = run_step(name, options, max(10.0, fraction * (end - time.monotonic())))
        write_report(options.out, results)
    print(f"\n{markdown(results)}")
    return 1 if any(result["failed"] for result in results.values()) else 0


def _run_here(options: argparse.Namespace) -> int:
    """Run one step in this process and store its result."""
    try:
        result = RUN[options.step](options)
    except Exception as error:  # the report contains every error
        traceback.print_exc()
        file = _step_file(options, options.step)
        result = json.loads(file.read_text()) if file.is_file() else {}
        result["failed"] = f"{type(error).__name__}: {error}"
    _leave(options, result)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="the checks that need a GPU")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "native"), help="native: a rehearsal")
    parser.add_argument("--only", default="", help=f"some of {','.join(STEPS)}")
    parser.add_argument("--quick", action="store_true", help="short benchmarks")
    parser.add_argument("--workloads", default="", help="benchmarks to run, with commas between them")
    parser.add_argument("--steps", type=int, default=1000, help="of the comparison of bits")
    parser.add_argument("--arch", default="", help="compile for this one, e.g. sm_90 (default: the GPU's)")
    parser.add_argument("--seconds", type=float, default=570.0, help="for all steps together")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "gpu_check_out")))
    parser.add_argument("--jobs", type=int, default=0, help="processes that compile (default: one a core)")
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, default=600.0, help=argparse.SUPPRESS)
    parser.add_argument("--few", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
