"""Simulation: steps a model in many worlds, and reads and writes signals."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device, on_host
from gpusim.backends import check_options, choose_backend, make_backend, why_not
from gpusim.backends.base import Backend
from gpusim.builder.commands import activation_signals
from gpusim.builder.joint_groups import choose_solvers
from gpusim.compile_cache import BrokenCompilerError
from gpusim.description.config import SolverConfig, work_dtype
from gpusim.description.specs import PoseSpec
from gpusim.errors import ModelError, UnknownNameError, callers_level, unknown_name
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.contacts.contact_report import Contacts, sweep_residuals
from gpusim.renamed import FixedNames, NamesMoved, checks_old_names
from gpusim.signals import assembling
from gpusim.signals.control_map import ControlMap
from gpusim.signals.latches import reset_latches, switched
from gpusim.signals.linearizing import Linearizing
from gpusim.signals.model_batch import checked_models, merge_models
from gpusim.signals.observe import Command, Observation, chosen_commands
from gpusim.signals.override import Override
from gpusim.signals.program_loop import ProgramLoop
from gpusim.signals.programs import sample_programs, start_programs
from gpusim.signals.rollout import Rollouts
from gpusim.signals.runtime import Runtime
from gpusim.signals.saving.checkpoints import Checkpoints
from gpusim.signals.signal import SignalInfo, SignalsByName
from gpusim.signals.step_samplers import pieces
from gpusim.signals.table import build_signals
from gpusim.signals.writing import Part, StateWriter, chosen_worlds
from gpusim.solver.assembly import AssemblyReport
from gpusim.typing import Array

DTYPES = {"float32": np.float32, "float64": np.float64}


class Simulation(Checkpoints, Linearizing, Rollouts, FixedNames, NamesMoved):
    """A simulation of a model in ``num_worlds`` worlds.

    Args:
        model: a model from :meth:`ModelBuilder.finalize`, or a list with one model for each world. The models may
            differ in the parameters of bodies, joints, materials and actuators, and in the initial state.
        num_worlds: number of worlds, by default the number in ``ModelBuilder.replicate``, or one world per model.
        backend: "cuda", "native", "numpy" or "auto". "auto" selects "cuda" for many worlds or thousands of contacts,
            else "native".
        dtype: type of velocities, momenta and impulses, "float64" or "float32". Poses are always float64. The direct
            solver also uses float64, except with ``fast``.
        config: settings of the solver.
        launch: "fused": one block or thread runs each world. "simd" (native, direct joint solver): each SIMD lane of
            the CPU runs one world. "staged": all threads run each stage of the step. All launch modes give
            bit-identical results.
        threads: maximum number of threads (native only), by default all available cores. For a large world, the backend
            measures whether fewer threads are faster.
        device: number of the GPU (CUDA only), by default 0. Simulations on several GPUs run in parallel.
        specialize: compile kernels for the sizes of this model (native and CUDA only). The results are bit-identical.
            True compiles at the start, which takes about ten seconds for a new model. False never compiles. By default,
            the backend compiles in the background: on the CPU after 5 s of stepping, on the GPU for 256 or more worlds.
        fast: prefer speed. With dtype "float32", the direct solver also uses float32, and can lose about 3 digits. The
            CUDA backend uses fused multiply-add, so the results differ from the CPU by round-off.

    Raises:
        ModelError: a setting is invalid.
        UnknownNameError: unknown backend or dtype.
    """

    _constant = {"control": "write sim.control[label] = value", "num_worlds": "make a new Simulation"}

    @checks_old_names
    def __init__(
        self,
        model: Model | Sequence[Model],
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
        models = checked_models(model, num_worlds, config)
        model, count = models[0], len(models) if len(models) > 1 else models[0].num_worlds
        options: dict[str, Any] = dict(launch=launch, threads=threads, device=device, fast=fast, specialize=specialize)
        check_options(options)
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise unknown_name("dtype", str(dtype), DTYPES)
        self.num_worlds = validate.count("Simulation", "num_worlds", count if num_worlds is None else num_worlds)
        if not isinstance(config, SolverConfig | None):
            raise ModelError(f"Simulation: config {config!r} is not a SolverConfig; give gpusim.SolverConfig(dt=...)")
        self.dtype, self.fast = dtype, bool(fast)
        solved, config = choose_solvers(model, config or SolverConfig())
        self.backend_name, self.backend_reason = choose_backend(backend, solved, config, self.num_worlds)
        try:
            state = State.initial(solved, self.num_worlds, DTYPES[dtype], config)
        except MemoryError as error:
            rule = f"num_worlds = {self.num_worlds} needs more memory than this computer has ({error})"
            hint = "give fewer worlds" if config.max_pairs is None else "give fewer worlds, or a smaller max_pairs"
            raise validate.fail("Simulation", rule, hint) from None
        options |= {"config": config, "real": DTYPES[work_dtype(dtype, config, fast)]}
        self._make_backend: Callable[..., Backend] = partial(make_backend, **options)
        parameters = {k: v.copy() for k, v in solved.parameters.items()}
        made = self._first_backend(backend, solved, state, parameters)
        if backend == "auto" and self.backend_name == "numpy":
            reason = self.backend_reason.rpartition("no native: ")[2]
            message = f"gpusim uses the slow NumPy backend, because the native backend does not work: {reason}"
            warnings.warn(message, stacklevel=callers_level())
        self.runtime = Runtime(
            solved, config, model, state, parameters, made, partial(self._make_backend, self.backend_name),
            lambda: build_signals(part),
        )  # fmt: skip
        # Weak reference: Python then frees the memory as soon as the user deletes the simulation.
        part: Runtime = weakref.proxy(self.runtime)
        self._part, self.control = part, ControlMap(part)
        self._override, self._programs = Override(part), ProgramLoop(part)
        self.runtime.watch(start_programs(part))
        if len(models) > 1:
            merge_models(self.runtime, models, DTYPES[dtype])
        self._complete = True

    def _first_backend(self, asked: str, model: Model, state: State, parameters: dict[str, Array]) -> Backend:
        """Return the chosen backend."""
        try:
            return self._make_backend(self.backend_name, model, state, parameters)
        except BrokenCompilerError as error:
            if asked != "auto":
                raise
            self.backend_name = "numpy" if why_not("cuda") else "cuda"
            self.backend_reason = f"backend {self.backend_name}: no native: {error}"
            return self._make_backend(self.backend_name, model, state, parameters)

    @property
    def model(self) -> Model:
        """The model. If you write a joint parameter, the simulation may add constraint rows to the model."""
        return self.runtime.model

    @property
    def config(self) -> SolverConfig:
        """The settings of the solver."""
        return self.runtime.config

    @property
    def backend(self) -> Backend:
        """The backend. Its class is not part of the public API."""
        return self.runtime.backend

    def __reduce__(self) -> Any:
        raise TypeError("a Simulation can't be pickled or copied; call sim.save(path) and Simulation.load(path)")

    # Stepping.

    def read_state(self) -> dict[str, Array]:
        """Return the arrays of the state by name, (num_worlds, ...), on the host. Do not change the returned arrays."""
        return self.runtime.read_state()

    @property
    def time(self) -> float:
        """Return the simulated time of world 0 (s)."""
        return float(self.read_state()["time"][0])

    def step(self, n: int = 1, dt: float | None = None) -> None:
        """Advance all worlds by ``n`` steps.

        Args:
            n: number of steps.
            dt: step size in s, by default ``config.dt``. ``dt`` may differ between calls.

        Raises:
            ModelError: ``n`` or ``dt`` is invalid. A world that becomes NaN raises no error: see :meth:`health`.
            SimulationError: the pair buffer overflowed, and ``config.strict`` is set. Or another thread runs a step.
        """
        n = validate.count("Simulation.step", "n", n, 0)
        size = self.config.dt if dt is None else validate.positive("Simulation.step", "dt", dt)
        with self.runtime.alone:
            for count in pieces(self.runtime.samplers, n, size) if self.runtime.samplers else (n,):
                self._advance(count, size)

    def _advance(self, n: int, size: float) -> None:
        """Advance all worlds by ``n`` steps of ``size`` s, without samples for recordings."""
        runtime = self.runtime
        runtime.count(n)
        if not runtime.running:
            runtime.backend.memory.hold_overridden()
            runtime.backend.advance(n, size, runtime.quarantine.check)
        else:
            self._programs.advance(n, size)
        runtime.warn()

    def sample_diagrams(self) -> None:
        """Run all block diagrams that are due at the current time. The next step does not run these diagrams again."""
        if self.runtime.running:
            self.runtime.forget()
            sample_programs(self.runtime)

    @property
    def step_size(self) -> float:
        """Size of the last step (s), or ``config.dt`` right after a reset."""
        return self.runtime.step_size

    def invalidate(self) -> None:
        """Invalidate cached forces and velocities. Call this after you write to ``state`` or replay a CUDA graph."""
        self.runtime.invalidate()

    # Start: closed loops.

    def assemble(self, tolerance: float = 1e-10, iterations: int = 200) -> AssemblyReport:
        """Move the bodies until all joints and couplings are closed (damped least squares).

        In worlds that have not run yet, :meth:`reset` returns to the assembled pose.

        Args:
            tolerance: maximum joint error that counts as closed (m or rad).
            iterations: maximum number of iterations.

        Returns:
            The errors of every joint and coupling before and after the assembly.
        """
        return assembling.assemble(self.runtime, tolerance, iterations)

    def project_velocities(self, hold: str | Sequence[str] = (), tolerance: float = 1e-10) -> AssemblyReport:
        """Change the velocities to satisfy all joints. The change is minimal in the kinetic-energy norm.

        In worlds that have not run yet, :meth:`reset` returns to the projected velocities.

        Args:
            hold: velocity signals or wildcards that keep their values: ``joint.<label>.velocity``, and
                ``linear_velocity`` and ``angular_velocity`` of bodies.
            tolerance: maximum error rate of a converged joint (m/s or rad/s).

        Returns:
            The error rates of every joint and coupling before and after the projection.

        Raises:
            ModelError: a signal is not a velocity, or the tolerance is negative.
        """
        return assembling.project_velocities(self.runtime, hold, tolerance)

    # Override of commands.

    def override(self, values: Mapping[str, Any] | None = None, worlds: Any = None) -> None:
        """Hold commands at fixed values until :meth:`release`. Without ``values``, the call is an emergency stop.

        Block diagrams and later writes do not change overridden commands. Snapshots of the state include the override.
        A reset ends the override.

        Args:
            values: dict from a command's label or wildcard to a number, or to one number per chosen world. None holds
                all commands at their safe values, such as 0 for forces and the current position for servos.
            worlds: as in :meth:`write`.

        Raises:
            UnknownNameError: the command does not exist.
            ModelError: the world does not exist, or a value does not fit.
        """
        self._override.hold(values, chosen_worlds("Simulation.override", worlds, self.num_worlds))

    def release(self, names: str | Sequence[str] | None = None, worlds: Any = None) -> None:
        """End the override of commands. Each command keeps its value until you or a diagram writes a new value.

        Args:
            names: labels or wildcards of commands, or None for all commands.
            worlds: as in :meth:`write`.
        """
        self._override.release(names, chosen_worlds("Simulation.release", worlds, self.num_worlds))

    @property
    def overridden(self) -> Array:
        """Mask (num_worlds, commands) of the overridden commands, in the order of ``model.controls``."""
        return self._override.held()

    @checks_old_names
    def contacts(self, worlds: Any = None) -> Contacts:
        """Return the contact points at the current time, with gaps, forces and modes. See :class:`Contacts`.

        To compute the contact forces, the call runs a trial step, which does not change the state.

        Args:
            worlds: an index, a list of indices, a mask (num_worlds,), or None for all.

        Returns:
            Arrays with one entry per contact point, sorted by world and pair, in the world frame and SI units.

        Raises:
            ModelError: the world does not exist.
        """
        found = self.runtime.contacts()
        if worlds is None:
            return found
        return found.select(np.isin(found.world, chosen_worlds("Simulation.contacts", worlds, self.num_worlds)))

    def sweep_residuals(self) -> Array:
        """Return the convergence of the contact solver's sweeps in a trial step, which does not change the state.

        Returns:
            Maximum change of an impulse in each sweep (num_worlds, iterations), N s. The values of skipped sweeps are
            NaN. If ``joint_solver="colored"`` sweeps joints and contacts together, all values are NaN.
        """
        self.runtime.forward()
        return sweep_residuals(self.num_worlds, self.backend.forward_contacts())

    # Signals.

    def _known(self, name: str, many: str) -> SignalsByName:
        """Return the table of all signals."""
        table = self.runtime.signal_table().by_name
        if isinstance(name, str) and name in table:
            return table
        if isinstance(name, str) and any(sign in name for sign in "*?["):
            raise UnknownNameError(f"signal {name!r}: a wildcard may stand for many signals; call {many.format(name)}")
        raise unknown_name("signal", name, table)

    def signals(self) -> dict[str, SignalInfo]:
        """Return all signals by name, with shape, unit and meaning."""
        return {name: signal.info for name, signal in self.runtime.signal_table().by_name.items()}

    def read(self, name: str, numpy: bool = False) -> Array:
        """Return the value of a signal in every world at the current time.

        Args:
            name: see :meth:`signals`.
            numpy: True returns a NumPy array. By default, the CUDA backend returns a CuPy array, which
                ``torch.from_dlpack`` accepts without a copy. The native and NumPy backends always return NumPy arrays.

        Returns:
            (num_worlds,) or (num_worlds, ...).

        Raises:
            UnknownNameError: the signal does not exist. The message names similar signals.
        """
        table = self._known(name, "sim.observe({!r})")
        signal = table[name]
        if signal.quantity is None:
            array = np.array(signal.read())
            return array if numpy else self.backend.memory.to_device(array)
        compiled = self.runtime.compiled
        if (name,) not in compiled:
            compiled[(name,)] = Observation(self._part, [signal])
        array = compiled[(name,)].read().reshape(self.num_worlds, *signal.info.shape)
        return np.array(on_host(array)) if numpy else array.copy()

    def observe(self, names: str | Sequence[str], dtype: str = "float64") -> Observation:
        """Compile a list of signals. Each read takes one kernel launch and returns an array (num_worlds, n).

        Args:
            names: signals or wildcards (``"joint.*.position"`` with ``*``, ``?``, ``[seq]``). A wildcard selects all
                matching signals, in the order of the model. A signal that matches several names occurs once.
            dtype: type of the array, "float64" or "float32".

        Returns:
            An :class:`Observation`. Signals with ``forward=True`` in :meth:`signals` need an additional trial step,
                which does not change the state.

        Raises:
            UnknownNameError: the signal does not exist. The message names similar signals.
        """
        return Observation(self._part, self.runtime.signal_list(names), dtype)

    def command(self, names: str | Sequence[str]) -> Command:
        """Compile a list of labels or wildcards to a :class:`Command`, which writes all matching commands at once.

        A wildcard selects operator commands (``model.operator_commands``), or internal commands if no operator command
        matches.

        Raises:
            UnknownNameError: the command does not exist.
        """
        return Command(self._part, chosen_commands(self._part, names))

    @checks_old_names
    def write(self, name: str, value: Any, worlds: Any = None) -> None:
        """Write a signal or a parameter.

        A joint velocity changes the velocities of the child and of all bodies attached to the child.

        Args:
            name: see :meth:`signals`.
            value: one value for all chosen worlds, or an array with one value per chosen world (first axis).
            worlds: as in :meth:`write_state`.

        Raises:
            UnknownNameError: the signal does not exist.
            ModelError: the signal is not writable, or the shape of the value does not fit.
        """
        self._known(name, "sim.write_state({{{!r}: value}})")
        self._write((name,), [value], worlds, f"signal '{name}'")

    def write_state(self, values: Mapping[str, Any], worlds: Any = None) -> None:
        """Write many signals at once: first poses and joint coordinates from parent to child, then velocities.

        A joint coordinate moves the child of the joint and all bodies attached to the child rigidly. Therefore, the
        pose of the base and the joint coordinates define a posture. Without new velocities, the velocities of the moved
        bodies rotate with the bodies. The order of ``values`` does not matter.

        Args:
            values: dict from signals (see :meth:`write`) or wildcards (see :meth:`observe`) to values. For a wildcard,
                give an array (n,) or (worlds, n) with the values of all matching signals. NumPy's broadcasting rules
                apply. Arrays on the device stay there, without checks. Exceptions are inertias, rope lengths, cone
                limits, commands, internal states and parameters of block diagrams.
            worlds: an index, a list of indices, a mask (num_worlds,), or None for all. With a mask on the device, an
                array with one value per world must have ``num_worlds`` entries.

        Raises:
            UnknownNameError: the signal does not exist.
            ModelError: a signal is not writable, or the shape of a value does not fit. If a value is invalid, all poses
                stay unchanged.
        """
        if not isinstance(values, Mapping):
            fix = "give {'joint.hip.position': 0.1}"
            raise validate.fail("Simulation.write_state", f"values = {values!r} is not a dict", fix)
        self._write(tuple(values), list(values.values()), worlds, "Simulation.write_state")

    def _write(self, names: tuple[str, ...], given: list[Any], worlds: Any, element: str) -> None:
        writer = self._state_writer(names)
        stays = self.backend_name == "cuda" and writer.on_device and any(map(is_on_device, [worlds, *given]))
        masked = self.backend.memory.is_mask(worlds)
        chosen = worlds if stays and masked else chosen_worlds(element, worlds, self.num_worlds)
        if stays:
            writer.write_on_device(given, chosen)
        else:
            writer.write(given, chosen, of_all=masked)

    def _state_writer(self, names: tuple[str, ...]) -> StateWriter:
        """Return the writer for signals or wildcards."""
        compiled, key = self.runtime.compiled, ("write", *names)
        if key not in compiled:
            table = self.runtime.signal_table().by_name
            parts = [Part(name, [table[n] for n in validate.matching("signal", name, table)]) for name in names]
            compiled[key] = StateWriter(self._part, parts)
        return compiled[key]

    @checks_old_names
    def reset(self, worlds: Any = None, pose: str | None = None) -> None:
        """Reset the state, commands and latches of worlds to their initial values. Parameters do not change.

        Args:
            worlds: as in :meth:`write_state`. The CUDA backend reads a mask on the device without a copy to the host.
            pose: named posture (``ModelBuilder.add_pose``) that replaces the initial posture.

        Raises:
            ModelError: the world does not exist.
            UnknownNameError: the posture does not exist.
        """
        named = None if pose is None else self._pose(pose)
        if named is None and self.backend.memory.is_mask(worlds) and not switched(self.runtime):
            self.backend.restore(self.runtime.initial, worlds)
            self.runtime.quarantine.release(None)
            self.invalidate()
            return
        worlds = chosen_worlds("Simulation.reset", worlds, self.num_worlds)
        self.backend.restore(self.runtime.initial, worlds)
        self.runtime.quarantine.release(worlds)
        self.runtime.capacity.release(worlds)
        reset_latches(self.runtime, worlds)
        self.invalidate()
        if named is not None and worlds.size:
            for label, value in named.commands.items():
                self.control.array[worlds, self.model.controls[label]] = value
            names = activation_signals(self.model)
            self.write_state(named.values() | {names[k]: x for k, x in named.activations.items()}, worlds)

    def _pose(self, label: str) -> PoseSpec:
        """Return a named posture of the model."""
        poses = {pose.label: pose for pose in self.model.poses}
        if str(label) not in poses:
            raise unknown_name("pose", str(label), poses)
        return poses[str(label)]

    def health(self) -> Array:
        """Return a mask of the running worlds (num_worlds,). A failed world stays in its last valid state."""
        return ~self.runtime.quarantine.stopped

    def status_flags(self) -> Array:
        """Return the health of every world as a sum of bits.

        1: failed, 2: pair buffer overflow, 4: solve not converged, 8: open joint, 16: contacts not converged,
        32: cavitation, 64: jump of a prescribed motion, 128: body that spins too fast for the step.
        """
        return self.runtime.status

    def health_report(self) -> str:
        """Return one line for each problem of a world, see :meth:`status_flags`. Most lines also contain the fix."""
        reported = [*self.runtime.capacity.report(), *self.runtime.accuracy.report()]
        if not reported or self.runtime.quarantine.stopped.any():
            reported.insert(0, self.runtime.quarantine.report())
        return "\n".join(reported)
