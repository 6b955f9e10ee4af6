from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.typing import Array
from tests.analytic.contact import tiles


@pytest.mark.native
@pytest.mark.parametrize(("speed", "dt"), [(2.0, 1 / 60), (2.0, 1e-3), (0.05, 1e-3)])
def test_a_box_slides_over_tiles(speed: float, dt: float) -> None:
    b = ModelBuilder()
    smooth = Material(friction=0.0)
    for k in range(6):
        tile = Transform((0.2 * k, 0.0, -0.05))
        b.add_shape_box(-1, half_extents=(0.1, 0.5, 0.05), xform=tile, material=smooth)
    box = b.add_body(xform=Transform((0.0, 0.0, 0.05)), linear_velocity=(speed, 0.0, 0.0), label="box")
    b.add_shape_box(box, half_extents=(0.05, 0.05, 0.05), material=smooth)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt, substeps=4 if dt > 0.01 else 1))
    sim.step(round(min(0.8 / speed, 4.0) / dt))
    velocity = sim.read("body.box.linear_velocity")[0]
    assert velocity[0] == pytest.approx(speed, rel=1e-6)
    assert abs(velocity[2]) < 1e-3
    assert abs(sim.read("body.box.position")[0, 2] - 0.05) < 1e-3


def passes(sim: Simulation, speed: float, seconds: float, rise: float = 2e-5) -> None:
    for _ in range(20):
        sim.step(max(round(seconds / 20 / sim.config.dt), 1))
        place, velocity = sim.read("body.mover.position")[0], sim.read("body.mover.linear_velocity")[0]
        assert velocity[0] == pytest.approx(speed, rel=2e-3)
        assert abs(velocity[1]) < 2e-3 * speed
        assert abs(place[2] - tiles.R) < rise


SINKS = 320 * 9.81 / 200e3
"""Depth of a tire under 320 kg, m."""
CASES = [
    (1.0, {"dt": 1e-3}),
    (1.0, {"dt": 1 / 60}),
    (5.0, {"dt": 1e-3}),
    (1.0, {"dt": 5e-3, "substeps": 4}),
    (1.0, {"dt": 5e-3, "joint_solver": "colored"}),
    (1.0, {"dt": 5e-3, "scheme": "semi_implicit"}),
]


@pytest.mark.native
@pytest.mark.parametrize(("speed", "settings"), CASES)
def test_a_hull_slides_over_boxes(speed: float, settings: dict[str, Any]) -> None:
    b = ModelBuilder()
    tiles.add_floor(b)
    tiles.mover(b, "hull", speed)
    passes(tiles.simulate(b, **settings), speed, 1.7 / speed)


@pytest.mark.nightly
def test_a_hull_slides_over_boxes_in_numpy() -> None:
    b = ModelBuilder()
    tiles.add_floor(b, count=4)
    tiles.mover(b, "hull", 1.0)
    passes(tiles.simulate(b, "numpy", dt=1e-2), 1.0, 0.8)


@pytest.mark.native
@pytest.mark.parametrize("kinds", ["height_field", "box height_field hull"])
@pytest.mark.parametrize("shape", list(tiles.ADD))
def test_shapes_pass_tiles(shape: str, kinds: str) -> None:
    b = ModelBuilder()
    tiles.add_floor(b, kinds)
    tiles.mover(b, shape, 1.0, Material(friction=0.5 if shape in ("sphere", "wheel", "roller") else 0.0))
    passes(tiles.simulate(b, dt=2e-3), 1.0, 1.7)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("shape", ["hull", "box", "sphere"])
@pytest.mark.parametrize("floor", [{"yaw": 0.3}, {"rows": (-1.0, 1.0)}, {"steps": 4.5e-5}])
@pytest.mark.parametrize("kinds", ["box", "hull height_field"])
def test_seams_of_every_direction(shape: str, floor: dict[str, Any], kinds: str) -> None:
    b = ModelBuilder()
    tiles.add_floor(b, kinds, **floor)
    tiles.mover(b, shape, 1.0)
    passes(tiles.simulate(b, dt=2e-3), 1.0, 1.5, rise=2e-4 if "steps" in floor else 2e-5)


@pytest.mark.native
def test_a_hull_slides_over_a_body_of_boxes() -> None:
    b = ModelBuilder()
    bed = b.add_body(1e5, (1e4, 1e4, 1e4), label="bed")
    b.add_joint_prismatic(-1, bed, axis=(1, 0, 0))
    for k in range(3):
        tiles.add_tile(b, "box", Transform((0.5 * k, 0, 0)), 0.25, tiles.SMOOTH, bed)
    tiles.mover(b, "hull", 1.0, x=-0.04)
    passes(tiles.simulate(b, dt=2e-3), 1.0, 0.9)


@pytest.mark.native
@pytest.mark.parametrize("shape", ["hull", "sphere"])
def test_real_steps_stop(shape: str) -> None:
    for heights in ([0.05], [0.1] * 6):
        b = ModelBuilder()
        tiles.add_floor(b, count=4)
        level = 0.0
        for height in heights:
            place = Transform((1.45, 0, level + 0.5 * height))
            b.add_shape_box(-1, (0.2, 1.0, 0.5 * height), xform=place, material=tiles.SMOOTH)
            level += height
        tiles.mover(b, shape, 1.0)
        sim = tiles.simulate(b, dt=2e-3)
        sim.step(1000)
        assert sim.read("body.mover.position")[0, 0] < 1.3
        assert sim.read("body.mover.linear_velocity")[0, 0] < 0.1


@pytest.mark.native
@pytest.mark.parametrize(("count", "low"), [(5, 0.0), (4, -0.1)])
def test_an_edge_in_a_corner_stops(count: int, low: float) -> None:
    b = ModelBuilder()
    tiles.add_floor(b, count=count)
    b.add_shape_box(-1, (0.2, 1.0, 0.3), xform=Transform((1.45, 0, 0.3 + low)), material=tiles.SMOOTH)
    corner = [(0.0, y, 0.0) for y in (-0.1, 0.1)] + [(-0.2, y, z) for y in (-0.1, 0.1) for z in (0.1, 0.3)]
    wedge = b.add_body(linear_velocity=(1.0, 0, 0), xform=Transform((0.9, 0, 0)), label="wedge")
    b.add_shape_hull(wedge, corner, material=tiles.SMOOTH)
    b.add_joint_d6(-1, wedge, at=(0.9, 0, 0), linear_axes=[(1, 0, 0), (0, 0, 1)])
    sim = tiles.simulate(b, dt=2e-3)
    sim.step(500)
    assert sim.read("body.wedge.linear_velocity")[0] == pytest.approx([0, 0, 0], abs=1e-6)
    assert sim.read("body.wedge.position")[0] == pytest.approx([1.25, 0, 0], abs=1e-4)


def tumble(kinds: str, rim: float) -> Array:
    b = ModelBuilder()
    b.add_shape_box(-1, (2.0, 3.0, 0.1), xform=Transform((rim + 2.0, 0, -0.15)), material=tiles.SMOOTH)
    if kinds == "one":
        b.add_shape_box(-1, (2.0, 3.0, 0.1), xform=Transform((rim - 2.0, 0, -0.1)), material=tiles.SMOOTH)
    for k, kind in enumerate(kinds.split() * 24 if kinds != "one" else ()):
        row, column = divmod(k, 8)
        shift = 0.25 * (row % 2) if rim > 0.0 else 0.0
        tiles.add_tile(b, kind, Transform((rim - 0.25 - 0.5 * column + shift, 2.0 * row - 2.0, 0)), 0.25, tiles.SMOOTH)
    rng = np.random.default_rng(7)
    b.add_shape_hull(b.add_body(), rng.normal(size=(14, 3)) * (0.12, 0.08, 0.06), material=tiles.SMOOTH)
    sim = Simulation(b.finalize(), 64, backend="native", config=SolverConfig(dt=5e-3))
    turn, way, s = rng.normal(size=(64, 4)), rng.uniform(0.0, 2.0 * np.pi, 64), sim.state.arrays
    s["orientation"][:, 0] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    s["position"][:, 0] = np.column_stack([rng.uniform(-0.5, 0.5, (64, 2)), np.full(64, 0.25)])
    before = 1.5 * np.column_stack([np.cos(way), np.sin(way)])
    s["linear_velocity"][:, 0, :2] = before
    sim.invalidate()
    sim.step(120)
    after = sim.read_state()
    velocity = after["linear_velocity"][:, 0]
    return np.concatenate([after["position"][:, 0], velocity, velocity[:, :2] - before], axis=1)


@pytest.mark.native
@pytest.mark.parametrize("kinds", ["box", "height_field", "box hull height_field"])
def test_a_hull_tips_over_on_staggered_tiles(kinds: str) -> None:
    assert np.abs(tumble(kinds, 2.0)[:, 6:]).max() < 1e-3 * 1.5


@pytest.mark.native
def test_a_hull_tips_over_a_true_edge_of_tiles() -> None:
    one, many = tumble("one", 0.0), tumble("box", 0.0)
    assert np.count_nonzero(np.abs(one[:, 6]) > 0.01) > 10
    assert np.abs(many - one).max() < 1e-2


def parked(kinds: str, rows: tuple[float, ...], backend: str, side: float = 0.0) -> float:
    """Return how deep the tire of a parked wheel sinks in (m). ``side`` is its distance from the seam (m)."""
    b = ModelBuilder()
    tiles.add_floor(b, kinds, tiles.ROAD, rows=rows, count=3)
    place = Transform((0.25, side, 0.3 - SINKS))
    wheel = b.add_body(320, (5, 5, 9), xform=place * tiles.ACROSS, label="wheel")
    b.add_joint_prismatic(-1, wheel, axis=(0, 0, 1), at=place.position)
    b.add_shape_wheel(wheel, 0.3, 0.05, material=tiles.TIRE)
    sim = tiles.simulate(b, backend, dt=1e-2)
    sim.step(50)
    return 0.3 - float(sim.read("body.wheel.position")[0, 2])


@pytest.mark.native
@pytest.mark.parametrize("kinds", ["box", "height_field", "hull height_field"])
@pytest.mark.parametrize("rows", [(0.0,), (-1.0, 1.0)])
def test_a_tire_stands_on_a_seam_as_on_one_surface(kinds: str, rows: tuple[float, ...]) -> None:
    assert parked(kinds, rows, "native") == pytest.approx(SINKS, rel=1e-3)
    assert parked(kinds, rows, "native", 1e-4) == pytest.approx(SINKS, rel=1e-3)


def test_a_tire_on_a_seam_in_numpy() -> None:
    assert parked("box", (0.0,), "numpy") == pytest.approx(SINKS, rel=1e-3)
    assert parked("box", (-1.0, 1.0), "numpy", 1e-4) == pytest.approx(SINKS, rel=1e-3)


@pytest.mark.native
@pytest.mark.parametrize("shape", ["box", "capsule", "sphere"])
@pytest.mark.parametrize("rows", [(0.0,), (-1.0, 1.0)])
def test_soft_laws_share_a_seam(shape: str, rows: tuple[float, ...]) -> None:
    law = ContactLaw(normal="spring", stiffness=2e5, damping="linear", damping_coefficient=2e3)
    depths = []
    for x in (0.0, 0.25):
        b = ModelBuilder()
        tiles.add_floor(b, "box", count=3, rows=rows if x else (0.0,), half=0.25 if x else 2.0)
        tiles.mover(b, shape, 0.0, Material(friction=0.0, law=law), x)
        sim = tiles.simulate(b, dt=2e-3)
        sim.step(500)
        depths.append(tiles.R - float(sim.read("body.mover.position")[0, 2]))
    assert depths[0] > 1e-4
    assert depths[1] == pytest.approx(depths[0], rel=1e-3)


@pytest.mark.native
@pytest.mark.parametrize("solver", ["auto", pytest.param("colored", marks=pytest.mark.nightly)])
def test_a_tire_rolls_over_seams(solver: str) -> None:
    b = ModelBuilder()
    tiles.add_floor(b, "box height_field", tiles.ROAD, count=8)
    turned = Transform.from_axis_angle((0, 0, 0.3 - SINKS), (0, 0, 1), 0.05)
    hub = b.add_body(300, (10, 10, 10), xform=Transform(turned.position), linear_velocity=(2.0, 0, 0), label="hub")
    b.add_joint_d6(-1, hub, at=turned.position, linear_axes=[(1, 0, 0), (0, 0, 1)])
    wheel = b.add_body(
        20, (0.5, 0.5, 0.9), xform=turned * tiles.ACROSS, linear_velocity=(2.0, 0, 0),
        angular_velocity=(0, 2.0 / 0.3, 0), label="wheel",
    )  # fmt: skip
    b.add_joint_revolute(hub, wheel, axis=turned.rotate((0, 1, 0)), at=turned.position)
    b.add_shape_wheel(wheel, 0.3, 0.05, material=tiles.TIRE)
    sim = tiles.simulate(b, dt=2e-3, joint_solver=solver)
    sim.step(300)
    force = []
    for _ in range(400):
        sim.step()
        force.append(sim.read("body.wheel.contact_force")[0])
    load, side = np.array(force)[:, 2], np.array(force)[:, 1]
    assert load == pytest.approx(np.full(400, 320 * 9.81), rel=0.01)
    assert np.ptp(side) < 0.05 * abs(side.mean())
