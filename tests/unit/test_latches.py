import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform

pytestmark = pytest.mark.parametrize("backend", ["numpy", "native"])


def _arm(hold, turn=None):
    """Return an arm on a hinge and a load, which ``hold`` connects."""
    b = ModelBuilder()
    arm = b.add_body(5.0, (0.3, 0.3, 0.3), label="arm")
    b.add_joint_revolute(-1, arm, at=(-0.5, 0, 0), axis=(0, 1, 0), label="hinge")
    load = b.add_body(1.0, (0.02, 0.03, 0.04), xform=Transform((0.8, 0.1, 0)) * (turn or Transform()), label="load")
    hold(b, arm, load)
    return b.finalize()


def _sim(model, backend, worlds=1):
    return Simulation(model, worlds, backend=backend, config=SolverConfig(dt=1e-3))


def _latched(b, arm, load):
    b.add_latch(arm, load, label="grip")


def _fixed(b, arm, load):
    b.add_joint_fixed(arm, load, at=(0.5, 0, 0))


@pytest.mark.nightly
@pytest.mark.parametrize("angle", [0.0, 2.6])
def test_attached_is_a_weld_at_the_pose_of_that_moment(backend, angle):
    turn = Transform.from_axis_angle((0, 0, 0), (1, 2, 3), angle)
    ours, fixed = _sim(_arm(_latched, turn), backend), _sim(_arm(_fixed, turn), backend)
    ours.write("joint.grip.attached", 1.0)
    for sim in (ours, fixed):
        sim.step(1000)
    assert np.allclose(ours.read("body.load.position"), fixed.read("body.load.position"), atol=1e-8)
    assert np.allclose(ours.read("body.load.orientation"), fixed.read("body.load.orientation"), atol=1e-8)
    assert ours.health_report() == "all worlds are fine"


@pytest.mark.slow_numpy
def test_released_load_falls_freely_in_its_world(backend):
    sim = _sim(_arm(_latched), backend, 2)
    sim.write("joint.grip.attached", 1.0)
    sim.step(300)
    sim.write("joint.grip.attached", 0.0, worlds=1)
    assert np.array_equal(sim.read("joint.grip.attached"), [1.0, 0.0])
    start, speed = sim.read("body.load.position")[1], sim.read("body.load.linear_velocity")[1]
    sim.step(200)
    fall = start + 0.2 * speed + 0.5 * 0.2**2 * np.array([0, 0, -9.81])
    # The last kick before the release covers half a step after it.
    assert np.allclose(sim.read("body.load.position")[1], fall, atol=4e-3)
    assert not np.allclose(sim.read("body.load.position")[0], fall, atol=1e-2)


@pytest.mark.nightly
def test_a_latch_without_a_place_holds_the_pose_as_built(backend):
    turn = Transform.from_axis_angle((0, 0, 0), (1, 2, 3), 0.8)
    sim = _sim(_arm(lambda b, arm, load: b.add_latch(arm, load, attached=True, label="grip"), turn), backend)
    fixed = _sim(_arm(_fixed, turn), backend)
    for each in (sim, fixed):
        each.step(500)
    assert np.allclose(sim.read("body.load.position"), fixed.read("body.load.position"), atol=1e-8)


@pytest.mark.slow_numpy
def test_a_latch_of_a_point_is_a_ball_joint(backend):
    def point(b, arm, load):
        b.add_latch(arm, load, at=(0.5, 0, 0), rotation=False, label="grip")

    ours = _sim(_arm(point), backend)
    ball = _sim(_arm(lambda b, arm, load: b.add_joint_ball(arm, load, at=(0.5, 0, 0))), backend)
    ours.write("joint.grip.attached", 1.0)
    for sim in (ours, ball):
        sim.step(400)
    assert np.allclose(ours.read("body.load.position"), ball.read("body.load.position"), atol=1e-6)
    assert np.allclose(ours.read("body.load.orientation"), ball.read("body.load.orientation"), atol=1e-6)
    ours.write("joint.grip.attached", 0.0)
    ours.reset()
    assert ours.read("joint.grip.attached").tolist() == [0.0]


def test_reset_returns_to_the_first_state(backend):
    def closed(b, arm, load):
        b.add_latch(arm, load, at=(0.5, 0, 0), attached=True, label="grip")

    for hold, first in ((_latched, 0.0), (closed, 1.0)):
        sim = _sim(_arm(hold), backend, 2)
        assert np.array_equal(sim.read("joint.grip.attached"), [first, first])
        sim.write("joint.grip.attached", 1.0 - first)
        sim.step(20)
        sim.reset([1])
        assert np.array_equal(sim.read("joint.grip.attached"), [1.0 - first, first])


@pytest.mark.nightly
def test_attached_at_rest_on_the_ground_and_lifted(backend):
    b = ModelBuilder()
    b.add_shape_plane(-1)
    hand = b.add_body(2.0, (0.1, 0.1, 0.1), xform=Transform((0, 0, 0.6)), label="hand")
    slide = b.add_joint_prismatic(-1, hand, at=(0, 0, 0.6), axis=(0, 0, 1), label="lift")
    b.add_servo(slide, stiffness=4e4, damping=2e3, label="servo")
    box = b.add_body(1.0, xform=Transform((0, 0, 0.2)), label="box")
    b.add_shape_box(box, (0.2, 0.2, 0.2))
    b.add_latch(hand, box, label="grip")
    sim = _sim(b.finalize(), backend)
    sim.step(200)
    sim.write("joint.grip.attached", 1.0)
    sim.control["servo"] = 0.3
    sim.step(1000)
    apart = sim.read("body.hand.position")[0, 2] - sim.read("body.box.position")[0, 2]
    assert np.allclose(apart, 0.4, atol=2e-3) and sim.read("body.box.position")[0, 2] > 0.45
    assert sim.health_report() == "all worlds are fine"


def test_attached_is_true_or_false(backend):
    with pytest.raises(ModelError, match="attached"):
        _arm(lambda b, arm, load: b.add_latch(arm, load, attached="yes"))
