"""Progress reports on stderr for long tasks: a bar in a terminal, or plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from gpusim.cli.console import error_console, note

FIRST, EVERY = 10.0, 30.0
"""Wall times (s): until the first progress line, and between two progress lines."""
_REDRAW = 0.1
"""Wall time between two updates of the bar, s."""

clock: Callable[[], float] = time.perf_counter
"""Clock for wall time, s."""


class Report:
    """Rate limiter for progress reports.

    The first call of ``show(done, wall)`` is after ``first`` seconds of wall time. Later calls are at least ``every``
    seconds apart.
    """

    def __init__(self, show: Callable[[int, float], None], first: float, every: float) -> None:
        self._show, self._every = show, every
        self._start = clock()
        self._next = self._start + first

    def update(self, done: int) -> None:
        """Report that ``done`` items are finished."""
        now = clock()
        if done and now >= self._next:
            self._next = now + self._every
            self._show(done, now - self._start)


@contextmanager
def reported(name: str, total: int, printed: Callable[[int], str]) -> Iterator[Report]:
    """Report progress on stderr: a bar in a terminal, else lines such as "pile: 12 %, 3.4 s simulated, ...".

    The function ``printed`` gets the number of finished items and returns a text such as "3.4 s simulated".

    Args:
        name: name of the task that is in progress.
        total: number of items, at least 1.
    """
    if not sys.stderr.isatty():

        def line(done: int, wall: float) -> None:
            remaining = timedelta(seconds=round(wall * (total - done) / done))
            note(f"{name}: {100.0 * done / total:.3g} %, {printed(done)}, about {remaining} left")

        yield Report(line, FIRST, EVERY)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=error_console(), transient=True) as shown:
        task = shown.add_task(name, total=total)
        yield Report(lambda done, wall: shown.update(task, completed=done), 0.0, _REDRAW)
