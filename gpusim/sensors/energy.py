"""Energies, momenta and gaps of the whole model, at t_n."""

from __future__ import annotations

import numpy as np

from gpusim.geometry import rotations
from gpusim.reference import positions
from gpusim.reference.work import Work
from gpusim.typing import Array


def kinetic_energy(w: Work) -> Array:
    """Bodies, rotors and pistons, J, (num_worlds,); needs the sense stage."""
    moving = w.topology.dynamic
    v, omega = w.twist_now[..., :3].astype(np.float64), w.twist_now[..., 3:].astype(np.float64)
    mass = w.parameters["mass"]
    bodies = 0.5 * mass * rotations.dot(v, v) + 0.5 * rotations.dot(omega, w.momentum_now)
    total = np.sum(np.where(moving, bodies, 0.0), axis=1)
    if w.topology.axis_row.size:
        rates = w.axis_velocity_now().astype(np.float64)
        total = total + 0.5 * np.sum(w.parameters["armature"] * rates * rates, axis=1)
        for group in w.groups.values():
            inertia = group.type.inertia(group)
            if inertia is not None:
                rate = rates[:, group.axis]
                total = total + 0.5 * np.sum(inertia * rate * rate, axis=1)
    return np.asarray(total)


def potential_energy(w: Work) -> Array:
    """Gravity (zero at the world's origin) and springs, J, (num_worlds,)."""
    p, x = w.parameters, w.state.arrays["position"]
    weight = p["mass"] * rotations.dot(p["gravity"][:, None, :], x)
    total = -np.sum(np.where(w.topology.dynamic, weight, 0.0), axis=1)
    for group in w.groups.values():
        energy = group.type.potential(group, w)
        if energy is not None:
            total = total + np.sum(energy, axis=1)
    return np.asarray(total)


def joint_drift(w: Work) -> Array:
    """Greatest distance between the two points of a joint along its locked directions, m, (num_worlds,)."""
    t = w.topology
    errors = positions.row_errors(w)
    flat = errors.reshape(w.num_worlds, -1)
    square = np.zeros_like(flat)
    rows = t.rigid_row[w.layout.rigid_linear]
    square[:, rows] = flat[:, rows] ** 2
    gaps = np.sqrt(np.sum(square.reshape(errors.shape), axis=2))
    return np.max(gaps, axis=1, initial=0.0)
