"""Stage relax: solve the velocities again after the drift.

Before the drift, the contact rows allow an approach speed of ``gap/h``, so that a landing body ends on the surface.
Touching contact points have a small compliance (contact_rows.py). After the drift, stage relax removes this compliance
and solves again, starting from the last solution. Positions do not change.
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import PUSHED_OUT
from gpusim.reference.contacts import contact_laws, contact_rows
from gpusim.reference.joints.laws import AT_LOWER, AT_UPPER, CONTACT_BITS
from gpusim.reference.joints.ropes import limit_rates
from gpusim.reference.solve import colored_solve, contact_direct, direct_solve
from gpusim.reference.solve.drift import momentum_change
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def relax(w: StepBuffers) -> None:
    """Solve again in worlds with impacts or compliant contacts, and store the new velocities."""
    worlds = _find_axis_impacts(w) | _relax_points(w)
    if w.contacts is not None:
        w.contacts.relaxing[:] = worlds
    if worlds.any():
        _resolve(w, worlds)
        _store(w, worlds)
    contact_rows.store(w)


def _resolve(w: StepBuffers, worlds: Array) -> None:
    if not w.topology.num_constraints:
        contact_direct.sweep_contacts(w, worlds, w.config.iterations)
    elif w.config.direct:
        direct_solve.resume(w, worlds)
    else:
        colored_solve.resume(w, worlds)


def _find_axis_impacts(w: StepBuffers) -> Array:
    """Set the velocity bounds of axes that bounce at a position limit. Return a mask of their worlds."""
    none = np.zeros(w.num_worlds, bool)
    if not w.bounces or not w.topology.axis_row.size:
        return none
    restitution = w.broadcast(w.parameters["limit_restitution"]).astype(w.real)
    law, contact = w.law, w.mode & CONTACT_BITS
    # Use the acceleration of the last substep, because the kick does not include the forces of the joints.
    running = w.h_prev > 0.0
    pull = (w.rate - w.rate_old) / np.where(running, w.h_prev, w.real.type(1))
    first = w.row_velocity(w.twist_kicked).reshape(w.num_worlds, -1)[:, w.topology.axis_row]
    kicked = np.where(running, w.rate + pull * w.kick_time, first)
    world = np.broadcast_to(np.arange(w.num_worlds)[:, None], contact.shape)
    impacts = none[:, None]
    for mode, sign, bound in ((AT_LOWER, 1, law.velocity_lower), (AT_UPPER, -1, law.velocity_upper)):
        stopped, signed, drive = contact == mode, w.real.type(sign), limit_rates(w, int(mode == AT_UPPER))
        distance = -signed * (bound - drive) * w.real.type(w.h)
        gap = np.maximum(np.where(stopped, distance, 0.0), 0.0).astype(w.real)
        before, after = signed * (w.rate - drive), signed * (kicked - drive)
        speed = contact_laws.impact_speed(w, world, restitution, gap, before, after)
        leaves = stopped & (speed > 0.0)
        bound[:] = np.where(leaves, drive + signed * speed, bound)
        impacts = impacts | leaves
    return np.asarray(impacts.any(axis=1))


def _relax_points(w: StepBuffers) -> Array:
    """Make all rigid contact rows rigid for the new solve. Return a mask of worlds to solve again, (num_worlds,)."""
    worlds = np.zeros(w.num_worlds, bool)
    if w.touch is None:
        return worlds
    m, zero = w.touch.all, w.real.type(0)
    rigid, pressed = m.exists & ~m.soft[:, None], m.impulse[..., 0] > 0.0
    # Skip points on bodies with joints, unless the spring of their compliance has pushed the points out.
    held = m.carried - w.real.type(PUSHED_OUT) * m.gamma * m.impulse[..., 0]
    gives = np.where(m.articulated[:, None], held, m.gamma) > 0.0
    changes = rigid & (gives | ((m.impact > 0.0) & pressed))
    worlds[m.world[changes.any(axis=1)]] = True
    impact, normal_bias = np.where(pressed, m.impact, zero), m.bias[..., 0]
    bias = np.where(impact > 0.0, -impact, normal_bias + m.carried)
    for array, values in ((m.impact, impact), (m.gamma, zero), (normal_bias, bias)):
        array[:] = np.where(rigid, values, array)
    return worlds


def _store(w: StepBuffers, worlds: Array) -> None:
    state = w.state.arrays
    rates = w.row_velocity(w.twist).reshape(w.num_worlds, -1) + w.bias
    w.rate_next = np.where(worlds[:, None], rates[:, w.topology.axis_row], w.rate_next)
    momentum = w.momentum_kicked + momentum_change(w)
    for name, values in (
        ("linear_velocity", w.twist[..., :3]),
        ("angular_momentum", momentum),
        ("axis_velocity", w.rate_next),
    ):
        state[name][worlds] = values[worlds]
    # An axis with a bound that drives it away from a limit had an impact. Discard the axis rate before the impact.
    bounced = worlds[:, None] & (
        (w.law.velocity_lower > limit_rates(w, 0)) | (w.law.velocity_upper < limit_rates(w, 1))
    )
    state["axis_velocity_before"][bounced] = state["axis_velocity"][bounced]
