"""Values and Jacobians of elements. Elements are scalar geometric functions that constraint rows restrict.

    dot   u . w - c0      u fixed in body a; w fixed in body b, or from a's point to b's point
    spin  an angle        rate u . (w_b - w_a) with u fixed in one of the bodies
    line  |w| - length    w from a's point to b's point (a wrapped path has two line elements, see wrapping.py)

A Jacobian has 12 columns: a linear and an angular part for body a, then a linear and an angular part for body b. Poses
and values are always float64.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.model import euler_angles
from gpusim.reference.joints import wrapping
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

matvec, cross, dot = rotations.matvec, rotations.cross, rotations.dot
TWO_PI = 2.0 * np.pi


def evaluate(w: StepBuffers) -> None:
    """Compute the values and Jacobians of all elements at the current poses."""
    t, layout = w.topology, w.layout
    if layout.dots.stop > layout.dots.start:
        _dots(w)
    if layout.spins.stop > layout.spins.start:
        _spins(w)
    if t.line.length.size:
        _lines(w)


def track_angles(w: StepBuffers) -> None:
    """Update the joint angles. Add the multiple of 2 pi that gives the value nearest to the last angle."""
    from gpusim.model.state import wrapped_angles

    if not w.topology.angle.axis.size:
        return
    angle = w.state.arrays["angle"]
    wrapped = wrapped_angles(w.model, w.rotation)
    # Add only multiples of a full rotation, so that a second call at the same pose returns the same bits.
    angle[:] = wrapped + TWO_PI * np.round((angle - wrapped) / TWO_PI)


def rigid_values(w: StepBuffers) -> Array:
    """Return the values of the rigid rows' elements at the current poses, (num_worlds, rigid rows)."""
    value = np.empty_like(w.element_value)
    t, layout = w.topology, w.layout
    if layout.dots.stop > layout.dots.start:
        u, arm_a, arm_b, sep = dot_vectors(w)
        value[:, layout.dots] = dot(u, sep) - t.dot.c0
    if t.line.length.size:
        sep = line_vectors(w)[2]  # lines of wrapped paths are never rigid
        value[:, layout.lines] = rotations.norm(sep) - t.line.length
    return value[:, t.rigid_element]


def dot_vectors(w: StepBuffers) -> tuple[Array, Array, Array, Array]:
    """Return four world vectors of each dot element u . w: u, moment arm on body a, vector on body b, and w."""
    t, x = w.topology.dot, w.state.arrays["position"]
    u = matvec(w.rotation[:, t.body_u], t.u)
    arm_a = matvec(w.rotation[:, t.body_a], t.vector_a)
    vector_b = matvec(w.rotation[:, t.body_b], t.vector_b)
    sep = w.layout.dot_linear * (x[:, t.body_b] - x[:, t.body_a]) + vector_b - arm_a
    return u, arm_a, vector_b, sep


def _dots(w: StepBuffers) -> None:
    u, arm_a, vector_b, sep = dot_vectors(w)
    at = w.layout.dots
    w.element_value[:, at] = dot(u, sep) - w.topology.dot.c0
    # If u is fixed in the parent, the arm on the parent ends at the child's point.
    moments = np.matmul(rotations.skew(u), np.stack([vector_b, w.layout.dot_on_a * sep + arm_a], axis=-1))
    direction = w.layout.dot_linear * u
    jacobian = w.element_jacobian
    jacobian[:, at, 0, :3] = -direction
    jacobian[:, at, 0, 3:] = moments[..., 1]
    jacobian[:, at, 1, :3] = direction
    jacobian[:, at, 1, 3:] = -moments[..., 0]
    vectors = np.concatenate([u, arm_a, vector_b], axis=1).astype(w.real, copy=False)
    w.scratch["dot.vectors"] = vectors
    w.scratch["dot.u"] = vectors[:, : u.shape[1]]
    w.scratch["dot.sep"] = sep.astype(w.real)


def _spins(w: StepBuffers) -> None:
    t, at = w.topology.spin, w.layout.spins
    axis = np.broadcast_to(t.u, (w.num_worlds, *t.u.shape))
    tracked = t.angle >= 0
    if tracked.all():
        w.element_value[:, at] = w.state.arrays["angle"][:, t.angle]
    else:
        vector = relative_rotation(w, w.state.arrays["orientation"])
        length = rotations.norm(vector)
        component = np.clip(t.component, 0, 2)
        value = np.take_along_axis(vector, np.broadcast_to(component[None, :, None], (*vector.shape[:2], 1)), 2)[..., 0]
        value = np.where(t.component == 3, length, value)
        if tracked.any():
            value = np.where(tracked, w.state.arrays["angle"][:, np.maximum(t.angle, 0)], value)
        w.element_value[:, at] = value
        # The rate of the total rotation is the angular velocity along the rotation axis. At zero rotation, any axis
        # works.
        frame = rotations.matrix_from_quaternion(t.frame_a)
        unit = vector / np.where(length > 1e-9, length, 1.0)[..., None]
        moving = matvec(frame, unit)
        axis = np.where(((t.component == 3) & (length > 1e-9))[..., None], moving, axis)
    u = matvec(w.rotation[:, t.owner], axis)
    if w.layout.ordered.size:
        u[:, w.layout.ordered] = _ordered_directions(w, u)
    w.element_jacobian[:, at, 0, 3:] = -u
    w.element_jacobian[:, at, 1, 3:] = u
    w.scratch["spin.u"] = u.astype(w.real)


def _ordered_directions(w: StepBuffers, u: Array) -> Array:
    """Return the world vectors d of Euler angles. The rate of an angle is d . (omega_b - omega_a)."""
    t, at = w.topology.spin, w.layout.ordered
    other = np.where(t.owner[at] == t.body_a[at], t.body_b[at], t.body_a[at])
    return euler_angles.direction(u[:, at], matvec(w.rotation[:, other], t.other[at]), t.component[at])


def relative_rotation(w: StepBuffers, q: Array) -> Array:
    """Return the rotation vectors (rad) from parent to child joint frame of all spin elements.

    ``q`` contains the orientations of the bodies as quaternions.
    """
    t = w.topology.spin
    a = rotations.quaternion_product(q[:, t.body_a], np.broadcast_to(t.frame_a, (w.num_worlds, *t.frame_a.shape)))
    b = rotations.quaternion_product(q[:, t.body_b], np.broadcast_to(t.frame_b, (w.num_worlds, *t.frame_b.shape)))
    return rotations.rotation_vector_from_quaternion(rotations.quaternion_product(rotations.quaternion_conjugate(a), b))


def line_vectors(w: StepBuffers) -> tuple[Array, Array, Array, Array | float]:
    """Return the moment arms and vectors w of line elements in the world frame, and the arc lengths of paths (m)."""
    t, x = w.topology.line, w.state.arrays["position"]
    arm_a = matvec(w.rotation[:, t.body_a], t.vector_a)
    arm_b = matvec(w.rotation[:, t.body_b], t.vector_b)
    sep = x[:, t.body_b] + arm_b - x[:, t.body_a] - arm_a
    arc: Array | float = 0.0
    if (first := w.layout.wrapped).size:
        wraps = w.topology.wrap
        i = t.wrap[first] // 2
        paths = wrapping.find_paths(wraps, x, w.rotation, i)
        arm_b[:, first] = paths.contact_a - x[:, wraps.body[i]]
        arm_a[:, first + 1] = paths.contact_b - x[:, wraps.body[i]]
        sep[:, first], sep[:, first + 1] = paths.contact_a - paths.end_a, paths.end_b - paths.contact_b
        arc = np.zeros(sep.shape[:2])
        arc[:, first] = paths.arc
    return arm_a, arm_b, sep, arc


def _lines(w: StepBuffers) -> None:
    arm_a, arm_b, sep, arc = line_vectors(w)
    at = w.layout.lines
    length = rotations.norm(sep)
    apart = length > 1e-12
    # Coincident points have no line, so any direction works.
    unit = np.where(apart[..., None], sep / np.where(apart, length, 1.0)[..., None], np.array([0.0, 0.0, 1.0]))
    w.element_value[:, at] = length + arc - w.topology.line.length
    moments = np.matmul(rotations.skew(unit), np.stack([arm_a, arm_b], axis=-1))
    jacobian = w.element_jacobian
    jacobian[:, at, 0, :3] = -unit
    jacobian[:, at, 0, 3:] = moments[..., 0]
    jacobian[:, at, 1, :3] = unit
    jacobian[:, at, 1, 3:] = -moments[..., 1]
    w.scratch["line.arms"] = np.stack([arm_a, arm_b], axis=-1).astype(w.real)
    w.scratch["line.sep"] = sep.astype(w.real)
    w.scratch["line.length"] = length.astype(w.real)
    w.scratch["line.unit"] = unit.astype(w.real)
