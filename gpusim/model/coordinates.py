"""Table of the scalar coordinates that signals read: joint coordinates, and lengths of springs and other actuators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.description.joint_kinds import (
    ANGLE,
    CHORD,
    DISTANCE,
    MIDDLE_ANGLE,
    OUTER_ANGLE,
    ROTATION,
    SUM,
    TOTAL_ROTATION,
    TRANSLATION,
)
from gpusim.description.specs import WORLD
from gpusim.model.model import Model
from gpusim.typing import Array

KINDS = {
    TRANSLATION: 0, ANGLE: 1, DISTANCE: 2, ROTATION: 3, TOTAL_ROTATION: 4, "frame": 5, SUM: 6, OUTER_ANGLE: 7,
    MIDDLE_ANGLE: 8,
}  # fmt: skip
"""Codes of coordinate kinds. A coordinate of kind "frame" has no scalar value. A "frame" coordinate only provides the
pose of the child's joint frame."""
COLUMNS = {
    "body_a": "int", "body_b": "int", "owner": "int", "kind": "int", "part": "int", "arm_a": "double",
    "arm_b": "double", "axis": "double", "other": "double", "frame_a": "double", "frame_b": "double",
}  # fmt: skip
"""Columns of the table and their C types. ``body_a``, ``body_b`` and ``owner`` are indices of bodies (the world is
last). ``axis`` is fixed in the body ``owner``. ``part`` is the index of an angle, of a vector component, or of a sum
(see :class:`Coordinates`). ``arm_a`` and ``arm_b`` are vectors (m) from the centers of mass to the joint frames or end
points. ``other`` is the second axis of an Euler angle. ``frame_a`` and ``frame_b`` are the orientations of the joint
frames in the body frames (xyzw)."""


@dataclass(frozen=True)
class Coordinates:
    """Table of n coordinates. ``columns`` maps each name of COLUMNS to an array (n, ...).

    ``of_joint`` lists the coordinates of each joint. ``of_axis`` contains the coordinate index of each axis row. An
    axis row is the constraint row for limits, friction and actuators of one coordinate. For a coordinate that is a sum,
    the column ``part`` is the index in ``sums``. For a distance, ``part`` is the index of the wrapped rope path, or -1
    for a straight line.
    """

    columns: dict[str, Array]
    of_joint: list[list[int]]
    of_axis: Array
    sums: dict[str, Array]
    """``sum_start`` (sums + 1,) contains the index of the first term of each sum.

    ``sum_coordinate`` and ``sum_factor`` contain the coordinate index and the factor of each term.
    """


def coordinates(model: Model) -> Coordinates:
    """Create the coordinate table of a model."""
    rows: list[tuple[object, ...]] = []
    of_joint: list[list[int]] = []
    sums: list[list[tuple[int, float]]] = []
    wraps = 0
    world, nothing, identity = len(model.bodies), np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
    for joint, spec in enumerate(model.joints):
        a, b = (world if body == WORLD else body for body in (spec.parent, spec.child))
        arms = [
            frame.position - (nothing if body == world else model.bodies[body].com)
            for body, frame in ((a, spec.parent_xform), (b, spec.child_xform))
        ]
        frames = spec.parent_xform.rotation, spec.child_xform.rotation
        scalar_rows = [
            (b if c.axis_on_child else a, KINDS[c.kind], model.angle_of.get((joint, k), c.component), c.axis, c.other)
            for k, c in enumerate(model.coordinates[joint])
            if c.kind not in (SUM, CHORD) and c.path is None
        ]
        for c in model.coordinates[joint]:
            if c.kind == SUM:
                scalar_rows.append((a, KINDS[SUM], len(sums), nothing, None))
                sums.append([(of_joint[j][k], factor) for j, k, factor in c.terms])
        chords = [c for c in model.coordinates[joint] if c.kind == CHORD]
        paths = [c for c in model.coordinates[joint] if c.path is not None]
        of_joint.append([len(rows) + k for k in range(max(len(scalar_rows) + len(chords) + len(paths), 1))])
        for _ in paths:
            rows.append((a, b, a, KINDS[DISTANCE], wraps, *arms, nothing, nothing, *frames))
            wraps += 1
        for owner, kind, part, axis, other in scalar_rows or ([] if paths else [(a, KINDS["frame"], 0, nothing, None)]):
            rows.append((a, b, owner, kind, part, *arms, axis, nothing if other is None else other, *frames))
        for c in chords:
            tips = arms[0] + c.point_a - spec.parent_xform.position, arms[1] + c.point_b - spec.child_xform.position
            rows.append((a, b, a, KINDS[DISTANCE], c.component, *tips, c.axis, nothing, *frames))
    of_axis, t = [], model.topology
    for k, row in enumerate(model.axes):
        if row.joint >= 0:
            of_axis.append(of_joint[row.joint][row.coordinate])
            continue
        of_axis.append(len(rows))
        e = int(t.axis_element[k]) - t.dot.u.shape[0] - t.spin.u.shape[0]
        ends = int(t.line.body_a[e]), int(t.line.body_b[e])
        arms = [t.line.vector_a[e], t.line.vector_b[e]]
        rows.append((*ends, ends[0], KINDS[DISTANCE], -1, *arms, nothing, nothing, identity, identity))
    columns = {}
    for k, (name, c_type) in enumerate(COLUMNS.items()):
        shape = (4,) if name.startswith("frame") else (3,) if c_type == "double" else ()
        dtype = np.float64 if c_type == "double" else np.int64
        columns[name] = np.array([row[k] for row in rows], dtype).reshape(len(rows), *shape)
    flat = [term for terms in sums for term in terms]
    tables = {
        "sum_start": np.cumsum([0, *map(len, sums)]),
        "sum_coordinate": np.array([number for number, _ in flat], np.int64),
        "sum_factor": np.array([factor for _, factor in flat], np.float64),
    }
    return Coordinates(columns, of_joint, np.array(of_axis, np.int64), tables)


def axis_inertia(model: Model, armature: Array, groups: list[Array | None]) -> Array:
    """Return the inertia (kg or kg m2) that armatures, rotors and pistons add to each axis row, (1 or worlds, rows)."""
    worlds = max([armature.shape[0], *(g.shape[0] for g in groups if g is not None)])
    total = np.zeros((worlds, armature.shape[1])) + armature
    for group, inertia in zip(model.groups, groups, strict=True):
        if inertia is not None:
            for n, axis in enumerate(group.axis):
                total[:, axis] += inertia[:, n]
    return total
