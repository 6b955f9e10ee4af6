"""Diagrams at run time: what is read of the simulation, and a sample of each diagram before the step where it is due.

Numbers that live on are part of the state (``diagram.<label>``), so that copies, resets and replays hold them. A
sample is a launch of a small kernel of the diagram's own (cuda_kernels/diagram.cu); NumPy's backend, and diagrams with
Python in them, run the same operations over all worlds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.arrays import on_host
from gpusim.model import validate
from gpusim.model.program import MOST_AT_ONCE, Program, due_time, next_sample, sample_at
from gpusim.sensors.delays import Delays, delays
from gpusim.sensors.emergency_stop import command_steering
from gpusim.sensors.observe import Observation
from gpusim.sensors.signal import SignalTable
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

_BOUNDS = {"lower": "upper", "upper": "lower"}
"""Parameters of blocks that bound each other."""


def state_name(label: str) -> str:
    """Name of a diagram's numbers in the state."""
    return f"diagram.{label}"


class RunningProgram:
    """One diagram of a simulation."""

    def __init__(self, sim: Simulation, program: Program) -> None:
        self.program, self._sim, self.name = program, sim, state_name(program.label)
        self.parameters = program.parameters[None].copy()
        self._observation = Observation(sim, sim.signal_list(program.signals) if program.signals else [])
        self._launch: Any = None
        self._bind()

    def adopt(self) -> None:
        """Go on with another backend of the simulation."""
        self._sim.backend.keep_along(self.name)
        self._bind()

    def _bind(self) -> None:
        """Find the launch, for the simulation's backend."""
        self._backend = self._sim.backend
        self._launch = None if self.program.host else self._backend.program_launcher(self.program, self.name)

    def sample(self) -> None:
        """Run it in the worlds where it is due."""
        if self._launch is not None:
            if self._backend.name == "cuda" or self._somewhere_due():
                self._launch(self._observation.read(), self.parameters)
            return
        due = self._due() & ~self._sim.quarantine.stopped
        if due.any():
            self._on_host(on_host(self._observation.read()), np.flatnonzero(due))

    def _due(self) -> Array:
        arrays = self._backend.read_state().arrays
        periods = self.program.periods(self.parameters)
        return np.asarray(arrays["time"] >= due_time(arrays[self.name][:, 0], periods))

    def _somewhere_due(self) -> bool:
        """Whether a world has a sample due; of one world without arrays, which take longer than the sample."""
        arrays = self._backend.read_state().arrays
        if self._sim.num_worlds > 1 or self.program.rate_at is not None:
            return bool(self._due().any())
        return bool(arrays["time"].item(0) >= due_time(arrays[self.name].item(0), self.program.period))

    def _on_host(self, given: Array, worlds: Array) -> None:
        arrays, control = self._backend.state.arrays, self._backend.host_control()
        numbers = arrays[self.name]
        par = self.parameters if len(self.parameters) == 1 else self.parameters[worlds]
        own, commands = numbers[worlds], control[worlds]
        time, periods = arrays["time"][worlds], np.broadcast_to(self.program.periods(par), worlds.shape)
        given, par = given[worlds], np.broadcast_to(par, (worlds.size, par.shape[1]))
        due = np.arange(worlds.size)
        for _ in range(MOST_AT_ONCE):
            some = own[due], commands[due]
            self.program.run(given[due], par[due], *some)
            some[0][:, 0] += 1.0
            own[due], commands[due] = some
            due = due[time[due] >= due_time(own[due, 0], periods[due])]
            if not due.size:
                break
        own[:, 0] = next_sample(own[:, 0], time, periods)
        numbers[worlds], control[worlds] = own, commands
        self._backend.changed()

    def write_parameter(self, name: str, worlds: Array, values: Array) -> None:
        """A parameter that may be written, in some worlds."""
        tuned = self.program.tuned[name]
        tuned.check(name, np.ravel(values))
        self._check_bound(name, worlds, values)
        if len(self.parameters) != self._sim.num_worlds:
            self.parameters = np.repeat(self.parameters, self._sim.num_worlds, axis=0)
        before = self.program.periods(self.parameters[worlds])
        self.parameters[worlds, tuned.at] = values
        if tuned.at == self.program.rate_at:
            self._count_anew(worlds, before)

    def _count_anew(self, worlds: Array, before: Array) -> None:
        """With another rate a world's next sample has another number, and what delays hold other distances in time."""
        arrays, period = self._backend.state.arrays, self.program.periods(self.parameters[worlds])
        numbers = arrays[self.name][worlds]
        begun = numbers[:, 0] > 0.0
        following = sample_at(arrays["time"][worlds], period)
        stretch = period / before
        for ring in self.program.rings:
            ring.space_anew(numbers, following * stretch - (numbers[:, 0] - 1.0), stretch)
        numbers[:, 0] = following
        arrays[self.name][worlds[begun]] = numbers[begun]  # the others begin with sample 0 at any rate
        self._backend.changed()

    def _check_bound(self, name: str, worlds: Array, values: Array) -> None:
        """A lower bound of a block stays below its upper one."""
        block, _, own = name.rpartition(".")
        partner = self.program.tuned.get(f"{block}.{_BOUNDS[own]}") if own in _BOUNDS else None
        if partner is None:
            return
        other = np.broadcast_to(self.parameters[:, partner.at], (self._sim.num_worlds,))[worlds]
        wrong = np.ravel(values > other if own == "lower" else values < other)
        if wrong.any():
            given, bound = (float(np.broadcast_to(x, wrong.shape)[wrong][0]) for x in (values, other))
            sides = f"{own} = {given:g} is {'above' if own == 'lower' else 'below'} {_BOUNDS[own]} = {bound:g}"
            raise validate.fail(f"signal '{name}'", sides, f"write {_BOUNDS[own]} first")


class Programs:
    """All diagrams of a simulation, in order, and last the delays of commands.

    Attributes:
        drivers: which diagram gives a command, by label.
    """

    def __init__(self, sim: Simulation) -> None:
        infos, dt = sim.signals(), sim.config.dt
        model = sim.model
        commands = {label: steering.unit for label, steering in command_steering(model).items()}
        commands |= {item.label: item.unit for d in model.diagrams for item in d.operator_inputs if item.unit}
        made = [spec.compile(infos, model.controls, dt, commands) for spec in model.diagrams]
        self._sim, late = sim, delays(model, dt)
        made += [late] if late else []
        self.drivers = {label: program.label for program in made for label in program.drives}
        for program in made:
            numbers = np.repeat(program.initial[None], sim.num_worlds, axis=0)
            numbers[:, 1] = np.arange(sim.num_worlds)
            sim.add_state(state_name(program.label), numbers)
        self.running = [RunningProgram(sim, program) for program in made]

    def adopt(self) -> None:
        """The simulation goes on with another backend, which has to know the numbers too."""
        for running in self.running:
            running.adopt()

    def sample(self) -> None:
        """What is due before a step."""
        for running in self.running:
            if isinstance(running.program, Delays):  # what a stop holds is delayed, not what it keeps from acting
                self._sim.backend.hold_stopped()
            running.sample()

    def settle(self, worlds: Array, commands: Array) -> None:
        """Nothing but these commands, (len(worlds), controls), is on the way in worlds that are stopped."""
        for running in self.running:
            if isinstance(running.program, Delays):
                running.program.settle(self._sim.state.arrays[running.name], worlds, commands)

    def add_signals(self, sim: Simulation, table: SignalTable) -> None:
        """Wires, and parameters that may be written."""
        for running in self.running:
            for wire in running.program.wires:
                table.add(wire.name, wire.shape, wire.unit, wire.doc, _wire(sim, running.name, wire.at, wire.shape))
            for name, tuned in running.program.tuned.items():
                if name not in table.by_name:
                    reader, writer = _parameter(sim, running, tuned.at), _writer(running, name)
                    table.add(name, (), tuned.unit, tuned.doc, reader, writer)


def _wire(sim: Simulation, name: str, at: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    columns = list(at)
    return lambda: np.array(sim.read_state()[name][:, columns].reshape(sim.num_worlds, *shape))


def _parameter(sim: Simulation, running: RunningProgram, at: int) -> Any:
    return lambda: np.broadcast_to(running.parameters[:, at], (sim.num_worlds,)).copy()


def _writer(running: RunningProgram, name: str) -> Any:
    return lambda worlds, values: running.write_parameter(name, worlds, values)
