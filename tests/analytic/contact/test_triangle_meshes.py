from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Tire, Transform
from gpusim.typing import Array

pytestmark = pytest.mark.native
Mesh = tuple[Array, Array]
LYING = ((1, 0, 0), 0.5 * math.pi)
ROUGH, SMOOTH = Material(friction=0.5), Material(friction=0.0)


def patch(low: tuple[float, float], high: tuple[float, float], cells: tuple[int, int], shake: float = 0.0) -> Mesh:
    rng = np.random.default_rng(7)
    grid = np.meshgrid(*(np.linspace(*ends, n + 1) for ends, n in zip(zip(low, high, strict=True), cells, strict=True)))
    x, y = (g + shake * rng.uniform(-1, 1, g.shape) * (b - a) / n
            for g, a, b, n in zip(grid, low, high, cells, strict=True))  # fmt: skip
    row = cells[0] + 1
    first = (np.arange(cells[1])[:, None] * row + np.arange(cells[0])).ravel()
    ways = np.array([[(0, 1, row + 1), (0, row + 1, row)], [(0, 1, row), (1, row + 1, row)]])
    triangles = first[:, None, None] + ways[rng.integers(0, 2, first.size)]
    return np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)]), triangles.reshape(-1, 3)


def together(*meshes: Mesh) -> Mesh:
    first = np.cumsum([0, *(len(v) for v, _ in meshes)])
    joined = [t + n for (_, t), n in zip(meshes, first, strict=False)]
    return np.concatenate([v for v, _ in meshes]), np.concatenate(joined)


def turned(mesh: Mesh, order: tuple[int, int, int], at: tuple[float, float, float]) -> Mesh:
    return mesh[0][:, order] + at, mesh[1]


def block(half: tuple[float, float, float], cells: int) -> Mesh:
    sides = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        face = patch((-half[i], -half[j]), (half[i], half[j]), (cells, cells))
        order = tuple({i: 0, j: 1, k: 2}[n] for n in range(3))
        at = np.eye(3)[k] * half[k]
        sides += [turned(face, order, tuple(s * at)) for s in (-1, 1)]  # type: ignore[arg-type]
    return together(*sides)


def pit(sides: int, slope: float) -> Mesh:
    a = 2.0 * math.pi * np.arange(sides) / sides
    height = np.full(sides, math.cos(math.pi / sides) * math.tan(slope))
    rim = np.column_stack([np.cos(a), np.sin(a), height])
    return np.vstack([rim, np.zeros((1, 3))]), np.array([(i, (i + 1) % sides, sides) for i in range(sides)])


def run(b: ModelBuilder, time: float, dt: float = 2e-3, **config: Any) -> Simulation:
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt, **config))
    sim.step(round(time / dt))
    return sim


def place(sim: Simulation, body: str) -> Array:
    return np.asarray(sim.read(f"body.{body}.position")[0])


def velocity(sim: Simulation, body: str) -> Array:
    return np.asarray(sim.read(f"body.{body}.linear_velocity")[0])


@pytest.mark.nightly
@pytest.mark.parametrize(("sides", "slope"), [(3, 0.7), (4, 0.7), (6, 0.8)])
def test_a_ball_in_a_pit_rests_on_all_its_sides(sides: int, slope: float) -> None:
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, pit(sides, slope), material=ROUGH)
    ball = b.add_body(xform=Transform((0.03, 0.02, 0.4)), label="ball")
    b.add_shape_sphere(ball, 0.2, material=ROUGH)
    sim = run(b, 4.0)
    assert place(sim, "ball") == pytest.approx([0.0, 0.0, 0.2 / math.cos(slope)], abs=2e-5)
    assert len(sim.contacts()) == min(sides, 4)


def mover(b: ModelBuilder, kind: str, speed: float) -> None:
    m = SMOOTH if kind in ("box", "hull", "capsule") else Material(friction=0.6)
    high = {"box": 0.2, "hull": 0.2, "capsule": 0.15, "ball": 0.2, "cylinder": 0.3, "wheel": 0.3, "tire": 0.3}[kind]
    spin = 0.0 if m is SMOOTH else speed / high
    flat = Transform.from_axis_angle((0, 0, 0), *LYING)
    body = b.add_body(
        xform=Transform.from_axis_angle((-5, 0.03, high), (0, 0, 1), 0.3 if m is SMOOTH else 0.0),
        linear_velocity=(speed, 0, 0), angular_velocity=(0, spin, 0), label="o",
    )  # fmt: skip
    if kind == "box":
        b.add_shape_box(body, (0.4, 0.3, 0.2), material=m)
    elif kind == "hull":
        corners = [(x, y, z) for x in (-0.4, 0.4) for y in (-0.3, 0.3) for z in (-0.2, 0.2)]
        b.add_shape_hull(body, corners, material=m)
    elif kind == "capsule":
        b.add_shape_capsule(body, 0.15, 0.3, flat, m)
    elif kind == "ball":
        b.add_shape_sphere(body, 0.2, material=m)
    elif kind == "cylinder":
        b.add_shape_cylinder(body, 0.3, 0.2, flat, m)
    else:
        tread = Material(friction=1.0, density=300, law=Tire((6e3, 4e3), 0.1, 5e4, 200.0))
        b.add_shape_wheel(body, 0.3, 0.03, flat, tread if kind == "tire" else m)


GROUNDS: dict[str, Mesh] = {
    "random": patch((-6, -2), (6, 2), (130, 40), 0.3),
    "unmatched": together(*[patch((-6 + i, -2), (-5 + i, 2), (1 + i % 4, 3 + i * 5 % 7)) for i in range(12)]),
}


@pytest.mark.parametrize("kind", ["box", "hull", "capsule", "ball", "cylinder", "wheel", "tire"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_edges_of_a_flat_ground_do_not_catch(ground: str, kind: str) -> None:
    ends, heights = [], []
    for mesh in (None, GROUNDS[ground]):
        b, m = ModelBuilder(), Material(friction=0.0 if kind in ("box", "hull", "capsule") else 0.6)
        if mesh is None:
            b.add_shape_plane(-1, material=m)
        else:
            b.add_shape_triangle_mesh(-1, mesh, material=m)
        mover(b, kind, 2.0)
        sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=5e-3))
        height = []
        for _ in range(500):
            sim.step()
            height.append(place(sim, "o")[2])
        heights.append(np.array(height))
        ends.append(np.concatenate([place(sim, "o"), velocity(sim, "o")]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=2e-4)
    np.testing.assert_allclose(heights[1], heights[0], rtol=0, atol=2e-5)
    assert ends[1][3] > 2.0 * 0.998


@pytest.mark.parametrize("cells", [1, 7])
def test_the_edges_of_a_closed_mesh_do_not_push_sideways(cells: int) -> None:
    table, sheet = block((0.5, 0.5, 0.5), cells), block((0.5, 0.5, 0.0025), cells)
    wall = patch((-1, 0), (1, 1), (2 * cells, cells))
    walls = together(*(turned(wall, (0, 2, 1), (0, y, 0)) for y in (-0.2, 0.2)))
    for mesh, top, x, half in (
        (table, 0.5, 0.05, 0.8), (table, 0.5, 0.35, 0.2), (sheet, 0.0025, 0.35, 0.2), (walls, 1.0, 0.1, 0.5),
    ):  # fmt: skip
        b = ModelBuilder()
        b.add_shape_triangle_mesh(-1, mesh, material=ROUGH)
        box = b.add_body(xform=Transform((x, 0.02, top + 0.101)), label="box")
        b.add_shape_box(box, (half, half, 0.1), material=ROUGH)
        assert place(run(b, 1.0), "box") == pytest.approx([x, 0.02, top + 0.1], abs=3e-5)


def test_both_sides_hold_and_walls_stop_what_is_fast() -> None:
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, block((0.5, 0.5, 0.5), 3), material=ROUGH)
    inner = b.add_body(xform=Transform((0.1, 0.1, 0.1)), linear_velocity=(3, 1, 0), label="in")
    outer = b.add_body(xform=Transform((0.1, 0.1, 0.7)), label="out")
    b.add_shape_sphere(inner, 0.1, material=ROUGH)
    b.add_shape_box(outer, (0.1, 0.1, 0.1), material=ROUGH)
    sim = run(b, 2.0)
    assert place(sim, "in")[2] == pytest.approx(-0.4, abs=2e-5) and np.abs(place(sim, "in")).max() < 0.40002
    assert place(sim, "out") == pytest.approx([0.1, 0.1, 0.6], abs=2e-5)
    for speed in (5.0, 10.0):
        b = ModelBuilder(gravity=(0, 0, 0))
        b.add_shape_triangle_mesh(-1, patch((-2, -2), (2, 2), (8, 8), 0.2), material=ROUGH)
        for name, x, side in (("above", 0.8, 1), ("below", -0.8, -1)):
            body = b.add_body(
                xform=Transform.from_axis_angle((x, 0.1, side), (0.6, 0.8, 0), 0.5),
                linear_velocity=(0, 0, -side * speed), label=name,
            )  # fmt: skip
            b.add_shape_box(body, (0.05, 0.1, 0.05), material=ROUGH)
        sim = run(b, 0.3, 5e-3)
        assert place(sim, "above")[2] > 0.0 > place(sim, "below")[2]


def test_a_box_slides_along_a_wall() -> None:
    floor = patch((-6, -2), (6, 0.5), (24, 5))
    wall = turned(patch((-6, 0), (6, 4), (24, 8)), (0, 2, 1), (0, 0.5, 0))
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, together(floor, wall), material=SMOOTH)
    for name, x in (("box", -5.0), ("ball", -4.0)):
        body = b.add_body(xform=Transform((x, 0.0, 0.2)), linear_velocity=(2, 1, 0), label=name)
        if name == "box":
            b.add_shape_box(body, (0.4, 0.3, 0.2), material=SMOOTH)
        else:
            b.add_shape_sphere(body, 0.2, material=SMOOTH)
    sim = run(b, 2.0)
    assert velocity(sim, "box") == pytest.approx([2, 0, 0], abs=1e-3)
    assert velocity(sim, "ball") == pytest.approx([2, 0, 0], abs=1e-3)
    assert place(sim, "box")[1] == pytest.approx(0.2, abs=1e-4)


def test_a_moving_truck_bed_carries_its_load() -> None:
    vertices, triangles = block((1.5, 0.8, 0.3), 4)
    open_top = triangles[~np.all(vertices[triangles][..., 2] > 0.29, axis=1)]
    b, m = ModelBuilder(), Material(friction=0.8)
    truck = b.add_body(xform=Transform((0, 0, 1.0)), kinematic=True, label="truck")
    b.add_shape_triangle_mesh(truck, (vertices, open_top), material=m)
    load = b.add_body(xform=Transform((0.2, 0.1, 0.9)), label="load")
    b.add_shape_box(load, (0.3, 0.3, 0.2), material=m)
    ball = b.add_body(xform=Transform((-0.8, 0.1, 0.8)), label="ball")
    b.add_shape_sphere(ball, 0.1, material=m)
    sim = run(b, 0.0)
    for k in range(1500):
        sim.write("body.truck.linear_velocity", (min(2.0, 1.5 * 2e-3 * k), 0, 0))
        sim.step()
    apart = place(sim, "load") - place(sim, "truck")
    assert apart == pytest.approx([0.2, 0.1, -0.1], abs=3e-3)
    assert velocity(sim, "load") == pytest.approx([2, 0, 0], abs=1e-4)
    # The ball rolls to the rear wall, 1.5 m behind the middle.
    assert (place(sim, "ball") - place(sim, "truck"))[0] == pytest.approx(-1.4, abs=2e-3)


def test_material_and_force_belong_to_the_shape() -> None:
    for friction, travel in ((0.7, 0.0), (0.3, 0.5 * 9.81 * (math.sin(0.5) - 0.3 * math.cos(0.5)) * 0.25)):
        m = Material(friction=friction)
        b = ModelBuilder()
        tilt = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5)
        b.add_shape_triangle_mesh(-1, patch((-3, -1), (3, 1), (30, 10), 0.3), xform=tilt, material=m, label="slope")
        start = tilt.matrix() @ np.array([0.0, 0.0, 0.1])
        box = b.add_body(xform=Transform.from_axis_angle(start, (0, 1, 0), 0.5), label="box", mass=2.0,
                         inertia=(0.02, 0.02, 0.02))  # fmt: skip
        b.add_shape_box(box, (0.2, 0.2, 0.1), material=m)
        sim = run(b, 0.5, 1e-3)
        assert np.linalg.norm(place(sim, "box") - start) == pytest.approx(travel, abs=2e-3)
        assert {labels[0] for labels in sim.contacts().labels()} == {"slope"}
        normal = sim.contacts().normal_force.sum()
        assert normal == pytest.approx(2.0 * 9.81 * math.cos(0.5), rel=1e-3)


@pytest.mark.parametrize("size", [4.0, 1000.0])
def test_huge_triangles_are_as_exact_as_small_ones(size: float) -> None:
    fall = -size * math.tan(math.pi / 6)
    eaves = [(x, y, fall) for y in (-size, size) for x in (-size, size)]
    roof = np.array([*eaves, (-size, 0, 0), (size, 0, 0)]), np.array([(0, 1, 5), (0, 5, 4), (4, 5, 3), (4, 3, 2)])
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, roof, material=ROUGH)
    box = b.add_body(xform=Transform((1.3, 0, 0.1)), label="box")
    b.add_shape_box(box, (0.3, 0.3, 0.1), material=ROUGH)
    wheel = b.add_body(
        xform=Transform((-2.3, 0, 0.3)), linear_velocity=(2, 0, 0), angular_velocity=(0, 2 / 0.3, 0), label="wheel"
    )
    b.add_shape_wheel(wheel, 0.3, 0.05, Transform.from_axis_angle((0, 0, 0), *LYING), ROUGH)
    sim = run(b, 0.5)
    assert place(sim, "box") == pytest.approx([1.3, 0, 0.1], abs=1e-5)
    assert place(sim, "wheel") == pytest.approx([-1.3, 0, 0.3], abs=1e-4)
    assert velocity(sim, "wheel") == pytest.approx([2, 0, 0], abs=1e-4)
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, patch((-size, -size), (size, size), (1, 1)), material=SMOOTH)
    start = 0.5 * size
    box = b.add_body(
        xform=Transform.from_axis_angle((start, start + 0.1, 0.1), (0, 0, 1), 0.3),
        linear_velocity=(1, 1.2, 0),
        label="box",
    )
    b.add_shape_box(box, (0.3, 0.3, 0.1), material=SMOOTH)
    sim = run(b, 1.0)
    assert place(sim, "box") == pytest.approx([start + 1, start + 1.3, 0.1], abs=1e-5)


@pytest.mark.parametrize("slope", [-0.2, 0.2])
@pytest.mark.parametrize("kind", ["box", "ball", "wheel"])
def test_the_motion_does_not_depend_on_the_triangles(kind: str, slope: float) -> None:
    ends = []
    for x, y in ((17, np.linspace(-3, 3, 7)), (161, np.linspace(-3, 3, 61)), (5, np.sort(np.append(
        np.random.default_rng(2).uniform(-3, 3, 300), [-3, 0, 3]))),
    ):  # fmt: skip
        vertices, triangles = patch((-8, 0), (8, 1), (x - 1, len(y) - 1))
        rows = np.repeat(y, x)
        b = ModelBuilder()
        mesh = np.column_stack([vertices[:, 0], rows, slope * np.abs(rows)]), triangles
        b.add_shape_triangle_mesh(-1, mesh, material=ROUGH)
        mover(b, kind, 2.0)
        b.bodies[0] = replace(b.bodies[0], xform=Transform((-5, 0.05, 0.35), b.bodies[0].xform.rotation))
        sim = run(b, 1.0, 5e-3)
        ends.append(np.concatenate([place(sim, "o"), velocity(sim, "o")]))
    same = ends[1:2] if (kind, slope) == ("box", -0.2) else ends[1:]
    np.testing.assert_allclose(same, [ends[0]] * len(same), rtol=0, atol=5e-3)
