"""Stage drift: update positions and orientations with the solved velocities. Orientations use the midpoint rule."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference import accuracy
from gpusim.reference.contacts.contact_rows import relative_twist, velocity_at
from gpusim.reference.joints.curvature import midpoint_rate
from gpusim.reference.joints.free_rotation import free_rates
from gpusim.reference.joints.laws import AT_LOWER, AT_UPPER, CONTACT_BITS
from gpusim.reference.signals.state_reader import SMALL, SPRING
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

FAST_ROTATION = 1.0
"""If a joint rotates faster (rad per substep), stage drift advances the joint angle to count full rotations."""


def drift(w: StepBuffers) -> None:
    """Advance the positions and orientations by ``w.h`` seconds, and store the results of the solve."""
    state = w.state.arrays
    _keep_velocities(w)
    store_velocities(w)
    accuracy.measure(w)
    rate = free_rates(w, w.twist[..., 3:] if w.scheme == "semi_implicit" else _midpoint_rates(w))
    _advance_angles(w)
    moves = ~w.topology.conveyor[:, None]
    shift, rotation_vector = (np.where(moves, v.astype(np.float64) * w.h, 0.0) for v in (w.twist[..., :3], rate))
    move(w, shift, rotation_vector)
    state["step_before"][:] = w.h
    state["posed"][:] = 0
    begins = (state["sensed_substeps"] == 0) | (state["sensed_substeps"] >= w.config.substeps)
    state["sensed_substeps"][:] = np.where(begins, 1, state["sensed_substeps"] + 1)
    state["sensed_time"][:] = np.where(begins, 0.0, state["sensed_time"]) + w.kick_time[:, 0]
    state["time"] += w.h


def _keep_velocities(w: StepBuffers) -> None:
    """Store the velocities at the previous half steps in the state."""
    state = w.state.arrays
    v2, v3 = (np.asarray(state[name], np.float64) for name in ("velocity_before", "velocity_before_last"))
    v1 = np.concatenate([state["linear_velocity"], state["angular_momentum"]], axis=-1)
    kick, kick_before = (state[name][:, None, None, None] for name in ("kick_before", "kick_before_last"))
    shape = (*v1.shape[:2], 2, 3)
    newer, older = ((v1 - v2).reshape(shape) * kick_before, (v2 - v3).reshape(shape) * kick)
    older_square = rotations.dot(older, older)[..., None]
    sprung = (older_square > 0.0) & (SPRING * SPRING * older_square < rotations.dot(newer, newer)[..., None])
    marked = np.where(sprung, v1.reshape(shape), v2.reshape(shape)).reshape(v1.shape)
    state["velocity_before_last"][:] = marked
    state["velocity_before"][:] = v1
    first = np.where(_starts_with_jump(w), -1.0, 0.0)
    state["kick_before_last"][:] = np.where(w.h_prev[:, 0] > 0.0, state["kick_before"], first)


def _starts_with_jump(w: StepBuffers) -> Array:
    """Return a mask (num_worlds,) of worlds whose initial velocities violate rigid rows, limits or contacts."""
    jumps: Array = np.zeros(w.num_worlds, bool)
    first = w.h_prev[:, 0] <= 0.0
    if w.scheme == "semi_implicit" or not first.any():
        return jumps
    gravity = np.broadcast_to(w.parameters["gravity"].astype(w.real), (w.num_worlds, 3))
    min_jump = w.real.type(SMALL) * np.linalg.norm(gravity, axis=-1) * w.kick_time[:, 0]
    if w.topology.num_constraints:
        jumps |= (_row_jumps(w, min_jump) & _held_rows(w)).any(axis=1)
    if w.touch is not None:
        m = w.touch.all
        u = velocity_at(relative_twist(m, w.twist_before)[:, None], m.offset)
        closing = -rotations.dot(m.frame[:, None, 0], u)
        hit = m.exists & (m.impulse[..., 0] > 0.0)
        hit &= closing > w.real.type(SMALL) * rotations.norm(u) + min_jump[m.world, None]
        jumps[m.world[hit.any(axis=1)]] = True
    return np.asarray(jumps & first)


def _held_rows(w: StepBuffers) -> Array:
    """Return a mask (num_worlds, rows) of the rigid rows, and of the axis rows at a position limit."""
    t = w.topology
    held = np.zeros((w.num_worlds, t.num_constraints * t.block), bool)
    held[:, t.rigid_row] = True
    held[:, t.coupling.row] = True
    if t.axis_row.size:
        contact = w.mode & CONTACT_BITS
        held[:, t.axis_row] = (contact == AT_LOWER) | (contact == AT_UPPER)
    return held


def _row_jumps(w: StepBuffers, min_jump: Array) -> Array:
    """Return a mask (num_worlds, rows) of the rows with a significant row velocity before the kick."""
    parts = (slice(0, 3), slice(3, 6))
    speeds = [rotations.norm(w.twist_before[..., k]) + rotations.norm(w.twist[..., k]) for k in parts]
    sides = sum(
        rotations.norm(w.jacobian[..., k]) * speed[:, w.layout.side_body, None]
        for k, speed in zip(parts, speeds, strict=True)
    )
    scale = w.layout.sum_slots(np.asarray(sides)).reshape(w.num_worlds, -1)
    before = np.abs(w.row_velocity(w.twist_before)).reshape(w.num_worlds, -1)
    return np.asarray(before > w.real.type(SMALL) * scale + min_jump[:, None])


def _advance_angles(w: StepBuffers) -> None:
    """Advance the stored angles of fast joints, so that full rotations are counted correctly."""
    t, angle = w.topology.angle, w.state.arrays["angle"]
    if t.axis.size:
        rate = (w.twist[:, t.body_b, 3:] - w.twist[:, t.body_a, 3:]).astype(np.float64)
        ahead = w.h * rotations.dot(rotations.matvec(w.rotation[:, t.owner], t.axis), rate)
        angle += np.where((np.abs(ahead) > FAST_ROTATION) & (t.middle == 0), ahead, 0.0)


def _midpoint_rates(w: StepBuffers) -> Array:
    """Return the angular velocities of all bodies at the midpoint of the step."""
    return midpoint_rate(w, w.twist) if w.twist[..., 3:].any() else w.twist[..., 3:]


def store_velocities(w: StepBuffers) -> None:
    """Store the solved velocities, impulses, modes and residuals in the state."""
    state = w.state.arrays
    state["linear_velocity"][:] = w.twist[..., :3]
    state["angular_momentum"][:] = w.momentum_kicked + momentum_change(w)
    state["impulse"][:] = w.solved
    state["kick_before"][:] = w.kick_time[:, 0]
    state["axis_mode"][:] = w.mode
    state["axis_velocity"][:] = w.rate_next
    state["axis_velocity_before"][:] = w.rate
    state["residual"][:] = w.residual_now
    state["not_converged"] += w.unconverged


def momentum_change(w: StepBuffers) -> Array:
    """Return the angular momentum change due to impulses, I (omega - omega_kicked), in the world frame (kg m2/s)."""
    change = w.twist[..., 3:] - w.twist_kicked[..., 3:]
    body = rotations.matvec(w.rotation_real.swapaxes(-1, -2), change)
    return rotations.matvec(w.rotation_real, rotations.matvec(w.inertia, body))


def displace(w: StepBuffers) -> None:
    """Apply the displacements that correct joint errors and penetration."""
    worlds: Array = np.full(w.num_worlds, w.scheme == "semi_implicit")
    if w.contacts is not None:
        worlds |= w.contacts.pushing != 0
    if not worlds.any():
        return
    poses = {name: w.state.arrays[name] for name in ("position", "orientation")}
    saved = {name: array[~worlds] for name, array in poses.items()}
    moved = w.displacement.astype(np.float64)
    move(w, moved[..., :3], moved[..., 3:])
    for name, array in poses.items():
        array[~worlds] = saved[name]


def move(w: StepBuffers, shift: Array, rotation_vector: Array) -> None:
    """Add a displacement (m) and a rotation vector (rad, world frame) to every body."""
    state = w.state.arrays
    state["position"] += shift
    spin = rotations.quaternion_from_rotation_vector(rotation_vector)
    state["orientation"][:] = rotations.normalized(rotations.quaternion_product(spin, state["orientation"]))
