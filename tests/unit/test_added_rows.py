from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.importers import load_urdf
from tests.message_snapshot import naming

from .helpers import PLACE, SOLVERS, ball_body, bits, different, rows_of, simulate, wheel
from .urdf_text import joint as urdf_joint
from .urdf_text import link, robot

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
NAMES = ("damping", "friction", "armature", "limit_lower", "limit_upper", "limit_restitution")
WORLDS = 3
VALUES: dict[str, Any] = {
    "joint.hinge.damping": (0.1, 0.4, 0.0), "joint.wrist.friction_1": (0.05, 0.0, 0.2), "joint.rope.damping": 3.0,
    "joint.knee.armature": (0.02, 0.1, 0.3), "joint.wrist.limit_upper_0": (0.3, 0.2, 0.1),
    "joint.socket.damping_2": (0.0, 0.2, 0.1),
}  # fmt: skip


def tree(contacts: bool = False, **early: Any) -> ModelBuilder:
    b = ModelBuilder()
    arm, hand, leg, toe, rod = (
        ball_body(b, mass, 0.05, com=(0.1, 0.0, 0.02), xform=PLACE * Transform((0.3 * k, 0, 0)), label=label)
        for k, (label, mass) in enumerate({"arm": 2.0, "hand": 1.0, "leg": 1.5, "toe": 0.5, "rod": 0.7}.items())
    )
    ahead = Transform((0.3, 0.0, 0.0))
    shoulder = b.add_joint_revolute(-1, arm, PLACE, axis=(0, 1, 0), label="hinge", **early.get("hinge", {}))
    b.add_joint_universal(arm, hand, ahead, label="wrist", **early.get("wrist", {}))
    knee = b.add_joint_revolute(hand, leg, ahead, axis=(0, 1, 0), label="knee", **early.get("knee", {}))
    ankle = b.add_joint_revolute(leg, toe, ahead, axis=(0, 0, 1), damping=0.1, label="ankle")
    b.add_joint_ball(toe, rod, ahead, label="socket", **early.get("socket", {}))
    ball = ball_body(b, xform=Transform((2.0, 0.0, 0.099)), label="ball")
    b.add_joint_distance(-1, ball, Transform((2.0, 0.0, 1.0)), max_distance=2.0, label="rope", **early.get("rope", {}))
    if contacts:
        b.add_shape_sphere(ball, 0.1)
        b.add_shape_plane()
    b.add_servo(ankle, stiffness=5.0, damping=0.5, label="servo")
    b.add_spring(-1, rod, (0.5, 0.0, 1.0), stiffness=20.0, damping=0.2, label="spring")
    b.add_gear(shoulder, knee, 0.7, label="gear")
    b.add_dc_motor(ankle, stall_torque=0.5, no_load_speed=20.0, mechanical_time_constant=0.05, label="motor")
    return b


EARLY = {
    "hinge": {"damping": 1.0}, "wrist": {"friction": (0.0, 1.0), "limit_upper": (1.0, np.inf)},
    "knee": {"armature": 1.0}, "socket": {"damping": (0.0, 0.0, 1.0)}, "rope": {"damping": 1.0},
}  # fmt: skip


def run(builder: ModelBuilder, steps: int, backend: str, dtype: str = "float64", solver: str = "direct") -> Simulation:
    config = SolverConfig(dt=2e-3, joint_solver=solver, iterations=8)
    sim = Simulation(builder.finalize(), WORLDS, backend, dtype, config)
    sim.write("sim.gravity", [(0.1 * k, 0.2, -9.81) for k in range(WORLDS)])
    sim.write("body.hand.mass", (0.8, 1.0, 1.2))
    sim.control["servo"], sim.control["motor"] = 0.2, (0.1, -0.2, 0.3)
    sim.step(steps)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("backend", "dtype"),
    [("numpy", "float64"), *(pytest.param("native", d, marks=pytest.mark.native) for d in ("float64", "float32"))],
)
def test_acts_as_if_built_so(backend: str, solver: str, dtype: str) -> None:
    contacts = backend == "native"
    late = run(tree(contacts), 100, backend, dtype, solver)
    early = run(tree(contacts, **EARLY), 0, backend, dtype, solver)
    before = {name: late.read(name) for name in ("joint.wrist.position", "body.rod.position", "joint.hinge.velocity")}
    for sim in (late, early):
        for name, value in VALUES.items():
            sim.write(name, value)
    assert [a.label for a in late.model.axes] == [a.label for a in early.model.axes]
    for name, value in before.items():
        np.testing.assert_allclose(late.read(name), value, atol=0.05 if "velocity" in name else 0.0, err_msg=name)
    for name, array in early.runtime.parameters.items():
        np.testing.assert_array_equal(*np.broadcast_arrays(array, late.runtime.parameters[name]), err_msg=name)
    early.backend.memory.state.restore(late.state, np.arange(WORLDS))
    early.invalidate()
    for sim in (late, early):
        sim.step(50)
    assert all(different(bits(late, k), bits(early, k)) == [] for k in range(WORLDS))
    assert np.all(late.health())
    for sim in (late, early):
        sim.reset()
        sim.step(20)
    assert all(different(bits(late, k), bits(early, k)) == [] for k in range(WORLDS))


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_zero_costs_nothing(backend: str) -> None:
    sim, calm = run(tree(), 20, backend), run(tree(), 20, backend)
    model = sim.model
    for suffix, joint in (("", "hinge"), ("_0", "wrist"), ("_1", "wrist"), ("_3", "socket")):
        built = {"limit_lower": -np.inf, "limit_upper": np.inf}
        for name in NAMES:
            signal = f"joint.{joint}.{name}{suffix}"
            np.testing.assert_array_equal(sim.read(signal), np.full(WORLDS, built.get(name, 0.0)))
            sim.write(signal, built.get(name, 0.0), worlds=1)
    assert sim.model is model and rows_of(model, "hinge") == 5
    sim.step(20)
    calm.step(20)
    assert all(different(bits(sim, k), bits(calm, k)) == [] for k in range(WORLDS))


def test_every_parameter_of_every_coordinate_is_a_signal() -> None:
    known = simulate(tree()).signals()
    suffixes = {"hinge": [""], "wrist": ["_0", "_1"], "rope": [""], "socket": ["_0", "_1", "_2", "_3"]}
    for joint, places in suffixes.items():
        assert all(known[f"joint.{joint}.{name}{place}"].writable for name in NAMES for place in places)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wheel_slows_down_as_it_should(backend: str) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    wheel(b, inertia=0.1)
    b.add_torque(0, (0.0, 0.03, 0.0), label="torque")
    sim = Simulation(b.finalize(), 4, backend, config=SolverConfig(dt=1e-3))
    sim.write("joint.wheel.velocity", 2.0)
    sim.control["torque"] = 0.0
    sim.step(500)
    np.testing.assert_allclose(sim.read("joint.wheel.position"), 1.0, rtol=1e-12)
    sim.write("joint.wheel.damping", 0.2, worlds=0)
    sim.write("joint.wheel.friction", 0.1, worlds=1)
    sim.write("joint.wheel.armature", 0.05, worlds=2)
    sim.write("joint.wheel.limit_upper", 1.5, worlds=3)
    np.testing.assert_allclose(sim.read("joint.wheel.velocity"), 2.0, rtol=2e-3)
    sim.control["torque"] = (0.0, 0.0, 1.0, 0.0)
    sim.step(500)
    time = 0.5 + 0.5e-3
    expected = [2.0 * np.exp(-0.2 / 0.1 * time), 2.0 - 0.1 / 0.1 * time, 2.0 + 0.03 / 0.15 * 0.5, 0.0]
    np.testing.assert_allclose(sim.read("joint.wheel.velocity"), expected, rtol=2e-6, atol=1e-9)
    assert sim.read("joint.wheel.position")[3] == pytest.approx(1.5, abs=1e-6)
    assert sim.read("joint.wheel.armature").tolist() == [0.0, 0.0, 0.05, 0.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_stopped_worlds_stay_stopped(backend: str) -> None:
    sim = run(tree(), 5, backend)
    control = sim.control
    sim.write("body.rod.linear_velocity", (1e200, 0.0, 0.0), worlds=1)
    with pytest.warns(UserWarning, match=naming("1")):
        sim.step(1)
    report, stood = sim.health_report(), sim.read("body.rod.position")[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.write("joint.hinge.damping", 0.5)
        assert sim.health_report() == report
        sim.step(5)
    np.testing.assert_array_equal(sim.health(), (True, False, True))
    np.testing.assert_array_equal(sim.read("body.rod.position")[1], stood)
    assert control["servo"].tolist() == [0.2] * WORLDS
    control["motor"] = 0.7
    np.testing.assert_array_equal(sim.read("motor.motor.command"), 0.7)
    sim.reset(np.array([False, True, False]))
    sim.step(5)
    assert np.all(sim.health()) and sim.health_report() == "all worlds are fine"
    np.testing.assert_array_equal(sim.read("joint.hinge.damping"), 0.5)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("damping", -1.0, "'hinge'"), ("limit_restitution", 1.5, "'hinge' limit_restitution"),
     ("armature", np.nan, "signal 'joint.hinge.armature'"), ("friction", np.inf, "signal 'joint.hinge.friction'")],
)  # fmt: skip
def test_wrong_values_change_nothing(name: str, value: float, words: str) -> None:
    sim = run(tree(), 3, "numpy")
    model = sim.model
    with pytest.raises(ModelError, match=naming(words)):
        sim.write(f"joint.hinge.{name}", value, worlds=2)
    assert sim.model is model and sim.read(f"joint.hinge.{name}").tolist() == [0.0] * WORLDS


@pytest.mark.nightly
def test_an_imported_robot_is_randomized(tmp_path: Path) -> None:
    plain = '<origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>'
    joints = [urdf_joint(f"j{k}", f"l{k}", f"l{k + 1}", "continuous", plain) for k in range(3)]
    file = tmp_path / "robot.urdf"
    file.write_text(robot(*(link(f"l{k}") for k in range(4)), *joints))
    builder, _ = load_urdf(file)
    rng = np.random.default_rng(5)
    drawn = {f"joint.j{k}.{name}": rng.uniform(0.01, 0.2, 4) for k in range(3) for name in NAMES[:3]}
    sim = Simulation(builder.finalize(), 4, "numpy")
    for name, values in drawn.items():
        sim.write(name, values)
        np.testing.assert_array_equal(sim.read(name), values)
    sim.step(50)
    for world in range(4):
        one, _ = load_urdf(file)
        for joint in one.joints:
            for name in NAMES[:3] if joint.params else ():
                joint.params[name][:] = drawn[f"joint.{joint.label}.{name}"][world]
        alone = Simulation(one.finalize(), 1, "numpy")
        alone.step(50)
        assert different(bits(alone, 0), bits(sim, world)) == []
