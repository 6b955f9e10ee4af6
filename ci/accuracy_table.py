"""Compare the simulator with every reference solution, and write a table of the errors.

    python ci/accuracy_table.py [--quick | --horizon 2] [--case A01 --case case1a] [--column direct] [--out FOLDER]
    python ci/accuracy_table.py --backend native [--kept ci/bench/accuracy/accuracy.json]

The script prints Markdown and writes ``accuracy.md`` and ``accuracy.json``. The exit code is 1 if an error in the
column "direct" exceeds its limit. ``--quick`` simulates only one second of every case.

``--kept`` reuses the errors of the NumPy backend from an earlier table.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

# One thread per process: the table compares times, and the matrices are far too small for BLAS threads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the cases are in tests/, which no wheel contains

from accuracy_report import machine, markdown, native_failures, native_markdown, orders  # noqa: E402

from gpusim.output_files import finite_json  # noqa: E402
from tests.analytic import bars  # noqa: E402
from tests.analytic.cases import run  # noqa: E402

QUICK_HORIZON = 1.0


@dataclass
class Job:
    """Settings of one run, and the section, row and column of its result in the table."""

    section: str
    row: str
    column: str
    case: str
    settings: dict[str, Any]
    bar: bars.Bar
    judged: bool
    note: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


def all_jobs() -> list[Job]:
    """Return every run of the table."""
    jobs = []
    for section, rows in (("Hydraulics", bars.HYDRAULICS), ("Motors", bars.MOTORS), ("Springs", bars.SPRINGS)):
        for row in rows:
            title = f"{row.case}, {1e3 * row.settings['dt']:g} ms" + (f" ({row.note})" if row.note else "")
            jobs += _side_by_side(section, title, row.case, row.settings, row.bar, row.note)
    for case in bars.MULTIBODY:
        for substeps, table in ((1, bars.MULTIBODY), (8, bars.EIGHT_SUBSTEPS)):
            settings = {"dt": 1e-3, "substeps": substeps}
            bar = table[case]
            title = f"{case}, 1 ms" + (f" x {substeps}" if substeps > 1 else "")
            jobs.append(Job("Multibody", title, "direct", case, settings, bar, True))
            jobs += [Job("Multibody", title, *other) for other in _others(case, substeps)]
    jobs.append(Job("Energy", "free chain, 60 s", "direct", bars.CHAIN.case, bars.CHAIN.settings, bars.CHAIN.bar, True))
    for case, (steps, horizon) in bars.ORDERS.items():
        for dt in steps:
            settings = {"dt": dt, "horizon": horizon}
            jobs.append(Job("Order", case, f"{1e3 * dt:g} ms", case, settings, bars.Bar(gap=None), False))
    return jobs


def native_jobs() -> list[Job]:
    """Return runs of all cases with limits, on the NumPy backend and on the native backend in both precisions."""
    jobs = []
    for job in all_jobs():
        if job.judged:
            jobs.append(replace(job, column="numpy64"))
            native = job.settings | {"backend": "native"}
            jobs.append(replace(job, column="native64", settings=native))
            jobs.append(replace(job, column="native32", settings=native | {"dtype": "float32"}, judged=False))
    return jobs


def reuse_results(jobs: list[Job], path: Path) -> list[Job]:
    """Copy the results of NumPy jobs from an earlier table. Return these jobs."""
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    kept = {(run["section"], run["row"]): run for run in runs if run["column"] in ("direct", "numpy64")}
    found = []
    for job in jobs:
        run = kept.get((job.section, job.row)) if job.column == "numpy64" else None
        if run:
            job.result, job.broken = run["result"], run["broken"]
            found.append(job)
    return found


def _side_by_side(section: str, row: str, case: str, settings: dict[str, Any], bar: bars.Bar, note: str) -> list[Job]:
    """Return the runs of a hydraulics, motor or spring case: direct solver, and others with the same step size."""
    jobs = [Job(section, row, "direct", case, settings, bar, True, note)]
    other: dict[str, dict[str, Any]] = {
        "colored 20": {"joint_solver": "colored", "iterations": 20},
        "float32": {"dtype": "float32"},
        "semi_implicit": {"scheme": "semi_implicit"},
    }
    return jobs + [Job(section, row, name, case, settings | extra, bar, False, note) for name, extra in other.items()]


def _others(case: str, substeps: int) -> list[tuple[str, str, dict[str, Any], bars.Bar, bool]]:
    """Return the runs of a multibody case with other settings than the direct solver."""
    loose = bars.Bar(gap=bars.GAP_COLORED)
    chosen = []
    for name, extra in bars.OTHERS.items():
        if extra.get("substeps", 1) != substeps:
            continue
        bar = bars.Bar(gap=bars.GAP_FLOAT32) if "float32" in name else loose
        if case == "B03" and name == "colored 8x4":
            bar = bars.Bar(error=bars.B03_COLORED_STRETCH, gap=bars.GAP_COLORED)
        chosen.append((name.removesuffix(" x8"), case, {"dt": 1e-3, **extra}, bar, False))
    return chosen


def measure(job: Job) -> Job:
    """Run one job."""
    result = run(job.case, **job.settings)
    job.result = asdict(result)
    job.broken = bars.failures(result, job.bar)
    return job


def run_all(jobs: list[Job], processes: int) -> list[Job]:
    """Run all jobs in several processes, longest jobs first. Print a line of progress for each job."""
    # A step of 8 substeps costs about eight steps. Start long jobs first, so that no process is idle at the end.
    jobs = sorted(jobs, key=lambda job: -job.settings.get("substeps", 1) / job.settings["dt"])
    done = []
    # An executor raises if a worker is killed. A Pool would wait for the worker forever.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(measure, job) for job in jobs]):
            job = future.result()
            done.append(job)
            verdict = "; ".join(job.broken) or "ok"
            name = f"{job.row}, {job.column}"
            print(f"[{len(done)}/{len(jobs)}] {name}: {job.result['max_error']:.3g}, {verdict}", file=sys.stderr)
    return done


def command_time() -> float:
    """Return the wall time (s) of the command ``gpusim run hydraulic_lift`` with warm caches."""
    command = [sys.executable, "-m", "gpusim.cli.main", "run", "hydraulic_lift"]
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="simulate only one second of every case")
    parser.add_argument("--horizon", type=float, help="simulate only this time of every case, s")
    parser.add_argument("--case", action="append", default=[], help="only this case (may be repeated)")
    parser.add_argument("--column", action="append", default=[], help="only this column (may be repeated)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--backend", choices=("numpy", "native"), default="numpy")
    parser.add_argument("--kept", type=Path, help="earlier table with NumPy's errors to reuse, with --backend native")
    parser.add_argument("--out", type=Path, default=ROOT / "ci" / "bench" / "accuracy")
    options = parser.parse_args()
    options.horizon = QUICK_HORIZON if options.quick else options.horizon
    options.whole = not (options.case or options.column or options.horizon)
    options.jobs = native_jobs() if options.backend == "native" else all_jobs()
    if options.kept and (options.backend == "numpy" or options.horizon):
        parser.error("--kept goes with --backend native and whole horizons")
    for name in ("case", "column"):
        known = {getattr(job, name) for job in options.jobs}
        if unknown := set(getattr(options, name)) - known:
            parser.error(f"unknown {name} {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    return options


def chosen_jobs(options: argparse.Namespace) -> list[Job]:
    """Return the runs that the command line selects."""
    jobs = [job for job in options.jobs if job.case in options.case or not options.case]
    jobs = [job for job in jobs if job.column in options.column or not options.column]
    for job in jobs:
        if options.horizon:
            job.settings = {"horizon": options.horizon} | job.settings
    return jobs


def main() -> int:
    """Run, print and write the table. Return the exit code."""
    options = arguments()
    jobs = chosen_jobs(options)
    index = {(job.section, job.row, job.column): i for i, job in enumerate(jobs)}
    seconds = command_time() if options.whole and options.backend == "numpy" else None
    start = time.perf_counter()
    done = reuse_results(jobs, options.kept) if options.kept else []
    done += run_all([job for job in jobs if not job.result], options.processes)
    jobs = sorted(done, key=lambda job: index[job.section, job.row, job.column])
    record: dict[str, Any] = {"machine": machine(), "horizon": options.horizon}
    record |= {"wall_time": time.perf_counter() - start, "command_time": seconds}
    if options.backend == "native":
        write(options.out, "accuracy_native", native_markdown(jobs, record), record, jobs)
        return 1 if native_failures(jobs) or any(job.broken for job in jobs if job.judged) else 0
    record["orders"] = orders(jobs)
    write(options.out, "accuracy", markdown(jobs, record), record, jobs)
    slow = seconds is not None and seconds >= bars.COMMAND_TIME
    weak = options.whole and any(not slope >= bars.MIN_ORDER for slope in orders(jobs).values())
    return 1 if slow or weak or any(job.broken for job in jobs if job.judged) else 0


def write(folder: Path, name: str, text: str, record: dict[str, Any], jobs: list[Job]) -> None:
    """Print the table and write it as markdown and JSON."""
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    record["runs"] = [asdict(job) for job in jobs]
    text = json.dumps(finite_json(record), indent=1, allow_nan=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
