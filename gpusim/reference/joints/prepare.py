"""Stage prepare: compute rotation matrices, elements, J, M^-1 J^T and row velocities at the current poses."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.joints import elements, geometric_stiffness
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def prepare(w: StepBuffers, h: float) -> None:
    """Run stage prepare for a substep of ``h`` seconds."""
    set_times(w, h)
    w.scratch = {}
    rotate(w)
    elements.track_angles(w)
    elements.evaluate(w)
    _rows(w)
    w.coupling_value = coupling_values(w)
    _twist_before(w)
    w.inertia_inverse_effective = np.where(w.topology.dynamic[:, None, None], w.inertia_inverse, 0.0).astype(w.real)
    if w.config.geometric_stiffness and w.scheme != "semi_implicit":
        w.inertia_inverse_effective = geometric_stiffness.stiffened(w, w.inertia_inverse_effective)
    w.mass_jacobian = _mass_jacobian(w, w.inertia_inverse_effective)
    _axis_rates(w)


def update_rows(w: StepBuffers, worlds: Array) -> None:
    """Recompute J and M^-1 J^T at the current poses, in the worlds of the mask ``worlds``, (num_worlds,)."""
    saved = [(array, array[~worlds]) for array in (w.jacobian, w.mass_jacobian, w.state.arrays["angle"])]
    elements.track_angles(w)
    elements.evaluate(w)
    _rows(w)
    w.mass_jacobian[:] = _mass_jacobian(w, w.inertia_inverse_effective)
    for array, others in saved:
        array[~worlds] = others


def set_times(w: StepBuffers, h: float) -> None:
    """Set the duration ``h`` of the drift, the duration of the last substep, and the kick time.

    Velocities are at half steps (leapfrog). The kick covers the second half of the last substep and the first half of
    the next substep. With the ``semi_implicit`` scheme, the kick covers the whole next substep.
    """
    w.h = h
    w.step_last = w.state.arrays["step_before"].copy()
    w.loop_gap = np.zeros(w.num_worlds)
    w.displacement = np.zeros((w.num_worlds, w.topology.num_bodies + 1, 6), w.real)
    if w.contacts is not None:
        w.contacts.pushing[:] = 0
    whole = w.scheme == "semi_implicit"
    w.kick_time = np.full_like(w.h_prev, h) if whole else w.real.type(0.5) * (w.h_prev + w.real.type(h))


def rotate(w: StepBuffers) -> None:
    """Compute the rotation matrices and the inverse inertias in the world frame."""
    w.rotation = rotations.matrix_from_quaternion(w.state.arrays["orientation"])
    w.rotation_real = w.rotation.astype(w.real, copy=False)
    rotated_inverse = np.matmul(w.rotation_real, w.inertia_inverse_body)
    w.inertia_inverse = np.matmul(rotated_inverse, w.rotation_real.swapaxes(-1, -2))


def _rows(w: StepBuffers) -> None:
    t, layout = w.topology, w.layout
    flat = w.jacobian.reshape(w.num_worlds, -1, 6)
    picked = w.element_jacobian[:, t.element_row]
    flat[:, layout.row_a] = picked[:, :, 0]
    flat[:, layout.row_b] = picked[:, :, 1]
    c = t.coupling
    if c.row.size:
        flat[:, layout.coupling_rows.ravel()] = 0.0
        factor = c.slopes(w.element_value)
        for terms in layout.coupling_rounds:
            for side in range(2):
                term = factor[:, terms, None] * w.element_jacobian[:, c.element[terms], side]
                flat[:, layout.coupling_rows[terms, side]] += term.astype(w.real)


def _twist_before(w: StepBuffers) -> None:
    """Compute the twists of all bodies before the kick."""
    state = w.state.arrays
    w.twist_before = np.concatenate(
        [state["linear_velocity"], rotations.matvec(w.inertia_inverse, state["angular_momentum"])], axis=-1
    )


def _mass_jacobian(w: StepBuffers, inertia_inverse_effective: Array) -> Array:
    side_body = w.layout.side_body
    product = np.empty_like(w.jacobian)
    inverse_mass = w.inverse_mass[:, side_body, None, None]
    np.multiply(w.jacobian[..., :3], inverse_mass, out=product[..., :3])
    np.matmul(w.jacobian[..., 3:], inertia_inverse_effective[:, side_body], out=product[..., 3:])
    return product


def _axis_rates(w: StepBuffers) -> None:
    """Set the axis positions, and the axis rates of the last two drifts."""
    state, rows = w.state.arrays, w.topology.axis_row
    values = np.concatenate([w.element_value, w.coupling_value], axis=1)
    w.axis_position = values[:, w.topology.axis_element].astype(w.real)
    flat = w.row_velocity(w.twist_before).reshape(w.num_worlds, -1)
    running = w.h_prev > 0.0
    w.rate = np.where(running, state["axis_velocity"], flat[:, rows])
    w.rate_old = np.where(running, state["axis_velocity_before"], w.rate)


def coupling_values(w: StepBuffers) -> Array:
    """Return the position errors of the coupling rows (gears and mimics), (num_worlds, couplings).

    A NaN offset marks a coupling that is not initialized. The function sets this offset so that the error is zero at
    the current pose.
    """
    c, offset = w.topology.coupling, w.state.arrays["coupling_offset"]
    value = c.mixed(w.element_value, c.factor[None])
    if c.curved.any():
        value += c.curve_values(w.element_value)
    unset = np.isnan(offset)
    offset[unset] = value[unset]
    return value - offset
