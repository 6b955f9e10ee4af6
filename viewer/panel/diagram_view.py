"""What the panel shows of block diagrams: which one, where, what is picked, and the values on the wires. No imgui."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.control import Diagram
from gpusim.control.picture import Box, Picture, picture
from gpusim.typing import Array
from gpusim.viewer.window.sources import Live, Played

if TYPE_CHECKING:
    from gpusim.viewer.window.sources import Source

LEAST, MOST = 0.15, 4.0
"""Pixels of the window for a point of the picture."""
ON = 0.5
"""A logic wire is on above it."""


class DiagramView:
    """The diagrams of what runs or is played.

    Args:
        source: of the session.

    Attributes:
        labels: of the diagrams.
        label: of the one that is shown; see :meth:`show`.
        zoom, x, y: pixels for a point of the picture, and where its upper left corner is in the canvas.
        picked: path of the block whose ports and parameters are listed; empty for none.
        edited: numbers that a person is typing, by signal.
        dragged: whether the mouse has moved the picture since its button went down.
        widths: of texts, by text and height in pixels, as far as they were asked for.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._diagrams = {d.label: d for d in source.model.diagrams if isinstance(d, Diagram)}
        self._pictures: dict[str, Picture] = {}
        self.labels = list(self._diagrams)
        self.label = self.labels[0] if self.labels else ""
        self.zoom, self.x, self.y = 0.0, 0.0, 0.0
        self.picked = ""
        self.edited: dict[str, float] = {}
        self.dragged = False
        self.widths: dict[tuple[str, float], float] = {}
        self._fresh = False

    def show(self, label: str) -> None:
        """Show another diagram, whole."""
        self.label, self.zoom, self.picked = label, 0.0, ""

    @property
    def picture(self) -> Picture:
        """The diagram with its places."""
        if self.label not in self._pictures:
            self._pictures[self.label] = picture(self._diagrams[self.label])
        return self._pictures[self.label]

    # Places.

    def fit(self, width: float, height: float) -> None:
        """Show all of it in a canvas of a size, in its middle; no larger than it is drawn."""
        whole = self.picture
        self.zoom = min(max(min(width / whole.width, height / whole.height), LEAST), 1.5)
        self.x = 0.5 * (width - self.zoom * whole.width)
        self.y = 0.5 * (height - self.zoom * whole.height)

    def zoom_at(self, x: float, y: float, steps: float) -> None:
        """Nearer or farther, with what lies under a point of the canvas staying there."""
        zoom = min(max(self.zoom * 1.15**steps, LEAST), MOST)
        self.x = x - (x - self.x) * zoom / self.zoom
        self.y = y - (y - self.y) * zoom / self.zoom
        self.zoom = zoom

    def move(self, dx: float, dy: float) -> None:
        """Shift the picture."""
        self.x, self.y = self.x + dx, self.y + dy

    def pick(self, x: float, y: float) -> None:
        """Choose the block at a point of the canvas, the innermost; none beside all."""
        at = (x - self.x) / self.zoom, (y - self.y) / self.zoom
        found = [box.path for box in self.picture.boxes.values() if box.holds(*at)]
        self.picked = found[-1] if found else ""
        self._fresh = True

    def bring_into_sight(self, width: float) -> None:
        """Move the picture so that a block that was just picked is not beyond the right edge, where its list is."""
        box = self.picture.boxes.get(self.picked)
        if self._fresh and box is not None:
            over = self.x + self.zoom * (box.x + box.width) + 8.0 - width
            self.move(-max(over, 0.0), 0.0)
        self._fresh = False

    # Values.

    def values(self, world: int) -> dict[str, Array]:
        """Of all wires in one world, by their signals, each (numbers,); empty where a recording has none."""
        if isinstance(self._source, Played):
            return {name: rows[world] for name, rows in self._source.player.read_signals().items()}
        running = [one for one in self._running() if one.program.label == self.label]
        found: dict[str, Array] = {}
        for one in running:
            row = np.asarray(self._source.sim.read_state()[one.name])[world]  # type: ignore[attr-defined]
            found |= {wire.name: row[list(wire.at)] for wire in one.program.wires}
        return found

    def inputs(self, box: Box) -> dict[str, str | None]:
        """What comes into a box: signals by port."""
        wires = {w.target[1]: w.signal for w in self.picture.wires if w.target[0] == box.path}
        return {port: wires.get(port) for port in box.inputs}

    def _running(self) -> list[Any]:
        if not isinstance(self._source, Live) or self._source.sim.programs is None:
            return []
        return self._source.sim.programs.running

    # Parameters.

    def parameters(self, box: Box) -> dict[str, str]:
        """Those of a block that may be written: signals by name. None where a recording is played."""
        start = f"diagram.{self.label}.{box.path.replace('/', '.')}."
        return {
            signal.removeprefix(start): signal
            for one in self._running()
            if one.program.label == self.label
            for signal in one.program.tuned
            if signal.startswith(start) and "." not in signal.removeprefix(start)
        }

    def parameter(self, signal: str, world: int) -> float:
        """Its present value."""
        return float(np.asarray(self._source.sim.read(signal, numpy=True))[world])  # type: ignore[attr-defined]

    def write(self, signal: str) -> None:
        """Give a parameter the number that was typed, in all worlds; what is not finite is passed over."""
        value = self.edited.pop(signal, float("nan"))
        if np.isfinite(value):
            self._source.sim.write(signal, value)  # type: ignore[attr-defined]


def words(value: Array | None) -> str:
    """A wire's value, short."""
    if value is None:
        return ""
    if len(value) == 1:
        return f"{float(value[0]) + 0.0:.4g}"
    return ", ".join(f"{float(x) + 0.0:.3g}" for x in value) if len(value) <= 3 else f"{len(value)} numbers"
