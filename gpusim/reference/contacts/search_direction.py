"""Nonsmooth nonlinear conjugate gradients between sweeps (Silcowitz-Hansen, Niebe and Erleben 2010).

The impulse change in a sweep serves as the gradient g. Between two sweeps, the solver moves the impulses p along the
search direction c: ``p += beta c, c = beta c + g``. It updates the velocities accordingly. beta is |g|^2 of the latest
sweep divided by |g|^2 of the previous sweep. The weights in |g|^2 are the normal velocities per unit impulse. If |g|^2
does not decrease, the search restarts with beta = 0.
"""

from __future__ import annotations

import numpy as np

from gpusim.contact.constants import STEADY
from gpusim.description.contact_fields import POINTS
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


class SearchDirection:
    """Search direction of the sweeps in each world.

    ``Manifolds.direction`` contains the components for contact impulses. ``Manifolds.whole_direction`` contains the
    components for friction torques and patch friction.
    """

    def __init__(self, w: StepBuffers, live: Array) -> None:
        self._twist, self._delta = w.twist.copy(), w.delta.copy()
        self._twist_direction, self._delta_direction = np.zeros_like(w.twist), np.zeros_like(w.delta)
        self._before = np.zeros(w.num_worlds)
        m = w.touch.all
        mask = live[m.world]
        m.direction[mask] = m.whole_direction[mask] = 0.0
        m.whole_swept[mask] = np.hstack([m.torque, m.shear])[mask]

    def extend(self, w: StepBuffers, live: Array) -> None:
        """Move the impulses and velocities along the search direction, in the worlds of the mask ``live``."""
        square = self._squares(w)
        betas = np.where(square < STEADY * self._before, square / np.where(self._before > 0.0, self._before, 1.0), 0.0)
        self._before, betas = square, betas.astype(w.real)
        self._points(w, live, betas)
        self._twist_direction = self._array(w.twist, self._twist, self._twist_direction, live, betas)
        self._delta_direction = self._array(w.delta, self._delta, self._delta_direction, live, betas)

    def forget(self, worlds: Array) -> None:
        """Restart with beta = 0 in the worlds of the mask ``worlds``, (num_worlds,)."""
        self._before[worlds] = 0.0

    @staticmethod
    def _squares(w: StepBuffers) -> Array:
        """Return the weighted square |g|^2 of the impulse changes in the last sweep, (num_worlds,)."""
        m = w.touch.all
        total, weighted = np.zeros(w.num_worlds), np.zeros(m.world.size, w.real)
        for k in range(POINTS):
            size = m.mass[:, k, 0] * np.vecdot(m.delta[:, k], m.delta[:, k])
            weighted = weighted + np.where(k < m.points, size, w.real.type(0))
        np.add.at(total, m.world, weighted.astype(np.float64))
        return total

    @staticmethod
    def _points(w: StepBuffers, live: Array, betas: Array) -> None:
        m = w.touch.all
        beta = betas[m.world][:, None, None]
        pick = (live[m.world][:, None] & m.exists)[..., None]
        step = beta * m.direction
        new_direction = np.where(beta > 0.0, step + m.delta, w.real.type(0))
        m.impulse[:] = np.where(pick, m.impulse + step, m.impulse)
        m.direction[:] = np.where(pick, new_direction, m.direction)
        pick, beta, now = live[m.world][:, None], beta[:, 0], np.hstack([m.torque, m.shear])
        step = beta * m.whole_direction
        new_direction = np.where(beta > 0.0, step + (now - m.whole_swept), w.real.type(0))
        m.whole_direction[:] = np.where(pick, new_direction, m.whole_direction)
        m.whole_swept[:] = np.where(pick, now + step, m.whole_swept)
        m.torque[:] = np.where(pick, m.whole_swept[:, :3], m.torque)
        m.shear[:] = np.where(pick, m.whole_swept[:, 3:], m.shear)

    @staticmethod
    def _array(values: Array, before: Array, direction: Array, live: Array, betas: Array) -> Array:
        """Move ``values`` along the search direction, and return the new search direction."""
        beta, pick = betas[:, None, None], live[:, None, None]
        moved = beta * direction
        new_direction = np.where(beta > 0.0, moved + (values - before), values.dtype.type(0))
        values[:] = np.where(pick, values + moved, values)
        before[:] = np.where(pick, values, before)
        return np.where(pick, new_direction, direction)
