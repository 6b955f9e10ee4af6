"""Names of an actuator's commands, and the delay with which they act."""

from __future__ import annotations

from typing import Any

from gpusim.model import validate
from gpusim.model.actuator_kinds import actuator_type
from gpusim.model.elements import Elements
from gpusim.model.specs import ActuatorSpec
from gpusim.model.steering import Steering

APPLIED = ".applied"
"""Behind the name of a command with a delay: what acts."""


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
