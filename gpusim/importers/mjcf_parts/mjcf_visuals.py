"""Visuals of the MJCF importer: geoms and sites."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.errors import ModelError
from gpusim.importers.mjcf_parts.mjcf_context import Context, frame, vector
from gpusim.importers.mjcf_parts.mjcf_looks import GeomLook, geom_look, mesh_corners, report_looks, site_look
from gpusim.importers.mjcf_parts.mjcf_shapes import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FIELD,
    MESH,
    PLANE,
    SPHERE,
    field_sizes,
    vertices,
)
from gpusim.meshes.pieces import count_triangles, mesh_pieces
from gpusim.typing import Array

_KINDS = {
    SPHERE: ("sphere", 1),
    CAPSULE: ("capsule", 2),
    ELLIPSOID: ("ellipsoid", 3),
    CYLINDER: ("cylinder", 2),
    BOX: ("box", 3),
}


def add_visuals(context: Context) -> None:
    """Add visuals for the geoms and sites of the visible groups.

    A body gets no visuals if all its visible geoms collide, have plain colors and are not meshes. For a body without
    visuals, the viewer draws the collision shapes.
    """
    m, groups = context.m, context.options.visual_groups
    looks = {g: geom_look(context, g) for g in range(m.ngeom) if m.geom_group[g] in groups}
    shown = {g: look for g, look in looks.items() if look.rgba[3] > 0.0}
    sites = [s for s in range(m.nsite) if m.site_group[s] in groups and site_look(context, s).rgba[3] > 0.0]
    special = [g for g, look in shown.items() if g not in context.shapes or _needs_visual(context, g, look)]
    drawn = {_body(context, g) for g in special} | {context.site(s)[0] for s in sites}
    for g, index in context.shapes.items():  # in the world, the viewer draws both shapes and visuals
        shape = context.builder.shapes[index]
        shape.covered = bool(shown) and g not in shown and (shape.body == WORLD or not m.nskin)
    for g, look in shown.items():
        body = _body(context, g)
        if g in context.shapes:
            shape = context.builder.shapes[context.shapes[g]]
            shape.color = look.color
            if body not in drawn or (body == WORLD and not _needs_visual(context, g, look)):
                continue
            shape.covered = True
        try:
            _add_visual(context, g, body, look)
        except ModelError as error:
            context.report_loss("look", "GEOM", g, str(error).partition(": ")[2] or str(error), "not drawn")
    for s in sites:
        _add_site_visual(context, s)
    report_looks(context)
    context.report.triangles = sum(map(count_triangles, context.builder.visuals))


def _add_site_visual(context: Context, s: int) -> None:
    m, (body, pose), look = context.m, context.site(s), site_look(context, s)
    kind_name, sizes = _basic(int(m.site_type[s]), m.site_size[s])
    label = context.label("visual", context.name("SITE", s))
    index = context.builder.add_visual(
        body, kind_name, *sizes, xform=pose, color=look.color, label=label, **look.options
    )
    context.report.visuals.setdefault(context.name("BODY", int(m.site_bodyid[s])), []).append(index)


def _basic(kind: int, size: Array) -> tuple[str, tuple[Any, ...]]:
    """Return the kind and the sizes of a geom or site with a basic shape, as arguments of ``add_visual``."""
    kind_name, count = _KINDS[kind]
    sizes = vector(size[:count])
    return kind_name, (sizes,) if count == 3 else sizes


def _body(context: Context, g: int) -> int:
    return context.placements[int(context.m.geom_bodyid[g])][0]


def _needs_visual(context: Context, g: int, look: GeomLook) -> bool:
    """Return whether a geom looks different from its collision shape, and therefore needs a visual."""
    kind = int(context.m.geom_type[g])
    return kind == MESH or bool(look.options) or (kind == PLANE and not look.is_default)


def _add_visual(context: Context, g: int, body: int, look: GeomLook) -> None:
    m, builder, kind = context.m, context.builder, int(context.m.geom_type[g])
    body_pose = context.placements[int(m.geom_bodyid[g])][1]
    common: dict[str, Any] = {"xform": body_pose * frame(m.geom_pos[g], m.geom_quat[g]), "color": look.color}
    sizes: tuple[Any, ...] = ()
    if kind in _KINDS:
        kind_name, sizes = _basic(kind, m.geom_size[g])
    elif kind == MESH:
        kind_name, sizes = "mesh", (_pieces(context, g),)
    elif kind == PLANE:
        kind_name = "plane"
    elif kind == FIELD:
        kind_name, common = "height_field", common | field_sizes(context, g)
    else:
        context.report_loss("look", "GEOM", g, "a signed distance field that is only drawn", "not drawn")
        return
    label = context.label("visual", context.name("GEOM", g))
    index = builder.add_visual(body, kind_name, *sizes, label=label, **common, **look.options)
    context.report.visuals.setdefault(context.name("BODY", int(m.geom_bodyid[g])), []).append(index)


def _pieces(context: Context, g: int) -> Any:
    m, k = context.m, int(context.m.geom_dataid[g])
    if k in context.pieces:
        return context.pieces[k]
    first = int(m.mesh_faceadr[k])
    mesh = (vertices(context, g), np.array(m.mesh_face[first : first + int(m.mesh_facenum[k])]))
    context.pieces[k] = mesh_pieces(f"geom '{context.name('GEOM', g)}'", mesh, **mesh_corners(context, g))
    return context.pieces[k]


def add_sites(context: Context) -> None:
    """Add all sites."""
    for s in range(context.m.nsite):
        body, pose = context.site(s)
        context.builder.add_site(body, pose, label=context.label("site", context.name("SITE", s)))
