"""Conversion of URDF visuals. A problem with a visual causes a warning, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.shape_kinds import shape_type
from gpusim.errors import ModelError
from gpusim.importers.mesh_search import Search
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_parts.urdf_check import numbers
from gpusim.importers.urdf_parts.urdf_geometry import (
    Geometry,
    NoGeometryError,
    Placement,
    UniqueLabels,
    builder_sizes,
    child,
    read_geometry,
)
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, title
from gpusim.meshes.pieces import Color, Piece, count_triangles, mesh_pieces
from gpusim.meshes.textures import texture_of

_SEGMENTS = 48
"""Number of segments of a circle in a drawn shape."""


@dataclass(frozen=True)
class Paint:
    """Material of a visual.

    Attributes:
        color: sRGB color, 0 to 1, or None if the file defines no color.
        alpha: opacity, or None for 1 (opaque).
        texture: file name in the URDF, a loaded image, or None.
    """

    color: Color | None = None
    alpha: float | None = None
    texture: Any = None


@dataclass(frozen=True)
class Look:
    """One <visual>: its geometry and its material."""

    geometry: Geometry
    paint: Paint


def read_visuals(document: Document) -> list[Look]:
    """Return all readable visuals of a checked document, and warn about unreadable visuals."""
    materials = _materials(document)
    looks = []
    for link, element in document.visuals:
        if _is_empty(element):
            continue
        try:
            geometry = read_geometry(document, link, element)
        except (NoGeometryError, ModelError) as why:
            document.warn(f"{title(link)}: a <visual> is left out: {why}", "look")
            continue
        looks.append(Look(geometry, _paint_of(document, link, element, materials)))
    return looks


def _is_empty(element: Element) -> bool:
    """Return whether a geometry has size 0."""
    geometry = child(element, "geometry")
    shapes = [s for s in geometry if isinstance(s.tag, str)] if geometry is not None else []
    sizes = [(shape.get("size") or shape.get("radius") or "").split() for shape in shapes]
    return any(size and set(size) <= {"0", "0.0", "0."} for size in sizes)


def _materials(document: Document) -> dict[str, Paint]:
    """Return all named materials of the robot: name -> material."""
    paints: dict[str, Paint] = {}
    inside = [material for _, visual in document.visuals if (material := child(visual, "material")) is not None]
    for material in (*document.materials, *inside):
        name = material.get("name")
        if name and name not in paints and (paint := _paint(document, material)) is not None:
            paints[name] = paint
    return paints


def _paint(document: Document, material: Element) -> Paint | None:
    """Return a material, or None for a <material> without color and texture."""
    element, picture = child(material, "color"), child(material, "texture")
    texture = None if picture is None else picture.get("filename") or None
    rgba = None if element is None or element.get("rgba") is None else _rgba(document, element)
    if rgba is None:
        return None if texture is None else Paint(texture=texture)
    r, g, b, a = rgba
    return Paint((r, g, b), a if a < 1.0 else None, texture)


def _rgba(document: Document, element: Element) -> list[float] | None:
    try:
        return [float(number) for number in np.clip(numbers(document, element, "rgba", 4), 0.0, 1.0)]
    except ModelError:
        return None


def _paint_of(document: Document, link: Element, visual: Element, materials: dict[str, Paint]) -> Paint:
    material = child(visual, "material")
    if material is None:
        return Paint()
    paint = _paint(document, material) or materials.get(material.get("name") or "")
    if paint is None:
        name = f" {material.get('name')!r}" if material.get("name") else ""
        text = f'<material>{name} of a <visual> has no color; add <color rgba="..."> of four numbers to it'
        document.warn(f"{title(link)}: {text}", "look")
    return paint or Paint()


def add_visuals(
    looks: Sequence[Look],
    placement: Placement,
    builder: ModelBuilder,
    search: Search,
    colors: Mapping[str, Color],
    report: ImportReport,
) -> None:
    """Add the visuals to ``builder`` and list them in ``report.visuals``.

    If the importer cannot read any visual of a link, the viewer draws the link's shapes.

    Args:
        looks: visuals of the links.
        placement: poses of the links, and the bodies that contain them.
        builder: builder that contains the shapes and receives the visuals.
        search: search path for meshes.
        colors: link -> color that replaces the colors of the link's visuals.
        report: receives the indices of the visuals, and a warning for every unreadable visual.
    """
    meshes: dict[tuple[Any, ...], Any] = {}
    pictures: dict[str, Any] = {}
    failed: dict[str, int] = {}
    labels = UniqueLabels(builder.visuals)
    for look in looks:
        geometry = look.geometry
        body, xform = placement.of(geometry)
        label = labels.next(geometry.link)
        try:
            sizes: tuple[Any, ...] = builder_sizes(geometry) if geometry.kind != "mesh" else ()
            paint = _load_texture(look, search, pictures, report)
            if geometry.link in colors:
                paint = Paint(colors[geometry.link])
            if geometry.kind == "mesh":
                pieces, paint = _combine_colors(_mesh(meshes, geometry, search), paint)
                sizes = (pieces,)
            options: dict[str, Any] = {"color": paint.color, "alpha": paint.alpha, "texture": paint.texture}
            index = builder.add_visual(body, geometry.kind, *sizes, xform=xform, label=label, **options)
        except ModelError as error:
            report.warn(f"link {geometry.link!r}: a <visual> is left out: {error}", "look")
            failed[geometry.link] = body
            continue
        report.visuals.setdefault(geometry.link, []).append(index)
    drawn = {visual.body for visual in builder.visuals}
    for link, body in failed.items():
        if body in drawn and link not in report.visuals:
            _show_shapes(builder, link, report)
    report.triangles = sum(map(count_triangles, builder.visuals))


def _mesh(meshes: dict[tuple[Any, ...], Any], geometry: Geometry, search: Search) -> Any:
    """Return the triangles of a mesh file, split into one piece for each material."""
    path = search.require(geometry.mesh)
    key = (path, geometry.sizes)
    if key not in meshes:
        meshes[key] = mesh_pieces(f"<mesh> {geometry.mesh!r}", path, geometry.sizes)
    return meshes[key]


def _load_texture(look: Look, search: Search, pictures: dict[str, Any], report: ImportReport) -> Paint:
    """Return the visual's material. If the material has a texture file, load the texture as an image."""
    paint = look.paint
    if paint.texture is None:
        return paint
    try:
        path = search.require(paint.texture)
        if path not in pictures:
            pictures[path] = texture_of("texture", path)
    except ModelError as error:
        report.warn(f"link {look.geometry.link!r}: a <texture> is left out: {error}", "look")
        return replace(paint, texture=None)
    return replace(paint, texture=pictures[path])


def _combine_colors(pieces: tuple[Piece, ...], paint: Paint) -> tuple[tuple[Piece, ...], Paint]:
    """Combine the colors of the mesh file with the <material>. Return the mesh pieces and the resulting material."""
    if all(piece.color is None for piece in pieces):
        return pieces, paint
    if paint.color is None:
        return pieces, Paint()
    return tuple(piece if piece.color is not None else replace(piece, color=paint.color) for piece in pieces), Paint()


def _show_shapes(builder: ModelBuilder, link: str, report: ImportReport) -> None:
    """Add a link's shapes as visuals. The viewer does not draw the shapes of bodies with visuals."""
    labels = UniqueLabels(builder.visuals)
    for number in report.shapes.get(link, []):
        shape = builder.shapes[number]
        mesh = shape_type(shape.kind).mesh(shape.params, _SEGMENTS)
        label = labels.next(link)
        index = builder.add_visual(shape.body, "mesh", mesh, xform=shape.xform, label=label)
        report.visuals.setdefault(link, []).append(index)
