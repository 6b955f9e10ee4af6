from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.description.shape_kinds import Faces, shape_type
from gpusim.machines.omni_wheel import OmniWheel, add_omni_wheel
from gpusim.reference.collide.shapes import Convex, make_shape
from tests.message_snapshot import naming

RADIUS, COUNT, QUARTER = 0.1, 10, 0.25 * math.pi
WHEEL: dict[str, Any] = {
    "radius": RADIUS, "rollers": COUNT, "roller_radius": 0.02, "roller_mass": 0.06, "hub_mass": 0.8,
    "material": Material(friction=0.8),
}  # fmt: skip


def platform() -> tuple[ModelBuilder, int]:
    b = ModelBuilder()
    b.add_shape_plane(-1, material=Material(friction=0.8))
    return b, b.add_body(20.0, (0.5, 0.5, 0.9), xform=Transform((0, 0, RADIUS)), label="platform")


def vehicle(kind: str, **own: Any) -> tuple[ModelBuilder, list[OmniWheel]]:
    """Three omni wheels around the platform, or four mecanum wheels in two rows, with drives that hold their speeds."""
    (b, body), wheels = platform(), []
    if kind == "omni":
        for k in range(3):
            angle = 2.0 * math.pi * k / 3
            place = (-0.3 * math.sin(angle), 0.3 * math.cos(angle), 0.0)
            xform = Transform.from_axis_angle(place, (0, 0, 1), angle)
            wheels.append(add_omni_wheel(b, body, xform, label=f"w{k}", **(WHEEL | own)))
    else:
        for k, (x, y) in enumerate(((0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15))):
            angle = math.copysign(QUARTER, -x * y)
            wheels.append(
                add_omni_wheel(b, body, Transform((x, y, 0)), label=f"w{k}", roller_angle=angle, **(WHEEL | own))
            )
    for k, wheel in enumerate(wheels):
        b.add_servo(wheel.spin, "velocity", damping=200.0, label=f"w{k}")
    return b, wheels


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(
    ("kind", "wanted", "error"),
    [
        ("omni", (0.0, 0.5, 0.0), 1e-4),
        ("omni", (0.3, 0.2, 0.0), 1e-4),
        ("omni", (0.0, 0.0, 1.0), 1e-4),
        ("mecanum", (0.0, 0.5, 0.0), 1e-3),
        ("mecanum", (0.0, 0.0, 1.0), 3e-3),
    ],
)
def test_a_vehicle_moves_at_the_speed_of_massless_rollers(kind, wanted, error):
    b, wheels = vehicle(kind)
    # Four mecanum wheels rock on their diagonals: the mean of ten handovers depends on which one bears the load.
    dt, handovers = (1e-3, 10) if kind == "omni" else (2e-3, 60)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt))
    speeds = [wheel.ideal(wanted) for wheel in wheels]
    found, height = [], []
    # whole handovers of the fastest wheel, so that the mean is one over whole ripples
    span = round(handovers * 2.0 * math.pi / COUNT / max(np.abs(speeds)) / dt)
    start = round(0.5 / dt)
    for step in range(start + span):
        for k, speed in enumerate(speeds):
            sim.control[f"w{k}"] = speed * min(1.0, step * dt / 0.2)
        sim.step()
        if step >= start:
            turn = Transform((0, 0, 0), sim.read("body.platform.orientation")[0]).inverse()
            moving, turning = (sim.read(f"body.platform.{what}_velocity")[0] for what in ("linear", "angular"))
            found.append([*turn.rotate(moving)[:2], turning[2]])
            height.append(sim.read("body.platform.position")[0][2])
    np.testing.assert_allclose(np.mean(found, axis=0), wanted, atol=error)
    assert np.ptp(height) < (5e-6 if kind == "omni" else 2e-5)
    if kind == "omni":
        assert np.std(found, axis=0).max() < 2e-4


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize("roller_mass", [6e-3, 6e-4, 6e-5])
def test_a_platform_stands_on_light_rollers(roller_mass, dt):
    for deep in (0.0, 1e-3):
        b, _ = vehicle("omni", roller_mass=roller_mass)
        for body in b.bodies:
            body.xform = Transform((0.0, 0.0, -deep)) * body.xform
        sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt))
        start = sim.read("body.platform.position")[0][2]
        assert start == pytest.approx(RADIUS - deep)
        sim.step(round(1.0 / dt))
        rise = sim.read("body.platform.position")[0][2] - start
        assert rise == pytest.approx(0.0, abs=1e-7 * (dt / 1e-3) ** 2) if deep == 0.0 else 1e-4 < rise < deep
        load = sum(sim.read(f"body.w{k}_roller0.contact_force")[0][2] for k in range(3))
        assert load == pytest.approx((20.0 + 3 * (0.8 + COUNT * roller_mass)) * 9.81, rel=1e-4)


def reach_down(b: ModelBuilder, wheel: OmniWheel, angle: float) -> float:
    down, most = np.array([math.sin(angle), 0.0, -math.cos(angle)]), 0.0
    for shape in (s for s in b.shapes if s.body in wheel.rollers):
        pose = b.bodies[wheel.hub].xform.inverse() * b.bodies[shape.body].xform
        kind = shape_type(shape.kind)
        barrel = make_shape(kind.number, kind.sizes(shape.params), np.zeros(0), Faces())
        assert isinstance(barrel, Convex)
        local = np.asarray(pose.inverse().rotate(down))
        most = max(most, float(np.dot(pose.position, down) + barrel.extents(local[None])[0]))
    return most


@pytest.mark.parametrize(
    ("roller_angle", "gap", "low", "high"),
    [(0.0, 0.0, -1e-12, 1e-12), (QUARTER, 0.0, -1e-12, 14e-6), (-0.5, 0.0, -1e-12, 1e-5), (0.0, 8e-3, -8e-5, 1e-12)],
)
def test_the_rollers_make_up_one_circle(roller_angle, gap, low, high):
    """A gap g between rollers lowers the wheel by g^2/(8 radius), 80 um."""
    b, body = platform()
    wheel = add_omni_wheel(b, body, Transform(), label="w", roller_angle=roller_angle, gap=gap, **WHEEL)
    found = np.array([reach_down(b, wheel, angle) for angle in np.linspace(0.0, 2.0 * math.pi / COUNT, 61)]) - RADIUS
    assert low <= found.min() <= max(0.8 * low, -1e-12) + 1e-12 and found.max() <= high
    assert high < 1e-9 or found.max() > 0.5 * high


def test_what_is_added():
    b, body = platform()
    wheel = add_omni_wheel(b, body, Transform((0.1, 0.2, 0.0)), label="fl", bearing_damping=0.01, **WHEEL)
    model = b.finalize()
    assert [s.label for s in model.bodies][wheel.hub] == "fl_hub" and model.labels("joint")[wheel.spin] == "fl_spin"
    assert [model.bodies[k].label for k in wheel.rollers] == [f"fl_roller{k}" for k in range(COUNT)]
    assert model.joints[wheel.bearings[3]].child == wheel.rollers[3]
    assert sum(s.mass for s in model.bodies[1:]) == pytest.approx(0.8 + COUNT * 0.06)
    ground = model.contact.candidates
    assert ground[0] == list(range(1, 1 + COUNT)) and not any(ground[1:]), "rollers touch the ground alone"


def test_ideal_speeds():
    b, body = platform()
    omni = add_omni_wheel(b, body, Transform((0.0, 0.3, 0.0)), label="a", **WHEEL)
    mecanum = add_omni_wheel(b, body, Transform((0.2, 0.15, 0.0)), label="b", roller_angle=-QUARTER, **WHEEL)
    mean = (math.pi / COUNT) / math.sin(math.pi / COUNT)
    assert omni.ideal((0.5, 7.0, 1.0)) == pytest.approx((0.5 - 0.3) / RADIUS)
    assert mecanum.ideal((0.5, 0.2, 1.0)) == pytest.approx((0.5 - 0.15 - mean * (0.2 + 0.2)) / RADIUS)
    with pytest.raises(ModelError):
        omni.ideal((1.0, 2.0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rollers": 4}, "4 6 roller_radius 0.0308"),
        ({"gap": -0.001}, "gap -0.001"),
        ({"gap": 0.05}, "2 0.0401"),
        ({"rollers": 40, "gap": 0.016}, "40"),
        ({"rollers": 2}, "rollers 2 3"),
        ({"rollers": 8.5}, "rollers 8.5"),
        ({"roller_radius": 0.05}, "roller_radius 0.05"),
        ({"roller_angle": 1.5}, "roller_angle 1.5"),
        ({"roller_mass": 0.0}, "roller_mass"),
        ({"hub_mass": -1.0}, "hub_mass"),
    ],
)
def test_bad_parameters(given, words):
    b, body = platform()
    with pytest.raises(ModelError, match=naming(f"'fl' {words}")):
        add_omni_wheel(b, body, Transform(), label="fl", **(WHEEL | given))
    assert len(b.bodies) == 1, "nothing is added"
