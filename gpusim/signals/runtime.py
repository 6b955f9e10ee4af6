"""Runtime: many worlds of a model, and their backend. Signals access a simulation through its runtime."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.backends.accuracy_watch import AccuracyWatch
from gpusim.backends.base import Backend
from gpusim.backends.health import CapacityWatch
from gpusim.builder.joint_groups import choose_solvers
from gpusim.description.config import SolverConfig
from gpusim.errors import SimulationError
from gpusim.model.coordinates import coordinates
from gpusim.model.model import Model
from gpusim.model.parameters import check_parameter
from gpusim.model.state import State
from gpusim.reference.contacts.contact_report import Contacts, ContactSums, find_contacts
from gpusim.reference.signals.state_reader import StateReader
from gpusim.reference.step_buffers import StepBuffers
from gpusim.signals.fall_watch import FallWatch
from gpusim.signals.rope_watch import warn_about_long_ropes
from gpusim.signals.signal import Signal, SignalTable
from gpusim.signals.step_samplers import StepSampler
from gpusim.typing import Array
from gpusim.validate import matching


class OneThread:
    """Context manager that raises an error if another thread is inside.

    Two threads that step one simulation would write to the same arrays, with a wrong state as the result.
    """

    def __init__(self) -> None:
        lock = threading.Lock()
        self._acquire, self._release = lock.acquire, lock.release

    def __enter__(self) -> None:
        if not self._acquire(False):
            raise SimulationError(
                "Simulation.step: another step of this simulation is running; step it from one thread, or use a lock"
            )

    def __exit__(self, *_: object) -> None:
        self._release()


class Runtime:
    """Model in many worlds, with a backend and with cached forces and contacts of the current state.

    Args:
        model, config: model and settings from ``choose_solvers``.
        built: model from the builder, without the axis rows that parameter writes have added.
        state: initial state, (num_worlds, ...).
        parameters: copies of the model parameters, by name.
        backend: backend of the model.
        make_backend: function that creates a backend for another model, state and parameters.
        build_signals: function that creates the table of all signals.

    Attributes:
        alone: context in which only one thread may advance the worlds.
        initial: the state that a reset restores.
        now: reader of the state at the current time.
        drivers: dict that maps the label of each command to the label of the diagram that writes it.
        running: running diagrams (``RunningProgram``), in execution order.
        steps: number of requested steps so far.
        samplers: observers that take samples during steps, such as recordings.
        rebound: functions to call after :meth:`rebind`.
        compiled: cache of observations and writers by signal names. :meth:`rebind` clears the cache.
    """

    def __init__(
        self,
        model: Model,
        config: SolverConfig,
        built: Model,
        state: State,
        parameters: dict[str, Array],
        backend: Backend,
        make_backend: Callable[[Model, State, dict[str, Array]], Backend],
        build_signals: Callable[[], SignalTable],
    ) -> None:
        self.model, self.config, self.built = model, config, built
        self.num_worlds, self._parameters, self.backend = state.num_worlds, parameters, backend
        self.initial = state.copy()
        self._make_backend, self._build_signals = make_backend, build_signals
        self.now = self._make_now()
        self.drivers: Mapping[str, str] = {}
        self.running: list[Any] = []
        self.samplers: list[StepSampler] = []
        self.rebound: list[Callable[[], None]] = []
        self._added: list[str] = []
        self.steps = 0
        self._signals: SignalTable | None = None
        self.compiled: dict[tuple[str, ...], Any] = {}
        self._forward: StepBuffers | None = None
        self._contacts: Contacts | None = None
        self._contact_sums: ContactSums | None = None
        self.capacity = CapacityWatch(backend, model, config)
        self.accuracy = AccuracyWatch(backend, model, config)
        self.falls = FallWatch(backend, model)
        self.alone = OneThread()

    def watch(self, drivers: Mapping[str, str]) -> None:
        """Create the quarantine, which detects failed worlds."""
        self.drivers, self._signals = drivers, None  # rebuild the signal table with the signals of diagrams
        self.quarantine = self.backend.make_quarantine(drivers)

    def _make_now(self) -> StateReader:
        memory, semi_implicit = self.backend.memory, self.config.scheme == "semi_implicit"
        table = coordinates(self.model)
        return StateReader(self.model, table, semi_implicit, memory.read_state, self.parameters, memory.read_control)

    # State.

    @property
    def state(self) -> State:
        """Return the current state for reading and writing. After a write, call :meth:`invalidate`."""
        return self.backend.memory.state

    def read_state(self) -> dict[str, Array]:
        """Return the arrays of the current state for reading only."""
        return self.backend.memory.read_state().arrays

    def states(self) -> tuple[State, State]:
        """Return the current state and the reset state."""
        self.backend.invalidate(initial=True)
        return self.state, self.initial

    def add_state(self, name: str, values: Array) -> None:
        """Register an additional state array (num_worlds, ...). Resets and copies of the state include it."""
        self.backend.memory.state.arrays[name] = values
        self.initial.arrays[name] = values.copy()
        self._added.append(name)
        self.backend.memory.register_array(name)

    def invalidate(self) -> None:
        """Invalidate all results that depend on the state, after a write to the state."""
        self.forget()
        self.backend.invalidate()

    def forget(self) -> None:
        """Invalidate cached forces and contacts."""
        self._forward = self._contacts = self._contact_sums = None

    def count(self, steps: int) -> None:
        """Count steps before they run, and invalidate cached forces and contacts."""
        if not self.steps:
            warn_about_long_ropes(self.model, self.parameters, self.now)
        self.forget()
        self.steps += steps

    @property
    def status(self) -> Array:
        """Return the status of each world as a bit mask. See :meth:`gpusim.Simulation.status_flags`."""
        return 1 * self.quarantine.stopped + 2 * self.capacity.full + self.accuracy.word

    def warn(self) -> None:
        """Warn about worlds with exceeded capacities or low accuracy in the last steps, and about falling bodies."""
        self.capacity.check()
        self.accuracy.check()
        # The host may have an old gravity after a write on the device, because a step must not wait for the device.
        self.falls.check(self.steps, self._parameters["gravity"])

    # Forces and contacts at the current time.

    @property
    def step_size(self) -> float:
        """Return the duration of the last step (s), or ``config.dt`` right after a reset."""
        usual, last = self.config.dt / self.config.substeps, self.backend.last_substep()
        return self.config.dt if last in (0.0, usual) else last * self.config.substeps

    def forward(self) -> StepBuffers:
        """Return the work arrays with the forces at the current time, from a trial step.

        Further calls reuse the trial step until the state changes.
        """
        if self._forward is None:
            self._forward = self.backend.run_forward(self.step_size / self.config.substeps)
        return self._forward

    def current_angles(self) -> None:
        """Compute the joint angles at the current poses, including full rotations."""
        if self._forward is None:
            self.backend.current_angles()

    def contacts(self) -> Contacts:
        """Return the contact points of all worlds at the current time."""
        if self._contacts is None:
            self._contacts = find_contacts(self.forward(), self.backend.forward_contacts())
        return self._contacts

    def contact_sums(self) -> ContactSums:
        """Return the contact forces on each body and shape at the current time."""
        if self._contact_sums is None:
            self._contact_sums = ContactSums(self.contacts(), self.read_state()["position"])
        return self._contact_sums

    # Signals and parameters.

    def signal_table(self) -> SignalTable:
        """Return the table of all signals. Callers can add signals to this table."""
        if self._signals is None:
            self._signals = self._build_signals()
        return self._signals

    def signal_list(self, names: str | Sequence[str]) -> list[Signal]:
        """Return the signals that match names or wildcards."""
        table = self.signal_table().by_name
        return [table[name] for name in matching("signal", names, table)]

    @property
    def parameters(self) -> dict[str, Array]:
        """Return the parameters on the host by name (``fields.PARAMETER_FIELDS``)."""
        self.backend.memory.pull_parameters()
        return self._parameters

    def parameter(self, name: str) -> Array:
        """Return the parameter ``name`` in all worlds, (num_worlds, ...), for reading only."""
        array = self.parameters[name]
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:]))

    def write_parameter(self, name: str, column: Any, worlds: Array, value: Array) -> None:
        """Write one column of the parameter ``name`` in ``worlds``, and update all values that depend on it."""
        before = self.parameters[name]
        rows = np.array(before if before.shape[0] == 1 else before[worlds])
        rows = rows if rows.shape[0] == worlds.size else np.repeat(rows, worlds.size, axis=0)
        rows[:, column] = value
        limits = ("limit_lower", "limit_upper")
        near = {k: v if v.shape[0] == 1 else v[worlds] for k in limits for v in (self.parameters[k],)}
        check_parameter(self.model, near, name, rows, column)
        if before.shape[0] != self.num_worlds:
            self.parameters[name] = np.repeat(before, self.num_worlds, axis=0)
        self.parameters[name][worlds] = rows
        self.backend.written([name], worlds)
        self.invalidate()

    def rebind(self, model: Model, parameters: dict[str, Array], state: State, initial: State) -> None:
        """Switch to a model with the same elements but different axis rows. See signals/added_rows.py."""
        if getattr(self.backend.memory, "replays", False):
            rule = "a captured graph cannot use new constraint rows"
            raise validate.fail("Simulation", rule, "write this parameter before Simulation.capture")
        control = np.array(self.backend.memory.read_control())
        self.model, _ = choose_solvers(model, self.config)
        self._parameters, self.initial = parameters, initial
        self.backend = self._make_backend(self.model, state, parameters)
        self.backend.memory.write_commands(slice(None), control)
        for name in self._added:
            self.backend.memory.register_array(name)
        self._signals, self.compiled = None, {}
        self.now = self._make_now()
        failed, self.quarantine = self.quarantine.reasons(), self.backend.make_quarantine(self.drivers)
        self.quarantine.resume(failed, np.arange(self.num_worlds))
        self.capacity.backend = self.backend
        self.accuracy.rebind(self.backend, self.model)
        self.falls.rebind(self.backend, self.model)
        for call in self.rebound:
            call()
        self.invalidate()
