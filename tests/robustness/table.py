from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from gpusim import Simulation, SolverConfig
from tests.robustness import driven, joined, touching
from tests.robustness.setups import SETUPS, SetUp

__all__ = ["SETTINGS", "SETUPS", "driven", "joined", "run", "touching"]


@dataclass(frozen=True)
class Setting:
    """Solver, step (s) and number type."""

    solver: str
    dt: float
    dtype: str = "float64"


SETTINGS = {
    "direct_1ms": Setting("direct", 1e-3),
    "colored_1ms": Setting("colored", 1e-3),
    "direct_10ms": Setting("direct", 1e-2),
    "colored_10ms": Setting("colored", 1e-2),
    "direct_50ms": Setting("direct", 5e-2),
    "direct_1ms_float32": Setting("direct", 1e-3, "float32"),
}
#: How often speeds and gaps are looked at, s.
LOOK = 0.05


def run(setup: SetUp, setting: Setting) -> list[str]:
    config = SolverConfig(dt=setting.dt, joint_solver=setting.solver)
    sim = Simulation(setup.build().finalize(), backend="native", threads=1, dtype=setting.dtype, config=config)
    if setup.begin:
        setup.begin(sim)
    fastest = gap = overlap = 0.0
    steps = max(1, round(0.01 / setting.dt))
    looks = max(1, round(LOOK / (steps * setting.dt)))
    total = round(setup.seconds / (steps * setting.dt))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(total):
            sim.step(steps)
            if not sim.health()[0]:
                return [f"stops at {k * steps * setting.dt:.2f} s: {sim.health_report()}"]
            fastest = max(fastest, speed := float(np.abs(sim.state.arrays["linear_velocity"]).max()))
            if k % looks == looks - 1:
                gap = max(gap, float(sim.read("sim.joint_drift")[0]))
                overlap = max(overlap, float(sim.read("sim.penetration")[0])) if sim.model.contact.num_shapes else 0.0
    wider = max(1.0, setting.dt / 1e-3) ** 0.5
    end = [
        (fastest, setup.speed, "m/s fast"),
        (gap, wider * setup.gap, "m gap of joints"),
        (overlap, wider * setup.overlap, "m overlap"),
        (speed, setup.end_speed, "m/s in the end"),
    ]
    return [f"{value:.3g} {what} (at most {bound:g})" for value, bound, what in end if not value <= bound]
