"""Detection of links that overlap in the imported pose."""

from __future__ import annotations

from collections.abc import Container
from itertools import combinations, product

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.compiler.adjacent_bodies import adjacent_bodies
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import ShapeSpec
from gpusim.importers.report import ImportReport
from gpusim.reference.collide.pairs import shape_bounds
from gpusim.reference.collide.separation import Pair, Posed, approach
from gpusim.reference.collide.shapes import make_shape
from gpusim.typing import Array

MIN_OVERLAP = 1e-5
"""Links with an overlap (m) above this value count as overlapping. Contacts ignore smaller overlaps
(``SolverConfig.contact_slop``)."""


def exclude_overlapping_links(builder: ModelBuilder, report: ImportReport, self_colliding: Container[str]) -> None:
    """Exclude collisions between overlapping links, and report these links.

    Files often place links inside each other on purpose. Contact forces between overlapping links would change the
    robot's pose.

    Args:
        builder: builder with all shapes and joints of the robot.
        report: contains the shapes of each link, and receives the overlaps and a warning.
        self_colliding: labels of the links with self-collisions.
    """
    shapes = {
        link: [builder.shapes[i] for i in indices] for link, indices in report.shapes.items() if link in self_colliding
    }
    posed = {shape.label: _posed(builder, shape) for owned in shapes.values() for shape in owned}
    if not posed:
        return
    excluded = {frozenset((pair.shape_a, pair.shape_b)) for pair in builder.pairs}
    low, high = (dict(zip(posed, ends, strict=True)) for ends in _bounds(list(posed.values())))
    adjacent = adjacent_bodies(builder.joints, {shape.body for owned in shapes.values() for shape in owned})
    for one, other in combinations(shapes, 2):
        a, b = sorted((shapes[one][0].body, shapes[other][0].body))
        first = frozenset((report.shapes[one][0], report.shapes[other][0]))
        if a == b or (a, b) in adjacent or first in excluded:
            continue
        close = [
            _overlap(posed[p.label], posed[q.label])
            for p in shapes[one]
            for q in shapes[other]
            if np.all(low[p.label] < high[q.label]) and np.all(low[q.label] < high[p.label])
        ]
        if max(close, default=0.0) > MIN_OVERLAP:
            report.overlaps[one, other] = max(close)
            for i, k in product(report.shapes[one], report.shapes[other]):
                builder.exclude_collision_pair(i, k)
    if report.overlaps:
        report.warn(_reported(report.overlaps), "contact")


def _posed(builder: ModelBuilder, shape: ShapeSpec) -> Posed:
    kind = shape_type(shape.kind)
    form = make_shape(kind.number, kind.sizes(shape.params), kind.points(shape.params), kind.faces(shape.params))
    pose = builder.bodies[shape.body].xform * shape.xform if shape.body >= 0 else shape.xform
    return Posed(form, pose.position, pose.matrix())  # type: ignore[arg-type]  # URDF has only convex shapes


def _bounds(posed: list[Posed]) -> tuple[list[Array], list[Array]]:
    """Return the minimum and the maximum corner of each shape's bounding box."""
    boxes = [shape_bounds(p.shape, p.center[None], p.rotation[None]) for p in posed]
    return [low[0] for low, _ in boxes], [high[0] for _, high in boxes]


def _overlap(a: Posed, b: Posed) -> float:
    """Return the overlap of two shapes, m, or 0 if they do not touch."""
    contact, _ = approach(Pair(a, b), 0.0, np.zeros(3))
    return max(0.0, -contact.gap) if contact else 0.0


def _reported(overlaps: dict[tuple[str, str], float], shown: int = 3) -> str:
    deepest = sorted(overlaps, key=lambda pair: -overlaps[pair])
    pairs = ", ".join(f"{a!r} and {b!r} by {1e3 * overlaps[a, b]:.2g} mm" for a, b in deepest[:shown])
    more = f" and {len(deepest) - shown} pairs more (report.overlaps)" if len(deepest) > shown else ""
    return f"links that overlap at the start will not collide with each other: {pairs}{more}"
