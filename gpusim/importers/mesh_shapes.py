"""Collision shapes for mesh files: one convex hull, or several hulls from a convex decomposition."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.errors import ModelError
from gpusim.meshes.decomposition import decompose_mesh
from gpusim.transform import Transform

HULL_VERTICES = 64
"""Maximum number of vertices of a convex hull. More vertices make contacts slower, but not more accurate."""
MESHES = ("hull", "decompose")


def check_meshes(meshes: str) -> None:
    """Raise a ModelError if ``meshes`` is neither "hull" nor "decompose", or if the package ``coacd`` is missing."""
    if meshes not in MESHES:
        raise ModelError(f"meshes = {meshes!r} is unknown; give one of {', '.join(map(repr, MESHES))}")
    if meshes == "decompose" and find_spec("coacd") is None:
        raise ModelError('meshes="decompose" needs coacd, which is not installed; pip install "gpusim[decompose]"')


def add_mesh_shapes(
    builder: ModelBuilder,
    body: int,
    path: str,
    scale: tuple[float, ...],
    xform: Transform,
    label: str,
    *,
    meshes: str = "hull",
    material: Material | None = None,
) -> list[int]:
    """Add the shapes of a mesh file to a body and return their indices.

    Args:
        builder: receives the shapes.
        body: body index, -1 for the world.
        path: mesh file in a format that trimesh reads.
        scale: scale factor along each axis (3,). The factors also convert the mesh's length unit to m.
        xform: pose of the mesh in the body frame.
        label: label of the first shape. The labels of further shapes end with a number.
        meshes: "hull" for one convex hull, or "decompose" for several hulls.
        material: material of all shapes.

    Raises:
        ModelError: the file cannot be read, or all vertices of the mesh lie in one plane.
    """
    common: dict[str, Any] = {"xform": xform, "material": material, "max_vertices": HULL_VERTICES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hides the warning about removed hull vertices
        if meshes == "hull":
            return [builder.add_shape_mesh(body, path, scale, label=label, **common)]
        parts = decompose_mesh(f"shape '{label}'", path, scale)
        labels = [label, *(f"{label}_part{number}" for number in range(2, len(parts) + 1))]
        return [
            builder.add_shape_hull(body, vertices, label=name, **common)
            for vertices, name in zip(parts, labels, strict=True)
        ]
