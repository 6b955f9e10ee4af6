import math

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, Transform, UnknownNameError

BACKENDS = ("numpy", "native")


def _arm():
    b = ModelBuilder()
    base = b.add_body(2.0, (0.1, 0.1, 0.1), label="base")
    b.add_joint_free(-1, base, label="root")
    parent = base
    for name in ("upper", "lower"):
        child = b.add_body(1.0, (0.1, 0.1, 0.02), xform=Transform((len(b.bodies) * 1.0, 0.0, 0.0)), label=name)
        b.add_joint_revolute(parent, child, at=(child - 0.5, 0.0, 0.0), axis=(0, 0, 1), label=f"{name}_hinge")
        parent = child
    hand = b.add_body(0.5, (0.01, 0.01, 0.01), xform=Transform((3.0, 0.0, 0.0)), label="hand")
    b.add_joint_ball(parent, hand, at=(2.5, 0.0, 0.0), label="wrist")
    b.add_servo(1, stiffness=100.0, damping=10.0, label="upper_servo")
    return b


def _home(b):
    turned = (0.0, 0.0, math.sin(0.2), math.cos(0.2))
    b.add_pose(
        "home",
        joints={"root": Transform((0.0, 0.0, 2.0)), "upper_hinge": math.pi / 2, "lower_hinge": [0.5], "wrist": turned},
        commands={"upper_servo": math.pi / 2},
    )
    return turned


@pytest.mark.parametrize("backend", BACKENDS)
def test_reset_starts_chosen_worlds_in_the_pose(backend):
    b = _arm()
    turned = _home(b)
    sim = Simulation(b.finalize(), num_worlds=3, backend=backend)
    sim.step(5)
    sim.reset([0, 2], pose="home")
    assert np.allclose(
        sim.read("joint.upper_hinge.position"), [math.pi / 2, sim.read("joint.upper_hinge.position")[1], math.pi / 2]
    )
    assert np.allclose(sim.read("joint.wrist.position")[0], turned)
    assert np.allclose(sim.read("joint.root.position")[2], [0, 0, 2, 0, 0, 0, 1])
    # The upper arm turns a quarter about (0.5, 0), so its center is half a metre from that point, along y.
    assert np.allclose(sim.read("body.upper.position")[0], [0.5, 0.5, 2.0])
    assert np.array_equal(sim.control["upper_servo"] == math.pi / 2, [True, False, True])
    assert np.array_equal(sim.state.arrays["time"] == 0.0, [True, False, True])


def test_backends_agree_after_a_reset_to_a_pose():
    b = _arm()
    _home(b)
    states = []
    for backend in BACKENDS:
        sim = Simulation(b.finalize(), backend=backend)
        sim.reset(pose="home")
        sim.step(50)
        states.append(sim.read_state()["position"].copy())
    assert np.allclose(*states, atol=1e-9)


def test_add_builder_moves_and_prefixes_poses():
    arm = _arm()
    _home(arm)
    arm.add_pose("moved", bodies={"base": Transform((1.0, 0.0, 0.0))})
    b = ModelBuilder()
    b.add_builder(arm, xform=Transform((0.0, 5.0, 0.0)), label_prefix="left_")
    sim = Simulation(b.finalize(), backend="numpy")
    sim.reset(pose="left_moved")
    assert np.allclose(sim.read("body.left_base.position"), [1.0, 5.0, 0.0])
    sim.reset(pose="left_home")
    assert np.allclose(sim.read("joint.left_upper_hinge.position"), math.pi / 2)
    assert np.allclose(sim.read("body.left_base.position"), [0.0, 5.0, 2.0])


def test_free_joint_of_a_moved_builder_keeps_its_coordinates():
    arm = _arm()
    _home(arm)
    b = ModelBuilder()
    b.add_builder(arm, xform=Transform.from_axis_angle((0.0, 5.0, 0.0), (0, 0, 1), math.pi))
    sim = Simulation(b.finalize(), backend="numpy")
    sim.reset(pose="home")
    assert np.allclose(sim.read("body.upper.position"), [-0.5, 4.5, 2.0])


def test_unknown_pose_names_the_nearest():
    b = _arm()
    _home(b)
    sim = Simulation(b.finalize(), backend="numpy")
    with pytest.raises(UnknownNameError, match="home"):
        sim.reset(pose="hone")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"joints": {"upper_hing": 1.0}}, "upper_hinge"),
        ({"joints": {"wrist": 1.0}}, "wrist"),
        ({"joints": {"upper_hinge": (1.0, 2.0)}}, "upper_hinge"),
        ({"joints": {"upper_hinge": math.nan}}, "upper_hinge"),
        ({"joints": {"upper_hinge": "up"}}, "upper_hinge"),
        ({"joints": {"upper_hinge": Transform()}}, "Transform"),
        ({"joints": [1.0]}, "dict"),
        ({"bodies": {"base": (0, 0, 1)}}, "Transform"),
        ({"bodies": {"leg": Transform()}}, "leg"),
        ({"commands": {"servo": 1.0}}, "upper_servo"),
        ({"commands": {"upper_servo": math.inf}}, "upper_servo"),
        ({}, "nothing"),
    ],
)
def test_bad_poses_are_refused(arguments, word):
    with pytest.raises(ModelError, match=word):
        _arm().add_pose("home", **arguments)


def test_pose_labels_are_unique():
    b = _arm()
    _home(b)
    with pytest.raises(ModelError, match="home"):
        _home(b)
