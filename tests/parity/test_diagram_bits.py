from __future__ import annotations

import numpy as np
import pytest

import gpusim
from ci.bench.mixed_diagram import cart, mixed_diagram

WORLDS, STEPS, NAME = 70, 150, "diagram.mixed"
STICKS = np.linspace(-1.0, 1.5, WORLDS)


def simulation(
    backend: str, sticks: np.ndarray = STICKS, threads: int = 1, rate: float | None = None
) -> gpusim.Simulation:
    diagram = mixed_diagram(200)
    assert len(diagram.blocks) == 200
    diagram.rate = rate
    given = {"threads": threads} if backend == "native" else {}
    config = gpusim.SolverConfig(dt=2e-3)
    sim = gpusim.Simulation(cart(diagram), len(sticks), backend=backend, config=config, **given)
    sim.control["stick"] = sticks
    return sim


def after(sim: gpusim.Simulation, steps: int = STEPS) -> dict[str, np.ndarray]:
    sim.step(steps)
    arrays = sim.read_state()
    return {name: np.array(arrays[name]) for name in (NAME, "position", "linear_velocity")}


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name, values in a.items():
        np.testing.assert_array_equal(values, b[name], err_msg=name)


def but_numbers(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return found | {NAME: np.delete(found[NAME], 1, axis=1)}


@pytest.fixture(scope="module")
def native() -> dict[str, np.ndarray]:
    return after(simulation("native"))


@pytest.mark.nightly
@pytest.mark.native
def test_native_is_numpy(native: dict[str, np.ndarray]) -> None:
    assert np.isfinite(native[NAME]).all() and np.ptp(native["position"][:, 0, 0]) > 1e-3
    assert_same(native, after(simulation("numpy")))


@pytest.mark.nightly
@pytest.mark.native
def test_native_is_numpy_at_a_slower_rate() -> None:
    sticks = STICKS[::10]
    slow = after(simulation("native", sticks, rate=150.0))
    assert_same(slow, after(simulation("numpy", sticks, rate=150.0)))
    assert 1.0 < slow[NAME][0, 0] < 0.5 * STEPS


@pytest.mark.nightly
@pytest.mark.native
def test_worlds_in_any_order_and_on_threads(native: dict[str, np.ndarray]) -> None:
    order = np.random.default_rng(1).permutation(WORLDS)
    permuted = after(simulation("native", STICKS[order], threads=2))
    assert_same(but_numbers({name: values[order] for name, values in native.items()}), but_numbers(permuted))
    alone = after(simulation("native", STICKS[13:14]))
    assert_same(but_numbers({name: values[13:14] for name, values in native.items()}), but_numbers(alone))


@pytest.mark.native
def test_a_copied_state_runs_again(native: dict[str, np.ndarray]) -> None:
    sim = simulation("native")
    sim.step(STEPS // 2)
    saved, commands = sim.state.copy(), sim.control.array.copy()
    sim.step(30)
    sim.state.restore(saved, np.arange(WORLDS))
    sim.control.array[:] = commands
    sim.invalidate()
    assert_same(native, after(sim, STEPS - STEPS // 2))


@pytest.mark.native
def test_a_parameter_of_one_world_is_seen_by_the_kernel() -> None:
    sim = simulation("native", STICKS[:3])
    sim.step(5)
    sim.write("diagram.mixed.last.upper", 0.25, worlds=[1])
    sim.write("diagram.mixed.last.lower", 0.25, worlds=[1])
    sim.step()
    found = sim.read("diagram.mixed.last")
    assert found[1] == 0.25 and 0.25 not in (found[0], found[2])
    sim.write("diagram.mixed.last.upper", 0.5, worlds=[1])
    sim.write("diagram.mixed.last.lower", 0.5, worlds=[1])
    sim.step()
    assert sim.read("diagram.mixed.last")[1] == 0.5
