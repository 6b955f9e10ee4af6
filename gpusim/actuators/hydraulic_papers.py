"""The papers' cylinder coupling: the piston moves alone in sub-steps of 0.1 ms (paper 2023, eq. 6 to 9)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gpusim.actuators.hydraulics import compliances
from gpusim.description.actuator_kinds import Group, StepBuffers
from gpusim.typing import Array

PAPERS_SUBSTEP = 1e-4
"""s."""


def free_piston(group: Group, work: StepBuffers, x: Array) -> Array:
    """Return the velocity of the unloaded piston, and the pressures and voids after the step.

    The piston starts with its load's velocity, and only its mass resists the oil force. The impulse that rejoins it
    with the load is the row ``p = m_p (v_piston - u+)``. Pressures stay as the free motion left them.

    Args:
        group: the cylinders.
        work: the running step.
        x: stroke at t_n, m.

    Returns:
        (5, num_worlds, n): velocity m/s, p_A, p_B in Pa, voids in m3.
    """
    p = group.params
    count = max(1, math.ceil(work.h / PAPERS_SUBSTEP - 1e-9))
    h = work.h / count
    velocity = work.rate[:, group.axis]
    pressure, void = work.circuit.pressure, work.circuit.void
    position = x
    mass = np.where(p["papers_coupling"] > 0.5, p["piston_mass"], 1.0)
    for _ in range(count):
        chambers = replace(work.circuit, pressure=pressure, void=void, compliance=compliances(p, position), h=h)
        chambers.speed = velocity
        guess, slope = chambers.begin(pressure)
        a, b = chambers.lines(guess, slope)
        force = p["area_a"] * a[0] - p["area_b"] * a[1]
        drag = p["area_a"] * b[0] - p["area_b"] * b[1] + p["viscous_friction"]
        velocity = (mass * velocity + h * force) / (mass + h * drag)
        moved = np.clip(position + h * velocity, p["stroke_min"], p["stroke_max"])
        velocity = (moved - position) / h
        position = moved
        pressure, void = chambers.settled(a - b * velocity, guess, velocity)
    return np.stack([velocity, *pressure, *void])
