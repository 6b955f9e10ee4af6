"""What a backend is: the stages of the step, over its own arrays."""

from __future__ import annotations

from typing import Protocol

from gpusim.model.state import State
from gpusim.reference.work import Work


class Stages(Protocol):
    """The stages by their one name, as in reference/ and in the kernels."""

    def prepare(self, h: float) -> None:
        """Rotations, Jacobian rows, M^-1 J^T, row velocities before the kick."""

    def actuate(self) -> None:
        """Applied forces and the laws of the axis rows."""

    def kick(self) -> None:
        """Gravity and applied forces."""

    def solve(self) -> None:
        """Impulses of all rows."""

    def split_impulses(self) -> None:
        """The papers' position correction, before the drift."""

    def commit(self) -> None:
        """Actuators' variables after the solve."""

    def drift(self) -> None:
        """Positions and orientations."""

    def positions(self) -> None:
        """Position correction after the drift."""

    def sense(self) -> None:
        """Velocities at t_n."""


class Backend(Stages, Protocol):
    """A backend: its name, and the arrays that the front door reads and writes."""

    name: str
    work: Work
    state: State
