"""Contact laws: soft normal forces, impacts and friction (Kosenko et al. 2015).

d = -gap is the penetration depth (m). u is the separation speed of the surfaces along the normal from A to B. p >= 0 is
the normal impulse on B. Arrays with the shape (n,) have one entry per manifold or per contact point.
``ContactLaw.numbers`` returns the parameters of a law.

Soft normal forces (``soften``) use the same law as springs (actuators/spring.py). F(d) is the elastic force, k = F'(d)
is its slope, and c is the damping. Stage kick applies the forces over the kick time H. h is the time step, and h_prev
is the previous time step. u_0 is the speed before the kick, and u is the speed after the solve. The mean force over H
gives

    p = P - D u,   P = H (F + h_prev k u_0/4 - c u_0/2),   D = H (h k/4 + c/2)

A sweep solves the law p = P - D u in the form ``u + gamma p = -b`` with gamma = 1/D and b = -P/D. The damping c is
constant (linear damping) or proportional to F (Hunt and Crossley). Let f be the speed of the contact point per unit
impulse. A stiff linear spring, with a large kappa = h^2 k f, would gain energy. For stability, its law replaces 1/4 by
max(1/4, 1/2 - 1/kappa), and adds the damping SPRING_DAMPING h k kappa/(1 + kappa).

Impacts (``impact_speed``): let a be the normal acceleration of the contact point in the kick, and e the coefficient of
restitution. At the start of the substep, the point has the speed u_s = u_0 + a h_prev/2. The contact point hits the
surface at the speed u_i = -sqrt(u_s^2 - 2 a gap). The solve sets its speed to ``-e u_i - a h/2``, so that the point has
the speed -e u_i half a step later. If |u_i| is below 2 |a| h, the contact rests and does not bounce (e = 0).

Coulomb friction (``coulomb``): the magnitude of the friction impulse p_t is at most mu p_n. If |p_t| is below this
limit, the point sticks. At the limit, p_t is opposite to the resulting velocity: u = K p_t - g = -x p_t with x > 0. K
is the tangential velocity change per unit impulse, and -g is the tangential velocity without friction. ``coulomb``
solves (K + x) p_t = g with |p_t| = mu p_n for x, by Newton's method on 1/|p_t| (More and Sorensen 1983).

gpusim/contact/patch.py describes the friction of contact patches (``patch_factors``).
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import CODES, FRICTION_PASSES, NO_FORCE, SPRING_DAMPING
from gpusim.contact.material import COMBINE
from gpusim.contact.patch import PATCH_NODES
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

SPRING, HERTZ, LINEAR, HUNT_CROSSLEY = (CODES[f"LAW_{name}"] for name in ("SPRING", "HERTZ", "LINEAR", "HUNT_CROSSLEY"))
COULOMB, REGULARIZED, CONTENSOU = CODES["LAW_COULOMB"], CODES["LAW_REGULARIZED"], CODES["LAW_CONTENSOU"]
# Indices of the parameters of a law.
NORMAL_AT, DAMPING_AT, FRICTION_AT, PRESSURE_AT, STIFFNESS_AT, COEFFICIENT_AT, SPEED_AT, PATCH_AT = range(8)


def max_(a: Array, b: Array | float) -> Array:
    """Return max(a, b), and return ``b`` if ``a`` is NaN. The kernels use the same rule."""
    return np.where(a > b, a, b)  # type: ignore[arg-type]


def min_number(real: np.dtype[np.floating]) -> float:  # type: ignore[type-arg]
    """Return the smallest divisor that the contact laws allow for the number type ``real``."""
    return float(np.finfo(real).tiny) * 1e6


def combined_friction(rule: Array, a: Array, b: Array) -> Array:
    """Return the friction coefficients (n,) of n shape pairs. See contact/material.py for ``rule``."""
    chosen = [rule == COMBINE.index("min"), rule == COMBINE.index("max"), rule == COMBINE.index("multiply")]
    return np.select(chosen, [np.minimum(a, b), np.maximum(a, b), a * b], np.sqrt(a * b))


def combined_arm(rule: Array, a: Array, b: Array) -> Array:
    """Return the arm of rolling or spinning friction for n shape pairs, (n,): maximum torque / normal force, m."""
    rule = np.where(rule == COMBINE.index("multiply"), COMBINE.index("mean"), rule)
    return np.where((a > 0.0) & (b > 0.0), combined_friction(rule, a, b), np.maximum(a, b))


def elastic_force(law: Array, radius: Array, modulus: Array, depth: Array) -> tuple[Array, Array]:
    """Return the elastic force (N) and its slope (N/m) at penetration depths d > 0.

    The law selects the force: k d^(3/2) (Hertz), k pi d^2 (R - d/3) or k d (spring).
    """
    parameter, root = law[:, STIFFNESS_AT], np.sqrt(depth)
    stiffness = np.where(parameter > 0.0, parameter, 4.0 / 3.0 * modulus * np.sqrt(radius))
    hertz = law[:, NORMAL_AT] == HERTZ
    force = np.where(hertz, stiffness * depth * root, parameter * (np.pi * depth * depth) * (radius - depth / 3.0))
    slope = np.where(hertz, 1.5 * stiffness * root, parameter * np.pi * depth * (2.0 * radius - depth))
    spring = law[:, NORMAL_AT] == SPRING
    return np.where(spring, parameter * depth, force), np.where(spring, parameter, slope)


def soften(
    w: StepBuffers, world: Array, law: Array, radius: Array, modulus: Array, gap: Array, speed: Array, response: Array
) -> tuple[Array, Array]:
    """Return the compliance gamma and bias b of contact points with a soft normal force.

    ``speed`` is the normal speed before stage kick, and ``response`` is the speed per unit impulse.
    """
    depth, before = -gap.astype(np.float64), speed.astype(np.float64)
    pressed = depth > 0.0
    kick, h_prev = w.kick_time[world, 0].astype(np.float64), w.h_prev[world, 0].astype(np.float64)
    force, slope = elastic_force(law, radius, modulus, np.where(pressed, depth, 0.0))
    coefficient, kind = law[:, COEFFICIENT_AT], law[:, DAMPING_AT]
    damping = np.where(kind == LINEAR, coefficient, np.where(kind == HUNT_CROSSLEY, coefficient * force, 0.0))
    swing = np.where(law[:, NORMAL_AT] == SPRING, w.h * w.h * slope * response.astype(np.float64), 0.0)
    damping = damping + SPRING_DAMPING * w.h * slope * (swing / (1.0 + swing))
    part = np.where(swing > 4.0, 0.5 - 1.0 / np.where(swing > 4.0, swing, 1.0), 0.25)
    impulse = kick * (force + part * h_prev * slope * before - 0.5 * damping * before)
    drop = max_(kick * (part * w.h * slope + 0.5 * damping), min_number(w.real))
    gamma = np.where(pressed, 1.0 / drop, 0.0).astype(w.real)
    return gamma, np.where(pressed, -impulse / drop, NO_FORCE).astype(w.real)


def impact_speed(w: StepBuffers, world: Array, restitution: Array, gap: Array, before: Array, kicked: Array) -> Array:
    """Return the separation speed of each contact point after an impact in this substep, or 0 without an impact.

    ``before`` and ``kicked`` are the normal speeds of the points before and after stage kick.
    """
    real, h = w.real.type, w.real.type(w.h)
    pull = np.zeros_like(kicked)
    if w.scheme != "semi_implicit":
        pull = (kicked - before) / w.kick_time[world, 0]
    now = before + real(0.5) * pull * w.h_prev[world, 0]
    square = now * now - real(2) * pull * gap
    lands = (restitution > 0.0) & (kicked < 0.0) & (square > 0.0) & ~(now > 0.0)
    speed = np.sqrt(np.where(lands, square, real(0)))
    lands &= ~(speed < real(2) * np.abs(pull) * h)
    return np.where(lands, restitution * speed - real(0.5) * pull * h, real(0))


def patch_radius(law: Array, radius: Array, gap: Array, points: Array) -> Array:
    """Return the radius of each contact patch (m), (n,).

    The radius is a parameter of the law, or sqrt(R d) with the radius of curvature R and the maximum depth d.
    """
    fixed_radius = law[:, PATCH_AT]
    from_depth = (law[:, FRICTION_AT] == CONTENSOU) & ~(fixed_radius > 0.0)
    if not from_depth.any():
        return fixed_radius
    depth = np.zeros(fixed_radius.shape)
    for k in range(gap.shape[1]):
        depth = np.where(k < points, max_(depth, -gap[:, k].astype(np.float64)), depth)
    return np.where(from_depth, np.sqrt(radius * depth), fixed_radius)


def coulomb(limit: Array, mass: Array, u: Array, p: Array) -> Array:
    """Return the Coulomb friction impulse of n contact points. Its magnitude is at most ``limit``.

    Args:
        limit: maximum friction impulse mu p_n, N s, (n,).
        mass: velocity of each contact point per unit impulse, (n, 6). The columns are the entries nn, tn, sn, tt, ts,
            ss of a symmetric matrix, with the normal n and the tangents t and s.
        u: velocity along both tangents with the current impulse ``p`` applied, m/s, (n, 2).
        p: current friction impulse along both tangents, N s, (n, 2).
    """
    k11, k12, k22 = mass[:, 3], mass[:, 4], mass[:, 5]
    u1, u2 = u[:, 0], u[:, 1]
    det = k11 * k22 - k12 * k12
    sticking = np.empty_like(p)
    sticking[:, 0] = p[:, 0] - (k22 * u1 - k12 * u2) / det
    sticking[:, 1] = p[:, 1] - (k11 * u2 - k12 * u1) / det
    result = np.where((limit > 0.0)[:, None], sticking, limit.dtype.type(0))
    square = sticking[:, 0] * sticking[:, 0] + sticking[:, 1] * sticking[:, 1]
    slides = np.flatnonzero((limit > 0.0) & ~(square <= limit * limit))
    if slides.size:
        result[slides] = _on_circle(limit[slides], mass[slides], u[slides], p[slides])
    return result


def _on_circle(limit: Array, mass: Array, u: Array, p: Array) -> Array:
    real = limit.dtype.type
    k11, k12, k22 = mass[:, 3], mass[:, 4], mass[:, 5]
    g1, g2 = k11 * p[:, 0] + k12 * p[:, 1] - u[:, 0], k12 * p[:, 0] + k22 * p[:, 1] - u[:, 1]
    x = max_(np.sqrt(g1 * g1 + g2 * g2) / limit - real(0.5) * (k11 + k22), real(0))
    for _ in range(FRICTION_PASSES):
        a, c = k11 + x, k22 + x
        # p = r/det(K + x). The code uses r instead of p, to avoid a division by the determinant.
        r1, r2 = c * g1 - k12 * g2, a * g2 - k12 * g1
        square = r1 * r1 + r2 * r2
        bend = c * r1 * r1 - real(2) * k12 * r1 * r2 + a * r2 * r2
        x = max_(x + (np.sqrt(square) - limit * (a * c - k12 * k12)) * square / (bend * limit), real(0))
    # The next lines use the direction of the solution, but not the length.
    t1, t2 = (k22 + x) * g1 - k12 * g2, (k11 + x) * g2 - k12 * g1
    fit = limit / np.sqrt(t1 * t1 + t2 * t2)
    return np.stack([fit * t1, fit * t2], axis=1)


def regularized(limit: Array, speed: Array, mass: Array, u: Array, p: Array) -> Array:
    """Return the impulse -g u of regularized friction, with g = limit/max(|u|, speed). See :func:`coulomb`."""
    real = limit.dtype.type
    k11, k12, k22 = mass[:, 3], mass[:, 4], mass[:, 5]
    f1, f2 = u[:, 0] - (k11 * p[:, 0] + k12 * p[:, 1]), u[:, 1] - (k12 * p[:, 0] + k22 * p[:, 1])
    size = np.sqrt(u[:, 0] * u[:, 0] + u[:, 1] * u[:, 1])
    g = limit / max_(size, speed)
    a, b, c = real(1) + k11 * g, k12 * g, real(1) + k22 * g
    scale = real(1) / (a * c - b * b)
    return np.stack([-g * ((c * f1 - b * f2) * scale), -g * ((a * f2 - b * f1) * scale)], axis=1)


def patch_factors(table: Array, pressure: Array, slide: Array, rim: Array, real: np.dtype[np.floating]) -> Array:  # type: ignore[type-arg]
    """Return the factors f (force) and t (torque) of n contact patches, (n, 2). See gpusim/contact/patch.py.

    ``slide`` is the sliding speed, and ``rim`` is the speed of the patch's rim due to spin (m/s).
    """
    s = slide.astype(np.float64) / (slide.astype(np.float64) + rim.astype(np.float64))
    position = s * (PATCH_NODES - 1)
    node = np.clip(np.where(np.isfinite(position), position, 0.0).astype(np.int64), 0, PATCH_NODES - 2)
    low, high = table[pressure, node], table[pressure, node + 1]
    return (low + (position - node)[:, None] * (high - low)).astype(real)
