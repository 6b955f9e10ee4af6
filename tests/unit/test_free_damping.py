"""Damping, friction and armature of free and ball joints: closed forms, and MuJoCo."""

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.robotics import Tree

pytestmark = pytest.mark.parametrize("backend", ["numpy", "native"])


def _ball(backend, gravity=-9.81, **joint):
    b = ModelBuilder(gravity=(0.0, 0.0, gravity))
    body = b.add_body(2.0, (0.1, 0.1, 0.1), label="ball", angular_velocity=(0.0, 0.0, 3.0))
    b.add_joint_free(-1, body, label="root", **joint)
    return Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))


@pytest.mark.slow_numpy
def test_damped_fall_and_spin(backend):
    sim = _ball(backend, damping=(4.0, 4.0, 4.0, 0.2, 0.2, 0.2), armature=(1.0, 1.0, 1.0, 0.3, 0.3, 0.3))
    sim.step(800)
    # (m + a) v' = -m g - d v, and (I + a) w' = -d w
    speed = 2.0 * 9.81 / 4.0 * (1.0 - np.exp(-4.0 / 3.0 * 0.8))
    assert np.allclose(sim.read("body.ball.linear_velocity")[0, 2], -speed, rtol=1e-6)
    assert np.allclose(sim.read("body.ball.angular_velocity")[0, 2], 3.0 * np.exp(-0.2 / 0.4 * 0.8), rtol=1e-6)


@pytest.mark.slow_numpy
def test_dry_friction_holds_and_stops(backend):
    sim = _ball(backend, friction=(0.0, 0.0, 20.0, 0.0, 0.0, 0.05))
    sim.step(400)
    # The weight is 19.62 N, so the body stays. The spin slows down at friction / inertia = 0.5 rad/s2.
    assert np.allclose(sim.read("body.ball.position"), 0.0, atol=1e-9)
    assert np.allclose(sim.read("body.ball.angular_velocity")[0, 2], 3.0 - 0.5 * 0.4, rtol=1e-6)


@pytest.mark.slow_numpy
def test_damping_differs_by_world(backend):
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = b.add_body(1.0, (1.0, 1.0, 1.0), linear_velocity=(1.0, 0.0, 0.0), label="ball")
    b.add_joint_free(-1, body, damping=1.0, label="root")
    sim = Simulation(b.finalize(), num_worlds=2, backend=backend, config=SolverConfig(dt=1e-3))
    sim.write("joint.root.damping_0", [1.0, 2.0])
    sim.step(500)
    assert np.allclose(sim.read("body.ball.linear_velocity")[:, 0], np.exp([-0.5, -1.0]), rtol=1e-6)
    assert sim.read("joint.root.position").shape == (2, 7)


def test_plain_free_joint_has_no_rows(backend):
    sim = _ball(backend)
    assert sim.model.topology.num_constraints == 0 and "joint.root.damping_0" not in sim.signals()


def _pair():
    b = ModelBuilder()
    first = b.add_body(
        2.0, (0.1, 0.2, 0.25, 0.01, 0.02, -0.01), com=(0.1, 0.05, -0.2), xform=Transform((0, 0, 3)), label="b"
    )
    b.add_joint_free(-1, first, damping=0.7, armature=0.3, label="root")
    second = b.add_body(1.0, (0.02, 0.03, 0.04), com=(0.2, 0, 0.1), xform=Transform((0.3, 0.1, 3)), label="c")
    frames = Transform((0.2, 0.1, 0)), Transform((-0.1, 0, 0))
    b.add_joint_ball(first, second, *frames, armature=0.05, damping=0.02, label="ball")
    return b.finalize()


_XML = """<mujoco><option timestep="0.0002" integrator="RK4"/><worldbody>
<body name="b" pos="0 0 3"><joint type="free" damping="0.7" armature="0.3"/>
<inertial pos="0.1 0.05 -0.2" mass="2" fullinertia="0.1 0.2 0.25 0.01 0.02 -0.01"/>
<body name="c" pos="0.3 0.1 0"><joint type="ball" pos="-0.1 0 0" armature="0.05" damping="0.02"/>
<inertial pos="0.2 0 0.1" mass="1" diaginertia="0.02 0.03 0.04"/></body></body></worldbody></mujoco>"""


@pytest.mark.slow_numpy
def test_same_motion_and_mass_matrix_as_mujoco(backend):
    mujoco = pytest.importorskip("mujoco", reason='needs pip install "gpusim[mjcf]"')
    m = mujoco.MjModel.from_xml_string(_XML)
    d = mujoco.MjData(m)
    d.qvel[:] = [1, 2, 3, 4, -3, 2, 1, 3, -2]
    mujoco.mj_forward(m, d)
    model = _pair()
    sim = Simulation(model, backend=backend, config=SolverConfig(dt=1e-3))
    for name in "bc":
        rates = np.zeros(6)
        mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_BODY, m.body(name).id, rates, 0)
        sim.write(f"body.{name}.angular_velocity", rates[:3])
        sim.write(f"body.{name}.linear_velocity", rates[3:])
    full = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, full) if mujoco.__version__ >= "3.4" else mujoco.mj_fullM(m, full, d.qM)
    tree = Tree(model, "b")
    ours = tree.mass_matrix(tree.posture(sim))[0]
    assert np.allclose(np.linalg.eigvalsh(ours), np.linalg.eigvalsh(full), rtol=1e-9)
    for _ in range(2500):
        mujoco.mj_step(m, d)
    sim.step(500)
    for name in "bc":
        assert np.allclose(sim.read(f"body.{name}.position")[0], d.body(name).xpos, atol=5e-7)


@pytest.mark.parametrize("name", ["damping", "friction", "armature"])
def test_negative_numbers_are_refused(backend, name):
    with pytest.raises(ModelError, match=name):
        _ball(backend, **{name: -1.0})
    b = ModelBuilder()
    with pytest.raises(ModelError, match=name):
        b.add_joint_ball(-1, b.add_body(1.0, (1, 1, 1)), **{name: -1.0})
