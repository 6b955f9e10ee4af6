"""Projection of velocities onto the constraints.

For the current velocities v, the projection returns the velocities v' that minimize ``(v' - v)^T M (v' - v)`` subject
to the constraints C v' = d. In other words, the change v' - v has the minimum kinetic energy. The constraints are
locked joint directions, couplings, and velocities that the user wants to keep. M contains the masses and inertias of
the bodies, and the inertias of rotors. Closed loops may have redundant constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.description.joint_kinds import DISTANCE, SUM, TRANSLATION
from gpusim.model.coordinates import KINDS, axis_inertia
from gpusim.model.state import State
from gpusim.reference.joints import prepare
from gpusim.reference.signals.state_reader import StateReader
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import cross, matvec, norm
from gpusim.solver.assembly import AssemblyReport, by_label
from gpusim.typing import Array

PASSES = 3
"""Number of least-squares solves. Each solve corrects the residual of the previous solve."""
MIN_SINGULAR_VALUE = 1e-11
"""Singular values up to this fraction of the maximum singular value mark redundant constraints."""


def project(w: StepBuffers, state: State, now: StateReader, held: Sequence[Held], tolerance: float) -> AssemblyReport:
    """Set the velocities of all bodies to the projected velocities. ``w`` contains the work arrays of ``state``."""
    velocity, old, arrays, t = now.velocity(), now.twist(), state.arrays, w.topology
    arrays["linear_velocity"][:], arrays["angular_momentum"][:] = velocity[..., :3], velocity[..., 3:]
    arrays["step_before"][:] = 0.0
    prepare.prepare(w, w.config.dt)
    jacobian, rigid = _jacobian(w), np.concatenate([t.rigid_row, t.coupling.rigid_row])
    rows = np.concatenate([jacobian[:, rigid], _held_rows(now, held)], axis=1)
    goal = np.einsum("wrbk,wbk->wr", rows, old)
    goal[:, : rigid.size] = 0.0
    metric = _metric(w, now, jacobian[:, t.axis_row])
    new = np.stack([_solved(*world) for world in zip(metric, rows, goal, old, _moving(w, rows), strict=True)])
    rotation = now.rotation()
    change = matvec(rotation.swapaxes(-1, -2), new[..., 3:] - old[..., 3:])
    arrays["linear_velocity"][:] = new[..., :3]
    arrays["angular_momentum"][:] += matvec(rotation, matvec(now.parameters["inertia"], change))

    def report(twist: Array) -> dict[str, Array]:
        errors = np.zeros((w.num_worlds, t.num_constraints * t.block))
        errors[:, rigid] = np.einsum("wrbk,wbk->wr", rows[:, : rigid.size], twist)
        return by_label(t.constraint_labels, errors.reshape(w.num_worlds, t.num_constraints, t.block))

    return AssemblyReport(report(old), report(new), PASSES, tolerance, w.num_worlds)


def _jacobian(w: StepBuffers) -> Array:
    """Return the Jacobian of all constraint rows for all bodies, (num_worlds, rows, bodies + 1, 6)."""
    t, count = w.topology, w.num_worlds
    full = np.zeros((count, t.num_constraints, t.block, t.num_bodies + 1, 6))
    sides = w.jacobian.reshape(count, t.num_constraints, t.slots, t.block, 6)
    for slot in range(t.slots):
        for c, body in enumerate(t.constraint_bodies[:, slot].tolist()):
            full[:, c, :, body] += sides[:, c, slot]
    return full.reshape(count, t.num_constraints * t.block, t.num_bodies + 1, 6)


def _moving(w: StepBuffers, rows: Array) -> Array:
    """Return a mask of the bodies that the constraint rows can move, (num_worlds, bodies + 1)."""
    return np.asarray(rows.any(axis=(1, 3)) & w.topology.dynamic)


@dataclass(frozen=True)
class Held:
    """Velocities that the projection must keep: rates of joint coordinates, or a part of a body's twist.

    If ``body`` is negative, the projection keeps the rates of the joint coordinates ``numbers``. Otherwise, it keeps
    three components of the twist of ``body``: 0 to 2 (linear, ``first`` = 0) or 3 to 5 (angular, ``first`` = 3).
    """

    numbers: tuple[int, ...]
    body: int = -1
    first: int = 0


def _held_rows(now: StateReader, held: Sequence[Held]) -> Array:
    """Return the Jacobian of the n velocities that the projection must keep, (num_worlds, n, bodies + 1, 6)."""
    count = now.state["position"].shape[1]
    rows = [np.zeros((now.num_worlds, 0, count, 6))]
    for one in held:
        unit = np.zeros((now.num_worlds, 3, count, 6))
        unit[:, np.arange(3), one.body, np.arange(3) + one.first] = 1.0
        rows.append(unit if one.body >= 0 else _rate_rows(now, np.array(one.numbers, np.int64), count))
    return np.concatenate(rows, axis=1)


def _rate_rows(now: StateReader, numbers: Array, count: int) -> Array:
    """Return the Jacobian of coordinate rates with respect to the twists of all bodies."""
    c, rows = now.coordinates.columns, np.zeros((now.num_worlds, numbers.size, count, 6))
    kind = c["kind"][numbers]
    arm_a, arm_b, apart = now.points(numbers)
    length = norm(apart)[..., None]
    line = (kind == KINDS[DISTANCE])[:, None]
    along = np.where(line, apart / np.where(length > 0.0, length, 1.0), now.axis(numbers))
    about, slides = now.rotation_direction(numbers), line | (kind == KINDS[TRANSLATION])[:, None]
    of_a = [np.where(slides, -along, 0.0), np.where(slides, -cross(arm_a + apart, along), -about)]
    of_b = [np.where(slides, along, 0.0), np.where(slides, cross(arm_b, along), about)]
    for k, (a, b) in enumerate(zip(c["body_a"][numbers], c["body_b"][numbers], strict=True)):
        if kind[k] == KINDS[SUM]:
            sums, part = now.coordinates.sums, c["part"][numbers[k]]
            terms = slice(sums["sum_start"][part], sums["sum_start"][part + 1])
            terms_rows = _rate_rows(now, sums["sum_coordinate"][terms], count)
            rows[:, k] = np.einsum("n,wnbk->wbk", sums["sum_factor"][terms], terms_rows)
            continue
        if kind[k] == KINDS[DISTANCE] and c["part"][numbers[k]] >= 0:
            for body, linear, angular in now.path_rows(c["part"][numbers[k : k + 1]]):
                rows[:, k, body[0]] += np.concatenate([linear[:, 0], angular[:, 0]], axis=-1)
            continue
        rows[:, k, a] += np.concatenate([x[:, k] for x in of_a], axis=-1)
        rows[:, k, b] += np.concatenate([x[:, k] for x in of_b], axis=-1)
    return rows


def _metric(w: StepBuffers, now: StateReader, axes: Array) -> Array:
    """Return the mass matrix M of all bodies and rotors, (num_worlds, 6 * bodies, 6 * bodies)."""
    count, bodies = w.num_worlds, axes.shape[2]
    rotation, blocks = now.rotation(), np.zeros((count, bodies, 6, bodies, 6))
    inertia = np.matmul(np.matmul(rotation, now.parameters["inertia"]), rotation.swapaxes(-1, -2))
    for b in range(bodies):
        blocks[:, b, :3, b, :3] = now.parameters["mass"][:, b, None, None] * np.eye(3)
        blocks[:, b, 3:, b, 3:] = inertia[:, b]
    flat = axes.reshape(count, -1, 6 * bodies)
    rotor_inertia = axis_inertia(w.model, w.parameters["armature"], [g.type.inertia(g) for g in now.groups])
    metric = blocks.reshape(count, 6 * bodies, 6 * bodies)
    return np.asarray(metric + np.matmul(flat.swapaxes(-1, -2) * rotor_inertia[:, None, :], flat))


def _solved(metric: Array, rows: Array, goal: Array, old: Array, moves: Array) -> Array:
    """Return the projected velocities of one world, (bodies + 1, 6)."""
    flat, new, free = rows.reshape(len(rows), -1), old.reshape(-1).copy(), np.repeat(moves, 6)
    if not len(rows) or not free.any():
        return old
    factor = np.linalg.cholesky(metric[np.ix_(free, free)])
    white = np.linalg.solve(factor, flat[:, free].T).T
    for _ in range(PASSES):
        change = np.linalg.lstsq(white, goal - flat @ new, rcond=MIN_SINGULAR_VALUE)[0]
        new[free] += np.linalg.solve(factor.T, change)
    return new.reshape(old.shape)
