from __future__ import annotations

import itertools

import numpy as np
import pytest

import gpusim
from gpusim.scene import load_scene
from tests.backends import FASTEST

pytestmark = pytest.mark.nightly

WORLDS = 64
STEPS = 40


def _run(scene: str, rates: np.ndarray, solver: str, dtype: str, backend: str) -> np.ndarray:
    loaded = load_scene(scene)
    config = gpusim.SolverConfig(dt=2e-3, substeps=2, joint_solver=solver)
    model = loaded.builder.finalize()
    sim = gpusim.Simulation(model, num_worlds=len(rates), backend=backend, dtype=dtype, config=config)
    label = loaded.builder.bodies[-1].label
    turning = np.array(sim.read(f"body.{label}.angular_velocity", numpy=True))
    turning[:, 1] += rates
    sim.write(f"body.{label}.angular_velocity", turning)
    sim.step(STEPS)
    names = [f"body.{body.label}.position" for body in loaded.builder.bodies]
    return np.stack([np.array(sim.read(name, numpy=True)) for name in names], axis=1)


@pytest.mark.parametrize(("solver", "dtype"), itertools.product(("direct", "colored"), ("float64", "float32")))
@pytest.mark.parametrize("scene", ["double_pendulum", "flyball", "bricard"])
def test_same_bits_permuted_and_alone(scene, solver, dtype):
    check_permuted_and_alone(scene, FASTEST, solver, dtype)


@pytest.mark.parametrize(("solver", "dtype"), [("direct", "float64"), ("colored", "float32")])
def test_same_bits_on_numpy(solver, dtype):
    check_permuted_and_alone("flyball", "numpy", solver, dtype)


def check_permuted_and_alone(scene, backend, solver, dtype):
    rng = np.random.default_rng(7)
    rates = rng.uniform(-0.5, 0.5, WORLDS)
    together = _run(scene, rates, solver, dtype, backend)
    assert len(np.unique(together[:, -1, 0])) > WORLDS // 2, "the worlds must differ for this test to say anything"
    permutation = rng.permutation(WORLDS)
    assert np.array_equal(_run(scene, rates[permutation], solver, dtype, backend), together[permutation])
    for world in (0, 63):
        assert np.array_equal(_run(scene, rates[world : world + 1], solver, dtype, backend)[0], together[world])
