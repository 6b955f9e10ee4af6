"""Constraint rows of contact manifolds.

A contact point has three constraint rows along the axes of the contact frame: the normal n from A to B, and two
tangents. The normal row is ``u + b + gamma p = 0``. The tangential rows follow a friction law. u is the velocity of the
point on B relative to the point on A. b is the bias, gamma the compliance, and p the impulse.

The state stores velocities at half steps, so the rows extrapolate moment arms and normals by half a step, for example
``arm + h/(2 h_prev) (arm - arm_before)``.

The bias of an open gap is ``gap/h``. This bias makes a landing body end the substep on the surface. The compliance
gamma of a touching point is a fraction of the point's velocity change per unit impulse. Under load, this compliance
lets the surfaces sink into each other at the speed gamma p. As the penetration grows, the bias ``-carried`` compensates
this speed: carried = min(PUSH_SHARE over/h, gamma p). ``over`` is the penetration beyond the slop. Stage relax removes
the compliance after the drift.

A sticking point stores its slip (m) along the tangents. In each substep, the solver corrects the fraction SLIP_SHARE of
the slip. This correction prevents creep of resting contacts.
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import (
    FIRM_MANIFOLDS,
    FLIGHT,
    PUSH_BAND,
    PUSH_SHARE,
    PUSH_WEIGHTS,
    PUSH_YIELD,
    PUSH_YIELD_JOINED,
    REST_WEIGHTS,
    ROTATION_LIMIT,
    SLIDING,
    SLIDING_SHARE,
    SLIP_SHARE,
    SOFT_JOINED,
    SOFTEST,
    STICKING,
)
from gpusim.description.contact_fields import POINTS
from gpusim.reference.contacts import contact_laws, contact_tire, manifolds
from gpusim.reference.contacts.contact_laws import max_
from gpusim.reference.contacts.manifolds import Manifolds
from gpusim.reference.joints.curvature import midpoint_rate
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matvec
from gpusim.typing import Array

MATERIALS = {
    "friction": "shape_friction", "rolling": "shape_rolling_friction", "spinning": "shape_spinning_friction",
    "restitution": "shape_restitution",
}  # fmt: skip
"""Name of the parameter array for each material property of a manifold."""
SIDES = np.array([-1, 1])
"""Signs of a manifold's wrench on body A and on body B."""


def cross(a: Array, b: Array) -> Array:
    """Return the cross product over the last axis. The result is bitwise independent of the batch size."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out


def dot(a: Array, b: Array) -> Array:
    """Return the dot product over the last axis."""
    return np.asarray(np.vecdot(a, b))


def tangents(normal: Array) -> Array:
    """Return two tangents for each of n unit normals (n, 3), shape (n, 2, 3). Method of Duff et al. 2017."""
    x, y, z = normal[:, 0], normal[:, 1], normal[:, 2]
    one = normal.dtype.type(1)
    sign = np.where(z < 0.0, -one, one)
    a = -one / (sign + z)
    b = x * y * a
    first = np.stack([one + sign * x * x * a, sign * b, -sign * x], axis=1)
    return np.stack([first, np.stack([b, sign + y * y * a, -y], axis=1)], axis=1)


def prepare(w: StepBuffers) -> None:
    """Set the geometry, materials, masses and warm-start impulses of all manifolds."""
    w.touch = None if w.contacts is None else manifolds.gather(w)
    if w.touch is None:
        return
    m = w.touch.all
    arms, gap = _arms_and_gaps(w, m)
    has = m.exists
    m.gap[:] = np.where(has, gap, 0.0)
    middle = np.where(has[..., None, None], arms, 0.0).sum(axis=1) / m.points[:, None, None]
    m.arm[:] = middle
    m.offset[:] = np.where(has[..., None], arms[:, :, 0] - middle[:, None, 0], 0.0)
    m.frame[:, 0] = w.state.arrays["pair_normal"][m.world, m.pair]
    m.frame[:, 1:] = tangents(m.frame[:, 0])
    contact_tire.rotate_frames(w, m)
    _materials(w, m)
    _start_impulses(w, m)
    _levers(m)
    for k, part in enumerate(w.touch.lists):
        free_response(w, part, split=w.touch.overflow and k == 0)
        point_masses(part)
        part.push_yield[:] = w.real.type(PUSH_YIELD) * part.mass[..., 0]


def anchors(w: StepBuffers, m: Manifolds) -> Array:
    """Return the vectors from the centers of mass of A and B to the 4 contact points, world frame (m), (n, 4, 2, 3)."""
    stored = w.state.arrays["contact_anchor"][m.world, m.pair].reshape(-1, POINTS, 2, 3)
    rotation = w.rotation[m.world[:, None], m.body]
    rolls = w.model.contact.rolls[m.shape]
    return np.where(rolls[:, None, :, None], stored, matvec(rotation[:, None], stored))


def _arms_and_gaps(w: StepBuffers, m: Manifolds) -> tuple[Array, Array]:
    """Return the moment arms of contact points about both centers of mass (n, 4, 2, 3), and the gaps (n, 4), in m."""
    arms = anchors(w, m)
    center = w.state.arrays["position"][m.world[:, None], m.body]
    apart = (center[:, 1] - center[:, 0])[:, None] + (arms[:, :, 1] - arms[:, :, 0])
    normal = w.state.arrays["pair_normal"][m.world, m.pair][:, None]
    gap = dot(normal, apart)
    # The point moves with the body of the rolling surface. The point of the other surface stays opposite.
    rolls = w.model.contact.rolls[m.shape]
    fraction = np.where(rolls[:, 0] == rolls[:, 1], 0.5, np.where(rolls[:, 0], 0.0, 1.0))[:, None, None]
    along = 0.5 * gap[..., None] * normal
    across = apart - gap[..., None] * normal
    arms[:, :, 0] += along + fraction * across
    arms[:, :, 1] -= along + (1.0 - fraction) * across
    return arms, gap


def _materials(w: StepBuffers, m: Manifolds) -> None:
    """Set friction and restitution from the materials of both shapes, or from the custom material of the pair."""
    a, b = w.pair_tables.surfaces(m.shape[:, 0], m.shape[:, 1])
    first, second, rule = w.pair_tables.rubbing_surfaces(a, b)
    for name, parameter in MATERIALS.items():
        values, material = w.broadcast(w.parameters[parameter]), getattr(m, name)
        if name == "restitution":
            material[:] = np.maximum(values[m.world, a], values[m.world, b])
            continue
        combined = contact_laws.combined_friction if name == "friction" else contact_laws.combined_arm
        material[:] = combined(rule, values[m.world, first], values[m.world, second])


def _start_impulses(w: StepBuffers, m: Manifolds) -> None:
    s, real = w.state.arrays, w.real
    before, kick = s["kick_before"][m.world].astype(real), w.kick_time[m.world, 0]
    factor = np.where(before > 0.0, kick / np.where(before > 0.0, before, real.type(1)), real.type(0))
    impulse = to_frame(m, s["contact_impulse"][m.world, m.pair].astype(real) * factor[:, None, None])
    impulse[..., 0] = max_(impulse[..., 0], real.type(0))
    m.impulse[:] = np.where(m.exists[..., None], impulse, real.type(0))
    torque = to_frame(m, s["pair_torque"][m.world, m.pair].astype(real) * factor[:, None])
    m.torque[:] = np.where(_has_torque(m), torque, real.type(0))
    m.shear[:] = to_frame(m, s["pair_force"][m.world, m.pair].astype(real) * factor[:, None])[:, 1:]


def _has_torque(m: Manifolds) -> Array:
    law = m.law[:, contact_laws.FRICTION_AT]
    patch, tire = law == contact_laws.CONTENSOU, contact_tire.tires(m)
    rolls = ~patch & (m.rolling > 0.0)
    ahead = np.where(tire, m.law[:, contact_tire.WIDTH_AT] > 0.0, rolls)
    across = np.where(tire, m.law[:, contact_tire.ROLLING_AT] > 0.0, rolls)
    return np.stack([patch | (m.spinning > 0.0), ahead, across], axis=1)


def to_frame(m: Manifolds, vector: Array) -> Array:
    """Transform vectors (n, 3) or (n, 4, 3) from the world frame to the contact frame of their manifold."""
    return matvec(m.frame if vector.ndim == 2 else m.frame[:, None], vector)


def from_frame(m: Manifolds, vector: Array) -> Array:
    """Transform vectors (n, 3) or (n, 4, 3) from the contact frame of their manifold to the world frame."""
    axes = m.frame.swapaxes(-1, -2)
    return matvec(axes if vector.ndim == 2 else axes[:, None], vector)


def _levers(m: Manifolds) -> None:
    """Compute the wrench of a unit impulse along each axis of the contact frame, for each contact point."""
    axes = m.frame.swapaxes(-1, -2)[:, None]
    m.lever[:, :, :3] = axes
    m.lever[:, :, 3:] = cross(m.offset[:, :, None], m.frame[:, None]).swapaxes(-1, -2)


def side_motions(m: Manifolds, wrench: Array) -> Array:
    """Return the twist changes (n, ..., 2, 6) of bodies A and B that impulse wrenches (n, ..., 6) cause.

    The wrenches act on B, and the opposite wrenches act on A. n is the number of manifolds.
    """
    more = (1,) * (wrench.ndim - 2)
    arm, sign = m.arm.reshape(-1, *more, 2, 3), SIDES[:, None].astype(wrench.dtype)
    force, torque = wrench[..., None, :3], wrench[..., None, 3:]
    out = np.empty((*wrench.shape[:-1], 2, 6), wrench.dtype)
    out[..., :3] = sign * force * m.inverse_mass.reshape(-1, *more, 2, 1)
    out[..., 3:] = matvec(m.inertia_inverse_effective.reshape(-1, *more, 2, 3, 3), sign * (cross(arm, force) + torque))
    return out


def relative_motion(m: Manifolds, motion: Array) -> Array:
    """Return the twist of B relative to A at the manifold's center, (n, ..., 6).

    ``motion`` contains the twists of A and B, (n, ..., 2, 6).
    """
    arm = m.arm.reshape(-1, *(1,) * (motion.ndim - 3), 2, 3)
    at_middle = motion[..., :3] + cross(motion[..., 3:], arm)
    return np.concatenate(
        [at_middle[..., 1, :] - at_middle[..., 0, :], motion[..., 1, 3:] - motion[..., 0, 3:]], axis=-1
    )


def relative_twist(m: Manifolds, twist: Array) -> Array:
    """Return the twist of B relative to A at the manifold's center, (n, 6), from all twists (num_worlds, bodies, 6)."""
    return relative_motion(m, twist[m.world[:, None], m.body])


def free_response(w: StepBuffers, m: Manifolds, split: bool) -> None:
    """Compute the response matrix of each manifold without the effect of joints."""
    units = np.broadcast_to(np.eye(6, dtype=w.real), (m.world.size, 6, 6))
    motion = side_motions(m, units)
    if split:
        assert w.contacts is not None
        parts = np.maximum(w.contacts.body_parts[m.world[:, None], m.body], 1).astype(w.real)
        motion = parts[:, None, :, None] * motion
    m.response[:] = relative_motion(m, motion).swapaxes(-1, -2)


def point_masses(m: Manifolds) -> None:
    """Compute the velocity of each contact point per unit impulse, from the response matrix of its manifold."""
    m.moved[:] = np.matmul(m.response[:, None], m.lever)
    mass = np.matmul(m.lever.swapaxes(-1, -2), m.moved)
    for k, (i, j) in enumerate(((0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (2, 2))):
        m.mass[..., k] = mass[..., i, j]


def set_bias(w: StepBuffers) -> None:
    """Set the biases, soft normal forces, impacts and friction parameters of all contact points, after stage kick."""
    m = w.touch.all
    a, b = m.shape[:, 0], m.shape[:, 1]
    radius = w.pair_tables.radius(a, b)
    m.speed[:] = m.law[:, contact_laws.SPEED_AT]
    m.patch[:] = contact_laws.patch_radius(m.law, radius, m.gap, m.points)
    before, kicked = relative_twist(m, w.twist_before), relative_twist(m, w.twist_kicked)
    softness = _softness(w, m)
    carried = _carried(w, m, softness)
    for k in range(int(m.points.max())):
        _set_bias_points(w, m, k, before, kicked, softness, carried)
    soft = np.flatnonzero(m.soft)
    if soft.size:
        _soften(w, m, soft, radius[soft], before[soft])
    contact_tire.prepare(w, m, before)


def velocity_at(twist: Array, offset: Array) -> Array:
    """Return the velocity of B relative to A at the positions ``offset``, measured from the manifold's center."""
    return cross(twist[..., 3:], offset) + twist[..., :3]


def _middle_bend(w: StepBuffers, m: Manifolds, offset: Array) -> Array:
    """Return the relative velocity changes of contact points due to rotation in the first half of the drift, (n, 3)."""
    twist = w.twist_predicted
    rate_change = np.where(w.topology.dynamic[:, None], midpoint_rate(w, twist) - twist[..., 3:], 0.0)
    rate_change = rate_change.astype(w.real)
    moved = cross(rate_change[m.world[:, None], m.body], m.arm + offset[:, None])
    return np.asarray(moved[:, 1] - moved[:, 0])


def _rotation_scale(w: StepBuffers, rates: Array) -> Array:
    """Return the factor (0 to 1) that reduces the bias from rotation if the bodies rotate fast, (n,)."""
    squares = dot(rates, rates)
    angle = w.real.type(w.h * w.h / (ROTATION_LIMIT * ROTATION_LIMIT)) * max_(squares[:, 0], squares[:, 1])
    square, one = angle * angle, w.real.type(1)
    return np.asarray(one / (square * square + one))


def _set_bias_points(
    w: StepBuffers, m: Manifolds, k: int, before: Array, kicked: Array, softness: Array, carried: Array
) -> None:
    assert w.contacts is not None
    real, h = w.real.type, w.real.type(w.h)
    offset, gap, zero = m.offset[:, k], m.gap[:, k], real(0)
    u, v = velocity_at(before, offset), velocity_at(kicked, offset)
    h_prev = w.h_prev[m.world, 0]
    continues = _continues(w, m, k)
    half = h / (real(2) * np.where(h_prev > 0.0, h_prev, real(1)))
    arm_change = half[:, None, None] * ((m.arm + offset[:, None]) - _arm_before(w, m, k))
    rates = w.twist_before[m.world[:, None], m.body][..., 3:]
    velocity_change, rotation_scale = cross(rates, arm_change), _rotation_scale(w, rates)
    bend = velocity_change[:, 1] - velocity_change[:, 0]
    normal_term: Array = np.zeros_like(gap)
    # The code recomputes points on rolling surfaces in every substep, so the normals and the rotations of the bodies
    # are known.
    new: Array = np.any(w.model.contact.rolls[m.shape], axis=1) | (w.config.substeps == 1)
    if new.any():
        bend = bend + np.where(new[:, None], _middle_bend(w, m, offset), zero)
        normal_term = np.where(
            continues & new, rotation_scale * (half * dot(w.contacts.pair_bend[m.world, m.pair], u)), zero
        )
    slip = to_frame(m, w.state.arrays["contact_slip"][m.world, m.pair, k].astype(w.real) * (real(SLIP_SHARE) / h))
    slip = np.where(contact_tire.tires(m)[:, None], zero, slip)
    bias = to_frame(m, np.where(continues[:, None], rotation_scale[:, None] * bend, zero))
    slop = real(w.config.contact_slop)
    # Within the slop, the normal velocity of points is 0, so that round-off does not change the distribution of loads.
    # Bouncing points and points on bodies with joints have no slop.
    apart, over = gap > np.where((m.restitution > 0.0) | m.articulated, zero, slop), -(gap + slop)
    deep = (over > 0.0) & (k < m.points)
    # A trial step has no drift.
    trial = w.contacts.forward_only[m.world] != 0
    first = w.state.arrays["contact_age"][m.world, m.pair, k] == 0
    normal = m.frame[:, 0]
    far = np.where(m.articulated, gap > slop, apart)
    rigid = far | first | trial | (m.articulated & ((over > 0.0) | (dot(normal, v) < _rest_speed(w, m))))
    gamma = np.where(rigid, zero, softness * m.mass[:, k, 0])
    whole = np.minimum(real(PUSH_SHARE) * over / h, real(w.config.max_depenetration_speed))
    sunk = np.where(m.articulated, np.where(rigid, zero, -gap / h), whole)
    held = np.where((sunk > 0.0) & (k < m.points) & ~trial, np.minimum(sunk, carried), zero)
    closes, more = np.where(apart, gap / h, zero), whole - held
    compliance_ratio = np.where(m.articulated, real(PUSH_YIELD_JOINED), real(PUSH_YIELD))
    pushes = deep & (more > real(PUSH_BAND * PUSH_SHARE) * slop / h)
    push = np.where(pushes, np.where(trial, zero, (real(1) + compliance_ratio) * more), -closes)
    bias[:, 0] = closes - held + bias[:, 0] + normal_term
    bias[:, 1:] += slip[:, 1:]
    impact = contact_laws.impact_speed(w, m.world, m.restitution, gap, dot(normal, u), dot(normal, v))
    has = k < m.points
    m.carried[:, k] = np.where(has, held, zero)
    m.pushed[:, k] = zero
    m.bias[:, k] = np.where(has[:, None], bias, zero)
    m.gamma[:, k] = np.where(has, gamma, zero)
    m.push[:, k] = np.where(has, np.where(m.soft, -real(contact_laws.NO_FORCE), push), zero)
    m.impact[:, k] = np.where(has & ~m.soft, impact, zero)


def _softness(w: StepBuffers, m: Manifolds) -> Array:
    """Return the compliance of the contact rows before the drift, divided by the velocity per unit impulse, (n,)."""
    assert w.contacts is not None
    sweeps = FIRM_MANIFOLDS * w.config.iterations / np.minimum(w.contacts.touching[m.world], FIRM_MANIFOLDS)
    return np.where(m.articulated, SOFT_JOINED, 1.0 / np.maximum(sweeps * sweeps, SOFTEST)).astype(w.real)


def _rest_speed(w: StepBuffers, m: Manifolds) -> Array:
    """Return the negative normal velocity (m/s) below which a contact point counts as moving, (n,)."""
    weight = np.linalg.norm(w.parameters["gravity"], axis=-1) * (-REST_WEIGHTS * w.h)
    return np.broadcast_to(weight, w.num_worlds)[m.world].astype(w.real)


def _carried(w: StepBuffers, m: Manifolds, softness: Array) -> Array:
    """Return the speed (m/s) at which the surfaces of n manifolds sink into each other under load, (n,)."""
    weight = np.linalg.norm(w.parameters["gravity"], axis=-1) * (PUSH_WEIGHTS * w.h)
    min_load = np.broadcast_to(weight, w.num_worlds)[m.world].astype(w.real)
    load = np.where(m.exists, m.mass[..., 0] * m.impulse[..., 0], w.real.type(0)).max(axis=1)
    return softness * np.maximum(min_load, load)


def _continues(w: StepBuffers, m: Manifolds, k: int) -> Array:
    """Return whether the state contains the previous moment arms of contact point k, for n manifolds, (n,)."""
    continues = (w.state.arrays["contact_age"][m.world, m.pair, k] > 0) & (w.h_prev[m.world, 0] > 0.0)
    return np.zeros_like(continues) if w.scheme == "semi_implicit" else continues


def _arm_before(w: StepBuffers, m: Manifolds, k: int) -> Array:
    return w.state.arrays["contact_arm"][m.world, m.pair, k].reshape(-1, 2, 3).astype(w.real)


def _soften(w: StepBuffers, m: Manifolds, soft: Array, radius: Array, before: Array) -> None:
    modulus = w.pair_tables.modulus(m.shape[soft, 0], m.shape[soft, 1])
    law, world, normal = m.law[soft], m.world[soft], m.frame[soft, 0]
    for k in range(int(m.points[soft].max())):
        speed = dot(normal, velocity_at(before, m.offset[soft, k]))
        gamma, bias = contact_laws.soften(w, world, law, radius, modulus, m.gap[soft, k], speed, m.mass[soft, k, 0])
        has = k < m.points[soft]
        m.gamma[soft, k] = np.where(has, gamma, m.gamma[soft, k])
        m.bias[soft, k, 0] = np.where(has, bias, m.bias[soft, k, 0])
        m.carried[soft, k] = 0.0


def slip(w: StepBuffers) -> None:
    """Update the slip of sticking contact points, and store the moment arms for the next substep."""
    if w.contacts is not None:
        w.contacts.arrays["substep"] += 1
    if w.touch is None:
        return
    m, real, h = w.touch.all, w.real.type, w.real.type(w.h)
    stored = w.state.arrays["contact_slip"][m.world, m.pair]
    u = to_frame(m, velocity_at(relative_twist(m, w.twist)[:, None], m.offset))
    slipped = to_frame(m, stored.astype(w.real))
    # The bias includes the velocity from the rotation of the arms, and the correction of the slip.
    rotation_velocity = m.bias - real(SLIP_SHARE) * slipped / h
    # Only Coulomb friction holds a point in place.
    is_coulomb = (m.law[:, contact_laws.FRICTION_AT] == contact_laws.COULOMB)[:, None]
    slipped = np.where(
        (is_coulomb & (_modes(m) == STICKING))[..., None], slipped + h * (u + rotation_velocity), real(0)
    )
    slipped[..., 0] = 0.0
    slipped = from_frame(m, slipped)
    # The slip of a tire is in the frame of the wheel.
    tire = np.flatnonzero(contact_tire.tires(m))
    if tire.size:
        part = m.part(tire)
        limit = part.friction * _load(part)[:, 0]
        bristles = contact_tire.deflect(part, (u + m.bias)[tire, 0, 1:], stored[tire, 0, 1:].astype(w.real), limit)
        slipped[tire, 0, 1:] = bristles
    _keep(w, "contact_slip", slipped)
    _keep(w, "contact_arm", (m.arm[:, None] + m.offset[:, :, None]).reshape(-1, POINTS, 6))
    _keep(w, "contact_age", w.state.arrays["contact_age"][m.world, m.pair] + 1)


def store(w: StepBuffers) -> None:
    """Store the contact impulses and modes in the state."""
    if w.touch is None:
        return
    m, s = w.touch.all, w.state.arrays
    bounced = (m.impact > 0.0) & (m.impulse[..., 0] > 0.0)
    _keep(w, "contact_impulse", np.where(bounced[..., None], w.real.type(0), from_frame(m, m.impulse)))
    _keep(w, "contact_mode", _modes(m))
    shear = np.concatenate([np.zeros_like(m.shear[:, :1]), m.shear], axis=1)
    s["pair_torque"][m.world, m.pair] = from_frame(m, m.torque)
    s["pair_force"][m.world, m.pair] = from_frame(m, shear)


def _keep(w: StepBuffers, name: str, values: Array) -> None:
    """Write values (n, 4, ...) of contact points to the state array ``name``. Skip unused entries."""
    m, target = w.touch.all, w.state.arrays[name]
    has = m.exists.reshape(*m.exists.shape, *(1,) * (values.ndim - 2))
    target[m.world, m.pair] = np.where(has, values, target[m.world, m.pair])


def rubbing_load(mass: Array, gamma: Array, normal: Array, soft: Array) -> Array:
    """Return the normal impulse p_n (N s) that enters the friction limit mu p_n.

    ``mass`` is the normal velocity of the contact point per unit normal impulse (1/kg).
    """
    one = mass.dtype.type(1)
    ratio = gamma / np.where(mass > 0.0, mass, one)
    return normal * np.where(soft, one, one + ratio)


def _load(m: Manifolds) -> Array:
    return rubbing_load(m.mass[..., 0], m.gamma, m.impulse[..., 0], (m.soft | m.articulated)[:, None]) + m.pushed


def _modes(m: Manifolds) -> Array:
    """Return the mode of each contact point, (n, 4): flight, sliding or sticking."""
    load, rubs = _load(m), m.impulse[..., 1:]
    rubs = np.where(contact_tire.tires(m)[:, None, None], m.tire_shares[:, None] * rubs, rubs)
    rub = np.sqrt(rubs[..., 0] * rubs[..., 0] + rubs[..., 1] * rubs[..., 1])
    slides = rub >= load.dtype.type(SLIDING_SHARE) * m.friction[:, None] * load
    return np.where(load > 0.0, np.where(slides, SLIDING, STICKING), FLIGHT).astype(np.int32)
