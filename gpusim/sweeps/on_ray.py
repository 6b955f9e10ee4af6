"""Sweeps on a Ray cluster. Each group of sweep points is a Ray task, which Ray repeats if its worker process dies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpusim.errors import ModelError
from gpusim.sweeps.points import Point
from gpusim.sweeps.runs import Build, Plan, Result, run_points

_RETRIES = 10


def run_groups(
    address: str, build: Build, points: Sequence[Point], groups: Sequence[Sequence[int]], plan: Plan
) -> Iterator[tuple[Sequence[int], Result]]:
    """Yield each group of sweep points and its result as soon as its task has ended.

    Args:
        address: address of the cluster, or "local" to start a cluster on this computer.
        build: function that builds the scene of a point.
        points: all sweep points.
        groups: indices of the points in each task.
        plan: settings of the runs.

    Raises:
        ModelError: Ray is not installed, or the address has no cluster.
    """
    try:
        import ray
    except ImportError:
        raise ModelError('--ray needs Ray, which is not installed; pip install "gpusim[ray]"') from None
    started = not ray.is_initialized()
    if started:
        try:
            ray.init(None if address == "local" else address, include_dashboard=False, log_to_driver=False)
        except Exception as error:  # Ray raises a bare Exception if a node starts too slowly
            raise ModelError(f"--ray: no cluster at {address!r} ({error}); start one with 'ray start --head'") from None
    try:
        task = ray.remote(max_retries=_RETRIES)(run_points)
        waiting: dict[Any, Sequence[int]] = {
            task.remote(build, [points[k] for k in group], plan): group for group in groups
        }
        while waiting:
            (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(ready), ray.get(ready)
    finally:
        if started:
            ray.shutdown()
