"""The checks that need a GPU: compile, test, compare bits with the CPU, benchmark. Started by ci/gpu_check.sh.

Every step runs in a process of its own with a time limit, so that one that fails, hangs or kills its process leaves
the others alone. A step prints what it does and leaves its figures in a JSON file; this file gathers them. It imports
nothing but the standard library, numpy and gpusim (which needs numba).
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "ci"))

STEPS = {"compile": 0.2, "tests": 0.3, "bits": 0.25, "bench": 0.25}
"""Steps and the share of the time that each may take; what one leaves over, the next ones may use."""
WORLDS = 3
CHECK_EVERY = 50  # steps between two looks at the bits
COMMAND_EVERY = 10


def step_compile(options: argparse.Namespace) -> dict[str, Any]:
    """Compile every variant for this GPU; seconds, registers and spills. Leaves them in the cache for later steps."""
    import check_kernels

    from gpusim.backends.nvrtc import load_nvrtc
    from gpusim.backends.variants import kernel_variants

    if options.backend != "cuda" and not options.arch:
        return {"skipped": "no GPU whose architecture could be asked for; give --arch"}
    arch = options.arch or f"sm_{_compute_capability()}"
    variants = list(kernel_variants())
    jobs = min(len(variants), len(os.sched_getaffinity(0)))
    report: dict[str, Any] = {"arch": arch, "nvrtc": load_nvrtc().name, "variants": []}
    results = []
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        work = [pool.submit(_compile, variant, arch, options.backend == "cuda") for variant in variants]
        for done in as_completed(work):
            results.append(done.result())
            report["variants"].append(_figures(results[-1]))
            _leave(options, report | {"failed": "not finished"})
    print(check_kernels.table(results))
    failed = [f"{r.variant}: {r.error or 'no kernel'}" for r in results if r.error or not r.kernels]
    return report | {"failed": "; ".join(failed)}


def _figures(result: Any) -> dict[str, Any]:
    return {
        "variant": result.variant,
        "seconds": round(result.seconds, 2),
        "kernels": len(result.kernels),
        "registers": max((kernel.registers for kernel in result.kernels), default=0),
        "spills": sum(kernel.spills for kernel in result.kernels),
        "error": result.error,
    }


def _compile(variant: Any, arch: str, keep: bool) -> Any:
    """One variant, in a process of its own: for its figures, and with ``keep`` once more into the cache."""
    import check_kernels

    from gpusim.backends.compile_cuda import compile_cubin, compile_cuda
    from gpusim.backends.kernel_sources import reachable_sources
    from gpusim.backends.nvrtc import load_nvrtc
    from gpusim.errors import GpusimError

    result = check_kernels.Result(variant.name, arch)
    begin = time.perf_counter()
    try:
        sources = reachable_sources(variant.main, variant.generated)
        extra = ["--ptxas-options=-v"]
        log = compile_cubin(load_nvrtc(), variant.main, sources, variant.defines, arch, extra=extra).log
        result.seconds = time.perf_counter() - begin
        result.kernels = check_kernels.read_resources(log)
        if keep:
            compile_cuda(variant.main, variant.generated, variant.defines, arch)
    except GpusimError as error:
        result.error = str(error)
    return result


def _compute_capability() -> str:
    import cupy

    return str(cupy.cuda.Device(0).compute_capability)


def step_tests(options: argparse.Namespace) -> dict[str, Any]:
    """The tests that need a GPU (rehearsal: those of the same folder that don't)."""
    marker = "gpu" if options.backend == "cuda" else "not gpu and not slow"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", marker, "-p", "no:cacheprovider", "tests/parity"]
    if options.backend == "cuda":
        command.remove("-x")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    print(done.stdout[-8000:], done.stderr[-2000:])
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    summary = lines[-1].strip("= ") if lines else "pytest said nothing"
    if done.returncode == 5:  # pytest collected nothing
        return {"summary": summary, "skipped": f"no test is marked {marker!r}"}
    return {"summary": summary, "failed": "" if done.returncode == 0 else f"pytest exit code {done.returncode}"}


def step_bits(options: argparse.Namespace) -> dict[str, Any]:
    """Every scene on two backends, bit for bit: native against cuda (rehearsal: fused against staged)."""
    from gpusim.backends import why_not
    from gpusim.scene import list_scenes

    missing = why_not("native")
    if missing:
        return {"skipped": f"nothing to compare with: {missing}"}
    # staged launches of small worlds are slow: fewer steps show as much
    launches = [("staged", options.steps)] if options.backend == "native" else [("fused", options.steps)]
    launches += [("staged", options.steps // 5)] if options.backend == "cuda" else []
    rows, failed = [], []
    for scene, dtype, solver, (launch, steps) in itertools.product(
        list_scenes(), ("float32", "float64"), ("direct", "colored"), launches
    ):
        name = f"{scene} {dtype} {solver} {launch}"
        result = _compare(scene, dtype, solver, options.backend, launch, steps)
        print(f"{name}: {result}", flush=True)
        rows.append({"scene": scene, "dtype": dtype, "solver": solver, "launch": launch, "result": result})
        failed += [name] if result != "same" else []
        _leave(options, {"steps": options.steps, "worlds": WORLDS, "cases": rows, "failed": "not finished"})
    return {"steps": options.steps, "worlds": WORLDS, "cases": rows, "failed": ", ".join(failed)}


def _compare(scene: str, dtype: str, solver: str, backend: str, launch: str, steps: int) -> str:
    """ "same", or what differs and when, or the error that ended the run."""
    try:
        pair = [
            _simulation(scene, dtype, solver, "native", "fused"),
            _simulation(scene, dtype, solver, backend, launch),
        ]
        for done in range(0, steps, COMMAND_EVERY):
            for sim, drive in pair:
                if drive is not None:
                    drive(sim, done * sim.config.dt)
                sim.step(COMMAND_EVERY)
            last = done + COMMAND_EVERY >= steps
            if (done % CHECK_EVERY == 0 or last) and (name := _difference(pair[0][0], pair[1][0])):
                return f"{name} differs after {done + COMMAND_EVERY} steps"
    except Exception as error:  # whatever it is, it belongs into the report, and the next scene runs
        return f"{type(error).__name__}: {error}"[:300]
    return "same"


def _simulation(scene: str, dtype: str, solver: str, backend: str, launch: str) -> tuple[Any, Any]:
    """A simulation of a scene and what drives its commands."""
    import gpusim
    from gpusim.scene import load_scene

    loaded = load_scene(scene)
    config = dataclasses.replace(loaded.config, joint_solver=solver)
    model = loaded.builder.finalize()
    return gpusim.Simulation(model, WORLDS, backend, dtype, config, launch=launch, threads=1), loaded.schedule


def _difference(first: Any, second: Any) -> str:
    """The first array of the state whose bits differ; empty if none do."""
    a, b = _arrays(first), _arrays(second)
    for name in a:
        if a[name].tobytes() != b[name].tobytes():
            return name
    return ""


def _arrays(sim: Any) -> dict[str, Any]:
    import numpy as np

    state = sim.state
    arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
    for group in state.groups:
        for name, array in group.state.items():
            arrays[f"{group.type.name}.{name}"] = np.ascontiguousarray(array)
    return arrays


def step_bench(options: argparse.Namespace) -> dict[str, Any]:
    """The benchmarks, and peers where they are installed."""
    from gpusim.bench import machine, report
    from gpusim.bench.peers import run_peers
    from gpusim.bench.runner import Options, run_cases
    from gpusim.bench.workloads import chosen_cases

    chosen = Options(backend=options.backend, quick=options.quick)
    # a case a time, and what is there written after each: a limit that strikes must not take all of it
    content = report.as_json(machine.describe(), [])
    records = []
    for name in _workloads(options):
        records += run_cases(chosen_cases([name], options.quick), chosen, lambda line: print(" ", line, flush=True))
        content = report.as_json(content["machine"], records)
        _leave(options, {"bench": content, "table": _bench_table(records), "failed": "not finished"})
    peers = run_peers(chosen, lambda line: print(" ", line, flush=True), _workloads(options))
    report.show(records, peers)
    content = report.as_json(content["machine"], records, peers)
    peer_table = report.markdown_table(report.PEER_HEAD, [report.peer_cells(peer) for peer in peers])
    if piles := report.pile_rows(records, peers):
        shares = [f"- {line}" for line in report.share_lines(records, peers)]
        peer_table = "\n\n".join(
            [report.markdown_table(report.PILE_HEAD, piles), report.PILE_LEGEND, "\n".join(shares), peer_table]
        )
    failed = [f"{r.workload} {r.case} {r.worlds}: {r.error}" for r in records if r.error]
    return {"bench": content, "table": _bench_table(records) + "\n\n" + peer_table, "failed": "; ".join(failed)}


def _workloads(options: argparse.Namespace) -> list[str]:
    """The workloads to run: those asked for, or what fits into the time."""
    if options.workloads:
        return str(options.workloads).split(",")
    piles = ["pile_1000", "pile_8000", "pile_100000"] if options.backend == "cuda" else []
    return ["many_worlds", "latency", "joint_grid", "rows", *piles]


def _bench_table(records: Sequence[Any]) -> str:
    from gpusim.bench import report

    lines = [report.markdown_table(report.HEAD, [report.cells(record) for record in records])]
    return "\n\n".join([*lines, *report.notes(records)])


RUN: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "compile": step_compile,
    "tests": step_tests,
    "bits": step_bits,
    "bench": step_bench,
}


def run_step(name: str, options: argparse.Namespace, limit: float) -> dict[str, Any]:
    """Run one step in a process of its own; its figures, with ``failed`` (why, or empty) and ``seconds``."""
    file = _step_file(options, name)
    file.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--step", name, "--backend", options.backend, "--out", str(options.out)]
    command += ["--steps", str(options.steps), *(["--quick"] if options.quick else [])]
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


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """The short report."""
    lines = ["# GPU check", "", "| step | result | seconds | what |", "| --- | --- | ---: | --- |"]
    for name, result in results.items():
        verdict = "failed" if result["failed"] else "skipped" if result.get("skipped") else "passed"
        what = (result["failed"] or result.get("skipped") or _what(name, result)).replace("|", "/").replace("\n", " ")
        lines.append(f"| {name} | {verdict} | {result['seconds']} | {what[:400]} |")
    if "variants" in results.get("compile", {}):
        lines += [
            "",
            "| variant | seconds | kernels | most registers | spills B |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for v in results["compile"]["variants"]:
            lines.append(f"| {v['variant']} | {v['seconds']} | {v['kernels']} | {v['registers']} | {v['spills']} |")
    bench = results.get("bench", {})
    if "table" in bench:
        facts = bench["bench"]["machine"]
        lines += ["", ", ".join(f"{key} {value}" for key, value in facts.items() if value), "", bench["table"]]
    return "\n".join(lines) + "\n"


def _what(name: str, result: dict[str, Any]) -> str:
    if name == "compile":
        return f"{len(result['variants'])} variants for {result['arch']}, {result['nvrtc'].partition(' (')[0]}"
    if name == "tests":
        return str(result["summary"])
    if name == "bits":
        return f"{len(result['cases'])} runs of {result['steps']} steps in {result['worlds']} worlds"
    return f"{len(result['bench']['results'])} cases, {len(result['bench']['peers'])} peers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps, or one of them in this process; the exit code."""
    options = _parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.step:
        return _run_here(options)
    chosen = options.only.split(",") if options.only else list(STEPS)
    unknown = set(chosen) - set(STEPS)
    if unknown:
        print(f"unknown steps {sorted(unknown)}; known: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    missing = _missing(options.backend)
    if missing:
        print(f"backend {options.backend!r} does not work here: {missing}", file=sys.stderr)
    results: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + options.seconds
    for number, name in enumerate(chosen):
        share = STEPS[name] / sum(STEPS[other] for other in chosen[number:])
        if missing and not (name == "compile" and options.arch):
            results[name] = {"failed": f"backend {options.backend!r} does not work here: {missing}", "seconds": 0.0}
        else:
            results[name] = run_step(name, options, max(10.0, share * (end - time.monotonic())))
        _write(options.out, results)
    print(f"\n{markdown(results)}")
    return 1 if any(result["failed"] for result in results.values()) else 0


def _run_here(options: argparse.Namespace) -> int:
    """Run one step in this process and leave its result; what it left before an error stays."""
    try:
        result = RUN[options.step](options)
    except Exception as error:  # any error at all belongs into the report
        traceback.print_exc()
        file = _step_file(options, options.step)
        result = json.loads(file.read_text()) if file.is_file() else {}
        result["failed"] = f"{type(error).__name__}: {error}"
    _leave(options, result)
    return 0


def _missing(backend: str) -> str:
    from gpusim.backends import why_not

    return why_not(backend)


def _write(out: Path, results: dict[str, dict[str, Any]]) -> None:
    (out / "gpu_check.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "gpu_check.md").write_text(markdown(results), encoding="utf-8")


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
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
