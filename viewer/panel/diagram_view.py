"""State of the block diagram view, without imgui: diagram, position, selected block, values on the wires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.control import Diagram
from gpusim.control.picture import Box, Picture, picture
from gpusim.typing import Array
from gpusim.viewer.window.sources import Live, Played

if TYPE_CHECKING:
    from gpusim.viewer.window.sources import Source

MIN_ZOOM, MAX_ZOOM = 0.15, 4.0
"""Range of the zoom, window pixels per diagram unit."""
ON = 0.5
"""A logic signal with a larger value is on."""


class DiagramView:
    """View of the diagrams of a running or replayed simulation.

    Args:
        source: simulation or recording of the session.

    Attributes:
        labels: labels of the diagrams.
        label: label of the displayed diagram, see :meth:`show`.
        zoom, x, y: pixels per diagram unit, and position of the diagram's upper left corner in the canvas.
        picked: path of the selected block, or empty.
        edited: signal -> number that the user has typed into the signal's field.
        dragged: True if the diagram has moved since the mouse button was pressed.
        widths: cache of text widths, by text and height in pixels.
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
        """Show another diagram, scaled to fit into the canvas."""
        self.label, self.zoom, self.picked = label, 0.0, ""

    @property
    def picture(self) -> Picture:
        """The diagram, with positions of boxes and wires."""
        if self.label not in self._pictures:
            self._pictures[self.label] = picture(self._diagrams[self.label])
        return self._pictures[self.label]

    def fit(self, width: float, height: float) -> None:
        """Fit and center the diagram in a canvas, with a zoom of at most 1.5."""
        whole = self.picture
        self.zoom = min(max(min(width / whole.width, height / whole.height), MIN_ZOOM), 1.5)
        self.x = 0.5 * (width - self.zoom * whole.width)
        self.y = 0.5 * (height - self.zoom * whole.height)

    def zoom_at(self, x: float, y: float, steps: float) -> None:
        """Zoom the diagram, and keep the canvas point (x, y) fixed."""
        zoom = min(max(self.zoom * 1.15**steps, MIN_ZOOM), MAX_ZOOM)
        self.x = x - (x - self.x) * zoom / self.zoom
        self.y = y - (y - self.y) * zoom / self.zoom
        self.zoom = zoom

    def move(self, dx: float, dy: float) -> None:
        """Move the diagram by pixels."""
        self.x, self.y = self.x + dx, self.y + dy

    def pick(self, x: float, y: float) -> None:
        """Select the innermost block at a canvas point. Without a block there, clear the selection."""
        at = (x - self.x) / self.zoom, (y - self.y) / self.zoom
        found = [box.path for box in self.picture.boxes.values() if box.holds(*at)]
        self.picked = found[-1] if found else ""
        self._fresh = True

    def bring_into_view(self, width: float) -> None:
        """Move the diagram if the list on the right hides the newly selected block."""
        box = self.picture.boxes.get(self.picked)
        if self._fresh and box is not None:
            over = self.x + self.zoom * (box.x + box.width) + 8.0 - width
            self.move(-max(over, 0.0), 0.0)
        self._fresh = False

    def values(self, world: int) -> dict[str, Array]:
        """Return the values on the wires in one world, as a dict: signal -> array (numbers,)."""
        if isinstance(self._source, Played):
            return {name: rows[world] for name, rows in self._source.player.read_signals().items()}
        running = [one for one in self._running() if one.program.label == self.label]
        found: dict[str, Array] = {}
        for one in running:
            row = np.asarray(self._source.sim.read_state()[one.name])[world]  # type: ignore[attr-defined]
            found |= {wire.name: row[list(wire.at)] for wire in one.program.wires}
        return found

    def inputs(self, box: Box) -> dict[str, str | None]:
        """Return the signals that drive the input ports of a box: port -> signal."""
        wires = {w.target[1]: w.signal for w in self.picture.wires if w.target[0] == box.path}
        return {port: wires.get(port) for port in box.inputs}

    def _running(self) -> list[Any]:
        if not isinstance(self._source, Live) or not self._source.sim.runtime.running:
            return []
        return self._source.sim.runtime.running

    def parameters(self, box: Box) -> dict[str, str]:
        """Return the tunable parameters of a block: parameter name -> signal."""
        start = f"diagram.{self.label}.{box.path.replace('/', '.')}."
        return {
            signal.removeprefix(start): signal
            for one in self._running()
            if one.program.label == self.label
            for signal in one.program.tuned
            if signal.startswith(start) and "." not in signal.removeprefix(start)
        }

    def parameter(self, signal: str, world: int) -> float:
        """Return the current value of a parameter."""
        return float(np.asarray(self._source.sim.read(signal, numpy=True))[world])  # type: ignore[attr-defined]

    def write(self, signal: str) -> None:
        """Write the edited number to a parameter in all worlds. Ignore a number that is not finite."""
        value = self.edited.pop(signal, float("nan"))
        if np.isfinite(value):
            self._source.sim.write(signal, value)  # type: ignore[attr-defined]


def words(value: Array | None) -> str:
    """Return a wire's value as short text."""
    if value is None:
        return ""
    if len(value) == 1:
        return f"{float(value[0]) + 0.0:.4g}"
    return ", ".join(f"{float(x) + 0.0:.3g}" for x in value) if len(value) <= 3 else f"{len(value)} numbers"
