from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform


def arm(bushing: bool) -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    parent = -1
    for k, name in enumerate(("first", "second")):
        link = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((k + 0.5, 0.0, 0.0)), label=name)
        more = {"limit_lower": -2.0, "limit_upper": -0.3} if k == 0 else {}
        b.add_joint_revolute(parent, link, at=(float(k), 0, 0), axis=(0, 1, 0), label=f"j{k}", damping=1.0, **more)
        parent = link
    if bushing:
        b.add_bushing(-1, parent, Transform((2, 0, 0)), Transform((0.5, 0, 0)), stiffness=[1.0] * 6, damping=[0.1] * 6)
    return b


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("bushing", [False, True])
def test_a_joint_returns_from_beyond_its_limit_at_1_rad_per_s(bushing: bool, backend: str) -> None:
    sim = Simulation(arm(bushing).finalize(), backend=backend, config=SolverConfig(dt=2e-3))
    sim.step(50)
    assert sim.read("joint.j0.position") == pytest.approx(-0.1, abs=1e-6)
    sim.step(250)
    assert np.all(sim.read("joint.j0.position") < -0.29)


def test_a_bushing_closes_no_stiff_loop() -> None:
    topology = arm(True).finalize().topology
    assert topology.in_loop.all() and not topology.in_stiff_loop.any()
