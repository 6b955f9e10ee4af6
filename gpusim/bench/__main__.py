"""``python -m gpusim.bench``: the benchmarks without typer and rich."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpusim.bench.main import bench, show_workloads
from gpusim.bench.runner import Options
from gpusim.errors import GpusimError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the arguments select and return the exit code."""
    given = _parser().parse_args(arguments)
    if given.list:
        show_workloads()
        return 0
    options = Options(given.backend, given.dtype, given.threads, given.quick, given.profile)
    try:
        return bench(given.workloads, options, given.json)
    except (GpusimError, OSError) as error:
        print(f"gpusim: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpusim.bench", description="Benchmarks.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="which; all where none is named")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "native", "numpy"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--threads", type=int, help="of the native backend (default: all)")
    parser.add_argument("--quick", action="store_true", help="short and noisy")
    parser.add_argument("--profile", action="store_true", help="also print where a step's time goes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument("--list", action="store_true", help="show the workloads")
    return parser


if __name__ == "__main__":
    sys.exit(main())
