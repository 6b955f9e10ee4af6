from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import EnergyAudit, EnergyBalance, ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram
from tests.message_snapshot import naming

from . import circuits

G = 9.81


def audited(b: ModelBuilder, time: float, dt: float = 1e-3, backend: str = "native", **config: object) -> EnergyBalance:
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=dt, **config))  # type: ignore[arg-type]
    audit = EnergyAudit(sim)
    for _ in range(round(time / dt)):
        audit.step()
    return audit.balance()


def block(speed: float = 0.0, **material: float) -> ModelBuilder:
    """A block of 2 kg on the ground."""
    b = ModelBuilder(gravity=(0, 0, -G))
    b.add_shape_plane(-1, material=gpusim.Material(**material), label="ground")
    start = {"xform": gpusim.Transform((0, 0, 0.1)), "linear_velocity": (speed, 0.0, 0.0)}
    body = b.add_body(2.0, (0.02,) * 3, label="block", **start)  # type: ignore[arg-type]
    b.add_shape_box(body, (0.1, 0.1, 0.1), material=gpusim.Material(**material), label="block")
    return b


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_friction_takes_what_the_block_has(backend: str) -> None:
    found = audited(block(1.0, friction=0.5), 0.4, 2e-3, backend)
    np.testing.assert_allclose(found.works["contacts"], -1.0, atol=2e-4)
    np.testing.assert_allclose(found.turnover, 1.0, atol=2e-3)
    assert abs(found.works["impacts"][0]) < 1e-6 and found.relative_error[0] < 1e-3


def test_an_impact_takes_its_share() -> None:
    """A ball with e = 0.5 loses 3/4 of its 9.81 J in the impact."""
    b = ModelBuilder(gravity=(0, 0, -G))
    bouncing = gpusim.Material(restitution=0.5, friction=0.0)
    b.add_shape_plane(-1, material=bouncing)
    body = b.add_body(1.0, (0.004,) * 3, xform=gpusim.Transform((0, 0, 1.1)))
    b.add_shape_sphere(body, 0.1, material=bouncing)
    found = audited(b, 0.6)
    np.testing.assert_allclose(found.works["impacts"] + found.works["contacts"], -0.75 * G, rtol=5e-3)
    assert found.relative_error[0] < 5e-3


def test_a_damper_a_motor_and_friction_of_a_joint() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    wheel = b.add_body(1.0, (0.5, 0.5, 0.5), label="wheel")
    hinge = b.add_joint_revolute(-1, wheel, axis=(0, 0, 1), damping=0.3, friction=0.4, armature=0.1, label="hinge")
    b.add_servo(hinge, "velocity", damping=50.0, effort_limit=3.0, label="drive")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=1e-3))
    sim.control["drive"] = 1e3
    audit = EnergyAudit(sim)
    for _ in range(1000):
        audit.step()
    found = audit.balance()
    end, decay = (3.0 - 0.4) / 0.3, 0.3 / 0.6
    angle = end * (1.0 - (1.0 - np.exp(-decay)) / decay)
    speed = end * (1.0 - np.exp(-decay))
    (drive,) = [name for name in found.works if name.endswith(".drive")]
    np.testing.assert_allclose(found.works[drive], 3.0 * angle, rtol=1e-5)
    np.testing.assert_allclose(found.kinetic, 0.5 * 0.6 * speed**2, rtol=1e-5)
    np.testing.assert_allclose(found.works["joint.hinge"], 0.3 * speed**2 - 3.0 * angle, rtol=1e-5)
    assert found.relative_error[0] < 1e-6


def test_a_moved_body_brings_in_what_friction_takes() -> None:
    b = ModelBuilder(gravity=(0, 0, -G))
    rough = gpusim.Material(friction=0.4)
    belt = b.add_body(1.0, (1, 1, 1), xform=gpusim.Transform((0, 0, -0.1)), linear_velocity=(0.5, 0, 0), kinematic=True)
    b.add_shape_box(belt, (5.0, 1.0, 0.1), material=rough)
    body = b.add_body(2.0, (0.02,) * 3, xform=gpusim.Transform((0, 0, 0.1)))
    b.add_shape_box(body, (0.1, 0.1, 0.1), material=rough)
    b.add_joint_prismatic(-1, body, axis=(0, 0, 1), at=(0, 0, 0.1))
    found = audited(b, 0.5, 2e-3)
    expected = 0.4 * 2.0 * G * 0.5 * 0.5
    np.testing.assert_allclose(found.works["moved bodies"], expected, rtol=2e-2)
    np.testing.assert_allclose(found.works["contacts"], -expected, rtol=2e-2)
    assert found.relative_error[0] < 1e-3


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
def test_a_spring_with_its_damper(scheme: str) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(1.0, (0.1,) * 3, xform=gpusim.Transform((0, 0, 1.2)))
    b.add_joint_prismatic(-1, body, axis=(0, 0, 1), at=(0, 0, 1.2))
    b.add_spring(-1, body, (0, 0, 0), (0, 0, 0), stiffness=100.0, damping=0.5, rest_length=1.0, label="coil")
    sim = Simulation(b.finalize(), 2, config=SolverConfig(dt=1e-3, scheme=scheme))  # type: ignore[arg-type]
    sim.write("spring.coil.damping", np.array([0.5, 0.0]))
    audit = EnergyAudit(sim)
    for _ in range(1000):
        audit.step()
    found = audit.balance()
    stored = 2.0 * np.exp(-0.5)  # E = E_0 exp(-c t/m), within the damping's ratio of 2.5 %
    if scheme == "second_order":
        np.testing.assert_allclose(found.works["spring.coil"], [stored - 2.0, 0.0], atol=0.06)
    assert found.works["spring.coil"][0] < found.works["spring.coil"][1] < 1e-3
    assert (found.relative_error < 1e-4).all()


@pytest.mark.nightly
def test_circuits_close_and_what_their_steps_damp_is_of_first_order() -> None:
    damped = []
    for dt in (2e-3, 1e-3):
        b, commands = circuits.motor_with_relief()
        sim = Simulation(b.finalize(), config=SolverConfig(dt=dt))
        audit = EnergyAudit(sim)
        for _ in range(round(1.0 / dt)):
            for label, command in commands.items():
                sim.control[label] = command(float(sim.time))
            audit.step()
        found = audit.balance()
        damped.append(float(-found.works["oil steps"][0] / found.turnover[0]))
        assert found.works["pump.oil_pump3"][0] > 1000.0 > 0.0 > found.works["valve.v_swing"][0]
        assert found.relative_error[0] < 1e-6
    assert 0.0 < damped[0] < 0.01 and 1.7 < damped[0] / damped[1] < 2.3


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_push_out_lifts(backend: str) -> None:
    b = block()
    b.bodies[0].xform = gpusim.Transform((0, 0, 0.095))
    found = audited(b, 0.3, 2e-3, backend)
    np.testing.assert_allclose(found.works["push-outs"], 2.0 * G * 5e-3, rtol=0.02)
    np.testing.assert_allclose(found.potential, 2.0 * G * 5e-3, rtol=0.02)
    assert abs(found.error[0]) < 1e-6


def test_what_a_diagram_commands_is_the_actuators_work() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    wheel = b.add_body(1.0, (0.5, 0.5, 0.5), label="wheel")
    hinge = b.add_joint_revolute(-1, wheel, axis=(0, 0, 1), label="hinge")
    b.add_joint_force(hinge, label="torque")
    d = Diagram("ramp")
    d.connect(40.0, d.add("integrator", "rise"))
    d.connect("rise", "command:torque")
    b.add_diagram(d)
    model, config = b.finalize(), SolverConfig(dt=1e-3)
    sim, alone = Simulation(model, config=config), Simulation(model, config=config)
    audit = EnergyAudit(sim)
    for _ in range(200):
        audit.step()
    alone.step(200)
    np.testing.assert_array_equal(sim.read("joint.hinge.position"), alone.read("joint.hinge.position"))
    found = audit.balance()
    (torque,) = [name for name in found.works if name.endswith(".torque")]
    np.testing.assert_allclose(found.works[torque], 0.25 * (20.0 * 0.2**2 / 0.5) ** 2, rtol=0.01)
    assert abs(found.works["impacts"][0]) < 1e-9
    assert found.relative_error[0] < 1e-4


def test_the_table_and_a_wrong_step() -> None:
    text = str(audited(block(), 0.02))
    assert "kinetic energy" in text and "contacts" in text and text.splitlines()[-1].startswith("error")
    with pytest.raises(ModelError, match=naming("2 substeps 1")):
        EnergyAudit(Simulation(block().finalize(), config=SolverConfig(substeps=2)))


def test_warnings_name_the_line_that_steps() -> None:
    b = ModelBuilder()
    links = [b.add_body(1.0, (0.1,) * 3, xform=gpusim.Transform((0.3 * k, 0, 0)), label=f"l{k}") for k in range(2)]
    for parent, child in ((-1, links[0]), (links[0], links[1])):
        b.add_joint_ball(parent, child, gpusim.Transform((0.1, 0, 0)))
    audit = EnergyAudit(Simulation(b.finalize(), config=SolverConfig(dt=1e-2, joint_solver="colored")))
    with pytest.warns(UserWarning) as reported:
        for _ in range(20):
            audit.step()
    assert {warning.filename for warning in reported} == {__file__}
