"""Observations: lists of signals that are read together into one array."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.errors import unknown_name
from gpusim.reference.quantities import numbers
from gpusim.sensors.signal import Signal
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def matching(kind: str, patterns: str | Sequence[str], known: Collection[str]) -> list[str]:
    """Names in the order of the patterns, those of a wildcard (fnmatch) in the order of ``known``; each once.

    Raises:
        UnknownNameError: a pattern that nothing matches; names near ones.
    """
    found = dict[str, None]()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        chosen = [pattern] if pattern in known else fnmatch.filter(known, pattern)
        if not chosen:
            raise unknown_name(kind, pattern, known)
        found.update(dict.fromkeys(chosen))
    return list(found)


class Observation:
    """Signals of all worlds side by side; made by :meth:`gpusim.Simulation.observe`.

    Attributes:
        names: the signals, in order.
        slices: columns of each signal in ``array``, by name.
        array: (num_worlds, n) as of the last :meth:`read`; float64, on the device with the cuda backend (any DLPack
            consumer takes it without a copy). Each read writes into this same array.
    """

    def __init__(self, sim: Simulation, signals: Sequence[Signal]) -> None:
        self._sim = sim
        self.names = [s.info.name for s in signals]
        self.slices: dict[str, slice] = {}
        entries: list[tuple[int, int, int, int]] = []
        self._host: list[tuple[Signal, slice]] = []
        groups: dict[int, tuple[Any, list[int], list[int]]] = {}
        width = 0
        for signal in signals:
            size = math.prod(signal.info.shape)
            columns = self.slices[signal.info.name] = slice(width, width + size)
            width += size
            if signal.quantity is None:
                self._host.append((signal, columns))
                continue
            each = size // len(signal.at)
            _, at, places = groups.setdefault(id(signal.quantity), (signal.quantity, [], []))
            for k, index in enumerate(signal.at):
                entries.append((numbers()[id(signal.quantity)], index, columns.start + k * each, each))
                at.append(index)
            places.extend(range(columns.start, columns.stop))
        self._forward = any(s.info.forward for s in signals)
        self._groups = [(q, np.array(at), np.array(places)) for q, at, places in groups.values()]
        self.array, self._launch = sim.backend.observer(np.array(entries, np.int32).reshape(-1, 4), width)

    def read(self) -> Any:
        """Fill ``array`` with the values at the current time.

        Returns:
            The array itself.
        """
        if self._launch is None:
            for quantity, at, columns in self._groups:
                self.array[:, columns] = quantity.read(self._sim.now, at).reshape(self._sim.num_worlds, -1)
        else:
            self._launch()
        for signal, columns in self._host:
            values = np.asarray(signal.read(), np.float64).reshape(self._sim.num_worlds, -1)
            self.array[:, columns] = self._sim.backend.to_device(values)
        return self.array

    __call__ = read


class Command:
    """Commands of all worlds side by side; made by :meth:`gpusim.Simulation.command`.

    Attributes:
        names: labels of the commands, in order.
        array: (num_worlds, n) float64 on the host, for the values; :meth:`write` without an argument takes it.
    """

    def __init__(self, sim: Simulation, names: Sequence[str]) -> None:
        self._sim, self.names = sim, list(names)
        columns = np.array([sim.model.controls[name] for name in names], np.int64)
        side_by_side = columns.size > 0 and np.array_equal(columns, np.arange(columns[0], columns[0] + columns.size))
        self._columns = slice(int(columns[0]), int(columns[-1]) + 1) if side_by_side else columns
        self.array: Array = np.array(sim.control.array[:, self._columns])

    def write(self, values: Any = None) -> None:
        """Give the commands; they hold until changed.

        Args:
            values: (num_worlds, n) or what broadcasts to it, on the host, or on the device (CuPy, PyTorch, whatever
                speaks DLPack), which takes no host synchronization; ``array`` if left out.

        Raises:
            ModelError: the shape does not fit, or, of values on the host, one is not finite.
        """
        self._sim.write_commands(self.names, self._columns, self.array if values is None else values)
