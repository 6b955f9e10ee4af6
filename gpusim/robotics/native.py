"""Inverse kinematics with the kernel robotics/robotics.cu.

This file builds the kernel's tables of the tree and the tasks, and calls the kernel.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from gpusim.backends.codegen.robot_header import OUTPUTS, TABLES, robot_dtype
from gpusim.backends.codegen.variants import robotics_variant
from gpusim.backends.native.backend import load_library, thread_count
from gpusim.backends.tables import packed
from gpusim.robotics import steps
from gpusim.robotics.elements import Angle, Element, Gap, Line, Sum
from gpusim.robotics.spanning import Forest
from gpusim.robotics.tasks import ComTask, FrameTask, PointTask, PoseTask, PostureTask, Task
from gpusim.robotics.tree import Tree
from gpusim.typing import Array

POSE, POINT, COM = 0, 1, 2
GAP, WORLD_GAP, ANGLE, LINE, SUM = range(5)
NONE = np.zeros(3)


def _of_nodes(forest: Forest) -> dict[str, Array]:
    """Return the kernel's tables of nodes and of elementary motions."""
    motions = [(n, m) for n in forest.nodes for m in (reversed(n.motions) if n.reverse else n.motions)]
    starts = np.cumsum([0, *(len(n.motions) for n in forest.nodes)])
    frames = {
        name: np.array([np.concatenate([position, rotation.ravel()]) for position, rotation in ends])
        for name, ends in (
            ("node_before", [n.before for n in forest.nodes]),
            ("node_after", [n.after for n in forest.nodes]),
        )
    }
    return frames | {
        "node_parent": np.array([n.parent for n in forest.nodes]),
        "node_motion": starts,
        "motion_kind": np.array([m.kind for _, m in motions]),
        "motion_axis": np.array([m.axis for _, m in motions]),
        "motion_at": np.array([m.at for _, m in motions]),
        "motion_rate": np.array([m.rate for _, m in motions]),
        "motion_sign": np.array([-1.0 if n.reverse else 1.0 for n, _ in motions]),
    }


def _element(e: Element) -> tuple[int, int, int, Array, Array, Array, Array, float]:
    if isinstance(e, Sum):
        return SUM, -1, -1, NONE, NONE, NONE, NONE, e.offset
    ends = e.ends.node_a, e.ends.node_b, e.ends.point_a, e.ends.point_b
    if isinstance(e, Gap):
        return (WORLD_GAP if e.on_world else GAP, *ends, e.u, NONE, e.offset)
    if isinstance(e, Angle):
        return (ANGLE, *ends, e.u, e.w, e.offset)
    assert isinstance(e, Line)
    return (LINE, *ends, NONE, NONE, e.length)


def _of_elements(elements: list[Element]) -> dict[str, Array]:
    names = ("kind", "a", "b", "point_a", "point_b", "u", "w", "offset")
    rows = [_element(e) for e in elements]
    columns = {f"element_{name}": np.array([row[k] for row in rows]) for k, name in enumerate(names)}
    sums = [e if isinstance(e, Sum) else Sum(np.zeros(0, int), np.zeros(0, int), np.zeros(0)) for e in elements]
    start, at = packed([s.at.tolist() for s in sums])
    rate, factor = packed([s.rate.tolist() for s in sums])[1], [f for s in sums for f in s.factor.tolist()]
    curve = np.zeros((len(factor), 3))
    for first, s in zip(start[:-1], sums, strict=True):
        if s.curve:
            curve[first] = s.curve
    terms = {"term_start": start, "term_at": at, "term_rate": rate, "term_factor": np.array(factor)}
    return columns | terms | {"term_curve": curve}


def _goal(task: Task) -> tuple[int, int, Array, Array]:
    """Return the kind, node, point and quaternion of a task for the kernel."""
    if isinstance(task, PoseTask):
        return POSE, task.frame_at.node, task.frame_at.point, task.frame_at.quaternion
    if isinstance(task, PointTask):
        return POINT, task.node, task.local, np.zeros(4)
    assert isinstance(task, ComTask)
    return COM, -1, NONE, np.zeros(4)


class Problem(Protocol):
    """The data of a :class:`gpusim.robotics.IK` that a solver needs."""

    tree: Tree
    layout: steps.Layout
    level_of: dict[int, int]
    tasks: list[FrameTask]
    postures: list[PostureTask]
    lower: Array
    upper: Array
    single: Array


class KernelSolver(ABC):
    """Base class of kernel solvers."""

    def __init__(self, ik: Problem) -> None:
        self.ik, self.tree, self.layout = ik, ik.tree, ik.layout
        tree, layout = self.tree, self.layout
        masks = tree.masks
        path_start, path = packed([np.flatnonzero(row).tolist() for row in masks.path])
        at = np.full(tree.freedoms, -1)
        at[ik.single[:, 1]] = ik.single[:, 0]
        first = layout.level[layout.group[:-1]] if layout.level.size else layout.level
        moved = self._groups()
        group_start, groups = packed(moved)
        runs, starts, ends = self._runs(moved)
        tables: dict[str, Array] = {
            **_of_nodes(tree.forest),
            **_of_elements(tree.locked),
            **self._of_goals(),
            "node_com": tree.inertias.com,
            "path_start": path_start, "path": path,
            "rate_owner": masks.owner, "rate_rotates": masks.is_rotation, "rate_at": at, "rate_moves": layout.moves,
            "rate_group_start": group_start, "rate_group": groups,
            "rate_run": runs, "run_start": starts, "run_end": ends, "lower": ik.lower, "upper": ik.upper,
            "row_weight": layout.weight, "group": layout.group, "group_level": first,
            "level_start": np.array([layout.above(k) for k in range(layout.levels + 1)]),
            "level_pulls": np.array(layout.stiffness.any(axis=1)), "stiffness": layout.stiffness,
            "posture_level": np.array([ik.level_of[t.priority] for t in ik.postures]),
            "posture_weight": np.array([t.weight for t in ik.postures]),
        }  # fmt: skip
        self._tables = {name: self._typed(name, table) for name, table in tables.items()}
        self._sizes = self._counted()

    @staticmethod
    def _typed(name: str, table: Array) -> Array:
        return np.ascontiguousarray(table, np.int32 if TABLES[name] == "int" else np.float64)

    def _counted(self) -> dict[str, int]:
        tree, layout, ik = self.tree, self.layout, self.ik
        n, v, m, groups = len(tree.forest.nodes), tree.freedoms, int(layout.level.size), len(layout.group) - 1
        # Same layout as in cuda_kernels/robotics/robotics_tree.cuh.
        work = 16 * n + 6 * v + m * v + groups * v + 3 * m + layout.levels * (2 * v + m) + 9 * v + m * m
        work += tree.size + 3 * m + v if layout.guarded else 0
        return {
            "size": tree.size, "freedoms": v, "nodes": n, "goals": len(ik.tasks), "postures": len(ik.postures),
            "elements": len(tree.locked), "rows": m, "groups": groups, "levels": layout.levels,
            "task_levels": layout.task_levels, "numbers": sum(t.numbers for t in ik.tasks),
            "errors": sum(t.weight.size for t in ik.tasks), "work": work,
        }  # fmt: skip

    def _of_goals(self) -> dict[str, Array]:
        """Return the kernel's tables of all tasks except posture tasks."""
        goals = [_goal(t) for t in self.ik.tasks]
        names = ("goal_kind", "goal_node", "goal_point", "goal_frame")
        columns = {name: np.array([goal[k] for goal in goals]) for k, name in enumerate(names)}
        rows = np.full((len(goals), 6), -1)
        number = len(self.tree.locked)
        for k, task in enumerate(self.ik.tasks):
            for component in np.flatnonzero(task.weight > 0.0):
                rows[k, component] = number
                number += 1
        targets, errors = ([f(t) for t in self.ik.tasks] for f in (lambda t: t.numbers, lambda t: t.weight.size))
        starts = {"goal_target": np.cumsum([0, *targets])[:-1], "goal_error": np.cumsum([0, *errors])[:-1]}
        return columns | starts | {"goal_row": rows}

    def _groups(self) -> list[list[int]]:
        """Return, for each velocity, the indices of the error vectors that the velocity affects, in ascending order."""
        masks, moved = self.tree.masks, list[Array]()
        no_velocity = np.zeros(self.tree.freedoms, bool)

        def moved_by(node: int) -> Array:
            return masks.path[node] > 0.0 if node >= 0 else no_velocity

        for e in self.tree.locked:
            if isinstance(e, Sum):
                moved.append(np.isin(np.arange(self.tree.freedoms), e.rate))
            else:
                moved.append(moved_by(e.ends.node_a) | moved_by(e.ends.node_b))
        for task in self.ik.tasks:
            kind, node, *_ = _goal(task)
            for part in range(0, task.weight.size, 3):
                if (task.weight[part : part + 3] > 0.0).any():
                    all_of = ~no_velocity if kind == COM else moved_by(node)
                    moved.append(all_of & masks.is_rotation if part else all_of)
        return [np.flatnonzero(column).tolist() for column in np.array(moved).reshape(-1, self.tree.freedoms).T]

    def _runs(self, moved: list[list[int]]) -> tuple[Array, Array, Array]:
        """Return, for each velocity, the ranges of Jacobian rows that the velocity affects, as start and end indices.

        The rows of a range are consecutive and have the same priority level.
        """
        group, level = self.layout.group, self.layout.level
        found: list[list[tuple[int, int]]] = []
        for groups in moved:
            runs_of_velocity: list[tuple[int, int]] = []
            for g in groups:
                start, end = int(group[g]), int(group[g + 1])
                if runs_of_velocity and runs_of_velocity[-1][1] == start and level[start] == level[start - 1]:
                    runs_of_velocity[-1] = runs_of_velocity[-1][0], end
                else:
                    runs_of_velocity.append((start, end))
            found.append(runs_of_velocity)
        flat = np.array([run for runs_of_velocity in found for run in runs_of_velocity], np.int64).reshape(-1, 2)
        return np.cumsum([0, *map(len, found)]), flat[:, 0], flat[:, 1]

    @abstractmethod
    def launch(self, robot: Array, arrays: dict[str, Array]) -> None:
        """Run the kernel.

        Args:
            robot: parameters of the kernel. On return, ``robot`` contains the addresses of the arrays.
            arrays: input and output arrays of all worlds. After the call, the output arrays contain the results.
        """

    def solve(
        self, q: Array, aims: Mapping[str, Array], iterations: int, last_steps: int
    ) -> tuple[Array, dict[str, Array], Array, Array]:
        """Return postures, errors of each task, largest loop residuals, and largest components of the last step.

        Args:
            q: starting postures (worlds, size), not modified.
            aims: targets (worlds, numbers) of every task by name.
            iterations: number of steps. The last ``last_steps`` steps ignore posture tasks.
        """
        worlds, tasks = q.shape[0], self.ik.tasks
        mass = np.broadcast_to(self.tree.inertias.mass, (worlds, self._sizes["nodes"]))
        postures = [aims[t.name] for t in self.ik.postures]
        arrays = {
            "node_mass": np.ascontiguousarray(mass),
            "target": np.concatenate([np.zeros((worlds, 0)), *(aims[t.name] for t in tasks)], axis=1),
            "posture_target": np.concatenate([np.zeros((worlds, 0)), *postures], axis=1),
            "posture": np.array(q, np.float64, order="C"),
            "error": np.zeros((worlds, self._sizes["errors"])),
            "loops": np.zeros(worlds),
            "step": np.zeros(worlds),
        }
        robot = np.zeros((), robot_dtype())
        for name, value in self._sizes.items():
            robot[name] = value
        for name in robot_dtype().names or ():
            if hasattr(steps, name.upper()):  # a constant of steps.py
                robot[name] = getattr(steps, name.upper())
        robot["damping"], robot["worlds"] = self.layout.damping, worlds
        robot["iterations"], robot["without"] = iterations, last_steps
        robot["guarded"] = self.layout.guarded
        if worlds:
            self.launch(robot, arrays)
        ends = np.cumsum([t.weight.size for t in tasks])
        errors = {t.name: arrays["error"][:, end - t.weight.size : end] for t, end in zip(tasks, ends, strict=True)}
        return arrays["posture"], errors, arrays["loops"], arrays["step"]


class NativeSolver(KernelSolver):
    """Solver on the CPU."""

    def __init__(self, ik: Problem) -> None:
        super().__init__(ik)
        self._library = load_library(robotics_variant())

    def launch(self, robot: Array, arrays: dict[str, Array]) -> None:
        """Run the kernel in several threads."""
        threads = min(thread_count(), int(robot["worlds"]))
        given = self._tables | arrays | {"memory": np.zeros(threads * self._sizes["work"])}
        for name in (*TABLES, *OUTPUTS):
            robot[name] = given[name].ctypes.data
        self._library.solve_worlds(ctypes.c_void_p(robot.ctypes.data), threads)
