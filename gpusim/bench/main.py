"""Implementation of ``gpusim bench``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpusim.backends import choose_backend
from gpusim.backends.cuda.builds import ENVIRONMENT as BUILD_MODE
from gpusim.bench import machine, report
from gpusim.bench.runner import Options, Record, run_cases
from gpusim.bench.workloads import WORKLOADS, chosen_cases
from gpusim.errors import ModelError
from gpusim.output_files import check_output_file

DONE, FAILED = 0, 1


def show_workloads() -> None:
    """Print the workloads, one line each."""
    report.print_table(("workload", "note"), [(name, workload.description) for name, workload in WORKLOADS.items()])


def bench(names: Sequence[str], options: Options, json: Path | None = None) -> int:
    """Run workloads, print the tables, and write the JSON file.

    Args:
        names: workloads to run, or empty for all workloads.
        options: settings of the benchmarks.
        json: JSON file to write, or None.

    Returns:
        0, or 1 if a case failed.

    Raises:
        UnknownNameError: a workload does not exist.
        ModelError: an option is invalid, or the backend does not work here.
    """
    if json is not None:
        check_output_file(json, (".json",), "--json")
    facts, records = run_workloads(names, options)
    report.show(records)
    if json is not None:
        report.write_json(json, report.as_json(facts, records))
    return exit_code(records)


def run_workloads(names: Sequence[str], options: Options) -> tuple[dict[str, Any], list[Record]]:
    """Run workloads. Return a description of the machine, and the results.

    Args:
        names: workloads to run, or empty for all workloads.
        options: settings of the benchmarks.

    Raises:
        UnknownNameError: a workload does not exist.
        ModelError: an option is invalid, or the backend does not work here.
    """
    cases = chosen_cases(list(names), options.quick)
    if options.threads is not None and options.threads < 1:
        raise ModelError(f"--threads must be at least 1, got {options.threads}; give e.g. --threads 1")
    name, reason = choose_backend(options.backend)
    if name == "cuda":
        os.environ.setdefault(BUILD_MODE, "full")  # compile the full build before the first step
        reason += f"; {BUILD_MODE}={os.environ[BUILD_MODE]}"
    facts = machine.describe()
    print(f"gpusim {facts['gpusim']} on {facts['gpu'] if name == 'cuda' else facts['cpu']}; {reason}", flush=True)
    return facts, run_cases(cases, options, log)


def exit_code(records: Sequence[Record]) -> int:
    """Return 0, or 1 if a case failed."""
    return FAILED if any(record.error for record in records) else DONE


def log(line: str) -> None:
    """Print a line of progress."""
    print(f"  {line}", file=sys.stderr, flush=True)
