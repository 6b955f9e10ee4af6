"""NumPy backend: runs the code in gpusim/reference/ for all worlds at once. It needs no compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gpusim.backends.health import Quarantine
from gpusim.backends.memory import HostMemory
from gpusim.description.config import SolverConfig
from gpusim.description.contact_fields import CONTACT_STATE_FIELDS
from gpusim.description.program import Program
from gpusim.description.step_plan import StepPlan
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.contacts.contact_report import ForwardContacts, keep_contacts
from gpusim.reference.joints.elements import track_angles
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matrix_from_quaternion
from gpusim.solver.step import forward, step
from gpusim.typing import Array


class NumpyBackend:
    """Backend that runs the NumPy functions of all stages in solver/schedule.py."""

    name = "numpy"

    def __init__(
        self, model: Model, state: State, parameters: dict[str, Array], config: SolverConfig, real: Any
    ) -> None:
        self.memory = HostMemory(model, state)
        self.work = StepBuffers(model, state, parameters, config, real)
        self.work.control = self.memory.control
        self._trial: ForwardContacts | None = None
        self._overflowed = 0
        self._quarantine: Quarantine | None = None

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds. Call ``check`` after each step."""
        self.work.check = check
        self._drop_poisoned()
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for _ in range(n):
                step(self.work, dt)

    def step_loop(self, plan: StepPlan) -> None:
        """Return None: the caller must run the steps one by one."""

    def make_quarantine(self, drivers: Mapping[str, str]) -> Quarantine:
        """Create the quarantine of failed worlds.

        ``drivers`` maps the label of each command to the label of the diagram that writes it.
        """
        self._quarantine = Quarantine(self, drivers)
        return self._quarantine

    def invalidate(self, initial: bool = False) -> None:
        """Do nothing: this backend caches no results."""

    def write_operations(self, operations: Array, values: Array, worlds: Array) -> bool:
        """Return False: the caller must write with NumPy."""
        return False

    def last_substep(self) -> float:
        """Return the duration of the last substep (s), or 0 right after a reset."""
        return float(self.memory.state.arrays["step_before"].max())

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Array, None]:
        """Return an array for signals (num_worlds, width), and None: the caller must fill the array with NumPy."""
        return np.zeros((self.work.num_worlds, width)) if array is None else array, None

    def program_launcher(self, program: Program, name: str) -> None:
        """Return None: the caller must run the diagram with NumPy."""

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
            self.memory.state.arrays[name][:] = array
        return self.work

    def _set_forward(self, trial: int) -> None:
        self.work.trial = bool(trial)
        if self.work.contacts is not None:
            self.work.contacts.forward_only[:] = trial

    def _keep_forward(self) -> None:
        """Copy the contacts of the trial substep. The backend then restores the state."""
        if self.work.contacts is not None:
            self._trial = keep_contacts(self.work)

    def forward_contacts(self) -> ForwardContacts | None:
        """Return the contacts after stage forward, or None if the capacity of the pair buffer is 0."""
        return self._trial

    def _contact_state(self) -> dict[str, Array]:
        if self.work.contacts is None:
            return {}
        return {field.name: self.memory.state.arrays[field.name].copy() for field in CONTACT_STATE_FIELDS}

    def current_angles(self) -> None:
        """Compute the joint angles at the current poses, including full rotations."""
        self.work.rotation = matrix_from_quaternion(self.memory.state.arrays["orientation"])
        track_angles(self.work)

    def restore(self, initial: State, worlds: Array) -> None:
        """Reset ``worlds`` to the state ``initial`` and the default commands."""
        self.memory.state.restore(initial, worlds)
        self.work.control[worlds] = self.work.model.default_controls

    def newly(self, problem: str) -> bool:
        """Return True after a new overflow of a pair buffer ("overflowed"), or if a world is inexact ("inexact")."""
        if problem == "inexact":
            return bool(self.memory.state.arrays["inexact"].any())
        seen, self._overflowed = self._overflowed, getattr(self.work.contacts, "overflowed", 0)
        return self._overflowed > seen

    def written(self, names: Iterable[str], worlds: Array, kind: str | None = None) -> None:
        """Update all values that depend on the changed parameters ``names``."""
        for name in names if kind is None else ():
            self.work.parameter_written(name, worlds)
