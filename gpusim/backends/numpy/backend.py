"""NumPy backend: runs the code in gpusim/reference/ for all worlds at once, without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gpusim.arrays import on_host
from gpusim.backends.health import Quarantine
from gpusim.description.config import SolverConfig
from gpusim.description.contact_fields import CONTACT_STATE_FIELDS
from gpusim.description.program import Program
from gpusim.description.step_plan import StepPlan
from gpusim.model.model import Model
from gpusim.model.state import State, apply_overrides
from gpusim.reference.contacts.contact_report import ForwardContacts, keep_contacts
from gpusim.reference.joints.elements import track_angles
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matrix_from_quaternion
from gpusim.solver.step import forward, step
from gpusim.typing import Array


class NumpyBackend:
    """Backend that runs the reference functions of the stages of solver/schedule.py."""

    name = "numpy"

    def __init__(
        self, model: Model, state: State, parameters: dict[str, Array], config: SolverConfig, real: Any
    ) -> None:
        self.state = state
        self.work = StepBuffers(model, state, parameters, config, real)
        self._trial: ForwardContacts | None = None
        self._overflowed = 0
        self._quarantine: Quarantine | None = None

    def bind(self, control: Array) -> None:
        """Use the array ``control`` (num_worlds, controls) for the commands."""
        self.work.control = control

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds. Call ``check`` after each step."""
        self.work.check = check
        self._drop_poisoned()
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for _ in range(n):
                step(self.work, dt)

    def step_loop(self, plan: StepPlan) -> None:
        """Return None: the caller runs the steps one by one."""

    def make_quarantine(self, drivers: Mapping[str, str]) -> Quarantine:
        """Return the quarantine.

        ``drivers`` maps the label of a command to the label of the diagram that writes the command.
        """
        self._quarantine = Quarantine(self, drivers)
        return self._quarantine

    def invalidate(self) -> None:
        """Do nothing: this backend caches no results."""

    def host_control(self) -> Array:
        """Return writable commands (num_worlds, controls)."""
        return self.work.control

    def read_control(self) -> Array:
        """Return the commands for reading only (num_worlds, controls)."""
        return self.work.control

    def hold_overridden(self) -> None:
        """Set overridden commands to the values in the state array OVERRIDE."""
        apply_overrides(self.work.control, self.state)

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write n commands of all worlds. ``values``: (num_worlds, n). ``columns``: a slice or indices."""
        self.work.control[:, columns] = on_host(values).reshape(self.work.num_worlds, -1)

    def write_operations(self, operations: Array, values: Array, worlds: Array) -> bool:
        """Return False: the caller writes with NumPy."""
        return False

    def last_substep(self) -> float:
        """Return the size of the last substep (s), or 0 right after a reset."""
        return float(self.state.arrays["step_before"].max())

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Array, None]:
        """Return an array (num_worlds, width), and None: the caller fills the array with NumPy."""
        return np.zeros((self.work.num_worlds, width)) if array is None else array, None

    def register_array(self, name: str) -> None:
        """Do nothing: the array is already in the state."""

    def program_launcher(self, program: Program, name: str) -> None:
        """Return None: the caller runs the diagram with NumPy."""

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return columns of a state array (worlds, n)."""
        return self.state.arrays[name][:, list(columns)]

    def to_device(self, array: Array) -> Any:
        """Convert an array to the type that :meth:`Simulation.read` returns."""
        return array

    def _drop_poisoned(self) -> None:
        if self._quarantine is not None:
            self._quarantine.drop_poisoned()

    def run_forward(self, h: float) -> StepBuffers:
        """Compute velocities and forces at the current time (stage forward)."""
        self._drop_poisoned()
        kept = self._contact_state()
        self._set_forward(1)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            forward(self.work, h)
        self._set_forward(0)
        self._keep_forward()
        for name, array in kept.items():
            self.state.arrays[name][:] = array
        return self.work

    def _set_forward(self, trial: int) -> None:
        self.work.trial = bool(trial)
        if self.work.contacts is not None:
            self.work.contacts.forward_only[:] = trial

    def _keep_forward(self) -> None:
        """Store the contacts of the trial step, before the backend restores the contacts of the state."""
        if self.work.contacts is not None:
            self._trial = keep_contacts(self.work)

    def forward_contacts(self) -> ForwardContacts | None:
        """Return the contacts of the last trial step, or None if the model has no pair capacity."""
        return self._trial

    def newly_overflowed(self) -> bool:
        """Return whether the pair buffer of a world overflowed since the last call."""
        seen, self._overflowed = (
            self._overflowed,
            self.work.contacts.overflowed if self.work.contacts is not None else 0,
        )
        return self._overflowed > seen

    def newly_inexact(self) -> bool:
        """Return whether a world has exceeded an accuracy limit since its reset."""
        return bool(self.state.arrays["inexact"].any())

    def _contact_state(self) -> dict[str, Array]:
        if self.work.contacts is None:
            return {}
        return {field.name: self.state.arrays[field.name].copy() for field in CONTACT_STATE_FIELDS}

    def current_angles(self) -> None:
        """Compute the joint angles of the current poses. The angles count full rotations."""
        self.work.rotation = matrix_from_quaternion(self.state.arrays["orientation"])
        track_angles(self.work)

    def is_mask(self, worlds: Any) -> bool:
        """Return False, because the backend has no device memory."""
        return False

    def restore(self, initial: State, worlds: Array) -> None:
        """Reset worlds to a state and the default commands."""
        self.state.restore(initial, worlds)
        self.work.control[worlds] = self.work.model.default_controls

    def read_state(self) -> State:
        """Return the state for reading only."""
        return self.state

    def initial_changed(self) -> None:
        """Do nothing: this backend has no copy of the reset state."""

    def parameter_written(self, name: str, worlds: Array) -> None:
        """Update everything that depends on the parameter ``name`` after a write."""
        self.work.parameter_written(name, worlds)

    def pull_parameters(self) -> None:
        """Do nothing, because the backend has no device memory."""

    def actuator_written(self, kind: str, names: Iterable[str], worlds: Array) -> None:
        """Do nothing: the stages read the parameters of actuators directly."""
