"""Boxes with rows of text: legends and tables in the corners of a picture, and tags beside things."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.viewer.overlays.canvas import INK, PAPER, Box, Canvas, Color

_SHEET = (*PAPER, 0.80)
_QUIET = (0.34, 0.37, 0.41)


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        text: on the left.
        value: on the right.
        color: of a spot before the text; None for no spot.
    """

    text: str
    value: str = ""
    color: Color | None = None


def add_panel(canvas: Canvas, title: str, rows: Sequence[Row], right: bool = False, low: bool = False) -> Box:
    """A table in a corner, below or beside those that are there; long ones break into columns.

    Args:
        canvas: to draw on.
        title: first line; empty for none.
        rows: the others.
        right, low: which corner.

    Returns:
        What it covers.
    """
    line, gap = canvas.atlas.line_height + 1, max(3, canvas.atlas.size // 3)
    head = line if title else 0
    deepest = max(1, int((canvas.height - 4 * gap - head) // line))
    columns = max(1, math.ceil(len(rows) / deepest))
    length = math.ceil(len(rows) / columns)
    parts = [rows[k * length : (k + 1) * length] for k in range(columns)]
    widths = [_column_width(canvas, part) for part in parts]
    inner = max(sum(widths) + 3 * gap * (columns - 1), canvas.atlas.width(title))
    box = _free_corner(canvas, inner + 2 * gap, head + length * line + 2 * gap, gap, right, low)
    canvas.taken.append(box)
    canvas.rectangle(box, _SHEET)
    base = box.y + gap + canvas.atlas.ascent
    if title:
        canvas.text(box.x + gap, base, title, _QUIET)
    left = box.x + gap
    if columns == 1:
        widths = [inner]
    for part, width in zip(parts, widths, strict=True):
        for k, row in enumerate(part):
            _add_row(canvas, row, left, base + head + k * line, width)
        left += width + 3 * gap
    return box


def add_notes(canvas: Canvas, lines: Sequence[str]) -> None:
    """Plain lines in the lower left corner; nothing if there are none."""
    if lines:
        add_panel(canvas, "", [Row(text) for text in lines], low=True)


def _spot_width(canvas: Canvas) -> int:
    return canvas.atlas.ascent


def _column_width(canvas: Canvas, rows: Sequence[Row]) -> int:
    spots = _spot_width(canvas) if any(row.color is not None for row in rows) else 0
    text = max((canvas.atlas.width(row.text) for row in rows), default=0)
    value = max((canvas.atlas.width(row.value) for row in rows), default=0)
    return spots + text + (canvas.atlas.size if value else 0) + value


def _add_row(canvas: Canvas, row: Row, left: float, base: float, width: float) -> None:
    x = left
    if row.color is not None:
        wide = 0.72 * _spot_width(canvas)
        canvas.spot(x + 0.5 * wide, base - 0.36 * canvas.atlas.ascent, row.color, wide / canvas.unit)
        x += _spot_width(canvas)
    canvas.text(x, base, row.text, INK)
    canvas.text(left + width - canvas.atlas.width(row.value), base, row.value, INK)


def _free_corner(canvas: Canvas, width: float, height: float, gap: int, right: bool, low: bool) -> Box:
    """The place nearest to a corner, down or up a column and then in the next one, that meets no other box."""
    x = float(gap)
    while True:
        y = float(gap)
        while y + height <= canvas.height - gap:
            top = canvas.height - y - height if low else y
            box = Box(canvas.width - x - width if right else x, top, width, height)
            hit = next((other for other in canvas.taken if other.meets(box)), None)
            if hit is None:
                return box
            y = (canvas.height - hit.y if low else hit.y + hit.height) + gap
        x += max(0.25 * width, 8.0)
        if x + width > canvas.width:  # no room: over what is there
            return Box(canvas.width - gap - width if right else gap, float(gap), width, height)
