"""Newton's method of the direct solver for worlds with joints and few contact points (see contact_direct.py).

*Unknowns.* The unknowns are the impulses of all contact points, and the torque impulses of spinning and rolling
friction. The columns of F are the wrenches of the unit impulses. The velocities u along the impulses depend on the
impulses p:

    u(p) = u(p_0) + (R + c) (p - p_0),     R = F^T (C M^-1 C^T - Y^T Z) F

c contains the compliances. See contact_direct.py for C, Y and Z. u includes the biases, so u is zero at a sticking
contact point.

*Conditions.* The impulses are a solution if they equal their projections (Alart and Curnier 1991). k is the velocity
change per unit impulse, along the direction of this impulse.

    normal: p = max(0, p - u/k)          friction: p_t = projection of p_t - u_t/k on the disc |p_t| <= mu p_n

*Newton's method* solves the piecewise smooth equations p - projection = 0. For sliding friction, let x = p_t - u_t/k,
and let r = mu p_n be the radius of the disc. The rows of the Jacobian for friction are

    I - r/|x| (I - d d^T) (I - (R + c)/k) - d mu e_n^T,     d = x/|x|.

e_n selects the normal impulse. The solver halves each Newton step until the step decreases the distance between the
impulses and their projections. If Newton's method fails, the solver restores the previous impulses and runs sweeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpusim.contact.constants import (
    CONVERGED,
    NEWTON_DAMPING,
    NEWTON_GAIN,
    NEWTON_GROWTH,
    NEWTON_HALVINGS,
    NEWTON_MAX_DAMPING,
    NEWTON_PASSES,
    NEWTON_SETTLED,
    NEWTON_SLOW,
    SLIDING_SHARE,
)
from gpusim.description.contact_fields import POINTS
from gpusim.reference.contacts import contact_rows, contact_solve
from gpusim.reference.contacts.contact_islands import contact_numbers
from gpusim.reference.contacts.contact_laws import max_
from gpusim.reference.contacts.manifolds import Manifolds
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

NORMAL, FIRST, SECOND, SPIN, NONE = range(5)
"""Kinds of unknowns: normal impulse, first and second tangential component, spinning torque, none. A tangential
component is a friction impulse or a rolling torque."""
RELEASED, HELD, SLIDING = range(3)


def _members(w: StepBuffers) -> Iterator[tuple[Manifolds, Array]]:
    """Yield groups with at most one manifold per world. A group is a list of manifolds and indices in this list."""
    for part in w.touch.articulated:
        yield part, np.flatnonzero(part.island >= 0)
    for part in w.touch.lists:
        order = np.lexsort((part.pair, part.world))
        order = order[part.island[order] >= 0]
        sorted_world = part.world[order]
        number = np.arange(order.size) - np.searchsorted(sorted_world, sorted_world)
        for k in range(int(number.max(initial=-1)) + 1):
            yield part, order[number == k]


def at_once(w: StepBuffers) -> Array:
    """Return a mask (num_worlds,) of the worlds in which Newton's method runs before the first sweep."""
    m = w.touch.all
    new = w.state.arrays["contact_age"][m.world, m.pair] == 0
    limit = w.real.type(SLIDING_SHARE) * m.friction[:, None] * (m.impulse[..., 0] + m.pushed)
    slides = (limit > 0.0) & (np.vecdot(m.impulse[..., 1:], m.impulse[..., 1:]) >= limit * limit)
    moves = np.zeros(w.num_worlds, bool)
    moves[m.world[((new | slides) & m.exists).any(axis=1) & (m.island >= 0)]] = True
    return (w.island_count > 0) & (w.condensed_fits | moves)


@dataclass
class Space:
    """Unknowns of K islands, with N unknowns per island.

    If an island has fewer unknowns, its last entries have the kind NONE.
    """

    world: Array
    """(K,) worlds of the islands."""
    parts: list[tuple[Manifolds, Array, Array]]
    """Groups of manifolds. A group is (list of manifolds, indices in this list, island (0 to K - 1) of each
    manifold)."""
    wrench: Array
    """(K, N, 6) wrenches of unit impulses about the center of the manifold."""
    kind: Array
    """(K, N) kinds of the unknowns."""
    loads: Array
    """(K, N, 4) indices of the normal impulses that limit a friction impulse. Unused entries have ``weight`` 0."""
    weight: Array
    """(K, N, 4) friction limit per unit of each normal impulse."""
    base_limit: Array
    """(K, N) friction limit without normal impulse, N s."""
    scale: Array
    """(K, N) 1/k. k is the velocity change that a unit impulse causes along the direction of the impulse."""
    compliance: Array
    """(K, N) compliance, 1/kg."""
    impulse: Array
    """(K, N) impulses."""
    velocity: Array
    """(K, N) velocities, including bias and compliance."""
    response: Array
    """(K, N, N) velocities that unit impulses cause, including compliances."""

    @property
    def partner(self) -> Array:
        """Return the index of the second tangent for each first tangent, and vice versa, (K, N)."""
        return np.arange(self.kind.shape[1]) + (self.kind == FIRST) - (self.kind == SECOND)


def find_space(w: StepBuffers, worlds: Array) -> Space:
    """Return the unknowns with current values, for the worlds in the mask ``worlds``, (num_worlds,)."""
    everything, first = w.touch.all, np.cumsum(w.island_count * worlds) - w.island_count
    world = np.repeat(np.arange(w.num_worlds), w.island_count * worlds)
    listed = worlds[everything.world] & (everything.island >= 0)
    row, count = (first[everything.world] + everything.island)[listed], np.zeros(world.size, np.int64)
    np.add.at(count, row, contact_numbers(w, everything)[listed])
    shape = world.size, int(count.max())
    scale, base_limit, compliance, impulse, velocity = (np.zeros(shape, w.real) for _ in range(5))
    s = Space(
        world, [], np.zeros((*shape, 6), w.real), np.full(shape, NONE), np.zeros((*shape, POINTS), np.int64),
        np.zeros((*shape, POINTS), w.real), base_limit, scale + w.real.type(1), compliance, impulse, velocity,
        np.zeros((*shape, shape[1]), w.real),
    )  # fmt: skip
    at = np.zeros(world.size, np.int64)
    for part, members in _members(w):
        rows = members[worlds[part.world[members]]]
        if rows.size:
            m, slot = part.part(rows), first[part.world[rows]] + part.island[rows]
            s.parts.append((part, rows, slot))
            twist = contact_rows.relative_twist(m, w.twist) + np.einsum("ncrj,ncr->nj", m.path_y, w.delta[m.world])
            _enter(s, m, slot, at[slot], twist)
            at[slot] += contact_numbers(w, m)
    _find_response(w, s)
    _scale_torques(s)
    return s


def _numbers(m: Manifolds, first: Array) -> list[tuple[Array, Array, int, int]]:
    """Return groups of unknowns. A group has manifolds, unknown indices, frame axis and point (-1 for torques)."""
    out = []
    for k in range(POINTS):
        rows = np.flatnonzero(m.points > k)
        out += [(rows, first[rows] + 3 * k + d, d, k) for d in range(3)]
    at = first + 3 * m.points
    rows = np.flatnonzero(m.spinning > 0.0)
    out.append((rows, at[rows], 0, -1))
    at = at + (m.spinning > 0.0)
    rows = np.flatnonzero(m.rolling > 0.0)
    out += [(rows, at[rows] + d - 1, d, -1) for d in (1, 2)]
    return [numbers for numbers in out if numbers[0].size]


def _enter(s: Space, m: Manifolds, slot: Array, first: Array, twist: Array) -> None:
    for rows, number, d, k in _numbers(m, first):
        at = slot[rows], number
        if k >= 0:
            wrench, impulse, bias = m.lever[rows, k, :, d], m.impulse[rows, k, d], m.bias[rows, k, d]
            s.kind[at] = d
            s.compliance[at] = m.floor[rows, k, min(d, 1)] + (m.gamma[rows, k] if d == 0 else 0.0)
            mass = m.mass[rows, k]
            s.scale[at] = 1.0 / (mass[:, 0] + m.gamma[rows, k] if d == 0 else max_(mass[:, 3], mass[:, 5]))
            if d:
                one = np.ones(rows.size, mass.dtype)
                load = contact_rows.rubbing_load(mass[:, 0], m.gamma[rows, k], one, (m.soft | m.articulated)[rows])
                s.loads[(*at, 0)], s.weight[(*at, 0)] = number - d, m.friction[rows] * load
                s.base_limit[at] = m.friction[rows] * m.pushed[rows, k]
        else:
            axis = m.frame[rows, d]
            wrench, impulse, bias = np.concatenate([0.0 * axis, axis], axis=1), m.torque[rows, d], 0.0
            s.kind[at] = SPIN if d == 0 else d
            arm = m.spinning[rows] if d == 0 else m.rolling[rows]
            for j in range(POINTS):
                s.loads[(*at, j)] = np.where(j < m.points[rows], first[rows] + 3 * j, 0)
                s.weight[(*at, j)] = np.where(j < m.points[rows], arm, 0.0)
        s.wrench[at], s.impulse[at] = wrench, impulse
        s.velocity[at] = np.vecdot(wrench, twist[rows]) + bias + s.compliance[at] * impulse


def _find_response(w: StepBuffers, s: Space) -> None:
    """Compute the response matrices. Entry (i, j) is the velocity along impulse i per unit of impulse j."""
    count = s.kind.shape[1]
    owner = np.full(s.kind.shape, -1)
    for n, (part, rows, slot) in enumerate(s.parts):
        m = part.part(rows)
        end = (owner >= 0).sum(axis=1)[slot]
        for j in range(int(contact_numbers(w, m).max())):
            has = j < contact_numbers(w, m)
            owner[slot[has], end[has] + j] = n
    for j in range(count):
        moved, delta = np.zeros_like(w.twist), np.zeros_like(w.delta)
        for n, (part, rows, slot) in enumerate(s.parts):
            pick = owner[slot, j] == n
            if pick.any():
                m, wrench = part.part(rows[pick]), s.wrench[slot[pick], j]
                contact_solve.move_sides(m, wrench, moved, shared=False)
                delta[m.world] += np.einsum("ncrj,nj->ncr", m.path_z, wrench)
        for n, (part, rows, slot) in enumerate(s.parts):
            m = part.part(rows)
            twist = contact_rows.relative_twist(m, moved) - np.einsum("ncrj,ncr->nj", m.path_y, delta[m.world])
            for i in range(count):
                pick = owner[slot, i] == n
                if pick.any():
                    s.response[slot[pick], i, j] = np.vecdot(s.wrench[slot[pick], i], twist[pick])
    diagonal = np.arange(count)
    s.response[:, diagonal, diagonal] += s.compliance


def _scale_torques(s: Space) -> None:
    """Set ``scale`` of each torque to 1 / response. Both tangents use the larger of their two responses."""
    torque = (s.wrench[..., :3] == 0.0).all(axis=2) & (s.kind != NONE)
    diagonal = np.arange(s.kind.shape[1])
    diagonal_response = s.response[:, diagonal, diagonal]
    greatest = np.maximum(diagonal_response, np.take_along_axis(diagonal_response, s.partner, axis=1))
    s.scale = np.where(torque, 1.0 / np.where(torque, greatest, 1.0), s.scale).astype(s.scale.dtype)


@dataclass
class Projection:
    """Differences between the impulses and their projections (K, N), and data for their derivatives."""

    missed: Array
    state: Array
    along: Array
    """Unit vector of sliding friction."""
    across: Array
    """Friction limit divided by the norm of the impulse before the projection, r/|x|."""

    @property
    def square(self) -> Array:
        """Return the sum of the squared differences in each island, (K,)."""
        return np.add.accumulate(self.missed * self.missed, axis=1)[:, -1]


def project(s: Space, impulse: Array, velocity: Array) -> Projection:
    """Compute the differences between impulses and their projections. ``velocity`` is along the impulses."""
    free = impulse - velocity * s.scale
    normal = s.kind == NORMAL
    pressed = max_(impulse, impulse.dtype.type(0))
    radius = s.base_limit.copy()
    for j in range(POINTS):
        radius = radius + s.weight[..., j] * np.take_along_axis(pressed, s.loads[..., j], axis=1)
    single = s.partner == np.arange(s.kind.shape[1])
    other = np.where(single, 0.0, np.take_along_axis(free, s.partner, axis=1))
    square = free * free + other * other
    rubs = ~normal & (s.kind != NONE) & (radius > 0.0)
    slides = rubs & (square > radius * radius)
    size = np.sqrt(np.where(slides, square, 1.0))
    along = np.where(slides, free / size, 0.0)
    held = (normal & (free > 0.0)) | (rubs & ~slides)
    target = np.where(held, free, np.where(slides, radius * along, 0.0))
    state = np.where(slides, SLIDING, np.where(held, HELD, RELEASED))
    return Projection(impulse - target, state, along, np.where(slides, radius / size, 0.0))


def _equations(s: Space, impulse: Array, p: Projection, damping: Array) -> Array:
    """Return the linear equations of a Newton step, (K, N, N + 1).

    The last column is the difference from the projections. The other columns are the damped Jacobian.
    """
    count = s.kind.shape[1]
    unit = np.eye(count, dtype=impulse.dtype)
    change = unit - s.scale[..., None] * s.response
    other_change = np.take_along_axis(change, s.partner[..., None], axis=1)
    other_along = np.where(s.partner == np.arange(count), 0.0, np.take_along_axis(p.along, s.partner, axis=1))
    factor = p.across * (1.0 - p.along * p.along)
    sliding = unit - factor[..., None] * change + (p.across * p.along * other_along)[..., None] * other_change
    for j in range(POINTS):
        pressed = np.take_along_axis(impulse, s.loads[..., j], axis=1) > 0.0
        load_factor = np.where(pressed, p.along * s.weight[..., j], 0.0)
        sliding -= load_factor[..., None] * unit[s.loads[..., j]]
    state = p.state[..., None]
    rows = np.where(state == SLIDING, sliding, np.where(state == HELD, unit - change, unit))
    rows = rows + np.where(state == RELEASED, 0.0, damping[:, None, None]) * unit
    return np.concatenate([rows, p.missed[..., None]], axis=2).astype(impulse.dtype)


def _eliminate(equations: Array) -> Array:
    """Solve the linear equations by Gaussian elimination, and return the Newton steps (K, N)."""
    count = equations.shape[1]
    step = np.zeros(equations.shape[:2], equations.dtype)
    with np.errstate(all="ignore"):
        for k in range(count):
            factor = equations[:, k + 1 :, k] * (1.0 / equations[:, k, k])[:, None]
            equations[:, k + 1 :, k + 1 :] -= factor[..., None] * equations[:, k, None, k + 1 :]
        for k in range(count)[::-1]:
            step[:, k] = equations[:, k, -1] * (1.0 / equations[:, k, k])
            equations[:, :k, -1] -= equations[:, :k, k] * step[:, k, None]
    return step


def _move(s: Space, step: Array) -> Array:
    """Return the velocity change (K, N) that the impulse change ``step`` causes."""
    moved = np.zeros_like(step)
    for k in range(step.shape[1]):
        moved += s.response[:, :, k] * step[:, k, None]
    return moved


def iterate(s: Space, tolerance: float) -> tuple[Array, Array]:
    """Run Newton's method, and update the impulses and velocities of ``s``.

    Args:
        s: unknowns.
        tolerance: the iteration ends if the distance from the projections is below this value, N s.

    Returns:
        A mask of the solved islands, and the final distances from the projections (N s), each (K,).
    """
    real = s.impulse.dtype
    solved, active = np.zeros(s.world.size, bool), np.ones(s.world.size, bool)
    damping = np.full(s.world.size, NEWTON_DAMPING[real], real)
    p, before = project(s, s.impulse, s.velocity), s.impulse
    square = p.square
    last = square / real.type(NEWTON_SLOW)
    bound = np.max(NEWTON_GAIN * np.abs(p.missed) / s.scale, axis=1) + np.max(np.abs(before) / s.scale, axis=1)
    for remaining in range(NEWTON_PASSES + 1)[::-1]:
        load = np.max(np.where(s.kind == NORMAL, s.impulse, 0.0), axis=1, initial=0.0)
        goal, enough = np.maximum(NEWTON_SETTLED[real] * load, tolerance), CONVERGED[real] * load
        stalls = (damping > real.type(NEWTON_MAX_DAMPING)) | (remaining == 0)
        slow = stalls | (square > real.type(NEWTON_SLOW) * last)
        solved |= active & ((square <= goal * goal) | (slow & (square <= enough * enough)))
        active &= ~solved & ~stalls
        if not active.any():
            break
        step = _eliminate(_equations(s, s.impulse, p, damping))
        better = _search(s, active, step, _move(s, step), square)
        damping = np.where(better, damping, damping * real.type(NEWTON_GROWTH))
        p, last = project(s, s.impulse, s.velocity), square
        square = np.where(active, p.square, square)
    solved &= ~(np.max(np.abs(s.impulse - before) / s.scale, axis=1) > bound)
    s.impulse = np.where(s.kind == NORMAL, max_(s.impulse, real.type(0)), s.impulse)
    return solved, np.sqrt(square)


def _search(s: Space, active: Array, step: Array, moved: Array, square: Array) -> Array:
    """Halve the Newton step until the error decreases, and apply it. Return a mask of the worlds with success."""
    better, fraction = np.zeros_like(active), s.impulse.dtype.type(1)
    for _ in range(NEWTON_HALVINGS):
        trial, velocity = s.impulse - step * fraction, s.velocity - moved * fraction
        closer = active & ~better & (project(s, trial, velocity).square < square)
        s.impulse = np.where(closer[:, None], trial, s.impulse)
        s.velocity = np.where(closer[:, None], velocity, s.velocity)
        better |= closer
        if (better | ~active).all():
            break
        fraction = fraction * s.impulse.dtype.type(0.5)
    return better


def solve(w: StepBuffers, worlds: Array) -> tuple[Array, Array, Array]:
    """Solve the contacts of the worlds in the mask ``worlds``, and update the velocities of bodies and joints.

    Returns:
        A mask of the worlds without other contacts, the greatest distances from the projections (N s), and the greatest
        normal impulses (N s), each (num_worlds,). In unsolved islands, the impulses do not change.
    """
    change, load = np.zeros(w.num_worlds, w.real), np.zeros(w.num_worlds, w.real)
    if not worlds.any():
        return worlds, change, load
    s, solved = find_space(w, worlds), worlds.copy()
    w.condensed_fits |= worlds
    before = s.impulse
    done, distance = iterate(s, w.config.impulse_tolerance)
    np.maximum.at(change, s.world, distance)
    np.maximum.at(load, s.world, np.max(np.where(s.kind == NORMAL, s.impulse, 0.0), axis=1, initial=0.0))
    solved[s.world[~done]] = False
    solved[w.touch.all.world[w.touch.all.island < 0]] = False
    at = np.zeros(s.world.size, np.int64)
    for part, rows, slot in s.parts:
        m = part.part(rows)
        wrench = np.zeros((rows.size, 6), w.real)
        for some, number, d, k in _numbers(m, at[slot]):
            now = s.impulse[slot[some], number]
            wrench[some] += s.wrench[slot[some], number] * (now - before[slot[some], number])[:, None]
            keeps = done[slot[some]]
            if k >= 0:
                part.impulse[rows[some][keeps], k, d] = now[keeps]
            else:
                part.torque[rows[some][keeps], d] = now[keeps]
        at[slot] += contact_numbers(w, m)
        wrench = np.where(done[slot][:, None], wrench, w.real.type(0))
        part.solved[rows] = done[slot]
        part.delta[rows[done[slot]]] = 0.0  # sweeps of other islands have no search direction here
        contact_solve.move_sides(m, wrench, w.twist, shared=False)
        w.delta[m.world] -= np.einsum("ncrj,nj->ncr", m.path_z, wrench)
    return solved, change, load
