"""Conversion of URDF collision geometry to shapes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import groupby, product

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_geometry import (
    FreeLabels,
    Geometry,
    NoGeometryError,
    Placement,
    Search,
    builder_sizes,
    read_geometry,
)
from gpusim.importers.urdf_overlaps import keep_overlapping_apart
from gpusim.importers.urdf_xml import Document, title
from gpusim.transform import Transform

#: Vertex limit of a mesh's hull. More vertices make contact slower, not better.
HULL_VERTICES = 64


def read_collisions(document: Document) -> list[Geometry]:
    """Return every collision of a checked document that has a volume. Warnings list the skipped ones.

    Raises:
        ModelError: a number is invalid or missing.
    """
    found = []
    for link, element in document.collisions:
        try:
            found.append(read_geometry(document, link, element))
        except NoGeometryError as why:
            document.warnings.append(f"{title(link)}: a <collision> is left out: {why}")
    return found


def add_shapes(
    collisions: Sequence[Geometry],
    placement: Placement,
    builder: ModelBuilder,
    search: Search,
    self_collisions: bool,
    report: ImportReport,
) -> None:
    """Add the shapes to ``builder`` and list them in ``report.shapes``.

    Args:
        collisions: collision geometry of the links.
        placement: poses and bodies of the links.
        builder: receives the shapes.
        search: search path for meshes.
        self_collisions: enable collisions between the robot's links, except links that overlap in the imported pose.
        report: receives the indices and warnings about unreadable meshes and overlapping links.
    """
    labels = FreeLabels(builder.shapes)
    for collision in collisions:
        label = labels.next(collision.link)
        body, xform = placement.of(collision)
        try:
            index = _add(builder, body, collision, xform, label, search)
        except ModelError as error:
            report.warn(f"link {collision.link!r}: a <collision> is left out: {error}", "contact")
            continue
        report.shapes.setdefault(collision.link, []).append(index)
    if self_collisions:
        keep_overlapping_apart(builder, report)
    else:
        _keep_apart(builder, report)


def _add(builder: ModelBuilder, body: int, c: Geometry, xform: Transform, label: str, search: Search) -> int:
    if c.kind != "mesh":
        add = getattr(builder, f"add_shape_{c.kind}")
        index: int = add(body, *builder_sizes(c), xform, label=label)
        return index
    path = search.need(c.mesh)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reducing the hull's vertices is intended
        return builder.add_shape_mesh(body, path, c.sizes, xform, label=label, max_vertices=HULL_VERTICES)


def _keep_apart(builder: ModelBuilder, report: ImportReport) -> None:
    """Exclude all collisions within the robot, since links overlap at their joints and often beyond neighbors."""
    groups = _by_body(builder, report)
    for number, (body, own) in enumerate(groups):
        others = [index for other, indices in groups[number + 1 :] if other != body for index in indices]
        for a, b in product(own, others):
            builder.exclude_collision_pair(a, b)


def _by_body(builder: ModelBuilder, report: ImportReport) -> list[tuple[int, list[int]]]:
    """Group the robot's shapes by body, in link order. Adjacent links of one body share a group."""
    own = [index for indices in report.shapes.values() for index in indices]
    return [(body, list(group)) for body, group in groupby(own, lambda index: builder.shapes[index].body)]
