"""Conversion of URDF collision geometry to shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.errors import ModelError
from gpusim.importers.mesh_search import Search
from gpusim.importers.mesh_shapes import add_mesh_shapes
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_parts.urdf_geometry import (
    Geometry,
    NoGeometryError,
    Placement,
    UniqueLabels,
    builder_sizes,
    read_geometry,
)
from gpusim.importers.urdf_parts.urdf_overlaps import exclude_overlapping_links
from gpusim.importers.urdf_parts.urdf_xml import Document, title
from gpusim.transform import Transform


@dataclass(frozen=True)
class CollisionRules:
    """Rules for the collisions between links.

    Attributes:
        meshes: how to make collision shapes of meshes: "hull" (one convex hull) or "decompose" (several convex hulls).
        self_colliding: links that may collide with each other.
        excluded_pairs: pairs of links that never collide, even if both links are in ``self_colliding``.
        material: function that returns the material of a link's shapes, or None for the default.
    """

    meshes: str
    self_colliding: set[str]
    excluded_pairs: set[frozenset[str]]
    material: Callable[[str], Material | None]


def read_collisions(document: Document) -> list[Geometry]:
    """Return the <collision> elements of a checked document. Drop elements without a volume, with a warning.

    Raises:
        ModelError: a number is invalid or missing.
    """
    collisions = []
    for link, element in document.collisions:
        try:
            collisions.append(read_geometry(document, link, element))
        except NoGeometryError as why:
            document.warn(f"{title(link)}: a <collision> is left out: {why}", "contact")
    return collisions


def add_shapes(
    collisions: Sequence[Geometry],
    placement: Placement,
    builder: ModelBuilder,
    search: Search,
    rules: CollisionRules,
    report: ImportReport,
) -> None:
    """Add the shapes to ``builder`` and list them in ``report.shapes``.

    Args:
        collisions: collision geometry of the links.
        placement: poses of the links, and the bodies that contain them.
        builder: receives the shapes.
        search: search path for meshes.
        rules: materials, collision shapes of meshes, and links that collide with each other.
        report: receives the indices of the shapes, and warnings about unreadable meshes and overlapping links.
    """
    labels = UniqueLabels(builder.shapes)
    for collision in collisions:
        label = labels.next(collision.link)
        body, xform = placement.of(collision)
        try:
            indices = _add(builder, body, collision, xform, label, search, rules)
        except ModelError as error:
            report.warn(f"link {collision.link!r}: a <collision> is left out: {error}", "contact")
            continue
        report.shapes.setdefault(collision.link, []).extend(indices)
    _exclude_self_collisions(builder, report, rules)
    exclude_overlapping_links(builder, report, rules.self_colliding)


def _add(
    builder: ModelBuilder, body: int, c: Geometry, xform: Transform, label: str, search: Search, rules: CollisionRules
) -> list[int]:
    material = rules.material(c.link)
    if c.kind != "mesh":
        add = getattr(builder, f"add_shape_{c.kind}")
        return [add(body, *builder_sizes(c), xform, label=label, material=material)]
    path = search.require(c.mesh)
    return add_mesh_shapes(builder, body, path, c.sizes, xform, label, meshes=rules.meshes, material=material)


def _exclude_self_collisions(builder: ModelBuilder, report: ImportReport, rules: CollisionRules) -> None:
    """Exclude all collisions between links of the robot that ``rules`` do not allow."""
    for one, other in combinations(report.shapes, 2):
        if {one, other} <= rules.self_colliding and frozenset((one, other)) not in rules.excluded_pairs:
            continue
        for a, b in product(report.shapes[one], report.shapes[other]):
            if builder.shapes[a].body != builder.shapes[b].body:
                builder.exclude_collision_pair(a, b)
