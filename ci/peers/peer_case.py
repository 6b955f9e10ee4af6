"""Benchmark cases in peers (other simulators), and their results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

MIN_CHUNKS = 5
NOT_INSTALLED = "not installed"


@dataclass
class PeerRecord:
    """Results of a case in a peer. Times are microseconds for one step of all worlds.

    Attributes:
        peer, version: name and version of the package.
        case, worlds: the case that ran.
        step_us, spread, world_steps: as in ``runner.Record``.
        note: settings, or the reason for missing results.
        extra: additional results of the case. For a pile, ``extra`` contains the results of ``piles.figures``.
    """

    peer: str
    version: str = ""
    case: str = ""
    worlds: int = 0
    step_us: float = 0.0
    spread: float = 0.0
    world_steps: float = 0.0
    note: str = ""
    extra: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PeerCase:
    """Benchmark case in another simulator (a peer).

    Attributes:
        name, worlds: name of the mechanism and number of copies.
        advance: function ``advance(n)`` that runs n steps of all worlds and waits for their end.
        note: settings as text for the table.
        batch: minimum number of steps per call.
        figures: function ``figures(step_us)`` that returns additional results after the measurement.
        clock: function that returns the time (s).
    """

    name: str
    worlds: int
    advance: Callable[[int], None]
    note: str
    batch: int = 1
    figures: Callable[[float], dict[str, float]] | None = None
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class PeerModel:
    """A mechanism of a workload as MJCF.

    Attributes:
        workload, name: workload and name of the corresponding case.
        text: MJCF.
        commands: maximum absolute value of the random commands. Every world has different commands. They are constant,
            or change after every ``hold`` steps.
        settle, restart, hold: as in ``workloads.Case``.
        capacities: capacities of ``mujoco_warp`` for contacts and constraint rows per world, by default chosen by
            ``mujoco_warp``.
        note: integrator and solver, if they are not MuJoCo's defaults.
    """

    workload: str
    name: str
    text: str
    commands: float = 1.0
    settle: int = 0
    restart: int = 0
    hold: int = 0
    capacities: tuple[int, int] | None = None
    note: str = ""


def time_case(peer: str, case: PeerCase, seconds: float) -> PeerRecord:
    """Measure the time of a case in chunks of steps, for at least ``seconds``."""
    case.advance(case.batch)
    steps = case.batch
    while (spent := _spent(case, steps)) < 0.1 * seconds:
        steps *= max(2, min(8, int(0.1 * seconds / max(spent, 1e-9))))
    times: list[float] = []
    while sum(times) * steps < seconds or len(times) < MIN_CHUNKS:
        times.append(_spent(case, steps) / steps)
    low, median, high = np.percentile(times, (25.0, 50.0, 75.0))
    return PeerRecord(
        peer, package_version(peer), case.name, case.worlds, 1e6 * float(median), float((high - low) / median),
        case.worlds / float(median), case.note, case.figures(1e6 * float(median)) if case.figures else {},
    )  # fmt: skip


def _spent(case: PeerCase, steps: int) -> float:
    begin = case.clock()
    case.advance(steps)
    return case.clock() - begin


def package_version(name: str) -> str:
    """Return the version of a peer's package."""
    try:
        return version(name.replace("_", "-"))
    except PackageNotFoundError:
        return ""
