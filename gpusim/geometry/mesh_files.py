"""Reader of mesh files, based on trimesh."""

from __future__ import annotations

import os
from typing import Any

from gpusim.model import validate


def read_mesh_file(element: str, path: str, *, parts: bool = False) -> Any:
    """Read a file as one ``trimesh.Trimesh``, or as a list of its parts in the frame of the file.

    Args:
        element: name for error messages.
        path: file that trimesh reads: STL, OBJ, PLY, DAE (with pycollada), ...
        parts: keep the file's parts separate.

    Raises:
        ModelError: the file is missing, trimesh is missing, or trimesh can read no vertices from the file.
    """
    if not os.path.isfile(path):
        raise validate.fail(element, f"there is no mesh file {path}", "give the path of an existing file")
    try:
        import trimesh
    except ImportError:
        raise validate.fail(
            element, f"reading the mesh file {path} needs trimesh, which is not installed", 'pip install "gpusim[urdf]"'
        ) from None
    try:
        loaded: Any = trimesh.load(path, force="scene" if parts else "mesh")
        found = [m for m in loaded.dump() if isinstance(m, trimesh.Trimesh)] if parts else [loaded]
        if not sum(len(mesh.vertices) for mesh in found):
            raise ValueError("it holds no vertices")
    except Exception as error:  # trimesh does not document what its many readers raise
        raise validate.fail(
            element, f"the mesh file {path} cannot be read ({error})", "give an STL, OBJ or PLY file that trimesh reads"
        ) from None
    return found if parts else loaded
