"""DC motors, hydraulic cylinders, forces and torques against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform, orifice_gain

from .helpers import NO_GRAVITY, PLACE, SOLVERS, G, ball_body, both_backends, order, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
STALL, IDLE, T_M = 0.8, 300.0, 0.02
ROTOR = STALL * T_M / IDLE


def motor_rig(inertia: float = 1e-3, gear: float = 1.0, electrical: float = 0.0, load: float = 0.0) -> ModelBuilder:
    """A wheel with a motor, and a constant load torque."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    b.add_dc_motor(wheel(b, inertia), STALL, IDLE, T_M, electrical, gear, label="m")
    b.add_torque(0, (0.0, load, 0.0))
    return b


@pytest.mark.parametrize("gear", [4.0, -20.0])
@both_solvers
def test_motor_runs_at_its_no_load_speed_less_the_slope_times_the_load(solver: str, gear: float) -> None:
    """Steady state: rotor speed w = w_idle (u + T/(r M_s)), joint speed w/r."""
    load = -0.1 * gear
    sim = simulate(motor_rig(gear=gear, load=load), dt=1e-2, joint_solver=solver)
    sim.control["m"] = 0.6
    sim.step(80)
    speed = IDLE * (0.6 + load / (gear * STALL))
    tolerance = 1e-6
    assert sim.read("motor.m.speed")[0] == pytest.approx(speed, rel=tolerance)
    assert sim.read("joint.wheel.velocity")[0] == pytest.approx(speed / gear, rel=tolerance)
    assert sim.read("motor.m.torque")[0] == pytest.approx(-load / gear, rel=10 * tolerance)
    assert sim.read("motor.m.command")[0] == 0.6


@both_solvers
def test_motor_starts_up_exponentially_with_second_order(solver: str) -> None:
    """Closed form: w = w_idle (1 - exp(-t/T)), T = (I + r^2 I_m) w_idle/(r^2 M_s)."""
    inertia, gear, time = 2e-3, 5.0, 0.05
    constant = (inertia + gear**2 * ROTOR) * IDLE / (gear**2 * STALL)

    def error(dt: float) -> float:
        sim = simulate(motor_rig(inertia, gear), dt=dt, joint_solver=solver)
        sim.write("motor.m.command", 1.0)
        sim.step(round(time / dt))
        wanted = IDLE / gear * (time - constant * (1.0 - np.exp(-time / constant)))
        return abs(float(sim.read("joint.wheel.position")[0]) - wanted)

    assert error(1e-3) < 1e-4
    assert order(error, 2e-3) > 1.8


def test_electrical_lag_delays_the_torque() -> None:
    """Closed form for a held rotor: tau = M_s (1 - exp(-t/T_e))."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    b.add_dc_motor(wheel(b, 0.1, limit_lower=0.0, limit_upper=0.0), STALL, IDLE, T_M, 0.02, label="m")
    sim = simulate(b)
    sim.control["m"] = 1.0
    sim.step(1)
    sim.step(39)
    assert sim.read("motor.m.torque")[0] == pytest.approx(STALL * (1.0 - np.exp(-0.04 / 0.02)), rel=2e-2)


@pytest.mark.parametrize("time_constant", [1e-4, 1e-2])
def test_motor_is_stable_for_steps_far_beyond_its_time_constant(time_constant: float) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    b.add_dc_motor(wheel(b, 1e-6), STALL, IDLE, time_constant, 1e-3, label="m")
    sim = simulate(b, dt=1e-2)
    sim.control["m"] = -1.0
    sim.step(60)
    assert sim.read("motor.m.speed")[0] == pytest.approx(-IDLE, rel=1e-3)


GAIN = orifice_gain(0.7, 0.01, 1e-3, 870.0)
CYLINDER: dict[str, Any] = dict(
    area_a=2e-3, area_b=1.2e-3, volume_a=5e-4, volume_b=9e-4, stroke_min=0.0, stroke_max=0.5, flow_gain=GAIN,
    supply_pressure=1.6e7, tank_pressure=1e5, bulk_modulus=1.5e9,
)  # fmt: skip


def lift(mass: float = 100.0, stroke: float = 0.25, **kwargs: Any) -> ModelBuilder:
    b = ModelBuilder()
    body = ball_body(b, mass, 1.0, xform=Transform((0, 0, stroke)), label="load")
    b.add_joint_prismatic(-1, body, label="rail")
    b.add_hydraulic_cylinder(-1, body, (0, 0, -1.0), length_offset=1.0, label="lift", **{**CYLINDER, **kwargs})
    return b


def run(sim: Simulation, **controls: float) -> Simulation:
    for name, value in controls.items():
        sim.control[name.replace("_", ".")] = value
    return sim


@both_solvers
def test_brake_holds_the_load(solver: str) -> None:
    sim = simulate(lift(brake_force=5e3), dt=5e-3, joint_solver=solver)
    run(sim, lift=0.0, lift_brake=1.0).step(60)
    assert sim.read("cylinder.lift.position")[0] == pytest.approx(0.25, abs=1e-9)
    assert sim.read("cylinder.lift.velocity")[0] == pytest.approx(0.0, abs=1e-9)
    assert sim.read("cylinder.lift.brake")[0] == 1.0
    run(sim, lift=-1.0, lift_brake=0.0).step(20)
    assert sim.read("cylinder.lift.position")[0] < 0.24


@both_solvers
def test_closed_valve_holds_the_load(solver: str) -> None:
    """Statics: p_A S_A - p_B S_B = m g."""
    pressure = (100.0 * G + 1.2e-3 * 1e5) / 2e-3
    sim = simulate(
        lift(overlap_supply=0.1, overlap_drain=-0.1, pressure_a=pressure, pressure_b=1e5), joint_solver=solver
    )
    sim.step(100)
    assert sim.read("cylinder.lift.position")[0] == pytest.approx(0.25, abs=5e-5)
    assert sim.read("cylinder.lift.force")[0] == pytest.approx(100.0 * G, rel=1e-3)


def test_closed_valve_is_a_spring_of_two_oil_columns() -> None:
    """The oil is a spring with k = beta (S_A^2/V_A + S_B^2/V_B). A sudden weight sinks by (m g - F_0)/k."""
    b = lift(overlap_supply=0.1, overlap_drain=-0.1, viscous_friction=4e4, pressure_a=1e6, pressure_b=1e6)
    sim = simulate(b, dt=4e-3)
    sim.step(60)
    stiffness = 1.5e9 * (4e-6 / (5e-4 + 2e-3 * 0.25) + 1.44e-6 / (9e-4 - 1.2e-3 * 0.25))
    load = 100.0 * G - (2e-3 - 1.2e-3) * 1e6
    assert 0.25 - sim.read("cylinder.lift.position")[0] == pytest.approx(load / stiffness, rel=1e-3)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("side", ["a", "b"])
@both_backends
def test_a_hose_softens_the_oil_column_at_its_chamber(backend: str, side: str) -> None:
    """The oil is a spring with k = S_A^2/C_A + S_B^2/C_B, where C = V/beta + V_hose/beta_hose."""
    hose: dict[str, float] = {f"hose_volume_{side}": 2e-4, "hose_bulk_modulus": 2e8}
    hose |= {"pressure_a": 1e6, "pressure_b": 1e6}
    b = lift(overlap_supply=0.1, overlap_drain=-0.1, viscous_friction=4e4, **hose)
    sim = simulate(b, dt=4e-3, backend=backend)
    sim.step(60)
    oil = {"a": (5e-4 + 2e-3 * 0.25) / 1.5e9, "b": (9e-4 - 1.2e-3 * 0.25) / 1.5e9}
    oil[side] += 2e-4 / 2e8
    load = 100.0 * G - (2e-3 - 1.2e-3) * 1e6
    sunk = load / (4e-6 / oil["a"] + 1.44e-6 / oil["b"])
    assert 0.25 - sim.read("cylinder.lift.position")[0] == pytest.approx(sunk, rel=1e-3)


@both_backends
def test_a_valve_that_opens_within_a_step_gives_the_supply_pressure_at_once(backend: str) -> None:
    """After the first step, m a = S_A p_S - S_B p_T - m g."""
    volumes = {"volume_a": 2e-4, "volume_b": 1.2e-3 * 0.5 + 2e-4}
    sim = simulate(lift(5000.0, 0.02, valve_order=1, valve_time_constant=1e-4, **volumes), dt=1e-2, backend=backend)
    sim.control["lift"] = 1.0
    acceleration = (2e-3 * 1.6e7 - 1.2e-3 * 1e5) / 5000.0 - G
    for step in (1, 2, 3):
        sim.step()
        assert sim.read("cylinder.lift.velocity")[0] == pytest.approx(acceleration * 1e-2 * step, rel=1e-2)


@pytest.mark.nightly
@pytest.mark.parametrize("end", [0, 1])
@both_backends
def test_an_end_cushion_bears_the_load(backend: str, end: int) -> None:
    cushion = {"cushion_stiffness": 1e5, "cushion_damping": 2e3, "cushion_length": 0.05}
    b = lift(stroke=(0.06, 0.44)[end], overlap_drain=0.9, **cushion)
    b.add_force(0, (0.0, 0.0, (0.0, 3.0 * 100.0 * G)[end]))
    sim = simulate(b, dt=5e-3, backend=backend)
    sim.step(200)
    oil = (2e-3 - 1.2e-3) * 1e5
    force = (oil - 100.0 * G, oil + 200.0 * G)[end]
    assert sim.read("cylinder.lift.position")[0] == pytest.approx((0.05, 0.45)[end] + force / 1e5, abs=5e-5)


def loaded_boom() -> ModelBuilder:
    """A boom on a cylinder with closed valves, released at 0.6 rad/s."""
    b = ModelBuilder()
    pose = Transform.from_axis_angle((0, 0, 0), (0, -1, 0), -0.17)
    boom = b.add_body(800.0, (1.0, 600.0, 600.0), com=(2.0, 0, 0), xform=pose, angular_velocity=(0, -0.6, 0))
    b.add_joint_revolute(-1, boom, axis=(0, -1, 0), label="hinge")
    shut = {"overlap_supply": 0.03, "overlap_drain": -0.03, "pressure_a": 9e6, "pressure_b": 2e6, "bulk_modulus": 2e8}
    size = {"area_a": 5e-3, "area_b": 3.4e-3, "volume_a": 2e-4, "volume_b": 2.6e-3, "stroke_max": 0.7}
    pins = (-1, boom, (0.2, 0, -1.3), (0.7, 0, 0))
    damped = {"length_offset": 1.15, "viscous_friction": 2e5}
    b.add_hydraulic_cylinder(*pins, label="lift", **{**CYLINDER, **size, **shut, **damped})
    return b


@pytest.mark.nightly
@both_backends
def test_shut_oil_holds_a_boom_where_its_volume_says_whatever_the_sweeps_left(backend: str) -> None:
    angles = []
    for solver in SOLVERS:
        sim = simulate(loaded_boom(), dt=1e-2, joint_solver=solver, backend=backend)
        sim.step(100)
        assert abs(sim.read("joint.hinge.velocity")[0]) < 1e-4
        angles.append(float(sim.read("joint.hinge.position")[0]))
    assert angles[1] == pytest.approx(angles[0], abs=1e-5)


@both_solvers
def test_extends_at_the_speed_that_the_orifices_allow(solver: str) -> None:
    """Steady: S_A v = K sqrt(p_S - p_A), S_B v = K sqrt(p_B - p_T), S_A p_A - S_B p_B = m g."""
    sim = simulate(lift(stroke=0.05), dt=2e-3, joint_solver=solver)
    run(sim, lift=0.5).step(80)
    s_a, s_b, k = 2e-3, 1.2e-3, 0.5 * GAIN
    # p_A = p_S - (S_A v/K)^2 and p_B = p_T + (S_B v/K)^2 in the balance of forces.
    v = np.sqrt((s_a * 1.6e7 - s_b * 1e5 - 100.0 * G) / (s_a**3 + s_b**3)) * k
    assert sim.read("cylinder.lift.velocity")[0] == pytest.approx(v, rel=1e-3)
    assert sim.read("cylinder.lift.pressure_a")[0] == pytest.approx(1.6e7 - (s_a * v / k) ** 2, rel=1e-3)
    assert sim.read("cylinder.lift.pressure_b")[0] == pytest.approx(1e5 + (s_b * v / k) ** 2, rel=1e-3)
    assert sim.read("cylinder.lift.spool")[0] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("command", [1.0, -1.0])
@both_solvers
def test_stops_at_the_end_of_its_stroke(solver: str, command: float) -> None:
    """At the upper stop, p_A = p_S and p_B = p_T. At the lower stop, it is the reverse."""
    sim = simulate(lift(stroke=0.25 + 0.2 * command), dt=2e-3, joint_solver=solver)
    run(sim, lift=command)
    end, worst = (0.5, -1.0) if command > 0.0 else (0.0, -1.0)
    for _ in range(15):
        sim.step(6)
        worst = max(worst, command * (float(sim.read("cylinder.lift.position")[0]) - end))
    assert worst <= 1e-6
    assert sim.read("cylinder.lift.position")[0] == pytest.approx(end, abs=1e-6)
    high, low = ("a", "b") if command > 0.0 else ("b", "a")
    assert sim.read(f"cylinder.lift.pressure_{high}")[0] == pytest.approx(1.6e7, rel=1e-3)
    assert sim.read(f"cylinder.lift.pressure_{low}")[0] == pytest.approx(1e5, rel=2e-2)


def test_second_order_valve_follows_its_closed_form() -> None:
    """x = 1 - exp(-D w t)(cos w_d t + D w/w_d sin w_d t) after a step to 1, w_d = w sqrt(1 - D^2)."""
    sim = simulate(lift(brake_force=1e6, valve_frequency=60.0, valve_damping=0.5), dt=4e-3)
    run(sim, lift=1.0, lift_brake=1.0).step(10)
    w, d, t = 60.0, 0.5, 0.04
    damped = w * np.sqrt(1.0 - d * d)
    wanted = 1.0 - np.exp(-d * w * t) * (np.cos(damped * t) + d * w / damped * np.sin(damped * t))
    assert sim.read("cylinder.lift.spool")[0] == pytest.approx(wanted, rel=1e-9)


def test_first_order_valve_follows_its_closed_form() -> None:
    """Closed form: x = u (1 - exp(-t/T))."""
    sim = simulate(lift(brake_force=1e6, valve_order=1, valve_time_constant=0.03), dt=4e-3)
    run(sim, lift=-0.8, lift_brake=1.0).step(10)
    assert sim.read("cylinder.lift.spool")[0] == pytest.approx(-0.8 * (1.0 - np.exp(-0.04 / 0.03)), rel=1e-9)


@both_solvers
def test_dry_friction_of_a_cylinder_sticks(solver: str) -> None:
    sim = simulate(lift(dry_friction=2e3), dt=5e-3, joint_solver=solver)
    sim.step(40)
    assert sim.read("cylinder.lift.position")[0] == pytest.approx(0.25, abs=1e-9)


@both_solvers
def test_forces_and_torques_in_world_and_body_axes(solver: str) -> None:
    """A world force on a spinning body moves it by F t^2/(2 m)."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    w, force, mass = 2.0, 3.0, 2.0
    for label in ("world", "body", "scaled"):
        body = ball_body(b, mass, xform=PLACE, label=label, angular_velocity=(0, 0, w), com=(0.1, 0.0, 0.2))
        axes = "body" if label == "body" else "world"
        vector = PLACE.inverse().rotate((force, 0, 0)) if label == "body" else (force, 0, 0)
        b.add_force(body, vector, point=(0.1, 0.0, 0.2), frame=axes, label=label)
    sim = simulate(b, dt=2e-3, joint_solver=solver)
    start = sim.read("body.world.center_of_mass")[0]
    sim.control["scaled"] = -0.5
    sim.step(100)
    t = 0.2
    free = np.array([0.5 * force / mass * t**2, 0, 0])
    np.testing.assert_allclose(sim.read("body.world.center_of_mass")[0], start + free, atol=1e-12)
    np.testing.assert_allclose(sim.read("body.scaled.center_of_mass")[0], start - 0.5 * free, atol=1e-12)
    # x'' = F/m (cos w t, sin w t)
    turned = force / mass / w**2 * np.array([1.0 - np.cos(w * t), w * t - np.sin(w * t), 0.0])
    np.testing.assert_allclose(sim.read("body.body.center_of_mass")[0], start + turned, atol=1e-6)
    assert sim.read("force.scaled.scale")[0] == -0.5


def test_a_force_off_the_center_of_mass_turns_the_body() -> None:
    """The torque is tau = r x F about the center of mass, in either frame."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    com, point = np.array([0.1, -0.2, 0.3]), np.array([0.4, 0.1, 0.2])
    for k, axes in enumerate(("world", "body")):
        body = ball_body(b, 2.0, 0.5, com=com, xform=PLACE, label=f"b{k}")
        vector = np.array([1.0, -2.0, 0.5])
        b.add_force(body, tuple(vector if k == 0 else PLACE.inverse().rotate(vector)), point=tuple(point), frame=axes)
        b.add_torque(
            body, tuple(np.array([0.3, 0.0, 0.0]) if k == 0 else PLACE.inverse().rotate((0.3, 0, 0))), frame=axes
        )
    sim = simulate(b, dt=1e-3)
    sim.step(5)
    torque = np.cross(PLACE.rotate(point - com), (1.0, -2.0, 0.5)) + (0.3, 0.0, 0.0)
    for k in range(2):
        np.testing.assert_allclose(sim.read(f"body.b{k}.angular_velocity")[0], torque / 0.5 * 5e-3, rtol=1e-4)


def test_several_forces_on_one_body_add_up() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, 2.0)
    for vector in ((1.0, 0, 0), (0, 2.0, 0), (1.0, 0, 3.0)):
        b.add_force(body, vector)
    sim = simulate(b, dt=1e-2)
    sim.step(10)
    np.testing.assert_allclose(sim.read("body.body0.position")[0], 0.5 * np.array([1.0, 1.0, 1.5]) * 0.01, atol=1e-14)


def test_a_servo_and_a_motor_on_a_slider_share_its_axis() -> None:
    """At stall, q = M_s r u/k, and drive_force is the sum of both."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(b)
    b.add_dc_motor(joint, STALL, IDLE, T_M, gear_ratio=50.0, label="m")
    b.add_servo(joint, stiffness=1e4, damping=200.0, label="s")
    sim = simulate(b, dt=1e-2)
    sim.control["m"] = 0.5
    sim.step(80)
    assert sim.read("joint.slide.position")[0] == pytest.approx(STALL * 50.0 * 0.5 / 1e4, rel=1e-5)
    assert sim.read("joint.slide.drive_force")[0] == pytest.approx(0.0, abs=1e-4)
    assert sim.read("servo.s.force")[0] == pytest.approx(-STALL * 50.0 * 0.5, rel=1e-5)
