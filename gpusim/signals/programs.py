"""Block diagrams in a simulation: their signals, and their evaluation before steps.

One evaluation of a diagram is a *sample*. A sample launches a generated kernel (cuda_kernels/diagram.cu). The state
variables of a diagram are part of the state (``diagram.<label>``). Copies, resets and replays of the state therefore
include them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.builder.commands import command_hints
from gpusim.description.program import Program
from gpusim.description.program_clock import (
    BASE,
    COUNT,
    EARLY,
    MAX_AT_ONCE,
    ORIGIN,
    PERIOD,
    WORLD,
    count_sample,
    end_samples,
    has_new_period,
    is_due,
    reading_fraction,
    skip_samples,
    take_period,
)
from gpusim.description.step_plan import Sampling
from gpusim.signals.delays import Delays, delays
from gpusim.signals.observe import Observation
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SignalInfo, SignalTable
from gpusim.typing import Array

_BOUNDS = {"lower": "upper", "upper": "lower"}
"""Dict from the name of a bound of a block to the name of the opposite bound."""


def state_name(label: str) -> str:
    """Return the name of the state array with the variables of a diagram."""
    return f"diagram.{label}"


class RunningProgram:
    """Block diagram that runs in a simulation."""

    def __init__(self, runtime: Runtime, program: Program) -> None:
        self.program, self._runtime, self.name = program, runtime, state_name(program.label)
        self.parameters = program.parameters[None].copy()
        self._observation = Observation(runtime, runtime.signal_list(program.signals) if program.signals else [])
        self._launch: Any = None
        self.bind()

    def bind(self) -> None:
        """Prepare the kernel launch for the current backend."""
        self._backend = self._runtime.backend
        self._launch = None if self.program.host else self._backend.program_launcher(self.program, self.name)

    def sample(self) -> None:
        """Run the diagram in all worlds in which a sample is due."""
        if self._launch is not None:
            if self._backend.name == "cuda" or self._is_any_due():
                self._launch(self._observation.read(), self.parameters)
            return
        due = self._due() & ~self._runtime.quarantine.stopped
        if due.any():
            self._on_host(on_host(self._observation.read()), np.flatnonzero(due))

    def sampling(self) -> Sampling | None:
        """Return the data for running the diagram in the backend between steps, or None if the diagram needs Python."""
        inputs = None if self._launch is None else self._observation.reading()
        if inputs is None:
            return None
        return Sampling(self.program, inputs, self.parameters, self.name, isinstance(self.program, Delays))

    def _due(self) -> Array:
        """Return a mask of the worlds with a due sample or a changed sample period."""
        arrays, periods = self._backend.memory.read_state().arrays, self.program.periods(self.parameters)
        numbers = arrays[self.name]
        return np.asarray(is_due(numbers, arrays["time"], periods) | has_new_period(numbers, periods))

    def _is_any_due(self) -> bool:
        """Return whether a sample is due in at least one world."""
        if self._runtime.num_worlds > 1 or self.program.rate_at is not None:
            return bool(self._due().any())
        arrays, period = self._backend.memory.read_state().arrays, self.program.period
        number = arrays[self.name].item
        count, origin, base, last = number(COUNT), number(ORIGIN), number(BASE), number(PERIOD)
        due = arrays["time"].item(0) >= origin + (count - base - EARLY) * period
        return bool(due or (count > 0.0 and last != period))

    def _on_host(self, inputs: Array, worlds: Array) -> None:
        """Take all due samples in ``worlds`` with NumPy, like the kernel function ``take_samples``."""
        arrays, control = self._backend.memory.state.arrays, self._backend.memory.host_control()
        numbers = arrays[self.name]
        par = np.broadcast_to(self.parameters, (self._runtime.num_worlds, self.parameters.shape[1]))[worlds]
        variables, commands, now = numbers[worlds], control[worlds], inputs[worlds]
        time, periods = arrays["time"][worlds], np.broadcast_to(self.program.periods(par), worlds.shape)
        other = has_new_period(variables, periods)
        if other.any():
            some = variables[other]
            take_period(some, periods[other], self.program.rings)
            variables[other] = some
        taken = due = np.flatnonzero(is_due(variables, time, periods))
        some = variables[taken]
        skip_samples(some, time[taken], periods[taken])
        variables[taken] = some
        for k in range(MAX_AT_ONCE):
            if not due.size:
                break
            due = self._take_sample(variables, commands, now, par, time, periods, due, k + 1 == MAX_AT_ONCE)
        some = variables[taken]
        end_samples(some, time[taken], periods[taken])
        some[:, len(self.program.initial) :] = now[taken]
        variables[taken] = some
        numbers[worlds], control[worlds] = variables, commands
        self._backend.invalidate()

    def _take_sample(
        self, variables: Array, commands: Array, now: Array, par: Array, time: Array, periods: Array, due: Array,
        final: bool,
    ) -> Array:  # fmt: skip
        """Take one sample in the worlds ``due``. Return the worlds in which another sample is due."""
        some, period, at = variables[due], periods[due], time[due]
        fraction, inputs, last_inputs = (
            reading_fraction(some, at, period)[:, None],
            now[due],
            some[:, len(self.program.initial) :],
        )
        inputs = np.where(fraction < 1.0, last_inputs + fraction * (inputs - last_inputs), inputs)
        following = some.copy()
        following[:, COUNT] += 1.0
        again = is_due(following, at, period) & (not final)
        command = commands[due]
        self.program.run(inputs, par[due], some, command, ~again)
        count_sample(some, at, period)
        variables[due], commands[due] = some, command
        return due[again]

    def write_parameter(self, name: str, worlds: Array, values: Array) -> None:
        """Write the parameter ``name`` of the diagram in ``worlds``."""
        tuned = self.program.tuned[name]
        tuned.check(name, np.ravel(values))
        self._check_bound(name, worlds, values)
        if len(self.parameters) != self._runtime.num_worlds:
            self.parameters = np.repeat(self.parameters, self._runtime.num_worlds, axis=0)
        self.parameters[worlds, tuned.at] = values

    def _check_bound(self, name: str, worlds: Array, values: Array) -> None:
        """Raise an error if the lower bound of a block would exceed its upper bound."""
        block, _, parameter = name.rpartition(".")
        partner = self.program.tuned.get(f"{block}.{_BOUNDS[parameter]}") if parameter in _BOUNDS else None
        if partner is None:
            return
        other = np.broadcast_to(self.parameters[:, partner.at], (self._runtime.num_worlds,))[worlds]
        wrong = np.ravel(values > other if parameter == "lower" else values < other)
        if wrong.any():
            number, bound = (float(np.broadcast_to(x, wrong.shape)[wrong][0]) for x in (values, other))
            side, opposite = "above" if parameter == "lower" else "below", _BOUNDS[parameter]
            rule = f"{parameter} = {number:g} is {side} {opposite} = {bound:g}"
            raise validate.fail(f"signal '{name}'", rule, f"write {opposite} first")

    def add_wires(self, runtime: Runtime, table: SignalTable) -> None:
        """Add signals for the wires of the diagram."""
        for wire in self.program.wires:
            read, kept = _wire(runtime, self.name, wire.at, wire.shape), (self.name, wire.at)
            write = _wire_writer(runtime, self.name, wire.at) if wire.writable else None
            table.add(wire.name, wire.shape, wire.unit, wire.doc, read, write, kept=kept)


def start_programs(runtime: Runtime) -> dict[str, str]:
    """Start all programs: first sensors, then all other diagrams in the order of the model, then command delays.

    Returns:
        Dict that maps the label of each command to the label of the diagram that sets it.
    """
    model, dt = runtime.model, runtime.config.dt
    commands = {label: ui_hints.unit for label, ui_hints in command_hints(model).items()}
    commands |= {item.label: item.unit for d in model.diagrams for item in d.operator_inputs if item.unit}
    late = delays(model, dt)
    if model.diagrams or late:
        infos = {name: signal.info for name, signal in runtime.signal_table().by_name.items()}
        # Start sensors first, because diagrams may read sensors.
        for spec in sorted(model.diagrams, key=lambda spec: not spec.senses):
            infos |= _start(runtime, spec.compile(infos, model.controls, dt, commands))
        if late:
            _start(runtime, late)
    return {label: r.program.label for r in runtime.running for label in r.program.drives}


def _start(runtime: Runtime, program: Program) -> dict[str, SignalInfo]:
    """Create the state array of a program, start the program, and return its wires as signals."""
    numbers = np.repeat(program.numbers[None], runtime.num_worlds, axis=0)
    numbers[:, WORLD] = np.arange(runtime.num_worlds)
    runtime.add_state(state_name(program.label), numbers)
    running = RunningProgram(runtime, program)
    runtime.running.append(running)
    runtime.rebound.append(running.bind)
    table = runtime.signal_table()
    running.add_wires(runtime, table)
    return {wire.name: table.by_name[wire.name].info for wire in program.wires}


def sample_programs(runtime: Runtime) -> None:
    """Run all diagrams that are due before a step."""
    runtime.backend.memory.hold_overridden()
    for running in runtime.running:
        if isinstance(running.program, Delays):  # first hold the commands, because delays must delay the held values
            runtime.backend.memory.hold_overridden()
        running.sample()
    if runtime.running:
        runtime.backend.memory.hold_overridden()


def add_program_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add signals for the wires and the writable parameters of all diagrams."""
    for running in runtime.running:
        running.add_wires(runtime, table)
        for name, tuned in running.program.tuned.items():
            if name not in table.by_name:
                reader, writer = _parameter(runtime, running, tuned.at), _writer(running, name)
                table.add(name, (), tuned.unit, tuned.doc, reader, writer)


def _wire(runtime: Runtime, name: str, at: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    columns = list(at)
    return lambda: np.array(runtime.read_state()[name][:, columns].reshape(runtime.num_worlds, *shape))


def _wire_writer(runtime: Runtime, name: str, at: tuple[int, ...]) -> Any:
    def write(worlds: Array, values: Array) -> None:
        runtime.state.arrays[name][worlds[:, None], list(at)] = values.reshape(len(worlds), -1)
        runtime.invalidate()

    return write


def _parameter(runtime: Runtime, running: RunningProgram, at: int) -> Any:
    return lambda: np.broadcast_to(running.parameters[:, at], (runtime.num_worlds,)).copy()


def _writer(running: RunningProgram, name: str) -> Any:
    return lambda worlds, values: running.write_parameter(name, worlds, values)
