"""Delays and lags of actuators' commands, as over a bus or through a valve.

An actuator with a ``delay``, or a command with a ``time_constant``, has its commands under their usual names, and those
that act under ``<name>.applied``. A lag is x' = (command - x) / time_constant, solved exactly over a step. A program
like those of diagrams (description/program.py) connects them. It runs last, so that it also takes commands of diagrams.
The commands of the last steps are part of the state. An override replaces them by its values, so that no earlier
command acts after it. Delays are rounded to whole steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import exact_math, validate
from gpusim.builder.commands import applied_names, command_names, delay_of, is_late, map_of
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.program import Program, Tuned
from gpusim.description.program_clock import HEAD
from gpusim.description.specs import ActuatorSpec
from gpusim.model.model import Model
from gpusim.typing import Array

LABEL = "delays of commands"
"""Label of the program. Labels of diagrams have no spaces."""
LONGEST = 10_000
"""Maximum delay, steps."""
_NEXT = HEAD
"""Index of the number that holds the write position of the rings."""
_FIRST = _NEXT + 1
"""Index of the first ring."""

_CPP = """const int wanted[] = {{{wanted}}}, applied[] = {{{applied}}}, delay[] = {{{delay}}}, lag[] = {{{lag}}};
const int next = int(s[{next}]);
for (int k = 0; k < {count}; ++k) {{
    double* ring = s + {first} + {room} * k;
    // What came with a long step was not there at the samples that it has missed.
    const double now = last ? control[wanted[k]] : ring[next > 0 ? next - 1 : {room} - 1];
    const int ago = int(min_(max_(det::round_even(par[delay[k]] / {period!r}), 0.0), {room}.0));
    const int place = next - ago;  // the newest command is right before the next index
    const double late = ago > 0 ? ring[place < 0 ? place + {room} : place] : now;
    const double time = par[lag[k]], to = clamped(late, par[lag[k] + 1], par[lag[k] + 2]);
    double& x = s[{lags} + k];
    control[applied[k]] = time > 0.0 ? x : late;
    x = time > 0.0 ? x + (1.0 - det::exp(-{period!r} / time)) * (to - x) : to;
    ring[next] = now;
}}
s[{next}] = next + 1 < {room} ? double(next + 1) : 0.0;"""


@dataclass
class Delays(Program):
    """The program of a model's delays and lags.

    Attributes:
        wanted: columns of the delayed commands.
        room: capacity of each ring.
    """

    wanted: Sequence[int] = ()
    room: int = 1

    def settle(self, numbers: Array, worlds: Array, held: Array, commands: Array) -> None:
        """Fill the rings and lags of held commands, as if they had always been set.

        Args:
            numbers: state numbers of all worlds; changed in place.
            worlds: indices of the worlds to fill.
            held: which commands are held in those worlds, (len(worlds), controls).
            commands: their values.
        """
        fill, values = (
            np.concatenate([np.repeat(x[:, self.wanted], self.room, axis=1), x[:, self.wanted]], axis=1)
            for x in (held, commands)
        )
        numbers[worlds, _FIRST:] = np.where(fill, values, numbers[worlds, _FIRST:])


def delays(model: Model, dt: float) -> Delays | None:
    """Return the program of a model's delays and lags, or None if no actuator has one.

    Args:
        model: of the simulation.
        dt: its step, s.

    Raises:
        ModelError: a delay of more than LONGEST steps, or of less than half a step.
    """
    late = [spec for spec in model.actuators if is_late(spec)]
    if not late:
        return None
    tuned: dict[str, Tuned] = {}
    values: list[float] = []
    delay: list[int] = []
    lag: list[int] = []
    room = max(_checked_room(spec, dt) for spec in late)
    for spec in late:
        prefix = f"{actuator_type(spec.kind).prefix}.{spec.label}."
        if given := delay_of(spec):
            tuned[f"{prefix}delay"] = Tuned(len(values), 0.0, given[1], unit="s", doc="from a command to its effect")
        at = len(values)
        values.append(given[0] if given else 0.0)
        for number, command in enumerate(actuator_type(spec.kind).commands):
            delay.append(at)
            lag.append(len(values))
            own = map_of(spec, command)
            if own is not None and own.time_constant > 0.0:
                name = f"{prefix}{command + '_' if number else ''}time_constant"
                tuned[name] = Tuned(len(values), 0.0, unit="s", doc="of the lag of a command")
            values += [0.0, -np.inf, np.inf] if own is None else [own.time_constant, own.lower, own.upper]
    wanted, applied = (
        [model.controls[name] for spec in late for name in names(spec)] for names in (command_names, applied_names)
    )
    first = model.default_controls[wanted]
    lists = (("wanted", wanted), ("applied", applied), ("delay", delay), ("lag", lag))
    texts = {name: ", ".join(map(str, x)) for name, x in lists}
    return Delays(
        label=LABEL, period=dt, signals=[], initial=np.concatenate([np.zeros(_FIRST), np.repeat(first, room), first]),
        parameters=np.array(values), tuned=tuned, wires=[], inputs=[],
        drives=[name for spec in late for name in applied_names(spec)],
        cpp=_CPP.format(
            **texts, count=len(wanted), first=_FIRST, lags=_FIRST + room * len(wanted), room=room, period=dt,
            next=_NEXT,
        ),
        helpers="", run=_runner(np.array(wanted), np.array(applied), np.array(delay), np.array(lag), room, dt),
        numpy="", wanted=wanted, room=room,
    )  # fmt: skip


def _checked_room(spec: ActuatorSpec, dt: float) -> int:
    """Return the capacity of an actuator's rings."""
    given = delay_of(spec)
    if given is None:
        return 1
    most = given[1]
    if most > LONGEST * dt:
        rule = f"a delay of {most:g} s is more than {LONGEST} steps of {dt:g} s"
        raise validate.fail(spec.element, rule, "give a shorter delay (max_delay)")
    if round(most / dt) < 1:
        rule = f"a delay of {most:g} s is less than half of a step of {dt:g} s"
        raise validate.fail(spec.element, rule, "give a longer one, or leave it out")
    return round(most / dt)


def _runner(wanted: Array, applied: Array, delay: Array, lag: Array, room: int, dt: float) -> Any:
    """Return the NumPy version of _CPP, over all worlds."""
    ring = _FIRST + room * np.arange(len(wanted))
    lags = _FIRST + room * len(wanted) + np.arange(len(wanted))

    def run(given: Array, par: Array, s: Array, control: Array, last: Array) -> None:
        rows, following = np.arange(len(s))[:, None], s[:, _NEXT].astype(int)
        before = s[rows, ring + (following[:, None] - 1) % room]
        now = np.where(last[:, None], control[:, wanted], before)
        ago = np.clip(np.rint(par[:, delay] / dt), 0, room).astype(int)
        kept = s[rows, ring + (following[:, None] - ago) % room]
        late, time, x = np.where(ago > 0, kept, now), par[:, lag], s[:, lags]
        to = np.clip(late, par[:, lag + 1], par[:, lag + 2])
        share = 1.0 - exact_math.exp(-dt / np.where(time > 0.0, time, 1.0))
        control[:, applied] = np.where(time > 0.0, x, late)
        s[:, lags] = np.where(time > 0.0, x + share * (to - x), to)
        s[rows, ring + following[:, None]] = now
        s[:, _NEXT] = (following + 1) % room

    return run
