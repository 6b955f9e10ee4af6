"""``gpusim sweep``: run a scene or a machine with many values of its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.cli import progress
from gpusim.cli.console import note, notes_instead_of_warnings
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.cli.target_files import PYTHON, python_function
from gpusim.cli.targets import load_target
from gpusim.output_files import check_output_file, part_of
from gpusim.scene import Scene
from gpusim.sweeps.points import Point, Span, grid, parse_values, sample, whole_ranges
from gpusim.sweeps.runs import Plan
from gpusim.sweeps.sweep import run_sweep


@dataclass(frozen=True)
class SweepOptions:
    """Options of the command ``gpusim sweep``.

    Attributes:
        run: target, settings, duration, signals, backend and floating-point type.
        out: path of the .parquet file.
        rate: samples per second of simulated time, or None to record only the final state.
        sample: number of random points (parameter combinations), or None to use all combinations.
        seed: seed of the random points.
        together: maximum number of points in one simulation.
        ray: address of a Ray cluster, or None.
    """

    run: RunOptions
    out: Path
    rate: float | None = None
    sample: int | None = None
    seed: int = 0
    together: int = 256
    ray: str | None = None


@dataclass(frozen=True)
class Target:
    """Picklable function that builds the scene of a sweep point."""

    options: RunOptions

    def __call__(self, point: Point) -> Scene:
        """Build the scene of one point."""
        settings = settings_of(point)
        return load_target(dataclasses.replace(self.options, settings=settings), visuals=False)


def settings_of(point: Point) -> tuple[str, ...]:
    """Return the parameter values of a point as strings NAME=VALUE. Whole numbers have no decimal point."""
    whole = {name: int(value) for name, value in point.items() if isinstance(value, float) and value.is_integer()}
    return tuple(f"{name}={value}" for name, value in {**point, **whole}.items())


def sweep(options: SweepOptions) -> None:
    """Run the command ``gpusim sweep``.

    Raises:
        GpusimError: the input is invalid.
    """
    axes = {name: parse_values(name, text) for name, text in options.run.parameters().items()}
    if not axes:
        raise OptionError("gpusim sweep needs parameters; give e.g. --set mass=50:150:11")
    if options.together < 1:
        raise OptionError(f"--together must be at least 1, got {options.together}; give e.g. --together 256")
    points = _points(axes, options)
    plain = dataclasses.replace(options.run, settings=())
    check(dataclasses.replace(plain, settings=settings_of(points[0])))
    check_output_file(options.out, (".parquet",), "--out")
    if part_of(options.out).is_dir():
        note(f"continuing the sweep in {str(part_of(options.out))!r}")
    patterns = plain.signal_patterns() or ()
    plan = Plan(tuple(patterns), plain.duration, options.rate, plain.backend, plain.dtype)
    _run(options, Target(plain), points, plan)
    print(f"{len(points)} points in {options.out}")


def _points(axes: dict[str, Sequence[Any]], options: SweepOptions) -> list[Point]:
    if options.sample is not None:
        target = options.run.target
        scene = python_function(target) if options.run.kind() == PYTHON else target
        return sample(whole_ranges(scene, axes), options.sample, options.seed)
    if ranges := [name for name, values in axes.items() if isinstance(values, Span)]:
        raise OptionError(f"--set {ranges[0]}: a range LO:HI needs --sample; give LO:HI:N for N values")
    return grid(axes)


def _run(options: SweepOptions, build: Target, points: Sequence[Point], plan: Plan) -> None:
    name = build.options.target
    with progress.reported(name, len(points), lambda done: f"{done} points") as report, notes_instead_of_warnings():
        run_sweep(
            build, points, plan, name=name, out=options.out, together=options.together, ray=options.ray,
            progress=lambda done, _: report.update(done),
        )  # fmt: skip
