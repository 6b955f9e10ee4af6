"""Energy audit of a simulation: compare the energy change with the work of all actuators, joints and contacts.

A kick is the velocity update of a step. If an impulse p changes a velocity from u- to u+, the work of p is p (u- +
u+)/2. The audit sums the work of all impulses for each actuator, joint and contact. The work of a step is computed from
the powers in the kicks at the start and at the end of the step (trapezoidal rule). With the semi-implicit scheme, the
audit uses only the kick at the start. Position corrections and implicit steps of oil circuits have separate entries in
the balance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import add_columns
from gpusim.reference.step_buffers import StepBuffers
from gpusim.signals import energy
from gpusim.simulation import Simulation
from gpusim.typing import Array

Powers = dict[str, Array]


@dataclass(frozen=True)
class EnergyBalance:
    """Result of an energy audit. All values are arrays (num_worlds,) in J.

    Attributes:
        kinetic, potential: changes of the kinetic and the potential energy (gravity, springs and oil).
        works: name of an entry -> energy that the entry added to the system, negative for removed energy. Elements have
            entries such as ``motor.left``, ``valve.boom`` or ``joint.hinge`` (damping, friction, limits). The entry of
            a spring contains only the work of its damping. The entry ``joints`` is the work in the locked directions of
            joints, which is zero without numerical errors. The entry ``moved bodies`` is the work of kinematic bodies.
            The entry ``push-outs`` is the work against gravity when position corrections lift bodies. The entry ``oil
            steps`` is the energy change by the implicit steps of oil circuits. The entries ``contacts``, ``impacts``
            and ``applied`` are the work of contact forces, of impacts and of applied forces.
        turnover: reference energy for the relative error: the maximum of the added energy, the removed energy, and the
            greatest change of the kinetic energy.
    """

    kinetic: Array
    potential: Array
    works: Mapping[str, Array]
    turnover: Array

    @property
    def error(self) -> Array:
        """Change of energy minus the sum of ``works`` (J)."""
        return np.asarray(self.kinetic + self.potential - sum(self.works.values(), np.zeros_like(self.kinetic)))

    @property
    def relative_error(self) -> Array:
        """Absolute value of ``error`` divided by ``turnover``.

        If ``turnover`` is 0, the value is ``abs(error)`` in J.
        """
        return np.abs(self.error) / np.where(self.turnover > 0.0, self.turnover, 1.0)

    def __str__(self) -> str:
        """Return a table of world 0: energy changes, then works in descending order, then the error."""
        rows = sorted(self.works.items(), key=lambda item: -abs(item[1][0]))
        stored = [("kinetic energy", self.kinetic), ("potential energy", self.potential)]
        lines = [f"{name:32s} {value[0]:14.6g} J" for name, value in [*stored, *rows, ("error", self.error)]]
        return "\n".join(lines)


class EnergyAudit:
    """Step a simulation, and sum the work of each actuator, joint and contact.

    ::

        audit = gpusim.EnergyAudit(sim)
        for _ in range(1000):
            scene.schedule(sim, sim.time)  # commands first
            audit.step()
        print(audit.balance())

    Each step takes longer, because the audit computes an additional velocity update. Do not write poses between the
    steps of an audit.

    Args:
        sim: the simulation. The simulation may have run before the audit.

    Raises:
        ModelError: the simulation has several substeps per step.
    """

    def __init__(self, sim: Simulation) -> None:
        validate.simulation("EnergyAudit", sim)
        if sim.config.substeps != 1:
            rule = f"steps of {sim.config.substeps} substeps cannot be followed one by one"
            hint = "set substeps=1 and a smaller dt in SolverConfig"
            raise validate.fail("EnergyAudit", rule, hint)
        self.sim = sim
        self._works: Powers = {}
        self._first: tuple[Array, Array] | None = None
        self._gained = self._lost = self._max_change = np.zeros(sim.num_worlds)
        self._last: _Kick | None = None

    def step(self) -> None:
        """Run the block diagrams that are due, then take one step."""
        self.sim.sample_diagrams()
        kick = _Kick(self.sim)
        self._take(kick)
        self._last = kick
        self.sim.step()

    def balance(self) -> EnergyBalance:
        """Return the energy balance of all steps so far."""
        kick = _Kick(self.sim)
        if self._first is None:
            self._first = kick.kinetic, kick.potential
        works, gained, lost, max_change = self._with(kick)
        kinetic, potential = kick.kinetic - self._first[0], kick.potential - self._first[1]
        return EnergyBalance(kinetic, potential, works, np.max([gained, lost, max_change], axis=0))

    def _take(self, kick: _Kick) -> None:
        if self._first is None:
            self._first = kick.kinetic, kick.potential
        self._works, self._gained, self._lost, self._max_change = self._with(kick)

    def _with(self, kick: _Kick) -> tuple[Powers, Array, Array, Array]:
        """Return the work of each entry, the added and removed energy, and the maximum change of the kinetic energy."""
        works, gained, lost = dict(self._works), self._gained, self._lost
        assert self._first is not None
        max_change = np.maximum(self._max_change, np.abs(kick.kinetic - self._first[0]))
        if self._last is not None:
            for name, work in kick.since(self._last, self._last.parts(self.sim)).items():
                works[name] = works.get(name, 0.0) + work
                gained, lost = gained + np.maximum(work, 0.0), lost + np.maximum(-work, 0.0)
        return works, gained, lost, max_change


class _Kick:
    """Velocities, powers and energies of the velocity update (kick) at the current time."""

    def __init__(self, sim: Simulation) -> None:
        w = sim.runtime.forward()
        self.time = np.array(w.kick_time, dtype=float).reshape(-1)
        self.before = np.array(w.h_prev, dtype=float).reshape(-1)
        self.semi_implicit = w.scheme == "semi_implicit"
        self.kinetic = np.array(energy.kinetic_energy(w), dtype=float)
        self.rotation = np.array(w.rotation, dtype=float)
        self.inertia = np.asarray(w.parameters["inertia"], dtype=float)
        self.mass = np.where(w.topology.dynamic, w.parameters["mass"], 0.0)
        first, after = (np.array(x, dtype=float) for x in (w.twist_before, w.twist))
        self.velocity, self.velocity_after = first[..., :3], after[..., :3]
        self.momentum, self.momentum_after = (self._momentum(x[..., 3:]) for x in (first, after))
        now, size = sim.runtime.now, float(sim.step_size)
        ledgers = {name: group.type.works(group, now, size) for name, group in w.groups.items()}
        self.ledgers = {name: ledger for name, ledger in ledgers.items() if ledger is not None}
        powers = _Powers(sim, w, 0.5 * (first + after), set(self.ledgers))
        self.powers, self.stored, self.oil = powers.of, powers.stored, powers.oil
        self.position = np.array(sim.read_state()["position"], dtype=float)
        heavy = w.parameters["gravity_scale"] * self.mass
        self.weight = heavy[..., None] * np.broadcast_to(w.parameters["gravity"], (len(self.mass), 3))[:, None]
        self.potential = np.array(sim.read("sim.potential_energy"), dtype=float)

    def _momentum(self, rate: Array) -> Array:
        r = self.rotation
        return np.asarray(
            rotations.matvec(r, rotations.matvec(self.inertia, rotations.matvec(r.swapaxes(-1, -2), rate)))
        )

    def parts(self, sim: Simulation) -> Powers:
        """Return the work of all actuators that implement ``works``, from this kick until now."""
        found: Powers = {}
        for ledger in self.ledgers.values():
            found |= ledger(sim.runtime.now)
        return found

    def since(self, last: _Kick, booked: Powers) -> Powers:
        """Return the work of each entry between the kick ``last`` and this kick."""
        h = self.before
        share = (1.0, 0.0) if self.semi_implicit else (0.5, 0.5)
        works = {name: h * (share[0] * last.powers[name] + share[1] * power) for name, power in self.powers.items()}
        for name, stored in self.stored.items():
            works[name] = works[name] + stored - last.stored[name]
        works["impacts"] = self._energy(self.velocity, self.momentum) - self._energy(
            last.velocity_after, last.momentum_after
        )
        drifted = 0.5 * h[:, None, None] * (last.velocity_after + self.velocity)
        works["push-outs"] = -np.sum(self.weight * (self.position - last.position - drifted), axis=(1, 2))
        if booked:  # work of the oil on bodies + change of the oil's energy - booked work
            pushed = h * (share[0] * last.oil[0] + share[1] * self.oil[0])
            works["oil steps"] = pushed + self.oil[1] - last.oil[1] - np.sum(list(booked.values()), axis=0)
        return works | booked

    def _energy(self, velocity: Array, momentum: Array) -> Array:
        """Return the kinetic energy (num_worlds,), J, for given velocities and angular momenta of the bodies."""
        r = self.rotation.swapaxes(-1, -2)
        own = rotations.matvec(r, momentum)
        rate = rotations.matvec(np.linalg.inv(self.inertia), own)
        spin = np.where(self.mass > 0.0, rotations.dot(own, rate), 0.0)
        return 0.5 * np.asarray(np.sum(self.mass * rotations.dot(velocity, velocity) + spin, axis=1))


class _Powers:
    """Mean power (W) of each balance entry during a kick, and energy (J) that each actuator stores."""

    def __init__(self, sim: Simulation, w: StepBuffers, twist: Array, booked: set[str]) -> None:
        self.sim, self.w, self.twist, self.booked = sim, w, twist, booked
        self.kick = np.where(w.kick_time > 0.0, w.kick_time, 1.0).reshape(-1, 1).astype(float)
        self.of: Powers = {}
        self.stored: Powers = {}
        self.oil = np.zeros((2, w.num_worlds))
        self._rows()
        self._applied()
        self._contacts()

    def _add(self, name: str, power: Array) -> None:
        self.of[name] = self.of.get(name, 0.0) + power

    def _rows(self) -> None:
        """Add the power of each constraint row: impulse * (mean row velocity) / (duration of the kick)."""
        w, t = self.w, self.w.topology
        solved = np.asarray(w.solved, dtype=float)
        sides = rotations.matvec(np.asarray(w.jacobian, dtype=float), self.twist[:, w.layout.side_body])
        power = solved * w.layout.sum_slots(sides) / self.kick[..., None]
        still = ~t.dynamic[w.layout.side_body]
        brought = np.sum(solved[:, w.layout.side_constraint[still]] * sides[:, still], axis=(1, 2))
        self._add("moved bodies", -brought / self.kick[:, 0])
        flat = power.reshape(len(power), -1)
        left = self._actuators(flat[:, t.axis_row])
        taken = np.zeros(flat.shape[1], dtype=bool)
        taken[t.axis_row] = True
        for axis, row in enumerate(t.axis_row):
            constraint = int(row) // t.block
            label = t.constraint_labels[constraint]
            name = f"joint.{label}" if t.constraint_joint[constraint] >= 0 else label
            self._add(name, left[:, axis])
        taken = taken.reshape(t.num_constraints, t.block)
        taken[t.coupled_constraint] = True
        self._coupled(power)
        self._add("joints", np.sum(np.where(taken, 0.0, power), axis=(1, 2)))

    def _actuators(self, power: Array) -> Array:
        """Add the power of actuators on single joint axes. Return ``power`` without the power of these actuators."""
        w, row = self.w, self.w.topology.axis_row
        ends = [w.row_velocity(x).reshape(len(power), -1)[:, row].astype(float) for x in (w.twist_before, w.twist)]
        rate, change = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] ** 2 - ends[0] ** 2) / self.kick
        left = power + w.parameters["armature"] * change
        for name, group in w.groups.items():
            work = np.zeros((len(power), len(group.specs)))
            if name in w.term_forces:
                force = np.asarray(w.term_forces[name], dtype=float) * rate[:, group.axis]
                add_columns(left, group.axis, -force)
                inertia = group.type.inertia(group)
                work = force if inertia is None else force + inertia * change[:, group.axis]
            if name in self.booked:
                continue
            stored = group.type.potential(group, self.sim.runtime.now)
            if name in w.term_forces or stored is not None:
                for k, label in enumerate(group.labels):
                    self._add(f"{group.type.prefix}.{label}", work[:, k])
                    if stored is not None:
                        self.stored[f"{group.type.prefix}.{label}"] = np.array(stored[:, k], dtype=float)
        return left

    def _coupled(self, power: Array) -> None:
        """Add the power of actuators whose force law depends on several axes."""
        for name, group in self.w.groups.items():
            if group.coupled is None:
                continue
            rows = self.w.topology.coupled_constraint[group.coupled]
            if name in self.booked:
                stored = group.type.potential(group, self.sim.runtime.now)
                self.oil[0] += np.sum(power[:, rows], axis=(1, 2))
                self.oil[1] += 0.0 if stored is None else np.sum(stored, axis=1)
                continue
            for label, work in zip(group.labels, np.sum(power[:, rows], axis=2).T, strict=True):
                self._add(f"{group.type.prefix}.{label}", work)

    def _applied(self) -> None:
        """Add the power of applied forces and torques on bodies."""
        w = self.w
        power = rotations.dot(w.force, self.twist[..., :3]) + rotations.dot(w.torque, self.twist[..., 3:])
        self._add("applied", np.sum(np.where(w.topology.dynamic, power, 0.0), axis=1))

    def _contacts(self) -> None:
        """Add the power of all contacts."""
        c, w = self.sim.contacts(), self.w
        both, brought = np.zeros((2, w.num_worlds))
        for body, sign in ((c.body_a, -1.0), (c.body_b, 1.0)):
            twist = self.twist[c.world, body]
            velocity = twist[:, :3] + rotations.cross(twist[:, 3:], c.point - w.state.arrays["position"][c.world, body])
            power = sign * (rotations.dot(c.force, velocity) + rotations.dot(c.torque, twist[:, 3:]))
            np.add.at(both, c.world, power)
            np.add.at(brought, c.world, np.where(w.topology.dynamic[body], 0.0, power))
        self._add("contacts", both)
        self._add("moved bodies", -brought)
