from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim import EnergyAudit, Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim import machines as m

from .digger import digger, power

DIG = (-3000.0, 2000.0)
TIP = (0.45, 0.0)


def turns(sim: Simulation, arm: m.BoomArm) -> dict[str, float]:
    return {name: float(sim.read(f"joint.{name}.position")[0]) for name in arm.joints}


def off(sim: Simulation, arm: m.BoomArm, forces: list[m.PointForce]) -> float:
    hand = arm.static(turns(sim, arm), forces).forces
    measured = [float(sim.read(f"cylinder.{name}_cylinder.force")[0]) for name in hand]
    return float(np.abs(np.array(measured) / list(hand.values()) - 1.0).max())


@pytest.mark.native
@pytest.mark.parametrize("dt", [5e-3, 1e-2])
def test_cylinder_forces_are_those_of_virtual_work(dt: float) -> None:
    b = ModelBuilder()
    arm = digger(b)[0]
    b.add_force(arm.bodies["bucket"], (DIG[0], 0, DIG[1]), point=(TIP[0], 0, TIP[1]), label="dig")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=dt, joint_solver="direct"))
    sim.control["dig"] = 0.0
    sim.step(round(0.5 / dt))
    assert max(map(abs, turns(sim, arm).values())) < 1e-6
    assert off(sim, arm, []) < 1e-6
    gap = 0.0
    for k in range(round(8.0 / dt)):
        t = k * dt
        sim.control["boom"] = 0.6 if t < 0.7 else -0.4 if 1.5 <= t < 2.0 else 0.0
        sim.control["stick"], sim.control["bucket"] = (0.5, 0.25) if 0.2 <= t < 0.8 else (0.0, 0.0)
        sim.control["dig"] = min(max(t - 4.5, 0.0) / 0.5, 1.0)
        sim.step(1)
        gap = max(gap, float(sim.read("sim.joint_drift")[0])) if k % 5 == 0 else gap
        if k == round(4.4 / dt):
            assert off(sim, arm, []) < 1e-6
            assert min(map(abs, turns(sim, arm).values())) > 0.02
    assert off(sim, arm, [m.PointForce("bucket", TIP, DIG)]) < 1e-6
    assert gap < 1e-4
    for part in ("stick", "rocker", "link", "bucket"):
        measured = sim.read(f"body.{part}.position")[0]
        np.testing.assert_allclose(measured, arm.point(part, (0, 0), turns(sim, arm)), atol=1e-6)


def test_static_of_one_link_is_weight_over_lever() -> None:
    b = ModelBuilder()
    lean = Transform.from_rpy((1, 2, 3), (0, 0.2, 0.7))
    base = b.add_body(100.0, (9, 9, 9), xform=lean, label="base")
    arm = m.add_boom_arm(b, base, (0.2, 0, 0), [m.Link("bar", 2.0, 30.0)])
    pins = ((0.5, -1.0), (0.5, 0.0))
    ram = m.ArmCylinder("ram", "base", "bar", pins, 0.05, 0.03, 0.3, m.Spool(1e-4))
    m.add_arm_cylinders(b, arm, power(b), [ram])
    push = 30.0 * 9.81 * 1.0 / 0.5
    static = arm.static()
    assert static.forces["ram"] == pytest.approx(push * math.cos(0.2), rel=1e-8)
    assert static.torques["bar"] == pytest.approx(0.5 * push * math.cos(0.2), rel=1e-8)
    assert static.lengths["ram"] == pytest.approx(1.0)
    loaded = arm.static(forces=[("bar", (2.0, 0.0), (0.0, -100.0))])
    assert loaded.forces["ram"] == pytest.approx(push * math.cos(0.2) + 400.0, rel=1e-8)
    np.testing.assert_allclose(arm.point("bar", (2.0, 0.0)), (2.2, 0, 0), atol=1e-12)
    np.testing.assert_allclose(arm.point("bar", (2.0, 0.0), {"bar": math.pi / 2}), (0.2, 0, 2), atol=1e-12)
    second = ModelBuilder()
    twin = m.add_boom_arm(second, -1, (0, 0, 0), [m.Link("bar", 2.0, 30.0)])
    rams = [m.ArmCylinder(f"ram{k}", "base", "bar", pins, 0.05, 0.03, 0.3, m.Spool(1e-4)) for k in range(2)]
    m.add_arm_cylinders(second, twin, power(second), rams)
    assert list(twin.static().forces.values()) == pytest.approx([0.5 * push] * 2)


@pytest.mark.native
def test_a_holding_valve_keeps_the_boom_up_and_lets_it_down() -> None:
    b = ModelBuilder()
    holding = m.HoldingValve(1e7, pilot_ratio=3.0)
    arm, drives = digger(b, changes={"boom": {"holding": holding, "back_pressure": 5e5}})
    circuit = b.actuators[drives["boom"].valve].params["circuit"]
    tank = next(k for k, a in enumerate(b.actuators) if a.label == "oil_tank")
    assert b.actuators[tank].params["circuit"] == circuit
    assert drives["boom"].port_a != drives["boom"].node_a and drives["boom"].port_b == drives["boom"].node_b
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.step(400)
    held = float(sim.read("joint.boom.position")[0])
    assert abs(held) < 1e-6
    hose, chamber = (sim.read(f"node.boom_{name}.pressure")[0] for name in ("hose_a", "cylinder_a"))
    assert hose < 5e5 < 1e6 < chamber
    sim.control["boom"] = -0.5
    sim.step(300)
    assert sim.read("joint.boom.position")[0] < -0.1
    sim.control["boom"] = 0.0
    sim.step(300)
    stopped = sim.read("joint.boom.position")[0]
    sim.step(200)
    assert sim.read("joint.boom.position")[0] == pytest.approx(stopped, abs=1e-6)


@pytest.mark.native
def test_relief_valves_pass_the_spools_flow_at_20_bar_more() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    joint = b.add_joint_revolute(-1, b.add_body(900.0, (1e9,) * 3, label="rock"), axis=(0, 0, 1), label="axle")
    m.add_hydraulic_drive(b, power(b, pressure=3e7), joint, 1.5e-4, m.Spool(1.5e-4), "swing", relief=1.6e7)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.control["swing"] = 1.0
    sim.step(600)
    drop = sim.read("node.swing_motor_a.pressure")[0] - sim.read("node.swing_motor_b.pressure")[0]
    assert drop == pytest.approx(1.8e7, rel=1e-3)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dt", [5e-3, 1e-3])
def test_energy_closes_while_a_holding_valve_lets_the_boom_down(dt: float) -> None:
    b = ModelBuilder()
    digger(b, changes={"boom": {"holding": m.HoldingValve(1.6e7), "back_pressure": 5e5}})
    sim = Simulation(b.finalize(), config=SolverConfig(dt=dt))
    sim.control["boom"] = -0.4
    audit = EnergyAudit(sim)
    for _ in range(round(1.0 / dt)):
        audit.step()
    assert sim.read("joint.boom.position")[0] < -0.1
    assert audit.balance().relative_error[0] < 5e-3


@pytest.mark.native
def test_swing_turns_by_the_flow_of_its_valve() -> None:
    """Rate = opening flow/displacement, in both directions."""
    b = ModelBuilder()
    chassis = b.add_body(1500.0, (900, 900, 900), label="chassis")
    b.add_joint_fixed(-1, chassis, at=(0, 0, 0), label="ground")
    upper = b.add_body(600.0, (120, 200, 220), com=(0, 0, 0.3), label="upper")
    b.add_force(upper, (0, 1800.0, 0), point=(1.0, 0, 0), label="push")
    swing = m.add_swing(b, chassis, upper, (0, 0, 0.6), friction=50.0, brake_torque=2000.0)
    assert swing.brake is not None and b.actuators[swing.brake].label == "swing_brake"
    m.add_hydraulic_drive(b, power(b), swing.joint, 1e-4, m.Spool(1e-4), "swing")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.control["swing_brake"] = 1.0
    sim.step(200)
    assert abs(sim.read("joint.swing.position")[0]) < 1e-6
    sim.control["swing_brake"] = sim.control["push"] = 0.0
    for command in (0.5, -0.8):
        sim.control["swing"] = command
        sim.step(500)
        rate = math.copysign((abs(command) - 0.05) / 0.95, command) * 1e-4 / 1e-4
        assert sim.read("joint.swing.velocity")[0] == pytest.approx(rate, rel=1e-2)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("tilt", "z"), [(0.0, 0.59), (0.3, 0.6), (0.3, 0.61)])
def test_a_machine_stands_on_its_outriggers(tilt: float, z: float) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1, material=Material(friction=0.7), label="ground")
    chassis = b.add_body(1000.0, (300, 500, 700), xform=Transform((0, 0, z)), label="chassis")
    pack = power(b)
    jack = m.CylinderJack(pack, 0.08, 0.05, m.Spool(3e-4), m.HoldingValve(1e7))
    legs = [
        m.add_outrigger(b, chassis, (x, y, -0.55), 0.3, 0.15, jack, f"leg{k}", tilt=tilt)
        for k, (x, y) in enumerate(((1, 0), (-1, 0.8), (-1, -0.8)))
    ]
    assert all((leg.leg == leg.foot) == (tilt == 0.0) for leg in legs)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    for k in range(3):
        sim.control[f"leg{k}"] = 0.6
    sim.step(600)
    for k in range(3):
        sim.control[f"leg{k}"] = 0.0
    sim.step(600)
    assert sim.read("body.chassis.position")[0, 2] > 0.61
    place = sim.read("body.chassis.position")[0].copy()
    push = np.array([float(sim.read(f"cylinder.leg{k}_cylinder.force")[0]) for k in range(3)])
    ground = np.array([float(sim.read(f"body.{b.bodies[leg.foot].label}.contact_force")[0, 2]) for leg in legs])
    assert push.sum() == pytest.approx(1000.0 * 9.81, rel=1e-3)
    assert ground.sum() == pytest.approx(1075.0 * 9.81, rel=1e-3)
    if tilt:
        shares = np.array([0.5, 0.25, 0.25]) * 1000.0 * 9.81
        np.testing.assert_allclose(push, shares, rtol=5e-3)
        np.testing.assert_allclose(ground, shares + 25.0 * 9.81, rtol=5e-3)
    sim.step(400)
    np.testing.assert_allclose(sim.read("body.chassis.position")[0], place, atol=1e-5)


@pytest.mark.native
def test_a_servo_moves_an_outrigger_and_stops_at_its_stroke() -> None:
    b = ModelBuilder()
    leg = m.add_outrigger(b, -1, Transform((0, 0, 1)), 0.3, 0.15, m.ServoJack(), "leg")
    assert leg.drive is None
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    for target, reached in ((0.2, 0.2), (0.5, 0.3)):
        sim.control["leg"] = target
        sim.step(400)
        assert sim.read("joint.leg.position")[0] == pytest.approx(reached, abs=2e-4)
    assert sim.read("body.leg.position")[0, 2] == pytest.approx(0.7, abs=1e-4)


def test_numpy_runs_the_arm_as_the_kernels_do() -> None:
    found = []
    for backend in ("numpy", "auto"):
        b = ModelBuilder()
        digger(b, changes={"boom": {"holding": m.HoldingValve(1e7)}})
        sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=5e-3))
        sim.control["boom"] = sim.control["stick"] = 0.5
        sim.step(20)
        found.append(np.array([sim.read(f"joint.{name}.position", numpy=True) for name in ("boom", "stick", "bucket")]))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
