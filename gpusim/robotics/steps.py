"""Steps of inverse kinematics: damped least squares over priority levels, with limits, batched over worlds.

A step dq of one level minimizes sum w (e - J dq)^2 + sum p (dq - d)^2 + sum D (dq - dq_above)^2. The first sum belongs
to the tasks, which have the errors e and the weights w. The second sum belongs to the posture tasks, which have the
differences d and the weights p. The third sum is a damping with the weights D. dq_above is the step of the levels
above, which have higher priorities. For the Jacobian rows of the levels above, the step satisfies J dq = J dq_above. In
dual form, with the diagonal matrix G = 1/(D + p):

    (C G C^T + diag(c)) y = r - C g,   dq = g + G C^T y,   g = G (p d + D dq_above)

C contains the Jacobian rows of the levels above and of this level. For the levels above, r = C dq_above, and c is
almost zero. For this level, r = e and c = 1/w. y contains one force for each row of C.

If a target is unreachable, the forces y do not vanish, and undamped Gauss-Newton steps oscillate. Therefore, D grows
with the forces: D = damping^2 + sum of factor |force| |column of J|. The steps then converge to the nearest pose. If a
target is reachable, the forces and D become small, so convergence is quadratic. Sources for this damping of the
Levenberg-Marquardt method: Sugihara 2011; Fan and Yuan 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.typing import Array

KEPT = 1e-12
"""Compliance of rows of higher levels, relative to the diagonal of C G C^T."""
OWN_CURVATURE = 0.1
"""Factor of w |e| |column| in the damping D of a level, for rows of the level itself."""
KEPT_CURVATURE = 0.25
"""Factor of |y| |column| in the damping D of a level, for rows of higher levels."""
RAISED, LOWERED, MAX_CAUTION = 2.0, 0.95, 64.0
"""The damping D is multiplied by RAISED after a step that reverses the last step, and by LOWERED after all other steps.
MAX_CAUTION limits the product of all factors."""
MAX_PASSES = 4
"""Maximum number of solves per step."""
LEAK, LEAK_SHARE = 1e-2, 0.5
"""In each higher level, a level may cause an error of LEAK (m and rad) plus LEAK_SHARE times the higher level's
improvement."""
FINISHING, FINER = 2, 1e-4
"""In the last FINISHING steps per level, the solver protects the levels above more strictly. Each finishing step
multiplies LEAK by FINER."""
MAX_WAY = 1.0
"""Maximum norm (m and rad) of the errors of a level, except levels of the first priority. ``_clip_errors`` scales
larger errors."""
AT_LIMIT = 1e-9
"""With several priorities, a coordinate moves to its limit if the distance to the limit is below AT_LIMIT."""
MAX_ROTATION = 1.0
"""Maximum rotation (rad) of a joint in one step by one level, except levels of the first priority."""


@dataclass(frozen=True)
class Layout:
    """Data of the tasks and joints that is constant over all steps.

    Attributes:
        level: level of each Jacobian row, (rows,), in increasing order.
        weight: positive weights (rows,) of the squared errors.
        group: index of the first row of each group, (groups + 1,). The rows of a group form one vector, such as a
            position error.
        stiffness: weights of the posture tasks in the cost, (levels, freedoms).
        moves: whether each coordinate may move, (freedoms,).
        is_rotation: whether each coordinate is a rotation, (freedoms,).
        damping: square root of the minimum D.
    """

    level: Array
    weight: Array
    group: Array
    stiffness: Array
    moves: Array
    is_rotation: Array
    damping: float

    @property
    def levels(self) -> int:
        """Return the number of levels. Level 0 contains the closed loops."""
        return len(self.stiffness)

    @property
    def task_levels(self) -> int:
        """Return the number of levels, without the last levels that contain only posture tasks."""
        return max(int(self.level[-1]) + 1, 1) if self.level.size else self.levels

    @property
    def guarded(self) -> bool:
        """Return whether tasks have several priorities."""
        return self.task_levels > 2

    def above(self, level: int) -> int:
        """Return the index of the first row of ``level``."""
        return int(np.searchsorted(self.level, level))

    def of_groups(self, vectors: Array) -> Array:
        """Return the norm (..., groups) of each group of rows in ``vectors`` (..., rows)."""
        return np.asarray(np.sqrt(np.add.reduceat(vectors * vectors, self.group[:-1], axis=-1)))


def finishing_steps(level: int, iterations: int) -> int:
    """Return how many of the last steps strictly protect the levels above ``level``."""
    return min((iterations + 1) // 2, FINISHING * (level - 1))


class Steps:
    """Sequence of steps for all worlds. The object stores the forces y from step to step."""

    def __init__(self, layout: Layout, worlds: int) -> None:
        self.layout = layout
        self.force = np.zeros((layout.levels, worlds, layout.level.size))
        self.caution = np.ones(worlds)
        self.last = np.zeros((worlds, layout.moves.size))

    def step(
        self,
        error: Array,
        rows: Array,
        pull: Array,
        low: Array,
        high: Array,
        levels: int,
        finishing_step: Callable[[int], int],
        errors_after: Callable[[Array], Array],
    ) -> Array:
        """Return the step dq (worlds, freedoms).

        Args:
            error: target minus value, (worlds, rows).
            rows: rows of the Jacobian, (worlds, rows, freedoms).
            pull: products of the weights p and differences d of the posture tasks, (levels, worlds, freedoms).
            low, high: minimum and maximum change of the coordinates, (worlds, freedoms), low <= 0 <= high.
            levels: number of levels to use.
            finishing_step: function that returns the number of a level's current finishing step, counted from 1. The
                number is 0 before the finishing steps.
            errors_after: function that returns the errors after a step.
        """
        if self.layout.guarded:
            step = self._prioritized_step(error, rows, pull, low, high, levels, finishing_step, errors_after)
        else:
            step = self._single_priority_step(error, rows, pull, low, high, levels)
        back = rotations.dot(step, self.last) < 0.0
        self.caution = np.where(
            back, np.minimum(RAISED * self.caution, MAX_CAUTION), np.maximum(LOWERED * self.caution, 1.0)
        )
        self.last = step
        return step

    def _single_priority_step(
        self, error: Array, rows: Array, pull: Array, low: Array, high: Array, levels: int
    ) -> Array:
        """Compute the step if all tasks have the same priority. All levels respect the same limits."""
        damping = self._damping(error, rows)
        # Fix the coordinates that the task errors push against a limit. The step does not always show this push.
        push = rotations.matvec(rows.swapaxes(1, 2), self.layout.weight * error) + pull[:levels].sum(axis=0)
        at_limit = ((low >= 0.0) & (push < 0.0)) | ((high <= 0.0) & (push > 0.0))
        free = self.layout.moves & ~at_limit
        fixed = np.zeros(low.shape)
        for last in range(MAX_PASSES, 0, -1):
            step = fixed
            for level in range(levels):
                step = self._level(level, error, rows, pull[level], damping[level], free, fixed, step)
            under, over = free & (step < low), free & (step > high)
            if last == 1 or not (under | over).any():
                break
            fixed = np.where(under, low, np.where(over, high, fixed))
            free &= ~(under | over)
        return np.clip(step, low, high)

    def _prioritized_step(
        self,
        error: Array,
        rows: Array,
        pull: Array,
        low: Array,
        high: Array,
        levels: int,
        finishing_step: Callable[[int], int],
        errors_after: Callable[[Array], Array],
    ) -> Array:
        """Compute one step for tasks with different priorities."""
        o, step, full_error = self.layout, np.zeros(low.shape), error
        error = self._clip_errors(error)
        damping = self._damping(error, rows)
        for level in range(levels):
            above, end = o.above(level), o.above(level + 1)
            if above == end and not o.stiffness[level].any():
                continue
            force = np.concatenate([self.force[level, :, :above], o.weight[above:end] * error[:, above:end]], axis=1)
            push = rotations.matvec(rows[:, :end].swapaxes(1, 2), force) + pull[level]
            free = o.moves & ~(((low >= -AT_LIMIT) & (push < 0.0)) | ((high <= AT_LIMIT) & (push > 0.0)))
            fixed = step
            for last in range(MAX_PASSES, 0, -1):
                candidate = self._level(level, error, rows, pull[level], damping[level], free, fixed, step)
                if level > 1:
                    max_change = np.max(np.where(o.is_rotation, np.abs(candidate - step), 0.0), axis=1)
                    candidate = step + (MAX_ROTATION / np.maximum(max_change, MAX_ROTATION))[:, None] * (
                        candidate - step
                    )
                under, over = free & (candidate < low), free & (candidate > high)
                if last == 1 or not (under | over).any():
                    break
                fixed = np.where(under, low, np.where(over, high, fixed))
                free &= ~(under | over)
            if level > 1:
                candidate = step + self._limit_step(
                    level, full_error, rows, step, candidate - step, low, high, finishing_step(level), errors_after
                )
            step = np.where(candidate < low + AT_LIMIT, low, np.where(candidate > high - AT_LIMIT, high, candidate))
        return step

    def _clip_errors(self, error: Array) -> Array:
        """Limit the error norm of the second and later priorities to ``MAX_WAY``."""
        o, out = self.layout, error.copy()
        for level in range(2, o.levels):
            level_rows = slice(o.above(level), o.above(level + 1))
            out[:, level_rows] *= (MAX_WAY / np.maximum(rotations.norm(error[:, level_rows]), MAX_WAY))[:, None]
        return out

    def _limit_step(
        self,
        level: int,
        error: Array,
        rows: Array,
        step: Array,
        added: Array,
        low: Array,
        high: Array,
        finishing_step: int,
        errors_after: Callable[[Array], Array],
    ) -> Array:
        """Shorten the step of a level, so that the step hardly disturbs the levels above."""
        o, above, leak = self.layout, self.layout.above(level), LEAK
        for _ in range(min(finishing_step, FINISHING)):
            leak *= FINER
        margin = np.where(added < 0.0, step - low, high - step)
        exceeds = np.abs(added) > margin
        scale = np.min(np.where(exceeds, margin, 1.0) / np.where(exceeds, np.abs(added), 1.0), axis=1)
        gain = rotations.matvec(rows[:, :above], step)
        disturbance = errors_after(step + scale[:, None] * added)[:, :above] - (error[:, :above] - gain)
        leak_scale = np.ones(len(step))
        for other in range(level):
            level_rows = slice(o.above(other), o.above(other + 1))
            allowed = leak + (0.0 if finishing_step else LEAK_SHARE) * rotations.norm(gain[:, level_rows])
            leak_scale = np.minimum(
                leak_scale, allowed / np.maximum(rotations.norm(disturbance[:, level_rows]), allowed)
            )
        return np.asarray((scale * np.sqrt(leak_scale))[:, None] * added)

    def _damping(self, error: Array, rows: Array) -> Array:
        """Return the damping weights D of every level, (levels, worlds, freedoms)."""
        o = self.layout
        out = np.full((o.levels, rows.shape[0], rows.shape[2]), o.damping**2)
        if not o.level.size:
            return out
        levers = o.of_groups(rows.swapaxes(1, 2)).swapaxes(1, 2)
        pulls = o.of_groups(o.weight * error)[:, :, None]
        first = o.level[o.group[:-1]]
        for level in range(o.levels):
            own_factor, higher_factor = (
                OWN_CURVATURE * (first == level)[:, None],
                KEPT_CURVATURE * (first < level)[:, None],
            )
            forces = o.of_groups(self.force[level])[:, :, None]
            out[level] += self.caution[:, None] * np.sum((own_factor * pulls + higher_factor * forces) * levers, axis=1)
        return out

    def _level(
        self, level: int, error: Array, rows: Array, pull: Array, damping: Array, free: Array, fixed: Array, step: Array
    ) -> Array:
        """Compute the step of a level."""
        o, above, end = self.layout, self.layout.above(level), self.layout.above(level + 1)
        if above == end and not o.stiffness[level].any():
            return step
        error, rows = error[:, :end], rows[:, :end]
        g = np.where(free, 1.0 / (damping + o.stiffness[level]), 0.0)
        start = np.where(free, g * (pull + damping * step), fixed)
        if not end:
            return start
        target = np.concatenate([rotations.matvec(rows[:, :above], step), error[:, above:]], axis=1)
        scaled = rows * g[:, None]
        matrix = np.matmul(scaled, rows.swapaxes(1, 2))
        diagonal = np.einsum("wii->wi", matrix)
        # Every row needs a nonzero diagonal entry, even if no coordinate moves the row.
        diagonal[:, :above] += KEPT * diagonal[:, :above] + 1e-200
        diagonal[:, above:] += 1.0 / o.weight[above:end]
        y = np.linalg.solve(matrix, (target - rotations.matvec(rows, start))[..., None])
        self.force[level, :, :above] = y[:, :above, 0]
        return np.asarray(start + np.matmul(scaled.swapaxes(1, 2), y)[..., 0])
