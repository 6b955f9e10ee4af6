"""What an operator can set: the commands of a model with ranges, units and safe values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusim.model import validate
from gpusim.model.actuator_kinds import actuator_type
from gpusim.model.model import Model
from gpusim.model.steering import Steering
from gpusim.viewer.operator.recording import Value

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


@dataclass(frozen=True)
class Input(Steering):
    """One number that an operator sets, and how: see :class:`Steering`.

    Attributes:
        name: label of the command, as in ``sim.control[name]``, or of another input.
        initial: value before anybody touches it.
        doc: one line.

    Raises:
        ModelError: the range is empty or not finite, or a value lies outside of it.
    """

    name: str = field(kw_only=True)
    initial: float = 0.0
    doc: str = ""

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
        """The nearest value that is allowed."""
        if self.switch:
            return self.upper if value > 0.5 * (self.lower + self.upper) else self.lower
        return min(max(value, self.lower), self.upper)

    def at(self, deflection: float) -> float:
        """The value for a stick's deflection, -1 to 1: zero in the middle where the range has one inside."""
        if self.lower < 0.0 < self.upper:
            return deflection * (self.upper if deflection >= 0.0 else -self.lower)
        return self.lower + max(deflection, 0.0) * (self.upper - self.lower)


def safe_value(item: Input, sim: Simulation) -> Value:
    """What an input is set to in an emergency stop: one number, or one for each world."""
    if item.measured is None or item.safe is not None:
        return float(item.safe or 0.0)
    signal, axis = item.measured
    reached = np.asarray(sim.read(signal, numpy=True)).reshape(sim.num_worlds, -1)[:, axis]
    values = tuple(float(x) for x in np.clip(reached, item.lower, item.upper))
    return values[0] if len(values) == 1 else values


def command_inputs(model: Model) -> dict[str, Input]:
    """An input for every command of a model, in the order of its columns, as its kind of actuator declares it."""
    found: dict[str, Input] = {}
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        for number, command in enumerate(kind.commands):
            label = spec.label if number == 0 else f"{spec.label}.{command}"
            reading = next((r for r in kind.readings if r.name == command), None)
            steering = vars(kind.steering(model, spec, command))
            initial = float(kind.default_command(spec, command))
            found[label] = Input(**steering, name=label, initial=initial, doc=reading.doc if reading else "")
    return found
