"""Base class of joint kinds. A joint has constraint rows for locked motions, and coordinates for free motions.

Most constraint rows are *dot rows* ``C = u . w - c0 = 0`` for two vectors u and w. The vector u is fixed in the parent
or in the world. If ``linear`` is False, w is fixed in the child. The dot row then keeps u and w perpendicular (c0 = 0).
If ``linear`` is True, w is the vector from the parent's joint point to the child's joint point. The dot row then keeps
the component of w along u equal to c0. A *line row* keeps the distance between two points constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.description.elements import Elements
from gpusim.description.registry import Registry
from gpusim.description.specs import WORLD, JointSpec, Term
from gpusim.description.wraps import WrappedPath
from gpusim.transform import Transform
from gpusim.typing import Array

TRANSLATION, ANGLE, DISTANCE, ROTATION, TOTAL_ROTATION, SUM, OUTER_ANGLE, MIDDLE_ANGLE, CHORD = (
    "translation",
    "angle",
    "distance",
    "rotation",
    "total_rotation",
    "sum",
    "outer_angle",
    "middle_angle",
    "chord",
)
UNITS = {TRANSLATION: "m", DISTANCE: "m", CHORD: "m"} | dict.fromkeys(
    (ANGLE, ROTATION, TOTAL_ROTATION, OUTER_ANGLE, MIDDLE_ANGLE), "rad"
)
COUNTED = (ANGLE, OUTER_ANGLE, MIDDLE_ANGLE)
"""Coordinate kinds whose angle can exceed one full rotation. The state array ``angle`` stores these angles."""


@dataclass(frozen=True)
class DotRow:
    """Constraint ``u . w - c0 = 0``.

    ``u`` is given in the axes of the parent, or in world axes if ``on_world`` is True.

    If ``linear`` is True, ``w`` is the vector from the point ``point_a`` (parent's frame, m) to the point ``vector_b``
    (child's frame, m). If ``linear`` is False, ``w`` is the direction ``vector_b`` (child's axes), and ``point_a`` is
    unused.
    """

    u: Array
    point_a: Array
    vector_b: Array
    linear: bool
    c0: float = 0.0
    on_world: bool = False
    """True if ``u`` is fixed in the world. Three rows with ``on_world`` lock all translations of a point."""


@dataclass(frozen=True)
class LineRow:
    """Constraint ``|w| - length = 0``, where w is the vector from ``point_a`` to ``point_b``.

    ``point_a`` is in the parent's frame, and ``point_b`` is in the child's frame (m).
    """

    point_a: Array
    point_b: Array
    length: float


@dataclass(frozen=True)
class Coordinate:
    """A free scalar motion of a joint, for limits, friction, drives and signals.

    The values of ``kind`` are:

    translation: distance along ``axis`` (in the parent's axes) from ``point_a`` to ``point_b``.
    angle: angle about ``axis``, which can exceed 2 pi. If ``axis_on_child``, ``axis`` is fixed in the child. The angle
        is measured from ``ref_a`` (in the parent's axes) to ``ref_b`` (in the child's axes).
    distance: distance from ``point_a`` to ``point_b``. With a ``path``, the coordinate is the length of a rope along
        the path.
    rotation: component of the rotation vector along ``axis`` (in the parent's axes). ``component`` (0 to 2) is the
        index of ``axis`` among the joint's axes. ``frame_a`` and ``frame_b`` contain the joint's axes in the parent's
        and the child's axes, 3x3.
    total_rotation: length of the rotation vector.
    sum: sum of ``terms``. Each term is a coordinate of another joint, multiplied by a factor.
    outer_angle: first or last Euler angle, about ``axis``. For the first angle, ``other`` is the axis of the last
        rotation. For the last angle, ``other`` is the axis of the first rotation. ``axis`` and ``other`` are fixed in
        different bodies.
    middle_angle: second Euler angle, about ``axis`` x ``other``. ``axis`` is the axis of the last rotation, in the
        child. ``other`` is the axis of the first rotation, in the parent. The three axes of the Euler angles are
        right-handed.
    chord: 2 sin(t/2), where t is the angle between an axis in the parent and an axis in the child. Cone limits use the
        chord.
    """

    kind: str
    axis: Array
    point_a: Array
    point_b: Array
    ref_a: Array
    ref_b: Array
    axis_on_child: bool = False
    frame_a: Array | None = None
    frame_b: Array | None = None
    terms: tuple[Term, ...] = ()
    component: int = -1
    other: Array | None = None
    path: WrappedPath | None = None


@dataclass(frozen=True)
class JointFrames:
    """Joint point and joint axes, in the frames of both bodies.

    The third column of ``axes_a`` or ``axes_b`` is the joint axis.
    """

    point_a: Array
    point_b: Array
    axes_a: Array
    axes_b: Array

    def point_rows(self, columns: Sequence[int] = (0, 1, 2)) -> list[DotRow]:
        """Return constraint rows that make the joint's two points coincide along the axes ``columns`` of the parent."""
        if len(columns) == 3:
            return [DotRow(np.eye(3)[k], self.point_a, self.point_b, True, on_world=True) for k in columns]
        return [DotRow(self.axes_a[:, k], self.point_a, self.point_b, True) for k in columns]

    def perpendicular_row(self, a: int, b: int) -> DotRow:
        """Return a constraint row that keeps axis ``a`` of the parent perpendicular to axis ``b`` of the child."""
        return DotRow(self.axes_a[:, a], np.zeros(3), self.axes_b[:, b], False)

    def parallel_axis_rows(self) -> list[DotRow]:
        """Return constraint rows that keep the child's third axis parallel to the parent's third axis."""
        return [self.perpendicular_row(0, 2), self.perpendicular_row(1, 2)]

    def locked_rotation_rows(self) -> list[DotRow]:
        """Return constraint rows that lock the relative rotation. Each row keeps two axes perpendicular."""
        return [self.perpendicular_row(1, 2), self.perpendicular_row(2, 0), self.perpendicular_row(0, 1)]

    def translation(self, k: int) -> Coordinate:
        """Return the coordinate for the translation of the child's joint point along axis k of the parent."""
        return self._coordinate(TRANSLATION, self.axes_a[:, k])

    def angle(self) -> Coordinate:
        """Return the coordinate for the rotation about the joint axis."""
        return self._coordinate(ANGLE, self.axes_a[:, 2], self.axes_a[:, 0], self.axes_b[:, 0])

    def distance(self) -> Coordinate:
        """Return the coordinate for the distance between the joint's two points."""
        return self._coordinate(DISTANCE, self.axes_a[:, 2])

    def rotation(self, k: int) -> Coordinate:
        """Return the coordinate for component k of the rotation vector (parent's joint axes to child's joint axes)."""
        return replace(self._coordinate(ROTATION, self.axes_a[:, k]), component=k)

    def total_rotation(self) -> Coordinate:
        """Return the coordinate for the length of the rotation vector."""
        return replace(self._coordinate(TOTAL_ROTATION, self.axes_a[:, 2]), component=3)

    def chord(self, axis: Array) -> Coordinate:
        """Return the chord coordinate for the angle between ``axis`` in the parent and ``axis`` in the child."""
        ends = self.point_a + self.axes_a @ axis, self.point_b + self.axes_b @ axis
        return replace(self._coordinate(CHORD, self.axes_a @ axis), point_a=ends[0], point_b=ends[1])

    def _coordinate(self, kind: str, axis: Array, ref_a: Array | None = None, ref_b: Array | None = None) -> Coordinate:
        none = np.zeros(3)
        return Coordinate(
            kind=kind,
            axis=axis,
            point_a=self.point_a,
            point_b=self.point_b,
            ref_a=none if ref_a is None else ref_a,
            ref_b=none if ref_b is None else ref_b,
            frame_a=self.axes_a,
            frame_b=self.axes_b,
        )


class JointType(ABC):
    """Base class of joint kinds. Each kind is registered under its ``name``.

    A kind defines the constraint rows and the coordinates of its joints.
    """

    name: ClassVar[str]
    coordinates: ClassVar[tuple[str, ...]] = ()
    """Kinds of the coordinates in ``coordinate_list``, in order (see ``kinds``)."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of the kind's own parameters, in addition to those of ``axis_params``. The parameter "columns" contains the
    axes of the joint (3, 3)."""
    options: ClassVar[tuple[str, ...]] = ()
    """Names of further parameters that a joint may lack."""
    position_is: ClassVar[str] = "coordinates"
    """Content of ``joint.<label>.position``: "coordinates", "quaternion" (4) or "pose" (7)."""
    sets_pose: ClassVar[bool] = True
    """True if the joint position determines the child's pose relative to the parent. If ``sets_pose`` is False, you can
    only read the joint position."""
    holds: ClassVar[bool] = True
    """False if the joint locks no motion between its bodies, such as a free joint or a bushing."""
    bears: ClassVar[bool] = True
    """False if a load sensor cannot measure the joint, such as a free joint or a wrapped rope."""
    welds: ClassVar[bool] = False
    """True if the joint merges its bodies into one rigid part."""
    pulls: ClassVar[bool] = False
    """True if the joint acts like a rope: its single coordinate is a length with a tension. The length limits can
    change at run time (model/ropes.py)."""
    switched: ClassVar[bool] = False
    """True if you can lock and release the coordinates at run time."""
    hinge: ClassVar[bool] = False
    """True if the only motion of the joint is a rotation about the third axis of the joint frames."""
    picture: ClassVar[str | None] = None
    """Symbol that the viewer draws for the joint: "pin" (along the third axis), "socket", "cross", "rail", "line",
    "wrap" or None."""

    @abstractmethod
    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows for the locked relative motions."""

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates of the free motions, in the order of ``coordinates``."""
        return []

    def moves(self, joint: JointSpec) -> int:
        """Return the number of coordinates with a position signal.

        The remaining coordinates have limits but no signal.
        """
        return len(self.kinds(joint))

    def unit(self, joint: JointSpec) -> str:
        """Return the unit of the coordinates with a position signal, either "m", "rad" or "m, rad"."""
        units = {self.unit_of(joint, axis) for axis in range(self.moves(joint))}
        return units.pop() if len(units) == 1 else "m, rad"

    def unit_of(self, joint: JointSpec, axis: int) -> str:
        """Return the unit of one coordinate, "m" or "rad"."""
        return UNITS[self.kinds(joint)[axis]]

    def kinds(self, joint: JointSpec) -> tuple[str, ...]:
        """Return the coordinate kinds of a joint. Two joints of the same kind may have different coordinates."""
        return self.coordinates

    def limits(self, joint: JointSpec) -> list[tuple[str, float, float]]:
        """Return the name, lower limit and upper limit of each coordinate (m or rad).

        For joints without limits, return an empty list.

        Coordinates with a position signal have the name "". Coordinates with limits but no signal have the name
        "rotation" or "cone".
        """
        kinds = self.kinds(joint)
        if not {"limit_lower", "limit_upper"} <= joint.params.keys():
            return []
        lower, upper = (np.broadcast_to(joint.params[f"limit_{end}"], len(kinds)) for end in ("lower", "upper"))
        names = {TOTAL_ROTATION: "rotation", CHORD: "cone"}
        return [
            (names.get(kind, ""), float(low), float(angle_of_chord(high) if kind == CHORD else high))
            for kind, low, high in zip(kinds, lower, upper, strict=True)
        ]

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return whether the shapes of the joint's two bodies collide.

        By default, shapes collide only if one of the bodies is the world.
        """
        return WORLD in (joint.parent, joint.child)

    def moving(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the parameters of a rod with two equal limits instead of a fixed length, or None for other joints."""
        return None

    def moved(
        self, params: dict[str, Any], first_joint: int, first_body: int, parent: int, pose: Transform
    ) -> dict[str, Any]:
        """Return the parameters for a copy of the joint in another builder.

        Args:
            params: parameters of the joint.
            first_joint, first_body: indices of the copies of joint 0 and body 0 in the other builder.
            parent: index of a body in the other builder, -1 for the world. The copy uses this body instead of the
                world.
            pose: pose of this builder's world in the frame of ``parent``.
        """
        return params

    def check_model(self, joints: Sequence[JointSpec], builder: Elements) -> None:  # noqa: B027 (optional)
        """Check all joints of this kind in ``finalize``, and raise a ModelError if a joint is invalid."""


_KINDS: Registry[JointType] = Registry("joint kind")
register = _KINDS.register


def joint_type(kind: str) -> JointType:
    """Return a registered kind of joint.

    Raises:
        ModelError: unknown kind.
    """
    return _KINDS[kind]


def triad(axis: Array) -> Array:
    """Return right-handed orthonormal columns (t1, t2, axis). For the z axis, the columns form the identity matrix."""
    helper = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.9 else np.array([0.0, 0.0, 1.0])
    t2 = np.cross(axis, helper)
    t2 /= np.linalg.norm(t2)
    return np.stack([np.cross(t2, axis), t2, axis], axis=1)


def chord_of(angle: Array | float) -> Array:
    """Return the chord lengths (m) for angles (rad) on a circle with a radius of 1 m.

    The chord of an infinite angle is infinite.
    """
    finite = np.isfinite(angle)
    return np.where(finite, 2.0 * np.sin(0.5 * np.where(finite, angle, 0.0)), np.inf)


def angle_of_chord(chord: Array) -> Array:
    """Return the angles (rad) for given chords (m). This function is the inverse of :func:`chord_of`."""
    finite = np.isfinite(chord)
    return np.where(finite, 2.0 * np.arcsin(np.where(finite, 0.5 * chord, 0.0)), np.inf)


def joint_frames(joint: JointSpec) -> JointFrames:
    """Return the points and axes of a joint in its two body frames."""
    columns = joint.params.get("columns")
    if columns is None:
        columns = np.eye(3)
    return JointFrames(
        point_a=joint.parent_xform.position,
        point_b=joint.child_xform.position,
        axes_a=joint.parent_xform.matrix() @ columns,
        axes_b=joint.child_xform.matrix() @ columns,
    )


def axis_params(
    element: str,
    count: int,
    limit_lower: Any = -np.inf,
    limit_upper: Any = np.inf,
    damping: Any = 0.0,
    friction: Any = 0.0,
    armature: Any = 0.0,
    limit_restitution: Any = 0.0,
) -> dict[str, Array]:
    """Check the parameters of joint coordinates. Return each parameter as an array (count,).

    Limits are in m or rad, damping in N s/m or N m s/rad, dry friction in N or N m. Armature (reflected inertia of a
    rotor) is in kg or kg m2. The restitution of impacts at a joint limit is from 0 to 1.
    """
    lower = validate.per_axis(element, "limit_lower", limit_lower, count, infinite=True)
    upper = validate.per_axis(element, "limit_upper", limit_upper, count, infinite=True)
    validate.limits(element, lower, upper)
    result = {"limit_lower": lower, "limit_upper": upper}
    for name, value in (("damping", damping), ("friction", friction), ("armature", armature)):
        array = validate.per_axis(element, name, value, count)
        if np.any(array < 0.0):
            raise validate.fail(element, f"{name} = {float(array.min()):g} must not be negative", f"give {name} >= 0")
        result[name] = array
    bounce = validate.per_axis(element, "limit_restitution", limit_restitution, count)
    if np.any(bounce < 0.0) or np.any(bounce > 1.0):
        raise validate.fail(element, f"limit_restitution = {limit_restitution!r} is not within 0 to 1", "give 0 to 1")
    return result | {"limit_restitution": bounce}
