"""Convert joints and actuators to elements and constraint rows, for ``finalize``."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpusim import rotations
from gpusim.compiler.topology import (
    MIDDLE,
    OUTER,
    AngleTable,
    CouplingTable,
    DotTable,
    LineTable,
    SpinTable,
    WrapTable,
)
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import (
    CHORD,
    COUNTED,
    DISTANCE,
    MIDDLE_ANGLE,
    OUTER_ANGLE,
    SUM,
    TRANSLATION,
    Coordinate,
    DotRow,
    JointFrames,
    LineRow,
    joint_frames,
    joint_type,
)
from gpusim.description.specs import WORLD, JointSpec, Term
from gpusim.description.wraps import CYLINDER, WrappedPath
from gpusim.transform import Transform
from gpusim.typing import Array

# Parameters of every axis row, as in model/fields.py.
AXIS_PARAMETERS = ("limit_lower", "limit_upper", "damping", "friction", "armature", "limit_restitution")


@dataclass
class Axis:
    """Axis row: a constraint row with a force law. ``joint`` is -1 for the axis row of a line between two points."""

    element: tuple[str, int]
    label: str
    joint: int
    coordinate: int
    params: dict[str, float]


@dataclass
class Constraint:
    """Constraint: all constraint rows of a joint, a coupling, a coupled actuator, or a line between two points."""

    label: str
    bodies: list[int]
    rigid: list[tuple[str, int]] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    mix: int = -1
    joint: int = -1
    coupled: list[int] = field(default_factory=list)


@dataclass
class Mix:
    """Weighted sum of elements (scalar constraint functions).

    Each term contains the kind and the index of an element, a factor, and the two bodies of the element (-1 for the
    world). ``curve`` contains the polynomial of the first term, or is empty (see CouplingSpec).
    """

    terms: list[tuple[tuple[str, int], float, tuple[int, int]]]
    offset: float
    curve: tuple[float, ...] = ()

    @property
    def bodies(self) -> list[int]:
        """Return the bodies of all terms without duplicates."""
        return list(dict.fromkeys(body for *_, ends in self.terms for body in ends))


class RowCollector:
    """Converter from joints and actuators to elements (scalar constraint functions), axis rows and constraints.

    Args:
        builder: complete and checked contents of the model.
        asked: pairs (joint, coordinate) that need an axis row even without limits and actuators.
    """

    def __init__(self, builder: Elements, asked: Set[tuple[int, int]] = frozenset()) -> None:
        self.builder, self._asked = builder, asked
        self.elements: dict[str, list[dict[str, Any]]] = {"dot": [], "spin": [], "line": []}
        self.angles: list[dict[str, Any]] = []
        self.wraps: list[dict[str, Any]] = []
        self.mixes: list[Mix] = []
        self.axes: list[Axis] = []
        self.constraints: list[Constraint] = []
        self._joint_axes: dict[tuple[int, int], int] = {}
        self._coordinates: dict[tuple[int, int], tuple[str, int]] = {}
        self.angle_of: dict[tuple[int, int], int] = {}
        self.axis_of_actuator: dict[str, int] = {}
        self.frames: list[JointFrames] = [joint_frames(j) for j in builder.joints]
        self.coordinates: list[list[Coordinate]] = [
            joint_type(j.kind).coordinate_list(f, j.params) for j, f in zip(builder.joints, self.frames, strict=True)
        ]
        self._line_constraints: list[Constraint] = []
        for index, joint in enumerate(builder.joints):
            self._track_angles(index, joint)
        self.wrap_of: dict[tuple[int, int], int] = {}
        for index, coordinates in enumerate(self.coordinates):
            for k, c in enumerate(coordinates):
                if c.path is not None:
                    self.wrap_of[index, k] = len(self.wraps)
                    self.wraps.append(self._wrap_row(c.path))

    def joint_axis(self, joint: int, coordinate: int) -> int:
        """Return the index of the axis row of a joint coordinate. Create the axis row if it is missing."""
        key = (joint, coordinate)
        if key not in self._joint_axes:
            spec = self.builder.joints[joint]
            params = {name: float(spec.params[name][coordinate]) for name in AXIS_PARAMETERS}
            self._joint_axes[key] = len(self.axes)
            self.axes.append(Axis(self.coordinate_element(*key), spec.label, joint, coordinate, params))
        return self._joint_axes[key]

    def actuator_axis(self, actuator: int) -> int:
        """Return the index of the axis row on which an actuator acts."""
        return self.axis_of_actuator[self.builder.actuators[actuator].label]

    def line_axis(
        self, label: str, body_a: int, point_a: Array, body_b: int, point_b: Array, limit_restitution: float = 0.0
    ) -> int:
        """Add a constraint with one axis row for a line between two points. Return the index of the axis row."""
        element = self._line(body_a, point_a, body_b, point_b, 0.0)
        free = dict.fromkeys(AXIS_PARAMETERS, 0.0) | {"limit_lower": -np.inf, "limit_upper": np.inf}
        free["limit_restitution"] = limit_restitution
        self.axes.append(Axis(element, label, -1, 0, free))
        constraint = Constraint(label, [body_a, body_b])
        constraint.axes.append(len(self.axes) - 1)
        self._line_constraints.append(constraint)
        return len(self.axes) - 1

    def collect(self) -> None:
        """Create the constraints of all joints, lines and couplings."""
        for index, joint in enumerate(self.builder.joints):
            for k in range(len(self.coordinates[index])):
                if (index, k) in self._asked or _needs_row(joint, k):
                    self.joint_axis(index, k)
        for index, joint in enumerate(self.builder.joints):
            constraint = Constraint(joint.label, self._bodies(index), joint=index)
            for row in joint_type(joint.kind).rows(self.frames[index], joint.params):
                constraint.rigid.append(self._rigid(joint, row))
            coordinates = range(len(self.coordinates[index]))
            constraint.axes = [self._joint_axes[index, k] for k in coordinates if (index, k) in self._joint_axes]
            if constraint.rigid or constraint.axes:
                self.constraints.append(constraint)
        self.constraints += self._line_constraints
        for coupling in self.builder.couplings:
            mix = self._mix(coupling.terms, np.nan if coupling.offset is None else coupling.offset)
            self.mixes[mix].curve = coupling.curve
            self.constraints.append(Constraint(coupling.label, self.mixes[mix].bodies, mix=mix))

    def add_coupled(self, label: str, axes: list[int]) -> None:
        """Add the constraint of an actuator that couples the axis rows ``axes``. Call :meth:`collect` first."""
        mixes, bodies = [], []
        for axis in axes:
            element = self.axes[axis].element
            if element[0] == "mix":
                terms = self.mixes[element[1]].terms
            else:
                row = self.elements[element[0]][element[1]]
                terms = [(element, 1.0, (row["body_a"], row["body_b"]))]
            mixes.append(len(self.mixes))
            self.mixes.append(Mix(terms, 0.0))
            bodies += self.mixes[-1].bodies
        self.constraints.append(Constraint(label, list(dict.fromkeys(bodies)), coupled=mixes))

    def _bodies(self, joint: int) -> list[int]:
        for k, c in enumerate(self.coordinates[joint]):
            if (c.kind == SUM or c.path is not None) and (joint, k) in self._joint_axes:
                return self.mixes[self.coordinate_element(joint, k)[1]].bodies
        return [self.builder.joints[joint].parent, self.builder.joints[joint].child]

    def _mix(self, terms: Iterable[Term], offset: float) -> int:
        joints, flat_terms = self.builder.joints, []
        for j, k, factor in terms:
            kind, index = self.coordinate_element(j, k)
            if kind == "mix":
                flat_terms += [
                    (element, factor * inner_factor, ends) for element, inner_factor, ends in self.mixes[index].terms
                ]
            else:
                flat_terms.append(((kind, index), factor, (joints[j].parent, joints[j].child)))
        self.mixes.append(Mix(flat_terms, offset))
        return len(self.mixes) - 1

    def _wrapped(self, path: WrappedPath, wrap: int) -> int:
        center, terms = path.wrap.xform.position, []
        lines = (
            (path.body_a, path.point_a, path.wrap.body, center),
            (path.wrap.body, center, path.body_b, path.point_b),
        )
        for side, (body_a, point_a, body_b, point_b) in enumerate(lines):
            element = self._line(body_a, np.asarray(point_a), body_b, np.asarray(point_b), 0.0)
            self.elements["line"][element[1]]["wrap"] = 2 * wrap + side
            terms.append((element, 1.0, (body_a, body_b)))
        self.mixes.append(Mix(terms, 0.0))
        return len(self.mixes) - 1

    def _wrap_row(self, path: WrappedPath) -> dict[str, Any]:
        wrap = path.wrap
        sided = wrap.body if wrap.side_body is None else wrap.side_body
        return dict(
            body_a=path.body_a,
            body_b=path.body_b,
            body=wrap.body,
            side_body=NO_BODY if wrap.side is None else sided,
            cylinder=int(wrap.shape == CYLINDER),
            radius=wrap.radius,
            vector_a=self._arm(path.body_a, np.asarray(path.point_a)),
            vector_b=self._arm(path.body_b, np.asarray(path.point_b)),
            center=self._arm(wrap.body, wrap.xform.position),
            side=np.zeros(3) if wrap.side is None else self._arm(sided, np.asarray(wrap.side)),
            frame=wrap.xform.matrix(),
        )

    def coordinate_element(self, joint: int, coordinate: int) -> tuple[str, int]:
        """Return the element of a joint coordinate. Create the element if it is missing."""
        key = (joint, coordinate)
        if key not in self._coordinates:
            self._coordinates[key] = self._coordinate(self.builder.joints[joint], key)
        return self._coordinates[key]

    def _coordinate(self, joint: JointSpec, key: tuple[int, int]) -> tuple[str, int]:
        c = self.coordinates[key[0]][key[1]]
        if c.kind == SUM:
            return "mix", self._mix(c.terms, 0.0)
        if c.path is not None:
            return "mix", self._wrapped(c.path, self.wrap_of[key])
        if c.kind == TRANSLATION:
            return self._dot(joint, DotRow(c.axis, c.point_a, c.point_b, True))
        if c.kind in (DISTANCE, CHORD):
            return self._line(joint.parent, c.point_a, joint.child, c.point_b, 0.0)
        tracked = c.kind in COUNTED
        assert c.frame_a is not None or tracked
        rows = self.elements["spin"]
        rows.append(
            dict(
                body_a=joint.parent,
                body_b=joint.child,
                owner=joint.child if c.axis_on_child else joint.parent,
                u=c.axis,
                angle=self.angle_of[key] if tracked else -1,
                component=_EULER_COMPONENTS.get(c.kind, c.component),
                other=np.zeros(3) if c.other is None else c.other,
                frame_a=_quaternion(c.frame_a),
                frame_b=_quaternion(c.frame_b),
            )
        )
        return "spin", len(rows) - 1

    def _track_angles(self, index: int, joint: JointSpec) -> None:
        for k, c in enumerate(self.coordinates[index]):
            if c.kind in COUNTED:
                self.angle_of[index, k] = len(self.angles)
                owner = joint.child if c.axis_on_child else joint.parent
                self.angles.append(
                    dict(
                        body_a=joint.parent,
                        body_b=joint.child,
                        owner=owner,
                        axis=c.axis,
                        ref_a=c.ref_a,
                        ref_b=c.ref_b,
                        middle=int(c.kind == MIDDLE_ANGLE),
                    )  # fmt: skip
                )

    def _rigid(self, joint: JointSpec, row: DotRow | LineRow) -> tuple[str, int]:
        if isinstance(row, LineRow):
            return self._line(joint.parent, row.point_a, joint.child, row.point_b, row.length)
        return self._dot(joint, row)

    def _dot(self, joint: JointSpec, row: DotRow) -> tuple[str, int]:
        rows = self.elements["dot"]
        rows.append(
            dict(
                body_a=joint.parent,
                body_b=joint.child,
                body_u=WORLD if row.on_world else joint.parent,
                u=row.u,
                vector_a=self._arm(joint.parent, row.point_a) if row.linear else np.zeros(3),
                vector_b=self._arm(joint.child, row.vector_b) if row.linear else row.vector_b,
                linear=float(row.linear),
                c0=row.c0,
            )
        )
        return "dot", len(rows) - 1

    def _line(self, body_a: int, point_a: Array, body_b: int, point_b: Array, length: float) -> tuple[str, int]:
        rows = self.elements["line"]
        arms = self._arm(body_a, point_a), self._arm(body_b, point_b)
        rows.append(dict(body_a=body_a, body_b=body_b, vector_a=arms[0], vector_b=arms[1], length=length, wrap=-1))
        return "line", len(rows) - 1

    def _arm(self, body: int, point: Array) -> Array:
        """Return the vector from the center of mass to a point of the body, in the body frame (m)."""
        return np.asarray(point) if body < 0 else np.asarray(point) - self.builder.bodies[body].com

    def tables(self) -> tuple[DotTable, SpinTable, LineTable, AngleTable]:
        """Return the tables of all elements and joint angles."""
        world = len(self.builder.bodies)
        dot, spin, line = (_columns(self.elements[k], _SHAPES[k], world) for k in ("dot", "spin", "line"))
        return (
            DotTable(**dot),
            SpinTable(**spin),
            LineTable(**line),
            AngleTable(**_columns(self.angles, _SHAPES["angle"], world)),
        )

    def wrap_table(self) -> WrapTable:
        """Return the table of wrapped rope paths."""
        columns = _columns(self.wraps, _SHAPES["wrap"], len(self.builder.bodies))
        columns["side_body"] = np.where(columns["side_body"] == NO_BODY, -1, columns["side_body"])
        return WrapTable(**columns)

    def flat(self, element: tuple[str, int]) -> int:
        """Return the index of an element in the list of all elements: first dot, then spin, line and mix."""
        kind, index = element
        before = {"dot": 0, "spin": len(self.elements["dot"])}
        before["line"] = before["spin"] + len(self.elements["spin"])
        before["mix"] = before["line"] + len(self.elements["line"])
        return before[kind] + (self._mix_indices[index] if kind == "mix" else index)

    @cached_property
    def _mix_indices(self) -> dict[int, int]:
        """Return a dict that maps each sum (:class:`Mix`) with a constraint row to its index in the coupling table.

        Sums of couplings come first, then sums of axis rows, then sums of coupled laws. Read this cached property only
        after all rows exist.
        """
        rigid = [c.mix for c in self.constraints if c.mix >= 0]
        of_axes = [a.element[1] for a in self.axes if a.element[0] == "mix"]
        return {mix: k for k, mix in enumerate(rigid + of_axes + [m for c in self.constraints for m in c.coupled])}

    def coupling_table(self, rows: dict[int, int], block: int, bodies: Array) -> CouplingTable:
        """Return the table of all sums (:class:`Mix`) with a constraint row.

        Args:
            rows: dict that maps the index of each sum to the index of its constraint row.
            block: number of rows per constraint.
            bodies: bodies of each constraint, (constraints, slots). The world is the last body.
        """
        world, order = len(self.builder.bodies), list(self._mix_indices)
        terms = [term for mix in order for term in self.mixes[mix].terms]
        slots = []
        for mix in order:
            body_slots = bodies[rows[mix] // block].tolist()
            for *_, ends in self.mixes[mix].terms:
                slots.append([body_slots.index(world if body < 0 else body) for body in ends])
        return CouplingTable(
            row=np.array([rows[mix] for mix in order], dtype=np.int64),
            offset=np.array([self.mixes[mix].offset for mix in order], dtype=np.float64),
            rigid=sum(c.mix >= 0 for c in self.constraints),
            start=np.cumsum([0, *(len(self.mixes[mix].terms) for mix in order)]),
            element=np.array([self.flat(element) for element, *_ in terms], dtype=np.int64),
            factor=np.array([factor for _, factor, _ in terms], dtype=np.float64),
            slot=np.array(slots, dtype=np.int64).reshape(-1, 2),
            curved=np.array([any(self.mixes[mix].curve) for mix in order], dtype=np.int64),
            curve=np.array([self.mixes[mix].curve or (0.0,) * 3 for mix in order], dtype=np.float64).reshape(-1, 3),
        )


NO_BODY = 1 << 30
_BODY_COLUMNS = {"body_a", "body_b", "body_u", "owner", "body", "side_body"}
_INT_COLUMNS = _BODY_COLUMNS | {"angle", "component", "middle", "wrap", "cylinder"}
_EULER_COMPONENTS = {OUTER_ANGLE: OUTER, MIDDLE_ANGLE: MIDDLE}
_SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "dot": {
        "body_a": (), "body_b": (), "body_u": (), "u": (3,), "vector_a": (3,), "vector_b": (3,), "linear": (), "c0": (),
    },
    "spin": {
        "body_a": (), "body_b": (), "owner": (), "u": (3,), "angle": (), "component": (), "other": (3,),
        "frame_a": (4,), "frame_b": (4,),
    },
    "line": {"body_a": (), "body_b": (), "vector_a": (3,), "vector_b": (3,), "length": (), "wrap": ()},
    "wrap": {
        "body_a": (), "body_b": (), "body": (), "side_body": (), "cylinder": (), "radius": (), "vector_a": (3,),
        "vector_b": (3,), "center": (3,), "side": (3,), "frame": (3, 3),
    },
    "angle": {"body_a": (), "body_b": (), "owner": (), "axis": (3,), "ref_a": (3,), "ref_b": (3,), "middle": ()},
}  # fmt: skip


def _columns(rows: list[dict[str, Any]], shapes: dict[str, tuple[int, ...]], world: int) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for name, shape in shapes.items():
        dtype = np.int64 if name in _INT_COLUMNS else np.float64
        column = np.array([r[name] for r in rows], dtype=dtype).reshape((len(rows), *shape))
        if name in _BODY_COLUMNS:
            column = np.where(column < 0, world, column)
        columns[name] = column
    return columns


def _needs_row(joint: JointSpec, k: int) -> bool:
    p = joint.params
    limited = np.isfinite(p["limit_lower"][k]) or np.isfinite(p["limit_upper"][k])
    acts = limited or p["damping"][k] > 0.0 or p["friction"][k] > 0.0 or p["armature"][k] > 0.0
    return bool(acts or joint_type(joint.kind).switched)


def _quaternion(frame: Array | None) -> Array:
    if frame is None:
        return rotations.normalized(np.array([0.0, 0.0, 0.0, 1.0]))
    return Transform.from_matrix(frame).rotation
