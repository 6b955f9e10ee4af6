"""The papers' cylinder coupling: the piston moves alone in sub-steps of 0.1 ms (paper 2023, eq. 6 to 9)."""

from __future__ import annotations

import math

import numpy as np

from gpusim.actuators.base import Group
from gpusim.actuators.hydraulic_cylinder import PAPERS_SUBSTEP, PRESSURES, chamber_lines
from gpusim.reference.work import Work
from gpusim.typing import Array


def free_piston(group: Group, work: Work, x: Array) -> Array:
    """Velocity of the unloaded piston and the pressures after the step.

    The piston starts with its load's velocity; its mass alone takes the oil force. The impulse that joins it
    with the load again is the row ``p = m_p (v_piston - u+)``. Pressures stay as the free motion left them.

    Args:
        group: the cylinders.
        work: the running step.
        x: stroke at t_n, m.

    Returns:
        (3, num_worlds, n): velocity m/s, p_A, p_B in Pa.
    """
    p, s = group.params, group.state
    count = max(1, math.ceil(work.h / PAPERS_SUBSTEP - 1e-9))
    h = work.h / count
    velocity = work.axis_velocity[:, group.axis]
    pressures = tuple(work.broadcast(s[name]) for name in PRESSURES)
    position = x
    mass = np.where(p["papers_coupling"] > 0.5, p["piston_mass"], 1.0)
    openings = work.scratch["cylinder.openings"]
    for _ in range(count):
        compliance = np.stack(
            [
                (p["volume_a"] + p["area_a"] * position) / p["bulk_modulus"]
                + p["hose_volume_a"] / p["hose_bulk_modulus"],
                (p["volume_b"] - p["area_b"] * position) / p["bulk_modulus"]
                + p["hose_volume_b"] / p["hose_bulk_modulus"],
            ]
        )
        a_a, b_a, a_b, b_b = chamber_lines(
            p, (pressures[0], pressures[1]), np.stack(pressures), openings, compliance, h
        )
        force = p["area_a"] * a_a - p["area_b"] * a_b
        drag = p["area_a"] * b_a - p["area_b"] * b_b + p["viscous_friction"]
        velocity = (mass * velocity + h * force) / (mass + h * drag)
        moved = np.clip(position + h * velocity, p["stroke_min"], p["stroke_max"])
        velocity = np.where(moved == position + h * velocity, velocity, (moved - position) / h)
        position = moved
        pressures = (a_a - b_a * velocity, a_b - b_b * velocity)
    return np.stack(np.broadcast_arrays(velocity, *pressures))
