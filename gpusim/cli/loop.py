"""The loop of ``gpusim run``: steps, commands, samples, progress bar."""

from __future__ import annotations

import math
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpusim.cli.console import error_console, notes_instead_of_warnings
from gpusim.errors import SimulationError

if TYPE_CHECKING:
    from rich.progress import Progress

    from gpusim.scene import Scene
    from gpusim.simulation import Simulation

_LOOKS = 500
"""How often in a run energy, drift and health are read: often enough to catch them, seldom enough to cost nothing."""

_REDRAW = 0.1
"""Seconds of wall time between two redraws of the progress bar."""


class Sampler(Protocol):
    """Whoever looks at a simulation while it runs: a recorder, a film."""

    def sample(self) -> None:
        """Take the present state."""


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        simulated: simulated time, s.
        wall: wall-clock time of the loop, s.
        steps: steps done.
        energy_start, energy_end: kinetic plus potential energy of world 0, J.
        drift: greatest joint drift seen in any world, m.
        interrupted: the user pressed Ctrl-C.
        failure: the error that ended the run early, or None.
    """

    simulated: float = 0.0
    wall: float = 0.0
    steps: int = 0
    energy_start: float = 0.0
    energy_end: float = 0.0
    drift: float = 0.0
    interrupted: bool = False
    failure: SimulationError | None = None


def simulate(sim: Simulation, scene: Scene, steps: int, recorder: Sampler | None, every: int = 1) -> Outcome:
    """Run ``steps`` steps of ``sim`` under the schedule of ``scene``; sample before the first, during, after the last.

    Args:
        sim: what to run.
        scene: where it came from.
        steps: how many steps.
        recorder: takes the samples; None for none.
        every: steps from one sample to the next.

    A failure of the simulation and Ctrl-C end the run and are told in the outcome, so that what was recorded until
    then is not lost.
    """
    outcome = Outcome(energy_start=_energy(sim))
    stride = max(1, steps // _LOOKS)
    # nothing may be skipped that happens between two steps: commands, samples, looks at the health
    chunk = 1 if scene.schedule else math.gcd(stride, every if recorder is not None else 0)
    if recorder is not None:
        recorder.sample()
    start = time.perf_counter()
    try:
        with _progress() as progress, notes_instead_of_warnings():
            bar = _Bar(progress, scene.name, steps)
            while outcome.steps < steps:
                if scene.schedule:
                    scene.schedule(sim, _time(sim))
                count = min(chunk, steps - outcome.steps)
                sim.step(count)
                outcome.steps += count
                if recorder is not None and (outcome.steps % every == 0 or outcome.steps == steps):
                    recorder.sample()
                if outcome.steps % stride == 0 or outcome.steps == steps:
                    outcome.drift = max(outcome.drift, _drift(sim))
                    if not np.any(sim.health()):
                        break
                bar.update(outcome.steps)
    except SimulationError as error:
        outcome.failure = error
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.wall = time.perf_counter() - start
    outcome.simulated = _time(sim)
    outcome.energy_end = _energy(sim)
    return outcome


def _time(sim: Simulation) -> float:
    """Time of the worlds that run, s: those that failed stand still at their last good state."""
    return float(np.max(sim.read("sim.time", numpy=True)))


def _energy(sim: Simulation) -> float:
    parts = (sim.read(f"sim.{kind}_energy", numpy=True) for kind in ("kinetic", "potential"))
    return float(sum(np.ravel(part)[0] for part in parts))


def _drift(sim: Simulation) -> float:
    drift = np.asarray(sim.read("sim.joint_drift", numpy=True))
    return float(np.max(drift, initial=0.0))


def _progress() -> AbstractContextManager[Progress | None]:
    """A progress bar on stderr; none where nobody watches (pipes, log files)."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
        console=error_console(),
        transient=True,
    )


class _Bar:
    """Progress of one run; redraws seldom, because a redraw costs as much as many steps."""

    def __init__(self, progress: Progress | None, name: str, steps: int) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=steps) if progress else None
        self._next = time.perf_counter()

    def update(self, done: int) -> None:
        if self._progress is None or self._task is None or time.perf_counter() < self._next:
            return
        self._progress.update(self._task, completed=done)
        self._next = time.perf_counter() + _REDRAW
