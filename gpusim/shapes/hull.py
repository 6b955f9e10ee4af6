"""Convex hull of points or of a mesh."""

from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import Faces, Line, Mesh, Params, ShapeType, register
from gpusim.errors import callers_level
from gpusim.meshes.decomposition import MAX_PARTS, decompose_mesh
from gpusim.meshes.mesh_files import read_mesh_file
from gpusim.meshes.polytope import FlatPointsError, convex_hull, fewer_points, hull_points, solid
from gpusim.shapes.casting import Span
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

MAX_VERTICES = 256


@register
class Hull(ShapeType):
    """Convex polytope. The parameters are ``vertices`` (n, 3) in the shape frame and ``faces``."""

    name: ClassVar[str] = "hull"
    number: ClassVar[int] = 8
    size_names: ClassVar[tuple[str, ...]] = ()
    param_names: ClassVar[tuple[str, ...] | None] = ("vertices", "faces")
    picture: ClassVar[str] = "faceted"
    ray_file: ClassVar[str] = "hull.cuh"

    def points(self, params: Params) -> Array:
        """Return the vertices."""
        vertices: Array = params["vertices"]
        return vertices

    def faces(self, params: Params) -> Faces:
        """Return the faces, which are planar polygons."""
        faces: Faces = params["faces"]
        return faces

    def tile(self, params: Params) -> float:
        """Return half of the minimum width along a face normal."""
        projections = params["vertices"] @ params["faces"].normal.T
        return 0.5 * float(np.ptp(projections, axis=0).min())

    def volume(self, params: Params) -> float:
        """Return the volume, summed over tetrahedra."""
        return solid(*self.mesh(params))[0]

    def center(self, params: Params) -> Array:
        """Return the center of mass."""
        return solid(*self.mesh(params))[1]

    def inertia(self, params: Params) -> Array:
        """Return the inertia for density 1, summed over tetrahedra."""
        return solid(*self.mesh(params))[2]

    def radius(self, params: Params) -> float:
        """Return the distance to the farthest vertex."""
        return float(np.linalg.norm(params["vertices"], axis=1).max())

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh. Each face is a fan of triangles."""
        return params["vertices"], params["faces"].triangles()

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Find where rays hit the hull."""
        vertices, faces, span = params["vertices"], params["faces"], Span(line.start.size)
        for f, normal in enumerate(faces.normal):
            offset = line.origin - vertices[faces.polygon(f)[0]]
            span.cut_half(offset @ normal, line.direction @ normal, f)
        s, face = span.first_end(line.start)
        return s, faces.normal[np.maximum(face, 0)]


@builder_method
def add_shape_hull(
    self: ModelBuilder,
    body: int,
    vertices: Any,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    max_vertices: int = MAX_VERTICES,
    color: Any = None,
) -> int:
    """Add the convex hull of points.

    Args:
        body: body index, -1 for the world.
        vertices: at least four points in the shape frame, (n, 3), m, not all in one plane.
        xform, material, label, group, mask, density, color: see ``add_shape``.
        max_vertices: maximum number of vertices, 4 to 256. The builder simplifies a hull with more vertices, and warns
            about the deviation.

    Returns:
        The shape's index.

    Raises:
        ModelError: ``vertices`` does not have the shape (n, 3), the points span no volume, or ``max_vertices`` is out
            of range.
    """
    element = shape_element(self, label)
    params = _hull_params(element, _check_points(element, vertices), max_vertices)
    return self.add_shape("hull", body, params, xform, material, label, group, mask, density, color)


@builder_method
def add_shape_mesh(
    self: ModelBuilder,
    body: int,
    mesh: Any,
    scale: float | Vector = 1.0,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    max_vertices: int = MAX_VERTICES,
    color: Any = None,
    convex: str = "hull",
    max_parts: int = MAX_PARTS,
) -> int:
    """Add a mesh as one convex hull, or split it into convex parts.

    Args:
        body: body index, -1 for the world.
        mesh: path of a file that trimesh reads (STL, OBJ, PLY, ..., needs the extra ``urdf``),
            ``(vertices, triangles)``, vertices (n, 3), or an object with ``vertices``.
        scale: factor from the mesh's unit to m, one number or one per axis.
        xform, material, label, group, mask, density, color: see ``add_shape``.
        max_vertices: see ``add_shape_hull``.
        convex: "hull" for one convex hull, or "decompose" for one hull per convex part of a concave mesh. "decompose"
            needs triangles and the extra ``decompose``. gpusim stores the parts in the cache folder.
        max_parts: maximum number of parts of a decomposition.

    Returns:
        The shape's index. For a decomposition, the result is the index of the first part. The other parts have the next
        indices, and the labels ``<label>_1``, ``<label>_2``, ...

    Raises:
        ModelError: the file cannot be read, its points span no volume, or the decomposition fails.
    """
    element = shape_element(self, label)
    validate.choice(element, "convex", convex, ("hull", "decompose"))
    if convex == "decompose":
        name = label or f"shape{len(self.shapes)}"
        indices = []
        for k, part in enumerate(decompose_mesh(element, mesh, scale, max_parts=max_parts)):
            params = _hull_params(element, part, max_vertices)
            number = name if k == 0 else f"{name}_{k}"
            indices.append(self.add_shape("hull", body, params, xform, material, number, group, mask, density, color))
        return indices[0]
    factors = validate.per_axis(element, "scale", scale, 3)
    if np.any(factors == 0.0):
        raise validate.fail(element, "scale has a zero", "give factors that are not zero, such as 0.001 for mm")
    points = _check_points(element, _mesh_points(element, mesh)) * factors
    params = _hull_params(element, points, max_vertices)
    return self.add_shape("hull", body, params, xform, material, label, group, mask, density, color)


def _check_points(element: str, vertices: Any) -> Array:
    try:
        points = np.array(vertices, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise validate.fail(element, "vertices are not numbers", "give an array (n, 3) in m") from None
    if points.ndim != 2 or points.shape[1] != 3:
        raise validate.fail(element, f"vertices have shape {points.shape}", "give an array (n, 3) in m")
    if not np.all(np.isfinite(points)):
        row = int(np.argwhere(~np.isfinite(points))[0, 0])
        raise validate.fail(element, f"vertex {row} is {points[row].tolist()}", "give finite coordinates")
    return points


def _hull_params(element: str, points: Array, max_vertices: int) -> Params:
    if not isinstance(max_vertices, int | np.integer) or not 4 <= max_vertices <= MAX_VERTICES:
        raise validate.fail(
            element,
            f"max_vertices = {max_vertices!r} is out of range",
            f"give a whole number from 4 to {MAX_VERTICES}",
        )
    try:
        corners = hull_points(points)
        reduced, gap = fewer_points(corners, int(max_vertices)) if len(corners) > max_vertices else (corners, 0.0)
        vertices, faces = convex_hull(reduced)
    except FlatPointsError:
        raise validate.fail(
            element,
            f"the {len(points)} vertices span no volume (they lie in one plane, on a line or in a point)",
            "give at least four points that are not in one plane, or use a thin box",
        ) from None
    if gap > 0.0:
        warnings.warn(
            f"{element}: its hull has {len(corners)} vertices; it was simplified to {len(vertices)} vertices, with an "
            f"error of at most {gap:.2g} m; give at most {max_vertices} vertices to avoid this",
            stacklevel=callers_level(),
        )
    return {"vertices": vertices, "faces": faces}


def _mesh_points(element: str, mesh: Any) -> Any:
    if isinstance(mesh, str | os.PathLike):
        return read_mesh_file(element, os.fspath(mesh)).vertices
    if hasattr(mesh, "vertices"):
        return mesh.vertices
    return mesh[0] if isinstance(mesh, tuple) and len(mesh) == 2 else mesh
