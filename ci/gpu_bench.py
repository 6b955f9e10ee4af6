"""Run the benchmarks of ci/gpu_check.py, also in other simulators."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from gpu_report import bench_result


def step_bench(options: argparse.Namespace, end: float, leave: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run the step "bench" of ci/gpu_check.py."""
    from ci.peers import report
    from ci.peers.peers import reported_once, run_peers
    from gpusim.bench import machine
    from gpusim.bench.runner import Options, run_cases
    from gpusim.bench.workloads import chosen_cases

    chosen = Options(backend=options.backend, quick=options.quick)
    facts, begun = machine.describe(), time.monotonic()
    records, peers, left, names = [], [], [], _workloads(options)

    def late(fraction: float = 1.0) -> bool:
        return time.monotonic() > begun + fraction * (end - begun)

    def log(line: str) -> None:
        print(" ", line, flush=True)

    def write_all(*running: Any) -> None:
        leave(bench_result(facts, [*records, *running], peers, left) | {"failed": "not finished"})

    # write after each case, so that results are not lost at a time limit
    for name in names:
        if late():
            left.append(name)
            continue
        try:
            # the most important cases for a GPU come first: most worlds, and other simulators with the first workload
            cases = sorted(chosen_cases([name], options.quick), key=lambda case: -case.worlds)
            ended: list[Any] = []

            def write_case(record: Any, ended: list[Any] = ended) -> None:
                ended.append(record)
                write_all(*ended)

            records += run_cases(cases, chosen, log, late, write_case)
        except ModuleNotFoundError as error:
            left.append(f"{name} ({error})")
        left += [f"{name} (perhaps not all)"] if late() else []
        write_all()
        if name == names[0]:
            peers += run_peers(chosen, log, [name], lambda: late(0.5))
            write_all()
    if names[1:] and not late():
        peers = reported_once([*peers, *run_peers(chosen, log, names[1:], late)])
        write_all()
    report.show(records, peers)
    return bench_result(facts, records, peers, left)


def _workloads(options: argparse.Namespace) -> list[str]:
    """Return the requested workloads, or by default as many workloads as fit into the time."""
    if options.workloads:
        return str(options.workloads).split(",")
    piles = ["pile_1000", "pile_100000", "pile_8000"] if options.backend == "cuda" else []
    # skip "latency" on a GPU, because a build for each scene takes too long
    latency = [] if options.backend == "cuda" else ["latency"]
    return ["humanoid", "many_worlds", *piles, *latency, "rows", "joint_grid"]
