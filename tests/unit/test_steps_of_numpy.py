from __future__ import annotations

import numpy as np
import pytest

import gpusim
from tests.message_snapshot import naming


def sim_of(config: gpusim.SolverConfig, backend: str, **options: object) -> gpusim.Simulation:
    b = gpusim.ModelBuilder()
    b.add_joint_revolute(-1, b.add_body(1.0, (1.0, 1.0, 1.0), label="a"), axis=(0, 1, 0), label="j")
    return gpusim.Simulation(b.finalize(), backend=backend, config=config, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_steps_and_settings(backend: str) -> None:
    plain = sim_of(gpusim.SolverConfig(dt=0.5, substeps=2, iterations=4), backend)
    plain.step(5, dt=0.25)
    whole = {"substeps": np.int64(2), "iterations": np.uint8(4), "max_colors": np.int32(8)}
    config = gpusim.SolverConfig(dt=np.float32(0.5), **whole)  # type: ignore[arg-type]
    for number in (np.int64, np.int8, np.uint64):
        sim = sim_of(config, backend, num_worlds=np.int64(1), threads=np.int64(1))
        sim.step(number(5), dt=np.float32(0.25))  # type: ignore[arg-type]
        assert sim.time == plain.time == 1.25
        assert sim.read("joint.j.position") == plain.read("joint.j.position")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.assemble("text"), "Simulation.assemble tolerance 'text'"),
        (lambda s: s.assemble(1e-9, -1), "Simulation.assemble iterations -1"),
        (lambda s: s.write("sim.gravity", (0, 0, 1), worlds=[[1], [2, 3]]), "world 1 2 3"),
        (lambda s: s.reset([[0], [1, 2]]), "1"),
        (lambda s: s.step(2.5), "n 2.5"),
        (lambda s: s.step(1, dt=10**400), "dt 1e308"),
    ],
)
def test_other_types_get_one_sentence(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(gpusim.ModelError, match=naming(words)):
        call(sim_of(gpusim.SolverConfig(), "numpy"))


def test_a_joint_written_down_without_its_parameters() -> None:
    b = gpusim.ModelBuilder()
    b.add_joint("revolute", -1, b.add_body(1.0, (1.0, 1.0, 1.0)), label="j")
    with pytest.raises(gpusim.ModelError, match=naming("'limit_lower'")):
        b.finalize()


def test_every_signal_of_a_limited_ball_joint_can_be_read() -> None:
    b = gpusim.ModelBuilder()
    a = b.add_body(1.0, (1.0, 1.0, 1.0), label="a")
    b.add_joint_ball(-1, a, limit=0.5, label="hitch")
    c = b.add_body(1.0, (1.0, 1.0, 1.0), label="c")
    b.add_servo(b.add_joint_revolute(a, c, axis=(0, 1, 0), label="hinge"), stiffness=10.0, damping=1.0, label="servo")
    sim = gpusim.Simulation(b.finalize(), 2, backend="numpy")
    sim.step(2)
    for name, info in sim.signals().items():
        assert sim.read(name).shape == (2, *info.shape), name
    assert np.isfinite(sim.observe("*").read()).any()
