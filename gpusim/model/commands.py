"""Names of an actuator's commands, and the delay with which they act."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from gpusim.errors import unknown_name
from gpusim.model import validate
from gpusim.model.actuator_kinds import actuator_type
from gpusim.model.elements import Elements
from gpusim.model.specs import ActuatorSpec
from gpusim.model.steering import Steering

APPLIED = ".applied"
"""Behind the name of a command with a delay: what acts."""
OPERATOR = "operator"
"""Parameter of actuators: names of their commands that are the operator's."""


def command_names(spec: ActuatorSpec) -> list[str]:
    """As people give them: the label for the first, ``label.command`` for a further one."""
    commands = actuator_type(spec.kind).commands
    return [spec.label if number == 0 else f"{spec.label}.{name}" for number, name in enumerate(commands)]


def applied_names(spec: ActuatorSpec) -> list[str]:
    """Those that the actuator acts on: the same, or with ``.applied`` behind them where it has a delay."""
    return [f"{name}{APPLIED}" if delay_of(spec) else name for name in command_names(spec)]


def command_steering(model: Elements) -> dict[str, Steering]:
    """How people move each command of an actuator, and its range, by label."""
    found: dict[str, Steering] = {}
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        for command, *labels in zip(kind.commands, command_names(spec), applied_names(spec), strict=True):
            found |= dict.fromkeys(labels, kind.steering(model, spec, command))
    return found


def operator_commands(model: Elements, steering: Mapping[str, Steering]) -> list[str]:
    """Commands that are the operator's, by label: inputs of diagrams, and those of actuators that are marked.

    Where none of an actuator is marked (``ModelBuilder.set_operator_commands``), those that change something. A command
    that a diagram gives is an internal one.

    Args:
        model: whose actuators and diagrams.
        steering: of each command of an actuator.
    """
    driven = {label for diagram in model.diagrams for label in diagram.driven}
    found = [item.label for diagram in model.diagrams for item in diagram.operator_inputs]
    for spec in model.actuators:
        marked = spec.params.get(OPERATOR)
        for command, label in zip(actuator_type(spec.kind).commands, command_names(spec), strict=True):
            if not steering[label].idle if marked is None else command in marked:
                found.append(label)
    return [label for label in found if label not in driven]


def mark_operator_commands(model: Elements, names: Iterable[str]) -> None:
    """Mark commands of actuators as the operator's, and all others of the actuators as internals.

    Raises:
        ModelError: no list of names.
        UnknownNameError: a label or wildcard that no command has.
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


def delay_of(spec: ActuatorSpec) -> tuple[float, float] | None:
    """Delay of the commands and the greatest that may be written, s; None where they act at once."""
    return spec.params.get("delay")


def checked_delay(element: str, delay: Any, most_delay: Any) -> dict[str, Any]:
    """The parameter ``delay`` of an actuator, from what a builder's method was given.

    Raises:
        ModelError: no times, a delay above the greatest.
    """
    time = validate.not_negative(element, "delay", delay)
    most = time if most_delay is None else validate.positive(element, "most_delay", most_delay)
    validate.up_to(element, "delay", time, "most_delay", most, "s")
    return {"delay": (time, most) if most > 0.0 else None}
