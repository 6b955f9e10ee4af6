"""``gpusim.sweep``: run a scene with many parameter values."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.output_files import check_output_file
from gpusim.scene import Scene, load_scene
from gpusim.signals.saving.checkpoint_file import version
from gpusim.sweeps.files import SweepFiles
from gpusim.sweeps.points import Point, Span, grid, sample, whole_ranges
from gpusim.sweeps.runs import Build, Plan, Result, check_signals, grouped, run_points
from gpusim.validate import name_list

TOGETHER = 256
"""Default maximum number of points in one simulation."""


def sweep(
    scene: str | Callable[..., Scene],
    parameters: Mapping[str, Sequence[Any]],
    *,
    signals: str | Sequence[str] = (),
    num_samples: int | None = None,
    seed: int = 0,
    duration: float | None = None,
    rate: float | None = None,
    out: str | os.PathLike[str] | None = None,
    backend: str = "auto",
    dtype: str = "float64",
    together: int = TOGETHER,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Run a scene with many combinations of parameter values. Each combination is a sweep point.

    Points whose models differ only in numeric values run as worlds of one simulation. The results are bit-identical to
    separate runs. If the model of a point lacks a signal, the table contains null.

    Args:
        scene: name of a scene, or a function that takes the parameters and returns a scene.
        parameters: parameter -> list of values, or a tuple (low, high) for random values from this range. Ranges
            require ``num_samples``.
        signals: names or wildcards of signals. Default: the signals of the scene's plots.
        num_samples: number of random points. By default, all combinations run.
        seed: seed of the random points.
        duration: duration of each run (s). Default: the duration of the scene.
        rate: samples per second of simulated time. Default: one sample at the end of each run.
        out: path of a .parquet file. An interrupted sweep continues from the finished simulations in the ".part"
            folder.
        backend, dtype: see :class:`Simulation`.
        together: maximum number of points that run in one simulation.
        ray: address of a Ray cluster that runs the simulations, or "local" to start a cluster on this computer.
        progress: function ``(finished, total)`` to call with the number of finished points and the total number of
            points.

    Returns:
        pyarrow.Table with the columns ``point``, the parameters, ``failed``, ``time`` and the signals. With ``out``,
        the function returns None.

    Raises:
        ModelError: a parameter has no values, or a value is invalid.
        UnknownNameError: a scene, parameter or signal does not exist.
    """
    if not isinstance(scene, str) and not callable(scene):
        raise validate.fail("sweep", f"scene = {scene!r} is not a scene", "give a name, or a function that makes one")
    _check_axes(scene, parameters)
    for name, given in (("duration", duration), ("rate", rate)):
        if given is not None:
            validate.positive("sweep", name, given)
    build: Build = partial(_named, scene) if isinstance(scene, str) else partial(_called, scene)
    axes = {name: Span(values) if _is_range(values) else values for name, values in parameters.items()}
    if num_samples is None:
        points = grid(axes)
    else:
        points = sample(whole_ranges(scene, axes), num_samples, seed)
    chosen = tuple(name_list("sweep: signals", signals))
    plan = Plan(chosen, duration, rate, backend, dtype)
    name = scene if isinstance(scene, str) else f"{scene.__module__}:{getattr(scene, '__qualname__', scene)}"
    return run_sweep(build, points, plan, out=out, together=together, ray=ray, progress=progress, name=name)


def _check_axes(scene: Any, parameters: Any) -> None:
    if not isinstance(parameters, Mapping):
        raise validate.fail("sweep", f"parameters = {parameters!r} is not a dict", "give values by name")
    for name, values in parameters.items():
        if not isinstance(name, str):
            raise validate.fail("sweep", f"parameter {name!r} is not a name", "give a dict by name")
        if isinstance(values, str | Mapping) or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
            raise validate.fail("sweep", f"parameter '{name}' = {values!r} is not a list", "give a list of values")
    if callable(scene):
        try:
            inspect.signature(scene).bind(**parameters)
        except TypeError as error:
            rule = f"the function does not take these parameters ({error})"
            raise validate.fail("sweep", rule, "rename them") from None


def _is_range(values: Any) -> bool:
    return (
        isinstance(values, tuple) and len(values) == 2 and all(isinstance(x, int | float | np.number) for x in values)
    )


def _named(scene: str, point: Point) -> Scene:
    return load_scene(scene, **point)


def _called(scene: Callable[..., Scene], point: Point) -> Scene:
    made = scene(**point)
    if not isinstance(made, Scene):
        raise validate.fail("sweep", f"the function returned {made!r}", "return a gpusim.Scene")
    return made


def run_sweep(
    build: Build,
    points: Sequence[Point],
    plan: Plan,
    *,
    name: str,
    out: str | os.PathLike[str] | None = None,
    together: int = TOGETHER,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Run the given points, see :func:`sweep`. ``name`` identifies the scene in the ".part" folder."""
    validate.count("sweep", "together", together)
    if progress is not None and not callable(progress):
        raise validate.fail("sweep", f"progress = {progress!r} is not a function", "give a function of two numbers")
    path: Path | None = None if out is None else check_output_file(out, (".parquet",), "sweep")
    files = SweepFiles(path, points)
    groups, digest = grouped(build, points, together)
    files.resume([name, list(points), vars(plan), together, digest, version()])
    check_signals(build, points, groups, plan.signals)
    todo = [group for group in groups if not files.has(group)]
    done = len(points) - sum(map(len, todo))
    results: Iterator[tuple[Sequence[int], Result]]
    if ray is None:
        results = ((group, run_points(build, [points[k] for k in group], plan)) for group in todo)
    else:
        from gpusim.sweeps.on_ray import run_groups

        results = run_groups(ray, build, points, todo, plan)
    for group, result in results:
        files.add(group, result)
        done += len(group)
        if progress is not None:
            progress(done, len(points))
    return files.finish(groups)
