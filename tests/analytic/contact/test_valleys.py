from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Tire, Transform
from gpusim.typing import Array

GRID = np.arange(-20, 21) * 0.1
ROUGH = np.random.default_rng(1).normal(size=(41, 41)) * 0.06
PITS = {
    "four sides": np.abs(GRID[:, None]) + np.abs(GRID),
    "cone": np.hypot(GRID[:, None], GRID),
    "bowl": 2.0 * (GRID[:, None] ** 2 + GRID**2),
    "rough": ROUGH,
}
LYING = ((1, 0, 0), 0.5 * math.pi)
MASS = 1000 * 4 / 3 * math.pi * 0.25**3


def add_valley(b: ModelBuilder, degrees: float, ground: str, material: Material) -> None:
    slope = math.radians(degrees)
    heights = np.tile(math.tan(slope) * np.abs(GRID), (41, 1))
    if ground == "planes":
        for side in (-1, 1):
            b.add_shape_plane(-1, Transform.from_axis_angle((0, 0, 0), (0, 1, 0), side * slope), material)
    for y in {"field": (0.0,), "tiles": (-2.0, 2.0), "planes": ()}[ground]:
        b.add_shape_height_field(-1, heights, (0.1, 0.1), base=-30, xform=Transform((0, y, 0)), material=material)


def add_shape(b: ModelBuilder, kind: str, place: tuple[float, float, float], m: Material, **motion: Any) -> None:
    lies = kind in ("capsule", "cylinder")
    xform = Transform.from_axis_angle(place, *LYING) if lies else Transform(place)
    body = b.add_body(xform=xform, label="body", **motion)
    sizes = {"sphere": (0.25,), "box": ((0.25, 0.25, 0.25),), "capsule": (0.2, 0.2), "cylinder": (0.2, 0.2)}[kind]
    getattr(b, f"add_shape_{kind}")(body, *sizes, material=m)


def run(b: ModelBuilder, time: float, dt: float, backend: str = "native", **config: Any) -> Simulation:
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=dt, **config))
    sim.step(round(time / dt))
    return sim


def speed(sim: Simulation) -> float:
    most = 0.0
    for _ in range(20):
        sim.step()
        motion = sim.read("body.body.linear_velocity"), sim.read("body.body.angular_velocity")
        most = max(most, float(np.abs(np.concatenate(motion)).max()))
    return most


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("kind", ["sphere", "box", "capsule", "cylinder"])
@pytest.mark.parametrize("degrees", [30.0, 45.0, 60.0])
@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1 / 60])
def test_what_lies_in_a_valley_is_at_rest(kind: str, degrees: float, dt: float) -> None:
    b, m = ModelBuilder(), Material()
    add_valley(b, degrees, "field", m)
    add_shape(b, kind, (0.013, 0.03, 0.3 + 0.25 * math.tan(math.radians(degrees))), m)
    assert speed(run(b, 3.0, dt)) < 3e-4


@pytest.mark.native
@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"joint_solver": "colored"}, marks=pytest.mark.nightly),
        {"scheme": "semi_implicit"},
        {"substeps": 4},
        pytest.param({"substeps": 4, "iterations": 4, "joint_solver": "colored"}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_it_is_so_with_other_solvers(config: dict[str, Any]) -> None:
    for kind in ("sphere", "box"):
        b, m = ModelBuilder(), Material()
        add_valley(b, 45.0, "field", m)
        add_shape(b, kind, (0.013, 0.03, 0.55), m)
        assert speed(run(b, 2.0, 5e-3, **config)) < 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_numpy_does_so_too(kind: str) -> None:
    b, m = ModelBuilder(), Material()
    add_valley(b, 45.0, "field", m)
    add_shape(b, kind, (0.013, 0.03, 0.55), m)
    assert speed(run(b, 0.8, 5e-3, "numpy")) < 1e-4


@pytest.mark.native
@pytest.mark.parametrize("degrees", [10.0, 30.0, 60.0])
def test_both_sides_carry_a_ball(degrees: float) -> None:
    """2 N cos = m g."""
    b, m = ModelBuilder(), Material(friction=0.0)
    add_valley(b, degrees, "field", m)
    add_shape(b, "sphere", (0.0, 0.03, 0.251 / math.cos(math.radians(degrees))), m)
    c = run(b, 1.0, 5e-3).contacts()
    assert len(c) == 2
    assert c.normal_force == pytest.approx([MASS * 9.81 / (2 * math.cos(math.radians(degrees)))] * 2, rel=1e-3)
    assert np.sum(c.normal[:, 0]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("pit", PITS)
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_what_lies_in_a_pit_is_at_rest(pit: str, kind: str) -> None:
    b, m = ModelBuilder(), Material(rolling_friction=0.002)
    b.add_shape_height_field(-1, PITS[pit], (0.1, 0.1), base=-5, material=m)
    add_shape(b, kind, (0.013, 0.03, 0.8), m)
    sim = run(b, 4.0, 5e-3)
    assert speed(sim) < 3e-4
    weight = sim.model.bodies[0].mass * 9.81
    assert sim.read("body.body.contact_force").ravel() == pytest.approx([0, 0, weight], abs=1e-3 * weight)


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 1 / 60])
def test_a_ball_rolls_down_a_valley_as_it_must(dt: float) -> None:
    """Closed form: a = g sin(tilt)/(1 + 2/5 R^2/r^2) with r = R cos(slope)."""
    tilt, slope, radius = math.radians(5), math.radians(45), 0.25
    b, m = ModelBuilder(gravity=(0, 9.81 * math.sin(tilt), -9.81 * math.cos(tilt))), Material(friction=1.0)
    add_valley(b, 45.0, "field", m)
    add_shape(b, "sphere", (0.0, -1.5, radius / math.cos(slope)), m)
    sim = run(b, 2.0, dt)
    expected = 2.0 * 9.81 * math.sin(tilt) / (1.0 + 0.4 / math.cos(slope) ** 2)
    assert sim.read("body.body.linear_velocity").ravel() == pytest.approx([0, expected, 0], abs=1e-4)


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 1 / 60])
def test_a_ball_rolls_over_a_valley_as_over_two_planes(dt: float) -> None:
    paths: list[Array] = []
    for ground in ("field", "planes"):
        b, m = ModelBuilder(), Material(friction=0.8)
        add_valley(b, 26.565, ground, m)
        add_shape(b, "sphere", (0.6, 0.03, 0.62), m)
        sim = run(b, 0.0, dt)
        for _ in range(30):
            sim.step(round(0.05 / dt))
            paths.append(sim.read("body.body.position").ravel())
    assert np.array(paths[:30]) == pytest.approx(np.array(paths[30:]), abs=1e-6)
    assert min(p[0] for p in paths) < -0.1


def driven_in_a_rut(ground: str) -> tuple[Array, Array]:
    b, road = ModelBuilder(), Material(friction=1.0)
    add_valley(b, 30.0, ground, road)
    rubber = Material(friction=1.0, law=Tire((60e3, 50e3), 0.3, 200e3, 500.0, width=0.05))
    xform = Transform.from_axis_angle((0, -1.9, 0.3135), (0, 1, 0), 0.5 * math.pi)
    inertia, motion = (0.5, 0.5, 0.9), {"linear_velocity": (0, 2, 0), "angular_velocity": (-6.67, 0, 0)}
    wheel = b.add_body(20.0, inertia, xform=xform, **motion, label="body")
    b.add_shape_wheel(wheel, 0.3, 0.1, material=rubber)
    sim = run(b, 0.3, 5e-3)
    found = []
    for _ in range(40):
        sim.step(8)
        found.append([sim.read("body.body.position").ravel(), sim.read("body.body.linear_velocity").ravel()])
    position, velocity = np.array(found).swapaxes(0, 1)
    return position, velocity


@pytest.mark.native
def test_a_tire_rolls_in_a_rut_and_over_its_seams_as_between_two_planes() -> None:
    position, velocity = driven_in_a_rut("planes")
    assert position[-1, 1] > 1.5
    for ground in ("field", "tiles"):
        own_position, own_velocity = driven_in_a_rut(ground)
        assert own_position == pytest.approx(position, abs=2e-4)
        assert own_velocity == pytest.approx(velocity, abs=1e-3)


@pytest.mark.native
@pytest.mark.parametrize("kind", ["box", "cylinder"])
@pytest.mark.parametrize("depth", [0.02, 0.1])
@pytest.mark.parametrize("dt", [pytest.param(1e-3, marks=pytest.mark.nightly), 5e-3, 1 / 60])
def test_what_slides_passes_over_grooves(kind: str, depth: float, dt: float) -> None:
    b, m = ModelBuilder(), Material(friction=0.0)
    x = np.arange(-60, 61) * 0.05
    groove = -depth * np.maximum(0.0, 1.0 - np.abs(x) / 0.1)
    b.add_shape_height_field(-1, np.tile(groove, (41, 1)), (0.05, 0.1), material=m)
    body = b.add_body(xform=Transform((-0.6, 0.013, 0.2)), linear_velocity=(1, 0, 0), label="body")
    if kind == "box":
        b.add_shape_box(body, (0.3, 0.2, 0.2), material=m)
    else:
        b.add_shape_cylinder(body, 0.25, 0.2, material=m)
    sim = run(b, 1.2, dt)
    assert sim.read("body.body.linear_velocity").ravel() == pytest.approx([1, 0, 0], abs=2e-3)
    assert sim.read("body.body.position").ravel()[2] == pytest.approx(0.2, abs=1e-4)


def test_only_fields_with_valleys_take_more_places() -> None:
    gentle = 0.04 * np.abs(GRID) * np.ones((3, 1))
    fields = {"flat": 0.0 * gentle, "gentle": gentle, "ridge": -10.0 * gentle, "valley": 10.0 * gentle}
    for name, heights in fields.items():
        b = ModelBuilder()
        b.add_shape_height_field(-1, heights, (0.1, 1.0))
        b.add_shape_sphere(b.add_body(), 0.1)
        model = b.finalize()
        places = 4 if name == "valley" else 1
        assert model.contact.manifolds.tolist() == [places, 1]
        assert model.contact.candidates == [[1] * places, []]
