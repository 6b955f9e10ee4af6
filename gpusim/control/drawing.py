"""SVG drawings of diagrams (w3.org/TR/SVG11)."""

from __future__ import annotations

import os
from html import escape

from gpusim.control.diagram import Diagram
from gpusim.control.layered import Point
from gpusim.control.picture import Box, WirePath, picture
from gpusim.output_files import atomic_file, check_output_file

COLORS: dict[str, tuple[str, str]] = {
    "input": ("#dcf1dc", "#2e7d32"),
    "signal": ("#e0ecf9", "#2f6ea5"),
    "command": ("#fde5cc", "#b8651b"),
    "port": ("#ececec", "#777777"),
    "python": ("#eee2f6", "#7b4397"),
    "subsystem": ("#fafafa", "#999999"),
    "block": ("#ffffff", "#333333"),
}
"""Fill and frame color of boxes by role."""
WIRE, TEXT, FAINT = "#444444", "#111111", "#666666"
ARROW = 6.0
SUFFIX = ".svg"
_FONT = "font-family='DejaVu Sans, Verdana, Arial, sans-serif'"


def svg(diagram: Diagram) -> str:
    """Return the SVG text of a diagram. The diagram may be incomplete or have loops. Equal diagrams give equal text."""
    found = picture(diagram)
    size = f"width='{found.width:.1f}' height='{found.height:.1f}' viewBox='0 0 {found.width:.1f} {found.height:.1f}'"
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} {_FONT}>",
        f"<title>{escape(found.label)}</title>",
        "<rect width='100%' height='100%' fill='#ffffff'/>",
    ]
    lines += [_frame(box) for box in found.boxes.values() if box.role == "subsystem"]
    lines += [_wire(wire) for wire in found.wires]
    lines += [_block(box) for box in found.boxes.values() if box.role != "subsystem"]
    return "\n".join([*lines, "</svg>", ""])


def save_svg(diagram: Diagram, path: str | os.PathLike[str]) -> None:
    """Write the drawing to a file. After an error, an existing file is unchanged.

    Raises:
        ModelError: the path does not end in .svg or cannot be written.
        OSError: the disk fails while writing.
    """
    target = check_output_file(path, (SUFFIX,), "drawing")
    text = svg(diagram)
    with atomic_file(target) as stream:
        stream.write(text.encode("utf-8"))


def _rect(box: Box, radius: float, more: str = "") -> str:
    fill, frame = COLORS[box.role]
    attributes = f"x='{box.x:.1f}' y='{box.y:.1f}' width='{box.width:.1f}' height='{box.height:.1f}' rx='{radius:g}'"
    return f"<rect {attributes} fill='{fill}' stroke='{frame}' stroke-width='1.2'{more}/>"


def _text(x: float, y: float, text: str, size: float, color: str, anchor: str = "middle", more: str = "") -> str:
    attributes = f"x='{x:.1f}' y='{y:.1f}' font-size='{size:g}' fill='{color}' text-anchor='{anchor}'{more}"
    return f"<text {attributes}>{escape(text, quote=False)}</text>"


def _frame(box: Box) -> str:
    """Draw the frame of a subsystem."""
    name = _text(box.x + 10.0, box.y + 15.0, box.name, 11.5, TEXT, "start", " font-weight='bold'")
    return "\n".join([_rect(box, 6.0, " stroke-dasharray='5 3'"), name, *_ports(box, True)])


def _block(box: Box) -> str:
    middle = box.text_x
    first = box.y + 0.5 * box.height - 0.5 * 13.0 * len(box.lines) + 4.0
    parts = [_rect(box, 4.0), _text(middle, first, box.name, 11.0, TEXT, more=" font-weight='bold'")]
    for number, line in enumerate(box.lines, 1):
        style = " font-style='italic'" if number == 1 else ""
        parts.append(_text(middle, first + 13.0 * number, line, 9.5, FAINT if number == 1 else TEXT, more=style))
    return "\n".join(parts + _ports(box, False))


def _ports(box: Box, always: bool) -> list[str]:
    """Draw the port names inside the box."""
    out = []
    for output, names, dx, anchor in ((False, box.inputs, 5.0, "start"), (True, box.outputs, -5.0, "end")):
        for name in names if always or len(names) > 1 else ():
            x, y = box.port(name, output)
            out.append(_text(x + dx, y + 3.0, name, 9.0, FAINT, anchor))
    return out


def _wire(wire: WirePath) -> str:
    """Draw a line and its arrow head."""
    (x0, y0), *rest = wire.points
    end = rest[-1]
    path = f"<path d='M{x0:.1f},{y0:.1f} C{_pairs(rest)}' fill='none' stroke='{WIRE}' stroke-width='1.2'/>"
    half = 0.5 * ARROW
    head = _pairs([end, (end[0] - 1.4 * ARROW, end[1] - half), (end[0] - 1.4 * ARROW, end[1] + half)])
    return f"{path}\n<polygon points='{head}' fill='{WIRE}'/>"


def _pairs(points: list[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
