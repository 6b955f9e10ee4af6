"""Contacts of worlds with the direct joint solver, and sweeps over contacts alone.

Each manifold on an articulated body feels it through all joints, by the factor of the joint rows: its response to a
wrench f is

    R f + S M^-1 J^T q,   q = -A^-1 J m(f)

with R the free bodies' response, m(f) the motions of its two bodies, q the joints' answer and S what their motions do
at the manifold. Every change of such a manifold's impulses is followed by the joints' answer to it. So a foot carries
the whole robot in one sweep, where a foot alone would need as many as the masses' ratio. These manifolds follow one
after another, the n-th of every world together.
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import CONVERGED
from gpusim.reference import contact_rows, contact_solve
from gpusim.reference.contact_laws import larger
from gpusim.reference.manifolds import SOLVED, Manifolds
from gpusim.reference.search_direction import SearchDirection
from gpusim.reference.work import Work
from gpusim.typing import Array


def joint_response(w: Work, m: Manifolds, motion: Array) -> Array:
    """Impulses by which the joints take back the motions (n, 2, 6) of the manifolds' bodies, for all worlds."""
    moved = np.zeros_like(w.twist)
    world = np.broadcast_to(m.world[:, None], m.body.shape)
    moved[world[m.moves], m.body[m.moves]] = motion[m.moves]
    change: Array = w.factor.solve(-w.row_velocity(moved))
    return change


def respond_articulated(w: Work, worlds: Array) -> None:
    """Responses of the articulated manifolds of some worlds (bool, (num_worlds,)), which have just been factored."""
    if w.touch is None:
        return
    for part in w.touch.articulated:
        mask = worlds[part.world]
        if not mask.any():
            continue
        m = part.part(mask)
        for j in range(6):
            _respond_column(w, m, j)
        contact_rows.point_masses(m)
        part.put(mask, m, ("response", "mass", "moved"))


def _respond_column(w: Work, m: Manifolds, j: int) -> None:
    """Column j of the response: the motions by a unit wrench and the joints' answer."""
    wrench = np.zeros((m.world.size, 6), w.real)
    wrench[:, j] = 1.0
    motion = contact_rows.side_motions(m, wrench)
    answered = w.apply_impulse(joint_response(w, m, motion))[m.world[:, None], m.body]
    m.response[:, :, j] = contact_rows.relative_motion(m, answered + motion)


def sweep_contacts(w: Work, worlds: Array) -> None:
    """Sweep contacts of some worlds for the velocities that the joint rows have left, until they converge."""
    if w.touch is None:
        return
    live = worlds & w.touch.touching
    w.twist, w.solved = w.twist.copy(), w.solved.copy()
    course, share = SearchDirection(w, live), w.real.type(CONVERGED[w.real])
    assert w.contacts is not None
    w.contacts.sweep_count[live] = 0
    for sweep in range(w.config.iterations):
        if not live.any():
            break
        if sweep:
            course.extend(w, live)
        change, load = contact_solve.sweep_lists(w, live)
        for part in w.touch.articulated:
            _sweep_articulated(w, part, live, change, load)
        w.contacts.sweep_change[live, sweep] = change[live]
        w.contacts.sweep_count[live] = sweep + 1
        live = live & ~(change <= larger(share * load, w.real.type(w.config.epsilon)))


def _sweep_articulated(w: Work, part: Manifolds, live: Array, change: Array, load: Array) -> None:
    mask = live[part.world]
    if not mask.any():
        return
    m = part.part(mask)
    s = contact_solve.sweep_list(m, w.twist, False)
    part.put(mask, m, SOLVED)
    change[m.world] = np.maximum(change[m.world], s.most)
    load[m.world] = np.maximum(load[m.world], contact_solve.greatest_load(m))
    worlds = m.world[s.most > 0.0]
    if worlds.size:
        answered = joint_response(w, m, contact_rows.side_motions(m, s.wrench))
        moved = w.apply_impulse(answered)
        w.solved[worlds] += answered[worlds]
        w.twist[worlds] += moved[worlds]
