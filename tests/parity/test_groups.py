from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.codegen.group_source import group_header
from gpusim.backends.codegen.simd_source import wide_arrays, wide_phases, wide_text
from gpusim.backends.native import backend as native_backend
from gpusim.backends.native import compile as compile_native
from gpusim.scene import load_scene
from gpusim.solver.nodes import Build
from gpusim.solver.phases import PHASES
from gpusim.solver.schedule import FLAGS
from gpusim.typing import Array
from tests.builds import optimize_less
from tests.message_snapshot import naming

from .bits import differing
from .machines import SEEDS, machine_model, scatter
from .test_singular import STEPS as SINGULAR_STEPS
from .test_singular import four_bar
from .test_team import leg

pytestmark = pytest.mark.native

WORLDS = 19


def states(model: Model, seed: int = 3, steps: int = 60, worlds: int = WORLDS, **options: Any) -> dict[str, Any]:
    found = {}
    for launch in ("simd", "fused"):
        with pytest.MonkeyPatch.context() as own:
            if launch == "fused" and options.get("fast"):  # only the tests of this file use the build
                optimize_less(own)
                own.setattr(native_backend, "_LIBRARIES", {})
            sim = Simulation(model, worlds, backend="native", launch=launch, **options)
        scatter(sim, seed)
        shake(sim, seed)
        sim.step(1)
        sim.step(steps - 1)
        found[launch] = sim
    assert found["simd"].backend.world_lanes > 1 and found["fused"].backend.world_lanes == 1
    return found


def shake(sim: Simulation, seed: int) -> None:
    momentum = sim.state.arrays["angular_momentum"]
    momentum += np.random.default_rng(seed).normal(size=momentum.shape) * 1e-3
    sim.invalidate()


def same_bits(model: Model, **options: Any) -> None:
    order = np.arange(options.get("worlds", WORLDS))
    found = states(model, **options)
    assert differing(*(sim.state.arrays for sim in found.values()), order, order) == []
    assert np.array_equal(found["simd"].backend.read_health(), found["fused"].backend.read_health())


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_random_machines(seed: int) -> None:
    same_bits(machine_model(seed), dtype="float32" if seed % 3 == 1 else "float64")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_work_in_float32(seed: int) -> None:
    same_bits(machine_model(seed), dtype="float32", fast=True)


@pytest.mark.nightly
def test_fast_contacts() -> None:
    b = leg()
    b.add_shape_sphere(0, radius=0.05)
    same_bits(b.finalize(), steps=40, dtype="float32", fast=True)


@pytest.mark.nightly
@pytest.mark.parametrize("substeps", [1, 2])
def test_contacts_and_bouncing_limits(substeps: int) -> None:
    b = leg()
    b.add_shape_sphere(0, radius=0.05)
    same_bits(b.finalize(), steps=40, config=SolverConfig(joint_solver="direct", substeps=substeps), threads=2)


def test_papers_scheme() -> None:
    same_bits(machine_model(4), config=SolverConfig(scheme="semi_implicit"))


def test_damped_factors() -> None:
    model, config = four_bar("alone"), SolverConfig(dt=SINGULAR_STEPS["alone"])
    found = []
    for launch in ("simd", "fused"):
        sim = Simulation(model, 16, backend="native", launch=launch, config=config)
        gravity = np.zeros((16, 3))
        gravity[:, 2] = -9.81 - 0.01 * np.arange(16)
        sim.write("sim.gravity", gravity)
        sim.step(1300)
        found.append(sim.state.arrays)
    assert differing(*found, np.arange(16), np.arange(16)) == []


@pytest.mark.nightly
def test_a_world_that_fails_leaves_its_group() -> None:
    model = machine_model(2)
    found = []
    for launch in ("simd", "fused"):
        sim = Simulation(model, WORLDS, backend="native", launch=launch)
        scatter(sim, 5)
        sim.step(3)
        velocity = sim.state.arrays["linear_velocity"]
        velocity[5, 1] = np.nan
        sim.invalidate()
        with pytest.warns(UserWarning, match=naming("5")):
            sim.step(20)
        found.append(sim)
    health = [sim.backend.read_health() for sim in found]  # type: ignore[union-attr]
    assert np.flatnonzero(health[0]).tolist() == [5] and np.array_equal(*health)
    others = np.delete(np.arange(WORLDS), 5)
    assert differing(found[0].state.arrays, found[1].state.arrays, others, others) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("flags", "options"),
    [(("-mavx2",), {}), ((), {"dtype": "float32", "fast": True})],
    ids=["avx2-float64", "plain-fast"],
)
def test_other_processors(flags: tuple[str, ...], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = states(machine_model(3), steps=20, **options)["fused"].state.arrays
    monkeypatch.setattr(compile_native, "_vector_flags", lambda: flags)
    monkeypatch.setattr(native_backend, "_LIBRARIES", {})
    sim = Simulation(machine_model(3), WORLDS, backend="native", launch="simd", **options)
    assert sim.backend.world_lanes == 4  # type: ignore[union-attr]
    scatter(sim, 3)
    shake(sim, 3)
    sim.step(20)
    assert differing(sim.state.arrays, expected, np.arange(WORLDS), np.arange(WORLDS)) == []


def lanes(worlds: int, model: Model, **options: Any) -> int:
    return int(Simulation(model, worlds, backend="native", **options).backend.world_lanes)  # type: ignore[union-attr]


@pytest.mark.nightly
def test_fast_worlds_get_groups() -> None:
    assert lanes(32, machine_model(0), dtype="float32", fast=True) == compile_native.vector_bytes() // 8


def test_who_gets_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    model = machine_model(0)
    wide = compile_native.vector_bytes() // 8
    many = native_backend.MIN_GROUPS * wide
    assert lanes(many, model) == wide and lanes(many - 1, model) == 1
    assert lanes(many, model, launch="fused") == 1
    assert lanes(many, model, config=SolverConfig(joint_solver="colored")) == 1
    ball = ModelBuilder()
    ball.add_body(1.0, (0.1,) * 3)
    assert lanes(many, ball.finalize()) == 1
    with pytest.raises(ModelError):
        lanes(many, model, launch="simd", config=SolverConfig(joint_solver="colored"))
    monkeypatch.setattr(native_backend, "MAX_GROUP_BYTES", 1000)
    assert lanes(many, model) == 1


def test_forces_and_signals_of_many_worlds() -> None:
    found = states(load_scene("hydraulic_lift").builder.finalize(), worlds=40)
    for name in ("sim.kinetic_energy", "sim.joint_drift", "sim.time"):
        values: list[Array] = [sim.read(name) for sim in found.values()]
        assert np.array_equal(*values), name


def test_wide_phases_write_no_condition() -> None:
    written = {name for phase in wide_phases() for name in PHASES[phase].writes.split()}
    for flag in FLAGS:
        assert not set(re.findall(r"\bw\.(\w+)\(", flag.text)) & written, flag.name


def test_wide_text_has_no_plain_numbers() -> None:
    assert not re.search(r"\bdouble\b|GPUSIM_WIDE", wide_text())
    assert {"kick_body", "invert_pivot", "residual_row", "drift_body"} <= wide_phases()
    assert "pair_points" not in wide_arrays()
    assert "group_substep" in group_header(Build(True, True, False), PACKAGE_KINDS)


# With one world per vector lane, a body is one number. With one world, eight bodies are one vector.
def test_bodies_at_rest_and_with_all_spins() -> None:
    b = ModelBuilder()
    for k in range(13):
        inertia = (0.02,) * 3 if k % 4 == 1 else (0.01, 0.02, 0.025)
        spin = (0.0, 0.0, 0.0) if k % 4 == 2 else (3.0 ** (k - 7), 2.0, -1.0)
        body = b.add_body(1.0, inertia, xform=Transform((k, 0, 0)), angular_velocity=spin)
        b.add_joint_ball(-1, body, at=(k, 0, 0))
    same_bits(b.finalize(), steps=20)
