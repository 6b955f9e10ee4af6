"""Guard against two threads that advance one simulation at the same time."""

from __future__ import annotations

import threading

from gpusim.errors import SimulationError


class OneThread:
    """Context manager that raises an error if another thread is inside.

    Two threads that step one simulation would write to the same arrays, with a wrong state as the result.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise SimulationError(
                "Simulation.step: another step of this simulation is running; step it from one thread, or use a lock"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()
