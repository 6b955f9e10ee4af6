from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

pytestmark = pytest.mark.nightly

COORDINATES = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "ball": 3, "universal": 2, "planar": 3}
BODIES, DT, STEPS = 4, 2e-3, 200


def random_frame(rng: np.random.Generator) -> Transform:
    return Transform.from_axis_angle(rng.normal(size=3) * 0.3, rng.normal(size=3), rng.uniform(-3.0, 3.0))


def random_machine(seed: int) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder()
    poses: list[Transform] = []
    for i in range(BODIES):
        parent = int(rng.integers(-1, i)) if i else -1
        frame_a, frame_b = random_frame(rng), random_frame(rng)
        start = poses[parent] if parent >= 0 else Transform()
        poses.append(start * frame_a * frame_b.inverse())
        inertia = rng.uniform(0.5, 1.0, 3) * 10 ** rng.uniform(-3, -1)
        b.add_body(10 ** rng.uniform(-1, 1), inertia, com=rng.normal(size=3) * 0.2, xform=poses[-1])
        kind = str(rng.choice(list(COORDINATES)))
        count = COORDINATES[kind]
        options: dict[str, object] = {"friction": rng.uniform(0.0, 1.0, count), "damping": rng.uniform(0.0, 1.0, count)}
        if kind == "ball":
            options["limit"] = float(rng.uniform(0.2, 1.5))
        else:
            options["limit_lower"] = rng.uniform(-0.8, -0.1, count)
            options["limit_upper"] = rng.uniform(0.1, 0.8, count)
        if count == 1:
            options = {name: float(np.ravel(value)[0]) for name, value in options.items()}
        getattr(b, f"add_joint_{kind}")(parent, i, frame_a, frame_b, **options)
    return b


@pytest.mark.parametrize(("seed", "backend"), [*((seed, "auto") for seed in range(12)), (0, "numpy")])
def test_a_passive_machine_never_gains_energy(seed: int, backend: str) -> None:
    sim = Simulation(random_machine(seed).finalize(), backend=backend, config=SolverConfig(dt=DT))

    def energy() -> float:
        return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])

    energies = [energy()]
    for _ in range(STEPS // 10):
        sim.step(10)
        energies.append(energy())
        assert sim.read("sim.joint_drift")[0] < 1e-7
    assert sim.health().all(), sim.health_report()
    assert np.diff(energies).max() < 0.0
