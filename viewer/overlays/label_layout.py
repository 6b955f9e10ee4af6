"""Placement of labels next to points, without overlaps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.overlays.canvas import Box

_DIRECTIONS = ((1, -1), (-1, -1), (1, 1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
"""Directions (right, down) from the anchor to a label. The label uses the first direction with free space."""
_RINGS = (0.35, 1.3, 2.6, 4.2)
"""Distances from the anchor to a label, in label heights. Small distances are tried first."""
_CELL = 64


def arrange_boxes(anchors: Array, sizes: Array, width: int, height: int, taken: Sequence[Box] = ()) -> list[Box | None]:
    """Find free areas for labels. The first labels have priority.

    Args:
        anchors: (n, 2) pixels of the labeled points.
        sizes: (n, 2) widths and heights of the labels (pixels).
        width, height: size of the picture (pixels).
        taken: areas that labels must not cover.

    Returns:
        One box for each label, without overlaps. A label without free space near its point has None instead of a box.
    """
    occupied = _OccupiedCells()
    for box in taken:
        occupied.add(box)
    boxes: list[Box | None] = []
    for anchor, size in zip(np.asarray(anchors, dtype=float), np.asarray(sizes, dtype=float), strict=True):
        free = next((box for box in _candidates(anchor, size, width, height) if not occupied.overlaps(box)), None)
        if free is not None:
            occupied.add(free)
        boxes.append(free)
    return boxes


def _candidates(anchor: Array, size: Array, width: int, height: int) -> Iterator[Box]:
    w, h = float(size[0]), float(size[1])
    left, top = float(anchor[0]), float(anchor[1])
    for ring in _RINGS:
        gap = ring * h
        for right, down in _DIRECTIONS:
            x = round(left + right * gap - (0.5 * (1 - right)) * w)
            y = round(top + down * gap - (0.5 * (1 - down)) * h)
            if 0 <= x <= width - w and 0 <= y <= height - h:
                yield Box(x, y, w, h)


class _OccupiedCells:
    """Set of boxes, sorted into the cells of a grid for fast overlap tests."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Box]] = {}

    def add(self, box: Box) -> None:
        for cell in _cells(box):
            self._cells.setdefault(cell, []).append(box)

    def overlaps(self, box: Box) -> bool:
        return any(other.overlaps(box) for cell in _cells(box) for other in self._cells.get(cell, ()))


def _cells(box: Box) -> list[tuple[int, int]]:
    columns = range(math.floor(box.x / _CELL), math.floor((box.x + box.width) / _CELL) + 1)
    rows = range(math.floor(box.y / _CELL), math.floor((box.y + box.height) / _CELL) + 1)
    return [(column, row) for column in columns for row in rows]
