"""Contacts in the direct solver: contact sweeps between the forward and the backward solve of the joint rows.

The joint rows have the matrix A = J M^-1 J^T + gamma = S^-1 L D L^T S^-1 (factor.py). v contains the velocities of the
bodies. C_n v is the relative twist of the two bodies of manifold n, at the manifold's center. For each manifold, the
solver computes

    Y_n = L^-1 S J M^-1 C_n^T,   Z_n = D^-1 Y_n,   R_n = C_n M^-1 C_n^T - Y_n^T Z_n.

R_n is the response of the manifold to a wrench, including the reactions of all joints. In each pass, the solver first
computes x = D^-1 L^-1 S r from the residual r of the joint rows (forward solve). Then it sweeps the contacts:

    t = C_n v + Y_n^T x;  solve the points with the response R_n: wrench f;  v += M^-1 C_n^T f,  x -= Z_n f

The backward solve follows: p += S L^-T x, v += M^-1 J^T S L^-T x. p contains the joint impulses. The solver handles
manifolds on bodies with joints one after another in each world. If the joints lock the motion of a contact point, the
point gets a compliance (``_add_floors``).
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import CONVERGED, POINT_FLOOR, POINT_MIN, PUSH_YIELD_JOINED, TANGENT_FLOOR
from gpusim.reference.accuracy import relative_change as relative_change
from gpusim.reference.contacts import contact_laws, contact_newton, contact_rows, contact_solve, contact_tire
from gpusim.reference.contacts.contact_laws import max_
from gpusim.reference.contacts.manifolds import SOLVED, Manifolds
from gpusim.reference.contacts.search_direction import SearchDirection
from gpusim.reference.solve import colored_solve
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

RESPONDING = ("response", "mass", "moved", "floor", "push_yield", "path_y", "path_z")


def respond_articulated(w: StepBuffers, worlds: Array) -> None:
    """Compute the response matrices of manifolds on bodies with joints, in the worlds of the mask ``worlds``."""
    if w.touch is None:
        return
    w.condensed_fits &= ~worlds
    for part in w.touch.articulated:
        mask = worlds[part.world]
        if mask.any():
            m = part.part(mask)
            _respond(w, m)
            part.put(mask, m, RESPONDING)


def _respond(w: StepBuffers, m: Manifolds) -> None:
    contact_rows.free_response(w, m, split=False)
    contact_rows.point_masses(m)
    free = _bounded_response(w, m)
    m.push_yield[:] = w.real.type(PUSH_YIELD_JOINED) * free
    rows = np.zeros((w.num_worlds, *w.solved.shape[1:], 6), w.real)
    wide = _needs_torque_response(m)
    for j in range(6):
        wrench = np.zeros((m.world.size, 6), w.real)
        wrench[:, j] = 1.0 if j < 3 else wide
        rows[..., j] = _joint_velocity(w, m, contact_rows.side_motions(m, wrench))
    y, z = w.factor.forward(rows)
    m.path_y[:], m.path_z[:] = y[m.world], z[m.world]
    m.response[:] -= np.einsum("ncri,ncrj->nij", m.path_y, m.path_z)
    contact_rows.point_masses(m)
    _add_floors(m, free)


def _needs_torque_response(m: Manifolds) -> Array:
    """Return a mask of the manifolds for which the solver needs the response to torques, (n,)."""
    patch = m.law[:, contact_laws.FRICTION_AT] == contact_laws.CONTENSOU
    return np.asarray((m.points > 1) | patch | contact_tire.tires(m) | (m.spinning > 0.0) | (m.rolling > 0.0))


def _bounded_response(w: StepBuffers, m: Manifolds) -> Array:
    """Return the velocity of contact points per unit normal impulse without joints, (n, 4).

    The mass of the whole mechanism limits this velocity from above.
    """
    real, free = w.real.type, m.mass[..., 0]
    system = w.broadcast(w.system_inverse_mass)[m.world[:, None], m.body].sum(axis=1)[:, None]
    return np.minimum(free, np.maximum(real(1.0 / POINT_FLOOR) * system, real(POINT_MIN / POINT_FLOOR) * free))


def _joint_velocity(w: StepBuffers, m: Manifolds, motion: Array) -> Array:
    """Return the velocities of the joint rows that twists (n, 2, 6) of the bodies of n manifolds cause."""
    moved = np.zeros_like(w.twist)
    world = np.broadcast_to(m.world[:, None], m.body.shape)
    moved[world[m.moves], m.body[m.moves]] = motion[m.moves]
    return w.row_velocity(moved)


def _add_floors(m: Manifolds, free: Array) -> None:
    real = m.mass.dtype.type
    first, cross, second = m.mass[..., 3], m.mass[..., 4], m.mass[..., 5]
    apart, both = first - second, first + second
    min_tangent = real(0.5) * (both - np.sqrt(apart * apart + real(4) * cross * cross))
    tire = contact_tire.tires(m)[:, None]
    stiffest = np.minimum(m.mass[..., 0], min_tangent)
    m.floor[..., 0] = np.maximum(real(POINT_FLOOR) * free - m.mass[..., 0], real(0))
    along = np.maximum(real(POINT_FLOOR) * free - stiffest, real(0.5 * TANGENT_FLOOR) * both)
    m.floor[..., 1] = np.where(tire, real(0), along)
    m.mass[..., 0] += m.floor[..., 0]
    m.mass[..., 3] += m.floor[..., 1]
    m.mass[..., 5] += m.floor[..., 1]


def sweep_contacts(w: StepBuffers, worlds: Array, max_sweeps: Array | int) -> None:
    """Sweep the contacts until ``worlds`` converge, together with joints that the direct solver does not solve.

    ``max_sweeps`` is the maximum number of sweeps: one number, or an array (num_worlds,). ``w.delta`` contains x of the
    forward solve, (num_worlds, constraints, block).
    """
    swept = bool(w.topology.swept.any())
    if w.touch is None and not swept:
        return
    live = worlds if swept else worlds & w.touch.touching
    w.twist = w.twist.copy()
    direction, tolerance = None if swept else SearchDirection(w, live), w.real.type(CONVERGED[w.real])
    if w.contacts is not None:
        w.contacts.sweep_count[live] = 0
    untried = live & (w.island_count > 0)
    if w.touch is not None:
        w.touch.all.solved[:] = False
    if untried.any():
        once = untried & contact_newton.at_once(w)
        live, untried = _solve_condensed(w, live, once), untried & ~once
        if direction is not None:
            direction = SearchDirection(w, live)
    for sweep in range(int(np.max(max_sweeps, initial=0))):
        if not live.any():
            break
        if sweep and direction is not None:
            direction.extend(w, live)
        change, load = _sweep_once(w, live, swept)
        if w.contacts is not None:
            w.contacts.sweep_change[live, sweep] = change[live]
            w.contacts.sweep_count[live] = sweep + 1
        live = (
            live
            & ~(change <= max_(tolerance * load, w.real.type(w.config.impulse_tolerance)))
            & (sweep + 1 < max_sweeps)
        )
        live, tried = _solve_condensed(w, live, live & untried), live & untried
        if direction is not None:
            direction.forget(live & tried & w.touch.any_solved(w.num_worlds))
        untried[:] = False


def _solve_condensed(w: StepBuffers, live: Array, worlds: Array) -> Array:
    """Solve the contacts of ``worlds`` by Newton's method. Return the mask ``live`` without solved worlds."""
    if not worlds.any():
        return live
    solved, change, load = contact_newton.solve(w, worlds)
    assert w.contacts is not None
    count = w.contacts.sweep_count[solved]
    w.contacts.sweep_change[solved, count] = change[solved]
    w.contacts.sweep_count[solved] = count + 1
    w.contact_residual_now = np.where(solved, relative_change(w, change, load), w.contact_residual_now)
    return live & ~solved


def _sweep_once(w: StepBuffers, live: Array, swept: bool) -> tuple[Array, Array]:
    joints = colored_solve.sweep_joints(w, live) if swept else np.zeros(w.num_worlds, w.real)
    if w.touch is None:
        return joints, np.zeros_like(joints)
    change, load = contact_solve.sweep_lists(w, live)
    for part in w.touch.articulated:
        _sweep_articulated(w, part, live, change, load)
    w.contact_residual_now = np.where(live, relative_change(w, change, load), w.contact_residual_now)
    return np.maximum(joints, change), load


def _sweep_articulated(w: StepBuffers, part: Manifolds, live: Array, change: Array, load: Array) -> None:
    mask = live[part.world] & ~part.solved
    if not mask.any():
        return
    m = part.part(mask)
    s = contact_solve.start_sweep(m, w.twist)
    s.twist += np.einsum("ncrj,ncr->nj", m.path_y, w.delta[m.world])
    contact_solve.sweep_points(m, s)
    contact_solve.move_sides(m, s.wrench, w.twist, shared=False)
    w.delta[m.world] -= np.einsum("ncrj,nj->ncr", m.path_z, s.wrench)
    part.put(mask, m, SOLVED)
    change[m.world] = np.maximum(change[m.world], s.max_change)
    load[m.world] = np.maximum(load[m.world], contact_solve.greatest_load(m))
