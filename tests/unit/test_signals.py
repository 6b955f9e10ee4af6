from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, ModelError, Simulation, Transform, UnknownNameError
from tests.message_snapshot import naming

from .helpers import FRAME_A, NO_GRAVITY, PLACE, G, ball_body, bits, different, simulate, slider, wheel
from .machine import machine


@pytest.fixture(scope="module")
def running() -> Simulation:
    sim = Simulation(machine().finalize(), num_worlds=3, config=gpusim.SolverConfig(dt=2e-3))
    sim.control["motor"] = (0.2, 0.5, -0.7)
    sim.control["lift"] = (0.1, -0.5, 0.9)
    sim.step(20)
    return sim


def test_every_signal_reads_with_its_shape_unit_and_doc(running: Simulation) -> None:
    infos = running.signals()
    for name, info in infos.items():
        value = running.read(name)
        assert value.shape == (3, *info.shape), name
        assert not np.any(np.isnan(value)), name
        assert info.name == name and info.doc and info.unit, name
    promised = [
        *(f"body.boom.{k}" for k in ("position", "orientation", "linear_velocity", "angular_velocity")),
        *(f"joint.hinge.{k}" for k in ("position", "velocity", "drive_force", "reaction")),
        *(f"motor.motor.{k}" for k in ("command", "speed", "torque")),
        *(f"cylinder.lift.{k}" for k in ("command", "brake", "position", "velocity", "pressure_a", "pressure_b")),
        "cylinder.lift.spool", "cylinder.lift.force", "spring.spring.length", "spring.spring.force",
        "servo.servo.target", "servo.servo.force", "force.push.scale",
        *(f"sim.{k}" for k in ("time", "kinetic_energy", "potential_energy", "joint_drift", "residual")),
    ]  # fmt: skip
    assert [name for name in promised if name not in infos] == []


def test_reading_changes_nothing() -> None:
    quiet = Simulation(machine().finalize(), config=gpusim.SolverConfig(dt=2e-3))
    curious = Simulation(machine().finalize(), config=gpusim.SolverConfig(dt=2e-3))
    for sim in (quiet, curious):
        sim.control["motor"], sim.control["lift"] = 0.8, 0.6
    for _ in range(15):
        quiet.step(2)
        curious.step(2)
        for name in curious.signals():
            curious.read(name)
    assert different(bits(quiet, 0), bits(curious, 0)) == []


def test_reads_are_copies(running: Simulation) -> None:
    for name in (
        "body.boom.position",
        "joint.hinge.position",
        "body.boom.mass",
        "sim.time",
        "cylinder.lift.pressure_a",
    ):
        before = running.read(name)
        running.read(name)[:] = 99.0
        np.testing.assert_array_equal(running.read(name), before)


def test_unknown_names_show_the_nearest(running: Simulation) -> None:
    with pytest.raises(UnknownNameError, match=naming("joint.hinge.position")):
        running.read("joint.hinge.positon")
    with pytest.raises(UnknownNameError, match=naming("cylinder.lift.pressure_a")):
        running.write("cylinder.lift.presure_a", 1.0)
    with pytest.raises(UnknownNameError, match=naming("'motor'")):
        running.control["moter"] = 1.0
    assert issubclass(UnknownNameError, gpusim.GpusimError) and issubclass(UnknownNameError, KeyError)


BAD_WRITES: list[tuple[str, Any, Any, str]] = [
    ("sim.time", 1.0, None, "signal 'sim.time'"),
    ("joint.hinge.reaction", np.zeros(6), None, "signal 'joint.hinge.reaction'"),
    ("body.boom.position", (1.0, 2.0), None, "body.boom.position 2"),
    ("body.boom.position", np.zeros((2, 3)), None, "body.boom.position 2 3"),
    ("body.boom.position", (0, 0, float("nan")), None, "signal 'body.boom.position' value 0"),
    ("body.boom.position", "high", None, "body.boom.position"),
    ("joint.hinge.position", 0.0, 3, "world 3"),
    ("joint.hinge.position", 0.0, -1, "world -1"),
    ("joint.hinge.position", 0.0, [True, False], "world"),
    ("joint.hinge.position", 0.0, 1.5, "world"),
    ("body.boom.mass", -1.0, None, "'boom'"),
    ("body.boom.mass", (1.0, 0.0, 1.0), None, "mass"),
    ("body.boom.inertia", np.diag([1.0, 1.0, 3.0]), 0, "'boom' 1 3"),
    ("joint.hinge.damping", -0.1, None, "damping"),
    ("motor.motor.gear_ratio", 0.0, 2, "gear_ratio"),
    ("motor.motor.stall_torque", -1.0, 1, "stall_torque"),
    ("cylinder.lift.area_a", 0.0, None, "area_a"),
    ("spring.spring.stiffness", -5.0, None, "stiffness"),
    ("servo.servo.effort_limit", -5.0, None, "effort_limit"),
    ("body.boom.orientation", (0, 0, 0, 0), None, "orientation"),
    ("body.boom.mass", float("inf"), None, "mass"),
    ("body.boom.position", (0, 0, float("inf")), None, "signal 'body.boom.position' value 0"),
    ("joint.hinge.friction", float("inf"), None, "friction"),
    ("joint.hinge.limit_lower", 2.0, None, "limit_lower"),
    ("motor.motor.command", float("inf"), None, "signal 'motor.motor.command'"),
]


@pytest.mark.parametrize(("name", "value", "world", "words"), BAD_WRITES)
def test_bad_writes_are_refused_and_change_nothing(
    running: Simulation, name: str, value: Any, world: Any, words: str
) -> None:
    before = bits(running, 0), running.read(name).tobytes()
    with pytest.raises(ModelError, match=naming(words)):
        running.write(name, value, worlds=world)
    assert different(before[0], bits(running, 0)) == []
    assert running.read(name).tobytes() == before[1]


@pytest.mark.parametrize("value", ["fast", (1.0, 2.0), float("nan"), float("inf")])
def test_bad_commands_are_refused(running: Simulation, value: Any) -> None:
    with pytest.raises(ModelError, match=naming("command 'motor'")):
        running.control["motor"] = value


def test_commands_are_a_mapping(running: Simulation) -> None:
    assert set(running.control) == {"motor", "lift", "lift.brake", "servo", "push"}
    assert len(running.control) == 5
    running.write("cylinder.lift.command", 0.25, worlds=1)
    np.testing.assert_array_equal(running.control["lift"], (0.1, 0.25, 0.9))
    np.testing.assert_array_equal(running.read("cylinder.lift.command"), (0.1, 0.25, 0.9))
    with pytest.raises(ModelError, match=naming("command 'motor'")):
        del running.control["motor"]


def test_writing_a_joint_moves_its_subtree() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    upper = ball_body(b, xform=PLACE, label="upper")
    lower = ball_body(b, xform=PLACE * FRAME_A, label="lower")
    other = ball_body(b, xform=Transform((9, 9, 9)), label="other")
    b.add_joint_revolute(-1, upper, parent_xform=PLACE, axis=(0, 1, 0), label="shoulder")
    b.add_joint_revolute(upper, lower, parent_xform=FRAME_A, label="elbow")
    b.add_joint_free(-1, other, label="base")
    sim = simulate(b, num_worlds=2)
    sim.write("joint.elbow.position", 0.3)
    sim.write("joint.elbow.velocity", 2.0)
    sim.write("joint.shoulder.position", 0.5, worlds=1)
    np.testing.assert_allclose(sim.read("joint.shoulder.position"), (0.0, 0.5), atol=1e-14)
    np.testing.assert_allclose(sim.read("joint.elbow.position"), 0.3, atol=1e-12)
    np.testing.assert_allclose(sim.read("joint.elbow.velocity"), 2.0, atol=1e-12)
    turn = PLACE * Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5) * PLACE.inverse()
    for label in ("upper", "lower"):
        x = sim.read(f"body.{label}.position")
        np.testing.assert_allclose(x[1], turn.apply(x[0]), atol=1e-12)
    # The elbow's turning rate is carried along.
    spin = sim.read("body.lower.angular_velocity")
    np.testing.assert_allclose(spin[1], turn.rotate(spin[0]), atol=1e-12)
    assert np.all(sim.read("sim.joint_drift") < 1e-12)
    pose = (1.0, 2.0, 3.0, 0.0, 0.0, np.sin(0.2), np.cos(0.2))
    sim.write("joint.base.position", pose, worlds=0)
    np.testing.assert_allclose(sim.read("joint.base.position")[0], pose, atol=1e-14)
    np.testing.assert_array_equal(sim.read("body.other.position")[1], (9, 9, 9))


def test_writing_a_joint_rate_gives_the_subtree_a_rigid_velocity_field() -> None:
    """All bodies behind the joint get w = q' a and v = w x (x - point)."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    upper = ball_body(b, xform=PLACE, label="upper", com=(0.1, 0, 0.2))
    lower = ball_body(b, xform=PLACE * FRAME_A, label="lower", com=(0, 0.3, 0))
    b.add_joint_revolute(-1, upper, parent_xform=PLACE, axis=(0, 1, 0), label="shoulder")
    b.add_joint_prismatic(upper, lower, parent_xform=FRAME_A, label="slide")
    sim = simulate(b)
    sim.write("joint.slide.velocity", 0.4)
    sim.write("joint.shoulder.velocity", 3.0)
    omega = 3.0 * PLACE.rotate((0.0, 1.0, 0.0))
    along = 0.4 * (PLACE * FRAME_A).rotate((0.0, 0.0, 1.0))
    for label, extra in (("upper", np.zeros(3)), ("lower", along)):
        np.testing.assert_allclose(sim.read(f"body.{label}.angular_velocity")[0], omega, atol=1e-12)
        arm = sim.read(f"body.{label}.center_of_mass")[0] - PLACE.position
        np.testing.assert_allclose(
            sim.read(f"body.{label}.linear_velocity")[0], np.cross(omega, arm) + extra, atol=1e-12
        )
    assert sim.read("joint.slide.velocity")[0] == pytest.approx(0.4, abs=1e-12)
    assert sim.read("joint.shoulder.velocity")[0] == pytest.approx(3.0, abs=1e-12)


def test_body_pose_and_velocity_round_trip() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    b.add_body(2.0, (0.1, 0.2, 0.15), com=(0.3, -0.1, 0.2), label="x", angular_velocity=(1, 2, 3))
    sim = simulate(b, num_worlds=2)
    sim.write("body.x.orientation", PLACE.rotation, worlds=1)
    sim.write("body.x.position", PLACE.position, worlds=1)
    sim.write("body.x.linear_velocity", (0.1, 0.2, 0.3), worlds=1)
    np.testing.assert_allclose(sim.read("body.x.angular_velocity"), [(1, 2, 3)] * 2, atol=1e-12)
    np.testing.assert_allclose(sim.read("body.x.position"), [(0, 0, 0), PLACE.position], atol=1e-14)
    np.testing.assert_allclose(sim.read("body.x.orientation")[1], PLACE.rotation, atol=1e-14)
    np.testing.assert_allclose(sim.read("body.x.center_of_mass")[1], PLACE.apply((0.3, -0.1, 0.2)), atol=1e-14)
    np.testing.assert_allclose(sim.read("body.x.linear_velocity"), [(0, 0, 0), (0.1, 0.2, 0.3)], atol=1e-14)
    sim.write("body.x.angular_velocity", [(0, 0, 1), (0, 1, 0)])
    np.testing.assert_allclose(sim.read("body.x.angular_velocity"), [(0, 0, 1), (0, 1, 0)], atol=1e-14)


def test_a_write_in_flight_keeps_the_other_velocities() -> None:
    b = ModelBuilder()
    slider(b, label="a")
    wheel(b, label="b", y=1.0)
    b.add_torque(1, (0, 0.3, 0))
    sim = simulate(b)
    sim.step(30)
    before = sim.read("body.b.angular_velocity")
    sim.write("body.a.linear_velocity", (1.0, 0, 0))
    np.testing.assert_allclose(sim.read("body.b.angular_velocity"), before, atol=1e-14)
    sim.step(30)
    assert sim.read("joint.b.position")[0] == pytest.approx(0.5 * 0.3 / 0.1 * 0.06**2, rel=1e-9)


def test_rates_are_the_derivatives_of_the_coordinates() -> None:
    """The central difference (q(t + h) - q(t - h))/(2 h) agrees for every joint."""
    sim = simulate(machine(), dt=1e-3)
    sim.control["motor"], sim.control["lift"] = 0.8, 0.4
    sim.step(80)
    names = [f"{n[:-9]}" for n in sim.signals() if n.endswith(".velocity")]
    assert len(names) == 7
    before = {n: sim.read(f"{n}.position") for n in names}
    sim.step(1)
    rates = {n: sim.read(f"{n}.velocity") for n in names}
    sim.step(1)
    for n in names:
        wanted = (sim.read(f"{n}.position") - before[n]) / 2e-3
        np.testing.assert_allclose(rates[n], wanted, rtol=1e-4, atol=1e-5, err_msg=n)


def test_energies_are_synchronised() -> None:
    """Kinetic energy m (g t)^2/2 + L w/2, potential energy -m g z."""
    b = ModelBuilder()
    b.add_body(2.0, (0.1, 0.1, 0.1), label="x", angular_velocity=(0, 0, 3.0))
    sim = simulate(b, dt=5e-3)
    for _ in range(5):
        sim.step(7)
        t = sim.time
        assert sim.read("sim.kinetic_energy")[0] == pytest.approx((G * t) ** 2 + 0.45, rel=1e-12)
        assert sim.read("sim.potential_energy")[0] == pytest.approx(-((G * t) ** 2), rel=1e-9)
