"""Names of actuator commands, operator commands, and command delays."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from gpusim import validate
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.elements import Elements
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import CommandMap, UiHints
from gpusim.errors import unknown_name

APPLIED = ".applied"
"""Suffix of the delayed or lagging value of a command, which acts on the actuator."""
MAPS = "command_maps"
"""Actuator parameter with the maps of its commands, by name."""
OPERATOR = "operator"
"""Actuator parameter with the names of its operator commands."""


def command_names(spec: ActuatorSpec) -> list[str]:
    """Return the names that users see: the label for the first command, ``label.command`` for the others."""
    commands = actuator_type(spec.kind).commands
    return [spec.label if number == 0 else f"{spec.label}.{name}" for number, name in enumerate(commands)]


def applied_names(spec: ActuatorSpec) -> list[str]:
    """Return the names of the values that act: the same names, with ``.applied`` appended if they come later."""
    return [f"{name}{APPLIED}" if is_late(spec) else name for name in command_names(spec)]


def command_steering(model: Elements) -> dict[str, UiHints]:
    """Return how an operator moves each actuator command, and its range, by label."""
    found: dict[str, UiHints] = {}
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        for command, *labels in zip(kind.commands, command_names(spec), applied_names(spec), strict=True):
            hints, own = kind.ui_hints(model, spec, command), map_of(spec, command)
            found |= dict.fromkeys(labels, hints if own is None else hints.mapped(own))
    return found


def operator_commands(model: Elements, ui_hints: Mapping[str, UiHints]) -> list[str]:
    """Return the labels of the operator's commands: inputs of diagrams, and marked commands of actuators.

    If no command of an actuator is marked (``ModelBuilder.set_operator_commands``), all its commands that have an
    effect count. A command that a diagram sets is internal.

    Args:
        model: has the actuators and diagrams.
        steering: steering of each actuator command.
    """
    driven = {label for diagram in model.diagrams for label in diagram.driven}
    found = [item.label for diagram in model.diagrams for item in diagram.operator_inputs]
    for spec in model.actuators:
        marked = spec.params.get(OPERATOR)
        for command, label in zip(actuator_type(spec.kind).commands, command_names(spec), strict=True):
            if not ui_hints[label].idle if marked is None else command in marked:
                found.append(label)
    return [label for label in found if label not in driven]


def mark_operator_commands(model: Elements, names: Iterable[str]) -> None:
    """Mark commands of actuators as the operator's, and their other commands as internal.

    Raises:
        ModelError: ``names`` is not a list of names.
        UnknownNameError: no command matches a label or wildcard.
    """
    patterns = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(pattern, str) for pattern in patterns):
        fix = "give labels or wildcards, such as ['boom', '*_drive'], or [] for none"
        raise validate.fail("ModelBuilder.set_operator_commands", f"{names!r} is no list of names", fix)
    labels = [label for spec in model.actuators for label in command_names(spec)]
    chosen: set[str] = set()
    for pattern in patterns:
        found = [pattern] if pattern in labels else fnmatch.filter(labels, pattern)
        if not found:
            raise unknown_name("command", pattern, labels)
        chosen.update(found)
    for spec in model.actuators:
        commands = zip(actuator_type(spec.kind).commands, command_names(spec), strict=True)
        marked = tuple(command for command, label in commands if label in chosen)
        spec.params = spec.params | {OPERATOR: marked}


def map_of(spec: ActuatorSpec, command: str) -> CommandMap | None:
    """Return the map of one of an actuator's commands, or None without one."""
    found: CommandMap | None = spec.params.get(MAPS, {}).get(command)
    return found


def first_command(spec: ActuatorSpec, command: str) -> float:
    """Return the initial value of a command."""
    value, own = actuator_type(spec.kind).default_command(spec, command), map_of(spec, command)
    if own is None:
        return value
    return own.initial if own.initial is not None else min(max(own.command(value), own.lower), own.upper)


def is_late(spec: ActuatorSpec) -> bool:
    """Return whether an actuator's commands act with a delay or a lag."""
    maps: dict[str, CommandMap] = spec.params.get(MAPS, {})
    return delay_of(spec) is not None or any(own.time_constant > 0.0 for own in maps.values())


def delay_of(spec: ActuatorSpec) -> tuple[float, float] | None:
    """Return the commands' delay and the largest delay that may be written, s, or None without a delay."""
    return spec.params.get("delay")


def checked_delay(element: str, delay: Any, max_delay: Any) -> dict[str, Any]:
    """Return the actuator parameter ``delay`` from the arguments of a builder method.

    Raises:
        ModelError: not a time, or a delay above the maximum.
    """
    time = validate.not_negative(element, "delay", delay)
    most = time if max_delay is None else validate.positive(element, "max_delay", max_delay)
    validate.up_to(element, "delay", time, "max_delay", most, "s")
    return {"delay": (time, most) if most > 0.0 else None}
