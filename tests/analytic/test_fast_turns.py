from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


def _energy_change(moments: tuple[float, float, float], turn: float, scheme: str, backend: str) -> float:
    dt = 1e-3
    b = ModelBuilder(gravity=(0, 0, 0))
    speed = turn / dt
    b.add_body(1.0, moments, angular_velocity=(1e-3 * speed, 1e-3 * speed, speed), label="top")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=dt, scheme=scheme))
    before = float(sim.read("sim.kinetic_energy", numpy=True)[0])
    momentum = np.array([1e-3 * moments[0], 1e-3 * moments[1], moments[2]]) * speed
    sim.step(300)
    assert np.allclose(sim.backend.memory.state.arrays["angular_momentum"][0, 0], momentum, rtol=1e-9)
    return float(sim.read("sim.kinetic_energy", numpy=True)[0]) / before - 1.0


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("turn", [0.4, 0.9, 1.2, 3.0])
@pytest.mark.parametrize("moments", [(1.0, 1.0, 2.0), (1.0, 2.0, 3.0), (1.0, 2.0, 1.0 + 1e-9)])
def test_free_spin_keeps_its_energy(moments: tuple[float, float, float], turn: float, backend: str) -> None:
    assert abs(_energy_change(moments, turn, "second_order", backend)) < 1e-8


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("turn", [0.01, 0.1, 1.5])
def test_free_spin_keeps_its_energy_in_the_semi_implicit_scheme(turn: float, backend: str) -> None:
    assert abs(_energy_change((1.0, 2.0, 3.0), turn, "semi_implicit", backend)) < 1e-7


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("turn, scheme", [(0.2, "semi_implicit"), (1.5, "second_order")])
def test_spin_on_a_ball_joint_keeps_its_energy(turn: float, scheme: str, backend: str) -> None:
    """A gimbal at the center of mass applies no torque. The energy doubled in 300 steps."""
    b, speed = ModelBuilder(gravity=(0, 0, 0)), turn / 1e-3
    top = b.add_body(1.0, (1.0, 2.0, 3.0), angular_velocity=(1e-3 * speed, 1e-3 * speed, speed))
    b.add_joint_ball(-1, top, damping=1e-9)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3, scheme=scheme))
    before = sim.read("sim.kinetic_energy")[0]
    sim.step(300)
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(before, rel=1e-7)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("turn", [2.9, 3.3, 4.0, 7.5, -12.0])
def test_a_gear_counts_turns_above_half_a_revolution(turn: float, solver: str, backend: str) -> None:
    dt, steps = 1e-2, 50
    speed = turn / dt
    b = ModelBuilder(gravity=(0, 0, 0))
    rotor = b.add_body(1.0, (1e-4, 1e-4, 1e-4), angular_velocity=(0, 0, speed))
    arm = b.add_body(5.0, (0.5, 0.5, 0.5), xform=Transform((1, 0, 0)), angular_velocity=(0, 0, speed / 100))
    fast = b.add_joint_revolute(-1, rotor, axis=(0, 0, 1), at=(0, 0, 0), label="rotor")
    slow = b.add_joint_revolute(-1, arm, axis=(0, 0, 1), at=(1, 0, 0), label="arm")
    b.add_gear(fast, slow, ratio=0.01)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=dt, joint_solver=solver))
    for step in range(1, steps + 1):
        sim.step()
        assert sim.read("joint.rotor.position", numpy=True)[0] == pytest.approx(step * turn, rel=1e-6)
    assert sim.read("joint.arm.position", numpy=True)[0] == pytest.approx(steps * turn / 100, rel=1e-6)
