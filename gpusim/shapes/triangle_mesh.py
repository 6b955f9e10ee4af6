"""Triangle mesh: a surface on the world or a kinematic body, such as a quarry, a building or a truck bed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import MANIFOLDS, Faces, Line, Mesh, Params, Unmovable, box_corners, register
from gpusim.errors import callers_level
from gpusim.meshes.triangle_tree import TriangleTree, build_tree
from gpusim.meshes.welding import chunks, welded_mesh
from gpusim.shapes.mesh_casting import cast_mesh
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

_NORMAL_COSINE = 0.9963
"""Cosine of 5 degrees. If the mesh is planar within 5 degrees, one contact manifold is enough."""


@register
class TriangleMesh(Unmovable):
    """Surface of triangles.

    Both sides of each triangle collide, so the mesh may be closed or open. The parameter is ``tree``.
    """

    name: ClassVar[str] = "triangle_mesh"
    number: ClassVar[int] = 12
    level: ClassVar[int] = 3
    size_names: ClassVar[tuple[str, ...]] = (
        "lower_x", "lower_y", "lower_z", "upper_x", "upper_y", "upper_z", "triangles", "vertices",
    )  # fmt: skip
    param_names: ClassVar[tuple[str, ...] | None] = ("tree",)
    picture: ClassVar[str] = "faceted"
    two_sided: ClassVar[bool] = True
    ray_file: ClassVar[str] = "triangle_mesh.cuh"

    def size_values(self, params: Params) -> list[float]:
        """Return the corners of the bounding box, and the numbers of triangles and vertices."""
        tree: TriangleTree = params["tree"]
        corners = [*tree.vertices.min(axis=0).tolist(), *tree.vertices.max(axis=0).tolist()]
        return [*corners, float(len(tree.triangles)), float(len(tree.vertices))]

    def points(self, params: Params) -> Array:
        """Return the vertices."""
        vertices: Array = params["tree"].vertices
        return vertices

    def faces(self, params: Params) -> Faces:
        """Return the integer arrays of the triangle tree in ``Faces.vertex``, for kernels."""
        return Faces(vertex=params["tree"].numbers())

    def radius(self, params: Params) -> float:
        """Return the distance to the farthest vertex."""
        vertices = params["tree"].vertices
        return float(np.sqrt(np.einsum("ij,ij->i", vertices, vertices).max()))

    def corners(self, params: Params) -> Array:
        """Return the corners of the bounding box."""
        size = self.size_values(params)
        return box_corners(size[:3], size[3:6])

    def manifolds(self, params: Params) -> int:
        """Return 1 if the mesh is planar within 5 degrees, else MANIFOLDS."""
        vertices, triangles = params["tree"].vertices, params["tree"].triangles
        first = _normals(vertices[triangles[:1]])[0]
        for part in chunks(triangles):
            normals = _normals(vertices[part])
            if np.any(
                np.abs(normals @ first) < _NORMAL_COSINE * np.linalg.norm(normals, axis=1) * np.linalg.norm(first)
            ):
                return MANIFOLDS
        return 1

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the triangles."""
        tree: TriangleTree = params["tree"]
        return tree.vertices, tree.triangles[: tree.solid]

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Cast rays against the triangles, from both sides."""
        return cast_mesh(params["tree"], line)


def _normals(corner: Array) -> Array:
    """Return the normals (n, 3) of n triangles with the corners ``corner`` (n, 3, 3). They are not unit vectors."""
    return np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])


@builder_method
def add_shape_triangle_mesh(
    self: ModelBuilder,
    body: int,
    mesh: Any,
    scale: float | Vector = 1.0,
    xform: Transform | None = None,
    material: Material | Sequence[Material] | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    color: Any = None,
    material_index: Any = None,
) -> int:
    """Add a mesh of colliding triangles to the world or to a kinematic body.

    Both sides of every triangle collide, so the mesh may be closed or open. The order of a triangle's corners does not
    matter. If a shape penetrates a triangle, contacts push the shape to the side that contains more than half of the
    shape's thickness. The builder merges equal vertices. Sliding shapes do not catch on edges between triangles.

    Args:
        body: -1 for the world, or a kinematic body.
        mesh: path of a file that trimesh reads (STL, OBJ, PLY, ..., needs the extra ``urdf``),
            ``(vertices, triangles)``, or an object with ``vertices`` and ``faces``.
        scale: factor from the mesh's unit to m, one number or one per axis.
        xform, label, group, mask, color: see ``add_shape``.
        material: see ``add_shape``, or a list of materials with ``material_index``. Each material gets a separate
            shape. Sliding shapes do not catch on the seams between materials.
        material_index: index of the material of each triangle, (triangles,).

    Returns:
        The shape's index. With several materials, the result is the index of the first shape. The other shapes have the
        next indices, and the labels ``<label>_1``, ``<label>_2``, ...

    Raises:
        ModelError: the body is dynamic, the file cannot be read, a vertex is not finite, an index is out of range, or
            no triangle has an area.

    Warns:
        UserWarning: the builder removed duplicate triangles, or triangles without area.
    """
    element = shape_element(self, label)
    self.check_movable(element, "triangle_mesh", self.check_body(element, "body", body))
    vertices, triangles, kept = welded_mesh(element, mesh, scale)
    if not kept.all():
        warnings.warn(
            f"{element}: dropped {np.count_nonzero(~kept)} of {kept.size} triangles (no area, or repeated)",
            stacklevel=callers_level(),
        )
    if isinstance(material, Material | None):
        if material_index is not None:
            raise validate.fail(element, "material_index needs a list of materials", "give material=[...]")
        params: Params = {"tree": build_tree(vertices, triangles)}
        return self.add_shape("triangle_mesh", body, params, xform, material, label, group, mask, color=color)
    index = _material_index(element, material_index, len(material), kept.size)[kept]
    first, name = len(self.shapes), label or f"shape{len(self.shapes)}"
    for k in np.unique(index):
        number = name if len(self.shapes) == first else f"{name}_{len(self.shapes) - first}"
        params = {"tree": build_tree(vertices, triangles, index == k)}
        self.add_shape("triangle_mesh", body, params, xform, material[k], number, group, mask, color=color)
    return first


def _material_index(element: str, index: Any, materials: int, triangles: int) -> Array:
    indices = np.asarray(index if index is not None else [])
    if indices.shape != (triangles,) or not np.issubdtype(indices.dtype, np.integer):
        rule = f"material_index has shape {indices.shape}, but the mesh has {triangles} triangles"
        raise validate.fail(element, rule, "give the index of a material for each triangle")
    if indices.min() < 0 or indices.max() >= materials:
        rule = f"material_index ranges from {indices.min()} to {indices.max()}, but there are {materials} materials"
        raise validate.fail(element, rule, "count from 0")
    return indices
