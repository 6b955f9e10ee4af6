from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
DT, STEPS = 1e-3, 2000


def _double_arm(rate: float) -> ModelBuilder:
    """Return two slender arms on hinges that rotate as one body about the world's z axis."""
    b = ModelBuilder(gravity=(0, 0, 0))
    last = -1
    for k in range(2):
        arm = b.add_body(
            1.0, (1e-3, 0.02, 0.02), xform=Transform((0.5 * k + 0.25, 0.0, 0.0)),
            linear_velocity=(0.0, rate * (0.5 * k + 0.25), 0.0), angular_velocity=(0.0, 0.0, rate),
        )  # fmt: skip
        b.add_joint_revolute(last, arm, at=(0.5 * k, 0.0, 0.0), axis=(0, 0, 1), label=f"hinge{k}")
        last = arm
    return b


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("turn", [7.4e-9, 7.5e-9, 1e-5])
def test_a_spun_arm_keeps_its_rate(turn: float, backend: str) -> None:
    rate = turn / DT
    config = SolverConfig(dt=DT, joint_solver="direct")
    sim = Simulation(_double_arm(rate).finalize(), backend=backend, config=config)
    energy = float(sim.read("sim.kinetic_energy")[0])
    sim.step(STEPS)
    angle = float(sim.read("joint.hinge0.position")[0])
    assert angle == pytest.approx(rate * DT * STEPS, rel=1e-7)
    assert float(sim.read("joint.hinge1.position")[0]) == pytest.approx(0.0, abs=1e-7 * angle)
    assert float(sim.read("sim.kinetic_energy")[0]) == pytest.approx(energy, rel=1e-9)
    assert float(np.asarray(sim.read("sim.joint_drift_peak")).max()) < 1e-15
