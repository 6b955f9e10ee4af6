from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import EnergyAudit, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.control import Diagram

from .helpers import ball_body

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
G = 9.81


def wheel(friction: float = 0.0, two: bool = False) -> ModelBuilder:
    """A wheel of 1 kg m2 at 10 rad/s with one or two brakes and an effort."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(20.0, (1, 1, 1), label="w", angular_velocity=(0, 10, 0))
    joint = b.add_joint_revolute(-1, body, axis=(0, 1, 0), friction=friction, label="spin")
    b.add_brake(joint, torque=5.0, command=1.0, label="brake")
    if two:
        b.add_brake(joint, torque=2.0, command=0.5, label="second")
    b.add_joint_force(joint, label="push")
    return b


def simulation(b: ModelBuilder, backend: str, **config: Any) -> Simulation:
    return Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3, **config))


def read(sim: Simulation, *names: str) -> list[float]:
    return [float(sim.read(name)[0]) for name in names]


@pytest.mark.nightly
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_torque_heat_and_work_of_sliding_brakes(backend: str, solver: str) -> None:
    sim = simulation(wheel(0.5, two=True), backend, joint_solver=solver)
    audit = EnergyAudit(sim)
    for _ in range(500):
        audit.step()
    rate = 10.0 - 6.5 * 0.5
    assert read(sim, "brake.brake.force", "brake.second.force", "joint.spin.drive_force") == pytest.approx([-5, -1, -6])
    assert read(sim, "brake.brake.heat", "brake.second.heat") == pytest.approx([5 * rate, rate], rel=1e-3)
    works, angle = audit.balance().works, 10.0 * 0.5 - 0.5 * 6.5 * 0.25
    found = [works[name][0] for name in ("brake.brake", "brake.second", "joint.spin")]
    assert found == pytest.approx([-5 * angle, -angle, -0.5 * angle], rel=1e-6)
    assert audit.balance().relative_error[0] < 1e-6


@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_brake_that_holds(backend: str, solver: str) -> None:
    sim = simulation(wheel(two=True), backend, joint_solver=solver)
    sim.write("joint.spin.velocity", 0.0)
    sim.control["push"] = 3.0
    sim.step(3)
    names = ("brake.brake.force", "brake.second.force", "joint.spin.drive_force", "brake.brake.heat")
    assert read(sim, *names) == pytest.approx([-2.5, -0.5, 0.0, 0.0], abs=1e-6)
    sim.control["push"] = 0.0
    sim.step(3)
    assert read(sim, *names) == pytest.approx([0.0] * 4, abs=1e-9)
    sim.control["brake"], sim.control["second"] = 0.0, 0.0
    sim.step(3)
    assert read(sim, *names) == [0.0] * 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_at_a_limit_the_stop_bears(backend: str) -> None:
    b = ModelBuilder()
    joint = b.add_joint_prismatic(-1, b.add_body(2.0, (1, 1, 1)), axis=(0, 0, 1), limit_lower=0.0, label="rail")
    b.add_brake(joint, torque=5.0, label="brake")
    sim = simulation(b, backend)
    sim.step(5)
    assert read(sim, "brake.brake.force") == [0.0]
    sim.control["brake"] = 1.0
    sim.step(5)
    assert abs(read(sim, "brake.brake.force")[0]) <= 5.0


def shafts() -> ModelBuilder:
    """Two shafts with a clutch between them, a brake on one, and a clutch on a separate joint."""
    b = ModelBuilder(gravity=(0, 0, 0))
    joints = [
        b.add_joint_revolute(-1, ball_body(b, 1.0, 0.1, xform=Transform((k, 0, 0)), label=f"s{k}"),
                             Transform((k, 0, 0)), axis=(1, 0, 0), label=f"j{k}")
        for k in range(3)
    ]  # fmt: skip
    difference = b.add_tendon([(joints[0], 1.0), (joints[1], -1.0)], label="difference")
    b.add_brake(difference, 5.0, label="clutch")
    b.add_brake(joints[1], 5.0, label="brake")
    b.add_brake(joints[2], 5.0, label="other_clutch")
    b.add_brake(difference, 5.0, label="band")
    b.set_command_map("other_clutch", safe=0.0)
    b.set_command_map("band", safe=0.7)
    return b


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_emergency_stop_opens_clutches(backend: str) -> None:
    sim = simulation(shafts(), backend)
    for label in sim.control:
        sim.control[label] = 0.3
    sim.step(2)
    sim.override()
    sim.step(2)
    assert {label: float(sim.control[label][0]) for label in sim.control} == {
        "clutch": 0.0, "brake": 1.0, "other_clutch": 0.0, "band": 0.7,
    }  # fmt: skip


def test_units_of_turns_and_travels() -> None:
    b = ModelBuilder()
    joints = {
        "s": b.add_joint_prismatic(-1, b.add_body(1, (1, 1, 1)), label="s"),
        "h": b.add_joint_revolute(-1, b.add_body(1, (1, 1, 1)), axis=(0, 0, 1), label="h"),
    }
    for name, joint in joints.items():
        b.add_brake(joint, 10, label=f"br_{name}")
        b.add_servo(joint, stiffness=1, damping=1, label=f"sv_{name}")
        b.add_servo(joint, "velocity", damping=1, label=f"rate_{name}")
        b.add_joint_force(joint, limit=3.0, label=f"f_{name}")
        b.add_tracking_servo(joint, stiffness=1.0, damping=1.0, label=f"t_{name}")
        b.add_joint_spring(joint, stiffness=1.0, label=f"k_{name}") if hasattr(b, "add_joint_spring") else None
    both = b.add_tendon([(joints["s"], 1.0), (joints["h"], 1.0)], label="both")
    b.add_brake(both, 1.0, label="mixed")
    b.add_bushing(-1, b.add_body(1, (1, 1, 1), label="B"), stiffness=1e5, label="bush")
    d = Diagram("d")
    d.connect("signal:servo.sv_s.force", d.add("gain", "g", gain=1.0, unit="1/N"))
    d.connect("g", d.add("command", "c", command="br_s"))
    b.add_diagram(d)
    info = simulation(b, "numpy").signals()
    units = {
        "brake.br_{}.torque": ("N", "N m"), "brake.br_{}.force": ("N", "N m"), "brake.br_{}.heat": ("W", "W"),
        "servo.sv_{}.target": ("m", "rad"), "servo.sv_{}.force": ("N", "N m"), "servo.rate_{}.target": ("m/s", "rad/s"),
        "servo.sv_{}.stiffness": ("N/m", "N m/rad"), "servo.sv_{}.damping": ("N s/m", "N m s/rad"),
        "force.f_{}.command": ("N", "N m"), "force.f_{}.upper": ("N", "N m"), "joint.{}.limit_upper": ("m", "rad"),
        "joint.{}.damping": ("N s/m", "N m s/rad"), "joint.{}.friction": ("N", "N m"),
        "joint.{}.armature": ("kg", "kg m2"), "joint.{}.limit_restitution": ("-", "-"),
        "joint.{}.drive_force": ("N", "N m"),
    }  # fmt: skip
    for name, pair in units.items():
        assert tuple(info[name.format(kind)].unit for kind in "sh") == pair, name
    assert info["joint.both.limit_upper"].unit == "m, rad" and info["joint.both.limit_restitution"].unit == "-"
    assert (info["spring.bush_x.length"].unit, info["spring.bush_x.stiffness"].unit) == ("m", "N/m")
    assert not [name for name, signal in info.items() if signal.unit == "SI"]


def test_a_switch_is_0_or_1() -> None:
    d = Diagram("d")
    for name, options in (("stick", {}), ("switch", {"switch": True}), ("both", {"switch": True, "lower": -1.0})):
        d.connect(d.add("input", name, **options), d.add("gain", f"g_{name}"))
    b = ModelBuilder()
    b.add_body(1, (1, 1, 1))
    b.add_diagram(d)
    inputs = {item.label: (item.lower, item.upper) for item in b.finalize().diagrams[0].operator_inputs}
    assert inputs == {"stick": (-1.0, 1.0), "switch": (0.0, 1.0), "both": (-1.0, 1.0)}
    sim = simulation(b, "numpy")
    sim.control["switch"] = -1.0
    sim.step()
    assert sim.read("diagram.d.switch")[0] == 0.0
    np.testing.assert_array_equal(sim.model.control_map[:2], [[-1, 0, -1], [1, 1, 1]])
