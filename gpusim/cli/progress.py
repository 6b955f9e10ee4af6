"""Progress of long work on stderr: a bar in a terminal, and a plain line now and then in a pipe or a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from gpusim.cli.console import error_console, note

if TYPE_CHECKING:
    from rich.progress import Progress

FIRST, EVERY = 10.0, 30.0
"""Wall time until the first line, and from one to the next, s: short work stays silent."""
_REDRAW = 0.1
"""Seconds of wall time between two redraws of the bar, because one costs as much as many steps."""
_UNITS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"))

Clock = Callable[[], float]
clock: Clock = time.perf_counter
"""Wall time, s; tests put their own here."""


class Report(Protocol):
    """Whoever tells how far some work is."""

    def update(self, done: int) -> None:
        """So many pieces are done."""


class Lines:
    """Plain lines: "pile: 12 %, 3.4 s simulated, about 20 min left".

    Args:
        name: of the work.
        total: pieces that there are to do, at least 1.
        told: what is reached after some pieces, in words.
        write: takes the lines.
        clock: wall time, s.
    """

    def __init__(
        self, name: str, total: int, told: Callable[[int], str], write: Callable[[str], None], clock: Clock
    ) -> None:
        self._name, self._total, self._told = name, total, told
        self._write, self._clock = write, clock
        self._start = clock()
        self._next = self._start + FIRST

    def update(self, done: int) -> None:
        """See :class:`Report`; writes a line where one is due."""
        now = self._clock()
        if now < self._next or not done:
            return
        self._next = now + EVERY
        left = (now - self._start) * (self._total - done) / done
        share = 100.0 * done / self._total
        percent = f"{share:.3g}" if share >= 0.01 else "less than 0.01"
        self._write(f"{self._name}: {percent} %, {self._told(done)}, about {spoken(left)} left")


class _Bar:
    """A bar in a terminal."""

    def __init__(self, progress: Progress, name: str, total: int, clock: Clock) -> None:
        self._progress, self._clock = progress, clock
        self._task = progress.add_task(name, total=total)
        self._next = clock()

    def update(self, done: int) -> None:
        """See :class:`Report`."""
        now = self._clock()
        if now >= self._next:
            self._progress.update(self._task, completed=done)
            self._next = now + _REDRAW


@contextmanager
def reported(name: str, total: int, told: Callable[[int], str]) -> Iterator[Report]:
    """Tell on stderr how far some work is; see :class:`Lines` for the arguments."""
    if not sys.stderr.isatty():
        yield Lines(name, total, told, note, clock)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn())
    shown = Progress(TextColumn("{task.description}"), *columns, console=error_console(), transient=True)
    with shown:
        yield _Bar(shown, name, total, clock)


def spoken(seconds: float) -> str:
    """A length of time with two digits, in the unit that suits it."""
    for size, unit in _UNITS:
        if seconds >= 2.0 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{seconds:.0f} s"
