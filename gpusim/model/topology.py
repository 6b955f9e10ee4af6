"""What never changes after finalize: which rows there are and which bodies they join, as index arrays.

*Elements* are the scalar geometric functions (dot, spin, line; see reference/elements.py). A rigid row is
an element that must stay zero; an axis row is an element with a law; a coupling row mixes two elements.
Every constraint has ``block`` rows (the padding rows are empty) over ``slots`` bodies. Body ``num_bodies``
is the world.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from gpusim.typing import Array


@dataclass
class DotTable:
    """Elements ``u . w - c0`` (joints/base.py); vectors from the centers of mass."""

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
    ``frame_a`` and ``frame_b`` (quaternions in the bodies).
    """

    body_a: Array
    body_b: Array
    owner: Array
    u: Array
    angle: Array
    component: Array
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
    """Joint angles that are counted over full turns: from ref_a (body a) to ref_b (body b) about the axis of owner."""

    body_a: Array
    body_b: Array
    owner: Array
    axis: Array
    ref_a: Array
    ref_b: Array


@dataclass
class CouplingTable:
    """Rows ``q_follower - multiplier q_leader - offset`` of two elements."""

    row: Array
    leader: Array
    follower: Array
    multiplier: Array
    offset: Array
    """NaN: taken from the starting pose."""
    slot: Array
    """(n, 4): slots of leader's a and b, follower's a and b in the constraint."""


@dataclass
class Elimination:
    """Block LDL^T of the constraint graph: block operations in the order in which they may run.

    Blocks: first the diagonal ones, one for each constraint, then the entries of L (edges). Within a
    level no operation reads what another one writes; ``update`` and ``forward`` are split into rounds
    in which every target occurs once, so that sums have a fixed order.
    """

    num_blocks: int
    edge_blocks: dict[tuple[int, int], int]
    block_row: Array
    block_column: Array
    """Constraints that a block joins."""
    levels: list[Level] = field(default_factory=list)


@dataclass
class Level:
    """Operations of one level of the elimination tree."""

    pivots: Array
    edge: Array
    """Blocks A_ik with k in ``pivots``: L_ik = A_ik D_k^-1."""
    edge_pivot: Array
    edge_row: Array
    updates: list[tuple[Array, Array, Array]]
    """Rounds of (target block, position in ``edge`` of L_ik, position of A_jk): A_ij -= L_ik A_jk^T."""
    forward: list[tuple[Array, Array, Array]]
    """Rounds of (row i, position in ``edge``, pivot k): y_i -= L_ik y_k."""
    backward: list[tuple[Array, Array, Array]]
    """Rounds of (pivot k, position in ``edge``, row i): x_k -= L_ik^T x_i."""


@dataclass
class Assembly:
    """Rounds of products that add up the blocks of J M^-1 J^T: (block, side of i, side of j); see direct.py."""

    rounds: list[tuple[Array, Array, Array]]


@dataclass
class ColorSets:
    """Constraints by color, and those that no color could hold (solver/coloring.py makes them)."""

    colors: list[Array]
    """Constraints of each color, rising."""
    color_of: Array
    """(constraints,) color of each constraint, -1 for the overflow."""
    overflow: Array
    """Constraints in no color, rising."""
    overflow_load: Array
    """(bodies,) how many sides of overflow constraints act on each dynamic body; at least 1, and 1 for others."""


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
    axis_row: Array
    element_row: Array
    """Elements that have a row of their own, and below the rows' flat index."""
    element_row_index: Array
    constraint_bodies: Array
    """(constraints, slots); the world fills unused slots."""
    constraint_labels: list[str]
    row_used: Array
    """(constraints, block), True where a row exists."""
    body_sides: Array
    """(bodies, most): sides (constraint * slots + slot) that act on a body, padded with the number of sides."""
    dynamic: Array
    """(bodies,) True where impulses change the velocity."""

    @cached_property
    def _factorization(self) -> tuple[Elimination, Assembly]:
        from gpusim.solver.elimination import eliminate

        return eliminate(self.constraint_bodies, self.dynamic)

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
        """Colors of the constraints, at most ``max_colors`` (1 to 62); made at the first use of each value."""
        if max_colors not in self._colorings:
            from gpusim.solver.coloring import color_constraints

            self._colorings[max_colors] = color_constraints(self.constraint_bodies, self.dynamic, max_colors)
        return self._colorings[max_colors]
