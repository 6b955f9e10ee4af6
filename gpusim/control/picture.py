"""Layout of a diagram as boxes and wires, for SVG drawings (drawing.py) and the viewer's panel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from gpusim.control import layered
from gpusim.control.block import Block
from gpusim.control.blocks.logic import Logic, StateMachine
from gpusim.control.blocks.sources import Input
from gpusim.control.diagram import Diagram, Subsystem
from gpusim.control.flat import SEPARATOR, Port
from gpusim.control.layered import Edge, LayoutResult, Node, Point

LETTER, LINE = 5.7, 13.0
"""Width of a letter in small text, and height of a text line (SVG user units)."""
TITLE = 6.9
"""Width of a letter in names (SVG user units)."""
PORT = 15.0
"""Height of a port."""
MARGIN, FRAME = 12.0, 20.0
"""Margin around the picture, and height of the header of a subsystem."""
MAX_LINES, MAX_LETTERS = 3, 26
"""Maximum number of parameter lines in a box, and maximum number of letters per line."""
ROLES = {"input": "input", "signal": "signal", "command": "command", "inport": "port", "outport": "port"}
"""Role of each block kind that has a special color."""


@dataclass(frozen=True)
class Box:
    """A block or a subsystem.

    Attributes:
        path: names of the enclosing subsystems and the block, such as "leg/pid".
        name: last name in the path.
        role: one of "input", "signal", "command", "port", "python", "subsystem" and "block".
        lines: lines of text with the block type and the parameters.
        x, y, width, height: position and size of the frame. y points downwards.
        inputs, outputs: names of the ports. Inputs are evenly spaced on the left side, outputs on the right side.
        signals: name of the simulation signal at each output, by port. Outputs without a signal are missing.
        lamps: outputs that are always 0 or 1. Pictures show these outputs as lamps.
    """

    path: str
    name: str
    role: str
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    signals: dict[str, str] = field(default_factory=dict)
    lamps: tuple[str, ...] = ()

    @property
    def text_x(self) -> float:
        """Horizontal center of the text, between the names of the ports."""
        return self.x + 0.5 * (self.width + label_room(self.inputs) - label_room(self.outputs))

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point is inside the box."""
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height

    def port(self, name: str, output: bool) -> Point:
        """Return the position of a port."""
        names = self.outputs if output else self.inputs
        y = self.y + self.height * (names.index(name) + 0.5) / len(names)
        return self.x + (self.width if output else 0.0), y


@dataclass(frozen=True)
class WirePath:
    """A wire from an output to an input.

    Attributes:
        points: first point of the wire, then three points per cubic Bezier curve.
        signal: name of the signal on the wire, or None if the wire has no source.
    """

    source: Port
    target: Port
    points: tuple[Point, ...]
    signal: str | None


@dataclass
class Picture:
    """Layout of a whole diagram.

    Attributes:
        boxes: boxes by path. A subsystem comes before the boxes inside it.
    """

    label: str
    boxes: dict[str, Box] = field(default_factory=dict)
    wires: list[WirePath] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def picture(diagram: Diagram) -> Picture:
    """Lay out a diagram. The diagram may be incomplete or have loops."""
    inner = _lay_out(diagram, "", lambda port: None, diagram.label)
    out = Picture(diagram.label)
    _shift(inner, out, MARGIN, MARGIN)
    out.width, out.height = inner.width + 2.0 * MARGIN, inner.height + 2.0 * MARGIN
    return out


def _shift(inner: Picture, out: Picture, dx: float, dy: float) -> None:
    """Add the boxes and wires of ``inner`` to ``out``, shifted by (dx, dy)."""
    for path, box in inner.boxes.items():
        out.boxes[path] = replace(box, x=box.x + dx, y=box.y + dy)
    for wire in inner.wires:
        out.wires.append(replace(wire, points=tuple((x + dx, y + dy) for x, y in wire.points)))


def _lay_out(diagram: Diagram, prefix: str, outer: Callable[[str], str | None], label: str) -> Picture:
    """Lay out a diagram and all its subsystems."""

    def signal_of(port: Port) -> str | None:
        """Return the name of the signal at an output of a block or subsystem."""
        found = diagram.blocks[port[0]]
        path = prefix + port[0]
        if isinstance(found, Subsystem):
            return _signal(label, path + SEPARATOR + port[1], "out")
        return outer(port[0]) if found.kind == "inport" and prefix else _signal(label, path, port[1])

    def signals_at(name: str) -> Callable[[str], str | None]:
        def inner(port: str) -> str | None:
            source = diagram.wires.get((name, port))
            return None if source is None else signal_of(source)

        return inner

    boxes, inside, nodes = [], {}, []
    for name, found in diagram.blocks.items():
        path = prefix + name
        inputs, outputs = diagram.ports(name)
        if isinstance(found, Subsystem):
            inside[path] = _lay_out(found.diagram, path + SEPARATOR, signals_at(name), label)
        signals = {port: text for port in outputs if (text := signal_of((name, port))) is not None}
        box = _box(path, name, found, inputs, outputs, inside.get(path), signals)
        boxes.append(box)
        pin = {"inport": -1, "outport": 1}.get(getattr(found, "kind", ""), 0) if prefix else 0
        nodes.append(Node(box.width, box.height, len(inputs), len(outputs), pin))
    names = list(diagram.blocks)
    edges = [
        Edge(names.index(a), diagram.ports(a)[1].index(out), names.index(b), diagram.ports(b)[0].index(into))
        for (b, into), (a, out) in diagram.wires.items()
    ]
    return _compose(prefix, diagram, boxes, inside, layered.lay_out(nodes, edges), signal_of)


def _compose(
    prefix: str, diagram: Diagram, boxes: list[Box], inside: dict[str, Picture], layout: LayoutResult,
    signal_of: Callable[[Port], str | None],
) -> Picture:  # fmt: skip
    """Position the boxes and wires of one diagram. A subsystem is one box."""
    out = Picture(diagram.label, width=layout.width, height=layout.height)
    for box, (x, y) in zip(boxes, layout.corners, strict=True):
        out.boxes[box.path] = replace(box, x=x, y=y)
        if box.path in inside:
            inner = inside[box.path]
            _shift(inner, out, x + 0.5 * (box.width - inner.width), y + FRAME + 0.5 * MARGIN)
    for ((b, into), source), route in zip(diagram.wires.items(), layout.routes, strict=True):
        ends = (prefix + source[0], source[1]), (prefix + b, into)
        out.wires.append(WirePath(*ends, tuple(route), signal_of(source)))
    return out


def _signal(label: str, path: str, port: str) -> str:
    """Return the signal name of an output in the simulation."""
    return f"diagram.{label}.{path.replace(SEPARATOR, '.')}" + (f".{port}" if port != "out" else "")


def _box(
    path: str, name: str, found: Block | Subsystem, inputs: tuple[str, ...], outputs: tuple[str, ...],
    inner: Picture | None, signals: dict[str, str],
) -> Box:  # fmt: skip
    """Return a box with its size, at position (0, 0)."""
    left, right = label_room(inputs, inner is not None), label_room(outputs, inner is not None)
    tall = PORT * max(len(inputs), len(outputs))
    if inner is not None:
        width = max(inner.width + 2.0 * (max(left, right) + MARGIN), TITLE * len(name) + 2.0 * MARGIN)
        height = max(inner.height + FRAME + 1.5 * MARGIN, tall + 2.0 * FRAME)
        return Box(path, name, "subsystem", (), 0.0, 0.0, width, height, inputs, outputs, signals)
    assert isinstance(found, Block)
    lines = (found.kind, *parameter_lines(found))
    text = max(TITLE * len(name), LETTER * max(map(len, lines)))
    width = max(text + left + right + 14.0, 46.0)
    height = max(LINE * (len(lines) + 1) + 8.0, tall + 6.0)
    role = "python" if found.host else ROLES.get(found.kind, "block")
    return Box(path, name, role, lines, 0.0, 0.0, width, height, inputs, outputs, signals, _lamps(found))


def _lamps(found: Block) -> tuple[str, ...]:
    """Return the output ports of a block whose values are always 0 or 1."""
    if isinstance(found, StateMachine):
        return tuple(found.states)
    if isinstance(found, Logic) or (isinstance(found, Input) and found.switch):
        return tuple(found.outputs)
    return tuple(port for port in found.outputs if port == "done")


def label_room(ports: tuple[str, ...], always: bool = False) -> float:
    """Return the width of the port names on one side. The name of a single port is visible only with ``always``."""
    return LETTER * max(map(len, ports)) + 8.0 if len(ports) > 1 or (always and ports) else 0.0


def parameter_lines(found: Block) -> tuple[str, ...]:
    """Return lines of text with the main parameters and all non-default parameters."""
    main = _MAIN_PARAMETERS.get(found.kind, ())
    lines = [" ".join(shown(getattr(found, name)) for name in main)] if main else []
    for name, spec in found.parameters().items():
        value, default = getattr(found, name), spec.default
        if name in main or callable(value) or _same(value, default) or (not isinstance(value, str) and _empty(value)):
            continue
        word = f"{name} {shown(value)}"
        if lines and len(lines[-1]) + 2 + len(word) <= MAX_LETTERS:
            lines[-1] += f", {word}"
        else:
            lines.append(word)
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"{lines[MAX_LINES - 1]} …"]
    return tuple(line if len(line) <= MAX_LETTERS else line[: MAX_LETTERS - 1] + "…" for line in lines)


def _empty(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 0


_MAIN_PARAMETERS = {
    "constant": ("value",), "gain": ("gain",), "signal": ("signal",), "command": ("command",), "sum": ("signs",),
    "product": ("signs",), "division": ("signs",), "compare": ("sign", "value"), "logic": ("operation",),
    "expression": ("text",), "trigonometry": ("function",), "minmax": ("which",), "edge_detector": ("which",),
}  # fmt: skip
"""Main parameters by kind of block. Boxes always show these parameters, without names."""


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # arrays
        return False


def shown(value: Any) -> str:
    """Return a short text for a value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.5g}"
    if isinstance(value, str) or value is None:
        return str(value)
    listed = [shown(v) for v in value]
    text = f"[{', '.join(listed)}]"
    return text if len(text) <= MAX_LETTERS - 6 else f"{len(listed)} values"
