"""Operator inputs: the commands of a model, with their ranges, units and safe values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusim import validate
from gpusim.builder.commands import command_hints, initial_command
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.program import OperatorInput
from gpusim.description.ui_hints import UiHints
from gpusim.model.model import Model
from gpusim.signals.override import safe_value
from gpusim.viewer.operator.recording import Value

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


@dataclass(frozen=True)
class Input(UiHints):
    """One number that an operator sets. The base class :class:`UiHints` defines range and behavior.

    Attributes:
        name: label of the command, as in ``sim.control[name]``, or name of an input that is not a command.
        initial: value before any source sets the input.
        doc: description in one line.
        keys, axis: keys and gamepad axis that the model assigns to the input. The names are as in mapping files. For a
            switch, ``axis`` is a button.
        shaped: True if the model applies dead zone and expo curve, so the viewer must not apply them.

    Raises:
        ModelError: the range is empty or not finite, or the initial or safe value is out of range.
    """

    name: str = field(kw_only=True)
    initial: float = 0.0
    doc: str = ""
    keys: tuple[str, ...] = ()
    axis: str = ""
    shaped: bool = False

    def __post_init__(self) -> None:
        element = f"input '{self.name}'"
        for name in ("lower", "upper", "initial", *(("safe",) if self.safe is not None else ())):
            object.__setattr__(self, name, validate.number(element, name, getattr(self, name)))
        if not self.lower < self.upper:
            raise validate.fail(
                element, f"lower = {self.lower:g} is not below upper = {self.upper:g}", "give lower < upper"
            )
        for name in ("initial", "safe"):
            value = getattr(self, name)
            if value is not None and not self.lower <= value <= self.upper:
                rule = f"{name} = {value:g} lies outside {self.lower:g} to {self.upper:g}"
                raise validate.fail(element, rule, f"widen the range or change {name}")
        if self.safe is None and self.measured is None:
            raise validate.fail(element, "safe is None and nothing is measured", "give a safe value")

    def clamp(self, value: float) -> float:
        """Return the allowed value nearest to ``value``."""
        if self.switch:
            return self.upper if value > 0.5 * (self.lower + self.upper) else self.lower
        return min(max(value, self.lower), self.upper)

    def at(self, deflection: float) -> float:
        """Return the value for a stick's deflection (-1 to 1).

        For deflection 0, return the allowed value nearest to 0.
        """
        neutral = min(max(0.0, self.lower), self.upper)
        return neutral + deflection * (self.upper - neutral if deflection >= 0.0 else neutral - self.lower)


def stop_value(item: Input, sim: Simulation) -> Value:
    """Return the value that an input gets in an emergency stop: one number, or an array with one number per world."""
    values = tuple(float(x) for x in np.atleast_1d(safe_value(item, sim.runtime)))
    return values[0] if len(values) == 1 else values


def command_inputs(model: Model) -> dict[str, Input]:
    """Return the inputs of a model: first all commands in the order of the control columns, then inputs of diagrams.

    Each actuator type declares the range and the unit of its commands.
    """
    found: dict[str, Input] = {}
    hints = command_hints(model)
    driven = {label for diagram in model.diagrams for label in diagram.driven}
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        for number, command in enumerate(kind.commands):
            label = spec.label if number == 0 else f"{spec.label}.{command}"
            if label in driven:
                continue
            reading = next((r for r in kind.readings if r.name == command), None)
            idle = label not in model.operator_commands
            ui_hints = vars(hints[label]) | {"idle": idle}
            initial = initial_command(spec, command)
            found[label] = Input(**ui_hints, name=label, initial=initial, doc=reading.doc if reading else "")
    for diagram in model.diagrams:
        for item in diagram.operator_inputs:
            found[item.label] = _diagram_input(item, diagram.label)
    return found


def _diagram_input(item: OperatorInput, label: str) -> Input:
    """Convert an operator input of a block diagram to an Input."""
    springs = item.lower < 0.0 < item.upper and item.default == 0.0
    return Input(
        item.lower, item.upper, item.default, item.unit or "-", item.switch, springs, name=item.label,
        initial=item.default, doc=f"input of diagram '{label}'", keys=item.keys, axis=item.axis, shaped=True,
    )  # fmt: skip
