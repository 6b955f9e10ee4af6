"""Real-time loops with absolute deadlines, for hardware in the loop."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.cosim.realtime import realtime_thread
from gpusim.errors import unknown_name

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

OVERRUNS = ("catch_up", "skip")
_NS = 1e9
_BINS_IN_OCTAVE = 32
"""Number of histogram bins per octave. A bin is 2.2 % wide."""
_BINS = 40 * _BINS_IN_OCTAVE


@dataclass(frozen=True)
class Spread:
    """Minimum, mean, maximum and 99th percentile of many durations (s), such as the durations of all cycles.

    Attributes:
        min, mean, max: minimum, mean and maximum of all durations.
        p99: 99th percentile of the durations, rounded up by at most 2.2 %.
    """

    min: float = 0.0
    mean: float = 0.0
    p99: float = 0.0
    max: float = 0.0

    def __str__(self) -> str:
        """Return minimum, mean, maximum and 99th percentile in microseconds, as text."""
        numbers = (self.min, self.mean, self.p99, self.max)
        parts = zip(("min", "mean", "99 %", "max"), numbers, strict=True)
        return "  ".join(f"{name} {1e6 * number:.1f}" for name, number in parts) + "  us"


class _Durations:
    """Histogram of durations."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, np.int64)
        self._sum, self._min, self._max, self._number = 0, 1 << 62, 0, 0

    def add(self, ns: int) -> None:
        self._counts[min(int(_BINS_IN_OCTAVE * math.log2(max(ns, 1))), _BINS - 1)] += 1
        self._sum += ns
        self._number += 1
        self._min, self._max = min(self._min, ns), max(self._max, ns)

    def spread(self) -> Spread:
        if not self._number:
            return Spread()
        index = int(np.searchsorted(np.cumsum(self._counts), 0.99 * self._number))
        bound = min(2.0 ** ((index + 1) / _BINS_IN_OCTAVE), self._max)
        return Spread(self._min / _NS, self._sum / self._number / _NS, bound / _NS, self._max / _NS)


@dataclass(frozen=True)
class ClockReport:
    """Result of a clock loop.

    Attributes:
        period: time from one deadline to the next (s).
        cycles: number of cycles that ran.
        overruns: number of cycles that ended after the next deadline.
        lost: number of skipped deadlines, which is 0 with ``overrun="catch_up"``.
        late: statistics of the time from a deadline to the beginning of the cycle.
        work: statistics of the duration of a cycle (callback and steps).
        wall: duration of the loop (s).
        notes: one line for each real-time setting that the system does not allow.
    """

    period: float
    cycles: int
    overruns: int
    lost: int
    late: Spread
    work: Spread
    wall: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the report as lines of text."""
        return "\n".join([
            f"{self.cycles} cycles of {1e3 * self.period:g} ms in {self.wall:.3f} s, {self.overruns} overruns, "
            f"{self.lost} lost",
            f"late  {self.late}",
            f"work  {self.work}",
            *(f"note: {note}" for note in self.notes),
        ])  # fmt: skip


class StepClock:
    """Clock with deadlines at ``start + k * period`` for integer k. A late cycle does not shift later deadlines.

    Args:
        period: time from one deadline to the next (s).
        overrun: policy for cycles that end after the next deadline. With "catch_up", the next cycles begin immediately
            until the loop is on time again. With "skip", the clock skips the missed deadlines.
        spin: busy-wait time (s) before each deadline. The thread sleeps until the busy-wait begins.
        clock: function that returns a monotonic time (ns).
        sleep: function that waits for a number of seconds.

    Raises:
        UnknownNameError: the overrun policy is unknown.
        ModelError: the period is not positive, or the spin is negative.
    """

    def __init__(
        self,
        period: float,
        overrun: str = "catch_up",
        spin: float = 5e-5,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not isinstance(overrun, str) or overrun not in OVERRUNS:
            raise unknown_name("overrun policy", str(overrun), OVERRUNS)
        self._period = _NS * validate.positive("clock", "period", period)
        self._spin = int(min(_NS * validate.not_negative("clock", "spin", spin), 1e18))
        self._skips, self._clock, self._sleep = overrun == "skip", clock, sleep
        self._late, self._work = _Durations(), _Durations()
        self._next, self.cycles, self.overruns, self.lost = 0, 0, 0, 0
        self._start = self._began = self._ended = 0
        self._open = False

    @property
    def deadlines(self) -> int:
        """Number of deadlines so far, including skipped deadlines."""
        return self._next

    def wait(self) -> None:
        """End the current cycle and wait for the next deadline.

        The first call returns immediately and sets the first deadline.
        """
        if not self.cycles:
            self._start = self._clock()
        self.end()
        due = self._due(self._next)
        while (remaining := due - self._clock()) > self._spin:
            self._sleep((remaining - self._spin) / _NS)
        while (now := self._clock()) < due:
            pass
        self._late.add(now - due)
        self._next += 1
        self.cycles += 1
        self._began, self._open = now, True

    def end(self) -> None:
        """End the current cycle without waiting for the next deadline. :meth:`wait` also ends the cycle."""
        if not self._open:
            return
        now, self._open = self._clock(), False
        self._work.add(now - self._began)
        self._ended = now
        if now <= self._due(self._next):
            return
        self.overruns += 1
        if self._skips:
            number = math.ceil((now - self._start) / self._period)
            self.lost += number - self._next
            self._next = number

    def _due(self, number: int) -> int:
        return self._start + round(number * self._period)

    def report(self, notes: tuple[str, ...] = ()) -> ClockReport:
        """Return the statistics of all cycles that have ended."""
        wall = (self._ended - self._start) / _NS if self.cycles else 0.0
        late, work = self._late.spread(), self._work.spread()
        return ClockReport(self._period / _NS, self.cycles, self.overruns, self.lost, late, work, wall, notes)


def run_clock(
    sim: Simulation,
    callback: Callable[[Simulation, float], Any] | None = None,
    *,
    duration: float | None = None,
    rate: float | None = None,
    overrun: str = "catch_up",
    spin: float = 5e-5,
    realtime: bool = True,
    priority: int = 50,
) -> ClockReport:
    """Run a simulation in real time, for hardware in the loop.

    Each cycle waits for its deadline, calls ``callback``, and steps. The loop ends early if all worlds failed. Python's
    garbage collector is disabled while the loop runs.

    Args:
        sim: the simulation.
        callback: function ``callback(sim, time)`` that each cycle calls before the steps, with the simulated time (s).
            For example, the function can write outputs to the hardware and read commands. The loop ends if the function
            returns False, or an array that is False for all worlds.
        duration: duration of the loop in real time (s), or None to run until the callback returns False.
        rate: cycles per second, or None for one step per cycle.
        overrun: policy for cycles that end after the next deadline. With "catch_up", the next cycles begin immediately
            until the loop is on time again. With "skip", the loop skips the missed deadlines, and the simulation falls
            behind real time.
        spin: busy-wait time (s) before each deadline. The thread sleeps until the busy-wait begins.
        realtime: use the scheduler SCHED_FIFO and lock the memory, if the system allows.
        priority: priority of SCHED_FIFO, 1 to 99.

    Returns:
        Report of lateness, overruns and lost deadlines.

    Raises:
        ModelError: the period is not a multiple of the step size, or an argument is invalid.
        UnknownNameError: the overrun policy is unknown.
    """
    validate.simulation("run_clock", sim)
    validate.flag("run_clock", "realtime", realtime)
    steps = steps_in_cycle("run_clock", sim, rate)
    period = steps * sim.config.dt
    clock = StepClock(period, overrun, spin)
    limit = math.inf
    if duration is not None:
        limit = round(min(validate.positive("run_clock", "duration", duration) / period, validate.GREATEST_COUNT))
    if callback is not None and not callable(callback):
        raise validate.fail("run_clock", f"callback = {callback!r} is not a function", "give a function of (sim, time)")
    if duration is None and callback is None:
        raise validate.fail("run_clock", "the loop never ends without a duration and a callback", "give one of them")
    with ExitStack() as stack:
        notes = stack.enter_context(realtime_thread(priority)) if realtime else []
        stack.enter_context(_no_garbage_collection())
        while clock.deadlines < limit:
            clock.wait()
            answer = None if callback is None else callback(sim, sim.time)
            if answer is False or (getattr(answer, "dtype", "") == "bool" and not np.any(answer)):  # also a NumPy bool
                break
            sim.step(steps)
            if not sim.health().any():
                break
        clock.end()
    return clock.report(tuple(notes))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable Python's garbage collector, which could delay a cycle."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def steps_in_cycle(element: str, sim: Simulation, rate: float | None) -> int:
    """Return the number of steps in a cycle at ``rate`` cycles per second, or 1 without a rate.

    Error messages start with ``element``.

    Raises:
        ModelError: the period is not a multiple of the step size.
    """
    if rate is None:
        return 1
    exact = 1.0 / (validate.positive(element, "rate", rate) * sim.config.dt)
    steps = round(min(exact, validate.GREATEST_COUNT))
    if steps < 1 or exact > steps + 0.5 or abs(exact - steps) > 1e-6 * exact:
        rule = f"rate = {rate:g} must be the step rate {1.0 / sim.config.dt:g} divided by a whole number"
        raise validate.fail(element, rule, f"give e.g. {1.0 / sim.config.dt / max(steps, 1):g}")
    return steps
