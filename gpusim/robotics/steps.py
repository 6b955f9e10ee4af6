"""Steps of inverse kinematics: damped least squares over levels of priority, with limits, batched over worlds.

A step dq of one level minimizes sum w (e - J dq)^2 + sum p (dq - d)^2 + sum D (dq - dq_above)^2 (tasks, posture,
damping) while what the levels above have reached stays: J dq = J dq_above for their rows. In dual form, with the
diagonal G = 1/(D + p):

    (C G C^T + diag(c)) y = r - C g,   dq = g + G C^T y,   g = G (p d + D dq_above)

C holds the rows of the levels above (r = C dq_above, c next to zero) and the level's own (r = e, c = 1/w). y are
forces: w e of a task that is out of reach, and what keeps the rows above against the pull of the level.

Where forces stay, Gauss-Newton steps swing to and fro, for they leave out the second derivatives of the errors, which
such a force multiplies (the Lagrangian's second derivative). These are at most the lever arms, |column of J|, so that
D = damping^2 + sum of share |force| |column| keeps the model stiffer than half of the truth: steps contract onto the
nearest pose, and, as D vanishes with the forces, converge quadratically where the target is in reach
(Levenberg-Marquardt with a damping like the error: Sugihara 2011; Fan and Yuan 2005). Forces on kept rows are those of
the step before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.typing import Array

KEPT = 1e-12
"""Compliance of rows that levels below must keep, as a share of their diagonal."""
OWN_CURVATURE = 0.1
"""Share of w |e| |column| in the damping of a task's own level,"""
KEPT_CURVATURE = 0.25
"""and of |y| |column| for rows that a level must keep."""
RAISED, LOWERED, MOST_CAUTION = 2.0, 0.95, 64.0
"""A step against the one before multiplies these shares by the first, another one by the second, from 1 on."""
MOST_PASSES = 4
"""Solutions for one step, each with the limits that the one before has reached."""
CONSTANTS = {
    "KEPT": KEPT,
    "OWN_CURVATURE": OWN_CURVATURE,
    "KEPT_CURVATURE": KEPT_CURVATURE,
    "RAISED": RAISED,
    "LOWERED": LOWERED,
    "MOST_CAUTION": MOST_CAUTION,
    "MOST_PASSES": MOST_PASSES,
}
"""Numbers that the kernels know by these names."""


@dataclass(frozen=True)
class Layout:
    """What does not change from step to step.

    Attributes:
        level: (rows,) of each row, rising.
        weight: (rows,) of the squares of the errors, above zero.
        group: (groups + 1,) where the rows of each vector begin.
        stiffness: (levels, freedoms) p, weights of postures.
        moves: (freedoms,) whether it may move.
        damping: the least D, its root.
    """

    level: Array
    weight: Array
    group: Array
    stiffness: Array
    moves: Array
    damping: float

    @property
    def levels(self) -> int:
        """How many levels; 0 is that of loops."""
        return len(self.stiffness)

    @property
    def task_levels(self) -> int:
        """The same without those of postures alone, which come last."""
        return max(int(self.level[-1]) + 1, 1) if self.level.size else self.levels

    def above(self, level: int) -> int:
        """How many rows lie above a level; those up to the next one are its own."""
        return int(np.searchsorted(self.level, level))

    def of_groups(self, vectors: Array) -> Array:
        """Lengths of the vectors of rows, (..., rows) to (..., groups)."""
        return np.asarray(np.sqrt(np.add.reduceat(vectors * vectors, self.group[:-1], axis=-1)))


class Steps:
    """Steps of all worlds, one after another: forces are kept from one to the next."""

    def __init__(self, layout: Layout, worlds: int) -> None:
        self.layout = layout
        self.force = np.zeros((layout.levels, worlds, layout.level.size))
        self.caution = np.ones(worlds)
        self.last = np.zeros((worlds, layout.moves.size))

    def step(self, error: Array, rows: Array, pull: Array, low: Array, high: Array, levels: int) -> Array:
        """dq, (worlds, freedoms).

        Args:
            error: (worlds, rows) target less value.
            rows: (worlds, rows, freedoms) Jacobian.
            pull: (levels, worlds, freedoms) p d of the postures.
            low, high: (worlds, freedoms) how far the coordinates may go, at most and at least zero.
            levels: how many of them take part.
        """
        damping = self._damping(error, rows)
        # What the errors push against its limit stays there: the steps of others may hide that it would rather leave.
        push = rotations.matvec(rows.swapaxes(1, 2), self.layout.weight * error) + pull[:levels].sum(axis=0)
        held = ((low >= 0.0) & (push < 0.0)) | ((high <= 0.0) & (push > 0.0))
        free = self.layout.moves & ~held
        fixed = np.zeros(low.shape)
        for last in range(MOST_PASSES, 0, -1):
            step = self._levels(error, rows, pull, damping, free, fixed, levels)
            under, over = free & (step < low), free & (step > high)
            if last == 1 or not (under | over).any():
                break
            fixed = np.where(under, low, np.where(over, high, fixed))
            free &= ~(under | over)
        step = np.clip(step, low, high)
        back = rotations.dot(step, self.last) < 0.0
        self.caution = np.where(
            back, np.minimum(RAISED * self.caution, MOST_CAUTION), np.maximum(LOWERED * self.caution, 1.0)
        )
        self.last = step
        return step

    def _damping(self, error: Array, rows: Array) -> Array:
        """D of every level, (levels, worlds, freedoms)."""
        o = self.layout
        out = np.full((o.levels, rows.shape[0], rows.shape[2]), o.damping**2)
        if not o.level.size:
            return out
        levers = o.of_groups(rows.swapaxes(1, 2)).swapaxes(1, 2)
        pulls = o.of_groups(o.weight * error)[:, :, None]
        first = o.level[o.group[:-1]]
        for level in range(o.levels):
            own, kept = OWN_CURVATURE * (first == level)[:, None], KEPT_CURVATURE * (first < level)[:, None]
            forces = o.of_groups(self.force[level])[:, :, None]
            out[level] += self.caution[:, None] * np.sum((own * pulls + kept * forces) * levers, axis=1)
        return out

    def _levels(
        self, error: Array, rows: Array, pull: Array, damping: Array, free: Array, fixed: Array, levels: int
    ) -> Array:
        """Step over all levels; ``fixed`` are the steps of coordinates that are not free."""
        step, o = fixed, self.layout
        for level in range(levels):
            above, end = o.above(level), o.above(level + 1)
            if above < end or o.stiffness[level].any():
                step = self._level(level, error[:, :end], rows[:, :end], pull[level], damping[level], free, fixed, step)
        return step

    def _level(
        self, level: int, error: Array, rows: Array, pull: Array, damping: Array, free: Array, fixed: Array, step: Array
    ) -> Array:
        o, above, end = self.layout, self.layout.above(level), error.shape[1]
        g = np.where(free, 1.0 / (damping + o.stiffness[level]), 0.0)
        start = np.where(free, g * (pull + damping * step), fixed)
        if not end:
            return start
        target = np.concatenate([rotations.matvec(rows[:, :above], step), error[:, above:]], axis=1)
        scaled = rows * g[:, None]
        matrix = np.matmul(scaled, rows.swapaxes(1, 2))
        diagonal = np.einsum("wii->wi", matrix)
        # A row that nothing moves gets a diagonal all the same.
        diagonal[:, :above] += KEPT * diagonal[:, :above] + 1e-200
        diagonal[:, above:] += 1.0 / o.weight[above:end]
        y = np.linalg.solve(matrix, (target - rotations.matvec(rows, start))[..., None])
        self.force[level, :, :above] = y[:, :above, 0]
        return np.asarray(start + np.matmul(scaled.swapaxes(1, 2), y)[..., 0])
