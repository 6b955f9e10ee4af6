"""The benchmarks of ci/gpu_check.py, beside other simulators where they are installed, and beside the estimates."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from gpu_report import bench_result, beside_estimates

BENCHED = 0.7
"""Of the time, after which benchmarks make room for the estimates beside them."""


def step_bench(options: argparse.Namespace, end: float, leave: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The step of ci/gpu_check.py; ``end``: when it begins nothing new."""
    from gpusim.bench import machine, report
    from gpusim.bench.peers import run_peers, told_once
    from gpusim.bench.runner import Options, run_cases
    from gpusim.bench.workloads import chosen_cases

    # operations are the same everywhere: counted on a CPU, they would take the GPU's time
    chosen = Options(backend=options.backend, quick=options.quick, count=options.backend != "cuda")
    facts, begun = machine.describe(), time.monotonic()
    records, peers, left, names = [], [], [], _workloads(options)

    def late(share: float = 1.0) -> bool:
        return time.monotonic() > begun + share * BENCHED * (end - begun)

    def tell(line: str) -> None:
        print(" ", line, flush=True)

    def leave_all(*running: Any) -> None:
        leave(bench_result(facts, [*records, *running], peers, left) | {"failed": "not finished"})

    # written after each case: a limit that ends the step must not take the figures that are there
    for name in names:
        if late():
            left.append(name)
            continue
        try:
            # what a GPU is for comes first: most worlds, and with the first workload other simulators beside them
            cases = sorted(chosen_cases([name], options.quick), key=lambda case: -case.worlds)
            ended: list[Any] = []

            def leave_case(record: Any, ended: list[Any] = ended) -> None:
                ended.append(record)
                leave_all(*ended)

            records += run_cases(cases, chosen, tell, late, leave_case)
        except ModuleNotFoundError as error:
            left.append(f"{name} ({error})")
        left += [f"{name} (perhaps not all)"] if late() else []
        leave_all()
        if name == names[0]:
            peers += run_peers(chosen, tell, [name], lambda: late(0.5))
            leave_all()
    if names[1:] and not late():
        peers = told_once([*peers, *run_peers(chosen, tell, names[1:], late)])
        leave_all()
    report.show(records, peers)
    guessed = beside_estimates(records, chosen, facts, lambda: time.monotonic() > end)
    return bench_result(facts, records, peers, left, guessed)


def _workloads(options: argparse.Namespace) -> list[str]:
    """The workloads to run: those asked for, or what fits into the time."""
    if options.workloads:
        return str(options.workloads).split(",")
    piles = ["pile_1000", "pile_100000", "pile_8000"] if options.backend == "cuda" else []
    # on a GPU each scene of "latency" is a build of its own, for which there is no time
    latency = [] if options.backend == "cuda" else ["latency"]
    return ["humanoid", "many_worlds", *piles, *latency, "rows", "joint_grid"]
