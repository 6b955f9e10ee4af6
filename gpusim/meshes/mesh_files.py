"""Reader of mesh files, based on trimesh."""

from __future__ import annotations

import os
import warnings
from typing import Any

from gpusim import validate

SUFFIXES = (".stl", ".obj", ".ply", ".off", ".dae", ".glb", ".gltf")
"""Suffixes of the mesh files that can be read. Archives are excluded, because they can expand to any size."""


def read_mesh_file(element: str, path: str, *, parts: bool = False) -> Any:
    """Read a file as one ``trimesh.Trimesh``, or as a list of parts in the frame of the file.

    The vertices of a DAE file are converted to m.

    Args:
        element: name for error messages.
        path: STL, OBJ, PLY, OFF, GLB, GLTF or DAE file (DAE needs pycollada).
        parts: if True, return a list of parts, else one mesh.

    Raises:
        ModelError: the file is missing, the suffix is unknown, trimesh is not installed, or trimesh cannot read the
            file. A file without vertices is also an error.
    """
    if not os.path.isfile(path):
        raise validate.fail(element, f"there is no mesh file {path}", "give the path of an existing file")
    if not path.lower().endswith(SUFFIXES):
        raise validate.fail(element, f"the mesh file {path} has an unknown type", f"give one of {', '.join(SUFFIXES)}")
    try:
        import trimesh
    except ImportError:
        raise validate.fail(
            element, f"reading the mesh file {path} needs trimesh, which is not installed", 'pip install "gpusim[urdf]"'
        ) from None
    try:
        with warnings.catch_warnings():
            # Skip textures above 89 megapixels (Pillow's warning), which need too much memory.
            warnings.filterwarnings("error", "Image size")
            # processing would delete the file's normals
            loaded: Any = trimesh.load(path, force="scene" if parts else "mesh", process=not parts)
        meshes = _parts(loaded) if parts else [loaded]
        for mesh in meshes:
            mesh.apply_scale(_unit(mesh))
        if not sum(len(mesh.vertices) for mesh in meshes):
            raise ValueError("it contains no vertices")
    except Exception as error:  # trimesh's readers raise undocumented errors
        raise validate.fail(
            element, f"the mesh file {path} cannot be read ({error})", "give an STL, OBJ or PLY file that trimesh reads"
        ) from None
    return meshes if parts else loaded


def _unit(mesh: Any) -> float:
    """Return the length unit of a DAE file, in m."""
    words = str(mesh.metadata.get("units") or "").split()
    return float(words[0]) if len(words) == 3 and words[1:] == ["*", "meters"] else 1.0


def _parts(scene: Any) -> list[Any]:
    """Return the meshes of a ``trimesh.Scene``, with vertices in the frame of the scene."""
    meshes = []
    for node in scene.graph.nodes_geometry:
        matrix, name = scene.graph[node]
        mesh = scene.geometry[name]
        if hasattr(mesh, "faces"):
            copied = mesh.copy(include_cache=True, include_visual=False)
            copied.apply_transform(matrix)
            copied.visual = mesh.visual
            copied.metadata |= {"name": name, "node": node}
            meshes.append(copied)
    return meshes
