from __future__ import annotations

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform

G = 9.81
BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
FEET = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))


def _table(drop: float, joint: str) -> ModelBuilder:
    """Return a top of 100 kg on four legs of 5 kg, each held by a fixed or a locked joint."""
    b = ModelBuilder()
    b.add_shape_plane(-1, material=Material(friction=0.6))
    top = b.add_body(100.0, (10.0, 10.0, 20.0), xform=Transform((0.0, 0.0, 1.05 + drop)))
    for k, (x, y) in enumerate(FEET):
        leg = b.add_body(5.0, (0.4, 0.4, 0.02), xform=Transform((x, y, 0.5 + drop)))
        at = (x, y, 1.0 + drop)
        if joint == "fixed":
            b.add_joint_fixed(top, leg, at=at)
        else:
            b.add_joint_revolute(top, leg, at=at, axis=(0, 1, 0), limit_lower=0.0, limit_upper=0.0)
        b.add_shape_box(leg, (0.05, 0.05, 0.5), material=Material(friction=0.6), label=f"foot{k}")
    return b


def _loads(sim: Simulation) -> np.ndarray:
    return np.array([sim.read(f"shape.foot{k}.contact_force", numpy=True)[0, 2] for k in range(len(FEET))])


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("drop", [0.0, 0.1])
def test_legs_of_a_table_bear_a_quarter_each(drop: float, backend: str) -> None:
    sim = Simulation(_table(drop, "fixed").finalize(), backend=backend, config=SolverConfig(dt=5e-3))
    sim.step(300)
    assert np.allclose(_loads(sim), 120.0 * G / 4.0, rtol=1e-3)


@pytest.mark.native
@pytest.mark.parametrize("iterations", [8, 64])
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_legs_on_locked_hinges_bear_nearly_a_quarter(dt: float, iterations: int) -> None:
    config = SolverConfig(dt=dt, iterations=iterations)
    sim = Simulation(_table(0.1, "locked").finalize(), backend="native", config=config)
    sim.step(round(1.5 / dt))
    assert _loads(sim).sum() == pytest.approx(120.0 * G, rel=1e-4)
    assert np.allclose(_loads(sim), 120.0 * G / 4.0, rtol=0.03)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dt", [2e-3, 5e-3])
@pytest.mark.parametrize("wheels", [4, 6])
def test_a_skid_steer_vehicle_drives_straight(wheels: int, dt: float) -> None:
    b = ModelBuilder()
    ground = Material(friction=0.9)
    b.add_shape_plane(-1, material=ground)
    chassis = b.add_body(600.0, (60.0, 120.0, 150.0), xform=Transform((0.0, 0.0, 0.5)), label="chassis")
    for x in np.linspace(0.6, -0.6, wheels // 2):
        for y in (0.5, -0.5):
            place = Transform.from_axis_angle((float(x), y, 0.3), (1, 0, 0), np.pi / 2)
            wheel = b.add_body(20.0, (0.5, 0.5, 0.9), xform=place)
            axle = b.add_joint_revolute(chassis, wheel, at=(float(x), y, 0.3), axis=(0, 1, 0))
            b.add_shape_wheel(wheel, radius=0.3, edge_radius=0.05, material=ground)
            b.add_servo(axle, mode="velocity", damping=500.0, effort_limit=300.0, target=5.0)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt))
    sim.step(round(30.0 / dt))
    x, y, _ = sim.read("body.chassis.position", numpy=True)[0]
    assert 44.0 < x < 45.0
    assert abs(y) < 1e-3
