"""Protocols of a backend and of the quarantine of failed worlds."""

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
    """Quarantine of failed worlds."""

    @property
    def stopped(self) -> Array:
        """Return a mask of the stopped worlds (num_worlds,)."""

    def check(self) -> None:
        """Warn of worlds that failed since the last call."""

    def release(self, worlds: Array | None) -> None:
        """Let worlds run again after a reset."""

    def report(self) -> str:
        """Return one line per stopped world."""

    def reasons(self) -> dict[int, str]:
        """Return why each stopped world failed."""

    def resume(self, failed: Mapping[int, str], worlds: Array) -> None:
        """Stop the restored ``worlds`` (n,) that are in ``failed``.

        Let the restored worlds that are not in ``failed`` run.

        ``failed`` maps the index of a world to the reason of its failure.
        """


class Memory(Protocol):
    """Interface of a backend's memory: the state and the commands of all worlds, on the host or on a device."""

    @property
    def state(self) -> State:
        """Return the state on the host. The caller may change the state."""

    def read_state(self) -> State:
        """Return the state on the host for reading only."""

    def host_control(self) -> Array:
        """Return writable commands on the host (num_worlds, controls)."""

    def read_control(self) -> Array:
        """Return the commands on the host for reading only (num_worlds, controls)."""

    def hold_overridden(self) -> None:
        """Set overridden commands to the values in the state array OVERRIDE."""

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write n commands of all worlds. ``values`` (num_worlds, n) can be on the host or on a device.

        ``columns``: columns of the n commands, as a slice or as indices.
        """

    def is_mask(self, worlds: Any) -> bool:
        """Return whether ``worlds`` is a mask in device memory, in a form that the backend accepts."""

    def pull_parameters(self) -> None:
        """Copy parameters that were written on a device to the host."""

    def register_array(self, name: str) -> None:
        """Register an additional state array that the step does not use."""

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return n columns of a state array (worlds, n), as an array of the type that :meth:`to_device` returns."""

    def to_device(self, array: Array) -> Any:
        """Convert an array to the type that :meth:`gpusim.Simulation.read` returns."""


class Backend(Protocol):
    """Interface of a backend for the simulation.

    Attributes:
        name: "numpy", "native" or "cuda".
        memory: the state and the commands.
    """

    name: str

    @property
    def memory(self) -> Memory:
        """Return the memory with the state and the commands."""

    @property
    def work(self) -> StepBuffers:
        """Return the work arrays of a substep on the host."""

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds. Call ``check`` when worlds may have failed."""

    def step_loop(self, plan: StepPlan) -> Callable[[int, int, float], bool] | None:
        """Return a function that runs many steps in one call, or None if the caller must run the steps one by one.

        The function returns True if a world failed.
        """

    def last_substep(self) -> float:
        """Return the size of the last substep (s), or 0 right after a reset."""

    def run_forward(self, h: float) -> StepBuffers:
        """Compute forces at the current time (stage forward) with a trial substep of ``h`` seconds."""

    def forward_contacts(self) -> ForwardContacts | None:
        """Return the contacts of the last :meth:`run_forward`, or None if the model has no pair capacity."""

    def current_angles(self) -> None:
        """Compute the joint angles of the current poses. The angles count full rotations."""

    def newly(self, problem: str) -> bool:
        """Return True if a world may have a new problem since the last call with this ``problem``.

        Args:
            problem: "overflowed" (pair buffer) or "inexact" (an accuracy limit of reference/accuracy.py).
        """

    def invalidate(self, initial: bool = False) -> None:
        """Invalidate the results of stage forward after a write to the state.

        ``initial``: also invalidate copies of the reset state, because the reset state was written.
        """

    def restore(self, initial: State, worlds: Any) -> None:
        """Reset worlds to ``initial`` and the default commands. The CUDA backend also accepts a device mask."""

    def written(self, names: Iterable[str], worlds: Array, kind: str | None = None) -> None:
        """Update the backend after parameters were written in ``worlds``, including all dependent values.

        ``kind``: actuator kind of the parameters, or None for parameters of the model.
        """

    def write_operations(self, operations: Array, values: Any, worlds: Any) -> bool:
        """Write poses and velocities in chosen worlds (reference/signals/writes.py).

        Args:
            operations: one row per operation, with a code (CODES) and three arguments (n, 4), int32.
            values: values to write (worlds, columns). The CUDA backend also accepts a list of arrays to join, on the
                host or on the device.
            worlds: indices of the worlds. The CUDA backend also accepts a mask on the device. With a mask, ``values``
                has one row for every world.

        Returns:
            False if the backend does not support this method. In this case, the caller writes with NumPy.
        """

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Any, Callable[[], None] | None]:
        """Return an array for signals (num_worlds, width), and a function that runs kernels to fill the array.

        The function is None if NumPy fills the array.

        Args:
            entries: number of the quantity, index of the element, first column and number of columns, for each signal
                (n, 4), int32.
            width: number of columns of the array.
            array: the array to fill. By default, the backend allocates a new array.
        """

    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None] | None:
        """Return a function that runs a block diagram, or None if the caller must run the diagram with NumPy."""

    def make_quarantine(self, drivers: Mapping[str, str]) -> Watch:
        """Return the quarantine.

        ``drivers`` maps the label of a command to the label of the diagram that writes this command.
        """
