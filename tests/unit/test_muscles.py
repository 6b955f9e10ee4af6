from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

LAUNCHES = [("numpy", "auto"), ("native", "fused"), ("native", "staged"), ("native", "simd")]
BACKENDS = ["numpy", "native"]


def slide(mass: float = 1.0, **more: Any) -> ModelBuilder:
    """Return a slide with a muscle."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    rail = b.add_joint_prismatic(-1, b.add_body(mass, (1e-4,) * 3, label="cart"), axis=(1, 0, 0), label="rail")
    b.add_muscle(rail, **({"peak_force": 1000.0, "length_range": (-0.05, 0.05), "label": "m"} | more))
    return b


def antagonists(mass: float = 1.0) -> ModelBuilder:
    """Return a slide between two muscles."""
    b = slide(mass)
    b.add_muscle(0, 1000.0, (-0.05, 0.05), gear=-1.0, tausmooth=0.2, label="back")
    return b


def simulation(b: ModelBuilder, worlds: int = 1, backend: str = "native", dt: float = 1e-3, **more: Any) -> Simulation:
    launch = more.pop("launch", "auto")
    return Simulation(b.finalize(), worlds, backend=backend, launch=launch, config=SolverConfig(dt=dt, **more))


def moved(sim: Simulation, seconds: float) -> list[float]:
    half = round(0.5 * seconds / sim.config.dt)
    sim.write("joint.rail.position", 0.03)
    seen = []
    for pair in ((0.5, 0.3), (0.1, 0.9)):
        sim.control["m"], sim.control["back"] = pair
        for _ in range(half):
            sim.step()
            seen.append(float(sim.read("joint.rail.position")[0]))
    return seen


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_forces_are_those_of_mujoco(backend: str) -> None:
    mujoco, rng, n = pytest.importorskip("mujoco"), np.random.default_rng(1), 200
    lengths, ranges = np.sort(rng.uniform(0.05, 0.5, (2, n)), axis=0), np.sort(rng.uniform(0.3, 1.6, (2, n)), axis=0)
    p = {
        "peak_force": rng.uniform(10.0, 2000.0, n), "lmin": rng.uniform(0.2, 0.8, n), "lmax": rng.uniform(1.2, 2.0, n),
        "vmax": rng.uniform(0.5, 10.0, n), "fpmax": rng.uniform(0.0, 2.0, n), "fvmax": rng.uniform(1.0, 1.6, n),
    }  # fmt: skip
    sim = simulation(slide(length_range=(0.0, 0.6), operating_range=(0.2, 1.7)), n, backend)
    written = p | {"length_lower": lengths[0], "length_upper": lengths[1]}
    for name, value in (written | {"range_lower": ranges[0], "range_upper": ranges[1]}).items():
        sim.write(f"muscle.m.{name}", value)
    unit = (lengths[1] - lengths[0]) / (ranges[1] - ranges[0])
    length = lengths[0] + (rng.uniform(0.1, 2.2, n) - ranges[0]) * unit
    velocity, activation = rng.uniform(-1.3, 1.3, n) * unit * p["vmax"], rng.uniform(0.0, 1.0, n)
    gear = rng.choice([-1.0, 1.0], n) * rng.uniform(0.1, 3.0, n)
    sim.write("muscle.m.gear", gear)
    sim.write("muscle.m.activation", activation)
    sim.write("joint.rail.position", length / gear)
    sim.write("joint.rail.velocity", velocity / gear)
    names = ("peak_force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")
    expected = []
    for k in range(n):
        own = np.array([*ranges[:, k], *(p[name][k] if name != "scale" else 0.0 for name in names)])
        gain = mujoco.mju_muscleGain(length[k], velocity[k], lengths[:, k], 1.0, own)
        expected.append(activation[k] * gain + mujoco.mju_muscleBias(length[k], lengths[:, k], 1.0, own))
    assert np.max(np.abs(sim.read("muscle.m.force") - expected) / p["peak_force"]) < 1e-12
    assert np.allclose(sim.read("muscle.m.length"), length, rtol=1e-14)
    assert np.allclose(sim.read("muscle.m.velocity"), velocity, rtol=1e-12)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_activation_follows_the_closed_forms(backend: str) -> None:
    """Rise to u: t = tau ((0.5 + 1.5 u) ln((u - a0)/(u - a)) - 1.5 (a - a0))."""
    sim = simulation(slide(timeconst=(0.01, 0.04)), 2, backend)
    sim.control["m"] = u = np.array([0.8, 0.3])
    for steps in (1, 4, 25):
        sim.step(steps)
        a = sim.read("muscle.m.activation")
        assert np.allclose(0.01 * ((0.5 + 1.5 * u) * np.log(u / (u - a)) - 1.5 * a), sim.time, rtol=1e-3)
    start = sim.time
    sim.control["m"] = 0.0
    for steps in (1, 10, 100):
        sim.step(steps)
        share = a / (0.5 + 1.5 * a) * np.exp(-0.5 * (sim.time - start) / 0.04)
        assert np.allclose(sim.read("muscle.m.activation"), 0.5 * share / (1.0 - 1.5 * share), rtol=1e-7)


@pytest.mark.parametrize("tausmooth", [0.0, 0.3])
def test_activation_follows_mujocos_dynamics(tausmooth: float) -> None:
    mujoco, fine = pytest.importorskip("mujoco"), 1e-5
    sim = simulation(slide(tausmooth=tausmooth, timeconst=(0.01, 0.05), activation=0.2))
    a, own = 0.2, np.array([0.01, 0.05, tausmooth])
    for u in (0.9, 0.4, 1.0, 0.0):
        sim.control["m"] = u
        sim.step(20)
        for _ in range(round(0.02 / fine)):
            middle = a + 0.5 * fine * mujoco.mju_muscleDynamics(u, a, own)
            a += fine * mujoco.mju_muscleDynamics(u, middle, own)
        assert np.allclose(sim.read("muscle.m.activation"), a, rtol=0.0, atol=2e-6)


@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
def test_strong_muscles_on_light_parts_stay_stable(scheme: str) -> None:
    heavy, light = (
        moved(simulation(antagonists(mass), dt=5e-3, scheme=scheme), 1.0) for mass in (0.1, 1e-4)
    )  # fmt: skip
    assert np.allclose(heavy, light, atol=1e-3) and np.ptp(light) > 0.05
    assert np.abs(np.diff(light[-40:], 2)).max() < 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_passive_muscles_are_springs_at_any_step(backend: str) -> None:
    stiffness = 2.0 * 1000.0 * 1.3 / 0.3 / 0.4
    for mass, dt, steps in ((1.0, 1e-3, 40), (1e-4, 5e-3, 400)):
        b = slide(mass, operating_range=(1.35, 1.6))
        b.add_muscle(0, 1000.0, (-0.05, 0.05), gear=-1.0, operating_range=(1.35, 1.6), label="back")
        sim, seen = simulation(b, backend=backend, dt=dt), []
        sim.write("joint.rail.position", 0.01)
        for _ in range(steps):
            sim.step()
            seen.append(float(sim.read("joint.rail.position")[0]))
        if mass == 1.0:
            swing = 0.01 * np.cos(np.sqrt(stiffness) * dt * np.arange(1, steps + 1))
            assert np.allclose(seen, swing, atol=1e-3)
        middle = 0.5 * (np.array(seen)[1:] + np.array(seen)[:-1])
        assert 0.009 < np.max(np.abs(middle)) < 0.0101


def test_error_falls_with_the_square_of_the_step() -> None:
    ends = [moved(simulation(antagonists(), dt=dt), 0.32)[-1] for dt in (4e-3, 2e-3, 1e-3, 1.25e-4)]
    errors = np.abs(np.array(ends[:3]) - ends[3])
    assert errors[0] / errors[1] > 3.0 and errors[1] / errors[2] > 3.0 and errors[2] < 2e-5


@pytest.mark.nightly
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_backends_and_launches_agree(solver: str) -> None:
    found, active = [], []
    for backend, launch in LAUNCHES[: 4 if solver == "direct" else 2]:
        sim = simulation(antagonists(), 4, backend, launch=launch, joint_solver=solver)
        sim.control["m"], sim.control["back"] = [0.0, 0.2, 0.6, 1.0], [0.9, 0.1, 0.0, 0.4]
        sim.write("joint.rail.position", [0.03, 0.0, -0.02, 0.09])
        sim.step(60)
        found.append(np.concatenate([sim.read("joint.rail.position"), sim.read("muscle.back.force")]))
        active.append(np.concatenate([sim.read(f"muscle.{name}.activation") for name in ("m", "back")]))
    assert np.allclose(found[0], found[1], rtol=1e-9, atol=1e-12)
    assert all(np.array_equal(found[1], other) for other in found[2:])
    assert all(np.array_equal(active[0], other) for other in active[1:])


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_stop_reset_pose_and_snapshot(backend: str) -> None:
    b = slide(activation=0.1)
    b.add_pose("tense", commands={"m": 0.7}, activations={"m": 0.6})
    sim = simulation(b, 2, backend)
    assert np.allclose(sim.read("muscle.m.activation"), 0.1)
    sim.reset([1], pose="tense")
    assert np.allclose(sim.read("muscle.m.activation"), [0.1, 0.6])
    assert np.allclose(sim.read("muscle.m.excitation"), [0.0, 0.7])
    kept = sim.snapshot()
    sim.step(20)
    ahead = sim.read("muscle.m.activation").copy(), sim.read("joint.rail.position").copy()
    sim.restore(kept)
    sim.step(20)
    assert np.array_equal(ahead, [sim.read("muscle.m.activation"), sim.read("joint.rail.position")])
    sim.control["m"] = 5.0
    assert np.allclose(sim.read("muscle.m.excitation"), 1.0)
    sim.override()
    sim.step(500)
    assert np.all(sim.read("muscle.m.activation") < 1e-2)
    sim.reset()
    assert np.allclose(sim.read("muscle.m.activation"), 0.1)


def test_a_muscle_along_a_line_pulls_its_ends_together() -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    line = b.add_joint_distance(-1, b.add_body(1.0, (0.1, 0.1, 0.1), label="a"), Transform((0.0, 0.0, 0.4)))
    b.add_muscle(line, 50.0, (0.3, 0.5), label="m")
    sim = simulation(b)
    sim.control["m"] = 1.0
    sim.step(50)
    assert float(sim.read("muscle.m.force")[0]) < -5.0 and float(sim.read("body.a.position")[0, 2]) > 1e-3


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"peak_force": -1.0}, "peak_force"),
        ({"length_range": (0.2, 0.1)}, "length_range"),
        ({"operating_range": (1.0, 1.0)}, "operating_range"),
        ({"gear": 0.0}, "gear"),
        ({"timeconst": (0.01, 0.0)}, "timeconst"),
        ({"timeconst": 0.01}, "timeconst"),
        ({"lmin": 1.2}, "lmin"),
        ({"fvmax": 0.9}, "fvmax"),
        ({"vmax": 0.0}, "vmax"),
        ({"activation": 1.5}, "activation"),
        ({"tausmooth": -0.1}, "tausmooth"),
    ],
)
def test_bad_muscles_are_refused(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError, match=naming(word)):
        slide(**arguments)


def test_bad_writes_and_maps_are_refused() -> None:
    sim = simulation(slide(), backend="numpy")
    for name, value in (("vmax", 0.0), ("lmax", 0.9), ("length_lower", 0.1), ("gear", 0.0), ("fpmax", -1.0)):
        with pytest.raises(ModelError, match=naming(name)):
            sim.write(f"muscle.m.{name}", value)
    with pytest.raises(ModelError, match=naming("own activation")):
        slide().set_command_map("m", time_constant=0.1)
