"""Mappings of keys, sticks and buttons to inputs, and mapping files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gpusim import validate
from gpusim.description.operator_names import STOP_BUTTON, check_key, check_part
from gpusim.errors import ModelError, unknown_name
from gpusim.input_files import bounded_text
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.key_list import key_display_name
from gpusim.viewer.operator.keys import window_name

MODES = ("spring", "rate", "switch")
SUFFIXES = (".toml", ".json")


@dataclass(frozen=True)
class Binding:
    """Keys, stick and button of one input.

    Attributes:
        command: name of the input, or a pattern for several inputs, for example "*_brake".
        keys: two keys, or one key for a switch. The first key acts like a stick deflection to the left or back. The
            second key acts like a deflection to the right or forward.
        axis: axis of the gamepad, for example "left_x".
        button: gamepad button that toggles a switch.
        mode: "spring", "rate" or "switch". With "spring", the deflection sets the value, and a release resets the
            value. With "rate", the deflection sets the rate of change, and a release keeps the value. The default mode
            depends on the input.
        dead_zone: fraction of the stick's travel without effect around the center, 0 to 0.95.
        expo: curve from 0 (linear) to 1 (cubic). A larger ``expo`` gives finer control near the center.
        scale: factor of the deflection of stick and keys, -1 to 1. A negative ``scale`` reverses the direction.
        rate_limit: maximum rate of the output, in full deflections per second. inf means no limit. In a mapping file, 0
            means no limit.
        speed: in the mode "rate", the rate of the value at full deflection, as a fraction of the range per second.

    Raises:
        ModelError: a value is invalid.
    """

    command: str
    keys: tuple[str, ...] = ()
    axis: str = ""
    button: str = ""
    mode: str = ""
    dead_zone: float = 0.1
    expo: float = 0.3
    scale: float = 1.0
    rate_limit: float = 5.0
    speed: float = 0.3

    def __post_init__(self) -> None:
        element = f"binding of '{self.command}'"
        for name, low, high in (("dead_zone", 0.0, 0.95), ("expo", 0.0, 1.0), ("scale", -1.0, 1.0)):
            value = validate.number(element, name, getattr(self, name))
            if not low <= value <= high:
                raise validate.fail(element, f"{name} = {value:g} is not within {low:g} to {high:g}", "give such a one")
        validate.positive(element, "rate_limit", self.rate_limit, infinite=True)
        validate.positive(element, "speed", self.speed)
        if self.mode and self.mode not in MODES:
            raise validate.fail(element, f"mode = {self.mode!r} is unknown", f"give one of {', '.join(MODES)}")
        self._check_keys(element)
        check_part(element, "axis", self.axis)
        check_part(element, "button", self.button)
        if not (self.keys or self.axis or self.button):
            raise validate.fail(element, "it has no keys, axis or button", "give at least one of them")

    @property
    def moved_by(self) -> str:
        """Display names of keys, stick and button, e.g. "A D, left x"."""
        keys = " ".join(key_display_name(window_name(key)) for key in self.keys)
        return ", ".join(part for part in (keys, *(x.replace("_", " ") for x in (self.axis, self.button))) if part)

    def _check_keys(self, element: str) -> None:
        if isinstance(self.keys, str) or not all(isinstance(key, str) for key in self.keys) or len(self.keys) > 2:
            raise validate.fail(element, f"keys = {self.keys!r} are not one or two names", 'give e.g. ["A", "D"]')
        for key in self.keys:
            check_key(element, key)


@dataclass(frozen=True)
class InputMapping:
    """Named set of bindings.

    Attributes:
        name: display name.
        bindings: bindings of the inputs. Each input may occur at most once.
        stop_button: gamepad button for the emergency stop.

    Raises:
        ModelError: an input, key, axis or button is used twice.
    """

    name: str
    bindings: tuple[Binding, ...] = field(default=())
    stop_button: str = STOP_BUTTON

    def __post_init__(self) -> None:
        element = f"mapping '{self.name}'"
        check_part(element, "button", self.stop_button)
        used: dict[str, str] = {f"button {self.stop_button!r}": "the emergency stop"}
        for binding in self.bindings:
            parts = [f"command {binding.command!r}", *(f"key {key!r}" for key in binding.keys)]
            parts += [f"axis {binding.axis!r}"] if binding.axis else []
            parts += [f"button {binding.button!r}"] if binding.button else []
            for part in parts:
                if part in used:
                    rule = f"{part} is bound twice, by {used[part]} and the binding of '{binding.command}'"
                    raise validate.fail(element, rule, "keep one of them")
                used[part] = f"the binding of '{binding.command}'"

    def check(self, inputs: Mapping[str, Input]) -> None:
        """Check that a simulation has all bound inputs.

        Raises:
            ModelError: an input is missing or bound twice, or a binding does not fit its input.
        """
        element = f"mapping '{self.name}'"
        owners: dict[str, str] = {}
        for binding in self.bindings:
            names = bound_inputs(binding, inputs)
            if not names:
                problem = unknown_name("command", binding.command, inputs)
                raise validate.fail(element, str(problem), "name a command of this scene")
            for name in names:
                if name in owners:
                    rule = f"command '{name}' is bound twice, by '{owners[name]}' and '{binding.command}'"
                    raise validate.fail(element, rule, "keep one of them")
                owners[name] = binding.command
            switch = mode_of(binding, inputs[names[0]]) == "switch"
            if switch and (len(binding.keys) > 1 or binding.axis):
                rule = f"'{binding.command}' is a switch, and it has two keys or an axis"
                raise validate.fail(element, rule, "give one key or a button")
            if not switch and (len(binding.keys) == 1 or binding.button):
                rule = f"'{binding.command}' is not a switch, and it has one key or a button"
                raise validate.fail(element, rule, "give two keys or an axis")


def bound_inputs(binding: Binding, inputs: Collection[str]) -> list[str]:
    """Return the inputs of a binding: the named input, or all inputs that match a pattern with "*"."""
    if "*" not in binding.command:
        return [binding.command] if binding.command in inputs else []
    return [name for name in inputs if fnmatchcase(name, binding.command)]


def mode_of(binding: Binding, target: Input) -> str:
    """Return the mode of a binding: "spring", "rate" or "switch"."""
    if binding.mode:
        return binding.mode
    if target.switch:
        return "switch"
    return "spring" if target.springs else "rate"


def load_mapping(path: str | os.PathLike[str]) -> InputMapping:
    """Read a mapping from a TOML or JSON file. See docs/guides/viewer.md for an example.

    Raises:
        ModelError: the file cannot be read, or an entry is invalid.
    """
    file = Path(path)
    element = f"mapping file {str(file)!r}"
    table = _read(file, element)
    known = {"name", "stop_button", "binding"}
    if strange := set(table) - known:
        raise validate.fail(element, str(unknown_name("entry", sorted(strange)[0], known)), "correct or remove it")
    entries = table.get("binding", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise validate.fail(element, "'binding' is not a list of tables", "write [[binding]] before each one")
    try:
        bindings = tuple(_binding(entry, number) for number, entry in enumerate(entries, start=1))
        return InputMapping(str(table.get("name", file.stem)), bindings, str(table.get("stop_button", STOP_BUTTON)))
    except ModelError as error:
        raise ModelError(f"{element}: {error}") from None


def _binding(entry: Mapping[str, Any], number: int) -> Binding:
    element = f"binding {number}"
    known = [item.name for item in fields(Binding)]
    for name, value in entry.items():
        if name not in known:
            raise validate.fail(element, str(unknown_name("entry", name, known)), "correct or remove it")
        if name in ("command", "axis", "button", "mode") and not isinstance(value, str):
            raise validate.fail(element, f"{name} = {value!r} is not text", 'write it in quotes: "..."')
        if name == "keys" and not isinstance(value, list):
            raise validate.fail(element, f"keys = {value!r} is not a list", 'give e.g. ["A", "D"]')
    if not entry.get("command"):
        raise validate.fail(element, "it names no command", 'give e.g. command = "boom"')
    values = dict(entry)
    if "keys" in values:
        values["keys"] = tuple(values["keys"])
    if values.get("rate_limit") == 0:  # JSON has no infinity
        values["rate_limit"] = math.inf
    return Binding(**values)


def _read(file: Path, element: str) -> dict[str, Any]:
    if file.suffix.lower() not in SUFFIXES:
        raise validate.fail(element, f"it ends in {file.suffix!r}", f"give a file that ends in {' or '.join(SUFFIXES)}")
    try:
        text = bounded_text(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise validate.fail(element, f"it cannot be read ({reason})", "check path and permissions") from None
    try:
        table = json.loads(text) if file.suffix.lower() == ".json" else _toml(text, element)
    except (ValueError, RecursionError) as error:  # JSONDecodeError and TOMLDecodeError are ValueErrors
        raise validate.fail(element, f"it is broken ({error})", "correct it there") from None
    if not isinstance(table, dict):
        raise validate.fail(element, "it holds no table", "write name = value pairs")
    return table


def _toml(text: str, element: str) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:
        raise validate.fail(element, "TOML needs Python 3.11 or newer", "write the mapping as JSON") from None
    return tomllib.loads(text)
