from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.control import Diagram
from gpusim.viewer.operator.inputs import command_inputs
from tests.message_snapshot import naming

BACKENDS = [("numpy", "auto"), ("native", "fused"), ("native", "simd")]


def machine(**motor: float) -> ModelBuilder:
    """Return a free wheel with a torque, a hinge with a servo and a slide with a DC motor."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    wheel, arm, slide = (
        b.add_body(1.0, (0.5, 0.5, 0.5), xform=Transform((k, 0.0, 0.0)), label=name)
        for k, name in enumerate(("wheel", "arm", "slide"))
    )
    joints = [b.add_joint_revolute(-1, body, at=(k, 0.0, 0.0), axis=(0, 0, 1)) for k, body in enumerate((wheel, arm))]
    b.add_joint_force(joints[0], label="torque")
    b.add_servo(joints[1], stiffness=50.0, damping=5.0, label="servo")
    b.add_dc_motor(
        b.add_joint_prismatic(-1, slide, at=(2.0, 0.0, 0.0)), stall_torque=2.0, no_load_speed=5.0,
        mechanical_time_constant=0.1, label="motor",
    )  # fmt: skip
    return b


def simulation(b: ModelBuilder, worlds: int = 2, backend: str = "numpy", launch: str = "auto") -> Simulation:
    config = SolverConfig(dt=1e-3)
    return Simulation(b.finalize(), worlds, backend=backend, config=config, launch=launch)


@pytest.mark.slow_numpy
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_the_actuator_takes_the_mapped_command(backend: str, launch: str) -> None:
    b = machine()
    b.set_command_map("torque", factor=-3.0, offset=0.5, lower=-1.0, upper=2.0)
    sim = simulation(b, 3, backend, launch)
    sim.control["torque"] = [-7.0, 1.0, 9.0]
    assert np.array_equal(sim.control["torque"], [-7.0, 1.0, 9.0])
    assert np.allclose(sim.read("force.torque.command"), [3.5, -2.5, -5.5])
    sim.step(100)
    # w = torque t / I
    assert np.allclose(sim.read("body.wheel.angular_velocity")[:, 2], np.array([3.5, -2.5, -5.5]) * 0.1 / 0.5)


def test_backends_have_the_same_bits_with_maps() -> None:
    b = machine()
    b.set_command_map("torque", factor=0.3, offset=0.1)
    b.set_command_map("servo", factor=2.0, lower=-0.2, upper=0.4)
    states = []
    for launch in ("fused", "simd"):
        sim = simulation(b, 4, "native", launch)
        sim.control["torque"], sim.control["servo"] = [0.0, 1.0, 2.0, 3.0], [-1.0, 0.1, 0.3, 1.0]
        sim.step(50)
        states.append(np.array(sim.read_state()["orientation"]))
    assert np.array_equal(*states)


def test_a_written_command_signal_reads_as_written() -> None:
    """The signal is in the actuator's units. Behind a lag or a diagram, another value would replace it."""
    b = machine()
    b.set_command_map("motor", factor=-0.01, offset=0.5)
    b.set_command_map("servo", time_constant=0.1)
    sim = simulation(b)
    sim.write("motor.motor.command", 0.2)
    sim.step()
    assert sim.read("motor.motor.command") == pytest.approx([0.2, 0.2])
    assert sim.control["motor"] == pytest.approx([30.0, 30.0])
    with pytest.raises(ModelError, match=naming("'servo.applied' 'servo'")):
        sim.write("servo.servo.target", 0.5)
    d = Diagram("d")
    d.connect(0.3, "command:motor")
    b.add_diagram(d)
    with pytest.raises(ModelError, match=naming("'motor' 'd'")):
        simulation(b).write("motor.motor.command", 0.5)


def test_first_command_maps_to_the_first_target() -> None:
    b = machine()
    b.add_servo(0, stiffness=1.0, damping=1.0, target=0.6, label="held")
    b.set_command_map("held", factor=2.0, offset=0.2)
    b.set_command_map("torque", offset=1.0, initial=0.0)
    sim = simulation(b)
    assert np.allclose(sim.control["held"], 0.2) and np.allclose(sim.read("servo.held.target"), 0.6)
    assert np.allclose(sim.control["torque"], 0.0) and np.allclose(sim.read("force.torque.command"), 1.0)


def test_own_range_of_the_actuator_stays() -> None:
    b = machine()
    b.set_command_map("motor", factor=0.01)
    sim = simulation(b)
    sim.control["motor"] = [50.0, 300.0]
    assert np.allclose(sim.read("motor.motor.command"), [0.5, 1.0])
    item = command_inputs(b.finalize())["motor"]
    assert (item.lower, item.upper, item.safe, item.unit) == (-100.0, 100.0, 0.0, "-")


def test_emergency_stop_ends_all_torque_and_holds_servos() -> None:
    b = machine()
    b.set_command_map("torque", factor=2.0, offset=1.0)
    b.set_command_map("servo", factor=-2.0, offset=0.3)
    sim = simulation(b)
    sim.control["torque"], sim.control["servo"] = 3.0, -0.5
    sim.step(200)
    reached = np.array(sim.read("joint.joint1.position"))
    sim.override()
    sim.step()
    assert np.allclose(sim.read("force.torque.command"), 0.0)
    assert np.allclose(sim.read("servo.servo.target"), reached) and np.all(reached > 0.1)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_delayed_and_mapped(backend: str) -> None:
    b = ModelBuilder()
    joint = b.add_joint_revolute(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(0, 0, 1))
    b.add_joint_force(joint, label="drive", delay=0.003)
    b.set_command_map("drive", factor=10.0)
    sim = simulation(b, 1, backend)
    sim.control["drive"] = 0.2
    seen = []
    for _ in range(6):
        sim.step()
        seen.append(float(sim.read("force.drive.command")[0]))
    assert seen == [0.0, 0.0, 0.0, 2.0, 2.0, 2.0]


def test_diagrams_give_commands_in_their_units() -> None:
    b = machine()
    b.set_command_map("torque", factor=4.0, upper=1.0)
    diagram = Diagram("controller")
    diagram.connect(0.5, "command:torque")
    b.add_diagram(diagram)
    sim = simulation(b)
    sim.step()
    assert np.allclose(sim.read("force.torque.command"), 2.0)


def test_maps_of_a_copied_builder() -> None:
    template = machine()
    template.set_command_map("torque", factor=4.0)
    b = ModelBuilder()
    b.add_builder(template, label_prefix="left_")
    sim = simulation(b)
    sim.control["left_torque"] = 1.0
    assert np.allclose(sim.read("force.left_torque.command"), 4.0)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"command": "torqe"}, "torque"),
        ({"factor": 0.0}, "factor"),
        ({"factor": "two"}, "factor"),
        ({"offset": float("nan")}, "offset"),
        ({"lower": 1.0, "upper": -1.0}, "lower"),
        ({"lower": float("nan")}, "lower"),
        ({"upper": 1.0, "initial": 2.0}, "initial"),
        ({"upper": 1.0, "safe": 2.0}, "safe"),
        ({"safe": float("nan")}, "safe"),
    ],
)
def test_bad_maps_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ModelError, match=naming(word)):
        machine().set_command_map(**{"command": "torque"} | arguments)  # type: ignore[arg-type]


def test_a_safe_value_of_each_command() -> None:
    b = machine()
    b.set_command_map("torque", factor=2.0, upper=1.0, safe=0.25)
    b.set_command_map("servo", safe=0.1)
    b.set_command_map("motor", integrate=True, safe=-0.5)
    sim = simulation(ModelBuilder.from_dict(b.to_dict()))
    for label in ("torque", "servo", "motor"):
        sim.control[label] = 0.7
    sim.override()
    sim.step(5)
    assert sim.control["torque"].tolist() == [0.25, 0.25] and sim.control["servo"].tolist() == [0.1, 0.1]
    assert sim.control["motor"].tolist() == [-0.5, -0.5]
    assert sim.read("force.torque.command").tolist() == [0.5, 0.5]
    servo = command_inputs(sim.model)["servo"]
    assert (servo.safe, servo.unit) == (0.1, "rad")


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_lag_is_exponential_and_differs_by_world(backend: str) -> None:
    b = machine()
    b.set_command_map("torque", factor=3.0, lower=-1.0, upper=2.0, initial=1.0, time_constant=0.05)
    sim = simulation(b, 3, backend)
    sim.write("force.torque.time_constant", [0.05, 0.1, 0.0])
    sim.control["torque"] = [9.0, 0.0, -0.5]
    sim.step(41)
    # The mean over the last step acts.
    grown = 1.0 - np.mean(np.exp(-np.array([[0.04], [0.041]]) / np.array([0.05, 0.1])), axis=0)
    assert np.allclose(sim.read("force.torque.command"), [3.0 * (1.0 + grown[0]), 3.0 * (1.0 - grown[1]), -1.5])
    sim.override()
    sim.step()
    assert np.allclose(sim.read("force.torque.command"), 0.0)
    sim.release()
    sim.reset()
    assert np.allclose(sim.read("force.torque.command")[:2], 3.0)
    assert np.allclose(sim.read("force.torque.activation"), 1.0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_lag_follows_the_command_within_the_actuators_range(backend: str) -> None:
    b = machine()
    b.set_command_map("motor", time_constant=0.05)
    sim = simulation(b, 2, backend)
    sim.control["motor"] = [1.0, 7.5]
    sim.step(100)
    assert sim.read("motor.motor.activation")[0] == sim.read("motor.motor.activation")[1] < 1.0
    sim.control["motor"] = 0.0
    sim.step(50)
    one, other = sim.read("joint.joint2.velocity")
    assert one == other != 0.0


def test_lag_after_a_delay_has_equal_bits() -> None:
    states = []
    for backend in ("numpy", "native"):
        b = ModelBuilder()
        joint = b.add_joint_revolute(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(0, 0, 1))
        b.add_joint_force(joint, label="drive", delay=0.01)
        b.set_command_map("drive", time_constant=0.02)
        sim = simulation(b, 1, backend)
        sim.control["drive"], seen = 1.0, []
        for _ in range(60):
            sim.step()
            seen.append(float(sim.read("force.drive.command")[0]))
        states.append(seen)
    assert states[0] == states[1] and states[0][9] == 0.0 and states[0][10] > 0.0
    left = np.exp(-0.001 * np.arange(51) / 0.02)
    assert np.allclose(states[0][10:], 1.0 - 0.5 * (left[1:] + left[:-1]))
