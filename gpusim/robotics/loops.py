"""Relations between a tree's coordinates (loop-closing joints, couplings), and inertias on joint axes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpusim import validate
from gpusim.description.joint_kinds import (
    ANGLE,
    DISTANCE,
    MIDDLE_ANGLE,
    OUTER_ANGLE,
    ROTATION,
    SUM,
    TRANSLATION,
    DotRow,
    joint_frames,
    joint_type,
)
from gpusim.description.specs import WORLD, Term
from gpusim.model.coordinates import KINDS, Coordinates
from gpusim.model.model import Model
from gpusim.robotics.elements import Angle, Element, ElementSum, Ends, Gap, Line, RotationRate, Sum
from gpusim.robotics.spanning import BALL, Forest
from gpusim.typing import Array

Scalars = dict[tuple[int, int], tuple[int, int]]
"""Scalar coordinates: (joint, coordinate) -> (index in the posture, index in the velocities)."""


def scalar_coordinates(forest: Forest) -> Scalars:
    """Return the scalar coordinates of all joints in the forest."""
    found: Scalars = {}
    for node in forest.nodes:
        if node.joint < 0 or any(m.kind == BALL for m in node.motions):
            continue
        for k in range(len(node.motions)):
            found[node.joint, k] = node.at + k, node.rate + k
    return found


def node_of(forest: Forest) -> dict[int, int]:
    """Return a dict: body -> node in the forest. The node of the world is -1."""
    return {node.body: i for i, node in enumerate(forest.nodes)} | {WORLD: -1}


def closing_elements(model: Model, forest: Forest) -> list[Element]:
    """Return the constraint functions of the loop-closing joints. Their values must stay zero."""
    nodes, found = node_of(forest), list[Element]()
    for joint in forest.closing:
        spec = model.joints[joint]
        a, b = nodes[spec.parent], nodes[spec.child]
        for row in joint_type(spec.kind).rows(joint_frames(spec), spec.params):
            if not isinstance(row, DotRow):
                found.append(Line(Ends(a, row.point_a, b, row.point_b), row.length))
            elif row.linear:
                found.append(Gap(Ends(a, row.point_a, b, row.vector_b), row.u, row.c0, row.on_world))
            else:
                found.append(Angle(Ends(a, np.zeros(3), b, np.zeros(3)), row.u, row.vector_b, row.c0))
    return found


def coupled(model: Model, scalars: Scalars, terms: tuple[Term, ...], element: str) -> Sum:
    """Return a weighted sum of coordinates.

    Raises:
        ModelError: a coordinate belongs to a joint that closes a loop, or is a component of a ball joint's rotation.
    """
    for joint, axis, _ in terms:
        if (joint, axis) not in scalars:
            spec = model.joints[joint]
            rule = f"adds a coordinate of joint '{spec.label}', which is not in the tree"
            hint = "add that joint to the model before the other joints of its loop, or remove it from the coupling"
            if model.coordinates[joint][axis].kind == DISTANCE:
                rule = f"adds the length of '{spec.label}', which is not a coordinate of a tree of joints"
                hint = "couple joints instead, or remove the coupling"
            raise validate.fail(element, rule, hint)
    indices = np.array([scalars[joint, axis] for joint, axis, _ in terms], np.int64)
    return Sum(indices[:, 0], indices[:, 1], np.array([factor for *_, factor in terms]))


def couplings(model: Model, forest: Forest, scalars: Scalars) -> list[tuple[Sum, float | None]]:
    """Return (sum of coordinates, constant value of the sum) for each coupling inside the forest.

    The value is None if the sum keeps the value that it has in the initial pose.
    """
    inside = {node.joint for node in forest.nodes} | set(forest.closing)
    return [
        (replace(coupled(model, scalars, tuple(spec.terms), spec.element), curve=spec.curve), spec.offset)
        for spec in model.couplings
        if {joint for joint, *_ in spec.terms} <= inside
    ]


@dataclass(frozen=True)
class Reflected:
    """Axes with an additional inertia, such as the inertia of a rotor."""

    elements: list[Element | ElementSum]
    axes: Array


def reflected(model: Model, forest: Forest, scalars: Scalars, table: Coordinates, inertia: Array) -> Reflected:
    """Return the axes of the forest that have an additional inertia."""
    elements, axes = list[Element | ElementSum](), list[int]()
    for axis in np.flatnonzero(inertia.any(axis=0)).tolist():
        element = _axis_element(model, forest, scalars, table, axis)
        if element is not None:
            elements.append(element)
            axes.append(axis)
    return Reflected(elements, np.array(axes, np.int64))


def _wraps(model: Model, joint: int, coordinate: int) -> bool:
    rope = model.coordinates[joint][coordinate]
    return any(c.path is not None for c in (rope, *(model.coordinates[j][k] for j, k, _ in rope.terms)))


def _tendon_length(
    model: Model, nodes: dict[int, int], scalars: Scalars, terms: tuple[Term, ...], element: str
) -> ElementSum | Sum:
    """Return the length of a tendon as an element."""
    lines: list[Line] = []
    factors: list[float] = []
    for joint, axis, factor in terms:
        c, spec = model.coordinates[joint][axis], model.joints[joint]
        if c.kind == DISTANCE:
            lines.append(Line(Ends(nodes[spec.parent], c.point_a, nodes[spec.child], c.point_b)))
            factors.append(factor)
    joint_terms = tuple(term for term in terms if model.coordinates[term[0]][term[1]].kind != DISTANCE)
    joint_sum = [coupled(model, scalars, joint_terms, element)] if joint_terms else []
    return ElementSum((*lines, *joint_sum), np.array([*factors, *(1.0 for _ in joint_sum)])) if lines else joint_sum[0]


def _axis_element(
    model: Model, forest: Forest, scalars: Scalars, table: Coordinates, axis: int
) -> Element | ElementSum | None:
    """Return the element of an axis, or None if the axis belongs to another tree."""
    nodes, row_axis, columns = node_of(forest), model.axes[axis], table.columns
    if row_axis.joint >= 0 and (row_axis.joint, row_axis.coordinate) in scalars:
        return coupled(model, scalars, ((row_axis.joint, row_axis.coordinate, 1.0),), "")
    number = int(table.of_axis[axis])
    kind = columns["kind"][number]
    if row_axis.joint >= 0 and _wraps(model, row_axis.joint, row_axis.coordinate):
        rule = "has an inertia along a rope that wraps around a body, which a tree of joints does not support"
        raise validate.fail(f"joint '{row_axis.label}'", rule, "set its armature and the inertia of its motors to 0")
    if kind == KINDS[SUM]:
        terms = model.coordinates[row_axis.joint][row_axis.coordinate].terms
        carried = {node.joint for node in forest.nodes} | set(forest.closing)
        inside = {joint for joint, *_ in terms} <= carried
        return _tendon_length(model, nodes, scalars, terms, f"joint '{row_axis.label}'") if inside else None
    world = len(model.bodies)
    bodies = [int(columns[f"body_{end}"][number]) for end in "ab"]
    if not set(bodies) <= set(nodes) | {world}:
        return None
    points = [
        columns[f"arm_{end}"][number] + (0.0 if body == world else model.bodies[body].com)
        for end, body in zip("ab", bodies, strict=True)
    ]
    a, b = (nodes[WORLD if body == world else body] for body in bodies)
    ends = Ends(a, points[0], b, points[1])
    if kind == KINDS[DISTANCE]:
        return Line(ends)
    if kind == KINDS[TRANSLATION]:
        return Gap(ends, columns["axis"][number])
    if kind in (KINDS[ANGLE], KINDS[ROTATION]):
        return RotationRate(ends, columns["axis"][number], columns["owner"][number] == bodies[1])
    if kind in (KINDS[OUTER_ANGLE], KINDS[MIDDLE_ANGLE]):
        rule = "closes a loop and has armature on one of three rotations, which a tree does not support"
        hint = "add the joint to the model before the other joints of its loop"
        raise validate.fail(f"joint '{row_axis.label}'", rule, hint)
    return None
