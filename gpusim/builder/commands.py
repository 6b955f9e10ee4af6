"""Names of actuator commands, operator commands, and command delays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpusim import validate
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.elements import Elements
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import CommandMap, UiHints

APPLIED = ".applied"
"""Suffix of the signal that contains a command after its delay and lag."""
ACTIVATION = "activation"
"""Signal name of the activation: an actuator state between the command and the force."""
MAPS = "command_maps"
"""Name of the actuator parameter that contains the command maps, by command."""
OPERATOR = "operator"
"""Name of the actuator parameter that contains the names of the operator commands."""


def command_names(spec: ActuatorSpec) -> list[str]:
    """Return the names of an actuator's commands in ``sim.control``: first ``<label>``, then ``<label>.<command>``."""
    commands = actuator_type(spec.kind).commands
    return [spec.label if number == 0 else f"{spec.label}.{name}" for number, name in enumerate(commands)]


def applied_names(spec: ActuatorSpec) -> list[str]:
    """Return the names of an actuator's applied commands (values after delay, lag or integrator)."""
    return [f"{name}{APPLIED}" if has_delay(spec) else name for name in command_names(spec)]


def command_hints(model: Elements) -> dict[str, UiHints]:
    """Return the operator settings (range, safe value, behavior) of all actuator commands, by label."""
    found: dict[str, UiHints] = {}
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        for command, label, applied in zip(kind.commands, command_names(spec), applied_names(spec), strict=True):
            hints, command_map = kind.ui_hints(model, spec, command), map_of(spec, command)
            found[applied] = found[label] = hints if command_map is None else hints.mapped(command_map)
            if command_map is not None and command_map.integrate:  # an emergency stop does not change the activation
                at = _activation_signal(spec, command), 0
                found[applied] = replace(
                    hints.mapped(command_map.acting()), safe=None, measured=at, factor=1.0, offset=0.0
                )
    return found


def operator_commands(model: Elements, ui_hints: Mapping[str, UiHints]) -> list[str]:
    """Return the labels of all operator commands: inputs of diagrams, and chosen commands of actuators.

    Args:
        model: model with the actuators and diagrams.
        ui_hints: operator settings of all actuator commands, by label.
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
    """Mark all commands that match ``names`` as operator commands, and all others as internal.

    Raises:
        ModelError: ``names`` is not a list of names.
        UnknownNameError: a label or wildcard matches no command.
    """
    labels = [label for spec in model.actuators for label in command_names(spec)]
    patterns = validate.name_list("ModelBuilder.set_operator_commands", names)
    chosen = validate.matching("command", patterns, labels) if patterns else []
    for spec in model.actuators:
        commands = zip(actuator_type(spec.kind).commands, command_names(spec), strict=True)
        marked = tuple(command for command, label in commands if label in chosen)
        spec.params = spec.params | {OPERATOR: marked}


def map_of(spec: ActuatorSpec, command: str) -> CommandMap | None:
    """Return the command map of an actuator's command, or None without a map."""
    found: CommandMap | None = spec.params.get(MAPS, {}).get(command)
    return found


def initial_command(spec: ActuatorSpec, command: str) -> float:
    """Return the initial value of a command, in the units of ``sim.control``."""
    value, command_map = actuator_type(spec.kind).default_command(spec, command), map_of(spec, command)
    if command_map is None:
        return value
    if command_map.initial is not None:
        return command_map.initial
    return min(max(0.0 if command_map.integrate else command_map.command(value), command_map.lower), command_map.upper)


def initial_activation(spec: ActuatorSpec, command: str) -> float:
    """Return the initial activation of a command, or the initial command if it has no activation."""
    command_map = map_of(spec, command)
    if command_map is None or not command_map.has_activation:
        return initial_command(spec, command)
    if command_map.activation is not None:
        return command_map.activation
    value = command_map.command(actuator_type(spec.kind).default_command(spec, command))
    value = value if command_map.integrate else initial_command(spec, command)
    return min(max(value, command_map.activation_lower), command_map.activation_upper)


def activation_signals(model: Elements) -> dict[str, str]:
    """Return the names of activation signals by command. Only lags, integrators and muscles have an activation."""
    found: dict[str, str] = {}
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        has_variable = any(variable.name == ACTIVATION for variable in kind.variables)
        for number, (command, label) in enumerate(zip(kind.commands, command_names(spec), strict=True)):
            command_map = map_of(spec, command)
            if command_map is not None and command_map.has_activation or has_variable and number == 0:
                found[label] = _activation_signal(spec, command)
    return found


def _activation_signal(spec: ActuatorSpec, command: str) -> str:
    kind = actuator_type(spec.kind)
    return f"{kind.prefix}.{spec.label}.{'' if command == kind.commands[0] else command + '_'}{ACTIVATION}"


def has_delay(spec: ActuatorSpec) -> bool:
    """Return whether commands of an actuator have a delay, a lag or an integrator."""
    maps: dict[str, CommandMap] = spec.params.get(MAPS, {})
    return delay_of(spec) is not None or any(command_map.has_activation for command_map in maps.values())


def delay_of(spec: ActuatorSpec) -> tuple[float, float] | None:
    """Return the initial and the maximum delay of an actuator's commands (s), or None without a delay."""
    return spec.params.get("delay")


def checked_delay(element: str, delay: Any, max_delay: Any) -> dict[str, Any]:
    """Return the actuator parameter ``delay`` from the arguments of a builder method.

    Raises:
        ModelError: ``delay`` is negative or above ``max_delay``, or ``max_delay`` is not positive.
    """
    time = validate.not_negative(element, "delay", delay)
    longest = time if max_delay is None else validate.positive(element, "max_delay", max_delay)
    validate.up_to(element, "delay", time, "max_delay", longest, "s")
    return {"delay": (time, longest) if longest > 0.0 else None}
