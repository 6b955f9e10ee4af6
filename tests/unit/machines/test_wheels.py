"""Wheels and drive trains: sizes, drives and brakes against closed forms, bad parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, Tire, Transform
from gpusim import machines as m
from tests.message_snapshot import naming

RADIUS, WIDTH, MASS = 0.3, 0.16, 15.0
AXLE = 0.5 * MASS * RADIUS**2 * 1.25
"""Moment of inertia of the ring about its axle, kg m2."""
SIZES: dict[str, Any] = {"radius": RADIUS, "width": WIDTH, "mass": MASS}
MOTOR = m.DcMotor(2.0, 400.0, 0.01, gear_ratio=20.0)


def wheel(b: ModelBuilder, label: str, **options: Any) -> m.Wheel:
    return m.add_wheel(b, -1, Transform((0, 0, RADIUS)), label=label, **(SIZES | options))


def test_a_wheel_lies_in_its_hub_and_knows_its_tire() -> None:
    b, tire = ModelBuilder(), Material(law=Tire(6e4, 0.3, 2e5, 500.0))
    turn = Transform.from_axis_angle((0.5, 0.2, 0.4), (0, 0, 1), 0.3)
    hub = b.add_body(5.0, (0.1, 0.1, 0.1), xform=turn, label="hub")
    found = m.add_wheel(b, hub, Transform((0, 0.1, 0)), material=tire, label="fl", brake=100.0, **SIZES)
    body, joint, shape = b.bodies[found.body], b.joints[found.spin], b.shapes[found.shape]
    assert (body.label, joint.label, shape.label) == ("fl_wheel", "fl_spin", "fl_tire")
    assert body.xform.position == pytest.approx(turn.apply((0, 0.1, 0)))
    across = 0.5 * AXLE + MASS * WIDTH**2 / 12.0
    np.testing.assert_allclose(body.inertia, np.diag([across, AXLE, across]), atol=1e-12)
    assert found.height() == RADIUS and found.height(1000.0) == pytest.approx(RADIUS - 5e-3)
    assert found.rolling_radius(1000.0) == pytest.approx(RADIUS - 2.5e-3)
    assert found.drive is None and b.actuators[found.brake or 0].label == "fl_brake"
    assert shape.params["edge_radius"] == pytest.approx(0.25 * RADIUS)


@pytest.mark.parametrize("shape", ["cylinder", "ellipsoid"])
def test_other_shapes_reach_as_far_as_the_radius(shape: str) -> None:
    b = ModelBuilder()
    rigid = wheel(b, "w", shape=shape)
    assert b.shapes[rigid.shape].kind == shape
    assert rigid.height(1e4) == RADIUS


def machine() -> tuple[ModelBuilder, m.DriveTrain]:
    b = ModelBuilder(gravity=(0, 0, 0))
    for label, drive in (("torque", m.TorqueDrive(8.0)), ("speed", m.SpeedDrive(1e3, 2.0)), ("dc", MOTOR)):
        wheel(b, label, drive=drive, brake=40.0)
    sides = [
        [wheel(b, f"{side}{k}", inertia=(1.0, turning, 1.0)) for k, turning in enumerate(pair)]
        for side, pair in (("l", (0.8, 1.0)), ("r", (1.2, 1.6)))
    ]
    base = b.add_body(100.0, (10, 10, 10), kinematic=True, label="base")
    return b, m.add_drive_train(
        b, base, *sides, drive=m.TorqueDrive(12.0), turn=m.TorqueDrive(30.0), clutch=20.0, label="train"
    )


def spin(sim: Simulation, label: str) -> float:
    return float(sim.read(f"joint.{label}_spin.velocity")[0])


@pytest.mark.nightly
@pytest.mark.native
def test_drives_and_brakes_turn_wheels_as_by_hand() -> None:
    b, _ = machine()
    sim = Simulation(b.finalize(), config=SolverConfig(dt=1e-3))
    for label, command in (("torque", 0.5), ("speed", 12.0), ("dc", 1.0)):
        sim.control[f"{label}_drive"] = command
    sim.step(400)
    assert spin(sim, "torque") == pytest.approx(4.0 * 0.4 / AXLE, rel=1e-3)
    assert spin(sim, "speed") == pytest.approx(12.0 * -math.expm1(-2.0 * 0.4 / AXLE), rel=1e-3)
    rotor = 2.0 * 0.01 / 400.0 * 20.0**2
    assert spin(sim, "dc") == pytest.approx(20.0 * -math.expm1(-0.4 / ((AXLE + rotor) * 20.0 / 40.0)), rel=2e-3)
    before = spin(sim, "torque")
    sim.control["torque_drive"] = 0.0
    sim.control["torque_brake"] = 0.5
    sim.step(10)
    assert before - spin(sim, "torque") == pytest.approx(20.0 * 0.01 / AXLE, rel=1e-2)
    sim.step(300)
    angle = float(sim.read("joint.torque_spin.position")[0])
    sim.control["torque_drive"] = 1.0  # 8 N m against the brake's 20
    sim.step(300)
    assert float(sim.read("joint.torque_spin.position")[0]) == pytest.approx(angle, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.native
def test_a_drive_train_shares_its_torques_and_slips_at_its_clutch() -> None:
    b, train = machine()
    assert train.turn is not None and b.actuators[train.turn.clutch].label == "train_turn_clutch"
    inertia = {"l0": 0.8, "l1": 1.0, "r0": 1.2, "r1": 1.6}
    model = b.finalize()
    sim = Simulation(model, 3, config=SolverConfig(dt=1e-3))
    sim.control["train_drive"] = [1.0, 0.0, 0.0]
    sim.control["train_turn"] = [0.0, 1.0, 1.0]  # 30 N m, more than the clutch holds
    sim.control["train_turn_clutch"] = [0.0, 0.0, 1.0]
    sim.step(200)
    for label, turning in inertia.items():
        side = -1.0 if label[0] == "l" else 1.0
        wanted = [0.25 * 12.0 * 0.2 / turning, 0.0, side * 0.25 * 20.0 * 0.2 / turning]
        np.testing.assert_allclose(sim.read(f"joint.{label}_spin.velocity"), wanted, rtol=2e-3, atol=1e-9)
    mean = np.mean([sim.read(f"joint.{label}_spin.velocity") for label in inertia], axis=0)
    np.testing.assert_allclose(sim.read("joint.train_mean.velocity"), mean, atol=1e-12)


def test_a_limited_slip_is_a_damper_between_wheels_of_a_side() -> None:
    b = ModelBuilder()
    sides = [[wheel(b, f"{side}{k}") for k in range(3)] for side in "lr"]
    m.add_drive_train(b, -1, *sides, drive=m.TorqueDrive(1.0), viscosity=7.0)
    slips = [joint for joint in b.joints if "slip" in joint.label]
    assert [joint.label for joint in slips] == ["left_slip0", "left_slip1", "right_slip0", "right_slip1"]
    assert all(float(np.ravel(joint.params["damping"])[0]) == 7.0 for joint in slips)


def test_a_turn_shaft_lies_in_the_middle_of_its_chassis() -> None:
    for given, place in (({"mass": 9.0, "inertia": (1, 1, 1), "com": (0.1, 0, 0.2)}, (1.1, 0, 0.2)), ({}, (1.0, 0, 0))):
        b = ModelBuilder()
        chassis = b.add_body(**given, xform=Transform((1.0, 0, 0)), label="chassis")
        b.add_shape_box(chassis, (0.5, 0.3, 0.1))
        left, right = wheel(b, "l"), wheel(b, "r")
        drive = m.TorqueDrive(1.0)
        train = m.add_drive_train(b, chassis, [left], [right], drive=drive, turn=drive, clutch=5.0)
        assert train.turn is not None
        assert b.bodies[train.turn.body].xform.position == pytest.approx(place)


def test_spin_without_slip() -> None:
    assert m.spin_of(2.0, 0.5, 0.6, 0.3) == pytest.approx((2.0 - 0.3) / 0.3)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"radius": 0.0}, "radius 0"),
    ({"radius": "0.3"}, "radius '0.3'"),
    ({"width": -1.0}, "width -1"),
    ({"mass": math.nan}, "mass nan"),
    ({"inertia": (1.0, 1.0)}, "wheel 'w' inertia 2"),
    ({"shape": "box"}, "shape 'box'"),
    ({"edge_radius": 0.4}, "edge_radius 0.4 0 0.3"),
    ({"edge_radius": 0.1, "shape": "cylinder"}, "edge_radius"),
    ({"drive": 3.0}, "drive 3.0 gpusim.machines.DcMotor SpeedDrive TorqueDrive"),
    ({"drive": m.DcMotor(0.0, 1.0, 1.0)}, "stall_torque 0"),
    ({"drive": m.SpeedDrive(-1.0, 1.0)}, "effort_limit -1"),
    ({"brake": -5.0}, "brake -5"),
    ({"friction": -1.0}, "'w_spin' friction -1"),
    ({"hub": 7}, "hub 7"),
    ({"xform": 3.0}, "3.0"),
    ({"label": None}, "label None"),
    ({"material": Material(law=Tire(1e4, 0.1)), "shape": "cylinder"}, "shape 'shape0' 'w_tire' friction 'tire'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_bad_wheels_are_reported(change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    with pytest.raises(ModelError, match=naming(message)) as caught:
        options: dict[str, Any] = SIZES | {"hub": -1, "label": "w"} | change
        m.add_wheel(b, options.pop("hub"), **options)
        b.finalize()
    assert "\n" not in str(caught.value)


TRAINS: list[tuple[Callable[[ModelBuilder, list[m.Wheel]], Any], str]] = [
    (lambda b, w: ([], []), "0"),
    (lambda b, w: (w[:1], w[1:]), "1 2"),
    (lambda b, w: (w[:1], w[:1]), ""),
    (lambda b, w: ([3], w[:1]), "left 3 add_wheel"),
]


@pytest.mark.parametrize(("sides", "message"), TRAINS)
def test_bad_sides_of_a_drive_train_are_reported(sides: Callable[..., Any], message: str) -> None:
    b = ModelBuilder()
    wheels = [wheel(b, f"w{k}") for k in range(3)]
    with pytest.raises(ModelError, match=naming(message)):
        m.add_drive_train(b, -1, *sides(b, wheels), drive=m.TorqueDrive(1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drive": None}, "drive None"),
        ({"turn": "left"}, "turn 'left'"),
        ({"turn": m.TorqueDrive(1.0)}, "clutch inf"),
        ({"viscosity": -1.0}, "viscosity -1"),
        ({"shaft_mass": 0.0}, "shaft_mass 0"),
    ],
)
def test_bad_numbers_of_a_drive_train_are_reported(change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    left, right = wheel(b, "l"), wheel(b, "r")
    given: dict[str, Any] = {"drive": m.TorqueDrive(1.0)} | change
    with pytest.raises(ModelError, match=naming(message)) as caught:
        m.add_drive_train(b, -1, [left], [right], **given)
    assert re.match("drive train", str(caught.value))
