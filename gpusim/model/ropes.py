"""Tables of ropes: the axis row of each rope, and the constraint rows that determine the tension of each joint."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.description.joint_kinds import joint_type
from gpusim.model.model import Model
from gpusim.typing import Array

COLUMNS = {
    "rope_axis": "int", "axis_rope": "int", "tension_start": "int", "tension_row": "int", "tension_weight": "double",
}  # fmt: skip
"""Columns and their C types. ``rope_axis`` is the axis row (solver row) of each rope. ``axis_rope`` is the rope of each
axis row, or -1. The tension of a joint is a weighted sum of row impulses. The columns ``tension_start``,
``tension_row`` and ``tension_weight`` contain these rows and weights."""


def pulling(model: Model) -> list[int]:
    """Return the indices of all joints that have a tension, in ascending order."""
    return [index for index, joint in enumerate(model.joints) if joint_type(joint.kind).pulls]


def rope_table(model: Model) -> dict[str, Array]:
    """Return a dict of the arrays that ``COLUMNS`` lists."""
    joints = pulling(model)
    known = set(joints)
    axes = [k for k, axis in enumerate(model.axes) if axis.joint in known]
    rope = np.full(len(model.axes), -1)
    rope[axes] = np.arange(len(axes))
    terms = _terms(model, joints) if joints else []
    flat = [term for joint_terms in terms for term in joint_terms]
    return {
        "rope_axis": np.array(axes, np.int64),
        "axis_rope": rope,
        "tension_start": np.cumsum([0, *map(len, terms)]),
        "tension_row": np.array([row for row, _ in flat], np.int64),
        "tension_weight": np.array([weight for _, weight in flat], np.float64),
    }


def _terms(model: Model, joints: list[int]) -> list[list[tuple[int, float]]]:
    """Return the constraint rows and their weights for the tension of each joint.

    The tension includes the rows of tendons and couplings over the joint.
    """
    rows_of = _rows_of_joints(model)
    terms_of = {joint: [(row, 1.0) for row in rows_of.get(joint, ())] for joint in joints}
    coupled = zip(model.couplings, model.topology.coupling.rigid_row.tolist(), strict=False)
    sums = [(spec.terms, [row]) for spec, row in coupled]
    tendons = {k: spec.params["terms"] for k, spec in enumerate(model.joints) if "terms" in spec.params}
    sums += [(terms, rows_of.get(k, [])) for k, terms in tendons.items()]
    nested = {k: {(joint, axis): factor for joint, axis, factor in terms} for k, terms in tendons.items()}
    for terms, rows in sums:
        for joint, _, factor in terms:
            if joint in terms_of:
                terms_of[joint] += [(row, factor / max(1.0, abs(factor))) for row in rows]
        outer = {(joint, axis): factor for joint, axis, factor in terms}
        for inner in terms_of.keys() & nested.keys():
            factor = _factor_within(nested[inner], outer)
            if factor:
                terms_of[inner] += [(row, factor / max(1.0, abs(factor))) for row in rows]
    return list(terms_of.values())


def _factor_within(inner: dict[Any, float], outer: dict[Any, float]) -> float:
    """Return f if the sum ``outer`` equals f times the sum ``inner`` plus other terms. Otherwise, return 0."""
    ratios = [outer.get(key, 0.0) / factor for key, factor in inner.items()]
    return ratios[0] if len(outer) > len(inner) and max(ratios) - min(ratios) <= 1e-12 * abs(ratios[0]) else 0.0


def _rows_of_joints(model: Model) -> dict[int, list[int]]:
    """Return a dict that maps each joint to the rows of its constraint and of coupled actuators on the joint."""
    t = model.topology
    rows: dict[int, list[int]] = {}
    for constraint, joint in enumerate(t.constraint_joint.tolist()):
        if joint >= 0:
            rows.setdefault(joint, []).extend(constraint * t.block + np.flatnonzero(t.row_used[constraint]))
    for group in model.groups:
        for number, axes in zip(group.coupled or (), group.axes, strict=False):
            for local_row, axis in enumerate(axes.tolist()):
                joint = model.axes[axis].joint
                rows.setdefault(joint, []).append(int(t.coupled_constraint[number]) * t.block + local_row)
    return rows
