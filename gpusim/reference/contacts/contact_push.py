"""Push-outs: position impulses that correct penetration during the drift. They do not change velocities.

The solver computes push-outs before it solves the velocities. q is the position impulse of a contact point. w is the
relative normal speed that all position impulses together cause at this point. f is the speed of the point per unit
impulse. ``over`` is the penetration beyond the slop, and y is the compliance of the push-out. q satisfies a
complementarity problem. Both conditions hold, and at least one of them is an equality:

    w + y q >= (1 + y/f) (min(PUSH_SHARE over/h, max_depenetration_speed) - carried),   q >= 0.

``carried`` is the speed at which a load presses the surfaces together (contact_rows.py). During the drift, bodies move
by h w. Push-outs are frictionless.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpusim.description.contact_fields import POINTS
from gpusim.reference.contacts import contact_rows
from gpusim.reference.contacts.contact_laws import max_
from gpusim.reference.contacts.contact_solve import (
    Sweep,
    move_sides,
    point_velocity,
    push_point,
    start_sweep,
    warm_wrench,
)
from gpusim.reference.contacts.manifolds import Manifolds
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def start_contacts(w: StepBuffers, follow: Callable[[StepBuffers, Array], None] | None = None) -> None:
    """Set the biases of the contact rows, compute the push-outs, and warm start the contact impulses."""
    if w.touch is None:
        return
    contact_rows.set_bias(w)
    _push_out(w, follow)
    # Changes in place are safe, because the code reads all manifolds of a list before it moves bodies.
    w.twist = w.twist.copy()
    for k, m in enumerate(w.touch.lists):
        move_sides(m, warm_wrench(m), w.twist, w.touch.overflow and k == 0)
    for m in w.touch.articulated:
        move_sides(m, warm_wrench(m), w.twist, False)


def _push_out(w: StepBuffers, follow: Callable[[StepBuffers, Array], None] | None) -> None:
    assert w.contacts is not None
    m = w.touch.all
    worlds = w.contacts.pushing
    worlds[m.world[(m.exists & (m.push > 0.0)).any(axis=1)]] = 1
    live = worlds != 0
    if not live.any():
        return
    moved, delta = w.displacement, np.zeros_like(w.solved)
    for _ in range(w.config.iterations):
        if follow is not None and w.scheme != "semi_implicit":
            follow(w, moved)
        for k, part in enumerate(w.touch.lists):
            _push_list(part, live, moved, w.touch.overflow and k == 0)
        for part in w.touch.articulated:
            _push_articulated(part, live, moved, delta)
    if w.touch.articulated:
        moved += w.apply_impulse(w.factor.backward(delta))
    moved[:] = np.where(live[:, None, None], w.real.type(w.h) * moved, 0.0)


def _push_list(part: Manifolds, live: Array, moved: Array, shared: bool) -> None:
    mask = live[part.world]
    if not mask.any():
        return
    m = part.part(mask)
    s = start_sweep(m, moved)
    _push_points(m, s)
    move_sides(m, s.wrench, moved, shared)
    part.put(mask, m, ("pushed",))


def _push_articulated(part: Manifolds, live: Array, moved: Array, delta: Array) -> None:
    mask = live[part.world]
    if not mask.any():
        return
    m = part.part(mask)
    s = start_sweep(m, moved)
    s.twist += np.einsum("ncrj,ncr->nj", m.path_y, delta[m.world])
    _push_points(m, s)
    move_sides(m, s.wrench, moved, shared=False)
    delta[m.world] -= np.einsum("ncrj,nj->ncr", m.path_z, s.wrench)
    part.put(mask, m, ("pushed",))


def _push_points(m: Manifolds, s: Sweep) -> None:
    real = m.mass.dtype.type
    for k in range(POINTS):
        has = k < m.points
        if not has.any():
            return
        old, gives = m.pushed[:, k], m.push_yield[:, k]
        misses = m.push[:, k] - point_velocity(m, k, has.size, s)[:, 0] - gives * old
        now = max_(old + misses / np.where(has, m.mass[:, k, 0] + gives, real(1)), real(0))
        change = np.zeros((has.size, 3), m.mass.dtype)
        change[:, 0] = np.where(has, now - old, real(0))
        m.pushed[:, k] += change[:, 0]
        push_point(m, k, has.size, change, s)
