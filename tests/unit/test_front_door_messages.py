from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, UnknownNameError
from tests.message_snapshot import naming

from .helpers import ball_body

HIPS = "joint.a.position, joint.b.position, joint.c.position"
MESSAGES: dict[str, tuple[Callable[[Simulation], Any], str]] = {
    "actuator's parameter": (lambda s: s.write("servo.right.stiffness", -1), "servo 'right' stiffness"),
    "no number": (lambda s: s.write("joint.a.damping", "x"), "signal 'joint.a.damping' value 'x'"),
    "command": (lambda s: s.command("*").write("a"), "value 'a'"),
    "control": (lambda s: s.control.__setitem__("left", "a"), "command 'left' value 'a'"),
    "rows of several lengths": (lambda s: s.write("sim.gravity", [[1], [1, 2]]), "signal 'sim.gravity' [[1], [1, 2]]"),
    "mask": (lambda s: s.write("joint.a.damping", 1, [True, False]), "signal 'joint.a.damping' 2 3"),
    "wildcard's width": (lambda s: s.write_state({"joint.*.position": [1, 2]}), f"2 3 {HIPS}"),
    "wildcard read": (lambda s: s.read("joint.*.position"), "sim.observe"),
    "wildcard written": (lambda s: s.write("joint.?.position", 0), "sim.write_state"),
    "observe a number": (lambda s: s.observe(3), "3"),
    "observe numbers": (lambda s: s.observe(["*", 3]), "'*' 3"),
    "observe nothing": (lambda s: s.observe([]), "[]"),
    "command nothing": (lambda s: s.command([]), "[]"),
    "state": (lambda s: s.write_state([1]), "Simulation.write_state values 1"),
    "scheme": (lambda s: SolverConfig(scheme="paper"), "'second_order' 'semi_implicit'"),
    "strict": (lambda s: SolverConfig(strict="false"), "strict 'false' True False"),
}  # fmt: skip


def three_hips() -> ModelBuilder:
    b = ModelBuilder()
    joints = [b.add_joint_revolute(-1, ball_body(b), label=label) for label in "abc"]
    for joint, label in zip(joints, ("left", "right"), strict=False):
        b.add_servo(joint, stiffness=1.0, label=label)
    return b


@pytest.mark.parametrize("what", MESSAGES)
def test_messages_name_what_is_wrong(what: str) -> None:
    call, words = MESSAGES[what]
    with pytest.raises((ModelError, UnknownNameError), match=naming(words)):
        call(Simulation(three_hips().finalize(), 3, backend="numpy"))


def test_finalize_names_the_actuator() -> None:
    b = three_hips()
    b.actuators[1].params["damping"] = -1.0
    with pytest.raises(ModelError, match=naming("servo 'right' damping")):
        b.finalize()


def test_a_parameter_is_written_for_one_actuator_in_some_worlds() -> None:
    sim = Simulation(three_hips().finalize(), 3, backend="numpy")
    sim.write("servo.right.stiffness", [5.0, 6.0], worlds=[0, 2])
    assert sim.read("servo.right.stiffness").tolist() == [5.0, 1.0, 6.0]
    assert sim.read("servo.left.stiffness").tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ModelBuilder().add_servo(0, mod="velocity"), "add_servo 'mod' 'mode'"),
        (lambda: ModelBuilder().add_servo(0, kp=1.0), "add_servo 'kp' stiffness"),
        (lambda: ModelBuilder().add_body(mas=1.0), "add_body 'mas' 'mass'"),
        (lambda: SolverConfig(timestep=1.0), "SolverConfig 'timestep' dt"),
        (lambda: Material(mu=1.0), "Material 'mu' friction"),
        (lambda: Simulation(three_hips().finalize(), world=3), "Simulation 'world' num_worlds"),
    ],
)
def test_an_unknown_argument_gets_the_known_ones(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=naming(words)):
        call()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("5.5 kg", "5.5 without unit"),
        ("'0.3'", "mass"),
        ("90 deg", "convert 'deg' SI"),
        ("20mm", "convert 'mm' SI"),
        ("1,5", "decimal point 1.5"),
    ],
)
def test_a_unit_is_not_dropped_from_a_number(given: str, words: str) -> None:
    """The hint "give 90" would be wrong for 90 degrees."""
    with pytest.raises(ModelError, match=naming(words)):
        ModelBuilder().add_body(given, (1, 1, 1))  # type: ignore[arg-type]


WRONG_KINDS: dict[str, tuple[Callable[[ModelBuilder], Any], str]] = {
    "body for a joint": (lambda b: b.add_servo(b.add_body(1.0, (1, 1, 1)), stiffness=1.0), "joint = 4 body"),
    "joint for a body": (lambda b: b.add_shape_sphere(b.add_joint_free(-1, 0), 0.1), "body = 4 joint"),
    "actuator for a joint": (lambda b: b.add_force_sensor(b.add_joint_force(0)), "joint = 2 actuator"),
    "body for a site": (lambda b: b.add_ray_sensor(b.add_body(1.0, (1, 1, 1))), "site = 4 body"),
    "body for a shape": (lambda b: b.add_collision_pair(b.add_body(1.0, (1, 1, 1)), 0), "shape_a = 4 body"),
    "body in a tendon": (lambda b: b.add_tendon([(b.add_body(1.0, (1, 1, 1)), 1.0)]), "joint = 4 body"),
    "site for a joint's solver": (lambda b: b.set_joint_solver([b.add_site(0)], "direct"), "joint = 0 site"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_KINDS)
def test_an_index_of_another_kind_is_an_error(what: str) -> None:
    """Although an element of the right kind has this number."""
    call, words = WRONG_KINDS[what]
    b = three_hips()
    b.add_joint_revolute(-1, ball_body(b))
    with pytest.raises(ModelError, match=naming(words)):
        call(b)


def test_indices_of_numpy_and_plain_numbers_are_accepted() -> None:
    b = three_hips()
    assert b.add_force_sensor(cast(int, np.int64(1))) == 0 and b.add_servo(2, stiffness=1.0) == 2
    assert copy.deepcopy(b.add_site(0)) == pickle.loads(pickle.dumps(b.add_site(0))) - 1 == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("tme", "'tme' 'time'"), ("control", "'control' sim.control[label] = value"), ("num_worlds", "'num_worlds'")],
)
def test_a_simulation_gets_no_new_attributes(name: str, words: str) -> None:
    """A typo would have no effect, and ``sim.control = {...}`` would drop the commands."""
    sim = Simulation(three_hips().finalize(), backend="numpy")
    with pytest.raises(AttributeError, match=naming(words)):
        setattr(sim, name, {"left": 1.0})


def test_a_builder_gets_no_new_attributes() -> None:
    b = copy.deepcopy(three_hips())
    with pytest.raises(AttributeError, match=naming("'gravty' 'gravity'")):
        b.gravty = (0, 0, 0)  # type: ignore[attr-defined]
    b.gravity = np.zeros(3)

    class Own(ModelBuilder):
        """Subclasses in other packages may have attributes."""

    own: Any = Own()
    own.note = "mine"
    assert own.note == "mine"
