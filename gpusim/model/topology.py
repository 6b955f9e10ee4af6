"""What never changes after finalize: which rows there are and which bodies they join, as index arrays.

*Elements* are the scalar geometric functions (dot, spin, line; see reference/elements.py). A rigid row is
an element that must stay zero; an axis row is an element with a law; a coupling row is a sum of elements.
Every constraint has ``block`` rows (the padding rows are empty) over ``slots`` bodies. Body ``num_bodies``
is the world.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.model.coloring import ColorSets, color_constraints
from gpusim.model.elimination import Assembly, Elimination, eliminate
from gpusim.model.loops import constraints_in_loops
from gpusim.typing import Array

OUTER, MIDDLE = 4, 5
"""Components of elements along ordered turns."""


@dataclass
class DotTable:
    """Elements ``u . w - c0`` (model/joint_kinds.py); vectors from the centers of mass."""

    body_a: Array
    body_b: Array
    body_u: Array
    u: Array
    vector_a: Array
    vector_b: Array
    linear: Array
    c0: Array


@dataclass
class SpinTable:
    """Elements along a turn: the rate is ``u . (w_b - w_a)`` with u fixed in body ``owner``.

    ``angle`` is the tracked angle, or -1 for a component (0 to 2) or the length (3) of a rotation vector between
    ``frame_a`` and ``frame_b`` (quaternions in the bodies). Components OUTER and MIDDLE are tracked turns about one of
    three axes that carry each other; ``other`` is fixed in the other body than u (model/ordered_turns.py).
    """

    body_a: Array
    body_b: Array
    owner: Array
    u: Array
    angle: Array
    component: Array
    other: Array
    frame_a: Array
    frame_b: Array


@dataclass
class LineTable:
    """Elements ``|w| - length`` between two points from the centers of mass."""

    body_a: Array
    body_b: Array
    vector_a: Array
    vector_b: Array
    length: Array


@dataclass
class AngleTable:
    """Joint angles that are counted over full turns: from ref_a (body a) to ref_b (body b) about the axis of owner.

    ``middle`` 1: that of ref_b above the plane across ref_a instead.
    """

    body_a: Array
    body_b: Array
    owner: Array
    axis: Array
    ref_a: Array
    ref_b: Array
    middle: Array


@dataclass
class CouplingTable:
    """Rows ``sum of factor * element - offset``: first the rigid ones, then axis rows (of tendons)."""

    row: Array
    offset: Array
    """NaN: taken from the starting pose."""
    rigid: int
    """How many of them are rigid."""
    start: Array
    """(n + 1,): where the terms of each begin."""
    element: Array
    """(terms,), as are the next two."""
    factor: Array
    slot: Array
    """(terms, 2): slots of the element's a and b in the constraint."""

    @property
    def rigid_row(self) -> Array:
        """Rows of the rigid ones, which are the first."""
        return self.row[: self.rigid]

    def mixed(self, values: Array) -> Array:
        """Sums over the terms of values of the elements: (worlds, elements) to (worlds, n)."""
        total = self.factor[self.start[:-1]] * values[:, self.element[self.start[:-1]]]
        counts = np.diff(self.start)
        for k in range(1, int(counts.max(initial=0))):
            more = np.flatnonzero(counts > k)
            at = self.start[more] + k
            total[:, more] += self.factor[at] * values[:, self.element[at]]
        return np.asarray(total)


@dataclass
class Topology:
    """Index arrays of a finalized model."""

    num_bodies: int
    num_constraints: int
    block: int
    slots: int
    num_elements: int
    dot: DotTable
    spin: SpinTable
    line: LineTable
    angle: AngleTable
    coupling: CouplingTable
    element_body_a: Array
    element_body_b: Array
    rigid_element: Array
    rigid_row: Array
    """Flat row (constraint * block + place) of each rigid element."""
    axis_element: Array
    """Element of each axis row; from the number of elements on: the coupling of that number."""
    axis_row: Array
    element_row: Array
    """Elements that have a row of their own, and below the rows' flat index."""
    element_row_index: Array
    constraint_bodies: Array
    """(constraints, slots); the world fills unused slots."""
    constraint_labels: list[str]
    constraint_joint: Array
    """Joint of each constraint, -1 for lines and couplings."""
    coupled_constraint: Array
    """Constraints that are the rows of coupled laws (model/actuator_kinds.py)."""
    swept: Array
    """(constraints,) True where the direct solver leaves a constraint to sweeps (model/joint_groups.py)."""
    row_used: Array
    """(constraints, block), True where a row exists."""
    body_sides: Array
    """(bodies, most): sides (constraint * slots + slot) that act on a body, padded with the number of sides."""
    dynamic: Array
    """(bodies,) True where impulses change the velocity."""

    @property
    def articulated(self) -> Array:
        """(bodies,) True where a joint or coupling that is solved directly acts on a body."""
        on = np.zeros(self.num_bodies + 1, dtype=bool)
        on[self.constraint_bodies[~self.swept]] = True
        return on & self.dynamic

    @cached_property
    def systems(self) -> Array:
        """(bodies,) the first of the bodies that constraints of the factor join with each body, or itself."""
        first, joined = np.arange(self.num_bodies + 1), self.constraint_bodies[~self.swept]
        moves = self.dynamic[joined]
        while True:
            least = np.where(moves, first[joined], self.num_bodies).min(axis=1, keepdims=True)
            lower = first.copy()
            np.minimum.at(lower, joined[moves], np.broadcast_to(least, joined.shape)[moves])
            lower = lower[lower]
            if (lower == first).all():
                return first
            first = lower

    @cached_property
    def free(self) -> Array:
        """(bodies,) True for those that can move and that no constraint joins to others."""
        joined = np.zeros(self.num_bodies + 1, dtype=bool)
        joined[self.constraint_bodies] = True
        return self.dynamic & ~joined

    @cached_property
    def in_loop(self) -> Array:
        """(constraints,) True for those that lie in a closed loop."""
        rows, elements = [self.element_row_index], [self.element_row]
        coupling = self.coupling
        rows.append(np.repeat(coupling.row, np.diff(coupling.start)))
        elements.append(coupling.element)
        constraint, element = np.concatenate(rows) // self.block, np.concatenate(elements)
        joined: list[set[int]] = [set() for _ in range(self.num_constraints)]
        for c, a, b in zip(constraint, self.element_body_a[element], self.element_body_b[element], strict=True):
            joined[c] |= {int(a), int(b)}
        return constraints_in_loops(joined, self.dynamic)

    @cached_property
    def loops(self) -> Array:
        """(constraints,) True for those in closed loops that are solved directly."""
        return self.in_loop & ~self.swept

    @cached_property
    def may_depend(self) -> Array:
        """(constraints,) True for those of ``loops`` whose rows may depend on each other.

        Nowhere where no axis row lies in a loop: rigid rows alone share what they bear by rounding, and hold.
        """
        return self.loops & self.in_loop[self.axis_row // self.block].any()

    @cached_property
    def _factorization(self) -> tuple[Elimination, Assembly]:
        return eliminate(self.constraint_bodies, self.dynamic, self.swept)

    @property
    def elimination(self) -> Elimination:
        """Symbolic factorization, made at the first use: the colored solver never needs it."""
        return self._factorization[0]

    @property
    def assembly(self) -> Assembly:
        """Products that fill the blocks of J M^-1 J^T."""
        return self._factorization[1]

    @cached_property
    def _colorings(self) -> dict[int, ColorSets]:
        return {}

    def coloring_for(self, max_colors: int) -> ColorSets:
        """Colors of the swept constraints, or of all where none is told apart; made at the first use of each value.

        Args:
            max_colors: how many colors there may be, 1 to 62.
        """
        if max_colors not in self._colorings:
            among = np.flatnonzero(self.swept) if self.swept.any() else np.arange(self.num_constraints)
            self._colorings[max_colors] = color_constraints(self.constraint_bodies, self.dynamic, max_colors, among)
        return self._colorings[max_colors]


def axes_in_loops(t: Topology, ropes: Array) -> Array:
    """Return the axis rows of loops that are solved directly, without the limits of ropes, which move."""
    return np.setdiff1d(np.flatnonzero(t.may_depend[t.axis_row // t.block]), ropes)
