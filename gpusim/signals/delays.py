"""Delays of actuators' commands, as over a bus or through a valve.

An actuator with a ``delay`` has its commands under their usual names, and the delayed ones under ``<name>.applied``. A
program like those of diagrams (description/program.py) connects them. It runs last, so that it also delays commands of
diagrams. The commands of the last steps are part of the state. An override replaces them by its values, so that no
earlier command acts after it. Delays are rounded to whole steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.commands import applied_names, command_names, delay_of
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.program import Program, Tuned
from gpusim.description.program_clock import HEAD
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

_CPP = """const int wanted[] = {{{wanted}}}, applied[] = {{{applied}}}, delay[] = {{{delay}}};
const int next = int(s[{next}]);
for (int k = 0; k < {count}; ++k) {{
    double* ring = s + {first} + {room} * k;
    // What came with a long step was not there at the samples that it has missed.
    const double now = last ? control[wanted[k]] : ring[next > 0 ? next - 1 : {room} - 1];
    const int ago = int(min_(max_(det::round_even(par[delay[k]] / {period!r}), 0.0), {room}.0));
    const int place = next - ago;  // the newest command is right before the next index
    control[applied[k]] = ago > 0 ? ring[place < 0 ? place + {room} : place] : now;
    ring[next] = now;
}}
s[{next}] = next + 1 < {room} ? double(next + 1) : 0.0;"""


@dataclass
class Delays(Program):
    """The program of a model's delays.

    Attributes:
        wanted: columns of the delayed commands.
        room: capacity of each ring.
    """

    wanted: Sequence[int] = ()
    room: int = 1

    def settle(self, numbers: Array, worlds: Array, held: Array, commands: Array) -> None:
        """Fill the rings of held commands, as if they had always been set.

        Args:
            numbers: state numbers of all worlds; changed in place.
            worlds: indices of the worlds to fill.
            held: which commands are held in those worlds, (len(worlds), controls).
            commands: their values.
        """
        fill, values = (np.repeat(x[:, self.wanted], self.room, axis=1) for x in (held, commands))
        numbers[worlds, _FIRST:] = np.where(fill, values, numbers[worlds, _FIRST:])


def delays(model: Model, dt: float) -> Delays | None:
    """Return the program of a model's delays, or None if no actuator has one.

    Args:
        model: of the simulation.
        dt: its step, s.

    Raises:
        ModelError: a delay of more than LONGEST steps, or of less than half a step.
    """
    late = [spec for spec in model.actuators if delay_of(spec)]
    if not late:
        return None
    tuned: dict[str, Tuned] = {}
    values: list[float] = []
    wanted: list[int] = []
    applied: list[int] = []
    column: list[int] = []
    room = 1
    for spec in late:
        delay, most = delay_of(spec) or (0.0, 0.0)
        if most > LONGEST * dt:
            rule = f"a delay of {most:g} s is more than {LONGEST} steps of {dt:g} s"
            raise validate.fail(spec.element, rule, "give a shorter delay (max_delay)")
        if round(most / dt) < 1:
            rule = f"a delay of {most:g} s is less than half of a step of {dt:g} s"
            raise validate.fail(spec.element, rule, "give a longer one, or leave it out")
        room = max(room, round(most / dt))
        name = f"{actuator_type(spec.kind).prefix}.{spec.label}.delay"
        tuned[name] = Tuned(len(values), 0.0, most, unit="s", doc="from a command to its effect")
        wanted += [model.controls[name] for name in command_names(spec)]
        applied += [model.controls[name] for name in applied_names(spec)]
        column += [len(values)] * len(command_names(spec))
        values.append(delay)
    start = np.repeat(model.default_controls[wanted], room)
    texts = {name: ", ".join(map(str, x)) for name, x in (("wanted", wanted), ("applied", applied), ("delay", column))}
    return Delays(
        label=LABEL, period=dt, signals=[], initial=np.concatenate([np.zeros(_FIRST), start]),
        parameters=np.array(values), tuned=tuned, wires=[], inputs=[],
        drives=[name for spec in late for name in applied_names(spec)],
        cpp=_CPP.format(**texts, count=len(wanted), first=_FIRST, room=room, period=dt, next=_NEXT), helpers="",
        run=_runner(np.array(wanted), np.array(applied), np.array(column), room, dt), numpy="",
        wanted=wanted, room=room,
    )  # fmt: skip


def _runner(wanted: Array, applied: Array, column: Array, room: int, dt: float) -> Any:
    """Return the NumPy version of _CPP, over all worlds."""
    ring = _FIRST + room * np.arange(len(wanted))

    def run(given: Array, par: Array, s: Array, control: Array, last: Array) -> None:
        rows, following = np.arange(len(s))[:, None], s[:, _NEXT].astype(int)
        before = s[rows, ring + (following[:, None] - 1) % room]
        now = np.where(last[:, None], control[:, wanted], before)
        ago = np.clip(np.rint(par[:, column] / dt), 0, room).astype(int)
        kept = s[rows, ring + (following[:, None] - ago) % room]
        control[:, applied] = np.where(ago > 0, kept, now)
        s[rows, ring + following[:, None]] = now
        s[:, _NEXT] = (following + 1) % room

    return run
