"""Chamber pressures of hydraulic cylinders, as bars."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.specs import WORLD, ActuatorSpec
from gpusim.stage.parts import com_of
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import INK, PAPER, Box, Canvas
from gpusim.viewer.overlays.label_layout import arrange_boxes
from gpusim.viewer.overlays.panels import add_panel

CHAMBERS = {"A": (0.90, 0.22, 0.12), "B": (0.10, 0.42, 0.88)}
_SIGNALS = ("pressure_a", "pressure_b", "tank_pressure", "supply_pressure")
_UNIT, _BAR = "bar", 1e5
_SHEET, _EMPTY = (*PAPER, 0.86), (0.80, 0.82, 0.84)
_QUIET = (0.40, 0.43, 0.47)
_TALL = 4.6
"""Height of a bar, in font sizes."""


def bar_fill(pressure: float, tank: float, supply: float) -> float:
    """Return the filled fraction of a bar: 0 at min(tank pressure, 0), and 1 at the supply pressure."""
    low = min(tank, 0.0)
    return float(np.clip((pressure - low) / max(supply - low, 1e-300), 0.0, 1.0))


@register
class PressureOverlay(Overlay):
    """Bar charts of the pressures in chambers A and B. A full bar shows the supply pressure."""

    name: ClassVar[str] = "pressure"
    key: ClassVar[str] = "p"
    description: ClassVar[str] = "chamber pressures of hydraulic cylinders, bar"
    needs_simulation: ClassVar[bool] = True
    floats: ClassVar[bool] = True

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the bars in free areas of the picture. A line connects each bar to the center of its cylinder."""
        cylinders = [actuator for actuator in frame.model.actuators if _has_chambers(actuator)]
        if not cylinders:
            add_panel(canvas, "no hydraulic cylinders", [])
            return
        middles = np.concatenate([_middles(frame, actuator) for actuator in cylinders])
        owners = [(actuator, world) for actuator in cylinders for world in range(frame.num_worlds)]
        pixel, inside = canvas.project(middles)
        shown = np.flatnonzero(inside)
        sizes = np.reshape([_sheet_size(canvas, owners[k][0].label) for k in shown], (-1, 2))
        boxes = arrange_boxes(pixel[shown], sizes, canvas.width, canvas.height, canvas.taken)
        values = {c.label: _values(frame, c) for c in cylinders}
        for k, box in zip(shown, boxes, strict=True):
            if box is None:
                continue
            canvas.taken.append(box)
            canvas.pointers(pixel[k], [box])
            actuator, world = owners[k]
            _draw_sheet(canvas, box, actuator.label, values[actuator.label][:, world])


def _has_chambers(actuator: ActuatorSpec) -> bool:
    kind = actuator_type(actuator.kind)
    return set(_SIGNALS) <= {*(reading.name for reading in kind.readings), *(number.name for number in kind.parameters)}


def _middles(frame: Frame, actuator: ActuatorSpec) -> Array:
    """Return the center of a cylinder in each drawn world, (worlds, 3), m, with the grid offset of the world."""
    p = actuator.params
    body = np.array([int(p["body_a"]), int(p["body_b"])])
    point = np.stack([p["point_a"] - com_of(frame.model, body[0]), p["point_b"] - com_of(frame.model, body[1])])
    body[body == WORLD] = len(frame.model.bodies)
    return np.asarray(frame.world_points(body, point).mean(axis=1))


def _values(frame: Frame, actuator: ActuatorSpec) -> Array:
    """Return four pressures in each drawn world, (4, worlds), Pa: chamber A, chamber B, tank, supply."""
    assert frame.sim is not None
    prefix = actuator_type(actuator.kind).prefix
    read = [frame.sim.read(f"{prefix}.{actuator.label}.{name}", numpy=True) for name in _SIGNALS]
    return np.asarray([np.broadcast_to(value, frame.sim.num_worlds)[list(frame.worlds)] for value in read])


def _sheet_size(canvas: Canvas, label: str) -> tuple[float, float]:
    letter = canvas.atlas
    width = max(letter.width(f"{label} {_UNIT}"), 2 * letter.width("000.0") + letter.size)
    return width + 8, (_TALL * letter.size) + 2 * letter.line_height + 8


def _draw_sheet(canvas: Canvas, box: Box, label: str, values: Array) -> None:
    letter, (tank, supply) = canvas.atlas, values[2:]
    canvas.rectangle(box, _SHEET)
    base = box.y + 2 + letter.ascent
    canvas.text(box.x + 4, base, label, INK)
    canvas.text(box.x + box.width - 4 - letter.width(_UNIT), base, _UNIT, _QUIET)
    tall, wide = _TALL * letter.size, float(round(1.3 * letter.size))
    top = box.y + letter.line_height + 4
    for k, (name, pressure) in enumerate(zip(CHAMBERS, values[:2], strict=True)):
        middle = round(box.x + (0.27 + 0.46 * k) * box.width)
        bar = Box(middle - 0.5 * wide, top, wide, tall)
        full = round(bar_fill(float(pressure), float(tank), float(supply)) * tall)
        canvas.rectangle(bar, _EMPTY)
        canvas.rectangle(Box(bar.x, top + tall - full, wide, full), CHAMBERS[name])
        x = middle - 0.5 * letter.width(name)
        canvas.text(x, top + letter.ascent + 1, name, INK, (*PAPER, 0.7))
        number = f"{pressure / _BAR:.1f}" if abs(pressure) < 1e3 * _BAR else f"{pressure / _BAR:.0f}"
        canvas.text(middle - 0.5 * letter.width(number), top + tall + letter.ascent + 2, number, INK)
