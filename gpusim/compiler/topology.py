"""Constant data of a finalized model as index arrays: constraint rows and the bodies that they connect.

*Elements* are scalar geometric functions of the poses (dot, spin, line, see reference/joints/elements.py). A *rigid
row* keeps an element at zero. An *axis row* applies a force law to an element. A *coupling row* acts on a sum of
elements. In the arrays, every constraint has ``block`` rows and ``slots`` bodies. Unused rows are empty. Body
``num_bodies`` is the world.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.compiler.coloring import ColorSets, color_constraints
from gpusim.compiler.elimination import Assembly, Elimination, eliminate
from gpusim.compiler.loops import constraints_in_loops
from gpusim.typing import Array

OUTER, MIDDLE = 4, 5
"""Values of ``SpinTable.component`` for the outer and the middle Euler angle."""


@dataclass
class DotTable:
    """Elements ``u . w - c0`` (dot elements), see description/joint_kinds.py.

    Vectors to points start at the centers of mass.
    """

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
    """Elements that measure a rotation (spin elements).

    The axis ``u`` is fixed in body ``owner``. The rate of an element is the relative angular velocity along ``u``.
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
    """Elements ``|w| - length`` (line elements). The vector w connects two points.

    Vectors to points start at the centers of mass.
    """

    body_a: Array
    body_b: Array
    vector_a: Array
    vector_b: Array
    length: Array
    wrap: Array
    """2 p for the first line of the wrapped path with index p, 2 p + 1 for the second line, or -1 for other lines."""


@dataclass
class WrapTable:
    """Paths of ropes around spheres and cylinders (reference/joints/wrapping.py). Vectors start at centers of mass."""

    body_a: Array
    body_b: Array
    body: Array
    """Body of the sphere or cylinder."""
    side_body: Array
    """Body of the side point, or -1 without a side point."""
    cylinder: Array
    """1 for a cylinder, 0 for a sphere."""
    radius: Array
    vector_a: Array
    vector_b: Array
    center: Array
    side: Array
    frame: Array
    """(paths, 3, 3) rotation matrix, wrap frame to body. The last column is the axis of a cylinder."""

    @property
    def axis_x(self) -> Array:
        """Return the x axis of the sphere or cylinder of each path, in the body frame, (paths, 3)."""
        return self.frame[:, :, 0]

    @property
    def axis_y(self) -> Array:
        """Return the y axis of the sphere or cylinder of each path, in the body frame, (paths, 3)."""
        return self.frame[:, :, 1]


@dataclass
class AngleTable:
    """Joint angles about axes that are fixed in body ``owner``.

    An angle is measured from ``ref_a`` (fixed in body a) to ``ref_b`` (fixed in body b), and includes full rotations.
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
    """Coupling rows: constraint rows of the form ``sum of factor * element - offset``.

    A curved row also contains the polynomial ``curve`` (c2, c3, c4) of its first element x: c2 x^2 + c3 x^3 + c4 x^4.
    """

    row: Array
    offset: Array
    """(n,) offset of each row. NaN stands for the value of the sum in the starting pose."""
    rigid: int
    """Number of rigid rows."""
    start: Array
    """(n + 1,) index of the first term of each row."""
    element: Array
    """(terms,) element of each term."""
    factor: Array
    slot: Array
    """(terms, 2) slots of the constraint that contain the bodies a and b of the term's element."""
    curved: Array
    """(n,) 1 for curved rows."""
    curve: Array
    """(n, 3) coefficients of the polynomial of each row, or zeros."""

    @property
    def rigid_row(self) -> Array:
        """Return the row indices of the rigid couplings. These are the first rows of the table."""
        return self.row[: self.rigid]

    def curve_values(self, values: Array) -> Array:
        """Return the values of the polynomials of all n rows, (worlds, n), for element values (worlds, elements)."""
        x, c = values[:, self.element[self.start[:-1]]], self.curve.T
        return np.asarray(x * x * (c[0] + x * (c[1] + x * c[2])))

    def slopes(self, values: Array) -> Array:
        """Return the derivatives of all rows with respect to the elements of their terms, (1 or worlds, terms)."""
        if not self.curved.any():
            return self.factor[None]
        result, first = np.tile(self.factor, (values.shape[0], 1)), self.start[:-1]
        x, c = values[:, self.element[first]], self.curve.T
        result[:, first] += x * (2.0 * c[0] + x * (3.0 * c[1] + x * (4.0 * c[2])))
        return result

    def mixed(self, values: Array, factor: Array) -> Array:
        """Return the sum of factor * element value over the terms of each row, (worlds, n).

        Args:
            values: element values, (worlds, elements).
            factor: factor of each term, (1 or worlds, terms).
        """
        total = factor[:, self.start[:-1]] * values[:, self.element[self.start[:-1]]]
        counts = np.diff(self.start)
        for k in range(1, int(counts.max(initial=0))):
            more = np.flatnonzero(counts > k)
            at = self.start[more] + k
            total[:, more] += factor[:, at] * values[:, self.element[at]]
        return np.asarray(total)


@dataclass
class Topology:
    """Index arrays of a finalized model: constraints, elements and bodies."""

    num_bodies: int
    num_constraints: int
    block: int
    slots: int
    num_elements: int
    dot: DotTable
    spin: SpinTable
    line: LineTable
    wrap: WrapTable
    angle: AngleTable
    coupling: CouplingTable
    element_body_a: Array
    element_body_b: Array
    rigid_element: Array
    rigid_row: Array
    """Row index of each rigid element: constraint * block + (row within the constraint)."""
    axis_element: Array
    """Element of each axis row. An index of at least ``num_elements`` selects a row of ``coupling``."""
    axis_row: Array
    element_row: Array
    """Elements that have a constraint row. ``element_row_index`` contains the row indices."""
    element_row_index: Array
    constraint_bodies: Array
    """(constraints, slots) bodies of each constraint. Unused slots contain the world."""
    constraint_labels: list[str]
    constraint_joint: Array
    """Joint index of each constraint, or -1 for lines, couplings and hubs."""
    hub_body: Array
    """Body of each empty constraint that represents a hub (compiler/elimination.py), or -1, (constraints,)."""
    coupled_constraint: Array
    """Constraints of coupled actuators, whose law couples several axes (description/actuator_kinds.py)."""
    swept: Array
    """(constraints,) True for constraints of the colored solver, False for the direct solver
    (builder/joint_groups.py)."""
    row_used: Array
    """(constraints, block) True if a row exists."""
    body_sides: Array
    """(bodies, n) constraint slots (sides) that contain each body. The index of a side is constraint * slots + slot.
    Unused entries contain the total number of sides."""
    dynamic: Array
    """(bodies,) True for bodies that impulses can move."""
    conveyor: Array
    """(bodies,) True for conveyor belts. The pose of a conveyor belt is constant, but its surface moves."""

    @property
    def articulated(self) -> Array:
        """Return a mask (bodies,) of movable bodies with joints or couplings in the direct solver."""
        on = np.zeros(self.num_bodies + 1, dtype=bool)
        on[self.constraint_bodies[~self.swept]] = True
        return on & self.dynamic

    @cached_property
    def systems(self) -> Array:
        """Return the lowest body index in the system of each body, (bodies,).

        A system contains all movable bodies that constraints of the direct solver connect.
        """
        first, joined = np.arange(self.num_bodies + 1), self.constraint_bodies[~self.swept]
        moves = self.dynamic[joined]
        while True:
            lowest = np.where(moves, first[joined], self.num_bodies).min(axis=1, keepdims=True)
            lower = first.copy()
            np.minimum.at(lower, joined[moves], np.broadcast_to(lowest, joined.shape)[moves])
            lower = lower[lower]
            if (lower == first).all():
                return first
            first = lower

    @cached_property
    def free(self) -> Array:
        """Return a mask (bodies,) of movable bodies without couplings and without rigid rows that restrict rotation.

        Examples are bodies without joints and bodies on ball joints.
        """
        element = self.rigid_element
        rotational = np.concatenate([self.dot.linear == 0.0, np.ones(self.spin.owner.size, dtype=bool)])
        indices = np.flatnonzero(element < rotational.size)  # all other elements are lines of rods
        rows = np.concatenate([self.rigid_row[indices[rotational[element[indices]]]], self.coupling.row])
        constrained = np.zeros(self.num_bodies + 1, dtype=bool)
        constrained[self.constraint_bodies[rows // self.block]] = True
        return self.dynamic & ~constrained

    @cached_property
    def in_loop(self) -> Array:
        """Return a mask (constraints,) of constraints in closed loops."""
        return constraints_in_loops(self._joined, self.dynamic)

    @cached_property
    def in_stiff_loop(self) -> Array:
        """Return a mask (constraints,) of constraints in closed loops without bushings."""
        axes, rigid = (
            np.bincount(rows // self.block, minlength=self.num_constraints) for rows in (self.axis_row, self.rigid_row)
        )
        bushing = (axes == 6) & (rigid == 0)
        joined = [set() if free else bodies for free, bodies in zip(bushing, self._joined, strict=True)]
        return constraints_in_loops(joined, self.dynamic)

    @cached_property
    def _row_bodies(self) -> dict[int, set[int]]:
        """Return the bodies that each constraint row connects."""
        coupling = self.coupling
        rows = np.concatenate([self.element_row_index, np.repeat(coupling.row, np.diff(coupling.start))])
        element = np.concatenate([self.element_row, coupling.element])
        bodies: dict[int, set[int]] = {}
        for row, a, b in zip(rows, self.element_body_a[element], self.element_body_b[element], strict=True):
            bodies.setdefault(int(row), set()).update((int(a), int(b)))
        return bodies

    @cached_property
    def _joined(self) -> list[set[int]]:
        """Return the bodies that each constraint connects."""
        joined: list[set[int]] = [set() for _ in range(self.num_constraints)]
        for row, bodies in self._row_bodies.items():
            joined[row // self.block] |= bodies
        return joined

    @cached_property
    def loops(self) -> Array:
        """Return a mask (constraints,) of constraints in closed loops that the direct solver solves."""
        return self.in_loop & ~self.swept

    @cached_property
    def may_depend(self) -> Array:
        """Return a mask (constraints,) of constraints in :attr:`loops` with possibly linearly dependent rows."""
        return self.loops & self.in_loop[self.axis_row // self.block].any()

    @cached_property
    def _factorization(self) -> tuple[Elimination, Assembly]:
        return eliminate(self.constraint_bodies, self.dynamic, self.swept, {}, set())

    @cached_property
    def hubs(self) -> dict[int, int]:
        """Return a dict that maps each hub of the direct solver to the empty constraint that represents it."""
        direct = set(self.constraint_bodies[~self.swept].ravel().tolist())
        return {b: c for c, b in enumerate(self.hub_body.tolist()) if b in direct and self.dynamic[b]}

    @cached_property
    def hub_factorization(self) -> tuple[Elimination, Assembly]:
        """Return the symbolic factorization with hubs and its products, which the kernels use."""
        if not self.hubs:
            return self._factorization
        alone = {
            row // self.block
            for row, bodies in self._row_bodies.items()
            if {b for b in bodies if self.dynamic[b]} <= self.hubs.keys()
        }
        return eliminate(self.constraint_bodies, self.dynamic, self.swept, self.hubs, alone)

    @property
    def elimination(self) -> Elimination:
        """Return the symbolic factorization of J M^-1 J^T for the direct solver."""
        return self._factorization[0]

    @property
    def assembly(self) -> Assembly:
        """Return the products that add up to the blocks of J M^-1 J^T."""
        return self._factorization[1]

    @cached_property
    def _colorings(self) -> dict[int, ColorSets]:
        return {}

    def coloring_for(self, max_colors: int) -> ColorSets:
        """Return the graph coloring of the constraints that the colored solver solves.

        Args:
            max_colors: maximum number of colors, 1 to 62.
        """
        if max_colors not in self._colorings:
            among = np.flatnonzero(self.swept) if self.swept.any() else np.arange(self.num_constraints)
            self._colorings[max_colors] = color_constraints(self.constraint_bodies, self.dynamic, max_colors, among)
        return self._colorings[max_colors]


def axes_in_loops(t: Topology, ropes: Array) -> Array:
    """Return the axis rows in closed loops of the direct solver. Exclude ropes and loops with bushings."""
    return np.setdiff1d(np.flatnonzero((t.may_depend & t.in_stiff_loop)[t.axis_row // t.block]), ropes)
