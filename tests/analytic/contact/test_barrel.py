from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Transform
from tests.backends import FASTEST, on_backends

from .runs import march, positions, read, simulation

RADIUS, ARC, HALF = 0.02, 0.1, 0.03
SLOPE = 0.1
ROLLERS, RATE = 8, 5.0
LYING = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)
SLOP = 1e-9


@pytest.mark.nightly
@pytest.mark.parametrize(("substeps", "backend"), on_backends([1, 4], [4]))
def test_rolls_down_a_slope_by_its_radius_in_the_middle(substeps, backend):
    """Closed form: m a = m g sin(slope) - a I/r^2."""
    b = ModelBuilder()
    slope = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), SLOPE)
    b.add_shape_plane(-1, xform=slope, material=Material(friction=0.5))
    body = b.add_body(xform=slope * Transform((0, 0, RADIUS)) * LYING)
    b.add_shape_barrel(body, RADIUS, ARC, HALF, material=Material(friction=0.5))
    sim = simulation(b, backend, 1e-3, substeps=substeps, contact_slop=SLOP)
    times = np.array([0.5, 1.0]) if backend == FASTEST else np.array([0.02, 0.04])
    start = positions(sim)[0]
    found = march(sim, times, lambda s: positions(s)[0] - start)
    mass, inertia = float(read(sim, "body.body0.mass")), read(sim, "body.body0.inertia")[2, 2]
    rate = 9.81 * math.sin(SLOPE) / (1.0 + inertia / (mass * RADIUS**2))
    np.testing.assert_allclose(found @ slope.rotate((1, 0, 0)), 0.5 * rate * times**2, rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-9)
    np.testing.assert_allclose(found @ slope.rotate((0, 0, 1)), 0.0, atol=1e-7)


@pytest.mark.slow_numpy
@pytest.mark.parametrize(("ground", "backend"), on_backends(["plane", "box"], ["plane"]))
def test_one_that_is_cut_from_a_ball_rolls_as_the_ball(ground, backend):
    def path(ball: bool) -> np.ndarray:
        b, given = ModelBuilder(), {"angular_velocity": (2.0, 5.0, 3.0), "linear_velocity": (0.5, -0.2, 0.0)}
        if ground == "plane":
            b.add_shape_plane(-1)
        else:
            b.add_shape_box(-1, (5.0, 5.0, 1.0), xform=Transform((0.0, 0.0, -1.0)))
        body = b.add_body(1.0, (4e-3, 4e-3, 4e-3), xform=Transform((0, 0, 0.1)) * LYING, **given)
        if ball:
            b.add_shape_sphere(body, 0.1)
        else:
            b.add_shape_barrel(body, 0.1, 0.1, 0.085)
        sim = simulation(b, backend, 2e-3, substeps=2, contact_slop=SLOP)
        times = np.linspace(0.05, 0.3, 6) if backend == FASTEST else np.array([0.01, 0.02])
        return march(sim, times, lambda s: [read(s, "body.body0.position"), read(s, "body.body0.angular_velocity")])

    np.testing.assert_allclose(path(ball=False), path(ball=True), atol=1e-9 if ground == "plane" else 1e-5)


def test_stands_on_its_end():
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_shape_barrel(b.add_body(xform=Transform((0, 0, HALF))), RADIUS, ARC, HALF)
    lean = Transform.from_axis_angle((1, 0, HALF), (0, 1, 0), 0.02)
    b.add_shape_barrel(b.add_body(xform=lean), RADIUS, ARC, HALF)
    sim = simulation(b, FASTEST, 1e-3)
    sim.step(500)
    assert len(sim.contacts().of("shape1")) == 4
    np.testing.assert_allclose(positions(sim)[:2], [[0, 0, HALF], [1, 0, HALF]], atol=1e-3)
    np.testing.assert_allclose(positions(sim)[0], [0, 0, HALF], atol=1e-6)
    np.testing.assert_allclose(positions(sim)[:, 2], HALF, atol=2e-5)


def wheel(kind: str) -> ModelBuilder:
    b, material = ModelBuilder(), Material(friction=0.8)
    b.add_shape_plane(-1, material=material, mask=2)
    center, spin = np.array([0.0, 0.0, ARC]), np.array([0.0, RATE, 0.0])
    moving = {"linear_velocity": (RATE * ARC, 0.0, 0.0), "angular_velocity": tuple(spin)}
    hub = b.add_body(3.0, (0.005, 0.005, 0.005), xform=Transform(tuple(center)), label="hub", **moving)
    b.add_joint_planar(-1, hub, axis=(0, 1, 0))
    sine, cosine, axle = math.sin(math.pi / ROLLERS), math.cos(math.pi / ROLLERS), ARC - RADIUS
    long = math.sqrt((ARC - axle * cosine) ** 2 - (RADIUS * cosine) ** 2) / sine
    for k in range(ROLLERS):
        angle = 2.0 * math.pi * k / ROLLERS
        place = np.array([axle * math.sin(angle), 0.0, -axle * math.cos(angle)])
        at = Transform.from_axis_angle(tuple(place), (0, 1, 0), 0.5 * math.pi - angle)
        moving["linear_velocity"] = tuple(np.array([RATE * ARC, 0.0, 0.0]) + np.cross(spin, place))
        roller = b.add_body(0.05, (1e-5, 1e-5, 1e-5), xform=Transform(tuple(center)) * at, **moving)
        if kind == "barrel":
            b.add_shape_barrel(roller, RADIUS, ARC, ARC * sine, material=material, group=2, mask=1)
        else:
            b.add_shape_ellipsoid(roller, (RADIUS, RADIUS, long), material=material, group=2, mask=1)
        b.add_joint_revolute(hub, roller, at, Transform(), axis=(0, 0, 1))
    return b


def bumps(kind: str, backend: str, turn: float, solver: str = "direct") -> tuple[float, float]:
    dt = 1e-3
    sim = simulation(wheel(kind), backend, dt, substeps=4, contact_slop=SLOP, joint_solver=solver)
    times = dt * np.arange(1, round(turn / (RATE * dt)))
    height = march(sim, times, lambda s: read(s, "body.hub.position")[2]) - ARC
    return float(height.min()), float(height.max())


@pytest.mark.nightly
@pytest.mark.native
def test_rollers_hand_over_without_a_bump():
    low, high = bumps("barrel", "native", 2.0 * math.pi)
    assert -2e-7 < low <= high < 2e-7
    low, high = bumps("ellipsoid", "native", 2.0 * math.pi)
    assert high - low > 1e-4
