from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.builder.joint_groups import MIN_RING
from tests.message_snapshot import naming

from ..unit.collide.kernels import kernel_manifolds  # noqa: F401

DT = 2e-3
BACKENDS = [("numpy", "auto"), ("native", "fused"), ("native", "staged")]


def add_ring(
    builder: ModelBuilder, links: int, solver: str | None, shapes: bool = True, drop: float = 0.02
) -> list[int]:
    side, joints = 0.1, []
    radius = side / (2 * math.sin(math.pi / links))
    inner, bodies = radius * math.cos(math.pi / links), []
    for k in range(links):
        a = 2 * math.pi * (k + 0.5) / links
        place = (inner * math.cos(a), 0.0, inner * math.sin(a) + radius + drop)
        pose = Transform.from_axis_angle(place, (0, 1, 0), -(a + math.pi / 2))
        bodies.append(builder.add_body(1.0, (1e-3, 2e-3, 2e-3), xform=pose, label=f"link{k}"))
        if shapes:
            builder.add_shape_box(bodies[k], (0.04, 0.1, 0.01), group=2, mask=1)
    for k in range(links):
        ends = Transform((side / 2, 0, 0)), Transform((-side / 2, 0, 0))
        joints.append(
            builder.add_joint_revolute(bodies[k], bodies[(k + 1) % links], *ends, axis=(0, 1, 0), label=f"pin{k}")
        )
    builder.set_joint_solver(joints[:1], solver)
    return joints


def add_arm(builder: ModelBuilder) -> None:
    upper = builder.add_body(3.0, (0.01, 0.05, 0.05), xform=Transform((0.5, 2.0, 1.0)), label="upper")
    fore = builder.add_body(1.0, (0.01, 0.02, 0.02), xform=Transform((-0.25, 2.0, 1.0)), label="fore")
    post, elbow = Transform((1.0, 2.0, 1.0)), Transform((-0.5, 0, 0))
    shoulder = builder.add_joint_revolute(-1, upper, post, Transform((0.5, 0, 0)), axis=(0, 1, 0), label="shoulder")
    builder.add_joint_revolute(upper, fore, elbow, Transform((0.25, 0, 0)), axis=(0, 1, 0), label="elbow", friction=0.2)
    builder.add_servo(shoulder, "position", stiffness=50.0, damping=5.0, effort_limit=30.0, target=-0.6)
    builder.add_shape_sphere(fore, 0.1, Transform((-0.25, 0, 0)), label="tip")


def make(backend: str, launch: str, solver: str | None = "colored", worlds: int = 1, **config: Any) -> Simulation:
    builder = ModelBuilder()
    builder.add_shape_plane(-1)
    add_ring(builder, 6, solver)
    add_arm(builder)
    settings = SolverConfig(**({"dt": DT} | config))
    more: dict[str, Any] = {"launch": launch} if backend == "native" else {}
    return Simulation(builder.finalize(), worlds, backend=backend, config=settings, **more)


def swept(builder: ModelBuilder, **config: Any) -> tuple[list[str], str]:
    sim = Simulation(builder.finalize(), backend="numpy", config=SolverConfig(**config))
    t = sim.model.topology
    return [label for label, own in zip(t.constraint_labels, t.swept, strict=True) if own], sim.config.joint_solver


def test_a_group_is_swept_where_one_of_its_joints_asks() -> None:
    builder = ModelBuilder()
    add_ring(builder, 6, "colored")
    add_arm(builder)
    assert swept(builder) == ([f"pin{k}" for k in range(6)], "auto")
    assert swept(builder, joint_solver="direct") == ([], "direct")
    assert swept(builder, joint_solver="colored") == ([], "colored")


@pytest.mark.parametrize(("links", "shapes", "solver"), [(MIN_RING, True, "colored"), (MIN_RING - 1, True, "auto")])
def test_tracks_are_swept(links: int, shapes: bool, solver: str) -> None:
    builder = ModelBuilder()
    add_ring(builder, links, None, shapes)
    assert swept(builder) == ([], solver)


def test_rings_without_shapes_and_driven_ones_are_no_tracks() -> None:
    bare, driven, open_chain = ModelBuilder(), ModelBuilder(), ModelBuilder()
    add_ring(bare, MIN_RING, None, shapes=False)
    builder_joints = add_ring(driven, MIN_RING, None)
    driven.add_servo(builder_joints[3], "velocity", damping=1.0)
    add_ring(open_chain, MIN_RING, None)
    open_chain.joints.pop()
    for builder in (bare, driven, open_chain):
        assert swept(builder) == ([], "auto")


def test_joints_of_one_group_must_agree() -> None:
    builder = ModelBuilder()
    joints = add_ring(builder, 6, "colored")
    builder.set_joint_solver([joints[3]], "direct")
    with pytest.raises(ModelError, match=naming("'pin3' 'pin0'")):
        Simulation(builder.finalize(), backend="numpy")


def test_wrong_solvers() -> None:
    builder = ModelBuilder()
    joints = add_ring(builder, 6, None)
    with pytest.raises(ModelError, match=naming("solver 'sweeps'")):
        builder.set_joint_solver(joints, "sweeps")
    with pytest.raises(ModelError, match=naming("99")):
        builder.set_joint_solver([99], "direct")
    with pytest.raises(ModelError, match=naming("solver 'fast'")):
        builder.add_joint_ball(0, 2, solver="fast")


@pytest.mark.nightly
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_direct_joints_move_as_they_do_alone(backend: str, launch: str) -> None:
    mixed, direct = make(backend, launch), make(backend, launch, None)
    assert mixed.model.topology.swept.any() and not direct.model.topology.swept.any()
    for sim in (mixed, direct):
        sim.step(60)
    for name in ("joint.shoulder.position", "joint.elbow.position", "joint.elbow.velocity"):
        assert mixed.read(name) == pytest.approx(direct.read(name), rel=1e-9, abs=1e-11)


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
def test_the_ring_stays_whole_on_the_ground(scheme: str) -> None:
    gaps = []
    for solver in ("auto", "colored"):
        sim = make("native", "fused", scheme=scheme, joint_solver=solver)
        worst = 0.0
        for _ in range(20):
            sim.step(10)
            worst = max(worst, float(sim.read("sim.joint_drift")[0]))
        gaps.append(worst)
        assert float(sim.read("sim.penetration")[0]) < 1e-3
    assert gaps[0] < 2 * gaps[1] + 1e-6


@pytest.mark.nightly
@pytest.mark.native
def test_fused_and_staged_have_the_same_bits() -> None:
    fused, staged, many = make("native", "fused"), make("native", "staged"), make("native", "fused", worlds=3)
    for sim in (fused, staged, many):
        sim.step(60)
    for name, array in fused.state.variables().items():
        assert np.array_equal(array, staged.state.variables()[name]), name
        assert np.array_equal(np.repeat(array, 3, axis=0), many.state.variables()[name]), name


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@pytest.mark.usefixtures("kernel_manifolds")
def test_every_step_from_the_same_state(scheme: str) -> None:
    reference, native = make("numpy", "auto", scheme=scheme), make("native", "fused", scheme=scheme)
    for step in range(45):
        if step >= 35:
            reference.backend.memory.state.restore(native.state, np.arange(1))
            reference.invalidate()
            reference.step()
        native.step()
        if step < 35:
            continue
        for name in ("position", "orientation", "linear_velocity", "impulse", "axis_velocity"):
            mine, theirs = (sim.state.variables()[name] for sim in (reference, native))
            assert mine == pytest.approx(theirs, rel=1e-8, abs=1e-9), (step, name)


@pytest.mark.nightly
def test_a_row_that_is_added_later_keeps_the_groups() -> None:
    sim = make("native", "fused")
    sim.step(5)
    sim.write("joint.pin2.damping", 0.1)
    assert sim.model.topology.swept.sum() == 6
    sim.step(5)
    assert sim.health().all()
    assert gpusim.SolverConfig().joint_solver == "auto"
