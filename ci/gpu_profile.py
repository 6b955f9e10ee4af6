"""Profile steps of benchmark cases on the GPU: times of stages and functions, and metrics of NVIDIA's Nsight Compute.

In fused launch, separate builds measure the time of each C++ function. In staged launch, CUDA events measure the time
of every kernel (gpusim/bench/phases.py). Nsight Compute profiles one launch of the usual kernels, if it is installed
and has permission to read the GPU's performance counters.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PROFILED = {"many_worlds": ("boom with cylinder", "standing biped"), "humanoid": ("humanoid lying",), "pile_100000": ()}
"""Cases by workload. An empty list selects all cases of the workload."""
STEPS = 10
NSIGHT = "ncu"
SECTIONS = ("SpeedOfLight", "Occupancy", "WarpStateStats", "MemoryWorkloadAnalysis")
NSIGHT_SECONDS = 60.0


def profiled_cases(quick: bool) -> list[Any]:
    """Return the cases to profile."""
    from gpusim.bench.workloads import chosen_cases

    found = []
    for workload, names in PROFILED.items():
        largest: dict[str, Any] = {}
        for case in chosen_cases([workload], quick):
            if (not names or case.name in names) and case.worlds > getattr(largest.get(case.name), "worlds", 0):
                largest[case.name] = case
        found += list(largest.values())[:1] if not names else largest.values()
    return found


def profile_case(case: Any, backend: str, quick: bool) -> dict[str, Any]:
    """Return the time of a step (microseconds) by stage and by kernel or C++ function, or an error text."""
    from gpusim.bench.drive import command
    from gpusim.bench.phases import profile
    from gpusim.bench.runner import Options, make_simulation

    launch = "fused" if case.launch == "auto" and case.worlds > 1 else "staged" if case.pile else case.launch
    try:
        sim = make_simulation(case, case.build().finalize(), backend, Options(backend, quick=quick), launch=launch)
        sim.step(case.settle)
        command(sim, 0)
        stages, kernels = profile(sim, STEPS)
    except Exception as error:  # the report contains every error, and the next case runs
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"launch": sim.backend.launch, "dtype": sim.dtype, "stages": stages, "kernels": kernels}


def nsight(limit: float) -> dict[str, Any]:
    """Return Nsight Compute's metrics of a launch, or a text with the reason for missing metrics."""
    program = shutil.which(NSIGHT)
    if program is None:
        return {"skipped": f"{NSIGHT} is not installed"}
    from gpusim.backends.cuda.backend import MAX_STEPS

    settled = -(-_nsight_case().settle // MAX_STEPS)
    # by default, Nsight Compute locks the clocks of the card, which others may use
    command = [program, "--clock-control", "none", "--csv", "--page", "details", "--kernel-name", "run_worlds"]
    command += ["--launch-skip", str(settled), "--launch-count", "1"]
    command += [word for section in SECTIONS for word in ("--section", section)]
    command += [sys.executable, __file__]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=limit)
    except subprocess.TimeoutExpired:
        return {"skipped": f"{NSIGHT} took longer than {limit:.0f} s"}
    metrics = read_metrics(done.stdout.splitlines())
    if not metrics:  # counters may need administrator rights
        messages = [line for line in (done.stdout + done.stderr).splitlines() if "ERR" in line or "==ERROR==" in line]
        return {"skipped": f"{NSIGHT} gave no metrics: {' '.join(messages)[:200] or f'exit code {done.returncode}'}"}
    return {"metrics": metrics}


def read_metrics(lines: Iterable[str]) -> dict[str, str]:
    """Return metrics and values with units from Nsight Compute's output. Skip messages, which start with ``==``."""
    table = csv.DictReader(line for line in lines if line.startswith('"'))
    return {
        f"{row['Section Name']}: {row['Metric Name']}": f"{row['Metric Value']} {row['Metric Unit']}".strip()
        for row in table
        if row.get("Metric Name") and row.get("Metric Value")
    }


def step_profile(options: argparse.Namespace, end: float, leave: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run the profile step of ci/gpu_check.py."""
    report: dict[str, Any] = {"cases": {}, "failed": ""}
    cases = profiled_cases(options.quick)

    def look_at(case: Any) -> None:
        name = f"{case.name}, {case.worlds} world{'s' if case.worlds > 1 else ''}"
        late = time.monotonic() > end
        print(f"  {name}", flush=True)
        report["cases"][name] = {"error": "no time"} if late else profile_case(case, options.backend, options.quick)
        leave(report | {"table": table(report), "failed": "not finished"})

    for case in cases:
        if case.worlds > 1:
            look_at(case)
    remaining = min(end - time.monotonic(), NSIGHT_SECONDS)
    why = "needs a GPU" if options.backend != "cuda" else "no time" if remaining < 1.0 else ""
    report["nsight"] = {"skipped": why} if why else nsight(remaining)
    for case in cases:  # a pile takes long to build
        if case.worlds == 1:
            look_at(case)
    errors = [f"{name}: {found['error']}" for name, found in report["cases"].items() if "error" in found]
    report["failed"] = "; ".join(error for error in errors if not error.endswith(": no time"))
    report["table"] = table(report)
    print(report["table"])
    return report


def table(report: dict[str, Any]) -> str:
    """Return a text with one line for the profile of each case, and the metrics of Nsight Compute."""
    from gpusim.bench.report import share_lines
    from gpusim.bench.runner import Record

    lines = []
    for name, found in report["cases"].items():
        if "error" in found:
            lines.append(f"{name}: {found['error']}")
        else:
            record = Record("", name, 1, dtype=found["dtype"], stages=found["stages"], kernels=found["kernels"])
            total = sum(found["stages"].values())
            lines += [f"{found['launch']}, {total:.4g} us a step: {line}" for line in share_lines([record])]
    messages = report.get("nsight", {})
    lines += [f"Nsight Compute: {messages['skipped']}"] if "skipped" in messages else []
    lines += [f"Nsight Compute, {metric}: {value}" for metric, value in messages.get("metrics", {}).items()]
    return "\n".join(f"- {line}" for line in lines)


def _nsight_case() -> Any:
    """Return the case that Nsight Compute profiles."""
    return next(case for case in profiled_cases(False) if case.name == PROFILED["humanoid"][0])


def _run_for_nsight() -> None:
    """Run the launches before the profile, in which bodies come to rest, and the launch to profile."""
    from gpusim.bench.runner import Options, make_simulation

    case = _nsight_case()
    sim = make_simulation(case, case.build().finalize(), "cuda", Options("cuda"), launch="fused")
    sim.step(case.settle)
    sim.step(STEPS)


if __name__ == "__main__":
    _run_for_nsight()
