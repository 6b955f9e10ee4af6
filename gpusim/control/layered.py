"""A layered layout of boxes and wires from left to right.

The layout follows Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures", IEEE
Transactions on SMC 11, 1981. The layout breaks loops and assigns the boxes to columns. Then it reserves lanes (gaps)
for long wires, and orders each column by barycenters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
from scipy.optimize import isotonic_regression

Point = tuple[float, float]
GAP, LANE, CHANNEL, BEND = 22.0, 11.0, 56.0, 30.0
"""Distances: between boxes in a column, between wires, and between columns. BEND is the bend size of leftward wires."""
SWEEPS = 12


@dataclass(frozen=True)
class Node:
    """Size and number of ports of a box."""

    width: float
    height: float
    inputs: int
    outputs: int
    pin: int = 0

    def port(self, count: int, number: int) -> float:
        """Return the distance from the box's upper edge to port ``number``, on a side with ``count`` ports."""
        return self.height * (number + 0.5) / count


@dataclass(frozen=True)
class Edge:
    """A wire from an output of one box to an input of another box. The fields are indices of boxes and ports."""

    source: int
    out: int
    target: int
    into: int


@dataclass
class LayoutResult:
    """Result of the layout: upper left corners of the boxes, points of each wire, and total size.

    A wire is a list of points: the first point, then three points per cubic Bezier curve.
    """

    corners: list[Point] = field(default_factory=list)
    routes: list[list[Point]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


Stop = tuple[int, float]
"""Point of a wire: index of a box or lane (gap for a wire), and offset below the middle of the box or lane."""


def lay_out(nodes: list[Node], edges: list[Edge]) -> LayoutResult:
    """Lay out boxes and wires. Equal inputs give equal layouts."""
    return _Layout(nodes, edges).result() if nodes else LayoutResult()


def columns(nodes: list[Node], edges: list[Edge]) -> tuple[list[int], set[Edge]]:
    """Return the column of each box, and the wires whose removal breaks all loops."""
    after: list[list[Edge]] = [[] for _ in nodes]
    fed = {edge.target for edge in edges}
    for edge in edges:
        after[edge.source].append(edge)
    back, order = _walk(after, sorted(range(len(nodes)), key=lambda k: (k in fed, k)))
    forward_edges = [[edge for edge in out if edge not in back] for out in after]
    layer = [0] * len(nodes)
    for k in reversed(order):
        for edge in forward_edges[k]:
            layer[edge.target] = max(layer[edge.target], layer[k] + 1)
    last = max(layer)
    for k, node in enumerate(nodes):
        if k not in fed and forward_edges[k] and node.pin >= 0:
            layer[k] = min(layer[edge.target] for edge in forward_edges[k]) - 1  # put a source next to its target
        if node.pin > 0 and not after[k]:
            layer[k] = last
    return layer, back


def _walk(after: list[list[Edge]], starts: list[int]) -> tuple[set[Edge], list[int]]:
    """Return the wires that close loops, and the boxes in post-order of a depth-first search."""
    back: set[Edge] = set()
    state, order = [0] * len(after), []
    for start in starts:
        stack = [] if state[start] else [(start, iter(after[start]))]
        state[start] = state[start] or 1
        while stack:
            k, remaining = stack[-1]
            edge = next(remaining, None)
            if edge is None:
                stack.pop()
                state[k] = 2
                order.append(k)
            elif state[edge.target] == 1:
                back.add(edge)
            elif state[edge.target] == 0:
                state[edge.target] = 1
                stack.append((edge.target, iter(after[edge.target])))
    return back, order


class _Layout:
    """State of the layout. An item is a box or a lane (gap for a wire), with column, height and vertical center."""

    def __init__(self, nodes: list[Node], edges: list[Edge]) -> None:
        self.nodes, self.edges = nodes, edges
        self.layer, self.back = columns(nodes, edges)
        self.heights = [node.height for node in nodes]
        self.lanes: dict[tuple[int, int, int, bool], int] = {}
        self.routes = [self._route(edge) for edge in edges]
        self.near: tuple[list[list[tuple[int, float, float]]], ...] = tuple([[] for _ in self.heights] for _ in "lr")
        """Left and right neighbors of each item: (neighbor, wire offset at the neighbor, wire offset at the item)."""
        links = {link: None for route in self.routes for link in pairwise(route)}
        for (a, ya), (b, yb) in links:
            if self.layer[a] > self.layer[b]:
                a, ya, b, yb = b, yb, a, ya
            if self.layer[a] < self.layer[b]:
                self.near[1][a].append((b, yb, ya))
                self.near[0][b].append((a, ya, yb))
        self.rows = [[k for k, at in enumerate(self.layer) if at == n] for n in range(max(self.layer) + 1)]
        self.rank, self.y = [0.0] * len(self.heights), [0.0] * len(self.heights)

    def _route(self, edge: Edge) -> list[Stop]:
        """Return the route of a wire: start, one lane (gap) in each column that the wire crosses, and end."""
        a, b, back = self.nodes[edge.source], self.nodes[edge.target], edge in self.back
        s, t = self.layer[edge.source], self.layer[edge.target]
        between = []
        for column in range(s, t - 1, -1) if back else range(s + 1, t):
            key = (edge.source, edge.out, column, back)
            if key not in self.lanes:
                self.lanes[key] = len(self.heights)
                self.heights.append(0.0)
                self.layer.append(column)
            between.append((self.lanes[key], 0.0))
        begin = edge.source, a.port(a.outputs, edge.out) - 0.5 * a.height
        return [begin, *between, (edge.target, b.port(b.inputs, edge.into) - 0.5 * b.height)]

    def _order(self) -> None:
        """Reorder the items of each column by the mean position of their left or right neighbors."""
        self._number()
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(2 * SWEEPS if fewest else 0):
            side = sweep % 2
            for row in self.rows[::-1] if side else self.rows:
                means = {k: self._mean(side, k) for k in row}
                row.sort(key=lambda k: (means[k], self.rank[k]))  # noqa: B023
                self._number(row)
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _number(self, row: list[int] | None = None) -> None:
        for one in self.rows if row is None else [row]:
            for position, k in enumerate(one):
                self.rank[k] = float(position)

    def _port_rank(self, k: int, y: float) -> float:
        return self.rank[k] + y / (self.heights[k] + 1.0)

    def _mean(self, side: int, k: int) -> float:
        found = [self._port_rank(o, y) - 0.1 * own / (self.heights[k] + 1.0) for o, y, own in self.near[side][k]]
        return sum(found) / len(found) if found else self.rank[k]

    def _crossings(self) -> int:
        total = 0
        for row in self.rows:
            pairs = [(self._port_rank(k, own), self._port_rank(o, y)) for k in row for o, y, own in self.near[1][k]]
            ends = np.array(sorted(pairs)).reshape(-1, 2)
            first, second = ends[:, 0], ends[:, 1]
            total += int(((first[:, None] < first) & (second[:, None] > second)).sum())
        return total

    def _level(self) -> None:
        """Compute the vertical positions of all items. Keep the order, and make the wires as straight as possible."""
        for sweep in range(2 * SWEEPS):
            sides = (0, 1) if sweep >= SWEEPS else (sweep % 2,)
            for row in self.rows[::-1] if sweep % 2 else self.rows:
                self._level_row(row, sides)
        top = min(y - 0.5 * height for y, height in zip(self.y, self.heights, strict=True))
        self.y = [round(y - top, 2) for y in self.y]

    def _level_row(self, row: list[int], sides: tuple[int, ...]) -> None:
        """Move the items of a column to minimize the squared vertical distances to their neighbors."""
        half_heights = [0.5 * (self.heights[a] + self.heights[b]) for a, b in pairwise(row)]
        gaps = [GAP if max(pair) < len(self.nodes) else LANE for pair in pairwise(row)]
        offsets = np.array([0.0, *accumulate(a + b for a, b in zip(half_heights, gaps, strict=True))])
        found = [[self.y[o] + y - own for side in sides for o, y, own in self.near[side][k]] for k in row]
        targets = [sum(f) / len(f) if f else self.y[k] for f, k in zip(found, row, strict=True)]
        weights = [len(f) or 0.05 for f in found]
        levels = isotonic_regression(np.array(targets) - offsets, weights=weights).x + offsets
        for k, level in zip(row, levels, strict=True):
            self.y[k] = float(level)

    def result(self) -> LayoutResult:
        """Compute the whole layout."""
        self._order()
        self._level()
        boxes = range(len(self.nodes))
        widths = [max((self.nodes[k].width for k in row if k in boxes), default=0.0) for row in self.rows]
        margin = BEND if self.back else 0.0
        lefts = list(accumulate((width + CHANNEL for width in widths), initial=margin))
        out = LayoutResult(width=lefts[-1] - CHANNEL + margin)
        for k, node in enumerate(self.nodes):
            x = lefts[self.layer[k]] + 0.5 * (widths[self.layer[k]] - node.width)
            out.corners.append((x, self.y[k] - 0.5 * node.height))
        rights = [left + width for left, width in zip(lefts, widths, strict=False)]
        for edge, route in zip(self.edges, self.routes, strict=True):
            stops: list[Point] = []
            for number, (k, dy) in enumerate(route):
                xs = lefts[self.layer[k]], rights[self.layer[k]]
                if number == 0:
                    xs = out.corners[k][0] + self.nodes[k].width, xs[1]
                elif number == len(route) - 1:
                    xs = xs[0], out.corners[k][0]
                elif edge in self.back:
                    xs = xs[::-1]
                stops += [(x, round(self.y[k] + dy, 2)) for x in xs]
            out.routes.append(_curve(stops))
        out.height = max(y + 0.5 * height for y, height in zip(self.y, self.heights, strict=True))
        return out


def _curve(stops: list[Point]) -> list[Point]:
    """Connect points by horizontal lines, bends and U-shaped curves."""
    points, bulge = stops[:1], BEND
    for (x, y), (u, v) in pairwise(stops):
        if x != u:
            points += [(0.5 * (x + u), y), (0.5 * (x + u), v), (u, v)]
        elif y != v:
            points += [(x + bulge, y), (x + bulge, v), (u, v)]
            bulge = -bulge
    return points
