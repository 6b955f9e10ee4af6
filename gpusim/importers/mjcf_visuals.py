"""Pictures of the MJCF importer: visuals, sites, and names of cameras."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import VisualSpec
from gpusim.errors import ModelError
from gpusim.importers.mjcf_context import Context, frame, vector
from gpusim.importers.mjcf_shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE, vertices
from gpusim.typing import Array

LAST_SHOWN = 2
"""Greatest geom group that MuJoCo's viewer shows by default."""
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
_KINDS = {
    SPHERE: ("sphere", 1),
    CAPSULE: ("capsule", 2),
    ELLIPSOID: ("ellipsoid", 3),
    CYLINDER: ("cylinder", 2),
    BOX: ("box", 3),
}


def add_visuals(context: Context) -> None:
    """Add the visible geoms. A body whose visible geoms all collide is drawn by its shapes."""
    m = context.m
    shown = [g for g in range(m.ngeom) if m.geom_group[g] <= LAST_SHOWN and _rgba(context, g)[3] > 0.0]
    drawn = {context.homes[int(m.geom_bodyid[g])][0] for g in shown if g not in context.shapes}
    for g in shown:
        rgba = _rgba(context, g)
        red, green, blue = vector(np.clip(rgba[:3], 0.0, 1.0))
        color = (red, green, blue)
        body = context.homes[int(m.geom_bodyid[g])][0]
        if g in context.shapes and (body not in drawn or m.geom_type[g] == PLANE):
            context.builder.shapes[context.shapes[g]].color = color
            continue
        try:
            _add_visual(context, g, body, color)
        except ModelError as error:
            context.lost("look", "GEOM", g, str(error).partition(": ")[2] or str(error), "not drawn")
            continue
        if rgba[3] < 1.0:
            context.lost("look", "GEOM", g, "transparency", "opaque")
    context.report.triangles = sum(map(_triangles, context.builder.visuals))


def _triangles(visual: VisualSpec) -> int:
    if visual.kind == "mesh":
        return sum(len(piece.triangles) for piece in visual.params["pieces"])
    return len(shape_type(visual.kind).mesh(visual.params)[1])


def _add_visual(context: Context, g: int, body: int, color: tuple[float, ...]) -> None:
    m, builder, kind = context.m, context.builder, int(context.m.geom_type[g])
    place = context.homes[int(m.geom_bodyid[g])][1]
    common: dict[str, Any] = {"xform": place * frame(m.geom_pos[g], m.geom_quat[g]), "color": color}
    if kind in _KINDS:
        word, count = _KINDS[kind]
        size = vector(m.geom_size[g][:count])
        sizes: tuple[Any, ...] = (size,) if count == 3 else size
    elif kind == MESH:
        k = int(m.geom_dataid[g])
        first = int(m.mesh_faceadr[k])
        word, sizes = "mesh", ((vertices(context, g), np.array(m.mesh_face[first : first + int(m.mesh_facenum[k])])),)
    else:
        context.lost("look", "GEOM", g, "a plane or field that is only drawn", "not drawn")
        return
    label = context.label("visual", context.name("GEOM", g))
    index = builder.add_visual(body, word, *sizes, label=label, **common)
    context.report.visuals.setdefault(context.name("BODY", int(m.geom_bodyid[g])), []).append(index)


def _rgba(context: Context, g: int) -> Array:
    """Return the color of a geom: its own, or its material's times the mean of the texture."""
    m, rgba = context.m, np.array(context.m.geom_rgba[g], float)
    material = int(m.geom_matid[g])
    if material < 0:
        return rgba
    if np.allclose(rgba, _DEFAULT_RGBA):
        rgba = np.array(m.mat_rgba[material], float)
    textures = [int(t) for t in np.ravel(m.mat_texid[material]) if t >= 0]
    if textures:
        rgba[:3] *= _mean_color(context, textures[0])
        context.lost("look", "GEOM", g, "a texture", "its mean color")
    return rgba


def _mean_color(context: Context, texture: int) -> Array:
    m = context.m
    data = context.field("tex_data", None)
    if data is None:  # before MuJoCo 3.2.1
        data, channels = m.tex_rgb, 3
    else:
        channels = int(m.tex_nchannel[texture])
    first, count = int(m.tex_adr[texture]), int(m.tex_height[texture]) * int(m.tex_width[texture]) * channels
    if not count:  # a procedural or missing picture
        return np.ones(3)
    pixels = np.reshape(data[first : first + count], (-1, channels))
    mean: Array = pixels[:, : min(channels, 3)].mean(axis=0) / 255.0
    return mean if mean.size == 3 else np.full(3, mean[0])


def add_sites(context: Context) -> None:
    """Add all sites."""
    for s in range(context.m.nsite):
        body, place = context.site(s)
        context.builder.add_site(body, place, label=context.label("site", context.name("SITE", s)))
