"""Run the points of a sweep. Points whose models have the same structure run in one simulation."""

from __future__ import annotations

import fnmatch
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.errors import ModelError, callers_level, unknown_name
from gpusim.model.digest import digest_of
from gpusim.scene import Scene
from gpusim.signals.control_map import check_free, command_values
from gpusim.signals.model_batch import structure
from gpusim.simulation import Simulation
from gpusim.sweeps.points import Point
from gpusim.typing import Array
from gpusim.validate import matching

_TIME = "sim.time"
Build = Callable[[Point], Scene]
"""Function that builds the scene of a point."""


@dataclass(frozen=True)
class Plan:
    """Settings that all runs of a sweep share. Each point (combination of parameter values) has one run.

    Attributes:
        signals: names or wildcards of signals, or empty for the signals of the scene's plots.
        duration: duration of each run (s), or None for the duration of the scene.
        rate: samples per second of simulated time, or None for one sample at the end of the run.
        backend: backend of the simulations.
        dtype: number type of velocities, momenta and impulses.
    """

    signals: tuple[str, ...] = ()
    duration: float | None = None
    rate: float | None = None
    backend: str = "auto"
    dtype: str = "float64"


@dataclass(frozen=True)
class Result:
    """Samples of some sweep points.

    Attributes:
        columns: names of the columns of ``values``.
        time: times of the samples (samples,), s.
        values: values of the signals (points, samples, columns).
        failed: mask of the points whose world failed (points,). A failed world stays in its last valid state.
    """

    columns: list[str]
    time: Array
    values: Array
    failed: Array


class _NeedsWholeSimulation(Exception):
    """A schedule uses a part of the simulation that :class:`_OneWorld` does not provide."""


class _Commands(MutableMapping[str, Any]):
    """``sim.control`` of one world."""

    def __init__(self, sim: Simulation, world: int) -> None:
        self._sim, self._world = sim, world
        self._columns: dict[str, int] = {}
        self.array = sim.control.array

    def __setitem__(self, label: str, value: Any) -> None:
        if label not in self._columns:
            known = self._sim.model.controls
            if label not in known:
                raise unknown_name("command", label, known)
            check_free(self._sim.runtime, label)
            self._columns[label] = known[label]
        number = value if type(value) is float else float(command_values(f"command '{label}'", value, 1)[0])
        if not math.isfinite(number):
            raise ModelError(f"command '{label}': value {value!r} is not finite; give finite numbers")
        self.array[self._world, self._columns[label]] = number

    def __getitem__(self, label: str) -> Array:
        return self._sim.control[label][self._world : self._world + 1]

    def __delitem__(self, label: str) -> None:
        raise _NeedsWholeSimulation

    def __iter__(self) -> Iterator[str]:
        return iter(self._sim.model.controls)

    def __len__(self) -> int:
        return len(self._sim.model.controls)


class _OneWorld:
    """One world of a simulation, with the interface that a schedule uses."""

    num_worlds = 1

    def __init__(self, sim: Simulation, world: int) -> None:
        self._sim, self._world = sim, world
        self.control, self.step_size = _Commands(sim, world), sim.step_size

    @property
    def time(self) -> float:
        return float(self._sim.read_state()["time"][self._world])

    def read(self, name: str, numpy: bool = False) -> Array:
        found: Array = self._sim.read(name, numpy=True)[self._world : self._world + 1]
        return found

    def write(self, name: str, value: Any, worlds: Any = None) -> None:
        self._sim.write(name, value, worlds=self._world)

    def __getattr__(self, name: str) -> Any:
        raise _NeedsWholeSimulation


def _text(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


@contextmanager
def _warnings_of(points: Sequence[Point]) -> Iterator[None]:
    """In warnings of a simulation, replace the world's index by the parameters of the sweep point."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    for one in found:
        text = re.sub(r"^world (\d+)", lambda world: f"point ({_text(points[int(world[1])])})", str(one.message))
        warnings.warn(text, one.category, stacklevel=callers_level())


def grouped(build: Build, points: Sequence[Point], max_points: int) -> tuple[list[list[int]], str]:
    """Return groups of at most ``max_points`` points that can run in one simulation, and a digest of all models.

    Raises:
        ModelError: the scene of a point cannot be built.
    """
    groups, digest = dict[str, list[int]](), ""
    for number, point in enumerate(points):
        try:
            scene = build(point)
            model = scene.builder.finalize()
            kind = structure(model, scene.config)
            groups.setdefault(kind, []).append(number)
            digest = digest_of([digest, kind, model.digest, scene.duration, scene.signals()])
        except ModelError as error:
            reason = str(error).removeprefix("sweep: ")
            raise ModelError(f"sweep: point {number} ({_text(point)}): {reason}") from error
    chunks = [indices[k : k + max_points] for indices in groups.values() for k in range(0, len(indices), max_points)]
    return chunks, digest


def check_signals(build: Build, points: Sequence[Point], groups: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    """Raise UnknownNameError if no model of the sweep has one of the signals ``names``."""
    known: Collection[str] = ()
    for group in groups:
        if not names:
            return
        scene = build(points[group[0]])
        known = Simulation(scene.builder.finalize(), 1, "numpy", config=scene.config).signals()
        names = [name for name in names if not _of(known, name)]
    if names:
        matching("signal", names, known)


def _of(known: Collection[str], name: str) -> bool:
    return name in known or bool(fnmatch.filter(known, name))


def run_points(build: Build, points: Sequence[Point], plan: Plan) -> Result:
    """Run points whose models have the same structure. Each point is a world of one simulation.

    The results are bit-identical to a separate run of each point.
    """
    scenes = [build(point) for point in points]
    models = [scene.builder.finalize() for scene in scenes]
    options: dict[str, Any] = {"backend": plan.backend, "dtype": plan.dtype}
    if len(points) > 1:
        try:
            with _warnings_of(points):
                sim = Simulation(models, config=scenes[0].config, **options)
                return _run(sim, [(scene, _OneWorld(sim, k)) for k, scene in enumerate(scenes)], plan)
        except _NeedsWholeSimulation:
            pass
    found = []
    for point, scene, model in zip(points, scenes, models, strict=True):
        with _warnings_of([point]):
            alone = Simulation(model, num_worlds=1, config=scene.config, **options)
            found.append(_run(alone, [(scene, alone)], plan))
    values, failed = (np.concatenate([getattr(one, part) for one in found]) for part in ("values", "failed"))
    return Result(found[0].columns, found[0].time, values, failed)


def _run(sim: Simulation, worlds: Sequence[tuple[Scene, Any]], plan: Plan) -> Result:
    scene, dt = worlds[0][0], sim.config.dt
    if not (names := list(plan.signals) or scene.signals()):
        raise ModelError(f"sweep: scene {scene.name!r} names no signals; give some")
    known = sim.signals()
    names = [name for name in names if _of(known, name)]  # other names exist in models of other points
    seen = sim.observe(names or _TIME)
    width = seen.array.shape[1] if names else 0
    duration = scene.duration if plan.duration is None else plan.duration
    steps = max(round(min(duration / dt, 2.0 * validate.GREATEST_COUNT)), 1)
    if steps > validate.GREATEST_COUNT:
        rule = f"duration = {duration:g} s has more than {validate.GREATEST_COUNT:.0e} steps of dt = {dt:g} s"
        raise validate.fail("sweep", rule, "give a shorter duration")
    due = sample_steps(steps, dt, plan.rate)
    times, values = np.empty(len(due)), np.empty((len(worlds), len(due), width))
    done, driven = 0, any(scene.schedule is not None for scene, _ in worlds)
    for k, at in enumerate(due):
        while done < at:
            count = 1 if driven else at - done
            _command(sim, worlds) if driven else None
            sim.step(count)
            done += count
        times[k] = np.max(sim.read(_TIME, numpy=True))
        values[:, k] = on_host(seen.read())[:, :width]
    return Result(_columns(sim, seen)[:width], times, values, ~np.asarray(sim.health()))


def sample_steps(steps: int, dt: float, rate: float | None) -> list[int]:
    """Return the indices of the sampled steps, including 0 and ``steps``. Without a rate, return only ``steps``.

    Raises:
        ModelError: the rate is not between 0 and the number of steps per second.
    """
    if rate is None:
        return [steps]
    if not 0.0 < rate * dt <= 1.0 + 1e-9:
        raise ModelError(f"sweep: rate = {rate!r} is not between 0 and {1.0 / dt:g}, the number of steps per second")
    every = 1.0 / (rate * dt)
    return sorted({*(round(k * every) for k in range(int(steps / every) + 1)), steps})


def _command(sim: Simulation, worlds: Sequence[tuple[Scene, Any]]) -> None:
    time = float(np.max(sim.read("sim.time", numpy=True)))
    array, step_size = sim.control.array, sim.step_size  # on a GPU, this marks the commands as written
    for scene, world in worlds:
        if isinstance(world, _OneWorld):
            world.control.array, world.step_size = array, step_size
        if scene.schedule is not None:
            scene.schedule(world, time)
    sim.invalidate()


def _columns(sim: Simulation, seen: Any) -> list[str]:
    known = sim.signals()
    return [
        f"{name}[{k}]" if known[name].shape else name
        for name, at in seen.slices.items()
        for k in range(at.stop - at.start)
    ]
