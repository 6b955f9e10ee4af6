"""Implementation of ``gpusim bench`` and ``python -m gpusim.bench``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gpusim.backends import choose_backend
from gpusim.backends.cuda.builds import ENVIRONMENT as WAY_OF_BUILDING
from gpusim.bench import machine, report
from gpusim.bench.peers import PeerRecord, run_peers
from gpusim.bench.runner import Options, run_cases
from gpusim.bench.workloads import WORKLOADS, chosen_cases
from gpusim.errors import ModelError
from gpusim.output_files import check_output_file

DONE, FAILED = 0, 1


def show_workloads() -> None:
    """Print the workloads, one line each."""
    report.print_table(("workload", "note"), [(name, workload.description) for name, workload in WORKLOADS.items()])


def show_estimates(
    names: Sequence[str], options: Options, card_name: str, json: Path | None = None, peers: bool = False
) -> int:
    """Count the operations of workloads, and print estimated times on a GPU.

    Args:
        names: workloads; empty for all.
        options: only ``dtype`` and ``quick`` matter.
        card_name: of :data:`gpusim.bench.gpu_estimate.CARDS`.
        json: file for the lines of the table.
        peers: other simulators were requested, which cannot be counted.

    Returns:
        0.

    Raises:
        UnknownNameError: a workload or a card that does not exist.
        ModelError: there is no C++ compiler, or an option that estimates do not support.
    """
    from gpusim.bench.gpu_estimate import Estimator, StagedEstimate, find_card, table

    if peers:
        raise ModelError("--estimate counts what gpusim does, and no other simulator; leave --peers out")
    if options.profile:
        raise ModelError("--estimate counts and runs nothing on a card; leave --profile out")
    if json is not None:
        check_output_file(json, (".json",), "--json")
    card, found = find_card(card_name), []
    estimator = Estimator(options, card)
    for case in chosen_cases(list(names), options.quick):
        if case.backend not in ("", "native", "cuda"):
            continue
        _log(f"{case.workload}: {case.name}, {case.worlds} world{'s' if case.worlds > 1 else ''}")
        found.append((case, estimator.of(case)))
    lines = list(table(card, found))
    report.print_table(lines[0], lines[1:])
    for case, own in found:
        if isinstance(own, StagedEstimate):
            what = f"{own.launches} launches, {own.bytes / 1e9:.2f} GB"
            print(f"ESTIMATE {card.name}: {case.name}: {what}, {1e6 / own.us:.0f} steps/s")
    if json is not None:
        report.write_json(json, {"estimates": [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]})
    print("Estimates from counted operations, good to a factor of two; nothing was measured on a card.")
    return DONE


def bench(names: Sequence[str], options: Options, peers: bool = False, json: Path | None = None) -> int:
    """Run workloads, print the tables, write the JSON file.

    Args:
        names: workloads; empty for all.
        options: how to run them.
        peers: run other simulators too.
        json: file to write.

    Returns:
        0, or 1 if a case failed.

    Raises:
        UnknownNameError: a workload that does not exist.
        ModelError: an option breaks a rule, or the backend does not work here.
    """
    cases = chosen_cases(list(names), options.quick)
    if options.threads is not None and options.threads < 1:
        raise ModelError(f"--threads must be at least 1, got {options.threads}; give e.g. --threads 1")
    if json is not None:
        check_output_file(json, (".json",), "--json")
    name, reason = choose_backend(options.backend)
    if name == "cuda":
        os.environ.setdefault(WAY_OF_BUILDING, "full")  # the build of a long run, not that of a first start
        reason += f"; {WAY_OF_BUILDING}={os.environ[WAY_OF_BUILDING]}"
    facts = machine.describe()
    print(f"gpusim {facts['gpusim']} on {facts['gpu'] if name == 'cuda' else facts['cpu']}; {reason}", flush=True)
    records = run_cases(cases, options, _log)
    others: list[PeerRecord] = run_peers(options, _log, names) if peers else []
    report.show(records, others)
    if json is not None:
        report.write_json(json, report.as_json(facts, records, others))
    return FAILED if any(record.error for record in records) else DONE


def _log(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)
