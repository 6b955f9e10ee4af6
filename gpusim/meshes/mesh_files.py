"""Reader of mesh files, based on trimesh."""

from __future__ import annotations

import os
import warnings
from typing import Any

from gpusim import validate

SUFFIXES = (".stl", ".obj", ".ply", ".off", ".dae", ".glb", ".gltf")
"""Suffixes of mesh files that can be read. Archives are left out because they can expand to any size."""


def read_mesh_file(element: str, path: str, *, parts: bool = False) -> Any:
    """Read a file as one ``trimesh.Trimesh``, or as a list of its parts in the frame of the file.

    Args:
        element: name for error messages.
        path: STL, OBJ, PLY, OFF, GLB, GLTF or DAE file (DAE needs pycollada).
        parts: keep the file's parts separate.

    Raises:
        ModelError: the file or trimesh is missing, the suffix is unknown, or trimesh finds no vertices in the file.
    """
    if not os.path.isfile(path):
        raise validate.fail(element, f"there is no mesh file {path}", "give the path of an existing file")
    if not path.lower().endswith(SUFFIXES):
        raise validate.fail(element, f"the mesh file {path} is of no known kind", f"give one of {', '.join(SUFFIXES)}")
    try:
        import trimesh
    except ImportError:
        raise validate.fail(
            element, f"reading the mesh file {path} needs trimesh, which is not installed", 'pip install "gpusim[urdf]"'
        ) from None
    try:
        with warnings.catch_warnings():
            # Pillow warns of textures above 89 megapixels. Only their mean color is used, so skip them.
            warnings.filterwarnings("error", "Image size")
            loaded: Any = trimesh.load(path, force="scene" if parts else "mesh")
        found = [m for m in loaded.dump() if isinstance(m, trimesh.Trimesh)] if parts else [loaded]
        if not sum(len(mesh.vertices) for mesh in found):
            raise ValueError("it holds no vertices")
    except Exception as error:  # trimesh does not document what its many readers raise
        raise validate.fail(
            element, f"the mesh file {path} cannot be read ({error})", "give an STL, OBJ or PLY file that trimesh reads"
        ) from None
    return found if parts else loaded
