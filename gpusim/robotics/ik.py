"""Inverse kinematics for several tasks at once, with weights, priorities, limits and closed loops."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.errors import unknown_name
from gpusim.robotics.cuda import CudaSolver
from gpusim.robotics.dynamics import Bodies
from gpusim.robotics.elements import evaluate
from gpusim.robotics.native import KernelSolver, NativeSolver
from gpusim.robotics.steps import Layout, Steps, finishing_steps
from gpusim.robotics.tasks import FrameTask, PostureTask, Task
from gpusim.robotics.tree import Tree
from gpusim.transform import Transform
from gpusim.typing import Array

LOOP_WEIGHT = 1e4
"""Weight of the rows of closed loops."""
BACKENDS = ("numpy", "native", "cuda")
"""Implementations of the solver."""
SETTLED = 1e-9
"""Step (m or rad) below which a world has converged."""


@dataclass(frozen=True)
class Report:
    """Errors and convergence of a solution of the inverse kinematics.

    Attributes:
        error: task name -> error (worlds, n) (m and rad) of the task's n components. The error is the target minus the
            value that the task reaches.
        residual: task name -> norm (worlds,) of the error. Components with zero weight do not count. In the norm, 1 rad
            counts as much as 1 m.
        loops: largest residual (worlds,) of closed loops and couplings, 0 without loops and couplings.
        step: largest component (worlds,) (m or rad) of the last step.
        at_limit: whether each coordinate is at a limit, (worlds, freedoms).
    """

    error: dict[str, Array]
    residual: dict[str, Array]
    loops: Array
    step: Array
    at_limit: Array

    @property
    def converged(self) -> Array:
        """Return for each world whether the last step was below 1e-9 (m or rad)."""
        return np.asarray(self.step < SETTLED)


class IK:
    """Solver that finds postures for several tasks at once by damped least squares (gpusim/robotics/steps.py).

    Closed loops and couplings have precedence over all tasks. Tasks with later priorities use only motions that do not
    affect tasks with earlier priorities. Within one priority, the solver minimizes the weighted sum of squared errors.
    If a target is unreachable, the steps converge to the nearest posture.

    Args:
        tree: tree of the robot.
        tasks: tasks with different names.
        damping: minimum damping. A joint hardly moves if (lever arm) * sqrt(weight) is below ``damping``. The lever arm
            is in m, or 1 for rotations.
        limits: whether the postures must respect the joints' limits.
        locked: labels of joints, or of floating bodies, that must keep their positions.

    Raises:
        ModelError, UnknownNameError: a task or an argument is invalid. The message names the task.
    """

    def __init__(
        self,
        tree: Tree,
        tasks: Sequence[Task],
        damping: float = 1e-3,
        limits: bool = True,
        locked: Sequence[str] = (),
    ) -> None:
        self.tree = tree
        _check_tasks(tasks)
        tasks = [copy.copy(task) for task in tasks]  # copies, because the caller may use the tasks with other trees
        for task in tasks:
            task.bind(tree)
        # Level 0 contains the closed loops. The levels of the tasks follow in the order of priority. The last level
        # contains posture tasks without a priority.
        ranks = sorted({t.priority for t in tasks if t.priority})
        self.level_of = {priority: rank + 1 for rank, priority in enumerate(ranks)}
        levels = len(ranks) + 1 + any(not t.priority for t in tasks)
        self.level_of[0] = levels - 1
        self.postures = [t for t in tasks if isinstance(t, PostureTask)]
        frame_tasks = [t for t in tasks if isinstance(t, FrameTask)]
        self.tasks = sorted(frame_tasks, key=lambda t: t.priority)
        self.layout = self._layout(levels, damping, locked)
        infinite = np.full(tree.freedoms, np.inf)
        validate.flag("robotics.IK", "limits", limits)
        self.lower, self.upper = (tree.lower, tree.upper) if limits else (-infinite, infinite)
        single = [(m.at, m.rate) for node in tree.forest.nodes for m in node.motions if m.freedoms == 1]
        self._solvers: dict[str, KernelSolver] = {}
        self.single = np.array(single, np.int64).reshape(-1, 2)

    def _layout(self, levels: int, damping: float, locked: Sequence[str]) -> Layout:
        tree = self.tree
        moves = np.array([not tree.forest.nodes[i].is_kinematic for i in tree.masks.owner], bool)
        for label in validate.name_list("robotics.IK: locked", locked):
            moves[tree.rate_slice(label)] = False
        level, weight, group = [0] * tree.loop_rows, [LOOP_WEIGHT] * tree.loop_rows, [1] * tree.loop_rows
        for task in self.tasks:
            used = task.weight > 0.0
            level += [self.level_of[task.priority]] * int(used.sum())
            weight += task.weight[used].tolist()
            group += [n for n in np.add.reduceat(used, range(0, used.size, 3), dtype=np.int64).tolist() if n]
        stiffness = np.zeros((levels, tree.freedoms))
        for posture in self.postures:
            stiffness[self.level_of[posture.priority]] += posture.weight
        min_damping = validate.positive("robotics.IK", "damping", damping)
        starts = np.cumsum([0, *group])
        return Layout(
            np.array(level, np.int64), np.array(weight), starts, stiffness, moves, tree.masks.is_rotation, min_damping
        )

    def solve(
        self, q: Any, targets: Mapping[str, Any], iterations: int = 10, backend: str = "numpy"
    ) -> tuple[Array, Report]:
        """Find the postures in which the tasks are nearest to their targets.

        Args:
            q: starting postures, (worlds, size) or (size,). A single posture applies to all worlds.
            targets: task name -> target, (n,) for all worlds or (worlds, n) for a target with n numbers. The target of
                a PostureTask is optional.
            iterations: number of steps. A distant target takes 5 to 10 steps. If ``q`` is the solution of the last
                control step, 1 or 2 steps are enough.
            backend: "numpy", "native" or "cuda". "native" runs compiled code in parallel threads, and needs a C++
                compiler. The results of "native" and "numpy" are equal up to round-off. "cuda" uses GPU 0 with one
                thread per world. The results of "cuda" and "native" are bit-identical. With all backends, arguments and
                results are NumPy arrays.

        Returns:
            Postures (worlds, size) and a :class:`Report`.

        Raises:
            ModelError: a value is invalid, a task has no target, or "cuda" has no CuPy or no GPU.
            UnknownNameError: ``targets`` contains a name that no task has.
            CompileError: the kernels cannot be compiled.
        """
        validate.choice("robotics.IK", "backend", backend, BACKENDS)
        iterations = validate.count("robotics.IK", "iterations", iterations, 0)
        q, aims = self._checked_inputs(q, targets)
        last_steps = min(iterations // 4, 2)  # steps that ignore posture tasks
        if backend != "numpy":
            if backend not in self._solvers:
                self._solvers[backend] = NativeSolver(self) if backend == "native" else CudaSolver(self)
            q, error, loops, max_step = self._solvers[backend].solve(q, aims, iterations, last_steps)
            return q, self._report(q, aims, error, loops, max_step)
        steps, step = Steps(self.layout, q.shape[0]), np.zeros((q.shape[0], self.tree.freedoms))
        for number in range(iterations):
            errors, rows = self._rows(q, aims)
            levels = self.layout.task_levels if number >= iterations - last_steps else self.layout.levels

            def finishing_step(level: int, remaining: int = iterations - number) -> int:
                return max(finishing_steps(level, iterations) - remaining + 1, 0)

            def errors_after(step: Array, q: Array = q) -> Array:
                return self._rows(self._clip_to_limits(self.tree.integrate(q, step)), aims)[0]

            step = steps.step(
                errors, rows, self._pull(q, aims), *self._limit_distances(q), levels, finishing_step, errors_after
            )
            q = self._clip_to_limits(self.tree.integrate(q, step))
        k = self.tree.at(q)
        bodies = Bodies(k, self.tree.inertias)
        error = {t.name: t.rows(k, bodies, aims[t.name]).error for t in self.tasks}
        loops = np.abs(evaluate(self.tree.locked, k)[0]).max(axis=1, initial=0.0)
        return q, self._report(q, aims, error, loops, np.abs(step).max(axis=1, initial=0.0))

    def _checked_inputs(self, q: Any, targets: Mapping[str, Any]) -> tuple[Array, dict[str, Array]]:
        """Return the starting postures and the targets as arrays with one entry per world."""
        tasks = [*self.tasks, *self.postures]
        if not isinstance(targets, Mapping):
            rule = f"targets = {validate.shown(targets)} is not a dict"
            raise validate.fail("robotics.IK", rule, "give targets by task name")
        for name in targets:
            if name not in {t.name for t in tasks}:
                raise unknown_name("task", name, [t.name for t in tasks])
        given = {}
        for task in tasks:
            if task.name in targets:
                given[task.name] = targets[task.name]
            elif isinstance(task, PostureTask):
                given[task.name] = task.posture
            else:
                raise validate.fail(f"task '{task.name}'", "has no target", f"give targets={{'{task.name}': ...}}")
        for name, value in given.items():
            if not isinstance(value, Transform):
                given[name] = validate.array(f"target '{name}'", on_host(value))
        start = self.tree.postures(q)
        if not np.isfinite(start).all():
            raise validate.fail("robotics.IK", "the start is not finite", "give a posture of finite numbers")
        worlds = max([start.shape[0], *(np.shape(v)[0] for v in given.values() if np.ndim(v) == 2)])
        if start.shape[0] not in (1, worlds):
            rule = f"there are {start.shape[0]} postures and targets of {worlds} worlds"
            raise validate.fail("robotics.IK", rule, "give equal numbers, or one posture")
        q = self._clip_to_limits(np.array(np.broadcast_to(start, (worlds, self.tree.size))))
        return q, {task.name: task.target(given[task.name], worlds) for task in tasks}

    def _rows(self, q: Array, aims: dict[str, Array]) -> tuple[Array, Array]:
        """Return all errors of loops and tasks (worlds, rows), and their Jacobian (worlds, rows, freedoms)."""
        k = self.tree.at(q)
        bodies = Bodies(k, self.tree.inertias)
        residual, rows, _ = evaluate(self.tree.locked, k)
        found = [(-residual, rows)]
        for task in self.tasks:
            task_rows, used = task.rows(k, bodies, aims[task.name]), task.weight > 0.0
            found.append((task_rows.error[:, used], task_rows.jacobian[:, used]))
        errors, jacobians = zip(*found, strict=True)
        return np.concatenate(errors, axis=1), np.concatenate(jacobians, axis=1)

    def _pull(self, q: Array, aims: dict[str, Array]) -> Array:
        """Return the sum of weight * difference of the posture tasks, (levels, worlds, freedoms)."""
        out = np.zeros((self.layout.levels, q.shape[0], self.tree.freedoms))
        for t in self.postures:
            out[self.level_of[t.priority]] += t.weight * self.tree.difference(q, aims[t.name])
        return out

    def _limit_distances(self, q: Array) -> tuple[Array, Array]:
        """Return the changes that move each coordinate to its lower and to its upper limit, (worlds, freedoms) each."""
        at, rate = self.single.T
        low = np.full((q.shape[0], self.tree.freedoms), -np.inf)
        high = -low
        low[:, rate] = np.minimum(self.lower[rate] - q[:, at], 0.0)
        high[:, rate] = np.maximum(self.upper[rate] - q[:, at], 0.0)
        return low, high

    def _clip_to_limits(self, q: Array) -> Array:
        """Clip every coordinate to its limits, in place."""
        at, rate = self.single.T
        q[:, at] = np.clip(q[:, at], self.lower[rate], self.upper[rate])
        return q

    def _report(self, q: Array, aims: dict[str, Array], error: dict[str, Array], loops: Array, step: Array) -> Report:
        error = error | {t.name: self.tree.difference(q, aims[t.name]) for t in self.postures}
        tasks = [*self.tasks, *self.postures]
        residual = {t.name: np.sqrt(np.sum(error[t.name][:, t.weight > 0.0] ** 2, axis=1)) for t in tasks}
        low, high = self._limit_distances(q)
        return Report(error, residual, loops, step, (low >= 0.0) | (high <= 0.0))


def _check_tasks(tasks: Sequence[Task]) -> None:
    if not isinstance(tasks, list | tuple):
        raise validate.fail("robotics.IK", f"tasks = {validate.shown(tasks)} is not a list", "give [PoseTask(...)]")
    if not tasks:
        raise validate.fail("robotics.IK", "there is no task", "give at least one")
    names = set[str]()
    for task in tasks:
        if not isinstance(task, Task):
            raise validate.fail(
                "robotics.IK", f"{task!r} is not a task", "give PoseTask, PointTask, ComTask or PostureTask"
            )
        if not isinstance(task.name, str):
            raise validate.fail("robotics.IK", f"a task is named {validate.shown(task.name)}", "give text for name")
        if task.name in names:
            raise validate.fail("robotics.IK", f"two tasks are named '{task.name}'", "give one of them a name=")
        names.add(task.name)
