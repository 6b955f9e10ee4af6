"""Assembly of loops: poses that close them, and velocities that keep them closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.reference.signals.quantities import COORDINATE
from gpusim.signals.observe import matching
from gpusim.signals.signal import Signal
from gpusim.solver.assembly import assemble
from gpusim.solver.velocity_projection import Held, project

if TYPE_CHECKING:
    from gpusim.backends.base import Backend
    from gpusim.model.state import State
    from gpusim.reference.signals.state_reader import StateReader
    from gpusim.signals.signal import SignalTable


class Assembling:
    """Loop assembly methods of a simulation."""

    if TYPE_CHECKING:
        backend: Backend
        now: StateReader
        _initial: State

        @property
        def state(self) -> State: ...
        def signal_table(self) -> SignalTable: ...
        def invalidate(self) -> None: ...

    def assemble(self, tolerance: float = 1e-10, iterations: int = 200) -> Any:
        """Bring roughly placed joints together by moving the bodies (damped least squares).

        In worlds that have not run yet, :meth:`reset` returns to the assembled pose.

        Args:
            tolerance: joint error to reach, m or rad.
            iterations: maximum number of steps.

        Returns:
            An :class:`gpusim.AssemblyReport` with the residual of every joint.
        """
        report = assemble(self.backend.work, self.state, tolerance, iterations)
        self._starts_so("position", "orientation", "angle")
        return report

    def project_velocities(self, hold: str | Sequence[str] = (), tolerance: float = 1e-10) -> Any:
        """Make the velocities fit the loops, with the least change in the metric of the kinetic energy.

        In worlds that have not run yet, :meth:`reset` returns to the result.

        Args:
            hold: signals of velocities that keep their values: ``joint.<label>.velocity`` and a body's
                ``linear_velocity`` and ``angular_velocity``; wildcards are allowed.
            tolerance: maximum rate of a joint's error, m/s or rad/s.

        Returns:
            An :class:`gpusim.AssemblyReport` with the residual rate of every joint.

        Raises:
            ModelError: a signal that is not a velocity, or a negative tolerance.
        """
        tolerance = validate.not_negative("Simulation.project_velocities", "tolerance", tolerance)
        table = self.signal_table().by_name
        held = [_held(table[name]) for name in (matching("signal", hold, table) if hold else ())]
        report = project(self.backend.work, self.state, self.now, held, tolerance)
        self._starts_so("linear_velocity", "angular_momentum")
        return report

    def _starts_so(self, *names: str) -> None:
        """Make :meth:`reset` return to the current arrays of the state, in worlds that have not run yet."""
        start = np.flatnonzero(self.state.arrays["time"] == 0.0)
        for name in names:
            self._initial.arrays[name][start] = self.state.arrays[name][start]
        self.backend.initial_changed()
        self.invalidate()


def _held(signal: Signal) -> Held:
    """Return the velocity that a signal refers to.

    Raises:
        ModelError: another signal.
    """
    if signal.quantity is COORDINATE[1]:
        return Held(signal.at)
    if signal.target is None or signal.target.what not in ("linear", "angular"):
        hint = "give joint.<label>.velocity, or a body's linear_velocity or angular_velocity"
        raise validate.fail(f"signal '{signal.info.name}'", "is no velocity that can be held", hint)
    return Held((), signal.target.index, 3 * (signal.target.what == "angular"))
