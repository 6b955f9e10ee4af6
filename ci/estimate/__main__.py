"""Print estimated times of workloads of ``gpusim bench`` on a GPU, from operation counts.

    python ci/estimate h200 [WORKLOAD ...] [--dtype float32] [--quick] [--json FILE.json]

It needs a C++ compiler, but no GPU. Estimates are good to a factor of two (``ci/estimate/gpu_estimate.py``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for a checkout that is not installed

from ci.estimate.gpu_estimate import (  # noqa: E402
    CARDS,
    DROPPED_FIRST,
    LEFT,
    Estimator,
    StagedEstimate,
    find_card,
    table,
)
from gpusim.bench import report  # noqa: E402
from gpusim.bench.main import log  # noqa: E402
from gpusim.bench.runner import Options  # noqa: E402
from gpusim.bench.workloads import chosen_cases  # noqa: E402
from gpusim.errors import GpusimError  # noqa: E402
from gpusim.output_files import check_output_file  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the estimates that the arguments select and return the exit code."""
    given = _parser().parse_args(arguments)
    options = Options("native", given.dtype, None, given.quick)
    try:
        show_estimates(given.workloads, options, given.card, given.json)
    except (GpusimError, OSError) as error:
        print(f"ci/estimate: {error}", file=sys.stderr)
        return 2
    return 0


def show_estimates(names: Sequence[str], options: Options, card_name: str, json: Path | None = None) -> None:
    """Count the operations of workloads, and print estimated times on a GPU.

    Args:
        names: workloads; empty for all.
        options: only ``dtype`` and ``quick`` matter.
        card_name: of :data:`ci.estimate.gpu_estimate.CARDS`.
        json: file for the lines of the table.

    Raises:
        UnknownNameError: a workload or a card that does not exist.
        ModelError: there is no C++ compiler.
    """
    if json is not None:
        check_output_file(json, (".json",), "--json")
    card, found = find_card(card_name), []
    estimator = Estimator(options, card)
    for case in chosen_cases(list(names), options.quick):
        if case.backend not in ("", "native", "cuda"):
            continue
        log(f"{case.workload}: {case.name}, {case.worlds} world{'s' if case.worlds > 1 else ''}")
        found.append((case, estimator.of(case)))
    lines = list(table(card, found))
    report.print_table(lines[0], lines[1:], LEFT, DROPPED_FIRST)
    for case, own in found:
        if isinstance(own, StagedEstimate):
            what = f"{own.launches} launches, {own.bytes / 1e9:.2f} GB"
            print(f"ESTIMATE {card.name}: {case.name}: {what}, {1e6 / own.us:.0f} steps/s")
    if json is not None:
        report.write_json(json, {"estimates": [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]})
    print("Estimates from counted operations, good to a factor of two; nothing was measured on a card.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python ci/estimate", description="Estimates of a GPU's times.")
    parser.add_argument("card", metavar="CARD", help=" or ".join(CARDS))
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="as of gpusim bench")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--quick", action="store_true", help="fewer worlds and smaller piles")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines of the table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
