from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

G = 9.81


def simulation(b: ModelBuilder, backend: str, **config: Any) -> Simulation:
    return Simulation(b.finalize(), backend=backend, config=SolverConfig(**{"dt": 1e-3} | config))


BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_a_rail_bears_weight_drive_and_lever(backend: str, solver: str) -> None:
    b = ModelBuilder()
    turn = Transform((0, 0, 1), (0, 0, math.sin(0.25), math.cos(0.25)))  # by 0.5 rad about z
    arm = b.add_body(3.0, (0.1, 0.2, 0.3), xform=turn * Transform((0.4, 0, 0)), label="arm")
    weld = b.add_joint_fixed(-1, arm, at=turn, label="weld")
    b.add_force_sensor(weld, label="wrist")
    sim = simulation(b, backend, joint_solver=solver)
    sim.step(5)
    np.testing.assert_allclose(sim.read("sensor.wrist.force")[0], [0, 0, -3 * G], atol=1e-9)
    np.testing.assert_allclose(sim.read("sensor.wrist.torque")[0], [0, 3 * G * 0.4, 0], atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sensor_in_a_driven_joint_holds_the_drive_too(backend: str) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    rotor = b.add_body(1.0, (0.5, 0.5, 0.5), label="rotor")
    hinge = b.add_joint_revolute(-1, rotor, axis=(0, 0, 1), label="hinge")
    b.add_joint_force(hinge, label="drive")
    b.add_force_sensor(hinge, label="torque")
    sim = simulation(b, backend)
    sim.control["drive"] = 2.0
    sim.step(3)
    found = sim.read("sensor.torque.torque")[0]
    assert np.linalg.norm(found) == pytest.approx(2.0, rel=1e-9)
    np.testing.assert_allclose(found, sim.read("joint.hinge.reaction")[0, 3:], atol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_foot_bears_and_where(backend: str) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1, material=Material(friction=0.8))
    body = b.add_body(10.0, (0.2, 0.2, 0.2), com=(0.03, -0.02, 0.0), xform=Transform((1, 2, 0.1)), label="foot")
    b.add_shape_box(body, half_extents=(0.1, 0.08, 0.1))
    sole = b.add_site(body, Transform((0, 0, -0.1)), label="sole")
    b.add_contact_sensor(body, sole, label="press")
    b.add_contact_sensor(body, label="whole")
    sim = simulation(b, backend)
    sim.step(400)
    np.testing.assert_allclose(sim.read("sensor.press.force")[0], [0, 0, 10 * G], atol=1e-3)
    np.testing.assert_allclose(sim.read("sensor.press.center_of_pressure")[0], [1.03, 1.98, 0.0], atol=2e-4)
    np.testing.assert_allclose(sim.read("sensor.press.torque")[0], [-0.02 * 10 * G, -0.03 * 10 * G, 0], atol=1e-2)
    np.testing.assert_allclose(sim.read("sensor.whole.force")[0], sim.read("body.foot.contact_force")[0], atol=1e-3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_accelerometer_and_gyro_on_a_turntable(backend: str) -> None:
    b = ModelBuilder()
    body = b.add_body(2.0, (0.1, 0.1, 0.1), label="table")
    hinge = b.add_joint_revolute(-1, body, axis=(0, 0, 1), label="hinge")
    frame = Transform((0.3, 0, 0), (math.sin(math.pi / 4), 0, 0, math.cos(math.pi / 4)))
    b.add_site(body, frame, label="imu")
    sim = simulation(b, backend)
    sim.step(3)
    np.testing.assert_allclose(sim.read("site.imu.acceleration")[0], [0, G, 0], atol=1e-9)
    sim.write("joint.hinge.velocity", 4.0)
    sim.step(100)
    assert hinge == 0
    np.testing.assert_allclose(sim.read("site.imu.angular_rate")[0], [0, 4, 0], atol=1e-9)
    np.testing.assert_allclose(sim.read("site.imu.acceleration")[0], [-16 * 0.3, G, 0], atol=1e-6)


def rotor_error(backend: str, dt: float, scheme: str = "second_order") -> float:
    b = ModelBuilder()
    rotor = b.add_body(2.0, (0.01, 0.02, 0.015), com=(0.05, 0, 0), label="rotor")
    b.add_joint_revolute(-1, rotor, axis=(0, 0, 1), label="hinge")
    b.add_site(rotor, label="axis")
    sim = simulation(b, backend, dt=dt, scheme=scheme)
    sim.write("joint.hinge.velocity", 60.0)
    sim.step(round(0.05 / dt))
    found = sim.read("site.axis.acceleration")[0]
    assert found[2] == pytest.approx(G, abs=1e-9)
    return float(np.linalg.norm(found[:2]))


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_site_on_the_axis_of_a_rotor_feels_gravity_alone(backend: str) -> None:
    errors = [rotor_error(backend, dt) for dt in (2e-3, 1e-3, 5e-4)]
    assert errors[1] < 1e-3 * 180.0
    assert 3.5 < errors[0] / errors[1] < 4.5 and 3.5 < errors[1] / errors[2] < 4.5


def test_semi_implicit_steps_are_of_first_order() -> None:
    errors = [rotor_error("numpy", dt, "semi_implicit") for dt in (1e-3, 5e-4)]
    assert errors[0] < 0.03 * 180.0 and 1.8 < errors[0] / errors[1] < 2.2


def pendulum_error(backend: str, dt: float, site: tuple[float, float, float]) -> float:
    b = ModelBuilder()
    com = np.array([0.2, 0.05, 0.0])
    arm = b.add_body(2.0, (0.1, 0.2, 0.15), com=tuple(com), label="arm")
    b.add_joint_revolute(-1, arm, axis=(0, 1, 0), label="j")
    b.add_site(arm, Transform(site), label="tip")
    sim = simulation(b, backend, dt=dt)
    worst = 0.0
    for _ in range(4):
        sim.step(round(0.1 / dt))
        q, w = (float(sim.read(f"joint.j.{name}")[0]) for name in ("position", "velocity"))
        turn = np.array([[np.cos(q), 0, np.sin(q)], [0, 1, 0], [-np.sin(q), 0, np.cos(q)]])
        torque = np.cross(turn @ com, [0, 0, -2.0 * G])[1]
        rate, gain = np.array([0, w, 0]), np.array([0, torque / (0.2 + 2.0 * 0.2**2), 0])
        expected = np.cross(gain, site) + np.cross(rate, np.cross(rate, site)) + turn.T @ [0, 0, G]
        worst = max(worst, float(np.abs(sim.read("site.tip.acceleration")[0] - expected).max()))
    return worst


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("site", [(0.5, 0.0, 0.1), (0.0, 0.0, 0.0), (0.2, 0.05, 0.0)])
def test_an_accelerometer_on_a_pendulum_is_of_second_order(backend: str, site: tuple[float, float, float]) -> None:
    errors = [pendulum_error(backend, dt, site) for dt in (2e-3, 1e-3, 5e-4)]
    assert errors[1] < 1e-3
    assert 3.3 < errors[0] / errors[1] < 4.7 and 3.3 < errors[1] / errors[2] < 4.7


@pytest.mark.parametrize("backend", BACKENDS)
def test_free_fall_with_spin_is_felt_off_the_center_alone(backend: str) -> None:
    """Euler's equations without torque: dw/dt = I^-1 (I w x w) in body axes."""
    b = ModelBuilder()
    inertia, place = np.array([0.1, 0.2, 0.25]), np.array([0.1, -0.2, 0.3])
    body = b.add_body(1.0, tuple(inertia), angular_velocity=(6, 3, 5), linear_velocity=(1, 2, 3), label="stone")
    b.add_site(body, label="center")
    b.add_site(body, Transform(tuple(place)), label="off")
    sim = simulation(b, backend)
    for _ in range(20):
        sim.step(7)
        w = sim.read("site.off.angular_rate")[0]
        expected = np.cross(np.cross(inertia * w, w) / inertia, place) + np.cross(w, np.cross(w, place))
        np.testing.assert_allclose(sim.read("site.center.acceleration")[0], 0.0, atol=1e-9)
        np.testing.assert_allclose(sim.read("site.off.acceleration")[0], expected, atol=1e-8)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_impact_is_felt_as_the_kick_that_it_is(backend: str) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    ball = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0, 0, 0.15)), label="ball")
    b.add_shape_sphere(ball, radius=0.1)
    b.add_site(ball, label="ball")
    sim = simulation(b, backend)
    rows = []
    for _ in range(300):
        sim.step()
        rows.append(float(sim.read("site.ball.acceleration")[0, 2]))
    speed = math.sqrt(2.0 * G * 0.05)
    assert max(np.abs(rows[:90])) < 1e-9 and rows[-1] == pytest.approx(G, abs=1e-3)
    assert min(rows) > -1e-9 and 0.3 * speed / 1e-3 < max(rows) < speed / 1e-3 + 2.0 * G


@pytest.mark.native
def test_native_reads_what_numpy_reads() -> None:
    found = []
    for backend in ("numpy", "native"):
        b = ModelBuilder()
        b.add_shape_plane(-1, material=Material(friction=0.4))
        start = {"linear_velocity": (1, 0.3, 0), "angular_velocity": (0, 0, 2)}
        body = b.add_body(xform=Transform((0, 0, 0.11)), label="box", **start)
        b.add_shape_box(body, half_extents=(0.2, 0.1, 0.1))
        top = b.add_body(1.0, (0.1, 0.2, 0.3), xform=Transform((0, 0, 0.5)), angular_velocity=(3, 1, 2), label="top")
        ball = b.add_joint_ball(body, top, at=(0, 0, 0.3), label="neck")
        b.add_force_sensor(ball, label="neck")
        site = b.add_site(body, Transform((0.05, 0, -0.1)), label="sole")
        b.add_site(top, Transform((0.1, 0.2, 0.3), (0.1, 0.2, 0.3, math.sqrt(0.86))), label="head")
        b.add_contact_sensor(body, site, label="sole")
        sim = simulation(b, backend)
        rows = []
        for _ in range(20):
            sim.step(2)
            rows.append(np.concatenate([sim.observe(["sensor.*", "site.*"]).read()[0]]))
        found.append(np.array(rows))
    assert np.abs(found[0]).max() > 1.0
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)


def test_copies_of_a_builder_keep_their_sensors_and_wrong_ones_are_reported() -> None:
    part = ModelBuilder()
    body = part.add_body(1.0, (1, 1, 1), label="part")
    joint = part.add_joint_fixed(-1, body, label="weld")
    site = part.add_site(body, label="sole")
    part.add_force_sensor(np.int64(joint), label="weld")
    part.add_contact_sensor(body, np.int64(site), label="sole")
    whole = ModelBuilder()
    whole.add_site(-1, label="first")
    other = whole.add_body(1.0, (1, 1, 1), label="other")
    whole.add_builder(part, label_prefix="a_")
    whole.add_builder(part, label_prefix="b_")
    assert [(s.label, s.element_index, s.site) for s in whole.sensors] == [
        ("a_weld", 0, -1), ("a_sole", 1, 1), ("b_weld", 1, -1), ("b_sole", 2, 2)
    ]  # fmt: skip
    free = ModelBuilder()
    free.add_joint_free(-1, free.add_body(1.0, (1, 1, 1)), label="air")
    for wrong, reported in (
        (lambda: whole.add_force_sensor(9), "2"),
        (lambda: free.add_force_sensor(0), "'air'"),
        (lambda: whole.add_contact_sensor(-1), ""),
        (lambda: whole.add_contact_sensor(other, 1), "a_part"),
        (lambda: whole.add_contact_sensor(other, 7), "3"),
        (lambda: whole.add_force_sensor(0, label="a_weld"), "a_weld"),
    ):
        with pytest.raises(ModelError, match=naming(reported)):
            wrong()
