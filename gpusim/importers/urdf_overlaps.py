"""Links that overlap as their file puts them together, which no contact force could ever part."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from gpusim.importers.report import ImportReport
from gpusim.model.builder import ModelBuilder
from gpusim.model.joined_bodies import joined_bodies
from gpusim.model.shape_kinds import shape_type
from gpusim.model.specs import ShapeSpec
from gpusim.reference.collide.pairs import shape_bounds
from gpusim.reference.collide.separation import Pair, Posed, approach
from gpusim.reference.collide.shapes import make_shape
from gpusim.typing import Array

LEAST_OVERLAP = 1e-5
"""What a contact leaves as it is (``SolverConfig.contact_slop``), m."""


def keep_overlapping_apart(builder: ModelBuilder, report: ImportReport) -> None:
    """Let links that overlap in the imported pose pass through each other, and tell which.

    Hulls are thicker than the meshes that they are made of, and files often lay links into each other on purpose
    (covers, gripper mechanisms). Pushing them apart would bend the robot, or load joints that cannot give way.

    Args:
        builder: has all shapes and joints of the robot.
        report: its ``shapes`` tell whose they are; gets ``overlaps`` and a sentence about them.
    """
    shapes = {link: [builder.shapes[i] for i in indices] for link, indices in report.shapes.items()}
    posed = {shape.label: _posed(builder, shape) for owned in shapes.values() for shape in owned}
    low, high = (dict(zip(posed, ends, strict=True)) for ends in _bounds(list(posed.values())))
    joined = joined_bodies(builder.joints, {shape.body for owned in shapes.values() for shape in owned})
    for one, other in combinations(shapes, 2):
        a, b = sorted((shapes[one][0].body, shapes[other][0].body))
        if a == b or (a, b) in joined:
            continue
        close = [
            _overlap(posed[p.label], posed[q.label])
            for p in shapes[one]
            for q in shapes[other]
            if np.all(low[p.label] < high[q.label]) and np.all(low[q.label] < high[p.label])
        ]
        if max(close, default=0.0) > LEAST_OVERLAP:
            report.overlaps[one, other] = max(close)
            for i, k in product(report.shapes[one], report.shapes[other]):
                builder.exclude_collision_pair(i, k)
    if report.overlaps:
        report.warnings.append(_told(report.overlaps))


def _posed(builder: ModelBuilder, shape: ShapeSpec) -> Posed:
    kind = shape_type(shape.kind)
    form = make_shape(kind.number, kind.sizes(shape.params), kind.points(shape.params), kind.faces(shape.params))
    pose = builder.bodies[shape.body].xform * shape.xform if shape.body >= 0 else shape.xform
    return Posed(form, pose.position, pose.matrix())  # type: ignore[arg-type]  # URDF has convex shapes alone


def _bounds(posed: list[Posed]) -> tuple[list[Array], list[Array]]:
    """Lowest and highest corners of the boxes around all shapes."""
    boxes = [shape_bounds(p.shape, p.center[None], p.turn[None]) for p in posed]
    return [low[0] for low, _ in boxes], [high[0] for _, high in boxes]


def _overlap(a: Posed, b: Posed) -> float:
    """How far two shapes would have to move to touch no more, m; 0 where they are apart."""
    found, _ = approach(Pair(a, b), 0.0, np.zeros(3))
    return max(0.0, -found.gap) if found else 0.0


def _told(overlaps: dict[tuple[str, str], float], shown: int = 3) -> str:
    deepest = sorted(overlaps, key=lambda pair: -overlaps[pair])
    pairs = ", ".join(f"{a!r} and {b!r} by {1e3 * overlaps[a, b]:.2g} mm" for a, b in deepest[:shown])
    more = f" and {len(deepest) - shown} pairs more (report.overlaps)" if len(deepest) > shown else ""
    return f"links that overlap with all joints at 0 will not collide with each other: {pairs}{more}"
