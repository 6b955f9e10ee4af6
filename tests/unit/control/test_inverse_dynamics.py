from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform, rotations
from gpusim.control import Diagram, chain, heavy_chain
from gpusim.robotics import Tree
from tests.message_snapshot import naming

GRAVITY = (0.7, -1.3, -9.6)
LOAD = 1.7
Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


def somewhere(rng: np.random.Generator) -> Transform:
    q = rng.normal(size=4)
    return Transform(rng.uniform(-0.5, 0.5, 3), q / np.linalg.norm(q))


def own_mass(rng: np.random.Generator) -> dict[str, Any]:
    turn = rotations.matrix_from_quaternion((q := rng.normal(size=4)) / np.linalg.norm(q))
    tensor = turn @ np.diag(rng.uniform(0.05, 0.08, 3)) @ turn.T
    return {"mass": rng.uniform(0.5, 3.0), "inertia": 0.5 * (tensor + tensor.T), "com": rng.uniform(-0.2, 0.2, 3)}


def add_link(
    b: ModelBuilder, before: int, rng: np.random.Generator, label: str, add: Callable[..., int], **options: Any
) -> tuple[int, int]:
    places = somewhere(rng), somewhere(rng)
    at = b.bodies[before].xform * places[0] * places[1].inverse()
    body = b.add_body(**own_mass(rng), xform=at, label=label)
    return body, add(before, body, *places, label=label, **options)


def random_arm(
    seed: int, count: int = 5, load: float = 0.0, branches: bool = False, backward: bool = False, motors: bool = True
) -> ModelBuilder:
    rng, other = np.random.default_rng(seed), np.random.default_rng(1000 + seed)
    b = ModelBuilder(gravity=GRAVITY)

    def add_weld_back(parent: int, child: int, *places: Transform, **options: Any) -> int:
        return b.add_joint_fixed(child, parent, *places[::-1], **options)

    before = b.add_body(5.0, (1, 1, 1), xform=somewhere(rng), label="base", kinematic=True)
    for k in range(count):
        kind = b.add_joint_prismatic if rng.random() < 0.4 else b.add_joint_revolute
        options = {"axis": rng.normal(size=3), "armature": rng.uniform(0.0, 0.3)}
        before, joint = add_link(b, before, rng, f"joint{k}", kind, **options)
        if k % 2 and motors:
            b.add_dc_motor(joint, 2.0, 500.0, 0.01, gear_ratio=60.0, label=f"motor{k}")
        if branches:
            add_link(b, before, other, f"branch{k}", b.add_joint_revolute)
        if k % 3 == 0:
            weight, _ = add_link(b, before, rng, f"weight{k}", b.add_joint_fixed)
            add_link(b, weight, rng, f"more{k}", add_weld_back if backward else b.add_joint_fixed)
        if k == 1:
            before, _ = add_link(b, before, rng, "bracket", b.add_joint_fixed)
    place = somewhere(rng)
    b.add_site(before, place, label="tip")
    if load:
        ball = b.add_body(load, (1e-5, 1e-5, 1e-5), xform=b.bodies[before].xform * place, label="load")
        b.add_joint_fixed(before, ball, place, label="load")
    return b


def block_of(
    links: dict[str, Any], backend: str, motion: Motion, load: float | None = None, wrench: np.ndarray | None = None
) -> np.ndarray:
    d = Diagram("d")
    d.add("inverse_dynamics", "dynamics", **links)
    count = len(links["joints"])
    for port, values in zip(("q", "velocity", "acceleration"), motion, strict=True):
        d.add("constant", port, value=[0.0] * count)
        d.connect(port, f"dynamics.{port}")
        assert values.shape[1] == count
    if load is not None:
        d.connect(load, "dynamics.load")
    if wrench is not None:
        d.connect(d.add("constant", "wrench", value=wrench.tolist()), "dynamics.wrench")
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), label="any")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), len(motion[0]), backend=backend, config=SolverConfig(dt=1e-3))
    for port, values in zip(("q", "velocity", "acceleration"), motion, strict=True):
        for k in range(count):
            sim.write(f"diagram.d.{port}.value_{k}", values[:, k])
    sim.step()
    return np.array(sim.read("diagram.d.dynamics", numpy=True))


def motions(count: int, worlds: int = 6, seed: int = 5) -> Motion:
    rng = np.random.default_rng(seed)
    q, v, a = (rng.uniform(-size, size, (worlds, count)) for size in (2.0, 3.0, 10.0))
    return q, v, a


def by_tree(b: ModelBuilder, motion: Motion, wrench: np.ndarray | None = None) -> np.ndarray:
    tree = Tree(b.finalize())
    labels = [joint["label"] for joint in chain(b, "base", "tip")["joints"]]
    columns = [tree.rate_slice(label).start for label in labels]
    places = [tree.slice(label).start for label in labels]
    worlds = len(motion[0])
    q = np.repeat(tree.start, worlds, axis=0)
    q[:, places] = motion[0]
    v, a = np.zeros((worlds, tree.freedoms)), np.zeros((worlds, tree.freedoms))
    v[:, columns], a[:, columns] = motion[1:]
    return tree.inverse_dynamics(q, v, a, None if wrench is None else {"tip": wrench})[:, columns]


def close(found: np.ndarray, expected: np.ndarray, share: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=share * float(np.abs(expected).max()))


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_inverse_dynamics_of_the_tree(seed: int) -> None:
    b = random_arm(seed, count=3 + seed % 4, backward=seed % 2 == 1)
    motion = motions(3 + seed % 4, seed=seed)
    close(block_of(heavy_chain(b, "base", "tip"), "numpy", motion), by_tree(b, motion))


def test_it_is_so_with_a_load_at_the_tip() -> None:
    motion = motions(5)
    links = heavy_chain(random_arm(1), "base", "tip")
    found, without = block_of(links, "numpy", motion, LOAD), block_of(links, "numpy", motion)
    close(found, by_tree(random_arm(1, load=LOAD), motion), 1e-5)
    assert np.abs(found - without).max() > 0.1 * np.abs(without).max()
    heavier = links | {"joints": [dict(joint) for joint in links["joints"]]}
    last = heavier["joints"][-1]
    mass, com, tip = last["mass"], np.array(last["com"]), np.array(links["tip"][:3])
    arms, joined = [(mass, com), (LOAD, tip)], (mass * com + LOAD * tip) / (mass + LOAD)
    six = np.array(last["inertia"])
    for m, place in arms:
        x, y, z = place - joined
        six = six + m * np.array([y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z])
    last |= {"mass": mass + LOAD, "com": joined.tolist(), "inertia": six.tolist()}
    close(found, block_of(heavier, "numpy", motion))


@pytest.mark.parametrize("seed", range(4))
def test_what_bears_on_the_tip_from_outside_is_in_it(seed: int) -> None:
    b, motion = random_arm(seed), motions(5, seed=seed)
    wrench = np.random.default_rng(seed).uniform(-20.0, 20.0, 6)
    turn = next(body for body in b.bodies if body.label == "base").xform.matrix()
    found = block_of(heavy_chain(b, "base", "tip"), "numpy", motion, wrench=wrench)
    close(found, by_tree(b, motion, np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])))
    assert np.abs(found - by_tree(b, motion)).max() > 1.0


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
    for seed, load in ((2, None), (3, LOAD)):
        links, motion = heavy_chain(random_arm(seed), "base", "tip"), motions(5, seed=seed)
        wrench = None if load is None else np.arange(1.0, 7.0)
        numpy, native = (block_of(links, backend, motion, load, wrench) for backend in ("numpy", "native"))
        assert np.abs(numpy).min() > 0.0
        np.testing.assert_array_equal(numpy, native)


def test_branches_count_nothing() -> None:
    motion = motions(5)
    plain, branched = (random_arm(4, branches=many) for many in (False, True))
    assert len(branched.bodies) == len(plain.bodies) + 5
    found, expected = (block_of(heavy_chain(b, "base", "tip"), "numpy", motion) for b in (branched, plain))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.nightly
def test_with_q_alone_it_holds_against_gravity() -> None:
    b = random_arm(0)
    links = heavy_chain(b, "base", "tip")
    labels = [joint["label"] for joint in links["joints"]]
    d = Diagram("d")
    d.add("signal", "q", signal=[f"joint.{label}.position" for label in labels])
    d.connect("q", d.add("inverse_dynamics", "dynamics", **links))
    for k, label in enumerate(labels):
        index = next(i for i, joint in enumerate(b.joints) if joint.label == label)
        b.add_joint_force(index, limit=1e4, label=label)
        d.connect("dynamics", d.add("select_element", f"part{k}", index=k))
        d.connect(f"part{k}", d.add("gain", f"effort{k}", gain=1.0), f"command:{label}")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    q = motions(5)[0][0]
    sim.write_state({f"joint.{label}.position": x for label, x in zip(labels, q, strict=True)})
    sim.step(200)
    held = np.array([sim.read(f"joint.{label}.position")[0] for label in labels])
    np.testing.assert_allclose(held, q, atol=1e-9)
    expected = by_tree(random_arm(0), (held[None], np.zeros((1, 5)), np.zeros((1, 5))))
    close(sim.read("diagram.d.dynamics"), expected, 1e-9)


def on_a_platform() -> ModelBuilder:
    """An arm on a body that is held by nothing."""
    rng = np.random.default_rng(11)
    b = ModelBuilder(gravity=GRAVITY)
    before = b.add_body(5.0, (1, 1, 1), xform=somewhere(rng), label="base", kinematic=True)
    for k in range(3):
        body = b.add_body(**own_mass(rng), label=f"link{k}")
        b.add_joint_revolute(before, body, somewhere(rng), axis=rng.normal(size=3), label=f"joint{k}")
        before = body
    b.add_site(before, label="tip")
    return b


@pytest.mark.parametrize("shaken", [(0.0, 0.0, 0.0), (3.0, -4.0, 7.0)])
def test_gravity_may_come_by_a_wire(shaken: tuple[float, float, float]) -> None:
    b = on_a_platform()
    links, (q, v, a) = heavy_chain(b, "base", "tip"), motions(3, worlds=1)
    turned = np.array([0.5, -0.1, 0.7, 0.2]) / np.linalg.norm([0.5, -0.1, 0.7, 0.2])
    d = Diagram("d")
    d.add("inverse_dynamics", "dynamics", **(links | {"gravity": None}))
    for port, values in (("q", q), ("velocity", v), ("acceleration", a)):
        d.connect(d.add("constant", port, value=values[0].tolist()), f"dynamics.{port}")
    field = np.subtract(GRAVITY, shaken).tolist()
    d.connect(d.add("constant", "down", value=field), d.add("to_frame", "near", vector=True)["in"])
    for what in ("position", "orientation"):
        d.connect(f"signal:body.base.{what}", f"near.{what}")
    d.connect("near", "dynamics.gravity")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write("body.base.orientation", turned)
    sim.step()
    tree = Tree(on_a_platform().finalize())
    base, rates = tree.slice("base").start, [tree.rate_slice(f"joint{k}").start for k in range(3)]
    whole = [np.array(tree.start), np.zeros((1, tree.freedoms)), np.zeros((1, tree.freedoms))]
    whole[0][:, base + 3 : base + 7] = turned
    whole[0][:, [tree.slice(f"joint{k}").start for k in range(3)]] = q
    whole[1][:, rates], whole[2][:, rates] = v, a
    start = tree.rate_slice("base").start
    whole[2][:, start : start + 3] = shaken
    close(sim.read("diagram.d.dynamics"), tree.inverse_dynamics(*whole)[:, rates])


def following_error(seed: int, dt: float, law: str) -> float:
    b, d = random_arm(seed, 4, motors=False), Diagram("d")
    links = heavy_chain(b, "base", "tip")
    labels = [joint["label"] for joint in links["joints"]]
    for name, signal in (("q", "position"), ("v", "velocity")):
        d.add("signal", name, signal=[f"joint.{label}.{signal}" for label in labels])
    d.add("constant", "w", value=[5.0 + k for k in range(4)])
    d.add("timer", "t")
    texts = {
        "plan": "0.2 * (1 - cos(w * t))", "plan_v": "0.2 * w * sin(w * t)", "plan_a": "0.2 * w ** 2 * cos(w * t)",
        "wanted": "plan_a + 40 * (plan_v - v) + 400 * (plan - q)", "error": "plan - q",
    }  # fmt: skip
    for name, text in texts.items():
        d.add("expression", name, text=text)
        for port in d.ports(name)[0]:
            d.connect(port, f"{name}.{port}")
    d.add("inverse_dynamics", "effort", **links)
    d.connect("q", "effort.q")
    d.connect("wanted", "effort.acceleration")
    d.connect("v" if law == "computed torque" else 0.0, "effort.velocity")
    for label in labels:
        index = next(i for i, joint in enumerate(b.joints) if joint.label == label)
        b.add_joint_force(index, limit=1e4, label=label)
    d.connect("effort", d.add("command", "motors", command=labels))
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt))
    worst = 0.0
    for _ in range(round(0.6 / dt)):
        sim.step()
        worst = max(worst, float(np.abs(sim.read("diagram.d.error")).max()))
    assert sim.health().all()
    return worst


@pytest.mark.native
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (3, 6))])
def test_arms_of_any_joints_follow_their_plan(seed: int) -> None:
    fine, coarse = (following_error(seed, dt, "computed torque") for dt in (5e-4, 1e-3))
    assert coarse < 3e-4 and 1.9 < coarse / fine < 2.1
    assert following_error(seed, 1e-3, "without rates") > 10.0 * coarse


def test_zeros_cost_nothing() -> None:
    def operations(connect: Callable[[Diagram], None]) -> int:
        d = Diagram("d")
        d.connect(d.add("constant", "q", value=[0.1] * 5), d.add("inverse_dynamics", "dynamics", **links)["q"])
        connect(d)
        return d.compile({}, {}, 1e-3).operations

    links = heavy_chain(random_arm(0), "base", "tip")
    moving = operations(lambda d: d.connect("q", "dynamics.velocity", "dynamics.acceleration"))
    assert operations(lambda d: None) < 0.5 * moving


def test_a_file_keeps_it(tmp_path: Path) -> None:
    d = Diagram("d")
    links = heavy_chain(random_arm(0), "base", "tip")
    d.connect(d.add("constant", "q", value=[0.1] * 5), d.add("inverse_dynamics", "dynamics", **links)["q"])
    d.save(tmp_path / "d.yaml")
    programs = [x.compile({}, {}, 1e-3) for x in (d, Diagram.load(tmp_path / "d.yaml"))]
    assert programs[0].cpp == programs[1].cpp


def test_what_is_wrong_is_reported() -> None:
    b = random_arm(0)
    links, light = heavy_chain(b, "base", "tip"), chain(b, "base", "tip")
    with pytest.raises(ModelError, match=naming("block 'x' gpusim.control.heavy_chain")):
        Diagram("d").add("inverse_dynamics", "x", **light)
    with pytest.raises(ModelError, match=naming("gravity")):
        Diagram("d").add("inverse_dynamics", "x", **(links | {"gravity": [1.0]}))
    for port, size, reported in (("q", 4, "q 4 5"),
                             ("velocity", 2, "velocity 2 5"),
                             ("load", 2, "load 1 2"),
                             ("wrench", 3, "wrench")):  # fmt: skip
        d = Diagram("d")
        d.add("inverse_dynamics", "x", **links)
        if port != "q":
            d.connect(d.add("constant", "q", value=[0.0] * 5), "x.q")
        d.connect(d.add("constant", "given", value=[0.0] * size), f"x.{port}")
        with pytest.raises(ModelError, match=naming(reported)):
            d.compile({}, {}, 1e-3)
    d = Diagram("d")
    d.connect(d.add("constant", "q", value=[0.0] * 5), d.add("inverse_dynamics", "x", **links)["q"])
    d.connect(d.add("constant", "given", value=1.0, unit="N"), "x.load")
    with pytest.raises(ModelError, match=naming("load")):
        d.compile({}, {}, 1e-3)
    held = b.add_body(1.0, (1, 1, 1), label="held", kinematic=True)
    b.add_joint_fixed(next(k for k, body in enumerate(b.bodies) if body.label == "joint2"), held)
    with pytest.raises(ModelError, match=naming("'held' 'joint2'")):
        heavy_chain(b, "base", "tip")
