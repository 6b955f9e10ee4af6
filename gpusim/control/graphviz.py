"""Layout by Graphviz's ``dot``, where it is installed (graphviz.org)."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from gpusim.control.layered import Edge, Node, Placed, Point

SECONDS = 60.0
"""Longest that it may take."""
_POINTS = 72.0
"""In an inch, in which dot wants sizes."""


def command() -> str:
    """Path of ``dot``; empty where it is not installed."""
    return shutil.which("dot") or ""


def place(nodes: list[Node], edges: list[Edge]) -> Placed | None:
    """Lay out boxes and wires; None where ``dot`` is not there or does not do it."""
    dot = command()
    if not dot or not nodes:
        return None
    try:
        done = subprocess.run(
            [dot, "-Tjson0"], input=_text(nodes, edges), capture_output=True, text=True, timeout=SECONDS, check=True
        )
        return _placed(nodes, edges, json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, IndexError):
        return None


def _text(nodes: list[Node], edges: list[Edge]) -> str:
    """The graph in dot's language: each box a table with a cell for each port."""
    lines = ["digraph d {", "rankdir=LR; nodesep=0.25; ranksep=0.5;", "node [shape=plain]; edge [arrowhead=none];"]
    for k, node in enumerate(nodes):
        sides = [_column("i", node, node.inputs), _column("o", node, node.outputs)]
        cells = "".join(f"<TD>{side}</TD>" for side in sides)
        table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{cells}</TR></TABLE>'
        lines.append(f"n{k} [label=<{table}>];")
    for pin, rank in ((-1, "source"), (1, "sink")):
        pinned = " ".join(f"n{k};" for k, node in enumerate(nodes) if node.pin == pin)
        lines.append(f"{{rank={rank}; {pinned}}}" if pinned else "")
    lines += [f'n{e.source}:o{e.out}:e -> n{e.target}:i{e.into}:w [id="{k}"];' for k, e in enumerate(edges)]
    return "\n".join([*lines, "}"])


def _column(letter: str, node: Node, count: int) -> str:
    """The cells of one side; as wide as half of the box."""
    rows = max(count, 1)
    size = f'FIXEDSIZE="TRUE" WIDTH="{0.5 * node.width:.0f}" HEIGHT="{node.height / rows:.0f}"'
    cells = "".join(f'<TR><TD PORT="{letter}{k}" {size}></TD></TR>' for k in range(rows))
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{cells}</TABLE>'


def _placed(nodes: list[Node], edges: list[Edge], made: Any) -> Placed:
    """What dot has found, its heights turned to go downwards; wires end at the very ports."""
    top = float(made["bb"].split(",")[3])
    middles: dict[str, Point] = {}
    for item in made["objects"]:
        if "pos" in item:
            x, y = (float(v) for v in item["pos"].split(","))
            middles[item["name"]] = x, top - y
    out = Placed(curved=True)
    for k, node in enumerate(nodes):
        x, y = middles[f"n{k}"]
        out.corners.append((x - 0.5 * node.width, y - 0.5 * node.height))
    found = {int(item["id"]): item for item in made.get("edges", ())}
    for number, edge in enumerate(edges):
        item = found[number]
        points = [tuple(float(v) for v in pair.split(",")) for pair in item["pos"].split()]
        route = [(p[0], top - p[1]) for p in points]
        a, b = nodes[edge.source], nodes[edge.target]
        (ax, ay), (bx, by) = out.corners[edge.source], out.corners[edge.target]
        route[0] = ax + a.width, ay + a.port(a.outputs, edge.out)
        route[-1] = bx, by + b.port(b.inputs, edge.into)
        out.routes.append(route)
    return _moved(nodes, out)


def _moved(nodes: list[Node], out: Placed) -> Placed:
    """With the upper left corner of all at zero."""
    points = [p for route in out.routes for p in route] + out.corners
    points += [(x + n.width, y + n.height) for (x, y), n in zip(out.corners, nodes, strict=True)]
    left, top = min(p[0] for p in points), min(p[1] for p in points)
    out.corners = [(x - left, y - top) for x, y in out.corners]
    out.routes = [[(x - left, y - top) for x, y in route] for route in out.routes]
    out.width, out.height = max(p[0] for p in points) - left, max(p[1] for p in points) - top
    return out
