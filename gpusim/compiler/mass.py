"""Mass properties of bodies from their shapes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from gpusim import validate
from gpusim.description.elements import Elements
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import BodySpec, ShapeSpec
from gpusim.typing import Array


def mass_properties(shapes: list[ShapeSpec]) -> tuple[float, Array, Array]:
    """Return mass, center of mass and inertia of the shapes of a body. Each shape has uniform density.

    If shapes overlap, the mass of the overlap counts once for each shape. Shapes without volume have no effect.

    Args:
        shapes: shapes of one body.

    Returns:
        Mass (kg), center of mass (m), (3,), and inertia about the center of mass (kg m2), (3, 3), in the body frame.
        All three values are zero if the shapes have no volume.
    """
    parts = [(s.density * shape_type(s.kind).volume(s.params), s) for s in shapes]
    parts = [(mass, s) for mass, s in parts if mass > 0.0]
    total = math.fsum(mass for mass, _ in parts)
    if total == 0.0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    centers = [s.xform.apply(shape_type(s.kind).center(s.params)) for _, s in parts]
    com = sum(((mass / total) * c for (mass, _), c in zip(parts, centers, strict=True)), np.zeros(3))
    inertia = np.zeros((3, 3))
    for (mass, s), center in zip(parts, centers, strict=True):
        rotation, arm = s.xform.matrix(), center - com
        local_inertia = s.density * shape_type(s.kind).inertia(s.params)
        inertia += rotation @ local_inertia @ rotation.T + mass * (float(arm @ arm) * np.eye(3) - np.outer(arm, arm))
    return total, com, 0.5 * (inertia + inertia.T)


def complete_bodies(builder: Elements) -> list[BodySpec]:
    """Return the bodies of a builder, with missing masses, inertias and centers of mass computed from the shapes.

    If the user gives a mass but no inertia, the inertia of the shapes is scaled to this mass. A given center of mass
    does not change the inertia. A kinematic body without mass and volume gets a mass of 1 kg and a unit inertia. These
    values have no effect.

    Raises:
        ModelError: a body has no mass or inertia, and no shape with volume.
    """
    shapes: list[list[ShapeSpec]] = [[] for _ in builder.bodies]
    for shape in builder.shapes:
        if shape.body >= 0:
            shapes[shape.body].append(shape)
    return [
        b if b.complete else _completed(b, body_shapes) for b, body_shapes in zip(builder.bodies, shapes, strict=True)
    ]


def _completed(body: BodySpec, shapes: list[ShapeSpec]) -> BodySpec:
    mass, com, inertia = mass_properties(shapes)
    if mass == 0.0:
        if not body.kinematic:
            raise _no_mass(body, shapes)
        mass, inertia = 1.0, np.eye(3)
    total = mass if math.isnan(body.mass) else body.mass
    return dataclasses.replace(
        body,
        mass=total,
        inertia=validate.body_inertia(body.element, inertia * (total / mass), total),
        com=com if np.isnan(body.com).any() else body.com,
    )


def _no_mass(body: BodySpec, shapes: list[ShapeSpec]) -> Exception:
    missing = "mass and inertia" if math.isnan(body.mass) else "inertia"
    if not shapes:
        reason = "no shape that gives them" if math.isnan(body.mass) else "no shape that gives it"
    else:
        kinds = ", ".join(sorted({s.kind.replace("_", " ") for s in shapes}))
        reason = f"its shapes ({kinds}) enclose no volume"
    return validate.fail(
        body.element,
        f"has no {missing}, and {reason}",
        "give add_body(mass=..., inertia=...), or add a shape with a volume, such as add_shape_box",
    )
