"""Built-in mappings: ISO and SAE patterns for excavators, a wheeled pattern, and a mapping for all other scenes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpusim import validate
from gpusim.errors import unknown_name
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.mapping import SUFFIXES, Binding, InputMapping, bound_inputs, load_mapping


@dataclass(frozen=True)
class Lever:
    """One axis of an excavator lever, with its excavator function, gamepad axis, keys and direction.

    Positive swing commands rotate to the left (counterclockwise from above). All other positive commands extend a
    cylinder: boom up, stick in, bucket curl.
    """

    function: str
    axis: str
    keys: tuple[str, str]
    scale: float = -1.0


WORDS: dict[str, tuple[str, ...]] = {
    "swing": ("swing", "slew", "turret", "upper"),
    "boom": ("boom",),
    "stick": ("stick", "arm", "dipper"),
    "bucket": ("bucket",),
}
"""Excavator function -> words in a command's label that identify the function."""
NEEDED = ("boom", "stick", "bucket")
"""Functions that a model must have for an excavator pattern."""

_SWING = Lever("swing", "left_x", ("A", "D"))
_BUCKET = Lever("bucket", "right_x", ("J", "L"))
PATTERNS: dict[str, tuple[Lever, ...]] = {
    "iso": (_SWING, Lever("stick", "left_y", ("S", "W")), Lever("boom", "right_y", ("K", "I")), _BUCKET),
    "sae": (_SWING, Lever("boom", "left_y", ("S", "W")), Lever("stick", "right_y", ("K", "I")), _BUCKET),
}
"""Pattern name -> lever axes. Source: ISO 10968 and SAE J1177."""

WHEELED = "wheeled"
"""Name of the pattern of wheeled vehicles."""
PEDALS: tuple[Binding, ...] = (
    Binding("drive", keys=("S", "W"), axis="left_y"),
    Binding("*_drive", keys=("S", "W"), axis="left_y"),
    # The value springs back and changes as fast as a steering wheel. Positive commands steer left.
    Binding("steer", keys=("A", "D"), axis="right_x", mode="spring", scale=-1.0, rate_limit=2.0),
    Binding("turn", keys=("J", "L"), axis="left_x", scale=-1.0),
    Binding("turn_clutch", keys=("C",), button="b", mode="switch"),
    Binding("*_brake", keys=("B",), button="a", mode="switch"),
)
"""Commands of wheeled vehicles (gpusim/machines/wheels.py, steering.py) and their bindings."""

_KEY_PAIRS = (
    *(("1", "2"), ("3", "4"), ("5", "6"), ("7", "8"), ("9", "0")),
    *(("KP_4", "KP_6"), ("KP_2", "KP_8"), ("KP_1", "KP_3"), ("KP_7", "KP_9")),
)
_STICKS = ("left_y", "left_x", "right_y", "right_x")
_SWITCH_KEYS = tuple(f"F{k}" for k in range(5, 13))
_SWITCH_BUTTONS = ("a", "b", "x", "y", "left_bumper", "right_bumper", "dpad_up", "dpad_down")


def choose_mapping(inputs: Mapping[str, Input], wish: str = "auto") -> InputMapping:
    """Return the mapping for a simulation.

    Args:
        inputs: all inputs of the simulation.
        wish: "iso", "sae", "wheeled", a mapping file, or "auto". "auto" selects "iso" for excavators and "wheeled" for
            models that drive and steer. For all other models, "auto" assigns keys and sticks in the order of the
            inputs.

    Raises:
        ModelError: the scene lacks commands of the pattern, or the file is invalid.
        UnknownNameError: the pattern is unknown.
    """
    if wish.lower().endswith(SUFFIXES):
        mapping = load_mapping(wish)
        mapping.check(inputs)
        return mapping
    declared_bindings = declared(inputs.values())
    named = {binding.command for binding in declared_bindings}
    ready_made = _ready_made({name: item for name, item in inputs.items() if name not in named}, wish)
    return InputMapping(ready_made.name, (*declared_bindings, *_unused_parts(ready_made.bindings, declared_bindings)))


def declared(inputs: Iterable[Input]) -> list[Binding]:
    """Return the bindings that the model itself defines for its inputs (keys, stick or button).

    Raises:
        ModelError: a name is unknown, or an input has only one key but is not a switch.
    """
    found = []
    for item in inputs:
        if not (item.keys or item.axis):
            continue
        if item.switch:
            found.append(Binding(item.name, keys=item.keys[:1], button=item.axis))
            continue
        if len(item.keys) == 1:
            rule = f"it has one key, {item.keys[0]!r}, and is not a switch"
            raise validate.fail(f"input '{item.name}'", rule, "give two (less, more), or switch = True")
        binding = Binding(item.name, keys=item.keys, axis=item.axis)
        found.append(replace(binding, dead_zone=0.0, expo=0.0) if item.shaped else binding)
    return found


def _unused_parts(bindings: Iterable[Binding], taken: Sequence[Binding]) -> list[Binding]:
    """Return copies of the bindings without the keys, sticks and buttons that ``taken`` uses."""
    keys = {key for binding in taken for key in binding.keys}
    axes, buttons = {b.axis for b in taken}, {b.button for b in taken}
    found = []
    for binding in bindings:
        parts = {
            "keys": () if keys & set(binding.keys) else binding.keys,
            "axis": "" if binding.axis in axes else binding.axis,
            "button": "" if binding.button in buttons else binding.button,
        }
        if any(parts.values()):
            found.append(replace(binding, **parts))  # type: ignore[arg-type]
    return found


def _ready_made(inputs: Mapping[str, Input], wish: str) -> InputMapping:
    """Return the mapping for the pattern ``wish``. If ``wish`` is "auto", select a pattern by the model's commands."""
    functions = find_functions(inputs)
    if wish in PATTERNS:
        if missing := [name for name in NEEDED if name not in functions]:
            rule = f"no command of this scene has a label that contains {' or '.join(WORDS[missing[0]])}"
            raise validate.fail(f"mapping '{wish}'", rule, "use the mapping 'auto', or write a mapping file")
        return _pattern(wish, functions, inputs)
    if wish not in ("auto", WHEELED):
        raise unknown_name("mapping", wish, ["auto", *PATTERNS, WHEELED])
    if wish == "auto" and all(name in functions for name in NEEDED):
        return _pattern("iso", functions, inputs)
    pedals = _pedals(inputs)
    if pedals:
        return _with_others("Wheeled", pedals, inputs)
    if wish == WHEELED:
        rule = "no commands of this scene are 'steer' and 'drive' or end in '_drive'"
        raise validate.fail("mapping 'wheeled'", rule, "use the mapping 'auto', or write a mapping file")
    return InputMapping("automatic", tuple(_in_order(inputs.values())))


def find_functions(inputs: Mapping[str, Input]) -> dict[str, str]:
    """Find the commands for excavator functions, and return a dict: function -> command."""
    found: dict[str, str] = {}
    for function, words in WORDS.items():
        named = [item for name, item in inputs.items() if not item.switch and set(words) & _words(name)]
        # excludes valves and brakes whose label contains the same word, because they have only one direction
        levers = [item for item in named if not item.idle and item.lower < 0.0 < item.upper]
        fits = [item.name for item in (named if len(named) == 1 else levers)]
        if len(fits) == 1:
            found[function] = fits[0]
    return found


def _words(label: str) -> set[str]:
    return set(re.split(r"[^a-z]+", label.lower()))


def _pattern(name: str, functions: Mapping[str, str], inputs: Mapping[str, Input]) -> InputMapping:
    levers = [lever for lever in PATTERNS[name] if lever.function in functions]
    bound = [Binding(functions[x.function], keys=x.keys, axis=x.axis, scale=x.scale) for x in levers]
    return _with_others(name.upper(), bound, inputs)


def _pedals(inputs: Mapping[str, Input]) -> list[Binding]:
    """Return the bindings of a wheeled vehicle. If no commands steer and drive, return an empty list."""
    found = [binding for binding in PEDALS if bound_inputs(binding, inputs)]
    names = [binding.command for binding in found]
    if "drive" in names and "*_drive" in names:
        found.pop(names.index("*_drive"))
    return found if "steer" in names and {"drive", "*_drive"} & set(names) else []


def _with_others(name: str, bound: list[Binding], inputs: Mapping[str, Input]) -> InputMapping:
    """Return a mapping with the bindings ``bound``. All other inputs get unused keys and buttons."""
    taken = {command for binding in bound for command in bound_inputs(binding, inputs)}
    buttons = {binding.button for binding in bound}
    # tracks, blades and brakes get the free keys and sticks
    others = (item for item in inputs.values() if item.name not in taken)
    return InputMapping(name, (*bound, *_in_order(others, sticks=(), taken=buttons)))


def _in_order(inputs: Iterable[Input], sticks: tuple[str, ...] = _STICKS, taken: Collection[str] = ()) -> list[Binding]:
    """Assign key pairs and sticks to the inputs, in the order of the inputs."""
    shown = [item for item in inputs if not item.idle]
    switches, movers = [x for x in shown if x.switch], [x for x in shown if not x.switch]
    bindings = []
    for number, item in enumerate(movers[: len(_KEY_PAIRS)]):
        axis = sticks[number] if number < len(sticks) else ""
        bindings.append(Binding(item.name, keys=_KEY_PAIRS[number], axis=axis))
    buttons = [button for button in _SWITCH_BUTTONS if button not in taken]
    for item, key, button in zip(switches, _SWITCH_KEYS, buttons, strict=False):
        bindings.append(Binding(item.name, keys=(key,), button=button))
    return bindings
