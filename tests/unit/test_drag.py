import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.backends import FASTEST
from tests.builds import optimize_less

BACKENDS = [("numpy", "auto"), ("native", "fused"), pytest.param("native", "staged", marks=pytest.mark.nightly)]


def _cube(gravity=-9.81, speed=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0), **drag):
    b = ModelBuilder(gravity=(0.0, 0.0, gravity))
    body = b.add_body(2.0, (0.1, 0.1, 0.1), linear_velocity=speed, angular_velocity=spin, label="cube")
    b.add_drag(body, **drag)
    return b.finalize()


def _simulate(model, backend=FASTEST, launch="auto", worlds=1, dt=1e-3):
    return Simulation(model, worlds, backend=backend, launch=launch, config=SolverConfig(dt=dt))


@pytest.mark.nightly
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_fall_in_air_is_a_hyperbolic_tangent(backend, launch):
    sim = _simulate(_cube(density=1.2, size=(0.5, 0.5, 0.5)), backend, launch)
    sim.step(2000)
    k = 0.5 * 1.2 * 0.25  # N s2/m2
    end = np.sqrt(2.0 * 9.81 / k)
    assert np.allclose(sim.read("body.cube.linear_velocity")[0, 2], -end * np.tanh(9.81 * 2.0 / end), rtol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_viscous_drag_decays_exponentially(backend, launch):
    model = _cube(0.0, (1.0, 0.0, 0.0), (0.0, 0.0, 2.0), viscosity=0.5, size=(0.2, 0.3, 0.4))
    sim = _simulate(model, backend, launch)
    sim.step(1000)
    rate, turning = 3.0 * np.pi * 0.3 * 0.5 / 2.0, np.pi * 0.3**3 * 0.5 / 0.1
    assert np.allclose(sim.read("body.cube.linear_velocity")[0, 0], np.exp(-rate), rtol=1e-5)
    assert np.allclose(sim.read("body.cube.angular_velocity")[0, 2], 2.0 * np.exp(-turning), rtol=1e-5)


@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_strong_drag_stays_stable_and_wind_carries(backend, launch):
    sim = _simulate(_cube(0.0, (50.0, 0.0, 0.0), (90.0, 0.0, 0.0), density=1e5, viscosity=1e3), backend, launch, 2)
    sim.write("drag.drag0.wind_y", [0.0, 3.0])
    sim.step(500)
    assert np.allclose(sim.read("body.cube.linear_velocity"), [(0, 0, 0), (0, 3, 0)], atol=1e-6)
    assert np.allclose(sim.read("body.cube.angular_velocity"), 0.0, atol=1e-6)


def test_error_falls_with_the_square_of_the_step():
    errors = []
    for dt in (4e-3, 2e-3, 1e-3):
        sim = _simulate(_cube(0.0, (20.0, 0.0, 0.0), density=1.2, size=(1.0, 1.0, 1.0)), dt=dt)
        sim.step(round(1.0 / dt))
        exact = 2.0 / 0.6 * np.log(1.0 + 0.6 * 20.0 / 2.0)
        errors.append(abs(sim.read("body.cube.position")[0, 0] - exact))
    assert errors[0] / errors[1] > 3.5 and errors[1] / errors[2] > 3.5


_XML = """<mujoco><option timestep="0.0002" integrator="RK4" density="{density}" viscosity="{viscosity}" wind="1 2 0"/>
<worldbody><body name="b"><joint type="free"/>
<inertial pos="0.02 0 0.01" mass="2" fullinertia="0.1 0.2 0.25 0.01 0.02 -0.01"/>
<body name="c" pos="0.3 0.1 0"><joint axis="0 1 0" pos="-0.1 0 0"/>
<inertial pos="0.2 0 0.1" mass="1" diaginertia="0.02 0.03 0.04"/></body></body></worldbody></mujoco>"""


@pytest.mark.nightly
@pytest.mark.parametrize(("density", "viscosity"), [(50.0, 0.0), (0.0, 2.0), (20.0, 1.0)])
def test_same_motion_as_mujoco(density, viscosity):
    mujoco = pytest.importorskip("mujoco", reason='needs pip install "gpusim[mjcf]"')
    m = mujoco.MjModel.from_xml_string(_XML.format(density=density, viscosity=viscosity))
    d = mujoco.MjData(m)
    d.qvel[:] = [1, 2, 3, 4, -3, 2, 3]
    b = ModelBuilder()
    first = b.add_body(2.0, (0.1, 0.2, 0.25, 0.01, 0.02, -0.01), com=(0.02, 0, 0.01), label="b")
    second = b.add_body(1.0, (0.02, 0.03, 0.04), com=(0.2, 0, 0.1), xform=Transform((0.3, 0.1, 0)), label="c")
    b.add_joint_revolute(first, second, Transform((0.2, 0.1, 0)), Transform((-0.1, 0, 0)), axis=(0, 1, 0))
    for body in (first, second):
        b.add_drag(body, density=density, viscosity=viscosity, wind=(1, 2, 0))
    sim = _simulate(b.finalize())
    mujoco.mj_forward(m, d)
    for name in "bc":
        rates = np.zeros(6)
        mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_BODY, m.body(name).id, rates, 0)
        sim.write(f"body.{name}.angular_velocity", rates[:3])
        sim.write(f"body.{name}.linear_velocity", rates[3:])
    for _ in range(2500):
        mujoco.mj_step(m, d)
    sim.step(500)
    for name in "bc":
        assert np.allclose(sim.read(f"body.{name}.position")[0], d.body(name).xpos, atol=1e-4)


def test_bad_numbers_are_refused():
    for arguments in (
        {"density": -1.0},
        {"viscosity": -1.0},
        {"size": (1.0, -1.0, 1.0)},
        {"wind": "west"},
        {"body": -1},
    ):
        with pytest.raises(ModelError, match=next(iter(arguments))):
            b = ModelBuilder()
            b.add_drag(**{"body": b.add_body(1.0, (1, 1, 1))} | arguments)


@pytest.mark.nightly
def test_all_launches_have_the_same_bits(monkeypatch):
    b = ModelBuilder()
    parent = -1
    for k in range(3):
        body = b.add_body(1.0, (0.1, 0.2, 0.3), xform=Transform((k, 0, 0)))
        b.add_joint_revolute(parent, body, at=(k - 0.5, 0, 0), axis=(0, 1, 0), label=f"hinge{k}")
        b.add_drag(body, density=100.0, viscosity=0.1)
        parent = body
    states = []
    for backend, launch in [("native", "fused"), ("native", "simd"), ("native", "staged"), ("numpy", "auto")]:
        with monkeypatch.context() as own:
            if launch == "simd":  # no other test uses this build
                optimize_less(own)
            sim = _simulate(b.finalize(), backend, launch, 8)
        sim.write("joint.hinge0.velocity", np.linspace(0.0, 3.0, 8))
        sim.step(50)
        states.append(np.array(sim.read_state()["position"]))
    assert np.array_equal(states[0], states[1]) and np.array_equal(states[0], states[2])
    assert np.allclose(states[0], states[3], atol=1e-12)
