"""Delays, lags and integrators between a command and its actuator, such as the delay of a bus or the lag of a valve.

The command ``<name>`` is the value that the user writes. The signal ``<name>.applied`` is the value that the actuator
currently receives. A lag has an activation x with x' = (command - x) / time_constant, solved exactly over each step. An
integrator has an activation x with x' = command. Lags and integrators clip x to a range. In each step, the actuator
receives the mean of x at the start and the end of the step. Delays are rounded to whole steps.

A program (description/program.py) computes the applied values after all diagrams. The program therefore also delays
commands from diagrams. The state contains the commands of the last steps. During an override (emergency stop), the
activation of an integrator does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import exact_math, validate
from gpusim.builder.commands import (
    activation_signals,
    applied_names,
    command_names,
    delay_of,
    has_delay,
    initial_activation,
    map_of,
)
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.program import Program, Tuned, WireInfo
from gpusim.description.program_clock import HEAD
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import CommandMap
from gpusim.model.model import Model
from gpusim.typing import Array

LABEL = "delays of commands"
"""Label of the program that computes delays, lags and integrators."""
LONGEST = 10_000
"""Maximum delay (steps)."""
_NEXT = HEAD
"""Index of the state variable with the write position in the ring buffers."""
_FIRST = _NEXT + 1
"""Index of the first state variable of the first ring buffer."""

_CPP = """const int columns[] = {{{columns}}}, applied[] = {{{applied}}}, delay[] = {{{delay}}}, lag[] = {{{lag}}};
const int integrates[] = {{{integrates}}};
const int next = int(s[{next}]);
for (int k = 0; k < {count}; ++k) {{
    double* ring = s + {first} + {room} * k;
    // A long step may take several samples. Only the last sample uses the new command.
    const double now = last ? control[columns[k]] : ring[next > 0 ? next - 1 : {room} - 1];
    const int ago = int(min_(max_(det::round_even(par[delay[k]] / {period!r}), 0.0), {room}.0));
    const int index = next - ago;  // the newest command is right before the next index
    const double late = ago > 0 ? ring[index < 0 ? index + {room} : index] : now;
    const double time = par[lag[k]], to = clamped(late, par[lag[k] + 1], par[lag[k] + 2]);
    const double x = s[{lags} + k], lagged = time > 0.0 ? x + (1.0 - det::exp(-{period!r} / time)) * (to - x) : to;
    const double end = clamped(integrates[k] ? x + {period!r} * to : lagged, par[lag[k] + 3], par[lag[k] + 4]);
    control[applied[k]] = integrates[k] || time > 0.0 ? 0.5 * (x + end) : late;
    s[{lags} + k] = end;
    ring[next] = now;
}}
s[{next}] = next + 1 < {room} ? double(next + 1) : 0.0;"""


@dataclass
class Delays(Program):
    """Program that runs the delays, lags and integrators of a model.

    Attributes:
        columns: columns of the commands with a delay, a lag or an integrator.
        room: capacity of each ring buffer (samples).
        integrates: True for each command in ``columns`` with an integrator.
    """

    columns: Sequence[int] = ()
    room: int = 1
    integrates: Sequence[bool] = ()

    def settle(self, numbers: Array, worlds: Array, held: Array, commands: Array) -> None:
        """Fill the delay buffers of overridden commands as if ``commands`` had been constant for a long time.

        Args:
            numbers: state variables of the program in all worlds. The method changes this array in place.
            worlds: indices of the worlds.
            held: mask of the overridden commands (len(worlds), controls).
            commands: override values of the commands (len(worlds), controls).
        """
        held, commands = held[:, self.columns], commands[:, self.columns]
        fill, values = (
            np.concatenate([np.repeat(x, self.room, axis=1), lags], axis=1)
            for x, lags in ((held, held & ~np.array(self.integrates, bool)), (commands, commands))
        )
        numbers[worlds, _FIRST:] = np.where(fill, values, numbers[worlds, _FIRST:])


def delays(model: Model, dt: float) -> Delays | None:
    """Return the program for the delays, lags and integrators of a model, or None if it has none.

    Args:
        model: model of the simulation.
        dt: step size (s).

    Raises:
        ModelError: a delay is longer than LONGEST steps or shorter than half a step.
    """
    late = [spec for spec in model.actuators if has_delay(spec)]
    if not late:
        return None
    tuned: dict[str, Tuned] = {}
    values: list[float] = []
    delay: list[int] = []
    lag: list[int] = []
    integrates: list[bool] = []
    acting: list[float] = []
    room = max(_checked_room(spec, dt) for spec in late)
    for spec in late:
        prefix = f"{actuator_type(spec.kind).prefix}.{spec.label}."
        if delay_range := delay_of(spec):
            tuned[f"{prefix}delay"] = Tuned(
                len(values), 0.0, delay_range[1], unit="s", doc="delay from a command to its effect"
            )
        at = len(values)
        values.append(delay_range[0] if delay_range else 0.0)
        kind = actuator_type(spec.kind)
        for number, command in enumerate(kind.commands):
            delay.append(at)
            lag.append(len(values))
            command_map = map_of(spec, command)
            if command_map is not None and command_map.time_constant > 0.0:
                name = f"{prefix}{command + '_' if number else ''}time_constant"
                tuned[name] = Tuned(len(values), 0.0, unit="s", doc="time constant of the command's lag")
            command_map = command_map or CommandMap()
            # A lag follows the command within the actuator's range. An integrator's command is a rate.
            ends = (
                (command_map.lower, command_map.upper)
                if command_map.integrate
                else kind.ui_hints(model, spec, command).acting_range(command_map)
            )
            values += [command_map.time_constant, *ends, command_map.activation_lower, command_map.activation_upper]
            integrates.append(command_map.integrate)
            acting.append(initial_activation(spec, command))
    columns, applied = (
        [model.controls[name] for spec in late for name in names(spec)] for names in (command_names, applied_names)
    )
    first, lags = np.repeat(model.default_controls[columns], room), _FIRST + room * len(columns)
    lists = (("columns", columns), ("applied", applied), ("delay", delay), ("lag", lag), ("integrates", integrates))
    texts = {name: ", ".join(str(int(number)) for number in x) for name, x in lists}
    return Delays(
        label=LABEL, period=dt, signals=[], initial=np.concatenate([np.zeros(_FIRST), first, acting]),
        parameters=np.array(values), tuned=tuned, inputs=[],
        wires=[
            WireInfo(
                name, (), "-", "value that acts instead of the command",
                (lags + columns.index(model.controls[label]),), True,
            )
            for label, name in activation_signals(model).items()
            if model.controls[label] in columns
        ],
        drives=[name for spec in late for name in applied_names(spec)],
        cpp=_CPP.format(
            **texts, count=len(columns), first=_FIRST, lags=lags, room=room, period=dt, next=_NEXT,
        ),
        helpers="", run=_runner(columns, applied, delay, lag, integrates, room, dt),
        numpy="", columns=columns, room=room, integrates=integrates,
    )  # fmt: skip


def _checked_room(spec: ActuatorSpec, dt: float) -> int:
    """Return the capacity of the ring buffer that an actuator needs (samples)."""
    delay_range = delay_of(spec)
    if delay_range is None:
        return 1
    max_delay = delay_range[1]
    if max_delay > LONGEST * dt:
        rule = f"a delay of {max_delay:g} s is more than {LONGEST} steps of {dt:g} s"
        raise validate.fail(spec.element, rule, "give a shorter delay (max_delay)")
    if round(max_delay / dt) < 1:
        rule = f"a delay of {max_delay:g} s is less than half of a step of {dt:g} s"
        raise validate.fail(spec.element, rule, "give a longer delay, or leave it out")
    return round(max_delay / dt)


def _runner(
    columns: list[int], applied: list[int], delay: list[int], lag: list[int], integrates: list[bool], room: int,
    dt: float,
) -> Any:  # fmt: skip
    """Return a NumPy function that is equivalent to the C++ code ``_CPP``."""
    ring = _FIRST + room * np.arange(len(columns))
    lags = _FIRST + room * len(columns) + np.arange(len(columns))
    law, rates = np.array(lag), np.array(integrates)

    def run(inputs: Array, par: Array, s: Array, control: Array, last: Array) -> None:
        rows, following = np.arange(len(s))[:, None], s[:, _NEXT].astype(int)
        before = s[rows, ring + (following[:, None] - 1) % room]
        now = np.where(last[:, None], control[:, columns], before)
        ago = np.clip(np.rint(par[:, delay] / dt), 0, room).astype(int)
        delayed = s[rows, ring + (following[:, None] - ago) % room]
        late, time, x = np.where(ago > 0, delayed, now), par[:, law], s[:, lags]
        to = np.clip(late, par[:, law + 1], par[:, law + 2])
        gain = 1.0 - exact_math.exp(-dt / np.where(time > 0.0, time, 1.0))
        end = np.where(rates, x + dt * to, np.where(time > 0.0, x + gain * (to - x), to))
        end = np.clip(end, par[:, law + 3], par[:, law + 4])
        control[:, applied] = np.where(rates | (time > 0.0), 0.5 * (x + end), late)
        s[:, lags] = end
        s[rows, ring + following[:, None]] = now
        s[:, _NEXT] = (following + 1) % room

    return run
