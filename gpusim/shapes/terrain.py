"""Terrain from files and arrays of heights: a height field, or a triangle mesh with holes and several materials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.meshes.terrain_files import read_terrain
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array, Vector


@builder_method
def add_terrain(
    self: ModelBuilder,
    source: Any,
    cell: float | Vector | None = None,
    size: float | Vector | None = None,
    height: float = 1.0,
    hole: float | None = None,
    body: int = -1,
    xform: Transform | None = None,
    material: Material | Sequence[Material] | None = None,
    material_index: Any = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    color: Any = None,
) -> int:
    """Add terrain from a file or an array of heights, centered on the shape frame's origin.

    Bodies that move beyond the edge of the terrain fall. NaN heights, and heights that a GeoTIFF marks as missing, are
    holes.

    Args:
        source: .png (8 or 16 bits), .tif (GeoTIFF) or .npy file, or an array (rows, columns). The first row of a PNG or
            GeoTIFF is at the highest y. The first row of an array or .npy file is at the lowest y. PNG and TIFF files
            need the extra ``terrain``.
        cell: distance between grid points (m): one number or (dx, dy). Default: the pixel scale of a GeoTIFF. A pixel
            scale in degrees is ignored.
        size: alternative to ``cell``: length of the whole terrain along x and y (m).
        height: factor from the values in ``source`` to m. The values of a PNG are from 0 (black) to 1 (white).
        hole: height that fills holes (m). Without ``hole``, bodies fall through holes.
        body: -1 for the world, or a kinematic body.
        xform, label, group, mask, color: see ``add_shape``.
        material: see ``add_shape``, or a list of materials with ``material_index``.
        material_index: index of the material of each cell, (rows - 1, columns - 1), starting at the lowest y.

    Returns:
        The index of the shape. The shape is a height field, or a triangle mesh if the terrain has open holes or several
        materials. With several materials, the result is the index of the first shape (see ``add_shape_triangle_mesh``).

    Raises:
        ModelError: the file cannot be read, ``cell`` and ``size`` are missing, or a value is invalid.
    """
    element = shape_element(self, label)
    heights, file_spacing = read_terrain(element, source)
    dx, dy = _cell(element, heights.shape, cell, size, file_spacing)
    heights = heights * validate.number(element, "height", height)
    if hole is not None:
        heights = np.where(np.isnan(heights), validate.number(element, "hole", hole), heights)
    if not np.isnan(heights).any() and isinstance(material, Material | None) and material_index is None:
        return self.add_shape_height_field(
            body, heights, (dx, dy), None, xform, material, label, group, mask, color=color
        )
    mesh, cells = _triangles(heights, dx, dy)
    if not len(cells):
        raise validate.fail(element, "no cell has four heights", "give a terrain with fewer holes, or hole=")
    if material_index is not None:
        index = np.asarray(material_index)
        if index.shape != (heights.shape[0] - 1, heights.shape[1] - 1):
            rule = f"material_index has shape {index.shape}, but heights have shape {heights.shape}"
            raise validate.fail(element, rule, "give one row and one column fewer than heights")
        material_index = index.ravel()[cells]
    return self.add_shape_triangle_mesh(
        body, mesh, 1.0, xform, material, label, group, mask, color, material_index=material_index
    )


def _cell(
    element: str, shape: tuple[int, ...], cell: Any, size: Any, file_spacing: tuple[float, float] | None
) -> tuple[float, float]:
    if cell is not None and size is not None:
        raise validate.fail(element, "cell and size are both given", "give one of them")
    if size is not None:
        extent = validate.per_axis(element, "size", size, 2)
        spacing = extent / (shape[1] - 1, shape[0] - 1)
    elif cell is not None:
        spacing = validate.per_axis(element, "cell", cell, 2)
    elif file_spacing is not None:
        spacing = np.array(file_spacing)
    else:
        raise validate.fail(
            element, "the source contains no cell size in m", "give cell= in m, or size= of the whole terrain in m"
        )
    for name, value in zip("xy", spacing, strict=True):
        validate.positive(element, f"cell along {name}", value)
    return float(spacing[0]), float(spacing[1])


def _triangles(heights: Array, dx: float, dy: float) -> tuple[tuple[Array, Array], Array]:
    """Return the mesh of all cells that have no NaN height, and the cell index of each triangle."""
    rows, columns = heights.shape
    x, y = np.meshgrid((np.arange(columns) - 0.5 * (columns - 1)) * dx, (np.arange(rows) - 0.5 * (rows - 1)) * dy)
    hole = np.isnan(heights)
    complete = np.flatnonzero(~(hole[:-1, :-1] | hole[:-1, 1:] | hole[1:, :-1] | hole[1:, 1:]).ravel())
    corner = complete // (columns - 1) * columns + complete % (columns - 1)
    opposite = corner + columns + 1
    lower, upper = np.stack([corner, corner + 1, opposite], axis=1), np.stack([corner, opposite, opposite - 1], axis=1)
    vertices = np.column_stack([x.ravel(), y.ravel(), np.where(hole, 0.0, heights).ravel()])
    return (vertices, np.concatenate([lower, upper])), np.concatenate([complete, complete])
