"""Main loop of a session that is shown in a window, in browsers or in a Rerun viewer."""

from __future__ import annotations

import time
from collections.abc import Callable

from gpusim.viewer.window.interrupts import deferred_interrupts
from gpusim.viewer.window.pacing import Jitter, Pacer
from gpusim.viewer.window.session import Session


def run_session(
    session: Session,
    pacer: Pacer,
    frame: Callable[[float], None],
    duration: float | None = None,
    closed: Callable[[], bool] = lambda: False,
) -> Jitter:
    """Run a session in real time until ``session.quit()``.

    Args:
        session: the session.
        pacer: timer of the frames.
        frame: function that advances the session to a deadline (s, frame clock) and shows the new state.
        duration: stop after this time (s).
        closed: function that returns True after the user has closed the view.

    Returns:
        Statistics of the frames' lateness.

    Raises:
        SimulationError: the simulation failed.
        KeyboardInterrupt: Ctrl-C, between two frames.
    """
    with deferred_interrupts() as caught:
        frame(time.perf_counter())  # the first frame is slow, so the statistics exclude it
        session.skip()
        pacer.restart()
        first = time.perf_counter()
        while not (session.finished or closed()):
            deadline = pacer.wait()
            if caught:
                raise KeyboardInterrupt
            if duration is not None and deadline - first >= duration:
                break
            frame(deadline)
    return pacer.overall()
