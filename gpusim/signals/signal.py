"""Signals with their descriptions, readers and writers, and the table of all signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.reference.signals.quantities import Quantity
from gpusim.reference.signals.state_reader import StateReader
from gpusim.reference.signals.writes import Target
from gpusim.typing import Array


@dataclass(frozen=True)
class SignalInfo:
    """Description of a signal.

    Attributes:
        shape: shape of the value in one world, such as () for a number and (3,) for a vector.
        writable: True if ``sim.write`` can write the signal.
        forward: True if reading the signal needs a trial step. All signals share one trial step per state.
        device: True if kernels can read the signal. Otherwise, the host reads it.
    """

    name: str
    shape: tuple[int, ...]
    unit: str
    doc: str
    writable: bool
    forward: bool = False
    device: bool = False


@dataclass(frozen=True)
class Signal:
    """Signal with its reader and writer.

    The function ``read`` returns (num_worlds, *shape) on the host. The function ``write`` takes the indices of n worlds
    (n,) and values (n, *shape). Kernels read the quantity ``quantity`` of the elements ``at``. ``quantity`` is None if
    only the host can read the signal. Poses and velocities have a ``target`` instead of ``write``.
    """

    info: SignalInfo
    read: Callable[[], Array]
    write: Callable[[Array, Array], None] | None = None
    quantity: Quantity | None = None
    at: tuple[int, ...] = ()
    target: Target | None = None
    kept: tuple[str, tuple[int, ...]] | None = None
    """Name and columns of the state array with the value."""
    shared: tuple[SharedWriter, str] | None = None
    """For actuator parameters: writer of all parameters of the actuator, and name of this parameter."""
    parameter: ParameterIndex | None = None
    """Location of the value, for parameters that a GPU can write."""


ParameterIndex = tuple[str, tuple[Any, ...]]
"""Name of a parameter array, and indices in the array of one world."""
SharedWriter = Callable[[Array, dict[str, Array]], None]
"""Function that writes parameters. Arguments: world indices (n,), dict from a parameter to values (n,)."""
Writer = Callable[[Array, Array], None]
Maker = Callable[[str], Signal]
"""Function that makes a signal from its name."""


class SignalsByName(Mapping[str, Signal]):
    """Mapping from signal names to signals, in the order of the model."""

    def __init__(self) -> None:
        self._entries: dict[str, Signal | Maker] = {}
        self._others: dict[str, str] = {}

    def __setitem__(self, name: str, entry: Signal | Maker) -> None:
        self._entries[name] = entry

    def also(self, name: str, other: str) -> None:
        """Add the alias ``other`` for the signal ``name``. Lists of signals exclude aliases."""
        self._others[other] = name

    def __getitem__(self, name: str) -> Signal:
        name = name if name in self._entries else self._others.get(name, name)
        entry = self._entries[name]
        if not isinstance(entry, Signal):
            entry = self._entries[name] = entry(name)
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class SignalTable:
    """Table of all signals of a simulation, by name.

    Args:
        now: reader of the state at the current time.
    """

    def __init__(self, now: StateReader) -> None:
        self.by_name = SignalsByName()
        self._now = now

    def add(
        self,
        name: str,
        shape: tuple[int, ...],
        unit: str,
        doc: str,
        read: Callable[[], Array],
        write: Writer | None = None,
        *,
        forward: bool = False,
        kept: tuple[str, tuple[int, ...]] | None = None,
        shared: tuple[SharedWriter, str] | None = None,
        parameter: ParameterIndex | None = None,
    ) -> None:
        """Add a signal without ``quantity``. ``kept`` names the state array and columns with the value, or is None."""
        info = SignalInfo(name, shape, unit, doc, write is not None, forward)
        self.by_name[name] = Signal(info, read, write, kept=kept, shared=shared, parameter=parameter)

    def later(self, names: Iterable[str], make: Maker) -> None:
        """Add the names of signals that ``make`` creates on first use."""
        for name in names:
            self.by_name[name] = make

    def observe(
        self,
        name: str,
        quantity: Quantity,
        at: tuple[int, ...],
        write: Writer | Target | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        unit: str = "",
    ) -> None:
        """Add a signal that kernels can read: the quantity ``quantity`` of the elements ``at``."""
        one = quantity.shape if shape is None else shape
        info = SignalInfo(name, one, unit or quantity.unit, quantity.doc, write is not None, device=True)
        now, indices = self._now, np.array(at)

        def read() -> Array:
            return np.array(quantity.read(now, indices)).reshape(now.num_worlds, *one)

        if not quantity.device:  # a custom actuator kind that only the host reads
            assert not isinstance(write, Target)
            self.by_name[name] = Signal(replace(info, device=False), read, write)
        elif isinstance(write, Target):
            self.by_name[name] = Signal(info, read, None, quantity, at, write)
        else:
            self.by_name[name] = Signal(info, read, write, quantity, at)
