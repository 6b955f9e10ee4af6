from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.control import Diagram, chain, heavy_chain
from gpusim.robotics import Tree
from tests.message_snapshot import naming
from tests.unit.control.plants import arm

TICKETS = (0.3, -0.5, 0.7, 1.1, -0.4, 0.2)


def reading(backend: str = "numpy", target: tuple[float, float, float] = (0.1, 0.2, 0.6)) -> Simulation:
    b = arm()
    d = Diagram("d")
    links = chain(b, "base", "tip")
    d.add("mux", "q", count=6)
    for k, port in enumerate("abcdef"):
        d.connect(f"signal:joint.joint{k}.position", f"q.{port}")
    d.connect("q", d.add("chain", "chain", **links))
    d.connect("signal:site.tip.position", d.add("to_frame", "tip")["in"])
    d.connect("signal:body.base.position", "tip.position")
    d.connect("signal:body.base.orientation", "tip.orientation")
    d.connect("chain.position", d.add("from_frame", "there")["in"])
    d.connect("signal:body.base.position", "there.position")
    d.connect("signal:body.base.orientation", "there.orientation")
    d.connect(d.add("constant", "zero", value=[0.0] * 6), d.add("ik", "ik", start=[0.1] * 6, **links)["posture"])
    d.connect(d.add("constant", "target", value=list(target)), "ik.target")
    d.connect("ik.out", d.add("chain", "solved", **links)["q"])
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    for k, x in enumerate(TICKETS):
        sim.write(f"joint.joint{k}.position", x)
    return sim


def test_a_chain_is_where_its_tip_is() -> None:
    sim = reading()
    tip = sim.read("site.tip.position")[0].copy()
    sim.step()
    np.testing.assert_allclose(sim.read("diagram.d.chain.position"), sim.read("diagram.d.tip"), atol=1e-12)
    np.testing.assert_allclose(sim.read("diagram.d.there")[0], tip, atol=1e-12)


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
    found = []
    for backend in ("numpy", "native"):
        sim = reading(backend)
        sim.step(10)
        found.append([sim.read(f"diagram.d.{name}")[0] for name in ("ik", "solved.rotation", "there")])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][2], found[1][2], atol=1e-12)


@pytest.mark.nightly
def test_inverse_kinematics_reaches() -> None:
    sim = reading()
    sim.write("diagram.d.ik.posture_gain", 0.0)
    sim.step(200)
    assert sim.read("diagram.d.ik.error")[0] < 1e-6
    np.testing.assert_allclose(sim.read("diagram.d.solved.position")[0], (0.1, 0.2, 0.6), atol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("gain", [0.1, 0.5])
def test_a_posture_costs_the_target_nothing(gain: float) -> None:
    sim = reading()
    sim.write("diagram.d.ik.posture_gain", gain)
    sim.step(200)
    assert sim.read("diagram.d.ik.error")[0] < 1e-11
    tree, q = Tree(sim.model), sim.read("diagram.d.ik")[0]
    posture, columns = tree.start.copy(), []
    for k, x in enumerate(q):
        posture[:, tree.slice(f"joint{k}")] = x
        columns.append(tree.rate_slice(f"joint{k}").start)
    rows = tree.jacobian(posture, "tip")[0, :3, columns].T
    left = q - rows.T @ np.linalg.lstsq(rows.T, q, rcond=None)[0]
    assert np.abs(left).max() < 1e-3 < np.abs(q).max() < 1.5  # within limits


def alone(d: Diagram, backend: str = "numpy") -> Simulation:
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1))
    b.add_diagram(d)
    return Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))


def turning(lever: float, target: Transform, backend: str = "numpy") -> Simulation:
    d, links = Diagram("d"), chain(arm(), "base", "tip")
    d.add("ik", "ik", start=[0.2, 0.3, -0.1, 0.4, 0.1, 0.05], posture_gain=0.0, damping=0.01, lever=lever, **links)
    for port, values in (("target", target.position), ("posture", [0.0] * 6), ("orientation", target.rotation)):
        d.connect(d.add("constant", port, value=[float(x) for x in values]), f"ik.{port}")
    d.connect("ik.out", d.add("chain", "solved", **links)["q"])
    return alone(d, backend)


def reachable() -> Transform:
    d, links = Diagram("d"), chain(arm(), "base", "tip")
    d.connect(d.add("constant", "q", value=[0.5, 0.6, 0.3, 0.9, -0.3, 0.15]), d.add("chain", "chain", **links)["q"])
    sim = alone(d)
    sim.step()
    rotation = sim.read("diagram.d.chain.rotation")[0].reshape(3, 3)
    return Transform(sim.read("diagram.d.chain.position")[0], Rotation.from_matrix(rotation).as_quat())


@pytest.mark.nightly
@pytest.mark.parametrize("lever", [0.2, 0.5])
def test_inverse_kinematics_turns_the_tip_too(lever: float) -> None:
    target = reachable()
    sim = turning(lever, target)
    sim.step(300)
    assert sim.read("diagram.d.ik.error")[0] < 1e-9
    np.testing.assert_allclose(sim.read("diagram.d.solved.position")[0], target.position, atol=1e-8)
    np.testing.assert_allclose(sim.read("diagram.d.solved.rotation")[0], target.matrix().ravel(), atol=1e-7)


def test_the_error_of_a_turn_counts_its_lever() -> None:
    start, ways = turning(1e-9, Transform()), {}
    start.write("diagram.d.ik.max_way", 1e-12)  # it stays
    start.step()
    here = Transform(start.read("diagram.d.solved.position")[0])
    rotation = start.read("diagram.d.solved.rotation")[0].reshape(3, 3)
    turned = rotation @ Transform.from_axis_angle((0, 0, 0), (0, 0.6, 0.8), 0.4).matrix()
    target = Transform(np.add(here.position, (0.03, 0.0, 0.0)), Rotation.from_matrix(turned).as_quat())
    for lever in (1e-9, 0.2):
        sim = turning(lever, target)
        sim.step()
        ways[lever] = sim.read("diagram.d.ik.error")[0]
    assert ways[1e-9] == pytest.approx(0.03, rel=1e-9)
    assert ways[0.2] == pytest.approx(math.hypot(0.03, 0.2 * math.sin(0.4)), rel=1e-9)


@pytest.mark.native
def test_native_turns_by_the_bits_of_numpy() -> None:
    found = []
    for backend in ("numpy", "native"):
        sim = turning(0.3, reachable(), backend)
        sim.step(10)
        found.append(sim.read("diagram.d.ik")[0])
    np.testing.assert_array_equal(*found)


def test_what_is_out_of_reach_is_come_near_to_along_its_direction() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    before = b.add_body(1.0, (1, 1, 1), label="base", kinematic=True)
    base = before
    for k in range(3):
        body = b.add_body(1.0, (1, 1, 1), label=f"link{k}")
        place = Transform((0.3 if k else 0.0, 0, 0))
        b.add_joint_revolute(before, body, place, Transform(), axis=(0, 0, 1), label=f"joint{k}")
        before = body
    assert base == 0
    b.add_site(before, Transform((0.3, 0, 0)), label="tip")
    d = Diagram("d")
    links = chain(b, "base", "tip")
    d.add("ik", "ik", start=[0.3, 0.4, -0.2], posture_gain=0.0, **links)
    d.connect(d.add("constant", "target", value=[1.2, 1.6, 0.0]), "ik.target")
    d.connect(d.add("constant", "posture", value=[0.0] * 3), "ik.posture")
    d.connect("ik.out", d.add("chain", "solved", **links)["q"])
    b.add_diagram(d)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=1e-3))
    sim.step(3000)
    np.testing.assert_allclose(sim.read("diagram.d.solved.position")[0], (0.54, 0.72, 0.0), atol=2e-3)
    assert sim.read("diagram.d.ik.error")[0] == pytest.approx(1.1, abs=1e-3)


def test_inverse_kinematics_starts_in_the_start_pose() -> None:
    b = arm()
    for x, joint in zip(TICKETS, b.joints, strict=True):
        axis = joint.params["columns"][:, 2]
        way = Transform.from_axis_angle((0, 0, 0), axis, x) if joint.kind == "revolute" else Transform(tuple(x * axis))
        at = b.bodies[joint.parent].xform * joint.parent_xform * way
        b.bodies[joint.child].xform = at * joint.child_xform.inverse()
    d = Diagram("d")
    d.connect("signal:site.tip.position", d.add("to_frame", "tip")["in"])
    d.connect("signal:body.base.position", "tip.position")
    d.connect("signal:body.base.orientation", "tip.orientation")
    d.connect("tip", d.add("ik", "ik", posture_gain=0.0, **chain(b, "base", "tip"))["target"])
    d.connect(d.add("constant", "zero", value=[0.0] * 6), "ik.posture")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=1e-3))
    np.testing.assert_allclose([sim.read(f"joint.joint{k}.position")[0] for k in range(6)], TICKETS, atol=1e-12)
    sim.step()
    np.testing.assert_allclose(sim.read("diagram.d.ik")[0], TICKETS, atol=1e-12)
    assert sim.read("diagram.d.ik.error")[0] < 1e-12


@pytest.mark.nightly
def test_limits_hold() -> None:
    sim = reading(target=(-3.0, 0.0, -3.0))
    sim.step(300)
    assert np.abs(sim.read("diagram.d.ik")[0, :5]).max() <= 1.5


def test_wrong_chains_are_reported() -> None:
    b = arm()
    for base, tip, reported in (("bass", "tip", "'bass'"), ("base", "top", "'top'"),
                            ("hand", "tip", "'hand'")):  # fmt: skip
        for made in (chain, heavy_chain):
            with pytest.raises(ModelError, match=naming(reported)):
                made(b, base, tip)
    with pytest.raises(ModelError, match=naming("'base'")):
        other = b.add_body(1.0, (1, 1, 1), label="other")
        b.add_site(other, label="far")
        chain(b, "base", "far")
    with pytest.raises(ModelError, match=naming("'joint6'")):
        b.add_joint_free(0, other)
        chain(b, "base", "far")
    with pytest.raises(ModelError, match=naming("lever -1")):
        Diagram("d").add("ik", "ik", start=[0.0] * 6, lever=-1.0, **chain(b, "base", "tip"))
    with pytest.raises(ModelError, match=naming("start")):
        Diagram("d").add("ik", "ik", start=[0.0], **chain(b, "base", "tip"))
