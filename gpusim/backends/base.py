"""Interfaces of backends, their memory, and the quarantine of failed worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from gpusim.description.program import Program
from gpusim.description.step_plan import StepPlan
from gpusim.model.state import State
from gpusim.reference.contacts.contact_report import ForwardContacts
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


class Watch(Protocol):
    """Interface of the quarantine of failed worlds."""

    @property
    def stopped(self) -> Array:
        """Return a mask of the stopped worlds, (num_worlds,)."""

    def check(self) -> None:
        """Warn of worlds that failed since the last call."""

    def release(self, worlds: Array | None) -> None:
        """Release ``worlds`` from quarantine after a reset."""

    def report(self) -> str:
        """Return one line per stopped world."""

    def reasons(self) -> dict[int, str]:
        """Return the reason for the failure of each stopped world, by world index."""

    def resume(self, failed: Mapping[int, str], worlds: Array) -> None:
        """Set the quarantine status of n restored ``worlds`` (n,).

        Worlds in ``failed`` stop. All other worlds run. ``failed`` maps world indices to reasons.
        """


class Memory(Protocol):
    """Interface of a backend's memory: the state and the commands of all worlds, on the host or on a device."""

    @property
    def state(self) -> State:
        """Return the state on the host. The caller may change the state."""

    def read_state(self) -> State:
        """Return the state on the host for reading only."""

    def host_control(self) -> Array:
        """Return the commands on the host for reading and writing, (num_worlds, controls)."""

    def read_control(self) -> Array:
        """Return the commands on the host for reading only, (num_worlds, controls)."""

    def hold_overridden(self) -> None:
        """Copy the values in the state array OVERRIDE to the commands that an emergency stop overrides."""

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write n commands of all worlds. ``values`` (num_worlds, n) can be on the host or on a device.

        ``columns`` selects the commands, as a slice or as n indices.
        """

    def is_mask(self, worlds: Any) -> bool:
        """Return whether ``worlds`` is a world mask in device memory."""

    def pull_parameters(self) -> None:
        """Update the host copies of parameters that the user has written on a device."""

    def register_array(self, name: str) -> None:
        """Register an additional state array ``name``. The step does not use this array."""

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return the given columns of a state array, (num_worlds, len(columns)), on the device of the backend."""

    def to_device(self, array: Array) -> Any:
        """Convert an array to the array type of the backend: NumPy, or CuPy on a GPU."""


class Backend(Protocol):
    """Interface of a backend for the simulation.

    Attributes:
        name: "numpy", "native" or "cuda".
        memory: the state and the commands.
    """

    name: str

    @property
    def memory(self) -> Memory:
        """Return the memory that contains the state and the commands."""

    @property
    def work(self) -> StepBuffers:
        """Return the work arrays of a substep on the host."""

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds. Call ``check`` if worlds may have failed."""

    def step_loop(self, plan: StepPlan) -> Callable[[int, int, float], bool] | None:
        """Return a function that runs many steps in one call, or None if the backend has no such function.

        The function returns True if a world failed.
        """

    def last_substep(self) -> float:
        """Return the size of the last substep (s), or 0 right after a reset."""

    def run_forward(self, h: float) -> StepBuffers:
        """Compute the forces at the current time with a trial substep of ``h`` seconds (stage forward)."""

    def forward_contacts(self) -> ForwardContacts | None:
        """Return the contacts from the last :meth:`run_forward`, or None if the capacity of the pair buffer is 0."""

    def current_angles(self) -> None:
        """Compute the joint angles of the current poses. The angles count full rotations."""

    def newly(self, problem: str) -> bool:
        """Return True if ``problem`` may have occurred in a world since the last call for this problem.

        Args:
            problem: "overflowed" (pair buffer) or "inexact" (accuracy limit, see reference/accuracy.py).
        """

    def invalidate(self, initial: bool = False) -> None:
        """Invalidate the results of stage forward after a write to the state.

        If ``initial`` is True, copies of the reset state also become invalid.
        """

    def restore(self, initial: State, worlds: Any) -> None:
        """Reset worlds to ``initial`` and the default commands. The CUDA backend also accepts a device mask."""

    def written(self, names: Iterable[str], worlds: Array, kind: str | None = None) -> None:
        """Update the backend after the parameters ``names`` have changed in ``worlds``.

        ``kind`` is the actuator kind of the parameters, or None for parameters of the model.
        """

    def write_operations(self, operations: Array, values: Any, worlds: Any) -> bool:
        """Write poses and velocities in chosen worlds (reference/signals/writes.py).

        Args:
            operations: n operations (n, 4), int32: a code (CODES) and three arguments.
            values: values to write, (worlds, columns). The CUDA backend also accepts a list of host or device arrays.
                The backend joins the columns of these arrays.
            worlds: indices of the worlds. The CUDA backend also accepts a mask on the device. If ``worlds`` is a mask,
                ``values`` is (num_worlds, columns).

        Returns:
            False if the backend does not support this method. The caller must then write with NumPy.
        """

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Any, Callable[[], None] | None]:
        """Return an array for signals (num_worlds, width), and a function that fills the array.

        The function is None if the caller must fill the array with NumPy.

        Args:
            entries: one row for each of n signals, (n, 4), int32. A row contains the number of the quantity, the index
                of the element, the first column and the number of columns.
            width: number of columns of the signal array.
            array: array to fill, or None to allocate a new array.
        """

    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None] | None:
        """Return a function that runs a block diagram, or None if the caller must run it with NumPy."""

    def make_quarantine(self, drivers: Mapping[str, str]) -> Watch:
        """Create the quarantine of failed worlds.

        ``drivers`` maps the label of each command to the label of the diagram that writes it.
        """
