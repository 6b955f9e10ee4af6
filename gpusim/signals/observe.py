"""Observations (lists of signals that one call reads into one array), and lists of commands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device
from gpusim.backends.kinds import kinds_of
from gpusim.description.step_plan import Reading
from gpusim.errors import unknown_name
from gpusim.reference.signals.quantities import numbers
from gpusim.signals.control_map import check_free, matchable_commands
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import Signal
from gpusim.typing import Array
from gpusim.validate import matching, name_list


def chosen_commands(runtime: Runtime, names: Any) -> list[str]:
    """Return the labels of the commands that match names or wildcards. See :func:`matchable_commands`."""
    given = name_list("commands", names, 1)
    return list(
        dict.fromkeys(label for name in given for label in matching("command", name, matchable_commands(runtime, name)))
    )


class Observation:
    """List of signals with their values in all worlds, as columns of one array.

    Create an observation with :meth:`gpusim.Simulation.observe`.

    Attributes:
        names: names of the signals, in order.
        slices: columns of each signal in ``array``, by name.
        array: values of the n signal components from the last :meth:`read`, (num_worlds, n). Each read overwrites
            ``array``. With the CUDA backend, the array is on the device. PyTorch, JAX and CuPy can use it without a
            copy (DLPack).
    """

    def __init__(self, runtime: Runtime, signals: Sequence[Signal], dtype: str = "float64") -> None:
        if not isinstance(dtype, str) or dtype not in ("float64", "float32"):
            raise unknown_name("dtype of an observation", str(dtype), ("float64", "float32"))
        self._runtime, self._single = runtime, dtype == "float32"
        self.array: Any = None
        self._numbers: Any = None
        self.names = [s.info.name for s in signals]
        self._compile(signals)

    def _compile(self, signals: Sequence[Signal]) -> None:
        """Prepare the kernel launches that fill ``array``."""
        runtime = self._runtime
        self._backend = runtime.backend
        self.slices: dict[str, slice] = {}
        entries: list[tuple[int, int, int, int]] = []
        self._host: list[tuple[Signal, slice]] = []
        groups: dict[int, tuple[Any, list[int], list[int]]] = {}
        known, width = numbers(kinds_of(runtime.model)), 0
        for signal in signals:
            size = math.prod(signal.info.shape)
            columns = self.slices[signal.info.name] = slice(width, width + size)
            width += size
            if signal.quantity is None:
                self._host.append((signal, columns))
                continue
            each = size // len(signal.at)
            _, at, columns_of_group = groups.setdefault(id(signal.quantity), (signal.quantity, [], []))
            for k, index in enumerate(signal.at):
                entries.append((known[id(signal.quantity)], index, columns.start + k * each, each))
                at.append(index)
            columns_of_group.extend(range(columns.start, columns.stop))
        self._groups = [(q, np.array(at), np.array(columns_of_group)) for q, at, columns_of_group in groups.values()]
        self._entries = np.array(entries, np.int32).reshape(-1, 4)
        self._numbers, self._launch = runtime.backend.observer(self._entries, width, self._numbers)
        if not self._single:
            self.array = self._numbers
        elif self.array is None:
            self.array = runtime.backend.memory.to_device(np.zeros(self._numbers.shape, np.float32))

    def read(self) -> Any:
        """Fill ``array`` with the values at the current time, and return ``array``."""
        if self._runtime.backend is not self._backend:  # a write has added an axis row (added_rows.py)
            self._compile(self._runtime.signal_list(self.names) if self.names else [])
        if self._launch is None:
            for quantity, at, columns in self._groups:
                self._numbers[:, columns] = quantity.read(self._runtime.now, at).reshape(self._runtime.num_worlds, -1)
        else:
            self._launch()
        for signal, span in self._host:
            self._numbers[:, span] = self._values(signal)
        if self._single:
            self.array[...] = self._numbers
        return self.array

    def reading(self, samples: int | None = None) -> Reading | None:
        """Return the data that the backend needs to read the signals between steps.

        ``samples`` is the number of samples of a new output array, or None to use ``array``. The result is None if
        Python must read one of the signals.
        """
        kept = list[tuple[str, int, int]]()
        for signal, columns in self._host:
            if signal.kept is None:
                return None
            name, at = signal.kept
            kept += [(name, source, columns.start + k) for k, source in enumerate(at)]
        array = self._numbers if samples is None else np.zeros((samples, *self._numbers.shape))
        return Reading(self._entries, kept, array)

    def _values(self, signal: Signal) -> Any:
        """Return the values of a signal that only the host can read, (num_worlds, n), on the device of ``array``."""
        if signal.kept is not None:
            return self._runtime.backend.memory.kept_columns(*signal.kept)
        values = np.asarray(signal.read(), np.float64).reshape(self._runtime.num_worlds, -1)
        return self._runtime.backend.memory.to_device(values)

    __call__ = read


class Command:
    """List of n commands with their values in all worlds, as columns of one array.

    Create a list with :meth:`gpusim.Simulation.command`.

    Attributes:
        names: labels of the commands, in order.
        array: float64 array (num_worlds, n) on the host. :meth:`write` without an argument writes the values in
            ``array``.
    """

    def __init__(self, runtime: Runtime, names: Sequence[str]) -> None:
        self._runtime, self.names = runtime, list(names)
        for name in self.names:
            check_free(runtime, name)
        columns = np.array([runtime.model.controls[name] for name in names], np.int64)
        side_by_side = columns.size > 0 and np.array_equal(columns, np.arange(columns[0], columns[0] + columns.size))
        self._columns: Any = slice(int(columns[0]), int(columns[-1]) + 1) if side_by_side else columns
        self.array: Array = np.array(runtime.backend.memory.read_control()[:, self._columns])

    def write(self, values: Any = None) -> None:
        """Write the commands. The commands stay constant until you change them.

        Args:
            values: array that broadcasts to (num_worlds, n), on the host or on the device (any DLPack array). Default:
                ``array``. Writing device arrays needs no host synchronization.

        Raises:
            ModelError: the shape is invalid, or a host value is not finite.
        """
        given = self.array if values is None else values
        if type(given) is np.ndarray or not is_on_device(given):
            given = self._checked(given)
        self._runtime.backend.memory.write_commands(self._columns, given)
        self._runtime.invalidate()

    def _checked(self, given: Any) -> Array:
        """Check host values, and return them as an array (num_worlds, n)."""
        worlds, names = self._runtime.num_worlds, self.names
        element = f"commands {names[0]} ..."
        values = given if type(given) is np.ndarray and given.dtype == np.float64 else validate.array(element, given)
        if values.shape != (worlds, len(names)):
            try:
                values = np.broadcast_to(values, (worlds, len(names)))
            except ValueError:
                rule = f"values of shape {values.shape} do not fit {worlds} worlds and {len(names)} commands"
                raise validate.fail(element, rule, "give (num_worlds, n), or what broadcasts to it") from None
        total = values.sum()
        if not math.isfinite(total):
            bad = names[int(np.argmin(np.isfinite(values).all(axis=0)))]
            raise validate.fail(f"command '{bad}'", "value is not finite", "give finite numbers")
        return values
