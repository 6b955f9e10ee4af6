"""ModelBuilder: what it checks, and copies of whole builders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import BumpStop, ModelBuilder, ModelError, Simulation, Transform

from .helpers import FRAME_A, PLACE, ball_body, simulate

NAN, INF = float("nan"), float("inf")
I3 = (0.1, 0.1, 0.1)
CYLINDER: dict[str, Any] = dict(
    area_a=2e-3, area_b=1e-3, volume_a=1e-3, volume_b=1e-3, stroke_min=0.0, stroke_max=0.5, flow_gain=1e-7
)
MOTOR: dict[str, Any] = dict(stall_torque=1.0, no_load_speed=100.0, mechanical_time_constant=0.1)


def two_bodies() -> ModelBuilder:
    """Bodies 'a' and 'b', and a revolute 'hinge' from the world to 'a'."""
    b = ModelBuilder()
    b.add_body(1.0, I3, label="a")
    b.add_body(1.0, I3, label="b")
    b.add_joint_revolute(-1, 0, limit_lower=-1.0, limit_upper=1.0, label="hinge")
    return b


BAD: dict[str, tuple[Callable[[ModelBuilder], Any], tuple[str, ...]]] = {
    "no mass": (lambda b: b.add_body(0.0, I3, label="x"), ("body 'x'", "mass", "above zero")),
    "negative mass": (lambda b: b.add_body(-1.0, I3), ("mass = -1",)),
    "mass NaN": (lambda b: b.add_body(NAN, I3), ("mass", "finite")),
    "mass text": (lambda b: b.add_body("heavy", I3), ("mass", "heavy", "number")),
    "inertia shape": (lambda b: b.add_body(1.0, (1.0, 2.0)), ("inertia", "shape")),
    "triangle rule": (lambda b: b.add_body(1.0, (1, 1, 3), label="x"), ("body 'x'", "triangle rule")),
    "inertia of round-off": (lambda b: b.add_body(0.2, (1e-15,) * 3), ("body 'body2'", "of 0.2 kg", "small ball")),
    "one moment of round-off": (lambda b: b.add_body(0.2, (0.1, 0.1, 1e-15)), ("1e-15 kg m2", "leave it out")),
    "inertia not definite": (lambda b: b.add_body(1.0, (0.1, 0.1, 0.0)), ("principal moment",)),
    "products too large": (lambda b: b.add_body(1.0, (0.1, 0.1, 0.1, 0.2, 0, 0)), ("principal moment",)),
    "inertia not symmetric": (lambda b: b.add_body(1.0, [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), ("symmetric",)),
    "inertia NaN": (lambda b: b.add_body(1.0, (NAN, 1, 1)), ("inertia", "finite")),
    "com shape": (lambda b: b.add_body(1.0, I3, com=(0, 0)), ("com", "3 numbers")),
    "velocity NaN": (lambda b: b.add_body(1.0, I3, linear_velocity=(0, 0, NAN)), ("linear_velocity", "finite")),
    "xform": (lambda b: b.add_body(1.0, I3, xform=(0, 0, 1)), ("xform", "Transform")),
    "label taken": (lambda b: b.add_body(1.0, I3, label="a"), ("'a'", "taken")),
    "label with dot": (lambda b: b.add_body(1.0, I3, label="a.b"), ("a.b", "dots")),
    "label with space": (lambda b: b.add_body(1.0, I3, label="a b"), ("a b", "spaces")),
    "label empty": (lambda b: b.add_body(1.0, I3, label=""), ("label",)),
    "joint label taken": (lambda b: b.add_joint_ball(-1, 1, label="hinge"), ("hinge", "taken")),
    "unknown parent": (lambda b: b.add_joint_ball(5, 1, label="j"), ("joint 'j'", "parent = 5", "2 bodies")),
    "unknown child": (lambda b: b.add_joint_ball(-1, -2), ("child = -2",)),
    "child is a label": (lambda b: b.add_joint_ball(-1, "a"), ("child", "'a'", "add_body")),
    "same body": (lambda b: b.add_joint_ball(1, 1), ("same body", "b")),
    "world to world": (lambda b: b.add_joint_ball(-1, -1), ("same body", "world")),
    "axis zero": (lambda b: b.add_joint_revolute(-1, 1, axis=(0, 0, 0)), ("axis", "direction")),
    "axis NaN": (lambda b: b.add_joint_prismatic(-1, 1, axis=(0, NAN, 0)), ("axis", "finite")),
    "axes not square": (lambda b: b.add_joint_universal(-1, 1, axis2=(1, 1, 0)), ("perpendicular",)),
    "limits swapped": (
        lambda b: b.add_joint_revolute(-1, 1, limit_lower=1, limit_upper=-1, label="j"), ("joint 'j'", "above", "swap")
    ),
    "limit NaN": (lambda b: b.add_joint_revolute(-1, 1, limit_upper=NAN), ("limit_upper",)),
    "limits of one axis": (lambda b: b.add_joint_planar(-1, 1, limit_lower=(0, 0)), ("limit_lower", "3")),
    "damping": (lambda b: b.add_joint_revolute(-1, 1, damping=-0.1), ("damping", "negative")),
    "friction": (lambda b: b.add_joint_cylindrical(-1, 1, friction=(0, -1)), ("friction", "negative")),
    "armature": (lambda b: b.add_joint_prismatic(-1, 1, armature=INF), ("armature", "finite")),
    "ball limit": (lambda b: b.add_joint_ball(-1, 1, limit=0.0), ("limit", "above zero")),
    "rod of no length": (lambda b: b.add_joint_distance(-1, 1, max_distance=0.0), ("no length", "ball")),
    "distances swapped": (lambda b: b.add_joint_distance(-1, 1, min_distance=2, max_distance=1), ("above", "swap")),
    "frame": (lambda b: b.add_joint_ball(-1, 1, parent_xform=(0, 0, 0)), ("parent_xform", "Transform")),
    "servo mode": (lambda b: b.add_servo(0, mode="torque", stiffness=1), ("mode", "torque", "velocity")),
    "servo without gains": (lambda b: b.add_servo(0), ("both zero",)),
    "velocity servo": (lambda b: b.add_servo(0, mode="velocity", stiffness=1), ("damping",)),
    "servo effort": (lambda b: b.add_servo(0, stiffness=1, effort_limit=-1), ("effort_limit", "negative")),
    "servo joint": (lambda b: b.add_servo(3, stiffness=1), ("joint = 3", "1 joints")),
    "servo axis": (lambda b: b.add_servo(0, stiffness=1, axis=1), ("coordinate 1",)),
    "spring ends": (lambda b: b.add_spring(1, 1, stiffness=1), ("same body",)),
    "spring stiffness": (lambda b: b.add_spring(-1, 1, stiffness=-1), ("stiffness", "negative")),
    "spring point": (lambda b: b.add_spring(-1, 1, point_a=(0, 0), stiffness=1), ("point_a",)),
    "spring preload": (lambda b: b.add_spring(-1, 1, preload=5.0), ("preload", "needs a stiffness")),
    "spring preload twice": (
        lambda b: b.add_spring(-1, 1, stiffness=1, rest_length=1.0, preload=5.0), ("preload and rest_length", "one of")
    ),
    "spring of no length": (lambda b: b.add_spring(-1, 1, stiffness=1, preload=-5e3), ("free length", "below zero")),
    "spring damping": (lambda b: b.add_spring(-1, 1, stiffness=1, damping=(1, -1)), ("damping", "negative")),
    "spring damping of three": (lambda b: b.add_spring(-1, 1, damping=(1, 2, 3)), ("damping", "2 to 16 rows")),
    "damper unsorted": (lambda b: b.add_spring(-1, 1, damping=[(1, 1), (0, 0)]), ("damping", "do not rise", "sort")),
    "damper falls": (lambda b: b.add_spring(-1, 1, damping=[(0, 0), (1, 5), (2, 4)]), ("falls with the velocity",)),
    "damper drives": (lambda b: b.add_spring(-1, 1, damping=[(-1, 1), (1, 2)]), ("(0, 0)", "add the row")),
    "table unsorted": (lambda b: b.add_spring(-1, 1, table=[(2, 1), (1, 5)]), ("table", "do not rise", "sort")),
    "table rises": (lambda b: b.add_spring(-1, 1, table=[(1, 1), (2, 5)]), ("table", "push itself away")),
    "table of one": (lambda b: b.add_spring(-1, 1, table=[(1, 1)]), ("table", "2 to 16 rows")),
    "table infinite": (lambda b: b.add_spring(-1, 1, table=[(1, INF), (2, 0)]), ("table", "finite")),
    "table and stiffness": (lambda b: b.add_spring(-1, 1, stiffness=1, table=[(1, 1), (2, 0)]), ("whole force",)),
    "bump stop": (lambda b: b.add_spring(-1, 1, bump=0.1), ("bump = 0.1", "gpusim.BumpStop")),
    "bump stop below zero": (lambda b: b.add_spring(-1, 1, bump=BumpStop(-0.1, 1.0)), ("bump.at", "above zero")),
    "bump stop too soft": (lambda b: b.add_spring(-1, 1, bump=BumpStop(1, 0)), ("bump.stiffness", "above zero")),
    "bump stop too thin": (lambda b: b.add_spring(-1, 1, droop=BumpStop(1, 1, 0)), ("droop.length", "above zero")),
    "stops swapped": (
        lambda b: b.add_spring(-1, 1, bump=BumpStop(2.0, 1.0), droop=BumpStop(1.0, 1.0)), ("bump.at = 2", "above")
    ),
    "stop outside the travel": (
        lambda b: b.add_torsion_spring(0, bump=BumpStop(-2.0, 1.0)), ("bump.at = -2", "limits -1 to 1", "hold first")
    ),
    "bushing negative": (lambda b: b.add_bushing(-1, 1, stiffness=(1, 1, 1, 1, 1, -1)), ("stiffness", "negative")),
    "bushing of five": (lambda b: b.add_bushing(-1, 1, stiffness=(1,) * 5), ("stiffness", "(5,)", "6 numbers")),
    "bushing of nothing": (lambda b: b.add_bushing(-1, 1, stiffness=0.0, damping=1.0), ("zero in all motions",)),
    "bushing skew": (
        lambda b: b.add_bushing(-1, 1, stiffness=np.eye(6) + 0.5 * np.eye(6, k=4), label="soft"),
        ("bushing 'soft'", "stiffness[0, 4] = 0.5", "differ", "symmetric"),
    ),
    "motor torque": (lambda b: b.add_dc_motor(0, **{**MOTOR, "stall_torque": 0}), ("stall_torque", "above zero")),
    "motor gear": (lambda b: b.add_dc_motor(0, gear_ratio=0, **MOTOR), ("gear_ratio = 0", "within 1e-09")),
    "force on the world": (lambda b: b.add_force(-1, (0, 0, 1)), ("world",)),
    "force frame": (lambda b: b.add_force(0, (0, 0, 1), frame="joint"), ("frame", "joint")),
    "torque shape": (lambda b: b.add_torque(0, 3.0), ("torque", "3 numbers")),
    "cylinder area": (lambda b: b.add_hydraulic_cylinder(-1, 0, **{**CYLINDER, "area_a": 0}), ("area_a",)),
    "cylinder volume": (lambda b: b.add_hydraulic_cylinder(-1, 0, **{**CYLINDER, "volume_b": 1e-4}), ("B", "volume")),
    "cylinder stroke": (lambda b: b.add_hydraulic_cylinder(-1, 0, **{**CYLINDER, "stroke_min": 1}), ("stroke_min",)),
    "cylinder overlap": (lambda b: b.add_hydraulic_cylinder(-1, 0, overlap_supply=1.0, **CYLINDER), ("overlap",)),
    "cylinder pressures": (
        lambda b: b.add_hydraulic_cylinder(-1, 0, tank_pressure=2e7, **CYLINDER),
        ("tank_pressure",),
    ),
    "papers without piston": (
        lambda b: b.add_hydraulic_cylinder(-1, 0, coupling="papers", **CYLINDER),
        ("piston_mass",),
    ),
    "gravity": (lambda b: ModelBuilder(gravity=(0, 0)), ("gravity",)),
    "worlds": (lambda b: ModelBuilder().replicate(b, 0), ("num_worlds", "at least 1")),
    "not empty": (lambda b: b.replicate(two_bodies(), 2), ("not empty", "add_builder")),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_rule_and_mend(name: str) -> None:
    """One clear sentence that names element, rule and mend; and the builder stays as it was."""
    b = two_bodies()
    call, words = BAD[name]
    with pytest.raises(ModelError) as error:
        call(b)
    message = str(error.value)
    assert "\n" not in message
    assert ";" in message
    for word in words:
        assert word in message, message
    assert [len(x) for x in (b.bodies, b.joints, b.couplings, b.actuators)] == [2, 1, 0, 0]


def test_a_model_without_bodies_or_with_immovable_joints() -> None:
    """finalize() checks the whole."""
    with pytest.raises(ModelError, match="no body"):
        ModelBuilder().finalize()
    b = ModelBuilder()
    b.add_body(1.0, I3, kinematic=True, label="base")
    b.add_joint_fixed(-1, 0, label="j")
    with pytest.raises(ModelError, match="joint 'j'.*world and base"):
        b.finalize()
    b = two_bodies()
    b.add_joint_free(-1, 1, label="f1")
    b.add_joint_free(-1, 1, label="f2")
    with pytest.raises(ModelError, match="'f2'.*'b'.*'f1'"):
        b.finalize()


def test_labels_and_indices_of_a_model() -> None:
    """Default labels are kind and index; unknown ones name the nearest."""
    b = ModelBuilder()
    b.add_body(1.0, I3)
    b.add_body(1.0, I3, label="arm")
    b.add_joint_ball(-1, 0)
    b.add_force(1, (0, 0, 1))
    model = b.finalize()
    assert model.labels("body") == ["body0", "arm"]
    assert model.labels("joint") == ["joint0"]
    assert model.labels("actuator") == ["force0"]
    assert model.index("body", "arm") == 1
    with pytest.raises(gpusim.UnknownNameError, match="'arm'"):
        model.index("body", "arn")
    with pytest.raises(gpusim.UnknownNameError, match="joint"):
        model.labels("joints")


def machine() -> ModelBuilder:
    """Every reference between elements that add_builder has to move: joints, couplings, actuators, world points."""
    b = ModelBuilder()
    arm = b.add_body(2.0, (0.1, 0.2, 0.15), com=(0.2, 0, 0), xform=FRAME_A, label="arm",
                     linear_velocity=(0.1, 0.2, 0.3),
                     angular_velocity=(0.3, -0.2, 0.5))  # fmt: skip
    hand = ball_body(b, 1.0, 0.05, xform=FRAME_A * Transform((0.5, 0, 0)), label="hand")
    hinge = b.add_joint_revolute(-1, arm, FRAME_A, axis=(0, 1, 0), damping=0.3, label="hinge")
    wrist = b.add_joint_universal(arm, hand, Transform((0.5, 0, 0)), label="wrist")
    b.add_gear(hinge, wrist, -1.5, label="gear")
    b.add_mimic(wrist, hinge, 0.5, axis=1, offset=0.0, label="mimic")
    b.add_servo(hinge, stiffness=20.0, damping=1.0, label="servo")
    b.add_spring(-1, hand, (0.1, 0.2, 1.0), stiffness=30.0, rest_length=0.5, label="spring")
    b.add_force(hand, (0.5, 0, 0.2), frame="body", label="push")
    return b


def moved(pose: Transform, other: Simulation, label: str) -> Transform:
    """Pose of a body of another simulation, moved."""
    return pose * Transform(other.read(f"body.{label}.position")[0], other.read(f"body.{label}.orientation")[0])


def test_add_builder_moves_everything() -> None:
    """Two copies, moved by X (with gravity off, physics does not care): body poses are X times the original's."""
    template = machine()
    template.gravity[:] = 0.0
    alone = simulate(template, dt=2e-3)
    b = ModelBuilder(gravity=(0, 0, 0))
    first, second = Transform((5.0, 0, 0)), PLACE
    b.add_builder(template, first, "left_")
    b.add_builder(template, second, "right_")
    both = simulate(b, dt=2e-3)
    assert both.model.labels("body") == ["left_arm", "left_hand", "right_arm", "right_hand"]
    assert both.model.labels("actuator")[:3] == ["left_servo", "left_spring", "left_push"]
    for sim in (alone, both):
        sim.step(60)
    for prefix, pose in (("left_", first), ("right_", second)):
        for label in ("arm", "hand"):
            wanted = moved(pose, alone, label)
            np.testing.assert_allclose(both.read(f"body.{prefix}{label}.position")[0], wanted.position, atol=1e-9)
            turned = Transform((0, 0, 0), both.read(f"body.{prefix}{label}.orientation")[0]).matrix()
            np.testing.assert_allclose(turned, wanted.matrix(), atol=1e-9)
        for name in ("hinge", "wrist"):
            np.testing.assert_allclose(
                both.read(f"joint.{prefix}{name}.position")[0], alone.read(f"joint.{name}.position")[0], atol=1e-9
            )
        assert both.read(f"spring.{prefix}spring.length")[0] == pytest.approx(alone.read("spring.spring.length")[0])


def test_add_builder_copies_and_does_not_share() -> None:
    """The template stays as it was, and later changes of it change no copy."""
    template = machine()
    b = ModelBuilder()
    b.add_builder(template, PLACE, "x_")
    assert [len(x) for x in (template.bodies, template.joints, template.actuators)] == [2, 2, 3]
    template.bodies[0].mass = 77.0
    template.joints[0].params["damping"][:] = 5.0
    template.bodies[0].com[:] = 3.0
    model = b.finalize()
    assert model.bodies[0].mass == 2.0
    assert model.bodies[0].com[0] == 0.2
    assert float(model.joints[0].params["damping"][0]) == 0.3


def test_add_builder_twice_needs_prefixes() -> None:
    """The same labels again are refused by name."""
    b = ModelBuilder()
    b.add_builder(machine())
    with pytest.raises(ModelError, match="'arm'.*taken"):
        b.add_builder(machine())


def test_replicate_sets_the_number_of_worlds() -> None:
    """All worlds start alike, with the template's gravity, and stay alike bit for bit."""
    template = machine()
    template.gravity[:] = (0.0, 0.1, -1.6)
    b = ModelBuilder()
    b.replicate(template, 3)
    sim = simulate(b)
    assert sim.num_worlds == 3
    sim.step(20)
    x = sim.read("body.hand.position")
    assert x.shape == (3, 3)
    assert x[0].tobytes() == x[1].tobytes() == x[2].tobytes()
    np.testing.assert_array_equal(sim.read("sim.gravity"), np.tile((0.0, 0.1, -1.6), (3, 1)))
    alone = simulate(template)
    alone.step(20)
    assert alone.read("body.hand.position")[0].tobytes() == x[0].tobytes()


def test_inertia_forms_agree() -> None:
    """3, 6 and 9 numbers."""
    b = ModelBuilder()
    b.add_body(1.0, (0.1, 0.2, 0.25, 0.01, -0.02, 0.03), label="six")
    b.add_body(1.0, [[0.1, 0.01, -0.02], [0.01, 0.2, 0.03], [-0.02, 0.03, 0.25]], label="nine")
    sim = simulate(b)
    np.testing.assert_array_equal(sim.read("body.six.inertia"), sim.read("body.nine.inertia"))
    assert sim.read("body.six.inertia").shape == (1, 3, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "float16"}, ("dtype", "float16", "float32")),
        ({"backend": "metal"}, ("backend", "metal", "numpy")),
        ({"num_worlds": 0}, ("num_worlds",)),
        ({"num_worlds": 2.5}, ("num_worlds",)),
    ],
)
def test_simulations_that_make_no_sense(options: dict[str, Any], words: tuple[str, ...]) -> None:
    """Settings are checked with the known names."""
    with pytest.raises(gpusim.GpusimError) as error:
        Simulation(two_bodies().finalize(), **options)
    assert all(word in str(error.value) for word in words), str(error.value)
    with pytest.raises(ModelError, match="finalize"):
        Simulation(two_bodies())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"dt": 0.0},
        {"substeps": 0},
        {"iterations": 1.5},
        {"epsilon": -1.0},
        {"joint_solver": "magic"},
        {"scheme": "rk4"},
    ],
)
def test_configs_that_make_no_sense(options: dict[str, Any]) -> None:
    """SolverConfig checks itself."""
    with pytest.raises(ModelError, match=next(iter(options))):
        gpusim.SolverConfig(**options)
