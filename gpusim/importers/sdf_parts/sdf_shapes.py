"""Collision shapes and visuals of SDF."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.errors import ModelError
from gpusim.importers.color_names import Color, named_color
from gpusim.importers.mesh_search import Search
from gpusim.importers.mesh_shapes import HULL_VERTICES, add_mesh_shapes
from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_bodies import Link
from gpusim.importers.sdf_parts.sdf_frames import Scope
from gpusim.importers.sdf_parts.sdf_joints import WORLD
from gpusim.importers.sdf_parts.sdf_xml import Node
from gpusim.importers.urdf_parts.urdf_geometry import UniqueLabels
from gpusim.importers.urdf_parts.urdf_overlaps import exclude_overlapping_links
from gpusim.meshes.mesh_files import read_mesh_file
from gpusim.meshes.pieces import count_triangles
from gpusim.meshes.textures import texture_of
from gpusim.transform import Transform

MAX_FRICTION = 100.0
MAX_SPINNING_FRICTION = 1e3
"""Upper bound for the spinning friction of a material, m."""
BOUNCE_SPEED = 100.0
"""Bounce threshold (m/s) above which the importer ignores restitution. SDF's default is 100000 m/s."""
ALL_BITS = 0xFFFF


class UnreadableError(Exception):
    """Error for a geometry that the importer cannot read. The message gives the reason."""


def add_collisions(
    builder: ModelBuilder, links: Iterable[Link], search: Search, meshes: str, report: ImportReport
) -> None:
    """Add the collision shapes of all links and list them in ``report.shapes``."""
    collisions = [(link, node) for link in links for node in link.node.all("collision")]
    masked = any(node.find("surface/contact/collide_bitmask") is not None for _, node in collisions)
    labels = UniqueLabels(builder.shapes)
    for link, node in collisions:
        title, label = f"link {link.label!r}", labels.next(link.label)
        options: dict[str, Any] = {"material": _material(link, node, report)}
        if masked:
            bits = _bits(node)
            options |= {"group": bits, "mask": bits}
        try:
            indices = _add_shape(builder, link, node, label, options, search, meshes, report)
        except (UnreadableError, ModelError) as why:
            affects_mass = link.mass is None and not link.static  # <inertial auto="true">
            report.add("motion" if affects_mass else "contact", title, f"a <collision> is left out: {why}")
            continue
        report.shapes.setdefault(link.label, []).extend(indices)


def _bits(node: Node) -> int:
    """Return the bit mask ``collide_bitmask`` of a <collision>. Hexadecimal numbers start with 0x."""
    text = node.words("surface/contact/collide_bitmask")
    if not text:
        return ALL_BITS
    try:
        return int(text, 16 if text.lower().startswith("0x") else 10) & ALL_BITS
    except ValueError:
        raise node.error(f'<collide_bitmask> "{text[:40]}" must be a whole number') from None


def _xform(link: Link, node: Node) -> Transform:
    pose = node.find("pose")
    if pose is None:
        return link.frame
    if not pose.get("relative_to"):
        return link.frame * pose.pose()
    world = link.scope.world_pose() * link.scope.pose_of(pose)
    return world if link.static else link.root.pose.inverse() * world


def _geometry(node: Node) -> Node:
    geometry = node.find("geometry")
    if geometry is None or not geometry.children:
        raise UnreadableError("<geometry> is empty")
    return geometry.children[0]


def _sizes(shape: Node) -> tuple[Any, ...]:
    """Return the size arguments of ``add_shape_<kind>``: radii, half edges and half lengths."""
    if shape.tag == "box":
        sizes: tuple[Any, ...] = (tuple(0.5 * edge for edge in shape.vector("size", (1.0, 1.0, 1.0))),)
    elif shape.tag == "sphere":
        sizes = (shape.number("radius", 1.0),)
    elif shape.tag == "ellipsoid":
        sizes = (shape.vector("radii", (1.0, 1.0, 1.0)),)
    else:
        sizes = (shape.number("radius", 0.5), 0.5 * shape.number("length", 1.0))
    numbers = np.concatenate([np.atleast_1d(size) for size in sizes])
    if not np.all(numbers > 0.0) or not np.all(np.isfinite(numbers)):
        raise UnreadableError(f"<{shape.tag}> has no volume")
    return sizes


SOLIDS = ("box", "sphere", "cylinder", "capsule", "ellipsoid", "cone")


def _add_shape(
    builder: ModelBuilder,
    link: Link,
    node: Node,
    label: str,
    options: dict[str, Any],
    search: Search,
    meshes: str,
    report: ImportReport,
) -> list[int]:
    shape, xform = _geometry(node), _xform(link, node)
    if shape.tag in SOLIDS:
        add = getattr(builder, f"add_shape_{shape.tag}")
        return [add(link.body, *_sizes(shape), xform, label=label, **options)]
    if shape.tag == "plane":
        if link.body != WORLD:
            raise UnreadableError("<plane> on a link that moves")
        return [builder.add_shape_plane(WORLD, xform * _plane_pose(shape), label=label, **options)]
    if shape.tag == "mesh":
        mesh, scale = _mesh(shape, link.folder, search)
        if link.body == WORLD:  # no convex hull, since buildings and terrain are hollow
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # hides the warning about triangles without area
                return [builder.add_shape_triangle_mesh(WORLD, mesh, scale, xform, label=label, **options)]
        material = options.pop("material")
        if isinstance(mesh, str) and not options:
            return add_mesh_shapes(builder, link.body, mesh, scale, xform, label, meshes=meshes, material=material)
        extra: dict[str, Any] = {"max_vertices": HULL_VERTICES, "material": material, **options}
        return [builder.add_shape_mesh(link.body, mesh, scale, xform, label=label, **extra)]
    if shape.tag == "polyline":
        return [
            builder.add_shape_hull(link.body, points, xform, label=f"{label}_{k}" if k else label, **options)
            for k, points in enumerate(_polylines(shape, link, report))
        ]
    if shape.tag == "heightmap":
        return [_heightmap(builder, link, shape, xform, label, options, search)]
    kinds = (*SOLIDS, "plane", "mesh", "polyline", "heightmap")
    raise UnreadableError(f"<{shape.tag}> is none of {', '.join(kinds)}")


def _heightmap(
    builder: ModelBuilder,
    link: Link,
    shape: Node,
    xform: Transform,
    label: str,
    options: dict[str, Any],
    search: Search,
) -> int:
    """Add terrain from an image."""
    if link.body != WORLD:
        raise UnreadableError("<heightmap> on a link that moves")
    uri = shape.words("uri")
    if not uri.lower().endswith(".png"):
        raise UnreadableError(f"<heightmap> {uri!r} is not a PNG file; use add_terrain")
    x, y, z = shape.vector("size", (1.0, 1.0, 1.0))
    pose = xform * Transform(shape.vector("pos", (0.0, 0.0, 0.0)))
    path = search.require(uri, link.folder)
    return builder.add_terrain(path, size=(x, y), height=z, body=WORLD, xform=pose, label=label, **options)


def _plane_pose(shape: Node) -> Transform:
    normal = np.array(shape.vector("normal", (0.0, 0.0, 1.0)))
    length = float(np.linalg.norm(normal))
    if not 1e-9 < length < math.inf:
        raise UnreadableError("<plane> has no normal")
    axis = np.cross((0.0, 0.0, 1.0), normal / length)
    angle = math.atan2(float(np.linalg.norm(axis)), normal[2] / length)
    if angle == 0.0:
        return Transform()
    return Transform.from_axis_angle((0, 0, 0), tuple(axis) if np.any(np.abs(axis) > 1e-12) else (1, 0, 0), angle)


def _mesh(shape: Node, folder: Path, search: Search) -> tuple[Any, tuple[float, ...]]:
    """Return a mesh and its scale. The mesh is a path, or the triangles of a submesh."""
    uri, scale = shape.words("uri"), shape.vector("scale", (1.0, 1.0, 1.0))
    if not uri:
        raise UnreadableError("<mesh> has no <uri>")
    if 0.0 in scale:
        raise UnreadableError("the scale of its <mesh> has a zero")
    path = search.require(uri, folder)
    submesh = shape.words("submesh/name")
    if not submesh:
        return path, scale
    parts = read_mesh_file(f"mesh {uri!r}", path, parts=True)
    matches = [part for part in parts if submesh in (part.metadata.get("name"), part.metadata.get("node"))]
    if not matches:
        raise UnreadableError(f"mesh {uri!r} has no submesh {submesh!r}")
    vertices = np.concatenate([np.asarray(part.vertices, dtype=float) for part in matches])
    starts = np.cumsum([0, *(len(part.vertices) for part in matches)])
    faces = np.concatenate([np.asarray(part.faces) + start for part, start in zip(matches, starts, strict=False)])
    if shape.flag("submesh/center"):
        vertices = vertices - 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    return (vertices, faces), scale


def _polylines(shape: Node, link: Link, report: ImportReport) -> list[np.ndarray]:
    """Return the corners of the prism for each <polyline>."""
    height, solids = shape.number("height", 1.0), []
    outlines = [shape] if shape.all("point") else shape.all("polyline")
    for outline in outlines:
        points = np.array([point.numbers(2) for point in outline.all("point")])
        if len(points) < 3 or height <= 0.0:
            raise UnreadableError("<polyline> has no volume")
        edges = np.roll(points, -1, axis=0) - points
        next_edges = np.roll(edges, -1, axis=0)
        cross_products = edges[:, 0] * next_edges[:, 1] - edges[:, 1] * next_edges[:, 0]
        if np.any(cross_products > 1e-12) and np.any(cross_products < -1e-12):
            report.add("contact", f"link {link.label!r}", "has a concave <polyline>", "its convex hull used instead")
        solids.append(np.array([(x, y, z) for z in (0.0, height) for x, y in points]))
    return solids


def _material(link: Link, node: Node, report: ImportReport) -> Material:
    """Return the contact material and density of a collision."""
    title, surface = f"link {link.label!r}", node.find("surface")
    density = node.number("density", link.node.number("inertial/density", 1000.0))
    values: dict[str, Any] = {"friction": 1.0, "combine": "min", "density": density if density > 0.0 else 1000.0}
    if surface is None:
        return Material(**values)
    first = surface.number("friction/ode/mu", surface.number("friction/bullet/friction", 1.0))
    second = surface.number("friction/ode/mu2", first)
    if second != first:
        text = f"friction has mu {first:g} along and {second:g} across"
        report.add("contact", title, text, f"{first:g} used for all directions")
    values["friction"] = min(max(first, 0.0), MAX_FRICTION)
    if values["friction"] != first:
        report.add("info", title, f"has friction {first:g}", f"{values['friction']:g} used instead")
    values["spinning_friction"] = _spinning_friction(surface, title, report)
    values["rolling_friction"] = max(surface.number("friction/bullet/rolling_friction", 0.0), 0.0)
    restitution = min(max(surface.number("bounce/restitution_coefficient", 0.0), 0.0), 1.0)
    threshold = surface.number("bounce/threshold", 1e5)
    if restitution > 0.0 and threshold <= BOUNCE_SPEED:
        values["restitution"] = restitution
        if threshold > 0.0:
            report.add("contact", title, f"bounces above {threshold:g} m/s", "it bounces at any speed")
    elif restitution > 0.0:
        text = f"has restitution {restitution:g} above {threshold:g} m/s"
        report.add("info", title, text, "it does not bounce, as in Gazebo", "give a threshold of 0")
    _unread_surface(surface, title, report)
    return Material(**values)


def _spinning_friction(surface: Node, title: str, report: ImportReport) -> float:
    """Return the spinning friction (m) for SDF's torsional friction: ``3 pi / 16 * patch_radius * coefficient``."""
    torsional = surface.find("friction/torsional")
    if torsional is None:
        return 0.0
    coefficient, radius = torsional.number("coefficient", 1.0), torsional.number("patch_radius", 0.0)
    if not torsional.flag("use_patch_radius", True):
        report.add(
            "contact",
            title,
            "has torsional friction that depends on the contact depth",
            "left out",
            "give a patch_radius",
        )
        return 0.0
    return min(max(0.0, coefficient * 3.0 * math.pi / 16.0 * radius), MAX_SPINNING_FRICTION)


def _unread_surface(surface: Node, title: str, report: ImportReport) -> None:
    slip = [path for path in ("slip1", "slip2") if surface.number(f"friction/ode/{path}", 0.0) > 0.0]
    if slip:
        report.add("contact", title, f"has <{slip[0]}>", "it does not slip")
    for path in ("contact/ode/kp", "contact/ode/kd", "contact/ode/soft_cfm", "soft_contact"):
        if surface.find(path) is not None:
            report.add("contact", title, "has a contact compliance", "contacts are rigid")
            break
    if surface.flag("contact/collide_without_contact"):
        report.add("contact", title, "has <collide_without_contact>", "its contacts apply forces")


def add_visuals(builder: ModelBuilder, links: Iterable[Link], search: Search, report: ImportReport) -> None:
    """Add the visuals of all links and list them in ``report.visuals``."""
    labels = UniqueLabels(builder.visuals)
    for link in links:
        for node in link.node.all("visual"):
            options: dict[str, Any] = {"label": labels.next(link.label), "color": _color(node, link, report)}
            options |= _finish(node, link, search, report)
            try:
                index = _add_visual(builder, link, node, options, search, report)
            except (UnreadableError, ModelError) as why:
                report.add("look", f"link {link.label!r}", f"a <visual> is left out: {why}")
                continue
            if index is not None:
                report.visuals.setdefault(link.label, []).append(index)
    report.triangles = sum(map(count_triangles, builder.visuals))


def _add_visual(
    builder: ModelBuilder,
    link: Link,
    node: Node,
    options: dict[str, Any],
    search: Search,
    report: ImportReport,
) -> int | None:
    shape = _geometry(node)
    options["xform"] = _xform(link, node)
    if shape.tag in SOLIDS:
        return builder.add_visual(link.body, shape.tag, *_sizes(shape), **options)
    if shape.tag == "mesh":
        return builder.add_visual(link.body, "mesh", *_mesh(shape, link.folder, search), **options)
    if shape.tag in ("plane", "heightmap") and link.body == WORLD or shape.tag == "empty":
        return None  # the viewer draws the collision shape
    raise UnreadableError(f"<{shape.tag}> is none of {', '.join((*SOLIDS, 'mesh'))}")


_UNSUPPORTED_MAPS = (
    ("normal_map", "a normal map", "its surface is smooth"),
    ("roughness_map", "a roughness map", "its roughness is the same everywhere"),
    ("metalness_map", "a metalness map", "its metalness is the same everywhere"),
    ("glossiness_map", "a glossiness map", "its roughness is the same everywhere"),
    ("emissive_map", "an emissive map", "it does not shine"),
)


def _finish(node: Node, link: Link, search: Search, report: ImportReport) -> dict[str, Any]:
    """Return the opacity, roughness, metalness and texture of a visual in the file."""
    values: dict[str, Any] = {}
    diffuse = node.find("material/diffuse")
    alpha = 1.0 - min(max(node.number("transparency", 0.0), 0.0), 1.0)
    if diffuse is not None and len(diffuse.text.split()) == 4:
        alpha *= min(max(diffuse.numbers(4)[3], 0.0), 1.0)
    if alpha < 1.0:
        values["alpha"] = alpha
    flow = node.find("material/pbr/metal") or node.find("material/pbr/specular")
    if flow is None:
        return values
    for name, path in (("roughness", "roughness"), ("metallic", "metalness")):
        if flow.find(path) is not None:
            values[name] = min(max(flow.number(path, 0.5), 0.0), 1.0)
    for name, what, effect in _UNSUPPORTED_MAPS:
        if flow.words(name):
            report.add("look", f"link {link.label!r}", f"has {what}", effect)
    picture = flow.words("albedo_map")
    if picture:
        try:
            values["texture"] = texture_of("albedo_map", search.require(picture, link.folder))
        except ModelError as why:
            report.add("look", f"link {link.label!r}", f"a texture is left out: {why}")
    return values


def _color(node: Node, link: Link, report: ImportReport) -> Color | None:
    """Return the color of a visual, or None."""
    title, material = f"link {link.label!r}", node.find("material")
    if material is None:
        return None
    for name in ("diffuse", "ambient"):
        element = material.find(name)
        if element is not None and element.text.strip():
            r, g, b = np.clip(element.numbers(4, 3)[:3], 0.0, 1.0)
            return float(r), float(g), float(b)
    name = material.words("script/name")
    color = named_color(name) if name else None
    if name and color is None:
        report.add("look", title, f"material script {name!r} is unknown", "the viewer's color is drawn")
    return color


def exclude_self_collisions(
    builder: ModelBuilder, links: Iterable[Link], self_collisions: bool | None, report: ImportReport
) -> None:
    """Exclude collisions between links of the same model. Two links collide only if both have self-collisions.

    ``self_collisions`` enables self-collisions for all links (True), no links (False), or links with <self_collide>
    (None).
    """
    models: dict[Any, list[Link]] = {}
    for link in links:
        top = link.scope
        while top.parent is not None and top.parent.is_model:
            top = top.parent
        models.setdefault(top, []).append(link)
    for members in models.values():
        shown = [link for link in members if link.label in report.shapes and not link.static]
        if self_collisions is None:
            self_colliding = {link.label for link in shown if _self_collides(link)}
        else:
            self_colliding = {link.label for link in shown} if self_collisions else set()
        for one, other in combinations(shown, 2):
            if one.body == other.body or {one.label, other.label} <= self_colliding:
                continue
            for a, b in product(report.shapes[one.label], report.shapes[other.label]):
                builder.exclude_collision_pair(a, b)
        exclude_overlapping_links(builder, report, self_colliding)


def _self_collides(link: Link) -> bool:
    scope: Scope | None = link.scope
    default = False
    while scope is not None:
        default = default or scope.node.flag("self_collide")
        scope = scope.parent
    return link.node.flag("self_collide", default)


def add_ground(builder: ModelBuilder, xform: Transform | None) -> None:
    """Add the ground plane of Gazebo."""
    label = UniqueLabels(builder.shapes).next("ground_plane")
    builder.add_shape_plane(WORLD, xform, material=Material(friction=MAX_FRICTION, combine="min"), label=label)
