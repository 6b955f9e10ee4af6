"""``gpusim bench``: measure the speed of this computer on named workloads."""

from __future__ import annotations

from pathlib import Path


def bench(
    workloads: list[str],
    backend: str,
    dtype: str,
    threads: int | None,
    quick: bool,
    count: bool,
    profile: bool,
    peers: bool,
    json: Path | None,
) -> int:
    """Run workloads. See :func:`gpusim.bench.main.bench`.

    Returns:
        Exit code: 0, or 1 if a case failed.
    """
    from gpusim.bench.main import bench as run
    from gpusim.bench.runner import Options

    return run(workloads, Options(backend, dtype, threads, quick, count, profile), peers, json)


def show_estimates(
    workloads: list[str], dtype: str, quick: bool, profile: bool, card: str, peers: bool, json: Path | None
) -> int:
    """Print time estimates for a GPU. See :func:`gpusim.bench.main.show_estimates`."""
    from gpusim.bench.main import show_estimates as run
    from gpusim.bench.runner import Options

    return run(workloads, Options("native", dtype, None, quick, profile=profile), card, json, peers)


def list_workloads() -> None:
    """Print the workloads."""
    from gpusim.bench.main import show_workloads

    show_workloads()
