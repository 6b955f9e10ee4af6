"""Recorder that samples chosen signals of a simulation and keeps them as arrays over time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gpusim.errors import ModelError, unknown_name
from gpusim.output_files import atomic_file, check_output_file


@dataclass(frozen=True)
class Recording:
    """Signals over time.

    Attributes:
        time: (num_samples,) seconds.
        signals: one array per signal name, shape (num_samples, num_worlds) or (num_samples, num_worlds, k).
    """

    time: np.ndarray
    signals: Mapping[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the samples of the signal ``name``. Raise UnknownNameError if it was not recorded."""
        if name not in self.signals:
            raise unknown_name("recorded signal", name, self.signals)
        return self.signals[name]

    def __len__(self) -> int:
        return len(self.time)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``time`` and one array per signal to an NPZ file, whole or not at all.

        Raises:
            ModelError: the path does not end in .npz or its folder cannot be written.
            OSError: the disk fails while writing.
        """
        target = check_output_file(path, (".npz",))
        arrays: dict[str, Any] = {"time": self.time, **self.signals}
        with atomic_file(target) as stream:
            np.savez(stream, **arrays)


class Recorder:
    """Sampler of signals of a simulation. Call :meth:`sample` whenever a sample is due.

    Args:
        sim: the simulation (anything with ``num_worlds``, ``signals()`` and ``read(name, numpy=True)``).
        signals: names of the signals to record; duplicates count once.
        capacity: initial buffer capacity in samples; more samples fit, at the cost of a copy.

    Raises:
        UnknownNameError: a signal that the simulation does not have.
    """

    def __init__(self, sim: Any, signals: Iterable[str], capacity: int = 256) -> None:
        names = list(dict.fromkeys(signals))
        known = sim.signals()
        for name in names:
            if name not in known:
                raise unknown_name("signal", name, known)
        self._sim = sim
        self._count = 0
        self._time = np.empty(max(capacity, 1))
        self._buffers: dict[str, np.ndarray | None] = dict.fromkeys(names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the recorded signals, in the order given."""
        return tuple(self._buffers)

    def __len__(self) -> int:
        return self._count

    def sample(self) -> None:
        """Append the current time and the current value of every signal.

        The time is that of the running worlds. A failed world stays at its last good state.
        """
        if self._count == len(self._time):
            self._make_room()
        self._time[self._count] = np.max(self._sim.read("sim.time", numpy=True))
        for name, buffer in self._buffers.items():
            value = np.asarray(self._sim.read(name, numpy=True))
            if buffer is None:  # shape and type are only known now
                buffer = np.empty((len(self._time), *value.shape), dtype=value.dtype)
                self._buffers[name] = buffer
            buffer[self._count] = value
        self._count += 1

    def recording(self) -> Recording:
        """Return everything sampled so far, as read-only views. Later samples do not change them."""
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
    larger = np.empty((2 * len(buffer), *buffer.shape[1:]), dtype=buffer.dtype)
    larger[: len(buffer)] = buffer
    return larger


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a recording that :meth:`Recording.save` or ``gpusim run --out`` wrote.

    Raises:
        ModelError: the file is missing, is not an NPZ file or holds no ``time``.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, BadZipFile) as error:
        message = f"recording {str(path)!r} cannot be read ({error}); give an NPZ file of 'gpusim run'"
        raise ModelError(message) from error
    if "time" not in arrays:
        raise ModelError(f"recording {str(path)!r} has no array 'time'; give an NPZ file of 'gpusim run'")
    time = arrays.pop("time")
    return Recording(time, arrays)
