"""Signals of bodies: pose, velocities, mass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusim.geometry import rotations
from gpusim.model import validate
from gpusim.reference.quantities import BODY
from gpusim.sensors.signal import SignalTable
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

matvec = rotations.matvec


def add_body_signals(sim: Simulation, table: SignalTable) -> None:
    """``body.<label>.position`` and so on."""
    for index, body in enumerate(sim.model.bodies):
        BodySignals(sim, index).add(table, f"body.{body.label}.")


class BodySignals:
    """Readers and writers of one body."""

    def __init__(self, sim: Simulation, index: int) -> None:
        self.sim, self.index = sim, index
        self.com = sim.model.bodies[index].com
        self.kinematic = sim.model.bodies[index].kinematic

    def add(self, table: SignalTable, prefix: str) -> None:
        """Make the body's signals known."""
        write = {
            "position": self.write_position,
            "orientation": self.write_orientation,
            "linear_velocity": self.write_linear,
            "angular_velocity": self.write_angular,
        }
        for quantity in BODY:
            table.observe(prefix + quantity.name, quantity, (self.index,), write.get(quantity.name))
        table.add(prefix + "mass", (), "kg", "may differ per world", lambda: self._parameter("mass"), self.write_mass)
        table.add(
            prefix + "inertia", (3, 3), "kg m2", "about the center of mass, body axes; may differ per world",
            lambda: self._parameter("inertia"), self.write_inertia,
        )  # fmt: skip

        for kind, unit in (("force", "N"), ("torque", "N m")):
            name = f"applied_{kind}"
            where = "at the center of mass, " if kind == "force" else ""
            table.add(
                prefix + name, (3,), unit, f"from outside, {where}world frame; stays until it is written again",
                lambda name=name: self._parameter(name),  # type: ignore[misc]
                lambda worlds, value, name=name: self.sim.write_parameter(name, self.index, worlds, value),  # type: ignore[misc]
            )  # fmt: skip

    def _parameter(self, name: str) -> Array:
        return np.asarray(self.sim.parameter(name)[:, self.index])

    def write_mass(self, worlds: Array, value: Array) -> None:
        """Mass, kg; the velocity stays."""
        self.sim.write_parameter("mass", self.index, worlds, value)

    def write_inertia(self, worlds: Array, value: Array) -> None:
        """Inertia, kg m2; the angular velocity stays, now and in the state that reset returns to."""
        before = self._parameter("inertia")[worlds]
        self.sim.write_parameter("inertia", self.index, worlds, value)
        if self.kinematic:
            return
        for state in self.sim.states():
            r = rotations.matrix_from_quaternion(state.arrays["orientation"][worlds, self.index])
            momentum = state.arrays["angular_momentum"][worlds, self.index].astype(np.float64)
            rate = np.linalg.solve(before, matvec(r.swapaxes(-1, -2), momentum)[..., None])[..., 0]
            state.arrays["angular_momentum"][worlds, self.index] = matvec(r, matvec(value, rate))

    def _rotation(self) -> Array:
        return rotations.matrix_from_quaternion(self.sim.read_state()["orientation"][:, self.index])

    def position(self) -> Array:
        """Origin of the body frame, m."""
        arm = np.broadcast_to(self.com, (self.sim.num_worlds, 3))
        return np.asarray(self.sim.read_state()["position"][:, self.index] - matvec(self._rotation(), arm))

    def write_position(self, worlds: Array, value: Array) -> None:
        """Move the body frame's origin."""
        self.sim.begin_write(worlds, velocities=not self.kinematic)
        arm = np.broadcast_to(self.com, (worlds.size, 3))
        self.sim.state.arrays["position"][worlds, self.index] = value + matvec(self._rotation()[worlds], arm)

    def write_orientation(self, worlds: Array, value: Array) -> None:
        """Turn the body about its frame's origin; the angular velocity stays, the momentum follows."""
        if np.any(rotations.norm(value) < 1e-12):
            element = f"signal 'body.{self.sim.model.bodies[self.index].label}.orientation'"
            raise validate.fail(element, "value is the zero quaternion", "give a unit quaternion (x, y, z, w)")
        self.sim.begin_write(worlds, velocities=not self.kinematic)
        origin, omega = self.position()[worlds], self._omega()[worlds]
        self.sim.state.arrays["orientation"][worlds, self.index] = rotations.normalized(value)
        arm = np.broadcast_to(self.com, (worlds.size, 3))
        self.sim.state.arrays["position"][worlds, self.index] = origin + matvec(self._rotation()[worlds], arm)
        self._store_omega(worlds, omega)
        self.sim.state.reset_angles(self.sim.model, worlds)

    def write_linear(self, worlds: Array, value: Array) -> None:
        """Velocity of the center of mass."""
        self.sim.begin_write(worlds)
        self.sim.state.arrays["linear_velocity"][worlds, self.index] = value

    def write_angular(self, worlds: Array, value: Array) -> None:
        """Angular velocity, world frame."""
        self.sim.begin_write(worlds)
        self._store_omega(worlds, value)

    def _inertia(self) -> Array:
        r = self._rotation()
        inertia = self.sim.parameter("inertia")[:, self.index]
        return np.asarray(np.matmul(np.matmul(r, inertia), r.swapaxes(-1, -2)))

    def _omega(self) -> Array:
        momentum = self.sim.state.arrays["angular_momentum"][:, self.index].astype(np.float64)
        return matvec(np.linalg.inv(self._inertia()), momentum)

    def _store_omega(self, worlds: Array, omega: Array) -> None:
        self.sim.state.arrays["angular_momentum"][worlds, self.index] = matvec(self._inertia()[worlds], omega)
