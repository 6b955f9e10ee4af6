"""Sweeps over contact manifolds. A sweep solves the impulses of all contact points one after another (Gauss-Seidel).

For each manifold, a sweep first computes the twist of B relative to A at the manifold's center. For each contact point,
it solves first the normal impulse, then the friction. Last, it solves the friction torques of the manifold.

A sweep solves all manifolds of a list (manifolds.py) from the same velocities. Each color has a list. Two manifolds of
one color never share a moving body. Another list, the overflow, contains manifolds without a color. These manifolds may
share a moving body. A body with n overflow manifolds is split into n parts, one for each manifold. The motion of the
body is the mean of the motions of its parts (colored_solve.py). Stages solve and relax use the same sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.contact.constants import PASS_SETTLED, PATCH_STICK
from gpusim.contact.patch import patch_table
from gpusim.description.contact_fields import POINTS
from gpusim.reference.contacts import contact_laws, contact_rows, contact_tire
from gpusim.reference.contacts.contact_laws import max_
from gpusim.reference.contacts.contact_rows import dot
from gpusim.reference.contacts.manifolds import SOLVED, Manifolds
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Sweep:
    """Intermediate results of a sweep over n manifolds."""

    twist: Array
    """(n, 6) twist of B relative to A at the center of the manifold."""
    wrench: Array
    """(n, 6) sum of the wrenches that the sweep has applied, about the center of the manifold."""
    max_change: Array
    """(n,) greatest change of an impulse."""

    def note(self, change: Array) -> None:
        """Update ``max_change`` with impulse changes (n,) of the first n manifolds."""
        max_change = self.max_change[: change.shape[0]]
        np.maximum(max_change, np.abs(change), out=max_change)

    def apply(self, m: Manifolds, wrench: Array) -> None:
        """Apply an impulse wrench (n, 6) about the center of each manifold."""
        self.twist += np.matvec(m.response, wrench)  # type: ignore[call-overload, unused-ignore]
        self.wrench += wrench


def start_sweep(m: Manifolds, velocity: Array) -> Sweep:
    """Start a sweep from the twists ``velocity`` of all bodies, (num_worlds, bodies, 6)."""
    twist = contact_rows.relative_twist(m, velocity)
    return Sweep(twist, np.zeros_like(twist), np.zeros(m.world.size, twist.dtype))


def push_point(m: Manifolds, k: int, n: int, change: Array, s: Sweep) -> None:
    """Apply impulse changes (n, 3) to contact point k of the first n manifolds, in their contact frames."""
    s.twist[:n] += np.matvec(m.moved[:n, k], change)  # type: ignore[call-overload, unused-ignore]
    s.wrench[:n] += np.matvec(m.lever[:n, k], change)  # type: ignore[call-overload, unused-ignore]
    for j in range(3):
        s.note(change[:, j])


def point_velocity(m: Manifolds, k: int, n: int, s: Sweep) -> Array:
    """Return the velocities of contact point k of the first n manifolds, in their contact frames, (n, 3)."""
    return np.asarray(np.vecmat(s.twist[:n], m.lever[:n, k]))  # type: ignore[attr-defined, unused-ignore]


def sweep_point(m: Manifolds, k: int, n: int, s: Sweep) -> None:
    """Solve the normal impulse and then the friction of contact point k, in the first n manifolds."""
    mass, gamma, old = m.mass[:n, k], m.gamma[:n, k], m.impulse[:n, k]
    u = point_velocity(m, k, n, s) + m.bias[:n, k]
    u[:, :1] += m.floor[:n, k, :1] * old[:, :1]
    u[:, 1:] += m.floor[:n, k, 1:] * old[:, 1:]
    new = old.copy()
    new[:, 0] = max_(old[:, 0] - (u[:, 0] + gamma * old[:, 0]) / (mass[:, 0] + gamma), mass.dtype.type(0))
    u[:, 1:] += mass[:, 1:3] * (new[:, 0] - old[:, 0])[:, None]
    load = contact_rows.rubbing_load(mass[:, 0], gamma, new[:, 0], m.soft[:n] | m.articulated[:n])
    limit = m.friction[:n] * (load + m.pushed[:n, k])
    law = m.law[:n, contact_laws.FRICTION_AT]
    rubs = _which(law == contact_laws.COULOMB)
    if rubs is not None:
        new[rubs, 1:] = contact_laws.coulomb(limit[rubs], mass[rubs], u[rubs, 1:], old[rubs, 1:])
    rubs = _which(law == contact_laws.REGULARIZED)
    if rubs is not None:
        new[rubs, 1:] = contact_laws.regularized(limit[rubs], m.speed[:n][rubs], mass[rubs], u[rubs, 1:], old[rubs, 1:])
    rubs = _which(law == contact_tire.TIRE)
    if rubs is not None:
        new[rubs, 1:] = contact_tire.brush(m.part(slice(n)), rubs, limit[rubs], mass[rubs], u[rubs, 1:], old[rubs, 1:])
    change = new - old
    old[:] = new
    m.delta[:n, k] += change
    push_point(m, k, n, change, s)


def _which(mask: Array) -> Any:
    if mask.all():
        return slice(None)
    return np.flatnonzero(mask) if mask.any() else None


def total_normal(m: Manifolds) -> Array:
    """Return the sum of the normal impulses of each manifold, (n,)."""
    total = np.zeros(m.world.size, m.impulse.dtype)
    for k in range(POINTS):
        total = total + np.where(k < m.points, m.impulse[:, k, 0], total.dtype.type(0))
    return total


def rotational_response(m: Manifolds, axis: Array) -> Array:
    """Return the angular velocity about ``axis`` per unit angular impulse about ``axis``, (n,)."""
    return dot(axis, np.matvec(m.response[:, 3:, 3:], axis))  # type: ignore[call-overload, unused-ignore]


def _push_torque(m: Manifolds, axis: Array, change: Array, s: Sweep) -> None:
    s.apply(m, np.concatenate([np.zeros_like(axis), axis * change[:, None]], axis=1))
    s.note(change)


def _apply_rotational_friction(m: Manifolds, axis: int, arm: Array, load: Array, s: Sweep) -> None:
    """Apply a friction torque impulse of at most ``arm * load`` about one axis of the contact frame."""
    about, limit = m.frame[:, axis], arm * load
    now = np.clip(m.torque[:, axis] - dot(about, s.twist[:, 3:]) / rotational_response(m, about), -limit, limit)
    change = np.where(arm > 0.0, now - m.torque[:, axis], now.dtype.type(0))
    m.torque[:, axis] = np.where(arm > 0.0, now, m.torque[:, axis])
    _push_torque(m, about, change, s)


def sweep_tire(m: Manifolds, s: Sweep) -> None:
    """Solve spinning friction about the normal, camber torque and rolling resistance of tires."""
    load, ahead = total_normal(m), m.frame[:, 1]
    _apply_rotational_friction(m, 0, m.spinning, load, s)
    rate, response = dot(ahead, s.twist[:, 3:]), rotational_response(m, ahead)
    now = contact_tire.camber_torque(m, load, rate, response, m.torque[:, 1])
    change = now - m.torque[:, 1]
    m.torque[:, 1] = now
    _push_torque(m, ahead, change, s)
    _apply_rotational_friction(m, 2, m.rolling, load, s)


def sweep_torques(m: Manifolds, s: Sweep) -> None:
    """Solve spinning friction about the normal, then rolling friction about both tangents together."""
    load, frame, spinning, rolling = total_normal(m), m.frame, m.spinning, m.rolling
    if (spinning > 0.0).any():
        _apply_rotational_friction(m, 0, spinning, load, s)
    if not (rolling > 0.0).any():
        return
    limit = rolling * load
    stiff = max_(rotational_response(m, frame[:, 1]), rotational_response(m, frame[:, 2]))
    now = m.torque[:, 1:] - np.matvec(frame[:, 1:], s.twist[:, 3:]) / stiff[:, None]  # type: ignore[call-overload, unused-ignore]
    size = now[:, 0] * now[:, 0] + now[:, 1] * now[:, 1]
    slides = size > limit * limit
    fit = np.where(slides, limit / np.sqrt(np.where(slides, size, size.dtype.type(1))), size.dtype.type(1))
    now = np.where((rolling > 0.0)[:, None], fit[:, None] * now, m.torque[:, 1:])
    change = now - m.torque[:, 1:]
    m.torque[:, 1:] = now
    for j in range(2):
        _push_torque(m, frame[:, 1 + j], change[:, j], s)


def sweep_patch(m: Manifolds, s: Sweep) -> None:
    """Solve the friction of contact patches against sliding and spinning (gpusim/contact/patch.py)."""
    dtype, frame, shear, patch = m.impulse.dtype, m.frame, m.shear, m.patch
    real = dtype.type
    load = m.friction * total_normal(m)
    u = np.matvec(frame[:, 1:], s.twist[:, :3])  # type: ignore[call-overload, unused-ignore]
    spin = dot(frame[:, 0], s.twist[:, 3:])
    slide, rim = np.sqrt(u[:, 0] * u[:, 0] + u[:, 1] * u[:, 1]), patch * np.abs(spin)
    moves = slide + rim > 0.0
    pressure = m.law[:, contact_laws.PRESSURE_AT].astype(np.int64)
    factors = contact_laws.patch_factors(
        patch_table(), pressure, np.where(moves, slide, real(1)), np.where(moves, rim, real(0)), dtype
    )
    force, torque, stick_speed = factors[:, 0], factors[:, 1], real(PATCH_STICK)
    min_number = real(contact_laws.min_number(dtype))
    g = load * force / max_(max_(slide, stick_speed * force), min_number)
    g_spin = load * patch * patch * torque / max_(max_(rim, stick_speed * torque), min_number)
    along = np.matvec(m.response[:, :3, :3], frame[:, 1])  # type: ignore[call-overload, unused-ignore]
    k = max_(dot(frame[:, 1], along), contact_laws.min_number(dtype)).astype(dtype)
    k_spin = rotational_response(m, frame[:, 0])
    now = np.empty_like(m.torque)
    now[:, :2] = (-g / (real(1) + k * g))[:, None] * (u - k[:, None] * shear)
    now[:, 2] = -g_spin * (spin - k_spin * m.torque[:, 0]) / (real(1) + k_spin * g_spin)
    change = now - np.stack([shear[:, 0], shear[:, 1], m.torque[:, 0]], axis=1)
    wrench = np.empty_like(s.wrench)
    wrench[:, :3] = frame[:, 1] * change[:, :1] + frame[:, 2] * change[:, 1:2]
    wrench[:, 3:] = frame[:, 0] * change[:, 2:]
    for j in range(3):
        s.note(change[:, j])
    shear[:] = now[:, :2]
    m.torque[:, 0] = now[:, 2]
    s.apply(m, wrench)


def sweep_points(m: Manifolds, s: Sweep) -> None:
    """Solve the points of each manifold up to ``m.passes`` times. Then solve patch friction and friction torques."""
    m.delta[:] = 0.0
    busy = np.ones(m.world.size, bool)
    for k in range(int(m.passes.max())):
        live = busy & (m.passes > k)
        if not live.any():
            break
        before, s.max_change = s.max_change, np.zeros_like(s.max_change)
        _some(m, live, s, _sweep_once)
        # The passes of a manifold end when a pass changes its impulses very little.
        busy &= s.max_change > s.max_change.dtype.type(PASS_SETTLED) * greatest_load(m)
        s.max_change = np.maximum(before, s.max_change)
    patch, tire = m.law[:, contact_laws.FRICTION_AT] == contact_laws.CONTENSOU, contact_tire.tires(m)
    _some(m, patch, s, sweep_patch)
    has_torque = (m.spinning > 0.0) | (m.rolling > 0.0)
    _some(m, ~patch & ~tire & has_torque, s, sweep_torques)
    _some(m, tire & (has_torque | (m.camber[:, 1] > 0.0)), s, sweep_tire)


def _sweep_once(m: Manifolds, s: Sweep) -> None:
    for k in range(int(m.points[0])):
        sweep_point(m, k, int(np.count_nonzero(m.points > k)), s)


def _some(m: Manifolds, mask: Array, s: Sweep, solve: Callable[[Manifolds, Sweep], None]) -> None:
    if mask.all():
        solve(m, s)
    elif mask.any():
        part, part_sweep = m.part(mask), Sweep(s.twist[mask], s.wrench[mask], s.max_change[mask])
        solve(part, part_sweep)
        m.put(mask, part, SOLVED)
        s.twist[mask], s.wrench[mask], s.max_change[mask] = part_sweep.twist, part_sweep.wrench, part_sweep.max_change


def move_sides(m: Manifolds, wrench: Array, velocity: Array, shared: bool) -> None:
    """Apply n impulse wrenches (n, 6) to both bodies, and update the twists ``velocity`` (num_worlds, bodies, 6)."""
    motion = contact_rows.side_motions(m, wrench)
    world, pair = np.broadcast_to(m.world[:, None], m.body.shape), np.broadcast_to(m.pair[:, None], m.body.shape)
    if not shared:
        velocity[world[m.moves], m.body[m.moves]] += motion[m.moves]
        return
    order = np.argsort((2 * pair + np.arange(2))[m.moves], kind="stable")
    where: Any = world[m.moves][order], m.body[m.moves][order]
    np.add.at(velocity, where, motion[m.moves][order])


def sweep_list(m: Manifolds, velocity: Array, shared: bool) -> Sweep:
    """Solve all manifolds of a list from the same velocities, and update the velocities of their bodies."""
    s = start_sweep(m, velocity)
    sweep_points(m, s)
    move_sides(m, s.wrench, velocity, shared)
    return s


def greatest_load(m: Manifolds) -> Array:
    """Return the maximum normal impulse of each manifold (N s), (n,)."""
    return np.asarray(np.max(np.where(m.exists, m.impulse[..., 0], m.impulse.dtype.type(0)), axis=1))


def sweep_lists(w: StepBuffers, live: Array) -> tuple[Array, Array]:
    """Sweep once over all lists of manifolds, in the worlds of the mask ``live``.

    Return the maximum impulse change and the maximum normal impulse (N s), (num_worlds,) each.
    """
    change, load = np.zeros(w.num_worlds, w.real), np.zeros(w.num_worlds, w.real)
    for k, part in enumerate(w.touch.lists):
        mask = live[part.world]
        if not mask.any():
            continue
        m = part if mask.all() else part.part(mask)
        s = sweep_list(m, w.twist, w.touch.overflow and k == 0)
        if m is not part:
            part.put(mask, m, SOLVED)
        np.maximum.at(change, m.world, s.max_change)
        np.maximum.at(load, m.world, greatest_load(m))
    return change, load


def warm_wrench(m: Manifolds) -> Array:
    """Return the wrench of the current impulses of each manifold, (n, 6)."""
    wrench = np.zeros((m.world.size, 6), m.impulse.dtype)
    for k in range(int(m.points.max())):
        push = np.matvec(m.lever[:, k], m.impulse[:, k])  # type: ignore[call-overload, unused-ignore]
        wrench += np.where((k < m.points)[:, None], push, push.dtype.type(0))
    frame, shear, torque = m.frame, m.shear, m.torque
    wrench[:, :3] += frame[:, 1] * shear[:, :1] + frame[:, 2] * shear[:, 1:]
    wrench[:, 3:] += contact_rows.from_frame(m, torque)
    return wrench
