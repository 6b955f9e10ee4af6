"""Approximate convex decomposition of meshes with CoACD (Wei, Liu, Ling, Su 2022), cached on disk."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.compile_cache import CompileError, cached
from gpusim.meshes.welding import welded_mesh
from gpusim.typing import Array

FOLDER = "decompositions"
"""Subfolder of gpusim's cache folder."""
MAX_PARTS, CONCAVITY = 32, 0.05


def decompose_mesh(
    element: str, mesh: Any, scale: Any = 1.0, *, max_parts: int = MAX_PARTS, concavity: float = CONCAVITY
) -> list[Array]:
    """Divide a mesh approximately into convex parts. Return the vertices (n, 3) of each part in m.

    A cache on disk stores the parts of each mesh.

    Args:
        element: name for error messages.
        mesh, scale: see ``add_shape_triangle_mesh``.
        max_parts: maximum number of parts, 1 or more.
        concavity: CoACD's threshold for the concavity of a part, 0.01 (many parts) to 1 (few parts).

    Raises:
        ModelError: the mesh is invalid, coacd is not installed or fails, or an argument is out of range.
    """
    validate.count(element, "max_parts", max_parts)
    limit = validate.number(element, "concavity", concavity)
    if not 0.01 <= limit <= 1.0:
        raise validate.fail(element, f"concavity = {limit:g} is out of range", "give 0.01 to 1")
    vertices, triangles, _ = welded_mesh(element, mesh, scale)
    name = f"{FOLDER}/{_digest(vertices, triangles, int(max_parts), limit)}.npz"
    make = _maker(element, vertices, triangles, int(max_parts), limit)
    try:
        parts = np.load(cached(name, make, f"convex parts of {element}"))
    except CompileError:  # cache folder is not writable
        parts = np.load(io.BytesIO(make(Path())))
    return [parts[key] for key in sorted(parts.files)]


def _digest(vertices: Array, triangles: Array, max_parts: int, concavity: float) -> str:
    digest = hashlib.sha256(f"coacd 1 {max_parts} {concavity!r} {vertices.shape}".encode())
    digest.update(np.ascontiguousarray(vertices).tobytes())
    digest.update(np.ascontiguousarray(triangles, dtype=np.int32).tobytes())
    return digest.hexdigest()[:32]


def _maker(
    element: str, vertices: Array, triangles: Array, max_parts: int, concavity: float
) -> Callable[[Path], bytes]:
    def make(_: Path) -> bytes:
        try:
            import coacd
        except ImportError:
            raise validate.fail(
                element, "a convex decomposition needs coacd, which is not installed", 'pip install "gpusim[decompose]"'
            ) from None
        coacd.set_log_level("error")
        try:
            parts = coacd.run_coacd(coacd.Mesh(vertices, triangles), threshold=concavity, max_convex_hull=max_parts)
        except RuntimeError as error:
            rule = f"its mesh cannot be decomposed ({error})"
            raise validate.fail(element, rule, "give a closed mesh, or convex='hull'") from None
        file = io.BytesIO()
        arrays: dict[str, Any] = {f"part{k:05d}": np.asarray(points, np.float64) for k, (points, _) in enumerate(parts)}
        np.savez(file, **arrays)
        return file.getvalue()

    return make
