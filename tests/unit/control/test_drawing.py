"""Drawings of diagrams: no boxes overlap, wires end at their ports, run past boxes, and do not lie upon each other."""

from __future__ import annotations

import itertools
import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gpusim import ModelError, UnknownNameError
from gpusim.control import Diagram, graphviz
from gpusim.control.drawing import COLORS, save_svg, svg
from gpusim.control.layered import Edge, Node, Placed, columns, place
from gpusim.control.picture import Picture, picture
from tests.message_snapshot import naming
from tests.unit.control.plants import everything
from tests.unit.control.test_diagrams import cart

Rect = tuple[float, float, float, float]
"""Left, top, right, bottom."""
OWN = pytest.param("own")
NO_DOT = pytest.mark.skipif(not graphviz.command(), reason="Graphviz is not installed; apt install graphviz")
DOT = pytest.param("dot", marks=NO_DOT)


def loops() -> Diagram:
    """A loop inside a loop, and one of a block with itself."""
    d = Diagram("loops")
    d.connect(d.add("input", "set"), d.add("sum", "error", signs="+--")["a"])
    d.connect("error", d.add("integrator", "speed")["in"])
    d.connect("speed", d.add("integrator", "place")["in"], "error.c")
    d.connect("place", "error.b", "command:push")
    d.connect(d.add("delay", "own"), "own")
    return d


def nested() -> Diagram:
    """Two axes, each a subsystem with a subsystem."""
    inner = Diagram("inner")
    inner.connect(inner.add("inlet", "x"), inner.add("gain", "twice", gain=2.0))
    inner.connect("twice", inner.add("outlet", "y"))
    axis = Diagram("axis")
    axis.connect(axis.add("inlet", "set"), axis.add("sum", "error", signs="+-")["a"])
    axis.connect(axis.add("inlet", "is"), "error.b")
    axis.connect("error", axis.add_subsystem("law", inner)["x"], axis.add("outlet", "error_out"))
    axis.connect("law.y", axis.add("outlet", "out"))
    d = Diagram("robot")
    for name in ("hip", "knee"):
        d.add_subsystem(name, axis)
        d.connect(d.add("input", f"{name}_set"), f"{name}.set")
        d.connect(f"signal:joint.{name}.position", f"{name}.is")
        d.connect(f"{name}.out", f"command:{name}")
    d.connect("hip.error_out", d.add("switch", "lamp")["on"], "lamp.b")
    d.connect("knee.error_out", "lamp.a")
    return d


def crosses(a: tuple[float, float], b: tuple[float, float], rect: Rect) -> bool:
    """Whether a horizontal or vertical line has a point inside a rectangle."""
    left, top, right, bottom = rect
    return (
        min(a[0], b[0]) < right and max(a[0], b[0]) > left and min(a[1], b[1]) < bottom and max(a[1], b[1]) > top
    )  # fmt: skip


def parts(route: list[tuple[float, float]]) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The straight parts of a wire."""
    return list(itertools.pairwise(route))


def upon_each_other(first: list, second: list) -> float:
    """Greatest length that straight parts of two wires share."""
    most = 0.0
    for (a, b), (c, d) in itertools.product(parts(first), parts(second)):
        for axis in (0, 1):
            flat = max(abs(p[axis] - a[axis]) for p in (b, c, d))
            if flat < 2.0:
                low, high = (sorted(pair) for pair in ((a[1 - axis], b[1 - axis]), (c[1 - axis], d[1 - axis])))
                most = max(most, min(low[1], high[1]) - max(low[0], high[0]))
    return most


def check_placed(nodes: list[Node], edges: list[Edge], made: Placed) -> float:
    """All that holds for a layout; the length of wires of different outputs that lie upon each other."""
    rects = [(x, y, x + n.width, y + n.height) for (x, y), n in zip(made.corners, nodes, strict=True)]
    for p, q in itertools.combinations(rects, 2):
        assert p[2] <= q[0] or q[2] <= p[0] or p[3] <= q[1] or q[3] <= p[1]
    for edge, route in zip(edges, made.routes, strict=True):
        a, b = nodes[edge.source], nodes[edge.target]
        begin = rects[edge.source][2], rects[edge.source][1] + a.port(a.outputs, edge.out)
        end = rects[edge.target][0], rects[edge.target][1] + b.port(b.inputs, edge.into)
        assert route[0] == pytest.approx(begin, abs=0.02) and route[-1] == pytest.approx(end, abs=0.02)
        for p, q in parts(route):
            assert p[0] == q[0] or p[1] == q[1], "all angles are right ones"
            assert not any(crosses(p, q, rect) for rect in rects)
            assert 0.0 <= min(p[0], q[0]) and max(p[0], q[0]) <= made.width and max(p[1], q[1]) <= made.height + 0.01
    nets = [(edge.source, edge.out) for edge in edges]
    pairs = itertools.combinations(zip(nets, made.routes, strict=True), 2)
    return max((upon_each_other(r, s) for (n, r), (m, s) in pairs if n != m), default=0.0)


def random_graph(seed: int, loops: bool) -> tuple[list[Node], list[Edge]]:
    """Boxes and wires as diagrams have them: an input has one wire at most."""
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


@pytest.mark.parametrize("with_loops", [False, True])
def test_layouts_of_random_boxes_are_clean(with_loops: bool) -> None:
    for seed in range(150):
        nodes, edges = random_graph(seed, with_loops)
        made = place(nodes, edges)
        assert check_placed(nodes, edges, made) < 0.5, seed
        assert made == place(nodes, edges)


def test_a_chain_is_one_straight_line() -> None:
    nodes = [Node(50.0, 30.0, 1, 1) for _ in range(6)]
    made = place(nodes, [Edge(k, 0, k + 1, 0) for k in range(5)])
    assert len({y for _, y in made.corners}) == 1
    assert all(len(route) == 2 for route in made.routes)


def test_wires_bend_little() -> None:
    """Steps up or down for each wire, over 150 random graphs; 1.34 where long wires spread them over all columns."""
    steps = wires = 0
    for seed in range(150):
        nodes, edges = random_graph(seed, seed % 2 == 1)
        made = place(nodes, edges)
        steps += sum(p[0] == q[0] for route in made.routes for p, q in parts(route))
        wires += len(edges)
    assert wires > 1000 and steps < 1.3 * wires


def test_crossings_are_undone() -> None:
    """Two columns of five in opposite orders: the second is turned round."""
    nodes = [Node(50.0, 30.0, 1, 1) for _ in range(10)]
    edges = [Edge(k, 0, 9 - k, 0) for k in range(5)]
    made = place(nodes, edges)
    assert all(len(route) == 2 for route in made.routes)


def test_loops_are_opened_where_one_comes_back() -> None:
    """Sum -> integrator -> gain -> sum: in that order from the input on, and the last wire goes back."""
    nodes = [Node(50.0, 30.0, 0, 1), Node(50.0, 30.0, 2, 1), Node(50.0, 30.0, 1, 1), Node(50.0, 30.0, 1, 1)]
    last = Edge(3, 0, 1, 1)
    found, back = columns(nodes, [Edge(0, 0, 1, 0), Edge(1, 0, 2, 0), Edge(2, 0, 3, 0), last])
    assert found == [0, 1, 2, 3] and back == {last}


def test_loops_are_opened_at_a_delay_where_that_takes_fewer_wires() -> None:
    """2 acts on 3 and 4, which act on the delay 1 by 5; 1 acts on 2. A walk from the source 0 comes in at 5 first."""
    nodes = [Node(50.0, 30.0, n, 1) for n in (0, 1, 1, 2, 2, 3)]
    inner = [Edge(0, 0, 5, 0), Edge(1, 0, 2, 0), Edge(2, 0, 3, 0), Edge(2, 0, 4, 0), Edge(3, 0, 5, 1), Edge(4, 0, 5, 2)]
    found, back = columns(nodes, [*inner, Edge(5, 0, 1, 0)])
    assert len(back) == 2
    delay = Edge(5, 0, 1, 0, waits=True)
    found, back = columns(nodes, [*inner, delay])
    assert back == {delay} and found == [2, 0, 1, 2, 2, 3]


def check_picture(found: Picture) -> None:
    """Boxes apart or one in the other; wires from port to port, past all boxes of their own level."""
    rects = {path: (b.x, b.y, b.x + b.width, b.y + b.height) for path, b in found.boxes.items()}
    for (name, p), (other, q) in itertools.combinations(rects.items(), 2):
        apart = p[2] <= q[0] or q[2] <= p[0] or p[3] <= q[1] or q[3] <= p[1]
        inside = p[0] < q[0] and p[1] < q[1] and q[2] < p[2] and q[3] < p[3]
        assert inside if other.startswith(f"{name}/") else apart, (name, other)
    for wire in found.wires:
        begin, end = found.boxes[wire.source[0]], found.boxes[wire.target[0]]
        assert wire.points[0] == pytest.approx(begin.port(wire.source[1], True), abs=0.02)
        assert wire.points[-1] == pytest.approx(end.port(wire.target[1], False), abs=0.02)
        for x, y in wire.points:
            assert 0.0 <= x <= found.width and 0.0 <= y <= found.height
        if not found.curved:
            above = {path for path in rects if wire.source[0].startswith(f"{path}/")}
            for p, q in parts(list(wire.points)):
                assert not [path for path in rects.keys() - above if crosses(p, q, rects[path])]


@pytest.mark.parametrize("engine", [OWN, DOT])
@pytest.mark.parametrize("make", [everything, loops, nested])
def test_pictures_of_diagrams_are_clean(make: object, engine: str) -> None:
    d: Diagram = make()  # type: ignore[operator]
    found = picture(d, engine)
    check_picture(found)
    assert found.curved == (engine == "dot")
    assert svg(d, engine) == svg(make(), engine)  # type: ignore[operator]


def test_wires_name_the_signals_that_the_simulation_has() -> None:
    """Also those of inlets, which have none of their own, and of subsystems."""
    d = nested()
    signals = {(w.source, w.target): w.signal for w in picture(d, "own").wires}
    assert signals[("hip/set", "out"), ("hip/error", "a")] == "diagram.robot.hip_set"
    assert signals[("hip/error", "out"), ("hip/law", "x")] == "diagram.robot.hip.error"
    assert signals[("hip/law/x", "out"), ("hip/law/twice", "in")] == "diagram.robot.hip.error"
    assert signals[("hip", "out"), ("hip_2", "in")] == "diagram.robot.hip.out"
    sim = cart([everything()])
    found = picture(everything(), "own")
    used = {w.signal for w in found.wires} | {s for box in found.boxes.values() for s in box.signals.values()}
    assert used == {w.name for w in sim.programs.running[0].program.wires}  # type: ignore[union-attr]


def test_svg_shows_names_kinds_parameters_and_colors() -> None:
    d = nested()
    d.add("gain", "a<b&c", gain=0.25)
    d.add("constant", "wide", value=list(range(20)))
    root = ET.fromstring(svg(d, "own"))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"hip", "hip_set", "law", "twice", "a<b&c", "0.25", "joint.hip.position", "+-", "20 values"} <= set(texts)
    fills = [r.get("fill") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    wanted = {"input": 2, "signal": 2, "command": 2, "subsystem": 4, "port": 12}
    for role, count in wanted.items():
        assert fills.count(COLORS[role][0]) == count, role
    arrows = list(root.iter("{http://www.w3.org/2000/svg}polygon"))
    assert len(arrows) == len(picture(d, "own").wires) == 23


def test_broken_diagrams_are_drawn_too(tmp_path: Path) -> None:
    """Whoever looks for a loop or an open port wants to see it."""
    d = Diagram("d")
    save_svg(d, tmp_path / "empty.svg")
    d.connect(d.add("gain", "a"), d.add("gain", "b"))
    d.connect("b", "a")
    d.add("sum", "open")
    save_svg(d, tmp_path / "d.svg", "own")
    assert ET.parse(tmp_path / "d.svg").getroot().get("width")
    with pytest.raises(ModelError, match=naming(".svg")):
        save_svg(d, tmp_path / "d.png")
    with pytest.raises(UnknownNameError, match=naming("'neato'")):
        svg(d, "neato")


def test_without_graphviz_the_own_layout_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.control.graphviz.shutil.which", lambda name: None)
    assert svg(loops()) == svg(loops(), "own")
    with pytest.raises(ModelError, match=naming("engine 'own'")):
        svg(loops(), "dot")


def test_a_graphviz_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.control.graphviz.shutil.which", lambda name: "/no/such/dot")
    assert svg(loops()) == svg(loops(), "own")
