"""Curvature bias of a constraint row: (change of the row's value in a step - h J v)/h.

In a step, a body rotates by the rotation vector theta = h omega_mid, with the angle t = |theta|. A vector r that is
fixed in the body changes by E r, with

    E = h [omega]x + T,   T = (sin t/t - 1)[theta]x + ((1 - cos t)/t^2) [theta]x^2 + h [omega_mid - omega]x

E is accurate in float32, because its formula does not subtract poses. A row that measures the dot product u . w has the
bias ``(dot(Tu, w) + dot(u, Tw) + dot(Eu, Dw))/h``. Dw is the change of w. A row that measures the length |w| has the
bias ``dot(n, Tw)/h`` plus the nonlinear part of the change of |w|, divided by h. n is the unit vector along w. Let phi
= h max|omega| be the rotation angle of the faster body in the step. If phi exceeds 1/2, the stage multiplies the bias
by (0.5/phi)^2. phi excludes the spin of a rotor (rotors.py).
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.model import euler_angles
from gpusim.reference.joints import wrapping
from gpusim.reference.joints.elements import TWO_PI, relative_rotation
from gpusim.reference.joints.factor import inverse
from gpusim.reference.rotors import rotation_angles
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

matvec, dot, norm = rotations.matvec, rotations.dot, rotations.norm
MIDPOINT_PASSES = 4
# The solver skips the curvature bias for rotations below SLOW_ROTATION (rad per step), whose square is below the
# round-off of 1.
SLOW_ROTATION = 2.0**-27
FULL_BIAS_BELOW = 0.5


def curvature(w: StepBuffers) -> None:
    """Compute the curvature bias of constraint rows (``w.bias``) and elements (``w.element_bias``) from ``w.twist``."""
    if w.scheme == "semi_implicit":
        return
    layout = w.layout
    slow = is_slow(w, w.twist)
    if not slow.all():
        w.midpoint = midpoint_rate(w, w.twist)
        if w.topology.num_elements:
            operator = _rotation_operators(w)
            if layout.dots.stop > layout.dots.start:
                _dot_bias(w, operator)
            if layout.spins.stop > layout.spins.start:
                _spin_bias(w, operator)
            if w.topology.line.length.size:
                _line_bias(w, operator)
            _reduce_bias_of_large_rotations(w)
            straight = slow[:, w.topology.element_body_a] & slow[:, w.topology.element_body_b]
            straight[:, w.layout.lines] = False
            w.element_bias[straight] = 0.0
    else:
        # If bodies rotate slowly, the rows of dots and spins change by h J v. Lines still have a curvature bias.
        w.midpoint = w.twist[..., 3:].copy()
        w.element_bias[:] = 0.0
        if w.topology.line.length.size:
            _line_bias(w, None)
    _rows(w)


def midpoint_rate(w: StepBuffers, twist: Array) -> Array:
    """Return the angular velocity at the midpoint of the step, in the world frame, (num_worlds, bodies, 3).

    Newton's method solves I Omega = exp(-h/2 [Omega]x) l for the rate Omega in the body frame. l = I R^T omega is the
    angular momentum.
    """
    transposed = w.rotation_real.swapaxes(-1, -2)
    momentum = matvec(w.inertia, matvec(transposed, twist[..., 3:]))
    rate = midpoint_passes(w.inertia, momentum, w.real.type(0.5 * w.h))
    constant = is_round(w) | is_slow(w, twist)
    return np.where(constant[..., None], twist[..., 3:], matvec(w.rotation_real, rate))


def midpoint_passes(inertia: Array, momentum: Array, half: float) -> Array:
    """Return the angular velocity at the midpoint of the step, in the body frame at the start of the step.

    ``momentum`` is in the body frame. ``half`` is half of the time step (s).
    """
    slope = inverse(inertia - half * rotations.skew(momentum))
    rate = matvec(slope, momentum)
    for _ in range(MIDPOINT_PASSES - 1):
        phi = half * rate
        square = dot(phi, phi)
        tangent = 0.5 + square * (1.0 / 24.0 + square * (1.0 / 240.0))
        t = tangent[..., None] * phi
        factor = 2.0 / (1.0 + tangent * tangent * square)
        cross = rotations.skew(t)
        first = matvec(cross, momentum)
        rotated = momentum - factor[..., None] * (first - matvec(cross, first))
        rate = rate - matvec(slope, matvec(inertia, rate) - rotated)
    return rate


def is_round(w: StepBuffers) -> Array:
    """Return a mask (worlds, bodies) of the bodies with equal moments of inertia about all axes."""
    first: Array = w.inertia[..., :1, :1]
    return np.all(w.inertia == first * np.eye(3, dtype=w.inertia.dtype), axis=(-2, -1))


def is_slow(w: StepBuffers, twist: Array) -> Array:
    """Return a mask (worlds, bodies) of the bodies whose rotation is too slow to need a curvature bias."""
    slow: Array = ~(w.real.type(w.h) * norm(twist[..., 3:]) > SLOW_ROTATION)
    return slow


def _rotation_operators(w: StepBuffers) -> Array:
    """Return the matrices E and T (see the module docstring) of each body as one matrix, (num_worlds, bodies, 6, 3)."""
    h = w.real.type(w.h)
    theta = h * w.midpoint
    skew = rotations.skew(theta)
    sine, cosine = rotations.rotation_factors(dot(theta, theta))
    bend = sine[..., None, None] * skew + cosine[..., None, None] * np.matmul(skew, skew)
    return np.concatenate([skew + bend, bend + rotations.skew(theta - h * w.twist[..., 3:])], axis=-2)


def _dot_bias(w: StepBuffers, operator: Array) -> None:
    t, scratch, h = w.topology.dot, w.scratch, w.real.type(w.h)
    u, sep = scratch["dot.u"], scratch["dot.sep"]
    change = matvec(operator[:, w.layout.dot_bodies], scratch["dot.vectors"])
    n = u.shape[1]
    of_u, of_b_minus_a = change[:, :n], change[:, 2 * n :] - change[:, n : 2 * n]
    velocity = w.twist[..., :3]
    change_w = (velocity[:, t.body_b] - velocity[:, t.body_a]) * (h * w.layout.dot_linear).astype(w.real)
    change_w += of_b_minus_a[..., :3]
    total = dot(of_u[..., 3:], sep) + dot(u, of_b_minus_a[..., 3:]) + dot(of_u[..., :3], change_w)
    w.element_bias[:, w.layout.dots] = total / h


def _spin_bias(w: StepBuffers, operator: Array) -> None:
    t, u = w.topology.spin, w.scratch["spin.u"]
    omega = w.twist[..., 3:]
    half_change = w.real.type(0.5) * matvec(operator[:, t.owner, :3], u)
    middle = w.midpoint[:, t.body_b] - w.midpoint[:, t.body_a]
    bias = dot(u + half_change, middle) - dot(u, omega[:, t.body_b] - omega[:, t.body_a])
    if w.layout.totals.size:
        _total_rotation_bias(w, bias)
    if w.layout.ordered.size:
        _ordered_bias(w, bias)
    w.element_bias[:, w.layout.spins] = bias


def _total_rotation_bias(w: StepBuffers, bias: Array) -> None:
    """Set the exact curvature bias of rows that measure the length of a rotation vector."""
    at = w.layout.totals
    t = w.topology.spin
    omega, angle = w.twist[..., 3:], w.element_value[:, w.layout.spins][:, at]
    rotation = rotations.quaternion_from_rotation_vector(w.h * w.midpoint.astype(np.float64))
    after = rotations.quaternion_product(rotation, w.state.arrays["orientation"])
    rate = (rotations.norm(relative_rotation(w, after)[:, at]) - angle) / w.h
    u = w.scratch["spin.u"][:, at]
    bias[:, at] = (rate - dot(u, omega[:, t.body_b[at]] - omega[:, t.body_a[at]])).astype(w.real)


def _ordered_bias(w: StepBuffers, bias: Array) -> None:
    """Set the exact curvature bias of rows that measure Euler angles."""
    at, t, angles = w.layout.ordered, w.topology.spin, w.topology.angle
    k = t.angle[at]
    spin = rotations.quaternion_from_rotation_vector(w.h * w.midpoint.astype(np.float64))
    rotation = np.matmul(rotations.matrix_from_quaternion(spin), w.rotation)
    axis = matvec(rotation[:, angles.owner[k]], angles.axis[k])
    ref_a = matvec(rotation[:, angles.body_a[k]], angles.ref_a[k])
    ref_b = matvec(rotation[:, angles.body_b[k]], angles.ref_b[k])
    change = euler_angles.wrapped(angles, axis, ref_a, ref_b, k) - w.element_value[:, w.layout.spins][:, at]
    change -= TWO_PI * np.round(change / TWO_PI)
    omega, u = w.twist[..., 3:], w.scratch["spin.u"][:, at]
    angular_rate = dot(u, omega[:, t.body_b[at]] - omega[:, t.body_a[at]])
    bias[:, at] = (change / w.h - angular_rate).astype(w.real)


def _line_bias(w: StepBuffers, operator: Array | None) -> None:
    t, scratch, h = w.topology.line, w.scratch, w.real.type(w.h)
    arms, sep, length, unit = (scratch[f"line.{k}"] for k in ("arms", "sep", "length", "unit"))
    velocity = w.twist[..., :3]
    change = h * (velocity[:, t.body_b] - velocity[:, t.body_a])
    nonlinear = w.real.type(0.0)
    if operator is not None:
        arm_change = matvec(operator[:, t.body_b], arms[..., 1]) - matvec(operator[:, t.body_a], arms[..., 0])
        change += arm_change[..., :3]
        nonlinear = dot(unit, arm_change[..., 3:])
    # |w + c| - |w| - n.(c - beyond), with s = |w + c| + |w|, free of cancellation.
    length_sum = norm(sep + change) + length
    safe = np.where(length_sum > 0.0, length_sum, 1.0)
    square, along = dot(change, change), dot(unit, change)
    stretch = (2.0 * dot(sep, change) + square) / safe
    bend = (square - along * stretch) / safe
    w.element_bias[:, w.layout.lines] = (nonlinear + bend) / h
    if w.layout.wrapped.size:
        _wrapped_bias(w)


def _wrapped_bias(w: StepBuffers) -> None:
    t, first = w.topology.line, w.layout.wrapped
    a, b = w.layout.lines.start + first, w.layout.lines.start + first + 1
    position = w.state.arrays["position"] + w.h * w.twist[..., :3].astype(np.float64)
    spin = rotations.quaternion_from_rotation_vector(w.h * w.midpoint.astype(np.float64))
    rotation = np.matmul(rotations.matrix_from_quaternion(spin), w.rotation)
    after = wrapping.find_paths(w.topology.wrap, position, rotation, t.wrap[first] // 2).length
    rate = (after - (w.element_value[:, a] + w.element_value[:, b])) / w.h
    unit, arms, v, omega = w.scratch["line.unit"], w.scratch["line.arms"], w.twist[..., :3], w.twist[..., 3:]
    for k in (first, first + 1):
        body_a, body_b = t.body_a[k], t.body_b[k]
        end_a = v[:, body_a] + rotations.cross(omega[:, body_a], arms[:, k][..., 0])
        end_b = v[:, body_b] + rotations.cross(omega[:, body_b], arms[:, k][..., 1])
        rate = rate - dot(unit[:, k], end_b - end_a)
    w.element_bias[:, a], w.element_bias[:, b] = rate.astype(w.real), 0.0


def _reduce_bias_of_large_rotations(w: StepBuffers) -> None:
    """Reduce the curvature bias of elements on bodies that rotate fast, to keep the step stable."""
    t = w.topology
    angle = rotation_angles(w)
    phi = np.maximum(angle[:, t.element_body_a], angle[:, t.element_body_b])
    if (phi > FULL_BIAS_BELOW).any():
        ratio = FULL_BIAS_BELOW / np.maximum(phi, FULL_BIAS_BELOW)
        w.element_bias *= (ratio * ratio).astype(w.real)


def _rows(w: StepBuffers) -> None:
    t = w.topology
    w.bias[:, t.element_row_index] = w.element_bias[:, t.element_row]
    c = t.coupling
    if c.row.size:
        bias = c.mixed(w.element_bias, c.slopes(w.element_value))
        if c.curved.any():
            bias += _curve_bias(w)
        w.bias[:, c.row] = bias.astype(w.real)


def _curve_bias(w: StepBuffers) -> Array:
    """Return the curvature bias of polynomials p(x): (p(x + h r) - p(x))/h - p'(x) r.

    r is the rate of the coordinate x, including the curvature bias of x. The code uses a formula without cancellation.
    """
    t, c = w.topology, w.topology.coupling
    first = c.element[c.start[:-1]]
    jacobian, ends = w.element_jacobian[:, first], (t.element_body_a[first], t.element_body_b[first])
    rate = sum(np.sum(jacobian[:, :, side] * w.twist[:, body], axis=-1) for side, body in enumerate(ends))
    r, x, k = (rate + w.element_bias[:, first]).astype(np.float64), w.element_value[:, first], c.curve.T
    d = w.h * r
    return np.asarray(r * d * (k[0] + x * (3.0 * k[1] + x * 6.0 * k[2]) + d * (k[1] + x * 4.0 * k[2] + d * k[2])))
