from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, Simulation, SolverConfig, Tire, Transform
from tests.backends import FASTEST, on_backends

from . import tires
from .runs import march, read, simulation
from .tires import LENGTH, LOAD, RADIAL, RADIUS, ROLLING_RADIUS, SLIP_STIFFNESS, TIRE, Car, brush, free_wheel, rig

SPINS = np.array([1.0, 0.99, 0.95, 0.9, 0.6, 1.02, 1.1, 1.5, 0.0])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("case", "backend"),
    on_backends(itertools.product((1e-3, 1e-2), (1.0, 5.0, 20.0), (0.0, 0.04, 0.2)), numpy=[(1e-2, 5.0, 0.04)]),
)
def test_forces_of_steady_slip_are_those_of_a_brush(case: tuple[float, float, float], backend: str) -> None:
    dt, speed, steer = case
    model = rig(TIRE, speed, steer).finalize()
    sim = Simulation(model, SPINS.size, backend, config=SolverConfig(dt=dt))
    axle = np.array([-math.sin(steer), math.cos(steer), 0.0])
    free = speed * math.cos(steer) / ROLLING_RADIUS
    sim.write("body.wheel.angular_velocity", (SPINS * free)[:, None] * axle)
    # A wheel that is nearly locked has rolled its bristles out when the road has passed by for some lengths.
    sim.step(round(12.0 * LENGTH / (0.6 * speed * dt)))
    touch = sim.contacts()
    spin = sim.read("body.wheel.angular_velocity") @ axle
    rolling = spin * (RADIUS + 0.5 * touch.gap)
    along, across = speed * math.cos(steer) - rolling, np.full(SPINS.size, -speed * math.sin(steer))
    force = np.stack([touch.force @ (axle[1], -axle[0], 0.0), touch.force @ axle], axis=1)
    for world in range(SPINS.size):
        load, surface = touch.normal_force[world], max(abs(rolling[world]), 1e-9)
        expected = brush((along[world] / surface, across[world] / surface), load, (1.0, 0.8))
        assert force[world] == pytest.approx(expected, abs=2e-3 * load), SPINS[world]
        assert load == pytest.approx(LOAD, rel=1e-6)
    assert touch.mode_names()[-1] == "sliding" and touch.mode_names()[1] == "sticking"


@pytest.mark.slow_numpy
@pytest.mark.parametrize(("backend", "dt"), [(FASTEST, 1e-3), (FASTEST, 1e-2), ("numpy", 1e-2)])
def test_a_light_wheel_that_rolls_freely_has_the_whole_side_force(backend: str, dt: float) -> None:
    steer, speed = 0.04, 5.0
    sim = simulation(rig(TIRE, speed, steer, turning=0.9), backend, dt)
    axle = np.array([-math.sin(steer), math.cos(steer), 0.0])
    sim.write("body.wheel.angular_velocity", speed / ROLLING_RADIUS * axle)
    sim.step(round(12.0 * LENGTH / (speed * dt)))
    expected = brush((0.0, -math.tan(steer)), LOAD, (1.0, 0.8))
    assert np.linalg.norm(sim.contacts().force[0, :2]) == pytest.approx(abs(expected[1]), rel=1e-3)


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "backend"), on_backends(itertools.product((1e-3, 1e-2), (0.5, 5.0, 20.0))))
def test_force_follows_a_step_of_side_slip_over_the_relaxation_length(case: tuple[float, float], backend: str) -> None:
    dt, speed = case
    slip, length = 1e-3, 0.6
    builder = rig(Tire(SLIP_STIFFNESS, (0.3, length), RADIAL, 500.0), speed, slip)
    sim = simulation(builder, backend, dt)
    sim.write("body.wheel.angular_velocity", (-slip * speed / ROLLING_RADIUS, speed / ROLLING_RADIUS, 0.0))
    times = np.arange(1, round(2.5 * length / (speed * dt))) * dt
    force = march(sim, times, lambda s: s.contacts().force[0, 1])
    expected = -SLIP_STIFFNESS[1] * slip * -np.expm1(-speed * times / length)
    assert np.abs(force + expected).max() < 0.02 * SLIP_STIFFNESS[1] * slip


@pytest.mark.parametrize(("dt", "error"), [(1e-3, 1e-4), (1e-2, 5e-3)])
def test_radial_spring(dt: float, error: float) -> None:
    sim = simulation(rig(Tire(SLIP_STIFFNESS, LENGTH, RADIAL), 0.0), FASTEST, dt)
    sim.step(10)
    assert sim.contacts().gap[0] == pytest.approx(-LOAD / RADIAL, rel=1e-9)
    for body in ("post", "wheel"):
        sim.write(f"body.{body}.linear_velocity", (0.0, 0.0, 0.1))
    height = march(sim, sim.time + np.arange(1, round(3.0 / dt)) * dt, lambda s: read(s, "body.wheel.position")[2])
    away = height - height.mean()
    k = np.flatnonzero((away[:-1] < 0.0) & (away[1:] >= 0.0))
    ups = k + away[k] / (away[k] - away[k + 1])
    frequency = 1.0 / (dt * np.diff(ups).mean())
    assert frequency == pytest.approx(math.sqrt(RADIAL / (LOAD / tires.G)) / (2.0 * math.pi), rel=error)


@pytest.mark.slow_numpy
@pytest.mark.parametrize(
    ("swing", "backend"), on_backends([0.1, 1.0, 2.0, 2.5, 10.0, 100.0], numpy=[2.5])
)  # fmt: skip
def test_a_spring_that_swings_in_a_step_bounces_no_higher(swing: float, backend: str) -> None:
    """h^2 k/m ranges from 0.1 to 100."""
    dt, mass, radius, lifts = 1e-2, 1.0, 0.1, np.linspace(0.02, 0.2, 10)
    law = ContactLaw(normal="spring", stiffness=swing * mass / dt**2)
    b, material = ModelBuilder(gravity=(0.0, 0.0, -tires.G)), Material(friction=0.0, law=law)
    b.add_shape_plane(-1, material=material)
    ball = b.add_body(mass=mass, inertia=(0.01, 0.01, 0.01), label="ball")
    b.add_shape_sphere(ball, radius, material=material)
    sim = Simulation(b.finalize(), lifts.size, backend, config=SolverConfig(dt=dt))
    sim.write("body.ball.position", np.outer(radius + lifts, (0.0, 0.0, 1.0)))
    highest = np.zeros_like(lifts)
    for _ in range(1000 if backend == FASTEST else 100):
        sim.step()
        highest = np.maximum(highest, sim.read("body.ball.position")[:, 2] - radius)
    assert (highest / lifts).max() < 1.05


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_rolling_resistance_slows_a_wheel_until_it_stands(dt: float) -> None:
    mass, turning, share, speed = 20.0, 0.9, 0.02, 1.0
    radius = RADIUS - 0.5 * mass * tires.G / RADIAL
    tire = Tire(4e3, LENGTH, RADIAL, 500.0, rolling_resistance=share, width=0.2)
    sim = simulation(free_wheel(tire, speed, speed / radius, mass, turning), FASTEST, dt)
    sim.step(round(1.0 / dt))
    before = read(sim, "body.wheel.linear_velocity")[0]
    sim.step(round(3.0 / dt))
    slowed = (before - read(sim, "body.wheel.linear_velocity")[0]) / 3.0
    assert slowed == pytest.approx(share * mass * tires.G * RADIUS / radius / (mass + turning / radius**2), rel=1e-3)
    sim.step(round(8.0 / dt))
    place = read(sim, "body.wheel.position")
    sim.step(round(2.0 / dt))
    assert np.abs(read(sim, "body.wheel.position") - place).max() < 1e-9


@pytest.mark.parametrize(
    ("case", "backend"),
    on_backends(itertools.product([0.02, -0.02, 0.3, -0.3], [False, True]), numpy=[(-0.02, False), (0.3, True)]),
)
def test_a_wide_tread_rights_a_wheel_that_leans(case: tuple[float, bool], backend: str) -> None:
    (lean, ground_last), width = case, 0.2
    tire = Tire(SLIP_STIFFNESS, LENGTH, RADIAL, 500.0, width=width)
    sim = simulation(rig(tire, 0.0, camber=lean, ground_last=ground_last), backend, 1e-2)
    sim.step(20)
    touch = sim.contacts()
    load, torque = touch.normal_force[0], RADIAL * width**2 / 12.0 * math.sin(abs(lean))
    if torque > load * width / 6.0:
        torque = load * width * (0.5 - math.sqrt(load * width / (6.0 * torque)) / 3.0)
    on_wheel = -touch.torque[0] if ground_last else touch.torque[0]
    assert on_wheel == pytest.approx((-math.copysign(torque, lean), 0.0, 0.0), rel=1e-6, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("dt", "solver", "dtype", "brake"),
    [
        (1e-3, "direct", "float64", "hinge"), (1e-3, "colored", "float64", "weld"), (1e-2, "direct", "float64", "weld"),
        (1e-2, "direct", "float32", "hinge"), (1e-2, "colored", "float64", "hinge"),
        (1e-2, "colored", "float32", "weld"),
    ],
)  # fmt: skip
def test_a_braked_car_stands_on_a_slope(dt: float, solver: Any, dtype: str, brake: str) -> None:
    car, slope = Car(4e4, 4e4), math.radians(10.0)
    sim = simulation(car.build(slope=slope, brake=brake), FASTEST, dt, dtype, joint_solver=solver)
    place = read(sim, "body.chassis.position")
    sim.step(round(10.0 / dt))
    hung = read(sim, "body.chassis.position")
    wanted = car.total * tires.G * math.sin(slope) / (4.0 * 8e4 / LENGTH)
    assert 0.9 * wanted < np.linalg.norm(hung - place) < 2.5 * wanted
    sim.step(round(60.0 / dt))
    assert np.linalg.norm(read(sim, "body.chassis.position") - hung) < (1e-9 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("front, rear", [(5e4, 6e4), (6e4, 5e4), (5e4, 5e4)], ids=["under", "over", "neutral"])
@pytest.mark.parametrize("speed", [5.0, 12.0])
@pytest.mark.parametrize(
    ("dt", "solver"), [pytest.param(1e-3, "direct", marks=pytest.mark.nightly), (1e-2, "direct"), (1e-2, "colored")]
)
def test_yaw_rate_of_a_steady_turn(front: float, rear: float, speed: float, dt: float, solver: Any) -> None:
    car = Car(front, rear, friction=3.0)
    steer = 0.3 / speed**2 * (car.wheelbase + car.understeer * speed**2)
    sim = simulation(car.build(speed, steer), FASTEST, dt, joint_solver=solver)
    sim.step(round(3.0 / dt))
    now = float(np.linalg.norm(read(sim, "body.chassis.linear_velocity")))
    assert now > 0.9 * speed
    assert read(sim, "body.chassis.angular_velocity")[2] == pytest.approx(car.yaw_rate(now, steer), rel=1e-3)


def _energy(sim: Simulation, tire: Tire, mass: float, turning: float) -> float:
    speed, spin = read(sim, "body.wheel.linear_velocity"), read(sim, "body.wheel.angular_velocity")
    height = read(sim, "body.wheel.position")[2]
    bristles = np.asarray(sim.read_state()["contact_slip"][0, 0, 0, 1:], float)
    stored = tire.stiffness * max(RADIUS - height, 0.0) ** 2 + np.asarray(SLIP_STIFFNESS) / LENGTH @ bristles**2
    return float(0.5 * (mass * speed @ speed + turning * spin[1] ** 2 + stored) + mass * tires.G * height)


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize(("mass", "turning"), [(20.0, 0.9), (0.5, 0.03)])
def test_a_wheel_that_spins_down_gains_no_energy(dt: float, mass: float, turning: float) -> None:
    tire = Tire(SLIP_STIFFNESS, LENGTH, RADIAL, 0.05 * math.sqrt(RADIAL * mass), rolling_resistance=0.02, width=0.2)
    sim = simulation(free_wheel(tire, 0.0, 40.0, mass, turning), FASTEST, dt)
    energy = march(sim, np.arange(1, round(3.0 / dt)) * dt, lambda s: _energy(s, tire, mass, turning))
    assert np.diff(energy).max() < 2e-3 * energy[0]
    assert energy[-1] < 0.9 * energy[0]
    assert read(sim, "body.wheel.linear_velocity")[0] > 1.0


@pytest.mark.parametrize("dt", [pytest.param(1e-3, marks=pytest.mark.nightly), 1e-2])
def test_bristles_go_on_over_the_seams_of_a_height_field(dt: float) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, -tires.G))
    waves = 0.03 * np.sin(0.6 * np.arange(121)) * np.ones((5, 1))
    b.add_shape_height_field(-1, waves, (0.25, 0.25), material=Material(friction=1.0))
    given: dict[str, Any] = {"xform": Transform((0, 0, 0.31)), "linear_velocity": (3.0, 0.09, 0)}
    carriage = b.add_body(mass=1.0, inertia=(1, 1, 1), kinematic=True, **given)
    wheel = b.add_body(mass=LOAD / tires.G, inertia=(1e7, 1e7, 1e7), angular_velocity=(0, 10.0, 0), **given)
    slide = b.add_body(mass=1.0, inertia=(1, 1, 1), **given)
    b.add_joint_prismatic(carriage, slide, axis=(0, 0, 1))
    b.add_joint_revolute(slide, wheel, axis=(0, 1, 0))
    tire = Material(friction=1.0, law=Tire(4e4, LENGTH, RADIAL, 2000.0))
    b.add_shape_wheel(wheel, RADIUS, 0.05, tires.AXLE_ACROSS, tire)
    sim = simulation(b, FASTEST, dt)
    sim.step(round(1.0 / dt))
    ages, force = [], []
    for _ in range(round(1.5 / dt)):
        sim.step()
        touch = sim.contacts()
        ages.append(int(sim.read_state()["contact_age"][0, 0, 0]))
        force.append(abs(float(touch.force[0, 1])) / touch.normal_force[0])
    assert np.count_nonzero(np.diff(ages) < 0) > 3, "no seam"
    assert min(force) > 0.2 < max(force) < 0.35
