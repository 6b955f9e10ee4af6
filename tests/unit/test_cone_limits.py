from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from gpusim import ModelBuilder, ModelError, Transform
from gpusim.importers import load_mjcf
from gpusim.rotations import matrix_from_quaternion
from tests.message_snapshot import naming

from .helpers import FRAME_A, FRAME_B, NO_GRAVITY, SOLVERS, G, both_backends, simulate

MASS, LENGTH, CONE = 2.0, 0.5, 0.7
X = np.array([1.0, 0.0, 0.0])


def bob(b: ModelBuilder, rotation: Transform, inertia: float = 0.02, label: str = "bob", **joint: object) -> int:
    body = int(b.add_body(MASS, (inertia,) * 3, com=tuple(LENGTH * X), xform=rotation, label=label))
    # The cone axis is x of both bodies, in skew joint frames.
    turned = Transform((0, 0, 0), FRAME_A.rotation)
    axis = tuple(turned.inverse().rotate(X))
    b.add_joint_ball(-1, body, turned, turned, cone_axis=axis, label=label, **joint)
    return body


def angle(sim, label: str = "bob") -> float:
    """The angle between the pendulum and the x axis of the world."""
    along = np.asarray(sim.read(f"body.{label}.center_of_mass"))[0] / LENGTH
    return float(np.arctan2(np.hypot(along[1], along[2]), along[0]))


@pytest.mark.nightly
@both_backends
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_pendulum_rests_on_the_cone(solver: str, backend: str) -> None:
    """The limit bears the torque m g l cos(c) about y."""
    b = ModelBuilder()
    bob(b, Transform(), cone_limit=CONE, damping=0.8)
    sim = simulate(b, dt=2e-3, backend=backend, joint_solver=solver)
    worst = 0.0
    for _ in range(300):
        sim.step(4)
        worst = max(worst, angle(sim))
    tolerance = 1e-6 if solver == "direct" else 1e-4
    assert worst < CONE + tolerance
    assert angle(sim) == pytest.approx(CONE, abs=tolerance)
    torque = (0.0, MASS * G * LENGTH * np.cos(CONE), 0.0)
    reaction = sim.read("joint.bob.reaction")[0]
    np.testing.assert_allclose(reaction, (0.0, 0.0, -MASS * G, *torque), atol=1e-4 if solver == "direct" else 0.1)


def test_twist_about_the_cone_axis_stays_free() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    start = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), CONE)
    spin = 12.0 * start.rotate(X)
    body = b.add_body(MASS, (0.02, 0.02, 0.02), xform=start, angular_velocity=tuple(spin), label="top")
    b.add_joint_ball(-1, body, cone_limit=CONE, cone_axis=tuple(X), label="top")
    b.add_torque(body, (0.0, 0.3, 0.0))
    sim = simulate(b, dt=1e-3, backend="native")
    sim.step(2000)
    assert sim.read("body.top.angular_velocity")[0] == pytest.approx(spin, abs=1e-3)
    along = matrix_from_quaternion(sim.read("body.top.orientation"))[0, :, 0]
    assert np.arccos(along[0]) == pytest.approx(CONE, abs=1e-5)


@pytest.mark.nightly
@both_backends
def test_a_pendulum_slides_along_the_cone_like_a_shorter_one(backend: str) -> None:
    """On a cone about a horizontal axis, the azimuth f obeys f'' = -g/(l sin c) sin f. The limit does no work."""
    b = ModelBuilder()
    first = 0.6
    start = Transform.from_axis_angle((0, 0, 0), X, first) * Transform.from_axis_angle((0, 0, 0), (0, 1, 0), CONE)
    bob(b, start, inertia=1e-6, cone_limit=CONE)
    sim = simulate(b, dt=1e-3, backend=backend)
    energy = sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]
    times = np.arange(1, 17) * 0.1
    rate = G / (LENGTH * np.sin(CONE))
    exact = solve_ivp(lambda t, y: (y[1], -rate * np.sin(y[0])), (0.0, 1.6), (first, 0.0), t_eval=times, rtol=1e-10)
    for k in range(len(times)):
        sim.step(100)
        at = sim.read("body.bob.center_of_mass")[0]
        assert np.arctan2(at[1], -at[2]) == pytest.approx(exact.y[0, k], abs=2e-4)
        assert angle(sim) == pytest.approx(CONE, abs=5e-5)
        now = sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]
        assert now == pytest.approx(energy, abs=2e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_impacts_on_the_cone_gain_no_energy(solver: str) -> None:
    b = ModelBuilder()
    body = b.add_body(
        MASS, (0.02, 0.03, 0.04), com=(0.0, 0.0, -LENGTH), linear_velocity=(3.0, 1.0, 0.0), angular_velocity=(-2, 6, 1)
    )
    b.add_joint_ball(-1, body, cone_limit=0.3, cone_axis=(0, 0, 1), label="ball")
    sim = simulate(b, dt=1e-3, joint_solver=solver)
    last = sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]
    for _ in range(200):
        sim.step(5)
        now = sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]
        assert now < last + 2e-3
        last = now
    assert sim.health_report() == "all worlds are fine"


@pytest.mark.native
def test_in_a_plane_the_cone_is_the_range_of_a_ball_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo")
    text = (
        f"<mujoco><compiler angle='radian'/><worldbody><body name='bob'>"
        f"<inertial pos='{LENGTH} 0 0' mass='{MASS}' diaginertia='0.02 0.02 0.02'/>"
        f"<joint name='bob' type='ball' range='0 {CONE}' damping='0.8' solreflimit='0.002 1'/>"
        "</body></worldbody></mujoco>"
    )
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.timestep, d = 5e-4, mujoco.MjData(m)
    mujoco.mj_step(m, d, 5000)
    theirs = 2.0 * np.arctan2(np.linalg.norm(d.qpos[1:]), d.qpos[0])
    builder, report = load_mjcf(text)
    ours = simulate(builder, dt=1e-3, backend="native")
    b = ModelBuilder()
    bob(b, Transform(), cone_limit=CONE, damping=0.8)
    cone = simulate(b, dt=1e-3, backend="native")
    for sim in (ours, cone):
        sim.step(2500)
    assert angle(ours) == pytest.approx(CONE, abs=1e-6)
    assert angle(cone) == pytest.approx(angle(ours), abs=1e-6)
    assert theirs == pytest.approx(CONE, abs=2e-3)


def test_the_limit_differs_per_world_and_is_checked() -> None:
    b = ModelBuilder()
    bob(b, Transform(), cone_limit=CONE, damping=0.8)
    sim = simulate(b, 3, dt=2e-3, backend="native")
    sim.write("joint.bob.cone_limit", [0.3, 0.9, np.inf])
    assert np.allclose(sim.read("joint.bob.cone_limit"), [0.3, 0.9, np.inf])
    sim.step(2500)
    along = sim.read("body.bob.center_of_mass")[:, 0] / LENGTH
    assert np.arccos(along[:2]) == pytest.approx([0.3, 0.9], abs=1e-6)
    assert along[2] == pytest.approx(0.0, abs=0.02)
    with pytest.raises(ModelError, match=naming("bob cone_limit 0 pi")):
        sim.write("joint.bob.cone_limit", 0.0)
    for wrong in (0.0, -1.0, np.pi):
        with pytest.raises(ModelError, match=naming(f"twist cone_limit {wrong:g}")):
            b.add_joint_ball(-1, 0, FRAME_A, FRAME_B, cone_limit=wrong, label="twist")
