"""Simulation: steps a model in many worlds, and reads and writes its signals."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.backends import check_options, choose_backend, make_backend, why_not
from gpusim.backends.accuracy_watch import AccuracyWatch
from gpusim.backends.base import Backend
from gpusim.backends.health import CapacityWatch
from gpusim.builder.builder import world_count
from gpusim.builder.commands import delay_of
from gpusim.builder.joint_groups import choose_solvers
from gpusim.compile_cache import BrokenCompilerError
from gpusim.description.config import SolverConfig, work_dtype
from gpusim.errors import ModelError, UnknownNameError, callers_level, unknown_name
from gpusim.model.coordinates import coordinates
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.contacts.contact_report import Contacts, ContactSums, find_contacts, sweep_residuals
from gpusim.reference.signals.state_reader import StateReader
from gpusim.reference.step_buffers import StepBuffers
from gpusim.renamed import NamesMoved
from gpusim.signals.assembling import Assembling
from gpusim.signals.control_map import ControlMap
from gpusim.signals.emergency_stop import EmergencyStop, Stoppable
from gpusim.signals.observe import Command, Observation, chosen_commands, matching
from gpusim.signals.programs import Programs
from gpusim.signals.signal import Signal, SignalInfo, SignalsByName, SignalTable
from gpusim.signals.snapshot import LiveState
from gpusim.signals.writing import Part, StateWriter, chosen_worlds
from gpusim.typing import Array

DTYPES = {"float32": np.float32, "float64": np.float64}


class Simulation(Assembling, Stoppable, NamesMoved):
    """A simulation of a model in ``num_worlds`` worlds.

    Args:
        model: from :meth:`ModelBuilder.finalize`.
        num_worlds: number of worlds. By default the number that the builder replicated.
        backend: "cuda", "native", "numpy", or "auto": cuda for many worlds or thousands of contacts, else native.
        dtype: "float64", or "float32" for velocities, momenta and impulses. Poses are always float64. The direct solver
            works in float64 too, except with ``fast``.
        config: settings of the step.
        launch: kernels only. "fused": a block or thread per world. "simd": native backend with directly solved
            joints, worlds in the lanes of vectors. "staged": all threads run one stage after another. "auto": by the
            size of a world, its levels of joints and the number of worlds. The bits are the same.
        threads: native only. Number of threads for many worlds, by default all cores.
        device: CUDA only. Number of the GPU, by default 0. Simulations on several GPUs run in parallel.
        specialize: kernels only. Compile for the sizes of this model, with the same bits. True: at the start, which
            takes some seconds for each new model. False: never. By default, with 256 worlds or more, the CUDA backend
            compiles a specialized kernel in the background and switches to it when it is ready.
        fast: for speed. With float32, the direct solver works in float32 too, with about 3 digits less in hard cases.
            The CUDA backend fuses multiplies with adds, so its bits differ from the CPU's.

    Raises:
        ModelError: a setting breaks a rule.
        UnknownNameError: unknown backend or dtype.
    """

    def __init__(
        self,
        model: Model,
        num_worlds: int | None = None,
        backend: str = "auto",
        dtype: str = "float64",
        config: SolverConfig | None = None,
        *,
        launch: str = "auto",
        threads: int | None = None,
        device: int | None = None,
        fast: bool = False,
        specialize: bool | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ModelError(f"Simulation: model is a {type(model).__name__}; give what builder.finalize() returned")
        options: dict[str, Any] = {"launch": launch, "threads": threads, "device": device}
        options |= {"fast": fast, "specialize": specialize}
        check_options(options)
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise unknown_name("dtype", str(dtype), DTYPES)
        self.num_worlds = world_count("Simulation", model.num_worlds if num_worlds is None else num_worlds)
        if not isinstance(config, SolverConfig | None):
            raise ModelError(f"Simulation: config {config!r} is no SolverConfig; give gpusim.SolverConfig(dt=...)")
        self.built = model  # without the rows that parameter writes add
        model, self.config = choose_solvers(model, config or SolverConfig())
        self.model, self.dtype = model, dtype
        self.backend_name, self.backend_reason = choose_backend(backend, model, self.config, self.num_worlds)
        self.parameters = {k: v.copy() for k, v in model.parameters.items()}
        try:
            state = State.initial(model, self.num_worlds, DTYPES[dtype], self.config)
        except (MemoryError, ValueError) as error:
            rule = f"num_worlds = {self.num_worlds} needs more memory than there is ({error})"
            raise validate.fail("Simulation", rule, "give fewer") from None
        options |= {"config": self.config, "real": DTYPES[work_dtype(dtype, self.config, fast)]}
        self._make_backend: Callable[..., Backend] = partial(make_backend, **options)
        self.backend: Backend = self._first_backend(backend, model, state)
        if backend == "auto" and self.backend_name == "numpy":
            reason = self.backend_reason.rpartition("no native: ")[2]
            message = f"running on the slow NumPy backend, as there is no faster one here: {reason}"
            warnings.warn(message, stacklevel=callers_level())
        self.now = self._make_now()
        self._initial = state.copy()
        # Parts of the simulation hold a weak reference, so that its memory is freed with the last reference.
        self._self: Simulation = weakref.proxy(self)
        self.control = ControlMap(self._self)
        self._stop = EmergencyStop(self._self)
        self._signals: SignalTable | None = None
        self._single: dict[str, Observation] = {}
        self.programs: Programs | None = None
        if model.diagrams or any(map(delay_of, model.actuators)):
            self.programs, self._signals = Programs(self._self), None  # they have signals too
        self.drivers: Mapping[str, str] = {} if self.programs is None else self.programs.drivers
        """The diagram that writes each command, by label."""
        self.quarantine = self.backend.make_quarantine(self.drivers)
        self.capacity = CapacityWatch(self.backend, model, self.config)
        self.accuracy = AccuracyWatch(self.backend, model, self.config)
        self._forward: StepBuffers | None = None
        self._contacts: Contacts | None = None
        self._contact_sums: ContactSums | None = None
        self._writers: dict[tuple[str, ...], StateWriter] = {}
        self.steps = 0
        """Number of steps requested so far."""

    def _first_backend(self, asked: str, model: Model, state: State) -> Backend:
        """Return the chosen backend. With "auto" and a broken compiler, return another one."""
        try:
            return self._make_backend(self.backend_name, model, state, self.parameters)
        except BrokenCompilerError as error:
            if asked != "auto":
                raise
            self.backend_name = "numpy" if why_not("cuda") else "cuda"
            self.backend_reason = f"backend {self.backend_name}: no native: {error}"
            return self._make_backend(self.backend_name, model, state, self.parameters)

    def _make_now(self) -> StateReader:
        backend, semi_implicit = self.backend, self.config.scheme == "semi_implicit"
        table = coordinates(self.model)
        return StateReader(self.model, table, semi_implicit, backend.read_state, self.parameters, backend.read_control)

    def __reduce__(self) -> Any:
        raise TypeError("a Simulation can't be pickled or copied; save sim.state.copy() and make a new one")

    # Stepping.

    @property
    def state(self) -> LiveState:
        """Return the state with ``copy()`` and ``restore(kept, worlds)``. Call :meth:`changed` after writing."""
        state = self.backend.state
        return LiveState(state.num_worlds, state.arrays, state.groups, sim=self)

    def read_state(self) -> dict[str, Array]:
        """Return the arrays of the state for reading only."""
        return self.backend.read_state().arrays

    def states(self) -> tuple[State, State]:
        """Return the running state and the state of :meth:`reset`. You may write both."""
        self.backend.initial_changed()
        return self.state, self._initial

    @property
    def time(self) -> float:
        """Return the simulated time of world 0, s."""
        return float(self.read_state()["time"][0])

    def step(self, n: int = 1, dt: float | None = None) -> None:
        """Advance all worlds by ``n`` steps.

        Args:
            n: number of steps.
            dt: step size in s, by default ``config.dt``. It may change from step to step.

        Raises:
            ModelError: n or dt breaks a rule. A world that becomes NaN does not raise: see :meth:`health`.
            SimulationError: the pair buffer overflowed, and ``config.strict`` is set.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise validate.fail("Simulation.step", f"n = {n!r} must be a whole number of at least 0", "give 0 or more")
        n, size = int(n), self.config.dt if dt is None else validate.positive("Simulation.step", "dt", dt)
        self._forget()
        self._stop.hold()
        self.steps += n
        if self.programs is None:
            self.backend.advance(n, size, self.quarantine.check)
        else:
            for _ in range(n):
                self.programs.sample()
                self._stop.hold()
                self.backend.advance(1, size, self.quarantine.check)
        self.capacity.check()
        self.accuracy.check()

    def sample_programs(self) -> None:
        """Sample the diagrams that are due. The next step does not sample them again."""
        if self.programs is not None:
            self._forget()
            self._stop.hold()
            self.programs.sample()
            self._stop.hold()

    def add_state(self, name: str, values: Array) -> None:
        """Register an additional state array (num_worlds, ...). Resets and copies of the state include it."""
        self.backend.state.arrays[name] = values
        self._initial.arrays[name] = values.copy()
        self.backend.register_array(name)

    @property
    def step_size(self) -> float:
        """Return the size of the last step, s, or ``config.dt`` right after a reset."""
        usual, last = self.config.dt / self.config.substeps, self.backend.last_substep()
        return self.config.dt if last in (0.0, usual) else last * self.config.substeps

    def forward(self) -> StepBuffers:
        """Return the work arrays with forces at the current time (stage forward), computed once per state.

        Forces act over a kick. So this runs a trial of the next kick with the current step size and discards it.
        """
        if self._forward is None:
            self._forward = self.backend.run_forward(self.step_size / self.config.substeps)
        return self._forward

    def invalidate(self) -> None:
        """Invalidate forces and velocities after a write to the state."""
        self._forget()
        self.backend.invalidate()

    def _forget(self) -> None:
        """Invalidate cached forces and contacts."""
        self._forward = self._contacts = self._contact_sums = None

    def current_angles(self) -> None:
        """Update the counted joint angles to the current poses, without a trial kick."""
        if self._forward is None:
            self.backend.current_angles()

    # Contacts.

    def contacts(self, world: Any = None) -> Contacts:
        """Return the contact points at the current time, with gaps, forces and modes; see :class:`Contacts`.

        Velocities and forces are those of a trial step. The state does not change.

        Args:
            world: None for all, an index, a list of indices, or a mask (num_worlds,).

        Returns:
            Arrays over the points, sorted by world and pair. World frame, SI units.

        Raises:
            ModelError: no such world.
        """
        if self._contacts is None:
            self._contacts = find_contacts(self.forward(), self.backend.forward_contacts())
        if world is None:
            return self._contacts
        chosen = self.world_indices("Simulation.contacts", world)
        return self._contacts.select(np.isin(self._contacts.world, chosen))

    def sweep_residuals(self) -> Array:
        """Return how the contact sweeps of a trial step at the current time converge.

        Returns:
            (num_worlds, iterations): greatest change of an impulse in each sweep, N s. NaN for sweeps that were not
            needed, and if joints and contacts are swept together (``joint_solver="colored"`` with joints).
        """
        self.forward()
        return sweep_residuals(self.num_worlds, self.backend.forward_contacts())

    def contact_sums(self) -> ContactSums:
        """Return the contact forces by body and shape at the current time."""
        if self._contact_sums is None:
            self._contact_sums = ContactSums(self.contacts(), self.read_state()["position"])
        return self._contact_sums

    # Signals.

    def signal_table(self) -> SignalTable:
        """Return the table of all signals, e.g. to add signals."""
        if self._signals is None:
            from gpusim.signals.table import build_signals

            self._signals = build_signals(self._self)
        return self._signals

    def _known(self, name: str, many: str) -> SignalsByName:
        """Return the table of all signals and check ``name``. ``many``: the call for wildcards, for the error."""
        table = self.signal_table().by_name
        if isinstance(name, str) and name in table:
            return table
        if isinstance(name, str) and any(sign in name for sign in "*?["):
            raise UnknownNameError(f"signal {name!r}: a wildcard may stand for many signals; call {many.format(name)}")
        raise unknown_name("signal", name, table)

    def signals(self) -> dict[str, SignalInfo]:
        """Return all signals by name, with shape, unit and meaning."""
        return {name: signal.info for name, signal in self.signal_table().by_name.items()}

    def read(self, name: str, numpy: bool = False) -> Array:
        """Return the value of a signal in every world at the current time.

        Args:
            name: see :meth:`signals`.
            numpy: return a host copy. By default the CUDA backend returns a CuPy array, which ``torch.from_dlpack``
                accepts without a copy. The other backends always return NumPy arrays.

        Returns:
            (num_worlds,) or (num_worlds, ...).

        Raises:
            UnknownNameError: no such signal. The message names the nearest ones.
        """
        table = self._known(name, "sim.observe({!r})")
        signal = table[name]
        if signal.quantity is None:
            array = np.array(signal.read())
            return array if numpy else self.backend.to_device(array)
        if name not in self._single:
            self._single[name] = Observation(self._self, [signal])
        array = self._single[name].read().reshape(self.num_worlds, *signal.info.shape)
        return np.array(on_host(array)) if numpy else array.copy()

    def observe(self, names: str | Sequence[str]) -> Observation:
        """Compile a list of signals, which one launch then reads into one array (num_worlds, n).

        Args:
            names: signals or wildcards (``"joint.*.position"`` with ``*``, ``?``, ``[seq]``). A wildcard selects all
                matching signals, in the order of the model. Each signal occurs once.

        Returns:
            An :class:`Observation`. Call ``read()``, then use ``array`` with ``slices[name]``. Signals with ``forward``
            in their ``signals()`` entry cost one trial kick per state. All others need only the state.

        Raises:
            UnknownNameError: no such signal. The message names the nearest ones.
        """
        return Observation(self._self, self.signal_list(names))

    def signal_list(self, names: str | Sequence[str]) -> list[Signal]:
        """Return the signals that match names or wildcards."""
        table = self.signal_table().by_name
        return [table[name] for name in matching("signal", names, table)]

    def command(self, names: str | Sequence[str]) -> Command:
        """Compile a list of commands, by label or wildcard, to write them together; see :class:`Command`.

        A wildcard selects operator commands (``model.operator_commands``), or internal commands if none match.

        Raises:
            UnknownNameError: no such command. The message names the nearest ones.
        """
        return Command(self._self, chosen_commands(self._self, names))

    def write(self, name: str, value: Any, world: Any = None) -> None:
        """Write a signal or a parameter.

        A velocity is that at the current time. All other bodies keep their motion bit for bit, so you may write a
        velocity in every step.

        Args:
            name: see :meth:`signals`.
            value: for one world, or with a leading axis over the chosen worlds.
            world: None for all, an index, a list of indices, or a mask (num_worlds,).

        Raises:
            UnknownNameError: no such signal.
            ModelError: the signal is not writable, or the shape of the value does not fit.
        """
        self._known(name, "sim.write_state({{{!r}: value}})")
        worlds = self.world_indices(f"signal '{name}'", world)
        self._state_writer((name,)).write([value], worlds)

    def write_state(self, values: Mapping[str, Any], worlds: Any = None) -> None:
        """Write many signals at once: poses and joint coordinates, from parent to child, then velocities.

        The child of a joint moves rigidly with everything attached to it. So a posture needs only the pose of its base
        and the joint coordinates. Velocities that are not given rotate with their bodies. The order of ``values`` does
        not matter: parameters, commands and actuator variables come first, then bodies, then joints.

        Args:
            values: by signal, as for :meth:`write`, or by wildcard (see :meth:`observe`). A wildcard takes the numbers
                of all matching signals side by side, (n,) or (worlds, n), or an array that broadcasts to it.
            worlds: None for all, an index, a list of indices, or a mask (num_worlds,).

        Raises:
            UnknownNameError: no such signal.
            ModelError: a signal is not writable, or the shape of a value does not fit. No pose is written then.
        """
        if not isinstance(values, Mapping):
            rule = f"values = {values!r} is no dict"
            raise validate.fail("Simulation.write_state", rule, "give {'joint.hip.position': 0.1}")
        chosen = self.world_indices("Simulation.write_state", worlds)
        self._state_writer(tuple(values)).write(list(values.values()), chosen)

    def _state_writer(self, names: tuple[str, ...]) -> StateWriter:
        """Return the writer for signals or wildcards. It is cached for repeated writes."""
        if names not in self._writers:
            table = self.signal_table().by_name
            parts = [Part(name, [table[n] for n in matching("signal", name, table)]) for name in names]
            self._writers[names] = StateWriter(self._self, parts)
        return self._writers[names]

    def world_indices(self, element: str, world: Any) -> Array:
        """Return the indices of chosen worlds; see :meth:`write`."""
        return chosen_worlds(element, world, self.num_worlds)

    # Parameters.

    def parameter(self, name: str) -> Array:
        """Return a parameter array of model/fields.py over all worlds, (num_worlds, ...), read only."""
        array = self.parameters[name]
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:]))

    def write_parameter(self, name: str, column: Any, worlds: Array, value: Array) -> None:
        """Write one column of a parameter in some worlds, and update everything derived from it."""
        from gpusim.model.parameters import check_parameter

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
        self.backend.parameter_written(name, worlds)
        self.invalidate()

    def adopt(self, model: Model, parameters: dict[str, Array], state: State, initial: State) -> None:
        """Continue with a model that has the same elements but other rows; see signals/added_rows.py."""
        control = np.array(self.backend.host_control())
        model, _ = choose_solvers(model, self.config)
        self.model, self.parameters, self._initial = model, parameters, initial
        self.backend = self._make_backend(self.backend_name, model, state, parameters)
        self.backend.bind(control)
        self._stop.adopt()
        if self.programs is not None:
            self.programs.adopt()
        self.now = self._make_now()
        failed, self.quarantine = self.quarantine.reasons(), self.backend.make_quarantine(self.drivers)
        self.quarantine.resume(failed, np.arange(self.num_worlds))
        self.capacity.backend = self.backend
        self.accuracy.adopt(self.backend, model)
        self._signals, self._single, self._writers = None, {}, {}
        self.invalidate()

    # Reset, health.

    def reset(self, mask: Any = None) -> None:
        """Reset worlds to their initial state and commands. Parameters do not change.

        Args:
            mask: worlds as in :meth:`write`: a mask of bool, indices of worlds, or None for all. With the CUDA backend,
                a mask on the device (any DLPack array) stays there, and the host does not wait for it.
        """
        if self.backend.is_mask(mask):
            self.backend.restore(self._initial, mask)
            self.quarantine.release(None)
        else:
            worlds = self.world_indices("Simulation.reset", mask)
            self.backend.restore(self._initial, worlds)
            self.quarantine.release(worlds)
            self.capacity.release(worlds)
        self.invalidate()

    def health(self) -> Array:
        """Return True for every world that runs, False for a world in quarantine at its last good state.

        Worlds that run may still be wrong: :meth:`health_report` lists open joints and unconverged solves.
        """
        return ~self.quarantine.stopped

    def status_flags(self) -> Array:
        """Return the health of every world as a sum of bits.

        1: failed, 2: pair buffer overflow, 4: not converged, 8: a joint came apart, 16: contacts not converged,
        32: oil cavitated, 64: a motion jumped.
        """
        return 1 * self.quarantine.stopped + 2 * self.capacity.full + self.accuracy.word

    def health_report(self) -> str:
        """Return one line per problem and world: failures with time and element, and pair buffer overflows.

        It also lists open joints, unconverged contacts and solves, cavitated oil and jumps, with the fix.
        """
        reported = [*self.capacity.report(), *self.accuracy.report()]
        if not reported or self.quarantine.stopped.any():
            reported.insert(0, self.quarantine.report())
        return "\n".join(reported)
