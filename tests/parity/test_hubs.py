"""Bodies with many joints (hubs). The kernels factor hubs differently from NumPy, so NumPy is an independent check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, SolverConfig
from gpusim.compiler.hubs import find_hubs
from tests.parity.hub_models import octopod

LAUNCHES = [("fused", 1), ("staged", 1), ("simd", 2)]


def differences(builder: ModelBuilder, launch: str, worlds: int, steps: int, **config: Any) -> dict[str, float]:
    """Return the largest differences between native and NumPy after each of some steps from the same state."""
    model = builder.finalize()
    settings = SolverConfig(**{"dt": 2e-3, "iterations": 30, "impulse_tolerance": 1e-13} | config)
    reference = Simulation(model, worlds, backend="numpy", config=settings)
    native = Simulation(model, worlds, backend="native", config=settings, launch=launch)
    rng = np.random.default_rng(2)
    reference.write("body.hull.linear_velocity", rng.normal(size=(worlds, 3)) * [0.3, 0.3, 0.0])
    found = {"position": 0.0, "linear_velocity": 0.0, "angular_momentum": 0.0}
    for _ in range(steps):
        native.restore(reference.snapshot())
        reference.step()
        native.step()
        a, b = reference.read_state(), native.read_state()
        for name in found:
            found[name] = max(found[name], float(np.abs(a[name] - b[name]).max()))
    return found


def test_the_platform_is_the_only_hub() -> None:
    model = octopod().finalize()
    assert model.topology.hubs == {0: len(model.joints)}
    plain, hubs = model.topology.elimination, model.topology.hub_factorization[0]
    assert len(hubs.edge_blocks) < len(plain.edge_blocks) and len(hubs.levels) < len(plain.levels)


@pytest.mark.parametrize(
    ("moving", "grounded", "hubs"),
    [
        ([{0, k} for k in range(1, 8)], [False] * 7, [0]),
        ([{0, k} for k in range(1, 7)], [False] * 6, []),
        ([*({0, k} for k in range(1, 8)), {0}], [False] * 7 + [True], [0]),
        ([*({0, k} for k in range(1, 8)), {1}], [False] * 7 + [True], []),
        ([*({0, k} for k in range(1, 8)), *({7, k} for k in range(8, 17))], [False] * 16, [7]),
        ([*({0, k} for k in range(1, 8)), *({20, k} for k in range(21, 29))], [False] * 15, [0, 20]),
    ],
)
def test_a_group_has_at_most_one_hub_and_the_ground_acts_only_on_it(
    moving: list[set[int]], grounded: list[bool], hubs: list[int]
) -> None:
    assert find_hubs(moving, grounded) == hubs


@pytest.mark.parametrize(("launch", "worlds"), LAUNCHES)
@pytest.mark.parametrize(
    "changes",
    [
        {},  # few contacts: Newton's method
        {"feet": "box"},  # more contacts: sweeps
        {"bars": True},
        {"ground": True},
        {"ground": True, "held": True},  # dependent rows, and a gap that the position correction closes
        {"height": 0.48},  # deep contacts are pushed out
        {"keel": True},  # the hub itself touches the ground
    ],
    ids=str,
)
def test_kernels_agree_with_numpy(changes: dict[str, Any], launch: str, worlds: int) -> None:
    found = differences(octopod(**changes), launch, worlds, 3)
    assert max(found.values()) < 2e-8, found


@pytest.mark.parametrize("config", [{"scheme": "semi_implicit"}, {"joint_solver": "colored"}, {"substeps": 2}], ids=str)
def test_settings_agree_with_numpy(config: dict[str, Any]) -> None:
    assert max(differences(octopod(bars=True, keel=True), "fused", 1, 3, **config).values()) < 2e-8


def test_a_hub_in_colored_joints_is_colored() -> None:
    b = octopod()
    b.set_joint_solver(range(len(b.joints)), "colored")
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(joint_solver="auto"))
    assert sim.config.joint_solver == "colored"


def test_momentum_of_a_free_machine_stays() -> None:
    b = octopod(height=3.0, bars=True)
    b.gravity = (0.0, 0.0, 0.0)
    sim = gpusim.Simulation(b.finalize(), config=SolverConfig(dt=2e-3))
    sim.write("body.hull.linear_velocity", (0.5, -0.2, 0.1))
    mass = np.array([body.mass for body in sim.model.bodies] + [0.0])

    def momentum() -> np.ndarray:
        return np.asarray(mass @ sim.read_state()["linear_velocity"][0])

    sim.step()
    before = momentum()
    sim.step(500)
    assert np.abs(momentum() - before).max() < 1e-11
