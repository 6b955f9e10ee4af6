"""What a step runs: its stages, by name."""

from __future__ import annotations

from typing import Protocol


class Stages(Protocol):
    """The stages by their one name, as in solver/schedule.py and in the kernels."""

    h: float
    """Size of the substep, s."""

    def broad_phase(self) -> None:
        """Pairs of shapes whose boxes overlap; once a step, as the next two."""

    def narrow_phase(self) -> None:
        """Where the shapes of a pair touch: their manifolds."""

    def color_contacts(self) -> None:
        """Which manifolds are solved side by side."""

    def prepare(self) -> None:
        """Rotations, Jacobian rows, M^-1 J^T, row velocities before the kick."""

    def prepare_contacts(self) -> None:
        """Rows of the manifolds."""

    def actuate(self) -> None:
        """Applied forces and the laws of the axis rows."""

    def kick(self) -> None:
        """Gravity and applied forces."""

    def solve(self) -> None:
        """Impulses of all rows."""

    def split_impulses(self) -> None:
        """The papers' position correction, before the drift."""

    def advance_actuators(self) -> None:
        """Actuators' variables after the solve."""

    def drift(self) -> None:
        """Positions and orientations."""

    def positions(self) -> None:
        """Position correction after the drift."""

    def relax(self) -> None:
        """Velocities after overlaps were taken back by the drift, and after impacts on contacts and limits."""

    def store_contacts(self) -> None:
        """Impulses of the contacts, for the next step to start from."""

    def check(self) -> None:
        """Worlds that failed are put back to their last good state."""

    def forward(self) -> None:
        """Forces of the actuators over a tried kick."""
