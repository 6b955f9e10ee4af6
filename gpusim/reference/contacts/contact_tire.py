"""Friction of tires by the brush model (Pacejka 2012). Slip deflects the bristles of the tread until they slide.

The tangents of a tire's manifold follow the wheel: ``e1 = axle x n`` points ahead, and ``e2 = n x e1`` points sideways.
All vectors below have two components, along e1 and e2. v is the slip velocity of B relative to A. V = |spin| (R -
depth/2) is the rolling speed of the wheel. l is the relaxation length, C is the slip stiffness, N is the normal force,
and mu is the friction coefficient.

*Bristles* (``prepare``). The contact point stores the deflection s of the bristles in the wheel's frame. Deflected
bristles roll out of the contact patch, and slip deflects new bristles: ``s' = v - V s/l`` (section 7.2). A drift of h
seconds with the slip velocity v+ changes s as follows:

    s -> E s + g v+,   E = exp(-a),   g = h (1 - E)/a,   a = h V/l.

The friction impulse depends on the deflection e in the middle of the kick. v- is the slip velocity before the kick, and
tau is the time constant of a damper:

    e = s + g/(1 + E) (v+ - v-) + tau (v+ - V s/l),   tau = TIRE_DAMPING/(1 + TIRE_FADE V TIRE_DAMPING/l)^2.

*Brush* (``brush``, section 3.2). r contains the semi-axes of the friction ellipse. The friction force is

    F = -C e/l (1 - theta + theta^2/3)  below  theta = |C e/(l r)|/(3 mu N) = 1,   |F/r| = mu N beyond.

The force is F = -G C e/l with one unknown factor G. G depends on the velocity after the impulse, so the sweep solves
for G. Let theta_0 be theta for G = 0. The solver approximates theta by theta_0/(1 + beta G). Then theta = 1 - z, and z
solves the cubic equation z + (beta/3) z^3 = 1 + beta/3 - theta_0. After the drift, ``deflect`` limits s so that theta
is at most 1.

*Torques* (``sweep_tire`` of contact_solve.py). Rolling resistance is dry friction about e2, with a torque of at most f
R N. f is the coefficient of rolling resistance. To model camber, the tread is a line of radial springs over the width
b, with the total stiffness k. gamma is the sine of the camber angle. Camber causes the torque M = k b^2 gamma/12 about
e1. If M exceeds N b/6, one edge of the tread lifts, and the torque is N b (1/2 - sqrt(N b/(6 M))/3).
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import CODES, TIRE_DAMPING, TIRE_FADE, TIRE_FLAT, TIRE_MIN, TIRE_PASSES, TIRE_STEPS
from gpusim.description.shape_kinds import shape_type
from gpusim.reference.contacts.contact_laws import max_, min_number
from gpusim.reference.contacts.manifolds import Manifolds
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import cross, dot
from gpusim.typing import Array

TIRE = CODES["LAW_TIRE"]
ALONG = np.array([0, 1])
# Indices of the numbers of a law.
STIFFNESS_AT, DAMPING_AT, ROLLING_AT, WIDTH_AT = (
    CODES[f"LAW_AT_{name}"] for name in ("STIFFNESS", "DAMPING_COEFFICIENT", "ROLLING_RESISTANCE", "WIDTH")
)
SLIP_AT, LENGTH_AT, ELLIPSE_AT = (
    CODES[f"LAW_AT_{name}_ALONG"] + ALONG for name in ("SLIP_STIFFNESS", "RELAXATION_LENGTH", "FRICTION_ELLIPSE")
)


def tires(m: Manifolds) -> Array:
    """Return a mask of the manifolds with a tire law, (n,)."""
    return np.asarray(m.law[:, CODES["LAW_AT_FRICTION"]] == TIRE)


def _wheels(w: StepBuffers, shape: Array) -> Array:
    """Return which shape of each pair is the wheel: 0 for A, 1 for B, (n,). ``shape`` is (n, 2)."""
    return (w.model.contact.kind[shape[:, 1]] == shape_type("wheel").number).astype(np.int64)


def _axles(w: StepBuffers, m: Manifolds, at: Array) -> tuple[Array, Array, Array]:
    side = _wheels(w, m.shape[at])
    shape = m.shape[at, side]
    rotation = w.model.contact.rotation[shape].reshape(-1, 3, 3)
    return side, shape, np.matvec(w.rotation[m.world[at], m.body[at, side]], rotation[:, :, 2])  # type: ignore[call-overload, unused-ignore]


def rotate_frames(w: StepBuffers, m: Manifolds) -> None:
    """Set the tangents of tire manifolds to the forward and sideways directions of the wheel."""
    at = np.flatnonzero(tires(m))
    if not at.size:
        return
    normal = m.frame[at, 0]
    ahead = cross(_axles(w, m, at)[2].astype(w.real), normal)
    size = np.sqrt(dot(ahead, ahead))
    upright = size > w.real.type(TIRE_FLAT)
    at, ahead = at[upright], ahead[upright] / size[upright, None]
    m.frame[at, 1], m.frame[at, 2] = ahead, cross(normal[upright], ahead)


def prepare(w: StepBuffers, m: Manifolds, before: Array) -> None:
    """Set the arrays for bristles and camber torque. ``before`` contains relative twists before stage kick, (n, 6)."""
    at = np.flatnonzero(tires(m))
    if not at.size:
        return
    law, world, h = m.law[at], m.world[at], w.h
    side, shape, axle = _axles(w, m, at)
    radius = w.model.contact.size[shape, 0]
    spin = dot(axle, w.twist_before[world, m.body[at, side], 3:].astype(np.float64))
    speed = (np.abs(spin) * (radius + 0.5 * m.gap[at, 0]))[:, None]
    m.rolling[at] = law[:, ROLLING_AT] * radius
    frame, twist, kick = m.frame[at], before[at], w.kick_time[world].astype(np.float64)
    slip = np.matvec(frame[:, 1:], twist[:, :3]) - m.bias[at, 0, 1:]  # type: ignore[call-overload, unused-ignore]
    deflection = w.state.arrays["contact_slip"][world, m.pair[at], 0, 1:].astype(w.real)
    length = law[:, LENGTH_AT]
    exponent = h * speed / length
    series = 1.0 + 0.5 * exponent * (1.0 + exponent / 3.0 * (1.0 + 0.25 * exponent))
    total = 1.0 + exponent * series
    m.tire_kept[at], m.tire_gain[at] = 1.0 / total, h * series / total
    late = (h * series / total) / (1.0 + 1.0 / total)
    fade = 1.0 + TIRE_FADE * TIRE_DAMPING * speed / length
    damper = TIRE_DAMPING / (fade * fade)
    m.tire_known[at] = deflection * (1.0 - damper * speed / length) - late * slip
    m.tire_slope[at] = late + damper
    m.tire_stiffness[at] = kick * law[:, SLIP_AT] / length
    m.tire_shares[at] = 1.0 / law[:, ELLIPSE_AT]
    width = law[:, WIDTH_AT]
    square = width * width / 12.0
    lean = np.where(side == 1, 1.0, -1.0) * dot(axle, frame[:, 0].astype(np.float64))
    rate = dot(frame[:, 1], twist[:, 3:])
    stiff, kick, h_prev = square * law[:, STIFFNESS_AT], kick[:, 0], w.h_prev[world, 0]
    m.camber[at, 0] = -kick * stiff * (lean - 0.25 * h_prev * rate)
    m.camber[at, 1] = kick * (0.25 * h * stiff + square * law[:, DAMPING_AT])
    m.camber[at, 2] = width


def brush(m: Manifolds, at: Array | slice, limit: Array, mass: Array, u: Array, p: Array) -> Array:
    """Return the tire friction impulse of manifolds ``at``. For the arguments, see ``coulomb`` in contact_laws.py."""
    known, slope, stiffness = m.tire_known[at], m.tire_slope[at], m.tire_stiffness[at]
    real = limit.dtype.type
    one, third = real(1), real(1.0 / 3.0)
    k11, k12, k22 = mass[:, 3], mass[:, 4], mass[:, 5]
    f1, f2 = u[:, 0] - (k11 * p[:, 0] + k12 * p[:, 1]), u[:, 1] - (k12 * p[:, 0] + k22 * p[:, 1])
    e1, e2 = known[:, 0] + slope[:, 0] * f1, known[:, 1] + slope[:, 1] * f2
    q1, q2 = stiffness[:, 0], stiffness[:, 1]
    # (1 + G M) e = e_free. A size is the impulse without sliding, divided by the semi-axes of the friction ellipse.
    m11, m12 = slope[:, 0] * k11 * q1, slope[:, 0] * k12 * q2
    m21, m22 = slope[:, 1] * k12 * q1, slope[:, 1] * k22 * q2
    s1, s2 = q1 * m.tire_shares[at, 0], q2 * m.tire_shares[at, 1]
    small = real(min_number(limit.dtype))
    bound = max_(real(3) * limit, small)
    g = np.ones_like(limit)
    for step in range(TIRE_PASSES + 1):
        a, b, c, d = one + g * m11, g * m12, g * m21, one + g * m22
        det = a * d - b * c
        d1, d2 = (d * e1 - b * e2) / det, (a * e2 - c * e1) / det
        x, y = s1 * d1, s2 * d2
        size = np.sqrt(x * x + y * y)
        if step == TIRE_PASSES:
            break
        # ``falls`` is the relative decrease of the size per change of G.
        t1, t2 = m11 * d1 + m12 * d2, m21 * d1 + m22 * d2
        t1, t2 = (d * t1 - b * t2) / det, (a * t2 - c * t1) / det
        falls = max_((x * s1 * t1 + y * s2 * t2) / max_(x * x + y * y, small), real(0))
        free = max_(one - g * falls, real(TIRE_MIN))
        g = _friction_factor(size / (free * bound), third * falls / free)
    # The passes leave a small error, so limit the impulse to the ellipse.
    g = g * np.minimum(one, limit / max_(g * size, small))
    return np.where((limit > 0.0)[:, None], np.stack([-q1 * g * d1, -q2 * g * d2], axis=1), real(0))


def _friction_factor(theta: Array, b: Array) -> Array:
    """Return the factor G of the friction force. ``theta`` is theta_0, and ``b`` is beta/3."""
    one, third = theta.dtype.type(1), theta.dtype.type(1.0 / 3.0)
    c = one + b - theta
    sticks = c > 0.0
    # Start Newton's method above the root, because the cubic is convex.
    z = np.where(sticks & (c < one), c, one)
    for _ in range(TIRE_STEPS):
        square = z * z
        z = z - (z + b * square * z - c) / (one + theta.dtype.type(3) * b * square)
    away = one - z
    return np.where(sticks, z + third * away * away, third / np.where(sticks, one, theta - b))


def deflect(m: Manifolds, slip: Array, deflection: Array, limit: Array) -> Array:
    """Return the bristle deflections of n manifolds after the drift (m), (n, 2).

    Args:
        m: manifolds of tires.
        slip: velocity along the tangents in the drift, (n, 2).
        deflection: deflections before the drift, m, (n, 2).
        limit: maximum friction impulse mu p_n, N s, (n,).
    """
    real = limit.dtype.type
    moved = m.tire_kept * deflection + m.tire_gain * slip
    force = m.tire_stiffness * moved * m.tire_shares
    size = np.sqrt(force[:, 0] * force[:, 0] + force[:, 1] * force[:, 1])
    bound = real(3) * limit
    exceeds = size > bound
    return np.where(exceeds, bound / np.where(exceeds, size, real(1)), real(1))[:, None] * moved


def camber_torque(m: Manifolds, load: Array, rate: Array, response: Array, old: Array) -> Array:
    """Return the camber torque impulse about ``e1`` (N m s), (n,).

    Args:
        m: manifolds of tires.
        load: sum of the normal impulses, (n,).
        rate: angular velocity about ``e1`` with the current impulse ``old`` applied, rad/s, (n,).
        response: change of ``rate`` per unit of torque impulse, (n,).
        old: the current torque impulse, N m s.
    """
    real = load.dtype.type
    at_rest, slope, width = m.camber[:, 0], m.camber[:, 1], m.camber[:, 2]
    now = (at_rest - slope * (rate - response * old)) / (real(1) + slope * response)
    size, edge = np.abs(now), load * width * real(1.0 / 6.0)
    lifts = size > edge
    held = real(3) * edge - real(2) * edge * np.sqrt(edge / np.where(lifts, size, real(1)))
    return np.where(lifts, np.where(now < 0.0, -held, held), now)


def tire_pairs(w: StepBuffers, pair: Array) -> Array:
    """Return a mask of the shape pairs (n, 2) with a tire law, (n,)."""
    return np.asarray(w.pair_tables.law(pair[:, 0], pair[:, 1])[:, CODES["LAW_AT_FRICTION"]] == TIRE)
