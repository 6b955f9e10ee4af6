"""Rays of sensors, and the points at which the rays hit shapes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.compiler.ray_sensors import ray_sensors
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.panels import Row, add_panel

MAX_RAYS = 3000
"""Maximum number of drawn rays per sensor. For a sensor with more rays, only every second, third, ... ray is drawn."""
_COLORS = ((0.93, 0.20, 0.16), (0.10, 0.45, 0.92), (0.10, 0.62, 0.26), (0.80, 0.42, 0.04), (0.55, 0.25, 0.85))
"""Colors of sensors."""
_HIT, _MISSED = 0.55, 0.15
"""Opacities of rays with and without a hit."""


@register
class RaysOverlay(Overlay):
    """Rays of sensors. Rays that hit nothing are faint."""

    name: ClassVar[str] = "rays"
    key: ClassVar[str] = "y"
    description: ClassVar[str] = "rays of sensors, up to their hit points"
    needs_simulation: ClassVar[bool] = True

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the rays and a table of the sensors."""
        sensors = ray_sensors(frame.model)
        if frame.sim is None or not sensors:
            add_panel(canvas, "no simulation, no rays" if frame.sim is None else "no ray sensors, no rays", [])
            return
        rows, first = [], 0
        for number, (sensor, spec) in enumerate(sensors):
            count, color = len(spec.rays), _COLORS[number % len(_COLORS)]
            name = f"sensor.{sensor.label}"
            distance, shape, end = (
                frame.sim.read(name + what, numpy=True)[list(frame.worlds)] for what in ("", ".shape", ".point")
            )
            reported = f"{np.sum(shape >= 0)} of {shape.size}, {distance.min():.3g} m"
            rows.append(Row(sensor.label, reported, color))
            start = frame.sim.runtime.now.ray_lines(np.arange(first, first + count))[0][list(frame.worlds)]
            _draw(frame, canvas, start, end, shape >= 0, color)
            first += count
        add_panel(canvas, "rays: hits, shortest", rows)


def _draw(
    frame: Frame, canvas: Canvas, start: Array, end: Array, hit: Array, color: tuple[float, float, float]
) -> None:
    """Draw rays from ``start`` to ``end`` (worlds, n, 3), in m."""
    step, offsets = -(-hit.size // MAX_RAYS), frame.stage.offsets[:, None]
    start, end, hit = ((start + offsets)[:, ::step], (end + offsets)[:, ::step], hit[:, ::step])
    for chosen, opacity in ((~hit, _MISSED), (hit, _HIT)):
        if chosen.any():
            canvas.lines(start[chosen], end[chosen], (*color, opacity), 1.0)
    if hit.any():
        canvas.disks(end[hit], color, 4.0)
