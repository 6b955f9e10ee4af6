"""Real-time scheduling of the calling thread."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gpusim import validate

_LOCK_ALL = 3
"""Flags MCL_CURRENT and MCL_FUTURE of ``mlockall``, combined."""


@contextmanager
def realtime_thread(priority: int = 50) -> Iterator[list[str]]:
    """Run a ``with`` block with the scheduler SCHED_FIFO and locked memory.

    Args:
        priority: priority of SCHED_FIFO, 1 to 99.

    Yields:
        One line for each setting that the system does not allow.

    Raises:
        ModelError: the priority is out of range.
    """
    if not 1 <= validate.number("realtime", "priority", priority) <= 99:
        raise validate.fail("realtime", f"priority = {priority} is not within 1 to 99", "give e.g. 50")
    notes: list[str] = []
    with ExitStack() as undo:
        _use_fifo(int(priority), undo, notes)
        _lock_memory(undo, notes)
        yield notes


def _use_fifo(priority: int, undo: ExitStack, notes: list[str]) -> None:
    if not sys.platform.startswith("linux"):
        notes.append("no SCHED_FIFO: this system is not Linux")
        return
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError as error:
        limit = "set 'rtprio' in /etc/security/limits.conf, or give Python CAP_SYS_NICE"
        notes.append(f"no SCHED_FIFO: {error.strerror}; {limit}")
    else:
        undo.callback(os.sched_setscheduler, 0, before, parameters)


def _lock_memory(undo: ExitStack, notes: list[str]) -> None:
    if not sys.platform.startswith("linux"):
        notes.append("memory is not locked: this system is not Linux")
        return
    import resource

    limit = "set 'memlock unlimited' in /etc/security/limits.conf"
    unlimited = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
    if not unlimited and os.geteuid() != 0:  # if the system limits locked memory, later allocations would fail
        notes.append(f"memory is not locked: it is limited; {limit}")
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_LOCK_ALL):
        notes.append(f"memory is not locked: {os.strerror(ctypes.get_errno())}; {limit}")
    else:
        undo.callback(libc.munlockall)
