"""Writing of signals. The writer checks the values, and writes all poses and velocities together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import is_on_device, on_host
from gpusim.errors import callers_level
from gpusim.reference.signals import writes
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SharedWriter, Signal
from gpusim.typing import Array

MAY_BE_INFINITE = (
    "limit_lower", "limit_upper", "cone_limit", "effort_limit", "hose_bulk_modulus", "compensator_pressure",
    "flow_limit", "power", "no_load_speed", "bump_length", "droop_length",
)  # fmt: skip
"""Parameters that may be infinite."""
JUMPS = 3
"""The writer warns if the written velocities of a kinematic body change in this many consecutive steps."""
MAX_NAMED = 6
"""Maximum number of signals that a message lists for one wildcard."""
_LIMITS = (".limit_lower", ".limit_upper")
_QUATERNIONS = ("orientation", "quaternion", "pose")


class Part:
    """Entry of a write: one signal, or all signals that match a wildcard.

    Raises:
        ModelError: a signal is not writable.
    """

    def __init__(self, name: str, signals: Sequence[Signal]) -> None:
        self.name, self.signals = name, signals
        for signal in signals:
            if not signal.info.writable:
                element = f"signal '{signal.info.name}'"
                raise validate.fail(element, "cannot be written", "write a signal that signals() lists as writable")
        self.sizes = [math.prod(s.info.shape) for s in signals]
        self.size = sum(self.sizes)
        self.shape = signals[0].info.shape if len(signals) == 1 else (self.size,)
        self.moves = all(s.target is not None for s in signals)
        self.on_device = all(s.target is not None or s.parameter is not None for s in signals)
        self.endless = signals[0].info.name.rpartition(".")[2].startswith(MAY_BE_INFINITE)

    def values(self, value: Any, count: int) -> Array:
        """Return the values for ``count`` worlds as a new array, with one row of numbers per world.

        Raises:
            ModelError: the values have a wrong shape, or a value is not finite.
        """
        shape, element = (count, *self.shape), f"signal '{self.name}'"
        filled = validate.array(element, on_host(value))
        if filled.shape == (count, 1) and self.size == 1:  # a wildcard that matches one signal
            filled = filled.reshape(shape)
        if filled.shape != shape:
            try:
                filled = np.array(np.broadcast_to(filled, shape))
            except ValueError:
                fit = f"{count} worlds of shape {self.shape}{self._matched()}"
                rule = f"value of shape {filled.shape} does not fit {fit}"
                raise validate.fail(element, rule, "give one value, or one for each chosen world") from None
        total = filled.sum()
        if not math.isfinite(total):
            unset = bool(np.isnan(filled).any())
            if unset or not self.endless:
                what = "NaN" if unset else "infinite"
                raise validate.fail(element, f"value {value!r} is {what}", "give finite numbers")
        return filled.reshape(count, self.size)

    def device_values(self, value: Any, count: int) -> Any:
        """Return the values as an array with 1 or ``count`` rows. Device values are not copied or checked.

        Raises:
            ModelError: the values have a wrong shape, or a host value is not finite.
        """
        if not is_on_device(value):
            return self.values(value, count)
        each, shape = ((count, *self.shape), (count, self.size)), tuple(value.shape)
        if shape not in (self.shape, (1, *self.shape), *each):
            rule = f"an array of shape {shape} does not fit {count} worlds of shape {self.shape}"
            raise validate.fail(f"signal '{self.name}'", rule, "give one value, or one for each chosen world")
        return value.reshape(count if shape in each else 1, -1)

    def _matched(self) -> str:
        """Return a text for messages that lists the signals that match a wildcard."""
        names = [s.info.name for s in self.signals]
        if names == [self.name]:
            return ""
        more = ", ..." if len(names) > MAX_NAMED else ""
        return f", the numbers of {len(names)} signals: {', '.join(names[:MAX_NAMED])}{more}"

    def split(self, values: Array) -> list[tuple[Signal, Array]]:
        """Return the pairs (signal, values of this signal), with values (count, *shape)."""
        if len(self.signals) == 1:
            return [(self.signals[0], values.reshape(len(values), *self.shape))]
        ends = np.cumsum(self.sizes)
        each = zip(self.signals, ends - self.sizes, ends, strict=True)
        return [(s, values[:, a:b].reshape(len(values), *s.info.shape)) for s, a, b in each]


class StateWriter:
    """Writer of a fixed list of signals. The simulation creates one writer for each list."""

    def __init__(self, runtime: Runtime, parts: Sequence[Part]) -> None:
        self._runtime, self._parts = runtime, parts
        targets, start = [], 0
        self._quaternions: list[tuple[str, int]] = []
        for part in parts:
            for signal, size in zip(part.signals, part.sizes, strict=True):
                if signal.target is None:
                    continue
                targets.append((signal.target, start))
                start += size
                if signal.target.what in _QUATERNIONS:
                    self._quaternions.append((signal.info.name, start - 4))
        self._operations = writes.plan(runtime.now, targets) if targets else np.zeros((0, 4), np.int32)
        self._jumps = JumpWatch(runtime, [target for target, _ in targets])
        names = {signal.info.name for part in parts for signal in part.signals}
        self._ranges = [name for name in names if _LIMITS[1] in name and name.replace(*_LIMITS[::-1]) in names]
        """Names of upper limits whose lower limits are also in this write."""

    @property
    def on_device(self) -> bool:
        """Return whether kernels can write all signals of this writer: poses, velocities and most parameters."""
        return all(part.on_device for part in self._parts)

    def write_on_device(self, values: Sequence[Any], worlds: Any) -> None:
        """Write on the GPU. Device values are not checked.

        ``worlds`` contains n indices (n,), or it is a device mask (num_worlds,). With a mask, each array
        in ``values`` has a row for every world, and only the rows of masked worlds are written.
        """
        backend: Any = self._runtime.backend  # the CUDA backend
        columns = list[Any]()
        checked = [part.device_values(value, len(worlds)) for part, value in zip(self._parts, values, strict=True)]
        for part, checked_values in zip(self._parts, checked, strict=True):
            ends = np.cumsum(part.sizes)
            for signal, start, end in zip(part.signals, ends - part.sizes, ends, strict=True):
                if signal.parameter is None:
                    columns.append(checked_values[:, start:end])
                else:
                    backend.write_columns(*signal.parameter, checked_values[:, start:end], worlds)
        if columns:
            backend.write_operations(self._operations, columns, worlds)
        self._runtime.invalidate()

    def write(self, values: Sequence[Any], worlds: Array, of_all: bool = False) -> None:
        """Write values in n worlds ``worlds`` (n,). If ``of_all`` is True, ``values`` has rows for all worlds."""
        count = self._runtime.num_worlds if of_all else worlds.size
        checked = [part.values(value, count) for part, value in zip(self._parts, values, strict=True)]
        if of_all:
            checked = [checked_values[worlds] for checked_values in checked]
        moved: list[Array] = []
        others: list[tuple[Signal, Array]] = []
        for part, checked_values in zip(self._parts, checked, strict=True):
            if part.moves:
                moved.append(checked_values)
                continue
            for signal, value in part.split(checked_values):
                if signal.target is None:
                    others.append((signal, value))
                else:
                    moved.append(value.reshape(worlds.size, math.prod(signal.info.shape)))
        columns = moved[0] if len(moved) == 1 else np.concatenate([np.zeros((worlds.size, 0)), *moved], axis=1)
        for name, at in self._quaternions:
            if np.any(rotations.norm(columns[:, at : at + 4]) < 1e-12):
                raise validate.fail(
                    f"signal '{name}'", "value is the zero quaternion", "give a unit quaternion (x, y, z, w)"
                )
        for signal, value in self._limits_in_order(others, worlds) if self._ranges else others:
            assert signal.write is not None
            if signal.shared is None:
                signal.write(worlds, value)
        for write, together in _shared(others).items():
            write(worlds, together)
        self._jumps.written(columns)
        if moved and not self._runtime.backend.write_operations(self._operations, columns, worlds):
            writes.run(self._runtime.now, self._operations, columns, worlds)
        self._runtime.invalidate()

    def _limits_in_order(self, others: list[tuple[Signal, Array]], worlds: Array) -> list[tuple[Signal, Array]]:
        """Order the writes of position limits, so that no write makes a lower limit exceed its upper limit.

        Raises:
            ModelError: a new lower limit is above the new upper limit. The simulation is then unchanged.
        """
        named = {signal.info.name: (signal, value) for signal, value in others}
        first = []
        for name in self._ranges:
            (upper, high), (lower, low) = named[name], named[name.replace(*_LIMITS[::-1])]
            if np.any(low > high):
                rule = f"value {low[low > high][0]:g} is above that of limit_upper, {high[low > high][0]:g}"
                raise validate.fail(f"signal '{lower.info.name}'", rule, "swap them")
            first.append((lower, np.minimum(low, upper.read()[worlds])))
        return first + sorted(others, key=lambda entry: _LIMITS[0] in entry[0].info.name)


def _shared(others: list[tuple[Signal, Array]]) -> dict[SharedWriter, dict[str, Array]]:
    """Group actuator parameters by writer. Return a dict {parameter name: values} for each writer."""
    found: dict[SharedWriter, dict[str, Array]] = {}
    for signal, value in others:
        if signal.shared is not None:
            write, name = signal.shared
            found.setdefault(write, {})[name] = value
    return found


class JumpWatch:
    """Monitor that warns about velocity jumps of kinematic bodies, in models with sites."""

    def __init__(self, runtime: Runtime, targets: Sequence[writes.Target]) -> None:
        bodies = runtime.model.bodies
        written = [bodies[t.index] for t in targets if t.what in ("linear", "angular")]
        labels = [body.label for body in written if body.kinematic]
        self._runtime, self._label = runtime, labels[0] if labels and runtime.model.sites else ""
        self._streak, self._step, self._values = 0, -1, np.zeros((0, 0))

    def written(self, values: Array) -> None:
        """Check the values of the next write for velocity jumps."""
        if not self._label:
            return
        continues = self._runtime.steps == self._step + 1 and not np.array_equal(values, self._values)
        self._streak = self._streak + 1 if continues else 0
        self._step, self._values = self._runtime.steps, values.copy()
        if self._streak == JUMPS:
            warnings.warn(
                f"body '{self._label}' is kinematic and its velocity jumps by a write in every step: its own"
                " accelerometer misses that, and with substeps those on its load; move it by add_motion on a joint",
                stacklevel=callers_level(),
            )
            self._label = ""


def chosen_worlds(element: str, world: Any, num_worlds: int) -> Array:
    """Return world indices. ``world`` is None (all worlds), an index, a list of indices, or a mask (num_worlds,).

    Raises:
        ModelError: a world does not exist. The message contains ``element``.
    """
    if world is None:
        return np.arange(num_worlds)
    try:
        chosen = np.asarray(on_host(world))
    except (ValueError, TypeError, OverflowError):  # lists of different lengths
        chosen = np.empty((0, 0))
    if chosen.dtype == bool and chosen.shape == (num_worlds,):
        return np.flatnonzero(chosen)
    if chosen.dtype == bool and chosen.ndim == 1:
        rule = f"the mask has {chosen.size} entries, there are {num_worlds} worlds"
        raise validate.fail(element, rule, "give one for each world")
    indices = np.atleast_1d(chosen) if chosen.shape != (0,) else np.zeros(0, np.int64)
    whole = indices.dtype.kind in "iu" and indices.ndim == 1
    if not whole or (indices.size and not 0 <= indices.min() <= indices.max() < num_worlds):
        raise validate.fail(
            element,
            f"world = {validate.shown(world)} is not among {num_worlds} worlds",
            "give None, a number from 0, a list of numbers, or a mask of shape (num_worlds,)",
        )
    return indices
