"""Ray casting against height fields. The CUDA code is in cuda_kernels/rays/height_field.cuh."""

from __future__ import annotations

import numpy as np

from gpusim.description.shape_kinds import Line
from gpusim.shapes.casting import Span, face_normals
from gpusim.typing import Array

_BOTTOM = 5


class _Ground:
    """Terrain heights at the (x, y) positions of points on rays.

    Args:
        heights: heights of the grid points, (rows, columns), in m.
        spacing: distances (dx, dy) between grid points in m.
        line: n rays in the shape's frame.
    """

    def __init__(self, heights: Array, spacing: Array, line: Line) -> None:
        self.heights, self.spacing, self.line = heights, np.asarray(spacing), line
        self.last = np.array(heights.shape[::-1]) - 1
        self.at = line.origin[:, :2] / self.spacing + 0.5 * self.last
        self.rate = line.direction[:, :2] / self.spacing

    def crossing_parameters(self, start: Array, end: Array) -> Array:
        """Return m sorted parameters of each ray, (rays, m): start, end, and crossings with triangle edges."""
        grid = [(np.arange(n + 1) - self.at[:, k, None]) / self.rate[:, k, None] for k, n in enumerate(self.last)]
        diagonal = np.arange(-self.last[1], self.last[0] + 1)
        difference, rate = self.at[:, 0] - self.at[:, 1], self.rate[:, 0] - self.rate[:, 1]
        crossings = np.concatenate([*grid, (diagonal - difference[:, None]) / rate[:, None]], axis=1)
        crossings = np.where(np.isnan(crossings), start[:, None], crossings)
        within = np.clip(crossings, start[:, None], end[:, None])
        return np.sort(np.concatenate([within, start[:, None], end[:, None]], axis=1), axis=1)

    def triangles(self, s: Array) -> tuple[Array, Array]:
        """Return terrain heights (rays, m) at ray parameters, and height changes per column and row (rays, m, 2)."""
        cell = np.clip(self.at[:, None] + s[..., None] * self.rate[:, None], 0.0, self.last)
        i, j = np.moveaxis(np.minimum(cell.astype(int), self.last - 1), -1, 0)
        x, y = cell[..., 0] - i, cell[..., 1] - j
        h = self.heights
        here, right, up, opposite = h[j, i], h[j, i + 1], h[j + 1, i], h[j + 1, i + 1]
        lower = np.stack([right - here, opposite - right], axis=-1)
        slope = np.where((x < y)[..., None], np.stack([opposite - up, up - here], axis=-1), lower)
        return here + slope[..., 0] * x + slope[..., 1] * y, slope


def cast_field(heights: Array, spacing: Array, base: float, line: Line) -> tuple[Array, Array]:
    """Cast rays against the solid between z = ``base`` and ``heights``, with results as in ``ShapeType.cast``."""
    ground, count = _Ground(heights, spacing, line), line.start.size
    walls = Span(count)
    for k in range(2):
        walls.cut_slab(line, k, 0.5 * ground.last[k] * spacing[k])
    walls.cut_half(base - line.origin[:, 2], -line.direction[:, 2], _BOTTOM)
    hits_box = ~walls.empty & (walls.leave >= line.start)
    start = np.where(hits_box, np.maximum(walls.enter, line.start), 0.0)
    # Above the highest point, a rising ray cannot hit the terrain.
    top = (heights.max() - line.origin[:, 2]) / line.direction[:, 2] + 1.0
    end = np.where(line.direction[:, 2] > 0.0, np.minimum(walls.leave, np.maximum(top, start)), walls.leave)
    s = ground.crossing_parameters(start, np.where(hits_box, end, 0.0))
    clearance = line.origin[:, 2, None] + s * line.direction[:, 2, None] - ground.triangles(s)[0]
    starts_inside = clearance[:, 0] <= 0.0
    distance = np.where(starts_inside[:, None], -clearance, clearance)
    k = np.argmax(distance <= 0.0, axis=1)
    row, before = np.arange(count), np.maximum(k - 1, 0)
    is_hit = distance[row, k] <= 0.0
    p, q, a, b = s[row, before], s[row, k], distance[row, before], distance[row, k]
    root = np.where(k > 0, p + (q - p) * (a / np.where(a > b, a - b, 1.0)), s[:, 0])
    middle = 0.5 * (s[row, np.maximum(k - 1, 0)] + s[row, np.maximum(k, 1)])
    slope = ground.triangles(middle[:, None])[1][:, 0]
    upwards = np.column_stack([-slope / np.asarray(spacing), np.ones(count)])
    enters_wall = starts_inside & (walls.enter >= line.start)
    hit_s = np.where(enters_wall, walls.enter, np.where(is_hit, root, np.where(starts_inside, walls.leave, np.inf)))
    face = np.where(enters_wall, walls.enter_face, walls.leave_face)
    normal = np.where((is_hit & ~enters_wall)[:, None], upwards, face_normals(face))
    return np.where(hits_box, hit_s, np.inf), normal
