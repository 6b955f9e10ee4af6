"""Live block diagram with boxes, lamps and values on the wires.

A list shows the ports and parameters of the selected block.
"""

from __future__ import annotations

from typing import Any

from gpusim.control.picture import Box
from gpusim.typing import Array
from gpusim.viewer.overlays.canvas import Box as Area
from gpusim.viewer.panel import theme, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.diagram_view import ON, DiagramView, words
from gpusim.viewer.panel.line_colors import LINES
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.panel.theme import Rgba

_FRAMES: dict[str, Rgba] = {
    "input": theme.GOOD,
    "signal": theme.ACCENT,
    "command": theme.WARN,
    "python": LINES[4],
    "port": theme.FAINT,
    "subsystem": theme.FAINT,
    "block": (0.70, 0.72, 0.76, 1.0),
}
"""Role of a box -> color of its frame."""
_TITLE, _SMALL = 10.5, 9.0
"""Text heights, diagram units."""
_MIN_LETTERS = 5.0
"""Minimum text height, pixels."""
_GAP = 60.0
"""Space for a value at a port, diagram units."""
_MAX_WIDTHS = 5000
_SIDE = 15.0
"""Width of the list for the selected block, in font sizes."""


def toggle(panel_state: PanelState) -> None:
    """Draw the button that opens and closes the diagram."""
    shown = panel_state.diagram_shown
    if widgets.button("Close diagram" if shown else "Diagram", widgets.wide(), theme.ACCENT if shown else None):
        panel_state.diagram_shown = not shown
    widgets.mark(panel_state.areas, "diagram")
    imgui.set_item_tooltip("the block diagram that sets commands, with the values on its wires")


def draw(panel_state: PanelState, view: DiagramView) -> None:
    """Draw the canvas. Right of the canvas, draw the ports and parameters of the selected block."""
    _head(panel_state, view)
    f = imgui.get_font_size()
    values = view.values(panel_state.world)
    box = view.picture.boxes.get(view.picked)
    side = _SIDE * f if box is not None else 0.0
    room = imgui.get_content_region_avail()
    _canvas(panel_state, view, values, max(room.x - side, 1.0), max(room.y, 1.0))
    if box is not None:
        imgui.same_line(0.0, 0.5 * f)
        imgui.begin_child("picked")
        _picked(panel_state, view, box, values)
        imgui.end_child()


def _head(panel_state: PanelState, view: DiagramView) -> None:
    """Draw one button per diagram, and a button that scales the diagram to fit the canvas."""
    f = imgui.get_font_size()
    for label in view.labels:
        width = imgui.calc_text_size(label).x + 1.2 * f
        if widgets.button(label, width, theme.ACCENT if label == view.label else None):
            view.show(label)
        widgets.mark(panel_state.areas, f"diagram tab {label}")
        imgui.same_line()
    if widgets.button("Fit", 3.0 * f):
        view.zoom = 0.0
    widgets.mark(panel_state.areas, "diagram fit")
    imgui.set_item_tooltip("drag: move; wheel: zoom; click: ports and parameters of a block")


def _canvas(panel_state: PanelState, view: DiagramView, values: dict[str, Array], width: float, height: float) -> None:
    at = imgui.get_cursor_screen_pos()
    imgui.invisible_button("##canvas", (width, height))
    widgets.mark(panel_state.areas, "diagram canvas")
    if view.zoom == 0.0:
        view.fit(width, height)
    view.bring_into_view(width)
    _mouse(view, at)
    pen = _Pen(view, at.x, at.y, width, height)
    pen.list.push_clip_rect((at.x, at.y), (at.x + width, at.y + height), True)
    boxes = view.picture.boxes.values()
    seen = [box for box in boxes if pen.is_visible((box.x, box.y), (box.x + box.width, box.y + box.height))]
    for box in seen:
        if box.role == "subsystem":
            pen.box(box)
    for wire in view.picture.wires:
        xs, ys = zip(*wire.points, strict=True)
        if not pen.is_visible((min(xs), min(ys)), (max(xs), max(ys))):
            continue
        on = wire.signal is not None and wire.signal in values
        pen.wire(list(wire.points), theme.FAINT if on else theme.LINE)
    for box in seen:
        if box.role != "subsystem":
            pen.box(box)
        (left, top), (right, bottom) = pen.at(box.x, box.y), pen.at(box.x + box.width, box.y + box.height)
        panel_state.areas[f"diagram block {box.path}"] = Area(left, top, right - left, bottom - top)
    for box in seen:
        pen.values(box, values)
    pen.list.pop_clip_rect()


def _mouse(view: DiagramView, at: Any) -> None:
    """Handle mouse input on the canvas: drag moves, wheel zooms, click selects a block."""
    io = imgui.get_io()
    x, y = io.mouse_pos.x - at.x, io.mouse_pos.y - at.y
    if imgui.is_item_hovered() and io.mouse_wheel:
        view.zoom_at(x, y, io.mouse_wheel)
    if imgui.is_item_active() and imgui.is_mouse_dragging(0):
        view.dragged = True
        view.move(io.mouse_delta.x, io.mouse_delta.y)
    if imgui.is_item_deactivated():
        if not view.dragged:
            view.pick(x, y)
        view.dragged = False


class _Pen:
    """Drawing helper that converts diagram coordinates to window coordinates."""

    def __init__(self, view: DiagramView, x: float, y: float, width: float, height: float) -> None:
        self.list: Any = imgui.get_window_draw_list()
        self._view, self._x, self._y = view, x + view.x, y + view.y
        self._low = (-view.x / view.zoom, -view.y / view.zoom)
        self._high = ((width - view.x) / view.zoom, (height - view.y) / view.zoom)
        self._font = imgui.get_font()

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the window coordinates of a diagram point."""
        return self._x + self._view.zoom * x, self._y + self._view.zoom * y

    def is_visible(self, low: tuple[float, float], high: tuple[float, float]) -> bool:
        """Return whether the rectangle between two corners is on the canvas."""
        (left, top), (right, bottom) = self._low, self._high
        return low[0] < right and high[0] + _GAP > left and low[1] - _GAP < bottom and high[1] > top

    def text(
        self, x: float, y: float, text: str, size: float, rgba: Rgba, align: float = 0.5, paper: bool = False
    ) -> None:
        """Draw text, vertically centered at y."""
        height = float(round(self._view.zoom * size))
        if height < _MIN_LETTERS or not text:
            return
        width = 0.0
        if align or paper:
            width = self._view.widths.get((text, height), 0.0)
            if not width:  # measuring a text is slower than drawing
                imgui.push_font(None, height)
                if len(self._view.widths) > _MAX_WIDTHS:  # texts of values change in every frame
                    self._view.widths.clear()
                width = self._view.widths[text, height] = imgui.calc_text_size(text).x
                imgui.pop_font()
        left, top = self.at(x, y)
        left, top = round(left - align * width), round(top - 0.5 * height)
        if paper:
            self.list.add_rect_filled(
                (left - 1.0, top), (left + width + 1.0, top + height), theme.color(theme.BAR, 0.85)
            )
        self.list.add_text(self._font, height, (left, top), theme.color(rgba), text)

    def box(self, box: Box) -> None:
        """Draw a box with its text and port names."""
        low, high = self.at(box.x, box.y), self.at(box.x + box.width, box.y + box.height)
        zoom, group = self._view.zoom, box.role == "subsystem"
        self.list.add_rect_filled(low, high, theme.color(theme.PAPER if group else theme.FIELD), 4.0 * zoom)
        picked = box.path == self._view.picked
        rgba = theme.TEXT if picked else _FRAMES[box.role]
        self.list.add_rect(low, high, theme.color(rgba), 4.0 * zoom, 2.0 if picked else 1.0)
        if group:
            self.text(box.x + 10.0, box.y + 11.0, box.name, _TITLE, theme.TEXT, 0.0)
        else:
            first = box.y + 0.5 * box.height - 6.5 * len(box.lines)
            self.text(box.text_x, first, box.name, _TITLE, theme.TEXT)
            for number, line in enumerate(box.lines, 1):
                rgba = theme.FAINT if number == 1 else theme.TEXT
                self.text(box.text_x, first + 13.0 * number, line, _SMALL, rgba)
        for output, names, dx in ((False, box.inputs, 5.0), (True, box.outputs, -5.0)):
            for name in names if group or len(names) > 1 else ():
                x, y = box.port(name, output)
                self.text(x + dx, y, name, _SMALL, theme.FAINT, 1.0 if output else 0.0)

    def wire(self, points: list[tuple[float, float]], rgba: Rgba) -> None:
        """Draw a wire with an arrowhead."""
        line, zoom = [self.at(*point) for point in points], self._view.zoom
        for k in range(0, len(line) - 1, 3):
            self.list.add_bezier_cubic(*line[k : k + 4], theme.color(rgba), max(1.0, 1.2 * zoom))
        x, y = line[-1]
        self.list.add_triangle_filled(
            (x, y), (x - 8.0 * zoom, y - 3.0 * zoom), (x - 8.0 * zoom, y + 3.0 * zoom), theme.color(rgba)
        )

    def values(self, box: Box, values: dict[str, Array]) -> None:
        """Draw the current values next to a box's outputs: numbers, or lamps for logic signals."""
        for port, signal in box.signals.items():
            value = values.get(signal)
            if value is None:
                continue
            x, y = box.port(port, True)
            if port in box.lamps:
                on, radius = bool(value[0] > ON), max(4.5 * self._view.zoom, 3.0)
                self.list.add_circle_filled(self.at(x, y), radius, theme.color(theme.GOOD if on else theme.BAR))
                self.list.add_circle(self.at(x, y), radius, theme.color(theme.GOOD if on else theme.FAINT))
                continue
            self.text(x + 3.0, y - 7.0, words(value), _SMALL, LINES[0], 0.0, paper=True)


def _picked(panel_state: PanelState, view: DiagramView, box: Box, values: dict[str, Array]) -> None:
    """Draw ports, values and parameter fields of the selected block."""
    widgets.heading(box.path, box.lines[0] if box.lines else "subsystem")
    for title, signals in (("inputs", view.inputs(box)), ("outputs", box.signals)):
        if signals:
            imgui.text_colored(theme.FAINT, title)
        for port, signal in signals.items():
            edge = imgui.get_cursor_pos().x + widgets.wide()
            imgui.text(widgets.clipped(port, 0.5 * widgets.wide()))
            value = words(values.get(signal)) if signal is not None else "open"
            widgets.right_text(value or "-", LINES[0] if value else theme.FAINT, edge)
    parameters = view.parameters(box)
    if parameters:
        imgui.text_colored(theme.FAINT, "parameters")
    for name, signal in parameters.items():
        _field(panel_state, view, name, signal)


def _field(panel_state: PanelState, view: DiagramView, name: str, signal: str) -> None:
    """Draw a number field."""
    imgui.align_text_to_frame_padding()
    full = widgets.wide()
    imgui.text(widgets.clipped(name, 0.5 * full))
    imgui.same_line(imgui.get_style().window_padding.x + 0.52 * full)
    imgui.set_next_item_width(-1.0)
    value = view.edited.get(signal, view.parameter(signal, panel_state.world))
    changed, value = imgui.input_double(f"##{signal}", value, 0.0, 0.0, "%.6g")
    widgets.mark(panel_state.areas, f"diagram parameter {name}")
    if changed:
        view.edited[signal] = value
    if imgui.is_item_deactivated_after_edit():
        view.write(signal)
    elif imgui.is_item_deactivated():
        view.edited.pop(signal, None)
