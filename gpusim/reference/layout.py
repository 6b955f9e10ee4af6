"""Index arrays for the reference stages, computed once from the topology."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.compiler.topology import OUTER, Topology
from gpusim.typing import Array

ROW_GAP, ROW_ROTATION = 1, 2
"""Kinds of rigid rows. ROW_GAP is for distances (m). ROW_ROTATION is for rotations and couplings."""


class Layout:
    """Indices of elements, constraint rows and sides in flat arrays.

    A constraint acts on a list of bodies. A *slot* is an index in this list. A *side* is one slot of one constraint.
    The index of a side is ``constraint * slots + slot``. Row k of a side has the index ``side * block + k``.
    """

    def __init__(self, t: Topology) -> None:
        self.topology = t
        self.num_sides = t.num_constraints * t.slots
        self.side_body = t.constraint_bodies.ravel()
        self.side_constraint = np.repeat(np.arange(t.num_constraints), t.slots)
        self.dots = slice(0, t.dot.u.shape[0])
        self.spins = slice(self.dots.stop, self.dots.stop + t.spin.u.shape[0])
        self.lines = slice(self.spins.stop, self.spins.stop + t.line.length.shape[0])
        self.wrapped = np.flatnonzero((t.line.wrap >= 0) & (t.line.wrap % 2 == 0))
        row = t.element_row_index
        constraint, local_row = np.divmod(row, t.block)
        self.row_a = (constraint * t.slots) * t.block + local_row
        self.row_b = (constraint * t.slots + 1) * t.block + local_row
        # 1 if u rotates with the parent. The Jacobian then depends on the whole separation vector.
        self.dot_on_a = (t.dot.body_u == t.dot.body_a).astype(np.float64)[:, None]
        self.totals = np.flatnonzero(t.spin.component == 3)
        self.ordered = np.flatnonzero(t.spin.component >= OUTER)
        self.dot_bodies = np.concatenate([t.dot.body_u, t.dot.body_a, t.dot.body_b])
        self.dot_linear = t.dot.linear[:, None]
        counts = np.diff(t.coupling.start)
        constraint, local_row = np.divmod(np.repeat(t.coupling.row, counts), t.block)
        self.coupling_rows = (constraint[:, None] * t.slots + t.coupling.slot) * t.block + local_row[:, None]
        # Each coupling has a separate target, so NumPy can add the k-th terms of all couplings at once.
        number = np.arange(t.coupling.element.size) - np.repeat(t.coupling.start[:-1], counts)
        self.coupling_rounds = [np.flatnonzero(number == k) for k in range(int(counts.max(initial=0)))]
        self.row_kinds = self._row_kinds()
        self.side_arm = self._side_arms()
        self.longest_arm = float(np.sqrt(np.max(np.sum(self.side_arm**2, axis=1), initial=0.0)))
        self.axis_constraint, self.axis_slot = np.divmod(t.axis_row, t.block)
        self.axis_swept = t.swept[self.axis_constraint]

    def _row_kinds(self) -> Array:
        t = self.topology
        linear = np.zeros(t.num_elements, dtype=bool)
        linear[self.dots] = t.dot.linear > 0.5
        linear[self.lines] = True
        kinds = np.zeros(t.num_constraints * t.block, dtype=np.int64)
        kinds[t.rigid_row] = np.where(linear[t.rigid_element], ROW_GAP, ROW_ROTATION)
        kinds[t.coupling.rigid_row] = ROW_ROTATION
        return kinds

    def side_arms(self, rotation: Array) -> Array:
        """Return the moment arm of each side about the center of mass of the body, world frame, (worlds, sides, 3)."""
        return rotations.matvec(rotation[:, self.side_body], self.side_arm.astype(rotation.dtype))

    def _side_arms(self) -> Array:
        t = self.topology
        arms = np.zeros((self.num_sides, 3))
        tables = ((t.dot, self.dots, t.dot.linear > 0.5), (t.line, self.lines, np.ones(t.line.length.size, bool)))
        for table, at, pulls in tables:
            for element, row in zip(t.element_row, t.element_row_index, strict=True):
                k = element - at.start
                if not (at.start <= element < at.stop) or not pulls[k]:
                    continue
                side = (row // t.block) * t.slots
                arms[side], arms[side + 1] = table.vector_a[k], table.vector_b[k]
        return arms

    def sum_slots(self, sides: Array) -> Array:
        """Sum values (worlds, sides, block) over the bodies of each constraint. Return (worlds, constraints, block)."""
        t = self.topology
        split = sides.reshape(sides.shape[0], t.num_constraints, t.slots, t.block)
        total = split[:, :, 0] + split[:, :, 1]
        for s in range(2, t.slots):
            total = total + split[:, :, s]
        return np.asarray(total)

    def sum_sides(self, sides: Array) -> Array:
        """Sum k values per side, (worlds, sides + 1, k), over the sides of each body. Return (worlds, bodies, k)."""
        table = self.topology.body_sides
        if table.shape[1] == 0:
            return np.zeros((sides.shape[0], table.shape[0], *sides.shape[2:]), sides.dtype)
        total = sides[:, table[:, 0]]
        for k in range(1, table.shape[1]):
            total += sides[:, table[:, k]]
        return total
