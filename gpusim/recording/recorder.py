"""Recorder that stores the samples of chosen signals in memory, as arrays over time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.errors import ModelError
from gpusim.recording.formats.npz_file import NpzWriter
from gpusim.recording.formats.writer import Reading
from gpusim.recording.formats.writers import WRITERS, suffix_of
from gpusim.recording.samples import Recording
from gpusim.validate import matching, name_list

__all__ = ["Recorder", "Recording", "load_recording"]


class Recorder:
    """Recorder that samples signals while a simulation runs. Call :meth:`sample` whenever a sample is due.

    Args:
        sim: the simulation, or an object with ``num_worlds``, ``signals()`` and ``read(name, numpy=True)``.
        signals: signal names or patterns with wildcards, see :meth:`Simulation.observe`.
        capacity: initial buffer capacity in samples. The recorder doubles a full buffer.

    Raises:
        UnknownNameError: a signal does not exist.
    """

    def __init__(self, sim: Any, signals: str | Iterable[str], capacity: int = 256) -> None:
        known = sim.signals()
        names = [name for given in name_list("signals", signals) for name in matching("signal", given, known)]
        self._sim = sim
        self._count = 0
        self._time = np.empty(max(capacity, 1))
        self._buffers: dict[str, np.ndarray | None] = dict.fromkeys(names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the recorded signals, in the given order."""
        return tuple(self._buffers)

    def __len__(self) -> int:
        return self._count

    def sample(self) -> None:
        """Append the current time and the current value of every signal.

        For a failed world, the recorder stores the values of the last valid state.
        """
        if self._count == len(self._time):
            self._make_room()
        self._time[self._count] = np.max(self._sim.read("sim.time", numpy=True))
        for name, buffer in self._buffers.items():
            value = np.asarray(self._sim.read(name, numpy=True))
            if buffer is None:  # the first value determines shape and type
                buffer = np.empty((len(self._time), *value.shape), dtype=value.dtype)
                self._buffers[name] = buffer
            buffer[self._count] = value
        self._count += 1

    def recording(self) -> Recording:
        """Return all samples until now, as read-only views. Later samples do not change these views."""
        signals = {
            name: np.empty((0, self._sim.num_worlds)) if buffer is None else _view(buffer, self._count)
            for name, buffer in self._buffers.items()
        }
        return Recording(_view(self._time, self._count), signals)

    def _make_room(self) -> None:
        # Doubling keeps the average cost of a sample constant for any length of the run.
        self._time = _doubled(self._time)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = _doubled(buffer)


def _view(buffer: np.ndarray, count: int) -> np.ndarray:
    view = buffer[:count]
    view.flags.writeable = False
    return view


def _doubled(buffer: np.ndarray) -> np.ndarray:
    resized = np.empty((2 * len(buffer), *buffer.shape[1:]), dtype=buffer.dtype)
    resized[: len(buffer)] = buffer
    return resized


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a finished or unfinished recording of signals.

    Args:
        path: NAME.npz, .parquet, .mcap, .csv or .rrd. For a recording that is running or was interrupted, the path also
            ends in ".part".

    Raises:
        ModelError: the file is missing, damaged or not a recording, or the library for its format is not installed.
    """
    file = validate.path("load_recording", "path", path)
    try:
        return WRITERS.get(suffix_of(file), NpzWriter).read(file)
    except ModelError:
        raise
    except Reading as error:
        hint = "give a file from 'gpusim run --out' or gpusim.record"
        raise ModelError(f"recording {str(path)!r} cannot be read ({error}); {hint}") from error
