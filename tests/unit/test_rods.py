from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, ModelError, Simulation, SolverConfig
from tests.backends import FASTEST
from tests.message_snapshot import naming

G = 9.81
BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
LIMITS = ("limit_upper", "limit_lower")


def hanging(damping: float = 0.0) -> Model:
    b = ModelBuilder()
    load = b.add_body(2.0, (0.01, 0.01, 0.01), label="load")
    b.add_joint_distance(
        -1, load, at_a=(0, 0, 1), at_b=(0, 0, 0), min_distance=1.0, max_distance=1.0, damping=damping, label="rod"
    )
    return b.finalize()


def length(sim: Simulation) -> float:
    return float(np.linalg.norm(sim.read("body.load.position")[0] - (0, 0, 1)))


CASES = [
    *itertools.product((0.5, -0.5), ((1e-3, 1), (5e-3, 3)), ("direct", "colored"), (LIMITS, LIMITS[::-1], LIMITS[:1])),
    (5.0, (5e-3, 2), "direct", LIMITS),
]


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@pytest.mark.parametrize(("rate", "steps", "solver", "order"), CASES)
def test_load_follows_a_rod(
    rate: float, steps: tuple[float, int], solver: str, order: tuple[str, ...], scheme: str
) -> None:
    config = SolverConfig(dt=steps[0], substeps=steps[1], joint_solver=solver, scheme=scheme)
    sim = Simulation(hanging(), backend="numpy", config=config)
    assert [sim.read(f"joint.rod.{name}")[0] for name in LIMITS] == [1.0, 1.0]
    sim.step(3)
    for k in range(30):
        wanted = 1.0 + rate * (k + 1) * steps[0]
        for name in order:
            sim.write(f"joint.rod.{name}", wanted)
        sim.step()
        assert length(sim) == pytest.approx(wanted, abs=1e-9)
    assert [sim.read(f"joint.rod.{name}")[0] for name in LIMITS] == [wanted, wanted]
    assert sim.read("body.load.linear_velocity")[0, 2] == pytest.approx(-rate, rel=1e-9)
    assert sim.read("joint.rod.tension")[0] == pytest.approx(2.0 * G, rel=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rods_of_worlds_carry_and_push(backend: str) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    load = b.add_body(2.0, (0.01, 0.01, 0.01), label="load")
    b.add_joint_prismatic(-1, load, axis=(0, 0, 1), label="guide")
    for name, z in (("up", -1), ("down", 1)):
        b.add_joint_distance(
            -1, load, at_a=(0, 0, z), at_b=(0, 0, 0), min_distance=1.0, max_distance=1.0, damping=3.0, label=name
        )
    sim = Simulation(b.finalize(), 3, backend=backend, config=SolverConfig(dt=2e-3, substeps=2))
    sim.step(2)
    for k in range(20):
        way = 1e-3 * (k + 1) * np.array([1.0, -1.0])
        sim.write("joint.up.limit_upper", 1.0 + way, worlds=[0, 1])
        sim.write("joint.down.limit_lower", 1.0 - way, worlds=[0, 1])
        sim.step()
    assert sim.read("body.load.position", numpy=True)[:, 2] == pytest.approx([0.02, -0.02, 0.0], abs=1e-9)
    assert sim.read("body.load.linear_velocity", numpy=True)[:, 2] == pytest.approx([0.5, -0.5, 0.0], abs=1e-9)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_kernels_move_a_rod_in_a_loop_as_the_reference(solver: str) -> None:
    angles = []
    for backend in ("numpy", "native"):
        b = ModelBuilder()
        crank = b.add_body(1.0, (0.1, 0.1, 0.1), label="crank")
        b.add_joint_revolute(-1, crank, axis=(0, 1, 0), at=(0, 0, 0), label="pin")
        b.add_joint_distance(
            -1, crank, at_a=(1, 0, -1), at_b=(1, 0, 0), min_distance=1.0, max_distance=1.0, label="jack"
        )
        config = SolverConfig(dt=2e-3, substeps=2, joint_solver=solver, iterations=60)
        sim = Simulation(b.finalize(), backend=backend, config=config)
        sim.step(2)
        for k in range(100):
            sim.write("joint.jack.limit_upper", 1.0 + 1e-3 * (k + 1))
            sim.step()
        angles.append(sim.read("joint.pin.position", numpy=True)[0])
        assert sim.read("joint.jack.position", numpy=True)[0] == pytest.approx(1.1, abs=1e-6)
    right = np.arccos((1.0 + 2.0 - 1.1**2) / (2.0 * np.sqrt(2.0))) - 0.25 * np.pi
    assert angles == pytest.approx([-right, -right], abs=1e-6)
    assert angles[0] == pytest.approx(angles[1], abs=1e-9)


@pytest.mark.parametrize("damping", [0.0, 4.0])
def test_snapshot_of_a_moving_rod(damping: float) -> None:
    model = hanging(damping)
    sim = Simulation(model, backend="numpy", config=SolverConfig(dt=1e-3))

    def run(of: Simulation, first: int) -> np.ndarray:
        for k in range(first, first + 5):
            of.write("joint.rod.limit_upper", 1.0 + 1e-3 * (k + 1))
            of.step()
        return np.array(of.read("body.load.position"))

    sim.step(5)
    rigid = sim.state.copy()
    run(sim, 0)
    moving = pickle.loads(pickle.dumps(sim.state.copy()))
    end = run(sim, 5)
    for target in (sim, Simulation(model, backend="numpy", config=SolverConfig(dt=1e-3))):
        target.state.restore(moving)
        assert np.array_equal(run(target, 5), end)
        target.state.restore(rigid)
        assert target.read("joint.rod.limit_lower")[0] == 1.0
        run(target, 0)
        assert np.array_equal(run(target, 5), end)


def test_length_that_a_rod_has_already_costs_no_row() -> None:
    sim = Simulation(hanging(), backend="numpy")
    sim.write("joint.rod.limit_upper", 1.0)
    assert not sim.model.axes


def test_reset_keeps_the_written_length() -> None:
    sim = Simulation(hanging(), backend=FASTEST, config=SolverConfig(dt=1e-3))
    sim.step(2)
    sim.write("joint.rod.limit_upper", 1.001)
    sim.step()
    sim.reset()
    sim.step(200)
    assert length(sim) == pytest.approx(1.001, abs=1e-6)


def test_negative_lengths_are_refused() -> None:
    b = ModelBuilder()
    load = b.add_body(1.0, (0.01, 0.01, 0.01), label="load")
    with pytest.raises(ModelError, match=naming("'a' max_distance -1")):
        b.add_joint_distance(-1, load, at_a=(0, 0, 1), at_b=(0, 0, 0), max_distance=-1.0, label="a")
    for name, ends in (("rope", (0.0, 1.5)), ("free", (0.0, float("inf"))), ("rod", (1.0, 1.0))):
        b.add_joint_distance(
            -1, load, at_a=(0, 0, 1), at_b=(0, 0, 0), min_distance=ends[0], max_distance=ends[1], label=name
        )
    sim = Simulation(b.finalize(), 2, backend="numpy")
    for name, limit in itertools.product(("rope", "free", "rod"), LIMITS):
        with pytest.raises(ModelError, match=naming(f"'{name}' -1")):
            sim.write(f"joint.{name}.{limit}", np.array([0.5, -1.0]))
    with pytest.raises(ModelError, match=naming("'rod'")):
        sim.write("joint.rod.limit_upper", float("inf"))
    sim.write("joint.rope.limit_lower", float("-inf"))
    assert len(sim.model.axes) == 1


@pytest.mark.parametrize("rate", [0.5, -0.5])
def test_tendon_with_one_length_follows_in_both_directions(rate: float) -> None:
    b = ModelBuilder()
    load = b.add_body(2.0, (0.01, 0.01, 0.01), label="load")
    line = b.add_joint_distance(-1, load, at_a=(0, 0, 1), at_b=(0, 0, 0), label="line")
    b.add_tendon([(line, 1.0)], limit_lower=1.0, limit_upper=1.0, label="rod")
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.step(2)
    for k in range(20):
        wanted = 1.0 + rate * (k + 1) * 1e-3
        sim.write_state({f"joint.rod.{name}": wanted for name in LIMITS})
        sim.step()
        assert length(sim) == pytest.approx(wanted, abs=1e-9)
