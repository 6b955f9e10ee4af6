"""Signals of bodies: poses, velocities, masses and inertias."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.signals.quantities import BODY
from gpusim.reference.signals.writes import Target
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SignalTable
from gpusim.typing import Array

matvec = rotations.matvec


def add_body_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the signals of all bodies, such as ``body.<label>.position``."""
    for index, body in enumerate(runtime.model.bodies):
        BodySignals(runtime, index).add(table, f"body.{body.label}.")


class BodySignals:
    """Signals of one body."""

    def __init__(self, runtime: Runtime, index: int) -> None:
        self.runtime, self.index = runtime, index
        self.kinematic = runtime.model.bodies[index].kinematic

    def add(self, table: SignalTable, prefix: str) -> None:
        """Add the body's signals to the table."""
        targets = {
            "position": "position",
            "orientation": "orientation",
            "linear_velocity": "linear",
            "angular_velocity": "angular",
        }
        for quantity in BODY:
            what = targets.get(quantity.name)
            table.observe(prefix + quantity.name, quantity, (self.index,), Target(what, self.index) if what else None)
        table.add(
            prefix + "mass", (), "kg", "mass; may differ per world", lambda: self._parameter("mass"), self.write_mass,
            parameter=("mass", (self.index,)),
        )  # fmt: skip
        table.add(
            prefix + "gravity_scale", (), "-", "fraction of gravity that acts; may differ per world",
            lambda: self._parameter("gravity_scale"),
            lambda worlds, value: self.runtime.write_parameter("gravity_scale", self.index, worlds, value),
            parameter=("gravity_scale", (self.index,)),
        )  # fmt: skip
        table.add(
            prefix + "inertia", (3, 3), "kg m2", "inertia about the center of mass, body axes; may differ per world",
            lambda: self._parameter("inertia"), self.write_inertia,
        )  # fmt: skip

        for kind, unit in (("force", "N"), ("torque", "N m")):
            name = f"applied_{kind}"
            where = "at the center of mass, " if kind == "force" else ""
            table.add(
                prefix + name, (3,), unit, f"external load, {where}world frame; it acts until you write it again",
                lambda name=name: self._parameter(name),  # type: ignore[misc]
                lambda worlds, value, name=name: self.runtime.write_parameter(name, self.index, worlds, value),  # type: ignore[misc]
                parameter=(name, (self.index,)),
            )  # fmt: skip

    def _parameter(self, name: str) -> Array:
        return np.asarray(self.runtime.parameter(name)[:, self.index])

    def write_mass(self, worlds: Array, value: Array) -> None:
        """Write the mass (kg). Velocities do not change."""
        self.runtime.write_parameter("mass", self.index, worlds, value)

    def write_inertia(self, worlds: Array, value: Array) -> None:
        """Write the inertia (kg m2). Angular velocities do not change, including those in the reset state."""
        before = self._parameter("inertia")[worlds]
        self.runtime.write_parameter("inertia", self.index, worlds, value)
        if self.kinematic:
            return
        for state in self.runtime.states():
            r = rotations.matrix_from_quaternion(state.arrays["orientation"][worlds, self.index])
            momentum = state.arrays["angular_momentum"][worlds, self.index].astype(np.float64)
            rate = np.linalg.solve(before, matvec(r.swapaxes(-1, -2), momentum)[..., None])[..., 0]
            state.arrays["angular_momentum"][worlds, self.index] = matvec(r, matvec(value, rate))
