"""Height field: terrain given by heights on a grid."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import CREASE, MANIFOLDS, Line, Mesh, Params, Unmovable, box_corners, register
from gpusim.shapes.field_casting import cast_field
from gpusim.shapes.placing import ALL_GROUPS, shape_element
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

_CREASE = 75.0
_NORMAL_COSINE = 0.9963
"""Cosine of 5 degrees. If all normals are within 5 degrees of the first normal, one contact manifold is enough."""
_FLAT = 1e-6
"""Minimum rise of a triangle above its neighbor's plane in a valley, as a fraction of the grid spacing dx + dy."""
_BAND = 256
"""Number of grid rows that are processed together."""
_SKIRT = 0.08
"""Maximum depth of drawn walls below the lowest point, as a fraction of the field's longer side."""


@register
class HeightField(Unmovable):
    """Solid from z = ``base`` up to ``heights`` (rows, columns) above a grid centered on the shape frame's origin.

    Column j lies at x = (j - (columns - 1)/2) dx, row i at y = (i - (rows - 1)/2) dy. Each cell has two triangles, with
    the diagonal from (i, j) to (i + 1, j + 1).
    """

    name: ClassVar[str] = "height_field"
    number: ClassVar[int] = 9
    level: ClassVar[int] = 2
    size_names: ClassVar[tuple[str, ...]] = ("columns", "rows", "spacing_x", "spacing_y", "base")
    param_names: ClassVar[tuple[str, ...] | None] = ("heights", "spacing", "base")
    picture: ClassVar[str] = "terrain"
    ray_file: ClassVar[str] = "height_field.cuh"

    def size_values(self, params: Params) -> list[float]:
        """Return grid size, spacing and base."""
        rows, columns = params["heights"].shape
        return [float(columns), float(rows), *(float(s) for s in params["spacing"]), float(params["base"])]

    def sizes(self, params: Params) -> Array:
        """Return ``size_values``, and the minimum and maximum z for the bounding box."""
        size, heights = super().sizes(params), params["heights"]
        size[5:7] = min(float(heights.min()), size[4]), max(float(heights.max()), size[4])
        return size

    def points(self, params: Params) -> Array:
        """Return the heights row by row."""
        heights: Array = params["heights"].reshape(-1)
        return heights

    def radius(self, params: Params) -> float:
        """Return the distance from the origin to the farthest corner of the bounding box."""
        columns, rows, dx, dy, base = self.size_values(params)
        height = max(abs(base), float(np.abs(params["heights"]).max()))
        return math.hypot(0.5 * (columns - 1.0) * dx, 0.5 * (rows - 1.0) * dy, height)

    def corners(self, params: Params) -> Array:
        """Return the corners of the bounding box of the surface."""
        columns, rows, dx, dy, _ = self.size_values(params)
        half = 0.5 * np.array([(columns - 1.0) * dx, (rows - 1.0) * dy])
        low, high = float(params["heights"].min()), float(params["heights"].max())
        return box_corners((*-half, low), (*half, high))

    def tile(self, params: Params) -> float:
        """Return infinity: everything below the surface is solid."""
        return math.inf

    def manifolds(self, params: Params) -> int:
        """Return 1 for a field without valleys or a nearly planar field (within 5 degrees), else MANIFOLDS."""
        heights, spacing = params["heights"], params["spacing"]
        first = _normals(heights[:2, :2], spacing)[0][0, 0, 0]
        # Bands of rows need less memory. Neighboring bands share a row of cells.
        bands = [heights[k : k + _BAND + 1] for k in range(0, len(heights) - 1, _BAND - 1)]
        if all(np.all(_normals(band, spacing)[0] @ first >= _NORMAL_COSINE) for band in bands if len(band) > 1):
            return 1
        return MANIFOLDS if any(_has_valley(band, spacing) for band in bands if len(band) > 1) else 1

    def mesh(self, params: Params, segments: int = 32) -> Mesh:
        """Return the mesh of the surface, without walls and bottom."""
        rows, columns = params["heights"].shape
        dx, dy = params["spacing"]
        x = (np.arange(columns) - 0.5 * (columns - 1)) * dx
        y = (np.arange(rows) - 0.5 * (rows - 1)) * dy
        grid = np.meshgrid(x, y)
        vertices = np.stack([*grid, params["heights"]], axis=-1).reshape(-1, 3)
        corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
        here, right, up, opposite = corner, corner + 1, corner + columns, corner + columns + 1
        triangles = np.concatenate([np.stack([here, right, opposite], axis=1), np.stack([here, opposite, up], axis=1)])
        return vertices, triangles.astype(np.int32)

    def surfaces(self, params: Params, segments: int = 32) -> list[tuple[Array, Array, float]]:
        """Return the surface and walls for drawing. The walls extend down to the base or to the depth ``_SKIRT``."""
        vertices, triangles = self.mesh(params)
        rows, columns = params["heights"].shape
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        bottom = max(float(params["base"]), low[2] - _SKIRT * max(high[0] - low[0], high[1] - low[1]))
        number = np.arange(rows * columns).reshape(rows, columns)
        # counterclockwise seen from above, for walls that face outward
        upper = vertices[np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])]
        lower = np.column_stack([upper[:, :2], np.full(len(upper), bottom)])
        here = np.arange(len(upper))
        there, below = (here + 1) % len(upper), len(upper) + here
        opposite = len(upper) + there
        walls = np.concatenate([np.stack([below, opposite, there], axis=1), np.stack([below, there, here], axis=1)])
        return [(vertices, triangles, _CREASE), (np.concatenate([upper, lower]), walls.astype(np.int32), CREASE)]

    def cast(self, params: Params, line: Line) -> tuple[Array, Array]:
        """Cast rays against the triangles."""
        return cast_field(params["heights"], params["spacing"], float(params["base"]), line)


def _normals(heights: Array, spacing: Array) -> tuple[Array, Array]:
    """Return unit normals (2, rows - 1, columns - 1, 3) and slopes of the two triangles of each cell."""
    here, right, up, opposite = heights[:-1, :-1], heights[:-1, 1:], heights[1:, :-1], heights[1:, 1:]
    slopes = np.stack([[right - here, opposite - right], [opposite - up, up - here]])
    slopes = slopes / np.reshape(spacing, (2, 1, 1))
    normals = np.concatenate([-slopes, np.ones_like(slopes[:, :1])], axis=1)
    return np.moveaxis(normals / np.linalg.norm(normals, axis=1, keepdims=True), 1, -1), slopes


def _has_valley(heights: Array, spacing: Array) -> bool:
    dx, dy = spacing
    (right_x, right_y), (left_x, left_y) = _normals(heights, spacing)[1]
    # rise of a triangle above its neighbor's plane, across a diagonal, an edge along y and an edge along x
    rises = (
        dx * (right_x - left_x),
        dx * (left_x[:, 1:] - right_x[:, :-1]),
        dy * (right_y[1:] - left_y[:-1]),
    )
    return any(bool(np.any(rise > _FLAT * (dx + dy))) for rise in rises)


@builder_method
def add_shape_height_field(
    self: ModelBuilder,
    body: int,
    heights: Any,
    spacing: Vector = (1.0, 1.0),
    base: float | None = None,
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = 1,
    mask: int = ALL_GROUPS,
    color: Any = None,
) -> int:
    """Add terrain given by heights on a grid, centered on the shape frame's origin.

    Args:
        body: -1 for the world, or a kinematic body.
        heights: z of the grid points in the shape frame, (rows, columns), m, at least (2, 2). The row index increases
            with y, the column index with x.
        spacing: distance (dx, dy) between columns and between rows (m), above zero.
        base: z of the bottom (m), not above the lowest height. Default: lowest height minus the field's longer side.
        xform, material, label, group, mask, color: see ``add_shape``.

    Returns:
        The shape's index.

    Raises:
        ModelError: the body is dynamic, or a value is invalid.
    """
    element = shape_element(self, label)
    grid = _check_heights(element, heights)
    steps = validate.numbers(element, "spacing", spacing, 2)
    for name, value in zip("xy", steps, strict=True):
        validate.positive(element, f"spacing along {name}", value)
    lowest = float(grid.min())
    if base is None:
        base = lowest - max((grid.shape[1] - 1) * float(steps[0]), (grid.shape[0] - 1) * float(steps[1]))
    bottom = validate.number(element, "base", base)
    if bottom > lowest:
        raise validate.fail(
            element, f"base = {bottom:g} is above the lowest height {lowest:g}", "give a lower base, or leave it out"
        )
    params: dict[str, Any] = {"heights": grid, "spacing": steps, "base": bottom}
    return self.add_shape("height_field", body, params, xform, material, label, group, mask, color=color)


def _check_heights(element: str, heights: Any) -> Array:
    try:
        grid = np.array(heights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise validate.fail(element, "heights are not numbers", "give an array (rows, columns) in m") from None
    if grid.ndim != 2 or min(grid.shape) < 2:
        raise validate.fail(
            element, f"heights have shape {grid.shape}", "give (rows, columns), at least 2 rows and 2 columns"
        )
    if not np.all(np.isfinite(grid)):
        row, column = np.argwhere(~np.isfinite(grid))[0]
        raise validate.fail(
            element, f"the height at row {row}, column {column} is {grid[row, column]}", "give finite heights in m"
        )
    return grid
