"""Stage solve with the colored solver: warm-started sequential impulses by color, and nonlinear position sweeps.

Two constraints of the same color never share a dynamic body, so the solver solves them in parallel. It solves one color
after another (Gauss-Seidel). For each constraint, it first solves the rigid rows as one block. Then it solves each axis
row (the row of one joint coordinate) with its impulse-velocity law.

The overflow contains the constraints without a color. Each sweep starts with the overflow. It solves all overflow
constraints from the same velocities (Jacobi) with mass splitting (Tonge, Benevolenski and Voroshilov 2012). If a body
has n overflow constraints, each constraint acts on a part with 1/n of the body's mass. The motion of the body is the
mean of the motions of its parts. Mass splitting conserves momentum and prevents overshoot. After the joints, each sweep
solves the contacts (contact_solve.py).
"""

from __future__ import annotations

import numpy as np

from gpusim.arrays import add_columns
from gpusim.reference import accuracy
from gpusim.reference.contacts import contact_push, contact_solve
from gpusim.reference.joints import actuate
from gpusim.reference.joints.factor import REGULARIZATION, inverse
from gpusim.reference.joints.laws import solve_row
from gpusim.reference.joints.prediction import predict_bias
from gpusim.reference.solve import soft_rows
from gpusim.reference.solve.color_batch import AxisStep, ColorBatch, CoupledRows
from gpusim.reference.solve.drift import move
from gpusim.reference.solve.positions import SPLIT_FRACTION, row_errors
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matvec
from gpusim.typing import Array

# Number of sweeps at the start of a solve that linearize nonlinear laws again.
REFITS = 2
POSITION_SWEEPS = 2
MIN_CORRECTION, FULL_CORRECTION_BELOW = 0.2, 1e-3


def solve(w: StepBuffers) -> None:
    """Compute the impulses ``solved``, the velocities ``twist`` and the axis rates ``rate_next``."""
    predict_bias(w)
    w.active = np.ones((w.num_worlds, 1), bool)
    w.response = np.zeros_like(w.rate)
    w.mode = np.zeros(w.state.arrays["axis_mode"].shape, np.int32)
    warm_start(w)
    contact_push.start_contacts(w, follow)
    done = np.zeros(w.num_worlds, bool)
    w.sweeps = np.zeros(w.num_worlds, np.int64)
    w.last_change, w.contact_residual_now = np.zeros((2, w.num_worlds), w.real)
    _run_sweeps(w, done)
    _find_rate_next(w)
    w.unconverged = ~done if w.config.impulse_tolerance > 0.0 else np.zeros(w.num_worlds, bool)
    w.residual_now = residual(w)


def warm_start(w: StepBuffers) -> None:
    """Build the batches of constraints, and apply the initial impulses.

    The initial impulse is the impulse of the last substep, scaled by the ratio of the new and the last kick time.
    """
    w.batches = _batches(w)
    for batch in w.batches:
        for step in batch.axes:
            w.response[:, step.axis] = step.response
            # Keep the modes of joined rows, because the linear law would release a row that is at a bound.
            joined = batch.gamma[:, step.k, step.local_row] > 0.0
            w.mode[:, step.axis] = np.where(joined, w.state.arrays["axis_mode"][:, step.axis], 0)
    state = w.state.arrays
    before = state["kick_before"][:, None]
    ratio = np.where(before > 0.0, w.kick_time / np.where(before > 0.0, before, 1.0), 0.0)
    w.solved = np.where(_swept(w)[:, None], state["impulse"] * ratio[:, :, None], 0.0).astype(w.real)
    w.twist = w.twist + w.apply_impulse(w.solved)


def resume(w: StepBuffers, worlds: Array) -> None:
    """Continue the solve in worlds with new bounds or contacts. ``worlds`` is a mask, (num_worlds,)."""
    w.active = worlds[:, None]
    _run_sweeps(w, ~worlds)


def _run_sweeps(w: StepBuffers, done: Array) -> None:
    """Sweep until all worlds converge, but at most ``config.iterations`` times."""
    for sweep in range(w.config.iterations):
        if 0 < sweep <= REFITS:
            _find_rate_next(w)
            actuate.relinearize(w, w.rate_next)
            for batch in w.batches:
                batch.coupled.refit(w)
        change = _sweep(w, w.batches, w.mode, done)
        w.sweeps += ~done
        w.last_change = np.where(done, w.last_change, change)
        if w.record_changes:
            w.residual_history.append(_greatest(w, np.where(_rigid_mask(w), _row_errors(w), 0.0)))
        done |= change <= w.config.impulse_tolerance
        w.active = ~done[:, None]
        if done.all():
            break


def _sweep(w: StepBuffers, batches: list[ColorBatch], mode: Array, done: Array) -> Array:
    before = w.solved, w.twist
    change = _sweep_batches(w, batches, mode)
    if w.touch is not None:
        moved, load = contact_solve.sweep_lists(w, ~done)
        w.contact_residual_now = np.where(done, w.contact_residual_now, accuracy.relative_change(w, moved, load))
        np.maximum(change, moved, out=change)
    # Do not change converged worlds while other worlds continue.
    w.solved = np.where(done[:, None, None], before[0], w.solved)
    w.twist = np.where(done[:, None, None], before[1], w.twist)
    return change


def _sweep_batches(w: StepBuffers, batches: list[ColorBatch], mode: Array) -> Array:
    w.solved, w.twist = w.solved.copy(), w.twist.copy()
    change = np.zeros(w.num_worlds, w.real)
    for batch in batches:
        np.maximum(change, _sweep_batch(w, batch, mode), out=change)
    return change


def sweep_joints(w: StepBuffers, live: Array) -> Array:
    """Sweep once over the joints, in the worlds of the mask ``live``."""
    before, w.active = (w.solved, w.twist), live[:, None]
    change = _sweep_batches(w, w.batches, w.mode)
    pick = live[:, None, None]
    w.solved, w.twist = np.where(pick, w.solved, before[0]), np.where(pick, w.twist, before[1])
    return np.where(live, change, w.real.type(0))


def residual(w: StepBuffers) -> Array:
    """Return the maximum row residual (m/s or rad/s) in each world, over all rows that sweeps solve.

    The residual of a soft row is the velocity change that would satisfy its law.
    """
    change, error = np.zeros_like(w.solved), _row_errors(w)
    for batch in w.batches:
        batch.coupled.write_residuals(w, batch.constraints, error, change)
        for step in batch.axes:
            row = batch.constraints[step.k], step.local_row
            change[:, row[0], row[1]] = error[:, row[0], row[1]] / step.response
    needed, load = (_greatest(w, x) for x in (change, w.solved))
    limits = w.accuracy_limits
    w.unconverged |= (needed > limits["min_contact_change"]) & (needed > limits["contact_residual_limit"] * load)
    return _greatest(w, error)


def _greatest(w: StepBuffers, values: Array) -> Array:
    return np.asarray(np.max(np.abs(np.where(_swept(w)[:, None], values, 0.0)), axis=(1, 2), initial=0.0))


def _row_errors(w: StepBuffers) -> Array:
    """Return the residuals of all rigid rows and axis rows, (num_worlds, constraints, block)."""
    speed = w.row_velocity(w.twist) + w.bias.reshape(w.solved.shape)
    error = np.where(_rigid_mask(w), speed, w.real.type(0))
    rows = w.topology.axis_row
    axis_speed, impulse = speed.reshape(w.num_worlds, -1)[:, rows], w.solved.reshape(w.num_worlds, -1)[:, rows]
    error.reshape(w.num_worlds, -1)[:, rows] = (
        solve_row(w.law, axis_speed - w.response * impulse, w.response)[0] - axis_speed
    )
    return error


def _swept(w: StepBuffers) -> Array:
    """Return a mask of the constraints that sweeps solve, (constraints,)."""
    return w.topology.swept if w.config.direct else np.ones(w.topology.num_constraints, bool)


def _rigid_mask(w: StepBuffers) -> Array:
    mask = w.topology.row_used.copy()
    mask.reshape(-1)[w.topology.axis_row] = False
    mask[w.topology.coupled_constraint] = False
    return mask


def _batches(w: StepBuffers) -> list[ColorBatch]:
    """Return the batches of constraints: the overflow (if any), then one batch for each color."""
    t = w.topology
    sets = t.coloring_for(w.config.max_colors)
    rigid = _rigid_mask(w)
    batches = [_batch(w, members, rigid[members], None) for members in sets.colors]
    if sets.overflow.size:
        load = sets.overflow_load[t.constraint_bodies[sets.overflow]]
        batches.insert(0, _batch(w, sets.overflow, rigid[sets.overflow], load))
    return batches


def _batch(w: StepBuffers, members: Array, rigid: Array, load: Array | None) -> ColorBatch:
    t = w.topology
    shape = (w.num_worlds, t.num_constraints, t.slots, t.block, 6)
    mass_jacobian = w.mass_jacobian.reshape(shape)[:, members]
    if load is not None:
        mass_jacobian = mass_jacobian * load.astype(w.real)[:, :, None, None]
    wide = _wide(w.jacobian.reshape(shape)[:, members]), _wide(mass_jacobian)
    product = np.matmul(wide[0], wide[1].swapaxes(-1, -2))
    both = rigid[:, :, None] & rigid[:, None, :]
    block = np.where(both, product, 0.0).astype(w.real)
    index = np.arange(t.block)
    pivots = block[..., index, index] * (1.0 + REGULARIZATION[w.real])
    block[..., index, index] = np.where(pivots > 0.0, pivots, 1.0)
    batch = ColorBatch(
        constraints=members,
        bodies=t.constraint_bodies[members],
        jacobian=wide[0],
        mass_jacobian=wide[1],
        inverse=inverse(block),
        rigid=rigid,
        load=load,
        axes=[],
        coupled=_coupled_rows(w, members, product),
        gamma=np.zeros(0),
    )
    batch.axes = _axis_steps(w, batch, product)
    soft_rows.join_soft_rows(w, batch, block, product)
    return batch


def _coupled_rows(w: StepBuffers, members: Array, product: Array) -> CoupledRows:
    t = w.topology
    position = {int(c): k for k, c in enumerate(members)}
    pairs = [(position[c], n) for n, c in enumerate(t.coupled_constraint.tolist()) if c in position]
    k, number = np.array(pairs, np.int64).reshape(-1, 2).T
    rows = CoupledRows(k, number, t.row_used[members[k]], product[:, k], np.zeros(0))
    rows.refit(w)
    return rows


def _wide(blocks: Array) -> Array:
    worlds, n, slots, block, _ = blocks.shape
    return blocks.swapaxes(2, 3).reshape(worlds, n, block, slots * 6)


def _axis_steps(w: StepBuffers, batch: ColorBatch, product: Array) -> list[AxisStep]:
    """Return the axis rows. Entry k of the result contains the k-th axis row of every constraint."""
    owner, local_row = w.layout.axis_constraint, w.layout.axis_slot
    position = np.full(w.topology.num_constraints, -1)
    position[batch.constraints] = np.arange(batch.constraints.size)
    axes = np.flatnonzero(position[owner] >= 0)
    axes = axes[np.argsort(position[owner[axes]], kind="stable")]
    k = position[owner[axes]]
    number = np.arange(axes.size) - np.searchsorted(k, k)
    steps = [axes[number == n] for n in range(int(number.max(initial=-1)) + 1)]
    return [_axis_step(w, batch, product, position[owner[axis]], local_row[axis], axis) for axis in steps]


def _axis_step(w: StepBuffers, batch: ColorBatch, product: Array, k: Array, local_row: Array, axis: Array) -> AxisStep:
    """Return axis rows after elimination of the rigid rows of their constraints (Schur complement)."""
    alone = product[:, k, local_row, local_row]
    coupled = np.where(batch.rigid[k], product[:, k, local_row], 0.0)
    impulse = -matvec(batch.inverse[:, k], coupled)
    response = alone + np.vecdot(impulse, coupled)
    impulse[:, np.arange(k.size), local_row] = 1.0
    motion = matvec(batch.mass_jacobian[:, k].swapaxes(-1, -2), impulse)
    return AxisStep(k, local_row, axis, impulse.astype(w.real), motion, soft_rows.min_response(w, response, alone))


def _sweep_batch(w: StepBuffers, batch: ColorBatch, mode: Array) -> Array:
    """Solve all constraints of a batch from the same velocities."""
    velocity = w.twist[:, batch.bodies].reshape(w.num_worlds, batch.constraints.size, -1)
    bias = w.bias.reshape(w.solved.shape)[:, batch.constraints]
    speed = matvec(batch.jacobian, velocity) + bias
    impulse = w.solved[:, batch.constraints]
    error = np.where(batch.rigid, -speed, soft_rows.linear_error(w, batch, speed, impulse, mode))
    change = matvec(batch.inverse, error)
    coupled = batch.coupled
    change[:, coupled.k] = matvec(coupled.inverse, coupled.error(w, speed, impulse))
    impulse = impulse + change
    velocity = velocity + matvec(batch.mass_jacobian.swapaxes(-1, -2), change)
    max_change = np.max(np.abs(change), axis=(1, 2), initial=0.0)
    for step in batch.axes:
        k, local_row = step.k, step.local_row
        row = batch.jacobian[:, k, local_row]
        speed = np.vecdot(row, velocity[:, k]) + bias[:, k, local_row]
        free = speed - step.response * impulse[:, k, local_row]
        solved, modes = solve_row(w.law, free, step.response, step.axis)
        difference = (solved - speed) / step.response
        impulse[:, k] += difference[..., None] * step.impulse
        change[:, k] += difference[..., None] * step.impulse
        velocity[:, k] += difference[..., None] * step.motion
        mode[:, step.axis] = np.where(w.active, modes, mode[:, step.axis])
        max_change = np.maximum(max_change, np.max(np.abs(difference), axis=1, initial=0.0))
    w.solved[:, batch.constraints] = impulse
    if batch.load is None:
        w.twist[:, batch.bodies.ravel()] = velocity.reshape(w.num_worlds, -1, 6)
    else:
        w.twist += _body_changes(w, batch, change)
    return np.asarray(max_change)


def _body_changes(w: StepBuffers, batch: ColorBatch, impulse: Array) -> Array:
    """Return the twist changes of all bodies that the impulses of a batch cause, (worlds, bodies, 6)."""
    moved = matvec(batch.mass_jacobian.swapaxes(-1, -2), impulse).reshape(w.num_worlds, *batch.bodies.shape, 6)
    if batch.load is not None:
        moved = moved / batch.load.astype(w.real)[:, :, None]
    moved = moved.reshape(w.num_worlds, -1, 6)
    total = np.zeros_like(w.twist)
    if batch.load is None:
        total[:, batch.bodies.ravel()] = moved
    else:
        add_columns(total, batch.bodies.ravel(), moved)
    # The sum for the world (last entry) depends on the order of constraints, but the world never moves.
    total[:, w.topology.num_bodies] = 0.0
    return total


def _find_rate_next(w: StepBuffers) -> None:
    rows = w.topology.axis_row
    w.rate_next = w.row_velocity(w.twist).reshape(w.num_worlds, -1)[:, rows] + w.bias[:, rows]


def correct_positions(w: StepBuffers) -> None:
    """Correct positions by nonlinear Gauss-Seidel after the drift.

    The correction uses the Jacobians before the drift. Let C be the error of a row (m or rad). A sweep corrects only
    the fraction max(0.2, 1/(1 + |C|/0.001)) of C. A full linear correction of a large error would overshoot.
    """
    for _ in range(POSITION_SWEEPS):
        for batch in w.batches:
            if not batch.rigid.any():
                continue
            error = row_errors(w)[:, batch.constraints].astype(w.real)
            fraction = np.maximum(MIN_CORRECTION, 1.0 / (1.0 + np.abs(error) / FULL_CORRECTION_BELOW))
            change = matvec(batch.inverse, -np.where(batch.rigid, fraction * error, 0.0).astype(w.real))
            shift = _body_changes(w, batch, change).astype(np.float64)
            move(w, shift[..., :3], shift[..., 3:])


def split_impulse_velocity(w: StepBuffers, moved: Array) -> Array:
    """Correct the fraction SPLIT_FRACTION of the position errors. Add this correction to the displacement ``moved``."""
    t = w.topology
    flat = np.zeros((w.num_worlds, t.num_constraints * t.block))
    flat[:, t.rigid_row] = w.element_value[:, t.rigid_element]
    flat[:, t.coupling.rigid_row] = w.coupling_value[:, : t.coupling.rigid]
    errors = (SPLIT_FRACTION * flat.reshape(w.num_worlds, t.num_constraints, t.block)).astype(w.real)
    for _ in range(w.config.iterations):
        _sweep_displacement(w, moved, errors)
    return moved


def follow(w: StepBuffers, moved: Array) -> None:
    """Correct the displacement ``moved`` (num_worlds, bodies, 6) by one sweep over the rigid rows."""
    _sweep_displacement(w, moved, np.zeros_like(w.solved))


def _sweep_displacement(w: StepBuffers, moved: Array, errors: Array) -> None:
    for batch in w.batches:
        current = moved[:, batch.bodies].reshape(w.num_worlds, batch.constraints.size, -1)
        error = np.where(batch.rigid, -(matvec(batch.jacobian, current) + errors[:, batch.constraints]), 0.0)
        moved += _body_changes(w, batch, matvec(batch.inverse, error))
