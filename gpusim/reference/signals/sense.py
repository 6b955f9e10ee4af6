"""Stage sense: accumulate the loads of ropes and sensors over the substeps of a step.

* Joints: the stage averages the wrench of the child on the parent, in the parent's joint frame. The average weights
  each substep by its kick time. The wrench includes drives, limits, friction and bounces.
* Ropes, rods and tendons: the stage sums the impulses along the rope, rod or tendon.
* Contacts: the stage sums the contact impulses on the sensor's body, and their moments about its center of mass.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.description.contact_fields import POINTS
from gpusim.reference.contacts.contact_rows import cross, from_frame
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def sense(w: StepBuffers) -> None:
    """Add the loads of this substep to ``sensed_wrench``, ``sensed_pull`` and ``sensed_contact`` of the state."""
    if w.state.arrays["sensed_wrench"].size:
        _sense_joints(w)
    if w.state.arrays["sensed_pull"].size:
        _sense_pulls(w)
    if w.state.arrays["sensed_contact"].size:
        _sense_contacts(w)


def _first(w: StepBuffers) -> Array:
    """Return a mask of the worlds in the first substep of a step, (num_worlds, 1, 1)."""
    return np.asarray(w.state.arrays["sensed_substeps"] == 1)[:, None, None]


def _sense_joints(w: StepBuffers) -> None:
    constraint, at = (w.sensors[f"joint_sensor_{name}"] for name in ("constraint", "coordinate"))
    assert w.coordinates is not None
    columns = w.coordinates.columns
    side, body = constraint * w.topology.slots, columns["body_a"][at]
    wrench = np.zeros((w.num_worlds, constraint.size, 6))
    for j in range(w.topology.block):
        wrench += w.solved[:, constraint, j, None].astype(float) * w.jacobian[:, side, j].astype(float)
    kick = w.kick_time[:, :, None].astype(float)
    wrench = np.where(kick > 0.0, wrench / np.where(kick > 0.0, kick, 1.0), 0.0)
    rotation = w.rotation[:, body]
    arm = rotations.matvec(rotation, columns["arm_a"][at])
    wrench[..., 3:] -= rotations.cross(arm, wrench[..., :3])
    frame = rotations.matrix_from_quaternion(columns["frame_a"][at]).swapaxes(-1, -2)
    mean, mean_weight = w.state.arrays["sensed_wrench"], kick / w.state.arrays["sensed_time"][:, None, None]
    for part in (slice(0, 3), slice(3, 6)):
        load = rotations.matvec(frame, rotations.matvec(rotation.swapaxes(-1, -2), wrench[..., part]))
        before = mean[..., part].astype(float)
        mean[..., part] = np.where(_first(w), load, before + mean_weight * (load - before))
    _break_joints(w)


def _break_joints(w: StepBuffers) -> None:
    """Break the joints whose mean force or torque in a step exceeds the break limit.

    Breaking a joint makes its position limits infinite.
    """
    limit, slack = w.sensors["joint_sensor_break"], w.state.arrays["joint_slack"]
    if not np.isfinite(limit).any():
        return
    load = w.state.arrays["sensed_wrench"].astype(float).reshape(w.num_worlds, -1, 2, 3)
    broken = np.any(rotations.dot(load, load) > limit * limit, axis=-1)
    ends = (w.state.arrays["sensed_substeps"] == w.config.substeps)[:, None]
    slack[:] = np.where(broken & ends, np.inf, slack)


def _sense_pulls(w: StepBuffers) -> None:
    start, row, weight = (w.ropes[f"tension_{name}"] for name in ("start", "row", "weight"))
    impulse, total = w.solved.reshape(w.num_worlds, -1).astype(float), w.state.arrays["sensed_pull"]
    added = np.zeros(total.shape)
    for joint in range(start.size - 1):
        for k in range(start[joint], start[joint + 1]):
            added[:, joint] -= weight[k] * impulse[:, row[k]]
    total[:] = np.where(_first(w)[..., 0], added, total + added)


def _sense_contacts(w: StepBuffers) -> None:
    s, worlds, bodies = w.state.arrays, w.num_worlds, w.sensors["contact_sensor_body"]
    body_of = w.model.contact.body
    total = np.zeros((worlds, bodies.size, 6))
    if w.touch is not None:
        m = w.touch.all
        impulse = np.zeros(s["contact_impulse"].shape, s["contact_impulse"].dtype)
        impulse[m.world, m.pair] = from_frame(m, m.impulse)
        for pair in range(int(s["pair_count"].max(initial=0))):
            listed = pair < s["pair_count"]
            points = np.where(listed, s["pair_points"][:, pair], 0)
            if not points.any():
                continue
            arms = s["contact_arm"][:, pair].astype(float).reshape(worlds, POINTS, 2, 3)
            for side, sign in ((0, -1.0), (1, 1.0)):
                body = body_of[s["pair_shapes"][:, pair, side]]
                mine = (body[:, None] == bodies) & (points > 0)[:, None]
                if mine.any():
                    pair_wrench = _pair_wrench(s, pair, impulse[:, pair].astype(float), points, arms[:, :, side], sign)
                    total = np.where(mine[..., None], total + pair_wrench[:, None], total)
    s["sensed_contact"][:] = np.where(_first(w), total, s["sensed_contact"] + total)


def _pair_wrench(s: dict[str, Array], m: int, impulses: Array, points: Array, arms: Array, sign: float) -> Array:
    """Return the impulse (N s) and the angular impulse (N m s) on one shape of pair ``m``, (num_worlds, 6)."""
    total, middle = np.zeros((len(points), 6)), np.zeros((len(points), 3))
    for k in range(POINTS):
        there = (k < points)[:, None]
        impulse, arm = sign * impulses[:, k], arms[:, k]
        total[:, :3] = np.where(there, total[:, :3] + impulse, total[:, :3])
        total[:, 3:] = np.where(there, total[:, 3:] + cross(arm, impulse), total[:, 3:])
        middle = np.where(there, middle + arm, middle)
    middle = middle / np.maximum(points, 1)[:, None]
    shear = sign * s["pair_force"][:, m].astype(float)
    total[:, :3] += shear
    total[:, 3:] += cross(middle, shear) + sign * s["pair_torque"][:, m].astype(float)
    return total
