"""Canvas for overlays. Overlays draw lines, disks, arrows and areas in the scene, and boxes and text on the picture.

Widths are in units of :attr:`Canvas.unit`. Colors are sRGB from 0 to 1, with or without opacity. A color argument is
one color for all objects, or an array with one color per object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.gl.text import GlyphAtlas, atlas, font_size

Color: TypeAlias = tuple[float, ...] | Array

PIXELS, FLAT, DASHED, RIMMED = 1, 2, 4, 8
"""Bits of a stroke's ``style`` for picture coordinates, flat ends, a dashed line and a dark rim."""
STROKE = np.dtype([("a", "3f4"), ("b", "3f4"), ("radius", "2f4"), ("color", "4f4"), ("style", "f4")])
LETTER = np.dtype([("area", "4f4"), ("texel", "2f4"), ("color", "4f4"), ("halo", "4f4")])
AREA = np.dtype([("position", "3f4"), ("color", "4f4")])

INK = (0.09, 0.11, 0.13)
PAPER = (1.0, 1.0, 1.0)
_HEAD, _HEAD_WIDTH = 5.0, 3.4
"""Length and width of an arrow's head, relative to the width of the shaft."""
_LONGEST_HEAD = 0.6
"""Maximum length of an arrow's head, as a fraction of the arrow's length."""


@dataclass(frozen=True)
class Box:
    """Rectangle, relative to the upper left corner of a picture (pixels) or window (cursor units)."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point is inside the box."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    def overlaps(self, other: Box) -> bool:
        """Return whether two boxes overlap."""
        across = self.x < other.x + other.width and other.x < self.x + self.width
        return across and self.y < other.y + other.height and other.y < self.y + self.height


@dataclass
class _Layer:
    """List of strokes in drawing order."""

    strokes: list[Array] = field(default_factory=list)

    def all(self) -> Array:
        return np.concatenate([np.zeros(0, dtype=STROKE), *self.strokes])


class Canvas:
    """Collection of all lines, areas and texts that the overlays draw in one frame.

    Args:
        camera: camera of the frame.
        width, height: size of the picture (pixels).

    Attributes:
        unit: width of a thin line (pixels).
        atlas: glyphs for text.
        taken: areas of the picture that tables and labels already cover.
        wireframe: True to draw the edges of all meshes.
    """

    def __init__(self, camera: PinholeCamera, width: int, height: int) -> None:
        self.camera, self.width, self.height = camera, width, height
        self.unit = max(1.0, height / 540.0)
        self.atlas: GlyphAtlas = atlas(font_size(height))
        self.taken: list[Box] = []
        self.wireframe = False
        self._eye = np.array(camera.position)
        self._scene, self._top, self._picture = _Layer(), _Layer(), _Layer()
        self._letters: list[Array] = []
        self._areas: list[Array] = []

    def lines(self, a: Array, b: Array, color: Color, width: float = 1.6, *, top: bool = False, style: int = 0) -> None:
        """Draw lines between the points a and b (n, 3), in the world frame (m).

        Args:
            a, b: start and end points of the lines.
            color: one color for all lines, or an array (n, 3 or 4).
            width: line width, in units of :attr:`unit`.
            top: if True, draw over all bodies. If False, sections behind bodies are faint.
            style: DASHED, RIMMED, FLAT, or a sum of these constants.
        """
        self._stroke(self._top if top else self._scene, a, b, color, width, width, style)

    def disks(self, points: Array, color: Color, width: float | Array = 6.0, *, top: bool = False) -> None:
        """Draw disks with a rim at points (n, 3) in the world frame (m). ``width`` is one number, or an array (n,)."""
        layer = self._top if top else self._scene
        self._stroke(layer, points, points, color, width, width, RIMMED)

    def arrows(self, start: Array, end: Array, color: Color, width: float = 2.2, *, top: bool = False) -> None:
        """Draw arrows from start to end (n, 3), in the world frame (m). ``width`` is the shaft's width."""
        start, end = np.reshape(start, (-1, 3)), np.reshape(end, (-1, 3))
        layer = self._top if top else self._scene
        along = end - start
        length = np.linalg.norm(along, axis=1)
        head = np.minimum(_HEAD * width * self.unit / self.pixels_per_meter(end), _LONGEST_HEAD * length)
        neck = end - along * (head / np.maximum(length, 1e-300))[:, None]
        self._stroke(layer, start, neck, color, width, width, RIMMED)
        self._stroke(layer, neck, end, color, _HEAD_WIDTH * width, 0.0, FLAT | RIMMED)

    def area(self, corners: Array, color: Color) -> None:
        """Draw a convex area with corners (n, 3) in order, in the world frame (m)."""
        if len(corners) < 3:
            return
        count = len(corners) - 2
        fan = np.stack([np.zeros(count, dtype=int), np.arange(1, count + 1), np.arange(2, count + 2)], axis=1)
        area = np.zeros(3 * count, dtype=AREA)
        area["position"] = (np.asarray(corners) - self._eye)[fan.reshape(-1)]
        area["color"] = _with_opacity(color, 3 * count)
        self._areas.append(area)

    def pixels_per_meter(self, points: Array) -> Array:
        """Return the pixels per meter (n,) at each point, perpendicular to the view axis."""
        depth = self.camera.project(points, self.width, self.height)[1]
        rise = np.tan(0.5 * self.camera.field_of_view)
        return np.asarray(0.5 * self.height / (rise * np.maximum(depth, 1e-9)))

    def project(self, points: Array) -> tuple[Array, Array]:
        """Return the pixel coordinates (n, 2) of points, and a mask (n,) that is True for points in the picture."""
        pixel, depth = self.camera.project(points, self.width, self.height)
        inside = (depth > 0.0) & np.all((pixel >= 0.0) & (pixel <= [self.width, self.height]), axis=-1)
        return pixel, inside

    def rectangle(self, box: Box, color: Color) -> None:
        """Draw a filled rectangle."""
        middle = box.y + 0.5 * box.height
        a, b = [[box.x, middle, 0.0]], [[box.x + box.width, middle, 0.0]]
        self._stroke(self._picture, a, b, color, box.height / self.unit, box.height / self.unit, PIXELS | FLAT)

    def pointers(self, start: Array, boxes: Sequence[Box], color: Color = INK) -> None:
        """Draw a dot at each pixel ``start`` (n, 2), and a line from dot i to the nearest point of ``boxes[i]``."""
        start = np.reshape(np.asarray(start, dtype=float), (-1, 2))
        low = np.reshape([(box.x, box.y) for box in boxes], (-1, 2))
        end = np.clip(start, low, low + np.reshape([(box.width, box.height) for box in boxes], (-1, 2)))
        a, b = (np.concatenate([ends, np.zeros((len(ends), 1))], axis=1) for ends in (start, end))
        for wider, shown in ((1.6, (*PAPER, 0.9)), (0.0, color)):
            self._stroke(self._picture, a, b, shown, 1.0 + wider, 1.0 + wider, PIXELS)
            self._stroke(self._picture, a, a, shown, 4.0 + wider, 4.0 + wider, PIXELS)

    def spot(self, x: float, y: float, color: Color, width: float) -> None:
        """Draw a disk centered at a pixel. ``width`` is in units of :attr:`unit`."""
        self._stroke(self._picture, [[x, y, 0.0]], [[x, y, 0.0]], color, width, width, PIXELS)

    def text(self, x: float, y: float, text: str, color: Color = INK, halo: Color = (1.0, 1.0, 1.0, 0.0)) -> None:
        """Draw a line of text. The base line of the text starts at a pixel.

        Args:
            x, y: pixel at the start of the base line.
            text: text to draw.
            color: color of the letters.
            halo: color and opacity of the letters' outline, which is one pixel wide.
        """
        letter_boxes = self.atlas.letters(text)
        letters = np.zeros(len(letter_boxes), dtype=LETTER)
        letters["area"], letters["texel"] = letter_boxes[:, :4], letter_boxes[:, 4:]
        letters["area"][:, :2] += np.round([x, y])
        letters["color"] = _with_opacity(color, len(letter_boxes))
        letters["halo"] = _with_opacity(halo, len(letter_boxes))
        self._letters.append(letters)

    def scene_strokes(self) -> Array:
        """Return the strokes in the scene that may be behind bodies, dtype STROKE."""
        return self._scene.all()

    def top_strokes(self) -> Array:
        """Return the strokes in the scene that cover all bodies, dtype STROKE."""
        return self._top.all()

    def picture_strokes(self) -> Array:
        """Return the strokes in picture coordinates, dtype STROKE."""
        return self._picture.all()

    def letters(self) -> Array:
        """Return all letters, dtype LETTER."""
        return np.concatenate([np.zeros(0, dtype=LETTER), *self._letters])

    def areas(self) -> Array:
        """Return the corners of all areas, divided into triangles, dtype AREA."""
        return np.concatenate([np.zeros(0, dtype=AREA), *self._areas])

    def _stroke(
        self,
        layer: _Layer,
        a: Sequence[Sequence[float]] | Array,
        b: Sequence[Sequence[float]] | Array,
        color: Color,
        width_a: float | Array,
        width_b: float | Array,
        style: int,
    ) -> None:
        origin = np.zeros(3) if style & PIXELS else self._eye
        start, end = np.reshape(a, (-1, 3)) - origin, np.reshape(b, (-1, 3)) - origin
        strokes = np.zeros(len(start), dtype=STROKE)
        strokes["a"], strokes["b"] = start, end
        strokes["radius"][:, 0], strokes["radius"][:, 1] = (0.5 * self.unit * np.asarray(w) for w in (width_a, width_b))
        strokes["color"], strokes["style"] = _with_opacity(color, len(start)), style
        layer.strokes.append(strokes)


def _with_opacity(color: Color, count: int) -> Array:
    array = np.broadcast_to(np.asarray(color, dtype=float), (count, np.shape(color)[-1]))
    if array.shape[1] == 4:
        return array
    return np.concatenate([array, np.ones((count, 1))], axis=1)
