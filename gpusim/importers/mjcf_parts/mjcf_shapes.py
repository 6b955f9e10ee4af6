"""Shapes of the MJCF importer for colliding geoms, with materials that follow MuJoCo's friction rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.contact.material import Material
from gpusim.description.specs import WORLD
from gpusim.errors import ModelError
from gpusim.importers.mjcf_parts.mjcf_context import Context, frame, vector
from gpusim.meshes.decomposition import decompose_mesh
from gpusim.typing import Array

PLANE, FIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
"""Values of mjtGeom."""
MAX_VERTICES = 128
DEFAULT_SOLREF, DEFAULT_SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)


def is_soft(reference: Any, impedance: Any) -> bool:
    """Return True if a geom's solref or solimp differs from MuJoCo's default."""
    return not (np.allclose(reference, DEFAULT_SOLREF) and np.allclose(impedance, DEFAULT_SOLIMP))


def colliding_geoms(context: Context) -> list[int]:
    """Return the geoms that may collide."""
    m = context.m
    paired = {int(g) for p in range(m.npair) for g in (m.pair_geom1[p], m.pair_geom2[p])}
    return [g for g in range(m.ngeom) if m.geom_contype[g] or m.geom_conaffinity[g] or g in paired]


def effective_friction(dimension: Any, friction: Any) -> tuple[float, float, float]:
    """Return sliding, spinning and rolling friction of a geom. Components that ``condim`` excludes are 0."""
    slide, spin, roll = (float(x) for x in friction)
    return (slide if dimension >= 3 else 0.0, spin if dimension >= 4 else 0.0, roll if dimension >= 6 else 0.0)


def add_shapes(context: Context, group_of: Callable[[int], str]) -> None:
    """Add a shape for every geom that may collide. ``group_of`` returns the name of a geom's collision group."""
    m = context.m
    for g in colliding_geoms(context):
        body, pose = context.placements[int(m.geom_bodyid[g])]
        slide, spin, roll = effective_friction(m.geom_condim[g], m.geom_friction[g])
        priority = int(m.geom_priority[g])
        material = Material(
            friction=slide, spinning_friction=spin, rolling_friction=roll, combine="max", priority=priority
        )
        common = {
            "xform": pose * frame(m.geom_pos[g], m.geom_quat[g]),
            "material": material,
            "label": context.label("shape", context.name("GEOM", g)),
            "group": group_of(g),
        }
        try:
            index = _add_shape(context, g, body, common)
        except ModelError as error:
            context.report_loss("contact", "GEOM", g, str(error).partition(": ")[2] or str(error), "no shape")
            continue
        if index is not None:
            context.shapes[g] = index
            context.parts[g] = list(range(index, len(context.builder.shapes)))
            owner = context.name("BODY", int(m.geom_bodyid[g]))
            context.report.shapes.setdefault(owner, []).extend(context.parts[g])
            _check_softness(context, g)


def _add_shape(context: Context, g: int, body: int, common: dict[str, Any]) -> int | None:
    m, b = context.m, context.builder
    kind, size = int(m.geom_type[g]), vector(m.geom_size[g])
    if kind in (PLANE, FIELD) and body != WORLD and not b.bodies[body].kinematic:
        context.report_loss("contact", "GEOM", g, "a plane or height field on a moving body", "no shape", "use a box")
        return None
    if kind == PLANE:
        return b.add_shape_plane(body, **common)
    if kind == FIELD:
        return b.add_shape_height_field(body, **field_sizes(context, g), **common)
    if kind == SPHERE:
        return b.add_shape_sphere(body, size[0], **common)
    if kind == CAPSULE:
        return b.add_shape_capsule(body, size[0], size[1], **common)
    if kind == ELLIPSOID:
        return b.add_shape_ellipsoid(body, size, **common)
    if kind == CYLINDER:
        return b.add_shape_cylinder(body, size[0], size[1], **common)
    if kind == BOX:
        return b.add_shape_box(body, size, **common)
    if kind == MESH:
        return _add_hull(context, g, body, common)
    context.report_loss("contact", "GEOM", g, "a signed distance field", "no shape")
    return None


def faces(context: Context, g: int) -> Array:
    """Return the triangles (n, 3) of a mesh geom."""
    m, k = context.m, int(context.m.geom_dataid[g])
    first = int(m.mesh_faceadr[k])
    return np.array(m.mesh_face[first : first + int(m.mesh_facenum[k])], int)


def _add_hull(context: Context, g: int, body: int, common: dict[str, Any]) -> int:
    """Add the convex hull of a mesh, or one hull for each part of its convex decomposition."""
    if context.options.meshes == "decompose":
        first = len(context.builder.shapes)
        mesh = vertices(context, g), faces(context, g)
        for points in decompose_mesh(f"shape '{common['label']}'", mesh):
            label = common["label"]
            if len(context.builder.shapes) > first:
                label = context.label("shape", f"{label}_part{len(context.builder.shapes) - first + 1}")
            arguments = common | {"label": label}
            context.builder.add_shape_hull(body, points, max_vertices=MAX_VERTICES, **arguments)
        return first
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        index = context.builder.add_shape_hull(body, vertices(context, g), max_vertices=MAX_VERTICES, **common)
    for warning in caught:  # "shape 'x': its hull has n vertices; it was simplified ...; fix"
        what, _, effect = str(warning.message).partition(": ")[2].partition("; ")
        context.report_loss("contact", "GEOM", g, what, effect.partition("; ")[0])
    return index


def field_sizes(context: Context, g: int) -> dict[str, Any]:
    """Return the arguments that define a height field: heights (rows, columns), spacing and base, all in m."""
    m, h = context.m, int(context.m.geom_dataid[g])
    rows, columns, first = int(m.hfield_nrow[h]), int(m.hfield_ncol[h]), int(m.hfield_adr[h])
    heights = np.array(m.hfield_data[first : first + rows * columns], float).reshape(rows, columns)
    half_x, half_y, top, base = (float(x) for x in m.hfield_size[h])
    spacing = (2.0 * half_x / (columns - 1), 2.0 * half_y / (rows - 1))
    return {"heights": heights * top, "spacing": spacing, "base": -base}


def vertices(context: Context, g: int) -> Array:
    """Return the vertices (n, 3) of a mesh geom."""
    m, k = context.m, int(context.m.geom_dataid[g])
    first = int(m.mesh_vertadr[k])
    return np.array(m.mesh_vert[first : first + int(m.mesh_vertnum[k])], float)


def _check_softness(context: Context, g: int) -> None:
    m = context.m
    if is_soft(m.geom_solref[g], m.geom_solimp[g]):
        context.report_loss("contact", "GEOM", g, "custom solref or solimp", "contacts are rigid")
    if m.geom_margin[g] or m.geom_gap[g]:
        context.report_loss("contact", "GEOM", g, "a margin or gap of contacts", "contacts act where the geoms touch")
    for name, what in (("surfacevel", "a moving surface"), ("adhesion", "adhesion")):
        if np.any(context.field(f"geom_{name}", np.zeros(m.ngeom))[g]):
            context.report_loss("contact", "GEOM", g, what, "left out")
