from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import BumpStop, ModelBuilder, ModelError, Simulation, Transform
from tests.message_snapshot import naming

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
    "no mass": (lambda b: b.add_body(0.0, I3, label="x"), "'x' mass"),
    "negative mass": (lambda b: b.add_body(-1.0, I3), "mass -1"),
    "mass NaN": (lambda b: b.add_body(NAN, I3), "mass"),
    "mass text": (lambda b: b.add_body("heavy", I3), "'body2' mass 'heavy'"),
    "'body2' inertia": (lambda b: b.add_body(1.0, (1.0, 2.0)), "'body2' inertia"),
    "triangle rule": (lambda b: b.add_body(1.0, (1, 1, 3), label="x"), "'x'"),
    "inertia of round-off": (lambda b: b.add_body(0.2, (1e-15,) * 3), "'body2' 0.2"),
    "one moment of round-off": (lambda b: b.add_body(0.2, (0.1, 0.1, 1e-15)), "1e-15"),
    "inertia not definite": (lambda b: b.add_body(1.0, (0.1, 0.1, 0.0)), "'body2' inertia 0"),
    "products too large": (lambda b: b.add_body(1.0, (0.1, 0.1, 0.1, 0.2, 0, 0)), "'body2' inertia -0.1"),
    "inertia not symmetric": (lambda b: b.add_body(1.0, [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "'body2' inertia"),
    "inertia NaN": (lambda b: b.add_body(1.0, (NAN, 1, 1)), "inertia"),
    "com shape": (lambda b: b.add_body(1.0, I3, com=(0, 0)), "com 3"),
    "velocity NaN": (lambda b: b.add_body(1.0, I3, linear_velocity=(0, 0, NAN)), "linear_velocity"),
    "xform": (lambda b: b.add_body(1.0, I3, xform=(0, 0, 1)), "xform"),
    "label taken": (lambda b: b.add_body(1.0, I3, label="a"), "'a'"),
    "label with dot": (lambda b: b.add_body(1.0, I3, label="a.b"), "'a.b'"),
    "label with space": (lambda b: b.add_body(1.0, I3, label="a b"), ""),
    "label empty": (lambda b: b.add_body(1.0, I3, label=""), "label"),
    "joint label taken": (lambda b: b.add_joint_ball(-1, 1, label="hinge"), "hinge"),
    "unknown parent": (lambda b: b.add_joint_ball(5, 1, label="j"), "'j' parent 5 2"),
    "unknown child": (lambda b: b.add_joint_ball(-1, -2), "child -2"),
    "child is a label": (lambda b: b.add_joint_ball(-1, "a"), "child 'a' add_body"),
    "same body": (lambda b: b.add_joint_ball(1, 1), "'joint1'"),
    "world to world": (lambda b: b.add_joint_ball(-1, -1), "'joint1'"),
    "axis zero": (lambda b: b.add_joint_revolute(-1, 1, axis=(0, 0, 0)), "axis"),
    "axis NaN": (lambda b: b.add_joint_prismatic(-1, 1, axis=(0, NAN, 0)), "axis"),
    "axes not square": (lambda b: b.add_joint_universal(-1, 1, axis2=(1, 1, 0)), "'joint1'"),
    "limits swapped": (
        lambda b: b.add_joint_revolute(-1, 1, limit_lower=1, limit_upper=-1, label="j"), "'j'"
    ),
    "limit NaN": (lambda b: b.add_joint_revolute(-1, 1, limit_upper=NAN), "limit_upper"),
    "limits of one axis": (lambda b: b.add_joint_planar(-1, 1, limit_lower=(0, 0)), "limit_lower 3"),
    "damping": (lambda b: b.add_joint_revolute(-1, 1, damping=-0.1), "damping"),
    "friction": (lambda b: b.add_joint_cylindrical(-1, 1, friction=(0, -1)), "friction"),
    "armature": (lambda b: b.add_joint_prismatic(-1, 1, armature=INF), "armature"),
    "ball limit": (lambda b: b.add_joint_ball(-1, 1, limit=0.0), "limit"),
    "rod of no length": (lambda b: b.add_joint_distance(-1, 1, max_distance=0.0), "ball"),
    "distances swapped": (lambda b: b.add_joint_distance(-1, 1, min_distance=2, max_distance=1), "'joint1' 2 1"),
    "frame": (lambda b: b.add_joint_ball(-1, 1, parent_xform=(0, 0, 0)), "parent_xform"),
    "servo mode": (lambda b: b.add_servo(0, mode="torque", stiffness=1), "mode torque velocity"),
    "servo without gains": (lambda b: b.add_servo(0), "servo 'servo0'"),
    "velocity servo": (lambda b: b.add_servo(0, mode="velocity", stiffness=1), "damping"),
    "servo effort": (lambda b: b.add_servo(0, stiffness=1, effort_limit=-1), "effort_limit"),
    "servo joint": (lambda b: b.add_servo(3, stiffness=1), "joint 3 1"),
    "servo axis": (lambda b: b.add_servo(0, stiffness=1, axis=1), "1"),
    "spring ends": (lambda b: b.add_spring(1, 1, stiffness=1), "spring 'spring0'"),
    "spring stiffness": (lambda b: b.add_spring(-1, 1, stiffness=-1), "stiffness"),
    "spring point": (lambda b: b.add_spring(-1, 1, point_a=(0, 0), stiffness=1), "point_a"),
    "spring preload": (lambda b: b.add_spring(-1, 1, preload=5.0), "preload"),
    "spring preload twice": (
        lambda b: b.add_spring(-1, 1, stiffness=1, rest_length=1.0, preload=5.0), "rest_length"
    ),
    "spring of no length": (lambda b: b.add_spring(-1, 1, stiffness=1, preload=-5e3), "spring 'spring0' preload -5000"),
    "spring damping": (lambda b: b.add_spring(-1, 1, stiffness=1, damping=(1, -1)), "damping"),
    "spring damping of three": (lambda b: b.add_spring(-1, 1, damping=(1, 2, 3)), "damping 2 16"),
    "damper unsorted": (lambda b: b.add_spring(-1, 1, damping=[(1, 1), (0, 0)]), "damping"),
    "damper falls": (lambda b: b.add_spring(-1, 1, damping=[(0, 0), (1, 5), (2, 4)]), "spring 'spring0'"),
    "damper drives": (lambda b: b.add_spring(-1, 1, damping=[(-1, 1), (1, 2)]), "0"),
    "table unsorted": (lambda b: b.add_spring(-1, 1, table=[(2, 1), (1, 5)]), "table"),
    "table rises": (lambda b: b.add_spring(-1, 1, table=[(1, 1), (2, 5)]), "table"),
    "table of one": (lambda b: b.add_spring(-1, 1, table=[(1, 1)]), "table 2 16"),
    "table infinite": (lambda b: b.add_spring(-1, 1, table=[(1, INF), (2, 0)]), "table"),
    "table and stiffness": (lambda b: b.add_spring(-1, 1, stiffness=1, table=[(1, 1), (2, 0)]), "spring 'spring0'"),
    "bump stop": (lambda b: b.add_spring(-1, 1, bump=0.1), "bump 0.1 gpusim.BumpStop"),
    "bump stop below zero": (lambda b: b.add_spring(-1, 1, bump=BumpStop(-0.1, 1.0)), "bump.at"),
    "bump stop too soft": (lambda b: b.add_spring(-1, 1, bump=BumpStop(1, 0)), "bump.stiffness"),
    "bump stop too thin": (lambda b: b.add_spring(-1, 1, droop=BumpStop(1, 1, 0)), "droop.length"),
    "stops swapped": (
        lambda b: b.add_spring(-1, 1, bump=BumpStop(2.0, 1.0), droop=BumpStop(1.0, 1.0)), "bump.at 2"
    ),
    "stop outside the travel": (
        lambda b: b.add_torsion_spring(0, bump=BumpStop(-2.0, 1.0)), "bump.at -2 -1 1"
    ),
    "bushing negative": (lambda b: b.add_bushing(-1, 1, stiffness=(1, 1, 1, 1, 1, -1)), "stiffness"),
    "bushing of five": (lambda b: b.add_bushing(-1, 1, stiffness=(1,) * 5), "stiffness 5 6"),
    "bushing of nothing": (lambda b: b.add_bushing(-1, 1, stiffness=0.0), "'bushing1' stiffness"),
    "bushing skew": (
        lambda b: b.add_bushing(-1, 1, stiffness=np.eye(6) + 0.5 * np.eye(6, k=4), label="soft"),
        "'soft' 0 4 0.5",
    ),
    "motor torque": (lambda b: b.add_dc_motor(0, **{**MOTOR, "stall_torque": 0}), "stall_torque"),
    "motor gear": (lambda b: b.add_dc_motor(0, gear_ratio=0, **MOTOR), "gear_ratio 0 1e-09"),
    "force on the world": (lambda b: b.add_force(-1, (0, 0, 1)), "'force0' body -1"),
    "force frame": (lambda b: b.add_force(0, (0, 0, 1), frame="joint"), "frame joint"),
    "torque shape": (lambda b: b.add_torque(0, 3.0), "torque 3"),
    "cylinder area": (lambda b: b.add_hydraulic_cylinder(-1, 0, **{**CYLINDER, "area_a": 0}), "area_a"),
    "cylinder volume": (lambda b: b.add_hydraulic_cylinder(-1, 0, **{**CYLINDER, "volume_b": 1e-4}), "volume"),
    "cylinder stroke": (lambda b: b.add_hydraulic_cylinder(-1, 0, **{**CYLINDER, "stroke_min": 1}), "stroke_min"),
    "cylinder overlap": (lambda b: b.add_hydraulic_cylinder(-1, 0, overlap_supply=1.0, **CYLINDER), "overlap_supply 1"),
    "cylinder pressures": (
        lambda b: b.add_hydraulic_cylinder(-1, 0, tank_pressure=2e7, **CYLINDER),
        "tank_pressure",
    ),
    "papers without piston": (
        lambda b: b.add_hydraulic_cylinder(-1, 0, coupling="papers", **CYLINDER),
        "piston_mass",
    ),
    "gravity": (lambda b: ModelBuilder(gravity=(0, 0)), "gravity"),
    "worlds": (lambda b: ModelBuilder().replicate(b, 0), "num_worlds 1"),
    "not empty": (lambda b: b.replicate(two_bodies(), 2), "add_builder"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_rule_and_fix(name: str) -> None:
    b = two_bodies()
    call, words = BAD[name]
    with pytest.raises(ModelError, match=naming(words)) as error:
        call(b)
    assert "\n" not in str(error.value)
    assert [len(x) for x in (b.bodies, b.joints, b.couplings, b.actuators)] == [2, 1, 0, 0]


def test_a_model_without_bodies_or_with_immovable_joints() -> None:
    with pytest.raises(ModelError, match=naming("ModelBuilder")):
        ModelBuilder().finalize()
    b = ModelBuilder()
    b.add_body(1.0, I3, kinematic=True, label="base")
    b.add_joint_fixed(-1, 0, label="j")
    with pytest.raises(ModelError, match=naming("'j'")):
        b.finalize()
    b = two_bodies()
    b.add_joint_free(-1, 1, label="f1")
    b.add_joint_free(-1, 1, label="f2")
    with pytest.raises(ModelError, match=naming("'f2' 'b' 'f1'")):
        b.finalize()


def test_labels_and_indices_of_a_model() -> None:
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
    with pytest.raises(gpusim.UnknownNameError, match=naming("'arm'")):
        model.index("body", "arn")
    with pytest.raises(gpusim.UnknownNameError, match=naming("joint")):
        model.labels("joints")


def machine() -> ModelBuilder:
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
    return pose * Transform(other.read(f"body.{label}.position")[0], other.read(f"body.{label}.orientation")[0])


def test_add_builder_moves_everything() -> None:
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
    b = ModelBuilder()
    b.add_builder(machine())
    with pytest.raises(ModelError, match=naming("'arm'")):
        b.add_builder(machine())


def test_replicate_sets_the_number_of_worlds() -> None:
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
    b = ModelBuilder()
    b.add_body(1.0, (0.1, 0.2, 0.25, 0.01, -0.02, 0.03), label="six")
    b.add_body(1.0, [[0.1, 0.01, -0.02], [0.01, 0.2, 0.03], [-0.02, 0.03, 0.25]], label="nine")
    sim = simulate(b)
    np.testing.assert_array_equal(sim.read("body.six.inertia"), sim.read("body.nine.inertia"))
    assert sim.read("body.six.inertia").shape == (1, 3, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "float16"}, "dtype float16 float32"),
        ({"backend": "metal"}, "backend numpy"),
        ({"num_worlds": 0}, "num_worlds"),
        ({"num_worlds": 2.5}, "num_worlds"),
    ],
)
def test_simulations_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(gpusim.GpusimError, match=naming(words)):
        Simulation(two_bodies().finalize(), **options)
    with pytest.raises(ModelError, match=naming("finalize")):
        Simulation(two_bodies())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"dt": 0.0},
        {"substeps": 0},
        {"iterations": 1.5},
        {"impulse_tolerance": -1.0},
        {"joint_solver": "magic"},
        {"scheme": "rk4"},
    ],
)
def test_configs_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=naming(next(iter(options)))):
        gpusim.SolverConfig(**options)
