"""Text, computed without OpenGL: an atlas of DejaVu Sans glyphs, and the positions of letters in one line of text."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.typing import Array

_SMALLEST, _LARGEST = 9, 40
_WIDTH = 512
"""Width of an atlas, texels."""
_FIRST = "".join(map(chr, range(32, 127))) + "°·×²³µ"
_AROUND = ((1.0, (0, 1)), (1.0, (1, 0)), (0.75, (1, 1)))
"""Opacity of a letter's halo (outline) at the pixels next to the letter."""


def font_size(height: int) -> int:
    """Return the font size (pixels) for a picture that is ``height`` pixels high."""
    return int(np.clip(round(7.5 + height / 110.0), _SMALLEST, _LARGEST))


class GlyphAtlas:
    """Image with glyphs of one font size. The atlas adds glyphs at their first use.

    Args:
        size: font size (pixels).

    Attributes:
        ascent, descent: maximum height of letters above and below the base line (pixels).
        image: uint8 (height, 512, 2): coverage of each texel by letters, and coverage by the halos of letters.
        version: counter of the changes of ``image``.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._font = _font(size)
        self.ascent, self.descent = (int(n) for n in self._font.getmetrics())
        self._pad = 2
        self._cell = self.ascent + self.descent + 2 * self._pad
        self.image: Array = np.zeros((self._cell, _WIDTH, 2), dtype=np.uint8)
        self.version = 0
        self._glyphs: dict[str, tuple[int, int, int, int]] = {}
        self._next = (0, 0)
        self._add(_FIRST)

    @property
    def line_height(self) -> int:
        """Distance from one base line to the next (pixels)."""
        return self.ascent + self.descent

    def width(self, text: str) -> int:
        """Return the length of a line of text (pixels)."""
        self._add(text)
        return sum(self._glyphs[letter][3] for letter in text)

    def letters(self, text: str) -> Array:
        """Return the rectangles of n letters in a line, int (n, 6), in pixels.

        Columns 0 to 3 are x, y, width and height. The origin is the start of the base line, and y points down. Columns
        4 and 5 are x and y of the upper left corner in the atlas. Blanks have no rectangle.
        """
        self._add(text)
        rows, x = [], 0
        for letter in text:
            u, v, width, advance = self._glyphs[letter]
            if letter != " ":
                rows.append((x - self._pad, -self.ascent - self._pad, width, self._cell, u, v))
            x += advance
        return np.array(rows, dtype=np.int32).reshape(-1, 6)

    def _add(self, text: str) -> None:
        new = [letter for letter in dict.fromkeys(text) if letter not in self._glyphs]
        for letter in new:
            self._bake(letter)
        self.version += bool(new)

    def _bake(self, letter: str) -> None:
        from PIL import Image, ImageDraw

        advance = round(self._font.getlength(letter))
        # italic letters are wider than the distance to the next letter
        width = max(advance, int(self._font.getbbox(letter, anchor="ls")[2])) + 2 * self._pad
        cell = Image.new("L", (width, self._cell))
        ImageDraw.Draw(cell).text((self._pad, self._pad + self.ascent), letter, 255, font=self._font, anchor="ls")
        u, v = self._room(width)
        ink = np.asarray(cell)
        self.image[v : v + self._cell, u : u + width, 0] = ink
        self.image[v : v + self._cell, u : u + width, 1] = _halo(ink)
        self._glyphs[letter] = (u, v, width, advance)

    def _room(self, width: int) -> tuple[int, int]:
        """Reserve space for a glyph in the atlas."""
        u, v = self._next
        if u + width > _WIDTH:
            u, v = 0, v + self._cell
        if v + self._cell > len(self.image):
            self.image = np.concatenate([self.image, np.zeros_like(self.image)])
        self._next = (u + width, v)
        return u, v


@lru_cache(maxsize=8)
def atlas(size: int) -> GlyphAtlas:
    """Return the shared atlas of glyphs for a font size."""
    return GlyphAtlas(size)


def _font(size: int) -> Any:
    import matplotlib
    from PIL import ImageFont  # comes with matplotlib

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


def _halo(ink: Array) -> Array:
    """Return the pixel coverage of a letter's halo, which is the letter widened by one pixel on all sides."""
    padded = np.pad(ink.astype(float), 1)
    halo = ink.astype(float)
    rows, columns = ink.shape
    for strength, (x, y) in _AROUND:
        for dx, dy in {(x, y), (-x, y), (x, -y), (-x, -y)}:
            halo = np.maximum(halo, strength * padded[1 + dy : 1 + dy + rows, 1 + dx : 1 + dx + columns])
    return np.minimum(halo, 255.0).astype(np.uint8)
