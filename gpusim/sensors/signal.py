"""What a signal is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpusim.typing import Array


@dataclass(frozen=True)
class SignalInfo:
    """A named quantity of a simulation.

    ``shape`` is the shape for one world: () for a number, (3,) for a vector. ``writable`` tells whether
    ``sim.write`` takes it.
    """

    name: str
    shape: tuple[int, ...]
    unit: str
    doc: str
    writable: bool


@dataclass(frozen=True)
class Signal:
    """How a signal is read and written.

    ``read`` returns (num_worlds, *shape). ``write`` gets world indices (n,) and values (n, *shape).
    """

    info: SignalInfo
    read: Callable[[], Array]
    write: Callable[[Array, Array], None] | None = None


class SignalTable:
    """All signals of a simulation by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Signal] = {}

    def add(
        self,
        name: str,
        shape: tuple[int, ...],
        unit: str,
        doc: str,
        read: Callable[[], Array],
        write: Callable[[Array, Array], None] | None = None,
    ) -> None:
        """Make a signal known."""
        self.by_name[name] = Signal(SignalInfo(name, shape, unit, doc, write is not None), read, write)
