from __future__ import annotations

import itertools
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gpusim import ModelError
from gpusim.control import Diagram
from gpusim.control.drawing import COLORS, save_svg, svg
from gpusim.control.layered import Edge, LayoutResult, Node, columns, lay_out
from gpusim.control.picture import Picture, picture
from tests.message_snapshot import naming
from tests.unit.control.plants import everything
from tests.unit.control.test_diagrams import cart

Rect = tuple[float, float, float, float]


def loops() -> Diagram:
    d = Diagram("loops")
    d.connect(d.add("input", "set"), d.add("sum", "error", signs="+--")["a"])
    d.connect("error", d.add("integrator", "speed")["in"])
    d.connect("speed", d.add("integrator", "place")["in"], "error.c")
    d.connect("place", "error.b", "command:push")
    d.connect(d.add("delay", "own"), "own")
    return d


def nested() -> Diagram:
    inner = Diagram("inner")
    inner.connect(inner.add("inport", "x"), inner.add("gain", "twice", gain=2.0))
    inner.connect("twice", inner.add("outport", "y"))
    axis = Diagram("axis")
    axis.connect(axis.add("inport", "set"), axis.add("sum", "error", signs="+-")["a"])
    axis.connect(axis.add("inport", "is"), "error.b")
    axis.connect("error", axis.add_subsystem("law", inner)["x"], axis.add("outport", "error_out"))
    axis.connect("law.y", axis.add("outport", "out"))
    d = Diagram("robot")
    for name in ("hip", "knee"):
        d.add_subsystem(name, axis)
        d.connect(d.add("input", f"{name}_set"), f"{name}.set")
        d.connect(f"signal:joint.{name}.position", f"{name}.is")
        d.connect(f"{name}.out", f"command:{name}")
    d.connect("hip.error_out", d.add("switch", "lamp")["on"], "lamp.b")
    d.connect("knee.error_out", "lamp.a")
    return d


def passed(route: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    out = [route[0]]
    for k in range(0, len(route) - 1, 3):
        for t in (0.1 * n for n in range(1, 11)):
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x, y = (sum(w * p[axis] for w, p in zip(weights, route[k : k + 4], strict=True)) for axis in (0, 1))
            out.append((x, y))
    return out


def inside(point: tuple[float, float], rect: Rect) -> bool:
    return rect[0] + 0.02 < point[0] < rect[2] - 0.02 and rect[1] + 0.02 < point[1] < rect[3] - 0.02


def upon_each_other(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> float:
    most = 0.0
    for (a, b), (c, d) in itertools.product(itertools.pairwise(first[::3]), itertools.pairwise(second[::3])):
        if max(abs(p[1] - a[1]) for p in (b, c, d)) < 2.0:
            most = max(most, min(max(a[0], b[0]), max(c[0], d[0])) - max(min(a[0], b[0]), min(c[0], d[0])))
    return most


def check_placed(nodes: list[Node], edges: list[Edge], made: LayoutResult) -> float:
    rects = [(x, y, x + n.width, y + n.height) for (x, y), n in zip(made.corners, nodes, strict=True)]
    for p, q in itertools.combinations(rects, 2):
        assert p[2] <= q[0] or q[2] <= p[0] or p[3] <= q[1] or q[3] <= p[1]
    for edge, route in zip(edges, made.routes, strict=True):
        a, b = nodes[edge.source], nodes[edge.target]
        begin = rects[edge.source][2], rects[edge.source][1] + a.port(a.outputs, edge.out)
        end = rects[edge.target][0], rects[edge.target][1] + b.port(b.inputs, edge.into)
        assert route[0] == pytest.approx(begin, abs=0.02) and route[-1] == pytest.approx(end, abs=0.02)
        assert len(route) % 3 == 1
        for point in passed(route):
            assert not any(inside(point, rect) for rect in rects)
            assert 0.0 <= point[0] <= made.width and 0.0 <= point[1] <= made.height + 0.01
    nets = [(edge.source, edge.out) for edge in edges]
    pairs = itertools.combinations(zip(nets, made.routes, strict=True), 2)
    return max((upon_each_other(r, s) for (n, r), (m, s) in pairs if n != m), default=0.0)


def random_graph(seed: int, loops: bool) -> tuple[list[Node], list[Edge]]:
    draw = random.Random(seed)
    count = draw.randint(2, 14)
    nodes = [Node(draw.uniform(40, 150), draw.uniform(30, 60), draw.randint(0, 3), draw.randint(0, 2))
             for _ in range(count)]  # fmt: skip
    edges = []
    for k, node in enumerate(nodes):
        for into in range(node.inputs):
            sources = [j for j in range(count if loops else k) if nodes[j].outputs]
            if sources and draw.random() < 0.9:
                source = draw.choice(sources)
                edges.append(Edge(source, draw.randrange(nodes[source].outputs), k, into))
    return nodes, edges


@pytest.mark.nightly
@pytest.mark.parametrize("with_loops", [False, True])
def test_layouts_of_random_boxes_are_clean(with_loops: bool) -> None:
    for seed in range(150):
        nodes, edges = random_graph(seed, with_loops)
        made = lay_out(nodes, edges)
        assert check_placed(nodes, edges, made) < 0.5, seed
        assert made == lay_out(nodes, edges)


def test_a_chain_is_one_straight_line() -> None:
    nodes = [Node(50.0, 30.0, 1, 1) for _ in range(6)]
    made = lay_out(nodes, [Edge(k, 0, k + 1, 0) for k in range(5)])
    assert len({y for _, y in made.corners}) == 1
    assert all(len({y for _, y in route}) == 1 for route in made.routes)


def test_crossings_are_undone() -> None:
    nodes = [Node(50.0, 30.0, 1, 1) for _ in range(10)]
    edges = [Edge(k, 0, 9 - k, 0) for k in range(5)]
    made = lay_out(nodes, edges)
    assert all(len({y for _, y in route}) == 1 for route in made.routes)


def test_loops_are_opened_where_one_comes_back() -> None:
    nodes = [Node(50.0, 30.0, 0, 1), Node(50.0, 30.0, 2, 1), Node(50.0, 30.0, 1, 1), Node(50.0, 30.0, 1, 1)]
    last = Edge(3, 0, 1, 1)
    found, back = columns(nodes, [Edge(0, 0, 1, 0), Edge(1, 0, 2, 0), Edge(2, 0, 3, 0), last])
    assert found == [0, 1, 2, 3] and back == {last}


def check_picture(found: Picture) -> None:
    rects = {path: (b.x, b.y, b.x + b.width, b.y + b.height) for path, b in found.boxes.items()}
    for (name, p), (other, q) in itertools.combinations(rects.items(), 2):
        apart = p[2] <= q[0] or q[2] <= p[0] or p[3] <= q[1] or q[3] <= p[1]
        within = p[0] < q[0] and p[1] < q[1] and q[2] < p[2] and q[3] < p[3]
        assert within if other.startswith(f"{name}/") else apart, (name, other)
    for wire in found.wires:
        begin, end = found.boxes[wire.source[0]], found.boxes[wire.target[0]]
        assert wire.points[0] == pytest.approx(begin.port(wire.source[1], True), abs=0.02)
        assert wire.points[-1] == pytest.approx(end.port(wire.target[1], False), abs=0.02)
        above = {path for path in rects if wire.source[0].startswith(f"{path}/")}
        for point in passed(wire.points):
            assert 0.0 <= point[0] <= found.width and 0.0 <= point[1] <= found.height
            assert not [path for path in rects.keys() - above if inside(point, rects[path])]


@pytest.mark.parametrize("make", [everything, loops, nested])
def test_pictures_of_diagrams_are_clean(make: Callable[[], Diagram]) -> None:
    check_picture(picture(make()))
    assert svg(make()) == svg(make())


def test_wires_name_the_signals_that_the_simulation_has() -> None:
    d = nested()
    signals = {(w.source, w.target): w.signal for w in picture(d).wires}
    assert signals[("hip/set", "out"), ("hip/error", "a")] == "diagram.robot.hip_set"
    assert signals[("hip/error", "out"), ("hip/law", "x")] == "diagram.robot.hip.error"
    assert signals[("hip/law/x", "out"), ("hip/law/twice", "in")] == "diagram.robot.hip.error"
    assert signals[("hip", "out"), ("hip_2", "in")] == "diagram.robot.hip.out"
    sim = cart([everything()])
    found = picture(everything())
    used = {w.signal for w in found.wires} | {s for box in found.boxes.values() for s in box.signals.values()}
    assert used == {w.name for w in sim.runtime.running[0].program.wires}  # type: ignore[union-attr]


def test_svg_shows_names_kinds_parameters_and_colors() -> None:
    d = nested()
    d.add("gain", "a<b&c", gain=0.25)
    d.add("constant", "wide", value=list(range(20)))
    root = ET.fromstring(svg(d))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"hip", "hip_set", "law", "twice", "a<b&c", "0.25", "joint.hip.position", "+-", "20 values"} <= set(texts)
    fills = [r.get("fill") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    wanted = {"input": 2, "signal": 2, "command": 2, "subsystem": 4, "port": 12}
    for role, count in wanted.items():
        assert fills.count(COLORS[role][0]) == count, role
    arrows = list(root.iter("{http://www.w3.org/2000/svg}polygon"))
    assert len(arrows) == len(picture(d).wires) == 23


def test_broken_diagrams_are_drawn_too(tmp_path: Path) -> None:
    d = Diagram("d")
    save_svg(d, tmp_path / "empty.svg")
    d.connect(d.add("gain", "a"), d.add("gain", "b"))
    d.connect("b", "a")
    d.add("sum", "open")
    save_svg(d, tmp_path / "d.svg")
    assert ET.parse(tmp_path / "d.svg").getroot().get("width")
    with pytest.raises(ModelError, match=naming(".svg")):
        save_svg(d, tmp_path / "d.png")
