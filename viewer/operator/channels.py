"""The values of all inputs: what was set, by whom, and what of it the simulation does not know yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from gpusim.errors import unknown_name
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.recording import Value


@dataclass
class Channel:
    """One input at work.

    Attributes:
        input: what it is.
        value: what was set last.
        source: who did; "" for nobody.
        released: it was given back since the last step.
    """

    input: Input
    value: Value
    source: str = ""
    released: bool = False


class Channels(Mapping[str, Channel]):
    """All channels by name, in order.

    Attributes:
        changed: names of those that were set or released since the last step.
    """

    def __init__(self, inputs: Mapping[str, Input]) -> None:
        self._channels = {name: Channel(item, item.initial) for name, item in inputs.items()}
        self.changed: set[str] = set()

    def __getitem__(self, name: str) -> Channel:
        if name not in self._channels:
            raise unknown_name("input", name, self._channels)
        return self._channels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._channels)

    def __len__(self) -> int:
        return len(self._channels)

    def add(self, item: Input) -> None:
        """One more."""
        self._channels[item.name] = Channel(item, item.initial)

    def take(self, name: str, value: Value, source: str) -> None:
        """Set a value."""
        channel = self[name]
        channel.value, channel.source, channel.released = value, source, False
        self.changed.add(name)

    def release(self, name: str) -> None:
        """Give an input back, with its first value."""
        channel = self[name]
        if channel.source:
            channel.value, channel.source, channel.released = channel.input.initial, "", True
            self.changed.add(name)

    def reset(self) -> None:
        """All as at first, which the simulation knows."""
        for channel in self.values():
            channel.value, channel.source, channel.released = channel.input.initial, "", False
        self.changed.clear()

    def write_released(self, control: MutableMapping[str, Any]) -> None:
        """First values of what was given back, before a schedule sets its own."""
        for name in self.changed:
            if self[name].released and name in control:
                control[name] = self[name].value

    def write_taken(self, control: MutableMapping[str, Any], everything: bool) -> None:
        """What was set since the last step; or ``everything`` that is set, where a schedule has written over it."""
        for name in self if everything else self.changed:
            if self[name].source and name in control:
                control[name] = self[name].value

    def settle(self) -> None:
        """The simulation knows all of it."""
        for name in self.changed:
            self[name].released = False
        self.changed.clear()
