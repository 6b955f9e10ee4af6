"""Simulation: the front door. Steps a model in many worlds, reads and writes its signals."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpusim.arrays import on_host
from gpusim.backends import check_options, choose_backend, make_backend, why_not
from gpusim.backends.accuracy_watch import AccuracyWatch
from gpusim.backends.base import Backend
from gpusim.backends.health import CapacityWatch
from gpusim.compile_cache import BrokenCompilerError
from gpusim.errors import ModelError, UnknownNameError, callers_level, unknown_name
from gpusim.model import validate
from gpusim.model.builder import world_count
from gpusim.model.commands import delay_of
from gpusim.model.config import SolverConfig, work_dtype
from gpusim.model.coordinates import coordinates
from gpusim.model.joint_groups import choose_solvers
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.contact_report import Contacts, ContactSums, find_contacts, sweep_residuals
from gpusim.reference.now import Now
from gpusim.reference.work import Work
from gpusim.sensors.assembling import Assembling
from gpusim.sensors.control_map import ControlMap
from gpusim.sensors.emergency_stop import EmergencyStop, Stoppable
from gpusim.sensors.observe import Command, Observation, chosen_commands, matching
from gpusim.sensors.programs import Programs
from gpusim.sensors.signal import Signal, SignalInfo, SignalsByName, SignalTable
from gpusim.sensors.snapshot import LiveState
from gpusim.sensors.writing import Part, StateWriter, chosen_worlds
from gpusim.typing import Array

DTYPES = {"float32": np.float32, "float64": np.float64}


class Simulation(Assembling, Stoppable):
    """Runs ``num_worlds`` copies of a model.

    Args:
        model: from :meth:`ModelBuilder.finalize`.
        num_worlds: how many; what the builder replicated if left out.
        backend: "cuda", "native", "numpy", or "auto": cuda for many worlds or thousands of contacts, else native.
        dtype: "float64", or "float32" for velocities, momenta and impulses (poses stay float64, and the direct solver
            works in float64; see ``fast``).
        config: settings of the step.
        launch: kernels only: "fused" (a block or thread for each world), "grouped" (native, joints solved directly:
            worlds in the lanes of vectors), "staged" (all threads on one stage after another), "auto" (by the size of
            a world, its levels of joints and the number of worlds); same bits.
        threads: native only: threads for many worlds; all cores if left out.
        device: cuda only: number of the GPU; 0 if left out. Simulations on several GPUs run side by side.
        specialize: kernels only: compile for this model's sizes, same bits. True: at once, so that each new model takes
            a build of some seconds. False: never. Where left out, the cuda backend makes such a build beside the run
            for models in 256 worlds or more, and changes over when it is there.
        fast: for speed: float32 works in float32 also in the direct solver (some 3 digits less on hard cases), and the
            cuda backend fuses multiplies with adds (bits differ from the CPU's).

    Raises:
        ModelError: a setting breaks a rule.
        UnknownNameError: an unknown backend.
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
            raise ModelError(f"Simulation: model {model!r} is no Model; give what builder.finalize() returned")
        options: dict[str, Any] = {"launch": launch, "threads": threads, "device": device}
        options |= {"fast": fast, "specialize": specialize}
        check_options(options)
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise unknown_name("dtype", str(dtype), DTYPES)
        self.num_worlds = world_count("Simulation", model.num_worlds if num_worlds is None else num_worlds)
        if not isinstance(config, SolverConfig | None):
            raise ModelError(f"Simulation: config {config!r} is no SolverConfig; give gpusim.SolverConfig(dt=...)")
        self.built = model  # without the rows that writes of parameters add
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
        # Its parts know the simulation without keeping it alive, so that its memory is freed with the last reference.
        self._self: Simulation = weakref.proxy(self)
        self.control = ControlMap(self._self)
        self._stop = EmergencyStop(self._self)
        self._signals: SignalTable | None = None
        self._single: dict[str, Observation] = {}
        self.programs: Programs | None = None
        if model.diagrams or any(map(delay_of, model.actuators)):
            self.programs, self._signals = Programs(self._self), None  # they have signals too
        self.drivers: Mapping[str, str] = {} if self.programs is None else self.programs.drivers
        """Which diagram gives a command, by label."""
        self.quarantine = self.backend.make_quarantine(self.drivers)
        self.capacity = CapacityWatch(self.backend, model, self.config)
        self.accuracy = AccuracyWatch(self.backend, model, self.config)
        self._forward: Work | None = None
        self._contacts: Contacts | None = None
        self._contact_sums: ContactSums | None = None
        self._writers: dict[tuple[str, ...], StateWriter] = {}
        self.steps = 0
        """Steps that were asked for so far."""

    def _first_backend(self, asked: str, model: Model, state: State) -> Backend:
        """The chosen backend; another one where none was asked for and the compiler does not work."""
        try:
            return self._make_backend(self.backend_name, model, state, self.parameters)
        except BrokenCompilerError as error:
            if asked != "auto":
                raise
            self.backend_name = "numpy" if why_not("cuda") else "cuda"
            self.backend_reason = f"backend {self.backend_name}: no native: {error}"
            return self._make_backend(self.backend_name, model, state, self.parameters)

    def _make_now(self) -> Now:
        backend, semi_implicit = self.backend, self.config.scheme == "semi_implicit"
        table = coordinates(self.model)
        return Now(self.model, table, semi_implicit, backend.read_state, self.parameters, backend.read_control)

    def __reduce__(self) -> Any:
        raise TypeError("a Simulation can't be pickled or copied; save sim.state.copy() and make a new one")

    # Stepping.

    @property
    def state(self) -> LiveState:
        """The state's arrays; ``copy()`` takes a snapshot, ``restore(kept, worlds)``; :meth:`changed` after writing."""
        state = self.backend.state
        return LiveState(state.num_worlds, state.arrays, state.groups, sim=self)

    def read_state(self) -> dict[str, Array]:
        """The state's arrays, to be read only."""
        return self.backend.read_state().arrays

    def states(self) -> tuple[State, State]:
        """The running state and the one that :meth:`reset` returns to; both may be written."""
        self.backend.initial_changed()
        return self.state, self._initial

    @property
    def time(self) -> float:
        """Simulated time of world 0, s."""
        return float(self.read_state()["time"][0])

    def step(self, n: int = 1, dt: float | None = None) -> None:
        """Advance all worlds by ``n`` steps.

        Args:
            n: number of steps.
            dt: step size in s; ``config.dt`` if left out. May change from step to step.

        Raises:
            ModelError: n or dt breaks a rule. A world that goes NaN does not raise: see :meth:`health`.
            SimulationError: more pairs of shapes are close than there are places, and ``config.strict`` is set.
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
        """What diagrams that are due command; the next step finds nothing left to do."""
        if self.programs is not None:
            self._forget()
            self._stop.hold()
            self.programs.sample()
            self._stop.hold()

    def add_state(self, name: str, values: Array) -> None:
        """An array (num_worlds, ...) of the state that the step itself does not know; reset, and copied with it."""
        self.backend.state.arrays[name] = values
        self._initial.arrays[name] = values.copy()
        self.backend.keep_along(name)

    @property
    def step_size(self) -> float:
        """The step in use, s: that of the last step, ``config.dt`` right after a reset."""
        usual, last = self.config.dt / self.config.substeps, self.backend.last_substep()
        return self.config.dt if last in (0.0, usual) else last * self.config.substeps

    def forward(self) -> Work:
        """The work arrays with forces at the current time (stage forward), made once for each state.

        Forces act over kicks: the next one is tried, with the step in use, and not kept.
        """
        if self._forward is None:
            self._forward = self.backend.run_forward(self.step_size / self.config.substeps)
        return self._forward

    def changed(self) -> None:
        """Tell that something was written, so that forces and velocities are found anew."""
        self._forget()
        self.backend.changed()

    def _forget(self) -> None:
        """Forget what was found for a state before."""
        self._forward = self._contacts = self._contact_sums = None

    def current_angles(self) -> None:
        """Bring the counted joint angles up to the current poses; needs no trial kick."""
        if self._forward is None:
            self.backend.current_angles()

    # Contacts.

    def contacts(self, world: Any = None) -> Contacts:
        """Contact points at the current time, with gaps, forces and modes; see :class:`Contacts`.

        Velocities and forces are those of a trial step from here; the state stays as it is.

        Args:
            world: None for all, a number, a list of numbers, or a mask (num_worlds,).

        Returns:
            Arrays over the points, sorted by world and pair; world frame, SI.

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
        """How the sweeps over contacts converge, from a trial step at the current time.

        Returns:
            (num_worlds, iterations): greatest change of an impulse in each sweep, N s; NaN for sweeps that were not
            needed, and where joints and contacts are swept together (``joint_solver="colored"`` with joints).
        """
        self.forward()
        return sweep_residuals(self.num_worlds, self.backend.forward_contacts())

    def contact_sums(self) -> ContactSums:
        """Contact forces by body and shape at the current time."""
        if self._contact_sums is None:
            self._contact_sums = ContactSums(self.contacts(), self.read_state()["position"])
        return self._contact_sums

    # Signals.

    def signal_table(self) -> SignalTable:
        """The table of all signals, for those who add some."""
        if self._signals is None:
            from gpusim.sensors.table import build_signals

            self._signals = build_signals(self._self)
        return self._signals

    def _known(self, name: str, many: str) -> SignalsByName:
        """The table of all signals, one of which ``name`` is; ``many``: what to call for those of a wildcard."""
        table = self.signal_table().by_name
        if isinstance(name, str) and name in table:
            return table
        if isinstance(name, str) and any(sign in name for sign in "*?["):
            raise UnknownNameError(f"signal {name!r}: a wildcard may stand for many signals; call {many.format(name)}")
        raise unknown_name("signal", name, table)

    def signals(self) -> dict[str, SignalInfo]:
        """All signals by name, with shape, unit and meaning."""
        return {name: signal.info for name, signal in self.signal_table().by_name.items()}

    def read(self, name: str, numpy: bool = False) -> Array:
        """Value of a signal in every world, at the current time.

        Args:
            name: see :meth:`signals`.
            numpy: return a host copy; only the cuda backend returns anything else, a CuPy array, which
                ``torch.from_dlpack`` takes without a copy.

        Returns:
            (num_worlds,) or (num_worlds, ...).

        Raises:
            UnknownNameError: no such signal; names the nearest ones.
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
        """Compile a list of signals, which is then read in one launch into one array (num_worlds, n).

        Args:
            names: signals or wildcards (``"joint.*.position"``; ``*``, ``?``, ``[seq]``), which stand for all that
                match, in the order of the model. Each signal comes once.

        Returns:
            An :class:`Observation`: call ``read()``, then look into ``array``, by ``slices[name]``. A list that holds a
            signal whose ``signals()`` entry says ``forward`` costs a trial of the next kick, once for each state; the
            others come from the state alone.

        Raises:
            UnknownNameError: no such signal; names the nearest ones.
        """
        return Observation(self._self, self.signal_list(names))

    def signal_list(self, names: str | Sequence[str]) -> list[Signal]:
        """The signals that names or wildcards stand for."""
        table = self.signal_table().by_name
        return [table[name] for name in matching("signal", names, table)]

    def command(self, names: str | Sequence[str]) -> Command:
        """Compile a list of commands that are written together, by label, or by wildcard: the operator's that match
        (``model.operator_commands``), or internal ones where none does. See :class:`Command`.

        Raises:
            UnknownNameError: no such command; names the nearest ones.
        """
        return Command(self._self, chosen_commands(self._self, names))

    def write(self, name: str, value: Any, world: Any = None) -> None:
        """Write a signal or a parameter.

        A velocity is that at the current time. Bodies that are not written keep their motion bit for bit, so a
        velocity may be written in every step.

        Args:
            name: see :meth:`signals`.
            value: for one world, or with a leading axis over the chosen worlds.
            world: None for all, a number, a list of numbers, or a mask (num_worlds,).

        Raises:
            UnknownNameError: no such signal.
            ModelError: it cannot be written, or the value's shape does not fit.
        """
        self._known(name, "sim.write_state({{{!r}: value}})")
        worlds = self.world_indices(f"signal '{name}'", world)
        self._state_writer((name,)).write([value], worlds)

    def write_state(self, values: Mapping[str, Any], worlds: Any = None) -> None:
        """Write many signals at once: poses and joint coordinates, from parent to child, then velocities.

        A joint's child and all that hangs on it move rigidly with it, so a whole posture needs nothing but the pose of
        its base and the coordinates; velocities that are not given turn with their bodies. Bodies come before joints,
        whatever the order of ``values``; parameters, commands and actuators' variables come first.

        Args:
            values: by signal, as for :meth:`write`, or by wildcard (see :meth:`observe`): then the numbers of all
                signals that match side by side, (n,) or (worlds, n), or what broadcasts to it.
            worlds: None for all, a number, a list of numbers, or a mask (num_worlds,).

        Raises:
            UnknownNameError: no such signal.
            ModelError: one cannot be written, or a value's shape does not fit; nothing of the poses is written then.
        """
        if not isinstance(values, Mapping):
            rule = f"values = {values!r} is no dict"
            raise validate.fail("Simulation.write_state", rule, "give {'joint.hip.position': 0.1}")
        chosen = self.world_indices("Simulation.write_state", worlds)
        self._state_writer(tuple(values)).write(list(values.values()), chosen)

    def _state_writer(self, names: tuple[str, ...]) -> StateWriter:
        """Of signals or wildcards; kept, for the same ones are written again and again."""
        if names not in self._writers:
            table = self.signal_table().by_name
            parts = [Part(name, [table[n] for n in matching("signal", name, table)]) for name in names]
            self._writers[names] = StateWriter(self._self, parts)
        return self._writers[names]

    def world_indices(self, element: str, world: Any) -> Array:
        """Indices of chosen worlds; see :meth:`write`."""
        return chosen_worlds(element, world, self.num_worlds)

    # Parameters.

    def parameter(self, name: str) -> Array:
        """A parameter array of model/fields.py over all worlds, (num_worlds, ...), read only."""
        array = self.parameters[name]
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:]))

    def write_parameter(self, name: str, column: Any, worlds: Array, value: Array) -> None:
        """Write one column of a parameter in some worlds and refresh there what is derived from it."""
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
        self.changed()

    def adopt(self, model: Model, parameters: dict[str, Array], state: State, initial: State) -> None:
        """Go on with a model that has the same elements and other rows; see sensors/added_rows.py."""
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
        self.changed()

    # Reset, health.

    def reset(self, mask: Any = None) -> None:
        """Put worlds back to their first state and commands; parameters stay.

        Args:
            mask: which worlds, as in :meth:`write`: a mask of bool or numbers of worlds; None for all. With the cuda
                backend a mask on the device (whatever speaks DLPack) stays there, and nothing waits for it.
        """
        if self.backend.is_mask(mask):
            self.backend.restore(self._initial, mask)
            self.quarantine.release(None)
        else:
            worlds = self.world_indices("Simulation.reset", mask)
            self.backend.restore(self._initial, worlds)
            self.quarantine.release(worlds)
            self.capacity.release(worlds)
        self.changed()

    def health(self) -> Array:
        """True for every world that runs; False for one that is quarantined at its last good state.

        Worlds that run may still be wrong: :meth:`health_report` tells of open joints and of solves that gave up.
        """
        return ~self.quarantine.stopped

    def health_word(self) -> Array:
        """Health of every world as one number: the sum of 1 (failed), 2 (more close pairs of shapes than places),
        4 (not converged), 8 (a joint came apart), 16 (contacts not converged), 32 (oil cavitated) and 64 (a motion
        jumped).
        """
        return 1 * self.quarantine.stopped + 2 * self.capacity.full + self.accuracy.word

    def health_report(self) -> str:
        """One line for every quarantined world: when and where it failed first; for pairs without a place; for joints
        that came apart, and contacts and solves that did not converge, with the number to set; for oil that cavitated.
        """
        told = [*self.capacity.report(), *self.accuracy.report()]
        if not told or self.quarantine.stopped.any():
            told.insert(0, self.quarantine.report())
        return "\n".join(told)
