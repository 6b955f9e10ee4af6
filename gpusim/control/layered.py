"""A layered layout of boxes and wires, from left to right, with right angles, without a tool from outside.

As K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", IEEE Trans.
SMC 11 (1981): loops are opened, boxes go into columns, long wires get places of their own in the columns between, and
orders with few crossings are found by barycentres. Vertical parts of wires share the gaps between columns by tracks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Point = tuple[float, float]
GAP, LANE, TRACK, LEAST_CHANNEL = 22.0, 11.0, 9.0, 44.0
"""Between boxes above each other, between wires, between vertical parts of wires; of the space between two columns."""
NEAR = 5.0
"""Wires nearer than this look like one."""
SWEEPS = 12


@dataclass(frozen=True)
class Node:
    """A box: size, how many ports it has, and whether it stands in the first or last column (-1, 1; else 0)."""

    width: float
    height: float
    inputs: int
    outputs: int
    pin: int = 0

    def port(self, count: int, number: int) -> float:
        """Height of one of ``count`` ports of a side, below the upper edge."""
        return self.height * (number + 0.5) / count


@dataclass(frozen=True)
class Edge:
    """A wire from an output of a box to an input of one, by their numbers; ``waits``: it acts in the next sample."""

    source: int
    out: int
    target: int
    into: int
    waits: bool = False


@dataclass
class Placed:
    """Where all is: upper left corners of the boxes, points of each wire, places where wires part, size of the whole.

    ``curved``: points after the first come in threes, as those of cubic Bezier curves.
    """

    corners: list[Point] = field(default_factory=list)
    routes: list[list[Point]] = field(default_factory=list)
    dots: list[Point] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    curved: bool = False


@dataclass
class _Item:
    """A box, or the place of a wire in a column that it passes."""

    layer: int
    height: float
    node: int = -1
    y: float = 0.0
    """Of its middle."""


Net = tuple[int, int]
"""All wires from one output."""
Ends = tuple[list[float], list[float]]
"""Heights at the left and at the right side of a gap."""
Rise = tuple[int, list[float], list[float]]
"""A vertical part: its track, and the heights of what joins it from the left and from the right."""
Part = tuple[Net, int]
"""One of the one or two vertical parts of a net."""


def place(nodes: list[Node], edges: list[Edge]) -> Placed:
    """Lay out boxes and wires; the same for the same input, always."""
    return _Layout(nodes, edges).placed() if nodes else Placed()


def columns(nodes: list[Node], edges: list[Edge]) -> tuple[list[int], set[Edge]]:
    """The column of each box, by the longest way to it; and the wires that go back, which open all loops.

    Of two ways to open them, where a walk from the sources comes back, or at inputs that wait for the next sample, the
    one with fewer and shorter wires back.
    """
    waiting = {edge for edge in edges if edge.waits and edge.source in _reached(edge.target, nodes, edges)}
    found = [_columns(nodes, edges, first) for first in (set(), waiting)]

    def cost(one: tuple[list[int], set[Edge]]) -> tuple[int, int]:
        layer, back = one
        return len(back), sum(layer[e.source] - layer[e.target] for e in back)

    return min(found, key=cost)


def _reached(start: int, nodes: list[Node], edges: list[Edge]) -> set[int]:
    """All that a box acts on, itself among it."""
    after: list[list[int]] = [[] for _ in nodes]
    for edge in edges:
        after[edge.source].append(edge.target)
    found, rest = {start}, [start]
    while rest:
        for node in after[rest.pop()]:
            if node not in found:
                found.add(node)
                rest.append(node)
    return found


def _columns(nodes: list[Node], edges: list[Edge], first: set[Edge]) -> tuple[list[int], set[Edge]]:
    """Columns where the wires ``first``, and those by which a walk along the others comes back, go back."""
    after: list[list[Edge]] = [[] for _ in nodes]
    before = [0] * len(nodes)
    for edge in edges:
        if edge not in first:
            after[edge.source].append(edge)
        before[edge.target] += 1
    back, order = _walk(after, sorted(range(len(nodes)), key=lambda n: (before[n] > 0, n)))
    back |= first
    layer = [0] * len(nodes)
    for node in reversed(order):
        for edge in after[node]:
            if edge not in back:
                layer[edge.target] = max(layer[edge.target], layer[node] + 1)
    last = max(layer)
    for k, node_ in enumerate(nodes):
        goals = [layer[e.target] - 1 for e in after[k] if e not in back]
        if before[k] == 0 and goals and node_.pin >= 0:
            layer[k] = min(goals)  # a source stands before what it feeds
        if node_.pin > 0 and not after[k]:
            layer[k] = last
    return layer, back


def _walk(after: list[list[Edge]], starts: list[int]) -> tuple[set[Edge], list[int]]:
    """Depth first: wires that come back to where the walk is, and the boxes in the order in which it leaves them."""
    back: set[Edge] = set()
    state, order = [0] * len(after), []
    for start in starts:
        if state[start]:
            continue
        state[start] = 1
        stack = [(start, iter(after[start]))]
        while stack:
            node, rest = stack[-1]
            way = next(rest, None)
            if way is None:
                stack.pop()
                state[node] = 2
                order.append(node)
            elif state[way.target] == 1:
                back.add(way)
            elif state[way.target] == 0:
                state[way.target] = 1
                stack.append((way.target, iter(after[way.target])))
    return back, order


class _Layout:
    """The work on one set of boxes."""

    def __init__(self, nodes: list[Node], edges: list[Edge]) -> None:
        self.nodes, self.edges = nodes, edges
        self.layer, self.back = columns(nodes, edges)
        self.items = [_Item(self.layer[k], node.height, k) for k, node in enumerate(nodes)]
        self.ahead: dict[tuple[Net, int], int] = {}
        self.behind: dict[tuple[Net, int], int] = {}
        self.links: list[tuple[int, float, int, float]] = []
        """Item on the left, how far below its middle, item on the right, how far below its middle."""
        self._add_lanes()
        self._add_links()
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for k, item in enumerate(self.items):
            self.rows[item.layer].append(k)

    # Places of long wires.

    def _add_lanes(self) -> None:
        for edge in self.edges:
            net, s, t = (edge.source, edge.out), self.layer[edge.source], self.layer[edge.target]
            lanes = self.behind if edge in self.back else self.ahead
            for layer in range(s, t - 1, -1) if edge in self.back else range(s + 1, t):
                if (net, layer) not in lanes:
                    lanes[net, layer] = len(self.items)
                    self.items.append(_Item(layer, 0.0))

    def _port_out(self, net: Net) -> tuple[int, float]:
        node = self.nodes[net[0]]
        return net[0], node.port(node.outputs, net[1]) - 0.5 * node.height

    def _port_in(self, edge: Edge) -> tuple[int, float]:
        node = self.nodes[edge.target]
        return edge.target, node.port(node.inputs, edge.into) - 0.5 * node.height

    def _add_links(self) -> None:
        found: dict[tuple[int, float, int, float], None] = {}
        for edge in self.edges:
            net, s, t = (edge.source, edge.out), self.layer[edge.source], self.layer[edge.target]
            if edge in self.back:
                steps = [(self.behind[net, k], 0.0) for k in range(t, s + 1)]
            else:
                steps = [self._port_out(net), *((self.ahead[net, k], 0.0) for k in range(s + 1, t))]
                steps.append(self._port_in(edge))
            found |= {(*a, *b): None for a, b in zip(steps, steps[1:], strict=False)}
        self.links = list(found)

    # Order in the columns.

    def _order(self) -> None:
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(2 * SWEEPS):
            ahead = sweep % 2 == 0
            for layer in range(1, len(self.rows)) if ahead else range(len(self.rows) - 2, -1, -1):
                self._sort_row(layer, ahead)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
            if fewest == 0:
                break
        self.rows = best

    def _places(self) -> dict[int, int]:
        return {item: place for row in self.rows for place, item in enumerate(row)}

    def _share(self, item: int, offset: float) -> float:
        """Of a port, within its box: breaks ties between ports of one box."""
        height = self.items[item].height
        return offset / (height + 1.0)

    def _sort_row(self, layer: int, ahead: bool) -> None:
        places, sums = self._places(), {item: [0.0, 0.0] for item in self.rows[layer]}
        for a, ya, b, yb in self.links:
            own, other, y, own_y = (b, a, ya, yb) if ahead else (a, b, yb, ya)
            if own in sums and self.items[other].layer == layer + (-1 if ahead else 1):
                sums[own][0] += places[other] + self._share(other, y) - 0.1 * self._share(own, own_y)
                sums[own][1] += 1.0
        self.rows[layer].sort(key=lambda k: (sums[k][0] / sums[k][1] if sums[k][1] else float(places[k]), places[k]))

    def _crossings(self) -> int:
        places = self._places()
        found: dict[int, list[tuple[float, float]]] = {}
        for a, ya, b, yb in self.links:
            pair = (places[a] + self._share(a, ya), places[b] + self._share(b, yb))
            found.setdefault(self.items[a].layer, []).append(pair)
        total = 0
        for pairs in found.values():
            pairs.sort()
            total += sum(q[1] < p[1] and q[0] > p[0] for k, p in enumerate(pairs) for q in pairs[k + 1 :])
        return total

    # Heights.

    def _apart(self, a: int, b: int) -> float:
        """Between the middles of neighbors in a column."""
        both = self.items[a].node >= 0 and self.items[b].node >= 0
        return 0.5 * (self.items[a].height + self.items[b].height) + (GAP if both else LANE)

    def _level(self) -> None:
        """Middles of all items, so that wires are straight where the order allows it."""
        for row in self.rows:
            y = 0.0
            for k, item in enumerate(row):
                y += self._apart(row[k - 1], item) if k else 0.5 * self.items[item].height
                self.items[item].y = y
        near: dict[int, list[tuple[int, float, bool]]] = {k: [] for k in range(len(self.items))}
        for a, ya, b, yb in self.links:
            near[b].append((a, ya - yb, True))
            near[a].append((b, yb - ya, False))
        count = len(self.rows)
        for sweep in range(SWEEPS):
            sides = (True, False) if sweep >= SWEEPS - 4 else (sweep % 2 == 0,)
            for layer in range(count) if sweep % 2 == 0 else range(count - 1, -1, -1):
                self._level_row(self.rows[layer], near, sides)
        for row in self.rows:
            self._level_row(row, near, (True,), boxes_stay=True)
        low = min(one.y - 0.5 * one.height for one in self.items)
        for one in self.items:
            one.y -= low

    def _level_row(
        self,
        row: list[int],
        near: dict[int, list[tuple[int, float, bool]]],
        sides: tuple[bool, ...],
        boxes_stay: bool = False,
    ) -> None:
        """Least squares of the wishes under the order: pool adjacent violators.

        ``boxes_stay``: wires alone move, each to where it was in the column before, so that it bends once.
        """
        wishes, offset = [], 0.0
        for k, item in enumerate(row):
            offset += self._apart(row[k - 1], item) if k else 0.0
            listed = [(other, dy) for other, dy, left in near[item] if left in sides]
            straight = [8.0 if self.items[item].node < 0 > self.items[o].node else 1.0 for o, _ in listed]
            weight = sum(straight)
            total = sum(w * (self.items[o].y + dy) for w, (o, dy) in zip(straight, listed, strict=True))
            wish, weight = (total / weight, weight) if listed else (self.items[item].y, 0.05)
            if boxes_stay and self.items[item].node >= 0:
                wish, weight = self.items[item].y, 1e6
            wishes.append((wish - offset, weight, offset))
        pools: list[list[float]] = []
        for wish, weight, _ in wishes:
            pools.append([wish, weight, 1.0])
            while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
                b, a = pools.pop(), pools.pop()
                pools.append([(a[0] * a[1] + b[0] * b[1]) / (a[1] + b[1]), a[1] + b[1], a[2] + b[2]])
        levels = [pool[0] for pool in pools for _ in range(int(pool[2]))]
        for item, level, (_, _, offset) in zip(row, levels, wishes, strict=True):
            self.items[item].y = level + offset

    # Wires.

    def placed(self) -> Placed:
        """All of it."""
        self._order()
        self._level()
        channels = self._channels()
        tracks = {k: _tracks(nets) for k, nets in channels.items()}
        count = len(self.rows)
        widths = [max((self.nodes[i].width for i in row if i < len(self.nodes)), default=0.0) for row in self.rows]
        starts: dict[int, float] = {}
        lefts, x = [], 0.0
        for layer in range(-1, count):
            if layer >= 0:
                lefts.append(x)
                x += widths[layer]
            used = max((rise[0] + 1 for rises in tracks.get(layer, {}).values() for rise in rises), default=0)
            inner = 0 <= layer < count - 1
            starts[layer] = x + TRACK * 1.5
            x += max(TRACK * (used + 2), LEAST_CHANNEL if inner else 0.0) if used or inner else 0.0
        out = Placed(width=x)
        for box in self.items[: len(self.nodes)]:
            room = widths[box.layer] - self.nodes[box.node].width
            out.corners.append((lefts[box.layer] + 0.5 * room, box.y - 0.5 * box.height))
        rises = {
            (k, net): [(starts[k] + TRACK * track, left, right) for track, left, right in found]
            for k, nets in tracks.items()
            for net, found in nets.items()
        }
        out.routes = [self._route(edge, out.corners, rises) for edge in self.edges]
        out.dots = [dot for found in rises.values() for rise in found for dot in _dots(*rise)]
        ends = [y for found in rises.values() for _, left, right in found for y in left + right]
        out.height = max([item.y + 0.5 * item.height for item in self.items] + ends)
        return out

    def _y(self, port: tuple[int, float]) -> float:
        return round(self.items[port[0]].y + port[1], 2)

    def _channels(self) -> dict[int, dict[Net, Ends]]:
        """By the column on its left, heights at which each net comes to a gap."""
        found: dict[int, dict[Net, Ends]] = {}

        def add(channel: int, net: Net, left: list[float], right: list[float]) -> None:
            known = found.setdefault(channel, {}).setdefault(net, ([], []))
            known[0].extend(y for y in left if y not in known[0])
            known[1].extend(y for y in right if y not in known[1])

        for edge in self.edges:
            net, s, t = (edge.source, edge.out), self.layer[edge.source], self.layer[edge.target]
            ys = self._heights(edge)
            if edge not in self.back:
                for k in range(s, t):
                    add(k, net, [ys[k - s]], [ys[k - s + 1]])
                continue
            add(s, net, [ys[0], ys[1]], [])
            for number, k in enumerate(range(s - 1, t - 1, -1), 1):
                add(k, net, [ys[number + 1]], [ys[number]])
            add(t - 1, net, [], [ys[-2], ys[-1]])
        return found

    def _heights(self, edge: Edge) -> list[float]:
        """Of a wire from its source to its target, column by column."""
        net, s, t = (edge.source, edge.out), self.layer[edge.source], self.layer[edge.target]
        if edge in self.back:
            between = [round(self.items[self.behind[net, k]].y, 2) for k in range(s, t - 1, -1)]
        else:
            between = [round(self.items[self.ahead[net, k]].y, 2) for k in range(s + 1, t)]
        return [self._y(self._port_out(net)), *between, self._y(self._port_in(edge))]

    def _route(
        self,
        edge: Edge,
        corners: list[Point],
        rises: dict[tuple[int, Net], list[tuple[float, list[float], list[float]]]],
    ) -> list[Point]:
        net, s, t = (edge.source, edge.out), self.layer[edge.source], self.layer[edge.target]
        ys, goes_back = self._heights(edge), edge in self.back
        order = range(s, t - 2, -1) if goes_back else range(s, t)
        points = [(corners[edge.source][0] + self.nodes[edge.source].width, ys[0])]
        for k, y, after in zip(order, ys, ys[1:], strict=False):
            if y == after:
                continue
            parts = rises[k, net]
            # a wire that goes back leaves its first gap, and comes to its last one, on the side of the box
            first = parts[-1] if goes_back and k < s else parts[0]
            last = parts[-1] if not goes_back or k == t - 1 else parts[0]
            points.append((first[0], y))
            if first is not last:
                middle = parts[0][2][0]
                points += [(first[0], middle), (last[0], middle)]
            points.append((last[0], after))
        points.append((corners[edge.target][0], ys[-1]))
        return points


def _tracks(nets: dict[Net, Ends]) -> dict[Net, list[Rise]]:
    """Vertical parts of the wires in one gap, on tracks so that different nets never lie upon each other there.

    A net that comes from the left at the height at which another one leaves to the right turns off before it; where
    that would go round in a circle, a net gets two vertical parts.
    """
    ends = {(net, 0): x for net, x in nets.items() if max(x[0] + x[1]) > min(x[0] + x[1])}
    out: dict[Part, int] = {}
    rest = sorted(ends, key=lambda part: (_wish(ends[part]), part))
    while rest:
        free = next((part for part in rest if not _before(part, ends) & set(rest)), None)
        if free is None and (whole := [part for part in rest if (part[0], 1) not in ends]):
            free = whole[0]
            left, right = ends[free]
            level = _level_between(left, right, [*nets.values(), *ends.values()])
            ends[free], ends[free[0], 1] = (left, [level]), ([level], right)
            rest.insert(rest.index(free) + 1, (free[0], 1))
        free = rest[0] if free is None else free
        rest.remove(free)
        out[free] = _track(free, ends, out)
    found: dict[Net, list[Rise]] = {}
    for part in sorted(out):
        found.setdefault(part[0], []).append((out[part], *ends[part]))
    return found


def _wish(ends: Ends) -> tuple[int, float]:
    """Falling wires from the lowest on, then rising ones from the highest on: such do not cross each other."""
    left, right = ends
    start, end = sum(left or right) / len(left or right), sum(right or left) / len(right or left)
    return (0, -start) if end >= start else (1, start)


def _before(part: Part, ends: dict[Part, Ends]) -> set[Part]:
    """What must turn off before it."""
    found = {
        other
        for other, (left, _) in ends.items()
        if other[0] != part[0] and any(abs(y - z) < NEAR for y in left for z in ends[part][1])
    }
    return found | {(part[0], 0)} if part[1] else found


def _track(part: Part, ends: dict[Part, Ends], out: dict[Part, int]) -> int:
    """The first track behind those that come before, where there is room."""
    track = max((out[other] + 1 for other in _before(part, ends) if other in out), default=0)
    low, high = min(ends[part][0] + ends[part][1]), max(ends[part][0] + ends[part][1])
    while any(
        t == track and low < max(ends[p][0] + ends[p][1]) + NEAR and min(ends[p][0] + ends[p][1]) < high + NEAR
        for p, t in out.items()
    ):
        track += 1
    return track


def _level_between(left: list[float], right: list[float], known: list[Ends]) -> float:
    """A height between both ends of a net, far from all that comes to the gap."""
    taken = [y for ends in known for y in ends[0] + ends[1]]
    start, end = min(left + right), max(left + right)
    choices = [start + (end - start) * k / 16.0 for k in range(1, 16)]
    return max(choices, key=lambda y: (round(min(abs(y - z) for z in taken), 6), -abs(y - 0.5 * (start + end))))


def _dots(x: float, left: list[float], right: list[float]) -> list[Point]:
    """Where a vertical part has three arms or more."""
    low, high = min(left + right), max(left + right)
    return [(x, y) for y in sorted({*left, *right}) if (y in left) + (y in right) + (y > low) + (y < high) > 2]
