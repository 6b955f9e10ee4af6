"""What a backend is to the front door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gpusim.model.program import Program
from gpusim.model.state import State
from gpusim.reference.contact_report import ForwardContacts
from gpusim.reference.work import Work
from gpusim.typing import Array


class Watch(Protocol):
    """Who keeps failed worlds at their last good state (gpusim/backends/health.py)."""

    @property
    def stopped(self) -> Array:
        """True for worlds that stand still, (num_worlds,)."""

    def check(self) -> None:
        """Warn of worlds that failed since the last call."""

    def release(self, worlds: Array | None) -> None:
        """Worlds that were reset run again; None: some that only the device knows."""

    def report(self) -> str:
        """One line a stopped world."""

    def reasons(self) -> dict[int, str]:
        """Why each stopped world failed."""

    def resume(self, failed: Mapping[int, str], worlds: Array) -> None:
        """Of chosen worlds (n,), whose state was restored, stop those that had failed, and let the others run."""


class Backend(Protocol):
    """What the front door asks of a backend."""

    name: str

    @property
    def state(self) -> State:
        """The state; whoever asks for it may write."""

    @property
    def work(self) -> Work:
        """Host arrays of a substep."""

    def read_state(self) -> State:
        """The state, to be read only."""

    def bind(self, control: Array) -> None:
        """Take the commands from ``control``, (num_worlds, controls)."""

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds; ``check`` is called where worlds may have failed."""

    def run_forward(self, h: float) -> Work:
        """Forces at the current time (stage forward), from a trial of a substep of ``h`` seconds."""

    def forward_contacts(self) -> ForwardContacts | None:
        """Contacts of the last :meth:`run_forward`; None where the model has no places for pairs."""

    def newly_overflowed(self) -> bool:
        """Whether worlds may have had more close pairs of shapes than places since the last call."""

    def newly_inexact(self) -> bool:
        """Whether worlds may have gone past a limit of accuracy (reference/accuracy.py) since the last call."""

    def current_angles(self) -> None:
        """Bring the counted joint angles up to the current poses."""

    def changed(self) -> None:
        """Something was written: what stage forward found is out of date."""

    def is_mask(self, worlds: Any) -> bool:
        """Whether worlds are chosen by a mask that may stay on the device."""

    def restore(self, initial: State, worlds: Any) -> None:
        """Put worlds back to a state and the first commands; the cuda backend takes a mask on the device too."""

    def initial_changed(self) -> None:
        """The state that reset returns to was written."""

    def parameter_written(self, name: str, worlds: Array) -> None:
        """Pass on a parameter that was written in some worlds, and what follows from it."""

    def actuator_written(self, kind: str, name: str, worlds: Array) -> None:
        """Pass on a parameter of a kind of actuator that was written in some worlds."""

    def host_control(self) -> Array:
        """Commands on the host, to be written; (num_worlds, controls)."""

    def read_control(self) -> Array:
        """Commands on the host, to be read only; (num_worlds, controls)."""

    def hold_stopped(self) -> None:
        """Set the commands of worlds in an emergency stop (array STOP of the state) to what is held there."""

    def write_commands(self, columns: Any, values: Any) -> None:
        """Commands of all worlds, a slice or indices of columns, from (num_worlds, n), on the host or on a device."""

    def write_operations(self, operations: Array, values: Array, worlds: Array) -> bool:
        """Write poses and velocities in chosen worlds (reference/writes.py); False where NumPy has to."""

    def last_substep(self) -> float:
        """Size of the last substep, s; 0 right after a reset."""

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Any, Callable[[], None] | None]:
        """An array (num_worlds, width) and what fills it by kernels, or None where NumPy does.

        Args:
            entries: for each element read (quantity, index, column, numbers), (n, 4) int32.
            width: columns of the array.
            array: to fill; a new one if left out.
        """

    def keep_along(self, name: str) -> None:
        """An array of the state has come that the step does not know."""

    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None] | None:
        """What runs a sample of a diagram, whose numbers are the array ``name`` of the state, by what was read and its
        parameters (1 or num_worlds, n); None where NumPy does.
        """

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Columns of an array of the state (worlds, n), where :meth:`to_device` puts arrays."""

    def to_device(self, array: Array) -> Any:
        """An array as :meth:`gpusim.Simulation.read` returns it."""

    def make_quarantine(self, drivers: Mapping[str, str]) -> Watch:
        """Who tells of failed worlds; ``drivers``: which diagram gives a command, by label."""
