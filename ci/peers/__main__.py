"""Run workloads of ``gpusim bench`` in gpusim and in the other simulators that are installed.

    python ci/peers [WORKLOAD ...] [--backend native] [--dtype float32] [--threads 1] [--quick] [--json FILE.json]

Without names, the program runs all workloads in gpusim, and the default workloads in the other simulators.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for a checkout that is not installed

from ci.peers import report  # noqa: E402
from ci.peers.peers import run_peers  # noqa: E402
from gpusim.bench.main import exit_code, log, run_workloads  # noqa: E402
from gpusim.bench.report import write_json  # noqa: E402
from gpusim.bench.runner import Options  # noqa: E402
from gpusim.errors import GpusimError  # noqa: E402
from gpusim.output_files import check_output_file  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected workloads and return the exit code."""
    parsed = _parser().parse_args(arguments)
    options = Options(parsed.backend, parsed.dtype, parsed.threads, parsed.quick)
    try:
        if parsed.json is not None:
            check_output_file(parsed.json, (".json",), "--json")
        facts, records = run_workloads(parsed.workloads, options)
        peers = run_peers(options, log, parsed.workloads)
        report.show(records, peers)
        if parsed.json is not None:
            write_json(parsed.json, report.as_json(facts, records, peers))
    except (GpusimError, OSError) as error:
        print(f"ci/peers: {error}", file=sys.stderr)
        return 2
    return exit_code(records)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python ci/peers", description="Benchmarks of gpusim and its peers.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="as of gpusim bench")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "native", "numpy"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--threads", type=int, help="of the native backend and of MuJoCo (default: all)")
    parser.add_argument("--quick", action="store_true", help="short and noisy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
