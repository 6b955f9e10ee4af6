"""Energies, momenta and gaps of the whole model, at t."""

from __future__ import annotations

import numpy as np

from gpusim.geometry import rotations
from gpusim.reference import positions
from gpusim.reference.now import Now
from gpusim.reference.work import Work
from gpusim.typing import Array


def kinetic_energy(now: Now) -> Array:
    """Bodies, rotors and pistons, J, (num_worlds,)."""
    model, velocity, twist = now.model, now.velocity(), now.twist()
    bodies = 0.5 * now.parameters["mass"] * rotations.dot(velocity[..., :3], velocity[..., :3])
    bodies = bodies + 0.5 * rotations.dot(twist[..., 3:], velocity[..., 3:])
    total = np.sum(np.where(model.topology.dynamic, bodies, 0.0), axis=1)
    if len(model.axes):
        rates = now.axis_rate(np.arange(len(model.axes)))
        total = total + 0.5 * np.sum(now.parameters["armature"] * rates * rates, axis=1)
        for group in now.groups:
            inertia = group.type.inertia(group)
            if inertia is not None:
                rate = rates[:, group.axis]
                total = total + 0.5 * np.sum(inertia * rate * rate, axis=1)
    return np.asarray(total)


def potential_energy(now: Now) -> Array:
    """Gravity (zero at the world's origin) and springs, J, (num_worlds,)."""
    p, x = now.parameters, now.state["position"]
    weight = p["mass"] * rotations.dot(p["gravity"][:, None, :], x)
    total = -np.sum(np.where(now.model.topology.dynamic, weight, 0.0), axis=1)
    for group in now.groups:
        energy = group.type.potential(group, now)
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
