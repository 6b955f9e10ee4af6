"""Checks of bodies and shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.joint_kinds import joint_type
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, BodySpec, ShapeSpec
from gpusim.importers.report import Finding
from gpusim.lint.subject import Subject
from gpusim.simulation import Simulation
from gpusim.transform import Transform
from gpusim.typing import Array

_OVERLAP, _RELATIVE_OVERLAP = 1e-3, 0.02
"""Minimum overlap depth that lint reports: in m, and as a fraction of the radius of the smaller shape."""
_MASS_RATIO = 1e4
_LINK_RATIO = 1e6
"""Lint ignores mass ratios above this value if the lighter body has no shapes (see reference/light_bodies.py)."""
_THICK = 1.25
"""Maximum volume of a body's convex hulls, divided by the volume of its visual meshes."""
_TOO_LARGE, _TOO_SMALL = 4.0, 0.01
"""Limits of plausible inertia. The upper limit is relative to the largest possible inertia in the bounding box of the
shapes. The lower limit is relative to the inertia of a solid box of this size."""
_MOTION, _FREE = ("position", "linear_velocity"), 0.8
"""_MOTION: signals that show a fall. _FREE: minimum mean acceleration of a fall, as a fraction of gravity."""
_MAX_FINDINGS = 8
"""Maximum number of findings of one kind."""


def overlaps(subject: Subject) -> None:
    """Report rigid shapes that overlap at the start."""
    if not subject.model.shapes:
        return
    found = subject.simulation().contacts()
    deepest: dict[tuple[int, int], float] = {}
    for a, b, gap in zip(found.shape_a.tolist(), found.shape_b.tolist(), found.gap.tolist(), strict=True):
        deepest[a, b] = min(deepest.get((a, b), 0.0), gap)
    shapes, count = subject.model.shapes, 0
    for (a, b), gap in sorted(deepest.items(), key=lambda item: item[1]):
        soft = any(s.material.law is not None and s.material.law.normal != "rigid" for s in (shapes[a], shapes[b]))
        size = min(shape_type(shapes[k].kind).radius(shapes[k].params) for k in (a, b))
        if soft or -gap < max(_OVERLAP, _RELATIVE_OVERLAP * size):
            continue
        count += 1
        if count > _MAX_FINDINGS:
            continue
        subject.add(
            "contact",
            f"shapes '{shapes[a].label}' and '{shapes[b].label}'",
            f"overlap by {-gap:.3g} m at the start",
            "the contact pushes them apart",
            "move them, or exclude the pair",
        )
    if count > _MAX_FINDINGS:
        subject.add("contact", "", f"{count - _MAX_FINDINGS} more pairs of shapes overlap at the start")


def mass_ratios(subject: Subject) -> None:
    """Report joints between bodies with very different masses."""
    bodies = subject.model.bodies
    for joint in subject.model.joints:
        ends = [k for k in (joint.parent, joint.child) if k != WORLD and not bodies[k].kinematic]
        if len(ends) < 2:
            continue
        light_index, heavy_index = sorted(ends, key=lambda k: bodies[k].mass)
        light, heavy = bodies[light_index], bodies[heavy_index]
        ratio = heavy.mass / light.mass
        if ratio > _MASS_RATIO and (ratio < _LINK_RATIO or subject.shapes_of(light_index)):
            subject.add(
                "info",
                joint.element,
                f"joins {heavy.mass:.3g} kg ('{heavy.label}') to {light.mass:.3g} kg ('{light.label}')",
                f"a ratio of {ratio:.1g} reduces the accuracy",
                "check the masses",
            )


def implausible_inertia(subject: Subject) -> None:
    """Report inertias and centers of mass that are implausible for the bounding box of the body's shapes."""
    for index, body in enumerate(subject.model.bodies):
        if body.kinematic or not np.isfinite(subject.builder.bodies[index].mass):
            continue  # gpusim computed the mass from the shapes
        points = [subject.points(shape) for shape in subject.shapes_of(index)]
        if points:
            _compare(subject, body, np.concatenate(points))


def _compare(subject: Subject, body: BodySpec, points: Array) -> None:
    lower, upper = points.min(axis=0), points.max(axis=0)
    half = 0.5 * (upper - lower)
    squares = half**2
    max_moments = body.mass * (squares.sum() - squares)
    moments = np.diag(body.inertia)
    fix = "check the units and the frame of <inertial>"
    ratio = float((moments / np.maximum(max_moments, 1e-300)).max())
    if ratio > _TOO_LARGE:
        problem = f"has {ratio:.3g} times the largest inertia of {body.mass:.3g} kg within its shapes' box"
        subject.add("motion", body.element, problem, "it rotates too slowly, or its shapes are incomplete", fix)
    min_ratio = float((moments / np.maximum(max_moments / 3.0, 1e-300)).max())
    if min_ratio < _TOO_SMALL:
        problem = f"has {min_ratio:.2g} of the inertia of a box of its shapes' size and {body.mass:.3g} kg"
        subject.add("motion", body.element, problem, "it rotates too fast", fix)
    outside = np.maximum(lower - body.com, body.com - upper).max()
    if outside > half.max():
        problem = f"has its center of mass {outside:.3g} m outside of its shapes' box"
        subject.add("motion", body.element, problem, "", fix)


def thick_hulls(subject: Subject) -> None:
    """Report bodies whose convex hulls are much larger than the closed meshes of their visuals."""
    for index, body in enumerate(subject.model.bodies):
        shapes = subject.shapes_of(index)
        visuals = [visual for visual in subject.model.visuals if visual.body == index]
        meshes = [piece for visual in visuals for piece in visual.params.get("pieces", ())]
        if not shapes or not meshes or any(shape.kind != "hull" for shape in shapes) or len(meshes) < len(visuals):
            continue
        if not all(piece.closed for piece in meshes):
            continue
        hull = sum(shape_type(shape.kind).volume(shape.params) for shape in shapes)
        mesh = sum(_volume(piece.vertices, piece.triangles) for piece in meshes)
        if mesh > 0.0 and hull > _THICK * mesh:
            subject.add(
                "contact",
                body.element,
                f"collides as hulls of {hull / mesh:.3g} times the volume of its meshes",
                "it collides in the cavities of the mesh",
                "split the mesh into convex parts",
            )


def _volume(vertices: Array, triangles: Array) -> float:
    a, b, c = (np.asarray(vertices, float)[np.asarray(triangles)[:, k]] for k in range(3))
    return float(abs(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0)


def falling(subject: Subject) -> None:
    """Report bodies that fall forever.

    If the world or a kinematic body has shapes, report only bodies without shapes and joints.
    """
    model = subject.model
    if not np.any(subject.builder.gravity):
        return
    ropes = [joint for joint in model.joints if joint_type(joint.kind).pulls]
    grounded = subject.grounded() | {end for joint in ropes for end in (joint.parent, joint.child)}
    loose = [k for k, body in enumerate(model.bodies) if k not in grounded and not body.kinematic]
    shapeless = [k for k in loose if not subject.shapes_of(k)]
    landing = any(s.body == WORLD or model.bodies[s.body].kinematic for s in model.shapes)
    joined = [end for joint in model.joints if joint_type(joint.kind).holds for end in (joint.parent, joint.child)]
    if loose and not landing:
        names = ", ".join(f"'{model.bodies[k].label}'" for k in loose[:3])
        more = f" and {len(loose) - 3} more bodies" if len(loose) > 3 else ""
        subject.add("info", "", f"nothing holds {names}{more}", "they fall forever", "add a floor, or fix the base")
        return
    for body in [model.bodies[k] for k in shapeless if k not in joined][:_MAX_FINDINGS]:
        subject.add("info", body.element, "has no shape and no joint", "it falls forever", "add a shape")


def fallen(builder: ModelBuilder, sim: Simulation, known: Sequence[Finding] = ()) -> list[Finding]:
    """Report bodies that fell almost freely during a simulation, and are now below all fixed or kinematic shapes.

    Args:
        builder: the model.
        sim: simulation of the model, after some steps from the start pose.
        known: findings of ``check_model`` about falling bodies. The function skips bodies that are in ``known``.
    """
    subject, size = Subject(builder, sim.config.dt), float(np.linalg.norm(builder.gravity))
    catching = [s for s in subject.model.shapes if s.body == WORLD or subject.model.bodies[s.body].kinematic]
    if not size or not catching or not sim.time:
        return []
    down, grounded = np.asarray(builder.gravity, float) / size, subject.grounded()
    reported = {finding.element for finding in known if "fall" in finding.effect}
    names = []
    for index, body in enumerate(subject.model.bodies):
        if index in grounded or body.kinematic or body.element in reported:
            continue
        position, velocity = (np.asarray(sim.read(f"body.{body.label}.{x}", numpy=True))[0] for x in _MOTION)
        speed_gain = float((velocity - body.linear_velocity) @ down)
        if speed_gain >= _FREE * size * sim.time and all(_passed(subject, sim, s, position, down) for s in catching):
            names.append(f"'{body.label}'")
    if names:
        more = f" and {len(names) - 3} more bodies" if len(names) > 3 else ""
        problem = f"in the run, {', '.join(names[:3])}{more} fell past every shape of the world"
        subject.add("info", "", problem, "they fall forever", "put a floor below them, or check what they collide with")
    return subject.findings


def _passed(subject: Subject, sim: Simulation, shape: ShapeSpec, position: Array, down: Array) -> bool:
    """Return True if ``position`` (m) is below a shape. ``down`` is the direction of gravity."""
    pose = Transform()
    if shape.body != WORLD:
        label = subject.model.bodies[shape.body].label
        pose = Transform(*(sim.read(f"body.{label}.{x}", numpy=True)[0] for x in ("position", "orientation")))
    if shape.kind == "plane":
        ground = pose * shape.xform
        normal = ground.matrix()[:, 2]
        return bool(normal @ down > -1e-6 or normal @ (position - ground.position) < 0.0)
    return bool(position @ down > (pose.apply(subject.points(shape)) @ down).max())
