"""Deferred Ctrl-C, so that KeyboardInterrupt occurs only between two frames."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_PATIENCE = 3
"""Number of Ctrl-C signals after which KeyboardInterrupt occurs immediately."""


@contextmanager
def deferred_interrupts() -> Iterator[list[int]]:
    """Within a ``with`` block, catch the signals of Ctrl-C and append their numbers to the yielded list.

    The third signal raises KeyboardInterrupt immediately.
    """
    caught: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        if len(caught) >= _PATIENCE:
            raise KeyboardInterrupt

    former = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.default_int_handler:
                former[number] = signal.signal(number, keep)
    try:
        yield caught
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
