from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Rays, Simulation, SolverConfig, Transform
from gpusim.control import Diagram
from gpusim.sensors import add_range_finder
from tests.message_snapshot import naming

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


def _turn(rng: np.random.Generator) -> Any:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def zoo(seed: int, rays: int = 400) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=(0, 0, 0))
    b.add_shape_plane(-1, xform=Transform((0, 0, -3), _turn(rng)))
    b.add_shape_height_field(-1, rng.normal(size=(7, 9)) * 0.2, (0.5, 0.4), xform=Transform((0, 0, -1), _turn(rng)))
    rock = rng.normal(size=(40, 3)) * (1.5, 1.5, 0.2)
    b.add_shape_triangle_mesh(-1, (rock, rng.permuted(np.tile(np.arange(40), (30, 1)), axis=1)[:, :3]))
    sizes: list[tuple[str, dict[str, Any]]] = [
        ("sphere", {"radius": 0.4}), ("capsule", {"radius": 0.3, "half_length": 0.4}),
        ("box", {"half_extents": (0.3, 0.2, 0.5)}), ("cylinder", {"radius": 0.3, "half_length": 0.4}),
        ("cone", {"radius": 0.4, "half_length": 0.4}), ("ellipsoid", {"semi_axes": (0.3, 0.5, 0.2)}),
        ("superellipsoid", {"semi_axes": (0.3, 0.5, 0.4), "exponents": (0.3, 1.6)}),
        ("hull", {"vertices": rng.normal(size=(20, 3)) * 0.3}), ("wheel", {"radius": 0.4, "edge_radius": 0.1}),
        ("barrel", {"radius": 0.3, "arc_radius": 0.8, "half_length": 0.4}),
    ]  # fmt: skip
    for kind, params in sizes * 2:
        body = b.add_body(1.0, (1, 1, 1), xform=Transform(rng.uniform(-2, 2, 3), _turn(rng)))
        getattr(b, f"add_shape_{kind}")(body, xform=Transform(rng.uniform(-0.3, 0.3, 3), _turn(rng)), **params)
    head = b.add_body(1.0, (1, 1, 1), com=(0.1, 0.2, 0.0), xform=Transform((0, 0, 0), _turn(rng)), label="head")
    eye = b.add_site(head, Transform((0.1, 0.2, 0.3), _turn(rng)), label="eye")
    b.add_ray_sensor(eye, Rays(rng.normal(size=(rays, 3)), rng.normal(size=(rays, 3))), max_range=5.0, label="all")
    return b


def wall(**sensor: Any) -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, 0))
    b.add_shape_plane(-1, group="ground")
    b.add_shape_box(-1, half_extents=(0.5, 5, 5), xform=Transform((3.5, 0, 0)), group="wall", label="wall")
    body = b.add_body(1.0, (1, 1, 1), xform=Transform((0, 0, 1)), label="body")
    b.add_shape_sphere(body, radius=0.1, xform=Transform((0.5, 0, 0)))
    site = b.add_site(body, label="nose")
    b.add_ray_sensor(site, **{"label": "eye"} | sensor)
    return b


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_native_sees_what_numpy_sees(seed: int) -> None:
    model = zoo(seed, 1500).finalize()
    sims = [Simulation(model, backend=backend, launch="fused") for backend in ("numpy", "native")]
    for what in ("", ".point", ".normal", ".shape"):
        one, other = (sim.read(f"sensor.all{what}") for sim in sims)
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
    shape = sims[0].read("sensor.all.shape")[0]
    assert len(set(shape)) > 18  # of 23


@pytest.mark.nightly
@pytest.mark.native
def test_worlds_do_not_feel_each_other() -> None:
    model = zoo(4, 100).finalize()
    poses = np.random.default_rng(1).normal(size=(5, 3))
    seen = []
    for order, threads in (([0, 1, 2, 3, 4], 1), ([3, 1, 4, 0, 2], 2)):
        sim = Simulation(model, 5, backend="native", threads=threads)
        sim.write("body.head.position", poses[order])
        observed = sim.observe(["sensor.all", "body.head.position", "sensor.all.normal", "sim.time"])
        found = np.empty_like(observed.read())
        found[order] = observed.array
        seen.append(found)
        np.testing.assert_allclose(observed.array[:, observed.slices["body.head.position"]], poses[order], atol=1e-15)
    assert seen[0].tobytes() == seen[1].tobytes()
    single = Simulation(model, backend="native", dtype="float32")
    single.write("body.head.position", poses[2])
    assert single.read("sensor.all").tobytes() == seen[0][2, :100].tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_sensor_reports(backend: str) -> None:
    sim = Simulation(wall(rays=Rays([(1, 0, 0), (0, 0, -2), (0, 1, 0)]), max_range=7.0).finalize(), backend=backend)
    np.testing.assert_allclose(sim.read("sensor.eye"), [[3.0, 1.0, 7.0]], atol=1e-15)
    np.testing.assert_array_equal(sim.read("sensor.eye.shape"), [[1, 0, -1]])
    np.testing.assert_allclose(sim.read("sensor.eye.point"), [[[3, 0, 1], [0, 0, 0], [0, 7, 1]]], atol=1e-15)
    np.testing.assert_allclose(sim.read("sensor.eye.normal"), [[[-1, 0, 0], [0, 0, 1], [0, 0, 0]]], atol=1e-15)
    info = sim.signals()["sensor.eye.point"]
    assert info.shape == (3, 3) and info.unit == "m" and info.device and not info.writable and not info.forward


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sensor_rides_on_its_body(backend: str) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    body = b.add_body(1.0, (1, 1, 1), xform=Transform((0, 0, 5)), angular_velocity=(0, 0.5, 0), label="body")
    b.add_ray_sensor(b.add_site(body, Transform((0, 0, -0.2))), (0, 0, -1), label="down")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    sim.step(400)
    turn, height = 0.5 * 0.4, sim.read("body.body.position")[0, 2]
    assert sim.read("sensor.down")[0] == pytest.approx([height / math.cos(turn) - 0.2], abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_which_shapes_are_seen(backend: str) -> None:
    def first(**sensor: Any) -> float:
        return float(Simulation(wall(**sensor).finalize(), backend=backend).read("sensor.eye")[0, 0])

    assert first() == 3.0
    assert first(own_body=True) == pytest.approx(0.4, abs=1e-15)
    assert first(groups=["ground"]) == 100.0
    assert first(groups=["ground", "wall"]) == 3.0
    assert first(max_range=2.5) == 2.5
    # from within the wall, where it comes out
    assert first(rays=Rays((1, 0, 0), (3.25, 0, 0))) == pytest.approx(0.75, abs=1e-15)
    # a prefix goes to the groups too
    b = ModelBuilder()
    b.add_builder(wall(groups=["wall"]), label_prefix="left_")
    b.add_builder(wall(rays=(0, 0, -1)), label_prefix="right_", xform=Transform((0, 0, 5)))
    sim = Simulation(b.finalize(), backend=backend)
    assert sim.read("sensor.left_eye")[0, 0] == 3.0
    assert sim.read("sensor.right_eye")[0, 0] == pytest.approx(1.0, abs=1e-15)


def test_a_sensor_on_the_world_sees_the_world() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_body(1.0, (1, 1, 1))
    b.add_ray_sensor(b.add_site(-1, Transform((0, 0, 4))), (0, 0, -1), label="above")
    assert Simulation(b.finalize(), backend="numpy").read("sensor.above")[0, 0] == 4.0


@pytest.mark.native
def test_the_state_has_the_same_bits_with_and_without() -> None:
    states = []
    for rays in (None, Rays.fan(1.0, 9)):
        b = ModelBuilder()
        b.add_shape_plane(-1)
        body = b.add_body(xform=Transform.from_axis_angle((0, 0, 0.3), (1, 1, 0), 0.3))
        b.add_shape_box(body, half_extents=(0.1, 0.1, 0.1))
        site = b.add_site(body)
        if rays is not None:
            b.add_ray_sensor(site, rays)
        sim = Simulation(b.finalize(), backend="native")
        sim.step(300)
        states.append(sim.state.arrays)
    for name, array in states[0].items():
        assert array.tobytes() == states[1][name].tobytes(), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_diagram_reads_distances(backend: str) -> None:
    b = wall(rays=Rays.fan(0.2, 3))
    d = Diagram("stop")
    d.add("signal", "seen", signal="sensor.eye")
    d.connect("seen", d.add("select_element", "mid", index=1))
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend=backend)
    sim.step(1)
    assert sim.read("diagram.stop.mid")[0] == pytest.approx(3.0, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_range_finder_as_it_is(backend: str) -> None:
    b = wall(rays=Rays.fan(0.2, 3), max_range=3.1)
    add_range_finder(b, "eye", "measured", rate=100.0, noise=0.02, bias=0.05, latency=0.02, seed=3)
    sim = Simulation(b.finalize(), 3, backend=backend, config=SolverConfig(dt=5e-3))
    values = []
    for _ in range(400):
        sim.step(1)
        values.append(sim.read("sensor.measured.distance"))
    found = np.array(values)
    assert found.shape == (400, 3, 3) and not np.array_equal(found[:, 0], found[:, 1])
    settled = found[40::2, :, 1] - 3.05
    assert abs(settled.mean()) < 0.004 and settled.std() == pytest.approx(0.02, rel=0.25)
    assert found.max() <= 3.1 and np.all(found[41:400:2] == found[40:399:2])


def test_patterns() -> None:
    line = Rays.line(2.0, 3)
    np.testing.assert_allclose(line.begins, [[0, -1, 0], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(line.directions, [[1, 0, 0]] * 3)
    fan = Rays.fan(math.pi, 3).directions
    np.testing.assert_allclose(fan, [[0, -1, 0], [1, 0, 0], [0, 1, 0]], atol=1e-15)
    around = Rays.fan(2 * math.pi, 4).directions
    np.testing.assert_allclose(around, [[-1, 0, 0], [0, -1, 0], [1, 0, 0], [0, 1, 0]], atol=1e-15)
    lidar = Rays.lidar(math.pi / 2, 3, math.pi / 6, 2)
    assert len(lidar) == 6
    np.testing.assert_allclose(np.arcsin(lidar.directions[:, 2]), np.repeat([-1, 1], 3) * math.pi / 12)
    grid = Rays.grid((2.0, 1.0), (3, 2))
    np.testing.assert_allclose(grid.begins[:, :2], [[-1, -0.5], [0, -0.5], [1, -0.5], [-1, 0.5], [0, 0.5], [1, 0.5]])
    np.testing.assert_allclose(grid.directions, [[0, 0, -1]] * 6)
    camera = Rays.camera(math.pi / 2, 2, 2)
    corners = [[1, y, z] for z in (0.5, -0.5) for y in (0.5, -0.5)]
    np.testing.assert_allclose(camera.directions * math.sqrt(1.5), corners)
    np.testing.assert_allclose(np.linalg.norm(camera.directions, axis=1), 1.0)


WRONG = {
    "no site": (lambda b: b.add_ray_sensor(7, label="eye"), "sensor 'eye' site 7 0"),
    "range": (lambda b: b.add_ray_sensor(b.add_site(-1), max_range=0.0), "sensor 'sensor0' max_range 0"),
    "infinite": (lambda b: b.add_ray_sensor(b.add_site(-1), max_range=math.inf), "max_range inf"),
    "zero": (lambda b: b.add_ray_sensor(b.add_site(-1), (0, 0, 0)), "sensor 'sensor0'"),
    "flat": (lambda b: b.add_ray_sensor(b.add_site(-1), [1, 2]), "2"),
    "words": (lambda b: b.add_ray_sensor(b.add_site(-1), "ahead"), "directions"),
    "groups": (lambda b: b.add_ray_sensor(b.add_site(-1), groups="terrain"), "groups 'terrain'"),
    "number": (lambda b: b.add_ray_sensor(b.add_site(-1), groups=3), "groups 3"),
    "own": (lambda b: b.add_ray_sensor(b.add_site(-1), own_body=2), "own_body 2"),
    "count": (lambda b: Rays.fan(1.0, 0), "count 0 1"),
    "text": (lambda b: Rays.grid((1, 1), (2, "3")), "y '3'"),
    "angle": (lambda b: Rays.fan(7.0, 3), "angle 7"),
    "wide": (lambda b: Rays.camera(math.pi, 3, 3), "angle 3.14159"),
    "channels": (lambda b: Rays.lidar(1.0, 3, 4.0, 2), "height 4"),
    "size": (lambda b: Rays.grid((1,), (2, 3)), ""),
    "origins": (lambda b: Rays(np.ones((3, 3)), np.ones((2, 3))), "2 3"),
    "finder": (lambda b: add_range_finder(b, "eye", "x"), "'x' 'eye'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input(case: str) -> None:
    act, message = WRONG[case]
    with pytest.raises(ModelError, match=naming(message)) as error:
        act(ModelBuilder())
    assert "\n" not in str(error.value)


def test_a_group_that_no_shape_is_in() -> None:
    with pytest.raises(ModelError, match=naming("sensor 'eye' 'wal' 'wall'")):
        wall(groups=["wal"]).finalize()
