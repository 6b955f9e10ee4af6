from __future__ import annotations

import itertools
import math
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.control import Diagram

G = 9.81
WEIGHT = 5000 * G


def hoist() -> Model:
    b = ModelBuilder()
    load = b.add_body(5000, (1000, 1000, 1000), xform=Transform((0, 0, -10)), label="load")
    rope = b.add_joint_distance(-1, load, at_a=(0, 0, 0), at_b=(0, 0, -10), max_distance=10.0, label="rope")
    b.add_force_sensor(rope, label="cell")
    return b.finalize()


def reel(sim: Simulation, rate: float, steps: int, joint: str = "rope", start: float = 10.0) -> float:
    worst, dt = 0.0, sim.config.dt
    for k in range(steps):
        length = start - rate * (k + 1) * dt
        sim.write(f"joint.{joint}.limit_upper", length)
        sim.step()
        worst = max(worst, float(np.abs(sim.read(f"joint.{joint}.position", numpy=True) - length).max()))
    return worst


CASES = [
    *itertools.product((0.5, 2.0), ((1e-3, 1), (5e-3, 4), (1e-2, 8), (1e-2, 1)), ("direct", "colored"), ("numpy",)),
    *((2.0, (5e-3, 4), solver, "native") for solver in ("direct", "colored")),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("rate", "steps", "solver", "backend"), CASES)
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
def test_load_follows_a_rope_that_is_reeled_in(
    rate: float, steps: tuple[float, int], solver: str, backend: str, scheme: str
) -> None:
    config = SolverConfig(dt=steps[0], substeps=steps[1], joint_solver=solver, scheme=scheme)
    sim = Simulation(hoist(), backend=backend, config=config)
    sim.step(3)
    assert reel(sim, rate, 20) < 1e-9
    assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(rate, rel=1e-9)
    for name in ("joint.rope.reaction", "sensor.cell.force"):
        assert sim.read(name)[0, 2] == pytest.approx(-WEIGHT, rel=1e-6)
    assert sim.read("joint.rope.tension")[0] == pytest.approx(WEIGHT, rel=1e-6)


@pytest.mark.nightly
def test_rope_that_is_let_out_lets_the_load_fall_until_it_is_taut() -> None:
    sim = Simulation(hoist(), backend="numpy", config=SolverConfig(dt=2e-3, substeps=2))
    sim.step(3)
    reel(sim, -0.5, 20)
    assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(-G * 0.04, rel=0.02)
    assert sim.read("joint.rope.tension")[0] == pytest.approx(0.0, abs=1e-6 * WEIGHT)
    reel(sim, -0.5, 60, start=10.02)
    assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(-0.5, rel=1e-9)
    assert sim.read("joint.rope.tension")[0] == pytest.approx(WEIGHT, rel=1e-6)


@pytest.mark.nightly
def test_load_goes_on_when_the_rope_stops_and_holds_when_it_is_taut_again() -> None:
    sim = Simulation(hoist(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.step(3)
    reel(sim, 0.5, 20)
    sim.step(10)
    assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(0.5 - G * 0.01, rel=0.05)
    sim.step(400)
    assert sim.read("joint.rope.position")[0] == pytest.approx(10 - 0.01, abs=1e-9)
    assert sim.read("joint.rope.tension")[0] == pytest.approx(WEIGHT, rel=1e-6)


@pytest.mark.nightly
def test_length_that_jumps_pulls_as_a_limit_that_was_passed() -> None:
    sim = Simulation(hoist(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write("joint.rope.limit_upper", 9.99)
    sim.step(5)
    assert 0.0 < sim.read("body.load.linear_velocity")[0, 2] <= 1.0 + 1e-9
    sim.step(200)
    sim.write("joint.rope.limit_upper", 9.0)
    for _ in range(50):
        sim.step()
        assert abs(sim.read("body.load.linear_velocity")[0, 2]) <= 1.0 + 1e-9


def test_reset_and_worlds() -> None:
    sim = Simulation(hoist(), 2, backend="numpy", config=SolverConfig(dt=2e-3))
    sim.step(3)
    for k in range(10):
        sim.write("joint.rope.limit_upper", np.array([10.0 - 2e-3 * (k + 1), 10.0 - 1e-3 * (k + 1)]))
        sim.step()
    assert sim.read("body.load.linear_velocity")[:, 2] == pytest.approx([1.0, 0.5], rel=1e-9)
    sim.write("joint.rope.limit_upper", 10.0)
    sim.reset()
    sim.step(5)
    assert sim.read("joint.rope.position") == pytest.approx(10.0, abs=1e-9)
    assert sim.read("joint.rope.tension") == pytest.approx(WEIGHT, rel=1e-6)


def test_rope_starts_to_be_reeled_at_run_time() -> None:
    b = ModelBuilder()
    load = b.add_body(10, (1, 1, 1), xform=Transform((0, 0, -2)), label="load")
    b.add_joint_distance(-1, load, at_a=(0, 0, 0), at_b=(0, 0, -2), label="rope")
    other = b.add_body(10, (1, 1, 1), xform=Transform((1, 0, -2)))
    b.add_joint_distance(-1, other, at_a=(1, 0, 0), at_b=(1, 0, -2), max_distance=2.0, label="other")
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write("joint.rope.limit_upper", 2.0)
    sim.step(3)
    assert reel(sim, 0.5, 10, start=2.0) < 1e-9
    assert sim.read("joint.rope.tension")[0] == pytest.approx(10 * G)
    assert sim.read("joint.other.tension")[0] == pytest.approx(10 * G)


def test_jacks_push_with_their_lower_limit() -> None:
    b = ModelBuilder()
    load = b.add_body(10, (1, 1, 1), xform=Transform((0, 0, 1)), label="load")
    guide = b.add_joint_prismatic(-1, load, axis=(0, 0, 1), at=(0, 0, 1))
    b.add_joint_distance(-1, load, at_a=(0, 0, 0), at_b=(0, 0, 1), min_distance=1.0, label="jack")
    assert guide == 0
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.step(3)
    for k in range(20):
        sim.write("joint.jack.limit_lower", 1.0 + 2e-3 * (k + 1))
        sim.step()
    assert sim.read("joint.jack.position")[0] == pytest.approx(1.04, abs=1e-9)
    assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(2.0)
    assert sim.read("joint.jack.tension")[0] == pytest.approx(-10 * G)


def test_bounce_on_a_rope_that_moves_is_relative_to_it() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    load = b.add_body(10, (1, 1, 1), xform=Transform((0, 0, -1)), linear_velocity=(0, 0, -1.0), label="load")
    line = b.add_joint_distance(-1, load, at_a=(0, 0, 0), at_b=(0, 0, -1), label="line")
    b.add_tendon([(line, 1.0)], limit_upper=1.1, limit_restitution=0.5, label="rope")
    for backend in ("numpy", "native"):
        sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
        sim.step()
        reel(sim, 0.5, 80, start=1.1)
        assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(0.5 + 0.5 * 1.5, rel=1e-6)


def pulleys(**length: Any) -> Model:
    """A movable pulley: the block hangs in two falls, the end in one."""
    b = ModelBuilder()
    terms = []
    for name, mass, x, factor in (("block", 3.0, -0.5, 2.0), ("end", 1.0, 0.5, 1.0)):
        body = b.add_body(mass, (0.01, 0.01, 0.01), xform=Transform((x, 0, -2)), label=name)
        terms.append((b.add_joint_distance(-1, body, at_a=(x, 0, 0), at_b=(x, 0, -2), label=name), factor))
    b.add_tendon(terms, limit_upper=6.0, label="rope")
    d = Diagram("guard")
    pull = d.add("signal", "pull", signal="joint.rope.tension")
    d.connect(pull, d.add("gain", "double", gain=2.0))
    b.add_diagram(d)
    return b.finalize()


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("substeps", [1, 4])
def test_tension_is_the_same_all_along_a_rope_over_pulleys(backend: str, solver: str, substeps: int) -> None:
    config = SolverConfig(dt=5e-3, substeps=substeps, joint_solver=solver, iterations=100)
    sim = Simulation(pulleys(), backend=backend, config=config)
    sim.step(40)
    a = (2.0 - 3.0) * G / (3.0 + 4.0)
    for name in ("rope", "block", "end"):
        assert sim.read(f"joint.{name}.tension")[0] == pytest.approx(G - 2 * a, rel=1e-6)
    sim.step()
    assert sim.read("diagram.guard.double")[0] == pytest.approx(2 * (G - 2 * a), rel=1e-6)


def test_rope_over_a_trolley() -> None:
    b = ModelBuilder()
    trolley = b.add_body(100.0, (10, 10, 10), xform=Transform((0, 0, 5)), label="trolley")
    rail = b.add_joint_prismatic(-1, trolley, axis=(1, 0, 0), at=(0, 0, 5), label="rail")
    b.add_brake(rail, torque=1e6, command=1.0)
    load = b.add_body(500.0, (20, 20, 20), xform=Transform((0, 0, 3)), label="load")
    fall = b.add_joint_distance(trolley, load, at_a=(0, 0, 5), at_b=(0, 0, 3), label="fall")
    b.add_tendon([(fall, 1.0), (rail, 1.0)], limit_upper=2.0, label="rope")
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.step(50)
    for name in ("rope", "fall"):
        assert sim.read(f"joint.{name}.tension")[0] == pytest.approx(4905.0, rel=1e-6)
    assert sim.signals()["joint.rope.tension"].unit == "N"


def test_tension_of_rods_springs_and_slack_ropes() -> None:
    b = ModelBuilder()
    for name, x, z in (("up", 0, 1.0), ("down", 1, -1.0), ("sprung", 2, -1.0), ("slack", 3, -1.0)):
        body = b.add_body(2.0, (0.1, 0.1, 0.1), xform=Transform((x, 0, z)), label=name)
        b.add_joint_prismatic(-1, body, axis=(0, 0, 1), at=(x, 0, z), label=f"{name}_guide")
        length = {} if name == "sprung" else {"max_distance": 1.5 if name == "slack" else 1.0}
        if name in ("up", "down"):
            length["min_distance"] = 1.0
        joint = b.add_joint_distance(-1, body, at_a=(x, 0, 0), at_b=(x, 0, z), label=f"{name}_line", **length)
        if name == "sprung":
            b.add_torsion_spring(joint, 2.0 * G / 0.01, rest_angle=0.99)
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    assert sim.read("joint.down_line.tension")[0] == 0.0
    sim.step(10)
    tension = [sim.read(f"joint.{name}_line.tension")[0] for name in ("up", "down", "sprung", "slack")]
    assert tension == pytest.approx([-2 * G, 2 * G, 2 * G, 0.0], rel=1e-6, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@pytest.mark.parametrize("substeps", [1, 2, 3, 4])
def test_tension_is_the_mean_over_the_step(substeps: int, scheme: str, backend: str) -> None:
    config = SolverConfig(dt=5e-3, substeps=substeps, scheme=scheme)
    sim = Simulation(hoist(), backend=backend, config=config)
    sim.step(3)
    for k in range(20):
        sim.write("joint.rope.limit_upper", 10.0 - (5e-3 * (k + 1)) ** 2)
        sim.step()
        if k > 0:
            assert sim.read("joint.rope.tension")[0] == pytest.approx(5000 * (G + 2.0), rel=1e-6)
            assert sim.read("joint.rope.tension")[0] == pytest.approx(-sim.read("sensor.cell.force")[0, 2], rel=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("bounce", [0.0, 0.5])
@pytest.mark.parametrize(("substeps", "solver"), [(1, "direct"), (2, "direct"), (4, "direct"), (4, "colored")])
def test_tension_holds_the_whole_catch_of_a_fall(substeps: int, solver: str, bounce: float) -> None:
    b = ModelBuilder()
    load = b.add_body(1.0, (0.01, 0.01, 0.01), label="load")
    fall = b.add_joint_distance(-1, load, at_a=(0, 0, 1), at_b=(0, 0, 0), label="fall")
    b.add_tendon([(fall, 1.0)], limit_upper=1.5, limit_restitution=bounce, label="rope")
    config = SolverConfig(dt=1e-3, substeps=substeps, joint_solver=solver)
    sim = Simulation(b.finalize(), backend="numpy", config=config)
    taken = {"rope": 0.0, "fall": 0.0}
    for _ in range(400):
        sim.step()
        for name in taken:
            taken[name] += float(sim.read(f"joint.{name}.tension")[0]) * 1e-3
    right = G * 0.4 + float(sim.read("body.load.linear_velocity")[0, 2])
    assert right > 3.0
    assert list(taken.values()) == pytest.approx([right, right], rel=3e-3)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_kernels_reel_as_the_reference(solver: str) -> None:
    b = ModelBuilder()
    load = b.add_body(20, (1, 1, 1), xform=Transform((0.5, 0, -2)), label="load")
    other = b.add_body(5, (1, 1, 1), xform=Transform((2.0, 0, -1)), label="other")
    falls = [
        b.add_joint_distance(-1, body, at_a=(x, 0, 0), at_b=at, label=name, damping=3.0)
        for body, x, at, name in ((load, 0.0, (0.5, 0, -2), "a"), (other, 2.0, (2.0, 0, -1), "b"))
    ]
    b.add_tendon([(falls[0], 1.0), (falls[1], 2.0)], limit_upper=math.hypot(0.5, 2) + 2.0, friction=2.0, label="rope")
    results = []
    for backend, launch in (("numpy", "auto"), ("native", "fused"), ("native", "staged"), ("native", "simd")):
        if solver == "colored" and launch == "simd":
            continue
        config = SolverConfig(dt=4e-3, substeps=3, joint_solver=solver, iterations=60)
        sim = Simulation(b.finalize(), 3, backend, config=config, launch=launch)
        for k in range(60):
            sim.write("joint.rope.limit_upper", 4.06 - np.array([0.5, 0.1, -0.2]) * math.sin(4e-3 * k * 20) ** 2)
            sim.step()
        names = ("body.load.position", "body.load.linear_velocity", "joint.rope.tension", "joint.b.tension")
        results.append(np.concatenate([sim.read(n, numpy=True).reshape(3, -1) for n in names], axis=1))
    for other_result in results[1:]:
        assert other_result == pytest.approx(results[0], rel=1e-7, abs=1e-7)
    for other_result in results[2:]:
        assert np.array_equal(other_result, results[1])


@pytest.mark.parametrize(("limit", "warns"), [(0.0, True), (4.8, True), (4.95, False), (np.inf, False)])
def test_a_rope_that_starts_far_beyond_its_limit_warns_before_it_pulls(limit: float, warns: bool) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    load = b.add_body(1, (1, 1, 1), xform=Transform((5, 0, 0)), label="load")
    b.add_spatial_tendon([(-1, (0, 0, 0)), (load, (0, 0, 0))], limit_upper=limit, label="rope")
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    with pytest.warns(UserWarning, match="'rope' starts at 5, beyond its limit") if warns else nullcontext():
        sim.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()
