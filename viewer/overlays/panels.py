"""Boxes with rows of text, for legends and tables in the corners of a picture."""

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
        text: text on the left.
        value: text on the right.
        color: color of a spot before the text, or None for no spot.
    """

    text: str
    value: str = ""
    color: Color | None = None


def add_panel(canvas: Canvas, title: str, rows: Sequence[Row], right: bool = False, low: bool = False) -> Box | None:
    """Add a table in a corner, below or next to existing tables. Long tables have several columns.

    If not all rows fit, the last row shows the number of missing rows. If no rows fit, the function adds no table.

    Args:
        canvas: canvas to draw on.
        title: first line, or empty for no title.
        rows: lines below the title.
        right, low: True selects the right or lower corner. By default, the table is in the upper left corner.

    Returns:
        The area that the table covers, or None if there is no table.
    """
    shown = len(rows)
    while True:
        some = [*rows[:shown], *([Row(f"{len(rows) - shown} more")] if shown < len(rows) else [])]
        table = _Table.of(canvas, title, some)
        box = _free_corner(canvas, table, right, low)
        if box is not None:
            canvas.taken.append(box)
            table.draw(canvas, title, box)
            return box
        if shown <= 1:
            return None
        shown = shown // 2 if shown > 8 else shown - 1


def has_room(canvas: Canvas, title: str, rows: Sequence[Row]) -> bool:
    """Return whether the picture has enough free space for a table with all rows."""
    return _free_corner(canvas, _Table.of(canvas, title, rows), False, False) is not None


@dataclass(frozen=True)
class _Table:
    """Table layout in columns.

    Attributes:
        parts: rows of the table, split into one list per column of the layout.
        widths: widths of the columns, pixels.
        inner: total width of the columns, pixels.
        head, line: height of the title and of a row, pixels.
        gap: margin and spacing, pixels.
    """

    parts: Sequence[Sequence[Row]]
    widths: Sequence[float]
    inner: float
    head: int
    line: int
    gap: int

    @classmethod
    def of(cls, canvas: Canvas, title: str, rows: Sequence[Row]) -> _Table:
        line, gap = canvas.atlas.line_height + 1, max(3, canvas.atlas.size // 3)
        head = line if title else 0
        deepest = max(1, int((canvas.height - 4 * gap - head) // line))
        columns = max(1, math.ceil(len(rows) / deepest))
        length = math.ceil(len(rows) / columns)
        parts = [rows[k * length : (k + 1) * length] for k in range(columns)]
        widths = [_column_width(canvas, part) for part in parts]
        inner = max(sum(widths) + 3 * gap * (columns - 1), canvas.atlas.width(title))
        return cls(parts, [inner] if columns == 1 else widths, inner, head, line, gap)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height (pixels)."""
        return self.inner + 2 * self.gap, self.head + len(self.parts[0]) * self.line + 2 * self.gap

    def draw(self, canvas: Canvas, title: str, box: Box) -> None:
        canvas.rectangle(box, _SHEET)
        base, left = box.y + self.gap + canvas.atlas.ascent, box.x + self.gap
        if title:
            canvas.text(left, base, title, _QUIET)
        for part, width in zip(self.parts, self.widths, strict=True):
            for k, row in enumerate(part):
                _add_row(canvas, row, left, base + self.head + k * self.line, width)
            left += width + 3 * self.gap


def add_notes(canvas: Canvas, lines: Sequence[str]) -> None:
    """Add lines of text in the lower left corner."""
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


def _free_corner(canvas: Canvas, table: _Table, right: bool, low: bool) -> Box | None:
    """Return the free area for a table nearest to a corner, or None without enough free space."""
    (width, height), gap = table.size, table.gap
    x = float(gap)
    while x + width <= canvas.width - gap:
        y = float(gap)
        while y + height <= canvas.height - gap:
            top = canvas.height - y - height if low else y
            box = Box(canvas.width - x - width if right else x, top, width, height)
            hit = next((other for other in canvas.taken if other.overlaps(box)), None)
            if hit is None:
                return box
            y = (canvas.height - hit.y if low else hit.y + hit.height) + gap
        x += max(0.25 * width, 8.0)
    return None
