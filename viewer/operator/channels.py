"""Values and sources of all operator inputs, and the changes since the last step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from gpusim.errors import unknown_name
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.recording import Value


@dataclass
class Channel:
    """State of one input.

    Attributes:
        input: the input's description.
        value: last value from a source, or the initial value.
        source: last source of the value, such as "keyboard". Empty if the input follows the scene's schedule or has the
            initial value.
        released: True if the input was released since the last step.
    """

    input: Input
    value: Value
    source: str = ""
    released: bool = False


class Channels(Mapping[str, Channel]):
    """All channels by name, in the order of the inputs.

    Attributes:
        changed: names of the channels that were set or released since the last step.
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
        """Add a channel for a new input."""
        self._channels[item.name] = Channel(item, item.initial)

    def take(self, name: str, value: Value, source: str) -> None:
        """Set the value and the source of an input."""
        channel = self[name]
        channel.value, channel.source, channel.released = value, source, False
        self.changed.add(name)

    def release(self, name: str) -> None:
        """Release an input and reset its value to the initial value."""
        channel = self[name]
        if channel.source:
            channel.value, channel.source, channel.released = channel.input.initial, "", True
            self.changed.add(name)

    def reset(self) -> None:
        """Reset all channels to their initial values, and clear the list of changes."""
        for channel in self.values():
            channel.value, channel.source, channel.released = channel.input.initial, "", False
        self.changed.clear()

    def write_released(self, control: MutableMapping[str, Any]) -> None:
        """Write the initial values of released inputs to ``control``. Call this method before the schedule."""
        for name in self.changed:
            if self[name].released and name in control:
                control[name] = self[name].value

    def write_changed(self, control: MutableMapping[str, Any], everything: bool) -> None:
        """Write the values that the operator's sources have set since the last step to ``control``.

        With ``everything``, also write earlier values again, which a schedule may have overwritten.
        """
        for name in self if everything else self.changed:
            if self[name].source and name in control:
                control[name] = self[name].value

    def settle(self) -> None:
        """Clear the list of changes, after the changes have been written to the simulation."""
        for name in self.changed:
            self[name].released = False
        self.changed.clear()
