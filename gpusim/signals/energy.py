"""Energies and joint gaps of a whole model at the current time."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.layout import ROW_GAP
from gpusim.reference.signals.state_reader import StateReader
from gpusim.reference.solve import positions
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def kinetic_energy(w: StepBuffers) -> Array:
    """Return the kinetic energy of bodies, rotors and pistons (J), (num_worlds,). Run stage ``forward`` first."""
    after = 0.0 if w.scheme == "semi_implicit" else (w.h_prev / (w.h_prev + w.real.type(w.h)))[:, :, None]
    twist = w.twist_before + after * (w.twist - w.twist_before)
    v, rate = twist[..., :3], twist[..., 3:]
    momentum = rotations.matvec(w.rotation.swapaxes(-1, -2), rate)
    spin = rotations.dot(momentum, rotations.matvec(w.parameters["inertia"], momentum))
    bodies = 0.5 * (w.parameters["mass"] * rotations.dot(v, v) + spin)
    total = np.sum(np.where(w.topology.dynamic, bodies, 0.0), axis=1)
    if w.topology.axis_row.size:
        rates = w.row_velocity(twist.astype(w.real)).reshape(w.num_worlds, -1)[:, w.topology.axis_row]
        total = total + 0.5 * np.sum(w.parameters["armature"] * rates * rates, axis=1)
        for group in w.groups.values():
            inertia = group.type.inertia(group)
            if inertia is not None:
                rate = rates[:, group.axis]
                total = total + 0.5 * np.sum(inertia * rate * rate, axis=1)
    return np.asarray(total)


def potential_energy(now: StateReader) -> Array:
    """Return the potential energy of gravity and springs (J), (num_worlds,).

    The gravitational energy is zero at the world origin.
    """
    p, x = now.parameters, now.state["position"]
    weight = p["gravity_scale"] * p["mass"] * rotations.dot(p["gravity"][:, None, :], x)
    total = -np.sum(np.where(now.model.topology.dynamic, weight, 0.0), axis=1)
    for group in now.groups:
        energy = group.type.potential(group, now)
        if energy is not None:
            total = total + np.sum(energy, axis=1)
    return np.asarray(total)


def joint_drift(w: StepBuffers) -> Array:
    """Return the maximum gap over all joints (m), (num_worlds,). A gap is the position error in locked directions."""
    errors = positions.row_errors(w)
    linear = (w.layout.row_kinds == ROW_GAP).reshape(errors.shape[1:])
    gaps = np.sqrt(np.sum(np.where(linear, errors, 0.0) ** 2, axis=2))
    return np.max(gaps, axis=1, initial=0.0)
