from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Transform
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, PLACE, SOLVERS, G, ball_body, rows_of, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
# Sweeps share an impulse between the coupling and the hinges until they agree.
SWEEPS = {"direct": 8, "colored": 40}
I_A, I_B = 0.1, 0.3


def tolerance(solver: str) -> float:
    return 1e-9 if solver == "direct" else 1e-5


@pytest.mark.parametrize("ratio", [3.0, -0.5])
@both_solvers
def test_gear_between_wheels_on_the_world(solver: str, ratio: float) -> None:
    """Closed form for a torque T on wheel a: q_a = T t^2/(2 (I_a + r^2 I_b)), q_b = r q_a."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    a, c = wheel(b, I_A, "a"), wheel(b, I_B, "b", y=1.0)
    b.add_gear(a, c, ratio, label="gear")
    b.add_torque(0, (0, 2.0, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(20)
    q = 0.5 * 2.0 / (I_A + ratio**2 * I_B) * 0.01
    assert sim.read("joint.a.position")[0] == pytest.approx(q, rel=tolerance(solver))
    assert sim.read("joint.b.position")[0] == pytest.approx(ratio * q, rel=tolerance(solver))
    assert sim.read("joint.b.velocity")[0] == pytest.approx(ratio * sim.read("joint.a.velocity")[0], rel=1e-5)
    assert rows_of(sim.model, "gear") == 1


@both_solvers
def test_gear_holds_when_the_torques_balance(solver: str) -> None:
    """With T_a + r T_b = 0, the wheels do not move."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    b.add_gear(wheel(b, I_A, "a"), wheel(b, I_B, "b", y=1.0), 4.0)
    b.add_torque(0, (0, 2.0, 0))
    b.add_torque(1, (0, -0.5, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(20)
    assert abs(sim.read("joint.a.position")[0]) < 1e-9
    assert abs(sim.read("joint.b.position")[0]) < 1e-9


@both_solvers
def test_gear_between_joints_that_share_a_moving_body(solver: str) -> None:
    """The relative angles obey q_b = r q_a, and the total angular momentum is T t."""
    ratio, torque, i_c = -2.0, 1.5, 0.6
    b = ModelBuilder(gravity=NO_GRAVITY)
    carrier = ball_body(b, 4.0, i_c, label="carrier")
    joints = []
    for label, inertia in (("a", I_A), ("b", I_B)):
        body = ball_body(b, 1.0, inertia, label=label)
        joints.append(b.add_joint_revolute(carrier, body, axis=(0, 1, 0), label=label))
    b.add_gear(*joints, ratio)
    b.add_torque(1, (0, torque, 0))
    b.add_torque(carrier, (0, -torque, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(20)
    # Unknown accelerations of the carrier (x) and of q_a (y).
    matrix = [[i_c + I_A + I_B, I_A + ratio * I_B], [I_A + ratio * I_B, I_A + ratio**2 * I_B]]
    x, y = np.linalg.solve(matrix, [0.0, torque])
    assert sim.read("joint.a.position")[0] == pytest.approx(0.5 * y * 0.01, rel=tolerance(solver))
    assert sim.read("joint.b.position")[0] == pytest.approx(0.5 * ratio * y * 0.01, rel=tolerance(solver))
    assert sim.read("body.carrier.angular_velocity")[0, 1] == pytest.approx(x * 0.1, rel=tolerance(solver))


@both_solvers
def test_gear_between_joints_of_four_moving_bodies(solver: str) -> None:
    """Closed form with J = I_1 I_2/(I_1 + I_2): q_a = T t^2/(2 (J_a + r^2 J_b)), q_b = r q_a."""
    ratio, torque = 1.5, 1.2
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints, reduced = [], []
    for k, (first, second) in enumerate(((0.2, I_A), (0.5, I_B))):
        place = Transform((0.0, 2.0 * k, 0.0))
        parent = ball_body(b, 2.0, first, xform=place, label=f"p{k}")
        child = ball_body(b, 1.0, second, xform=place, label=f"c{k}")
        joints.append(b.add_joint_revolute(parent, child, axis=(0, 1, 0), label=f"j{k}"))
        reduced.append(first * second / (first + second))
    b.add_gear(*joints, ratio)
    b.add_torque(1, (0, torque, 0))
    b.add_torque(0, (0, -torque, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(20)
    q = 0.5 * torque / (reduced[0] + ratio**2 * reduced[1]) * 0.01
    assert sim.read("joint.j0.position")[0] == pytest.approx(q, rel=tolerance(solver))
    assert sim.read("joint.j1.position")[0] == pytest.approx(ratio * q, rel=tolerance(solver))
    for k, first in enumerate((0.2, 0.5)):
        spin = (
            first * sim.read(f"body.p{k}.angular_velocity")[0]
            + (I_A, I_B)[k] * sim.read(f"body.c{k}.angular_velocity")[0]
        )
        np.testing.assert_allclose(spin, 0.0, atol=1e-9 if solver == "direct" else 1e-6)


@both_solvers
def test_gear_along_a_chain_of_joints(solver: str) -> None:
    """q_2 = -q_1 keeps the direction of the second link."""
    b = ModelBuilder()
    upper = b.add_body(1.0, (0.05, 0.05, 0.05), com=(0.2, 0, 0), label="upper")
    lower = b.add_body(1.0, (0.05, 0.05, 0.05), com=(0.2, 0, 0), xform=Transform((0.4, 0, 0)), label="lower")
    first = b.add_joint_revolute(-1, upper, axis=(0, 1, 0), label="first")
    second = b.add_joint_revolute(upper, lower, Transform((0.4, 0, 0)), axis=(0, 1, 0), label="second")
    b.add_gear(first, second, -1.0)
    sim = simulate(b, dt=4e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(50)
    atol = 1e-8 if solver == "direct" else 1e-3
    assert abs(sim.read("joint.first.position")[0]) > 0.1
    assert sim.read("joint.second.position")[0] == pytest.approx(-sim.read("joint.first.position")[0], abs=atol)
    np.testing.assert_allclose(sim.read("body.lower.orientation")[0], (0, 0, 0, 1), atol=atol)


@both_solvers
def test_gear_keeps_the_starting_offset_over_many_turns(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    pose = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.3)
    a = ball_body(b, 1.0, I_A, xform=pose, label="a", angular_velocity=(0, 20.0, 0))
    c = ball_body(b, 1.0, I_B, label="b", angular_velocity=(0, -60.0, 0))
    joints = [b.add_joint_revolute(-1, x, axis=(0, 1, 0), label=n) for x, n in ((a, "qa"), (c, "qb"))]
    b.add_gear(*joints, -3.0)
    sim = simulate(b, dt=1e-2, joint_solver=solver)
    assert sim.read("joint.qa.position")[0] == pytest.approx(0.3)
    sim.step(100)
    q_a, q_b = sim.read("joint.qa.position")[0], sim.read("joint.qb.position")[0]
    assert q_a == pytest.approx(20.3, rel=1e-9)
    assert q_b + 3.0 * q_a == pytest.approx(0.9, abs=1e-9)


@both_solvers
def test_mimic_holds_its_offset_and_multiplier(solver: str) -> None:
    """Closed form: q_b = 2 q_a + 0.4, q_a = T t^2/(2 (I_a + 4 I_b))."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    leader = wheel(b, I_A, "a")
    body = ball_body(b, 1.0, I_B, xform=Transform.from_axis_angle((0, 1, 0), (0, 1, 0), 0.4), label="b")
    follower = b.add_joint_revolute(-1, body, Transform((0, 1, 0)), axis=(0, 1, 0), label="b")
    b.add_mimic(follower, leader, multiplier=2.0, offset=0.4, label="mimic")
    b.add_torque(0, (0, 2.0, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(20)
    q = 0.5 * 2.0 / (I_A + 4.0 * I_B) * 0.01
    assert sim.read("joint.a.position")[0] == pytest.approx(q, rel=10 * tolerance(solver))
    assert sim.read("joint.b.position")[0] == pytest.approx(2.0 * q + 0.4, rel=tolerance(solver))


@both_solvers
def test_mimic_pulls_a_start_that_does_not_fit_together(solver: str) -> None:
    """The position correction makes q_b = -q_a + 0.2."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    leader, follower = wheel(b, I_A, "a"), wheel(b, I_B, "b", y=1.0)
    b.add_mimic(follower, leader, multiplier=-1.0, offset=0.2)
    sim = simulate(b, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(60)
    q_a, q_b = sim.read("joint.a.position")[0], sim.read("joint.b.position")[0]
    assert q_a + q_b == pytest.approx(0.2, abs=1e-9 if solver == "direct" else 1e-4)
    assert q_a == pytest.approx(0.2 * I_B / (I_A + I_B), abs=1e-3)
    assert sim.read("sim.kinetic_energy")[0] < 1e-12


CURVE = (0.7, -0.4, 0.3)


def _curved_slide(seconds: float, n: int = 4000) -> np.ndarray:
    """Return x and x' of a slide of 1 kg along x, if z = p(x) of a follower of 2 kg falls, by Runge-Kutta steps.

    (m1 + m2 p'^2) x'' = -m2 p' (p'' x'^2 + g).
    """
    p = np.polynomial.Polynomial((0.0, 0.5, *CURVE))

    def rate(y: np.ndarray) -> np.ndarray:
        slope, bend = p.deriv()(y[0]), p.deriv(2)(y[0])
        return np.array([y[1], -2.0 * slope * (bend * y[1] ** 2 + G) / (1.0 + 2.0 * slope**2)])

    y, h = np.array([0.0, 1.0]), seconds / n
    for _ in range(n):
        k1 = rate(y)
        k2 = rate(y + 0.5 * h * k1)
        k3 = rate(y + 0.5 * h * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    return y


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@both_solvers
def test_a_mimic_with_a_curve_is_second_order(solver: str, backend: str) -> None:
    b = ModelBuilder(gravity=(0, 0, -G))
    body = [ball_body(b, mass, 0.1, label=label) for mass, label in ((1.0, "lead"), (2.0, "follow"))]
    lead = b.add_joint_prismatic(-1, body[0], axis=(1, 0, 0), label="lead")
    follow = b.add_joint_prismatic(-1, body[1], axis=(0, 0, 1), label="follow")
    b.add_mimic(follow, lead, 0.5, curve=CURVE, label="cam")
    b.bodies[0].linear_velocity[:] = (1, 0, 0)
    b.bodies[1].linear_velocity[:] = (0, 0, 0.5)
    model = ModelBuilder.from_dict(b.to_dict()).finalize()
    errors, expected = [], _curved_slide(0.2)
    for dt in (4e-3, 2e-3):
        config = gpusim.SolverConfig(dt=dt, joint_solver=solver, iterations=200)
        sim = gpusim.Simulation(model, backend=backend, config=config)
        sim.step(round(0.2 / dt))
        x, z = (float(sim.read(f"joint.{name}.position")[0]) for name in ("lead", "follow"))
        assert z == pytest.approx(0.5 * x + CURVE[0] * x**2 + CURVE[1] * x**3 + CURVE[2] * x**4, abs=1e-8)
        errors.append(abs(x - expected[0]))
    assert errors[0] < 1e-5 and errors[1] < 0.3 * errors[0] + 1e-8


def test_a_follower_may_contain_the_leader() -> None:
    """With a tendon q_b + 2 q_a as the follower, q_b = (0.5 - 2) q_a plus the curve."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    lead, other = wheel(b, I_A, "a"), wheel(b, I_B, "b", y=1.0)
    tendon = b.add_tendon([(lead, 2.0), (other, 1.0)], label="t")
    b.add_mimic(tendon, lead, 0.5, curve=CURVE, label="cam")
    assert b.couplings[0].terms == [(lead, 0, 1.5), (other, 0, 1.0)]
    only = b.add_tendon([(lead, 2.0)], label="only")
    with pytest.raises(gpusim.ModelError, match=naming("coupling 'self' 'a'")):
        b.add_mimic(only, lead, curve=CURVE, label="self")


def test_curves_need_a_hinge_or_a_slide_that_leads() -> None:
    b = ModelBuilder()
    a, c = wheel(b, I_A, "a"), wheel(b, I_B, "b", y=1.0)
    tendon = b.add_tendon([(a, 1.0)], label="t")
    for leader, curve in ((tendon, CURVE), (c, CURVE), (a, (1.0, np.nan, 0.0)), (a, (1.0,))):
        with pytest.raises(gpusim.ModelError, match=naming("coupling 'cam'")):
            b.add_mimic(c, leader, curve=curve, label="cam")


@both_solvers
def test_rack_and_pinion(solver: str) -> None:
    """Closed form with x = R q: q = T t^2/(2 (I + m R^2))."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    pinion, rack = wheel(b, I_A, "pinion"), slider(b, 3.0, "rack", y=1.0)
    b.add_mimic(rack, pinion, multiplier=0.2)
    b.add_torque(0, (0, 2.0, 0))
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(20)
    q = 0.5 * 2.0 / (I_A + 3.0 * 0.04) * 0.01
    assert sim.read("joint.rack.position")[0] == pytest.approx(0.2 * q, rel=tolerance(solver))


@both_solvers
def test_lead_screw_couples_two_coordinates_of_one_joint(solver: str) -> None:
    """Closed form with x = p q: x = -g t^2/2 m/(m + I/p^2)."""
    mass, pitch = 2.0, 0.05
    b = ModelBuilder()
    nut = ball_body(b, mass, I_A, xform=PLACE, label="nut")
    screw = b.add_joint_cylindrical(-1, nut, Transform(PLACE.position), Transform((0, 0, 0), PLACE.inverse().rotation))
    b.add_mimic(screw, screw, multiplier=pitch, axis=0, leader_axis=1)
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(40)
    x = -0.5 * G * mass / (mass + I_A / pitch**2) * 0.04
    travel, angle = sim.read("joint.joint0.position")[0]
    assert travel == pytest.approx(x, rel=tolerance(solver))
    assert angle == pytest.approx(x / pitch, rel=tolerance(solver))


def test_differential_two_gears_on_one_shaft() -> None:
    """Closed form: T = (I_a + r1^2 I_b + r2^2 I_c) a."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints = [
        wheel(b, inertia, name, y=float(k))
        for k, (name, inertia) in enumerate(zip("abc", (0.1, 0.3, 0.2), strict=False))
    ]
    b.add_gear(joints[0], joints[1], 2.0)
    b.add_gear(joints[0], joints[2], -3.0)
    b.add_torque(0, (0, 2.0, 0))
    sim = simulate(b, dt=5e-3)
    sim.step(20)
    q = 0.5 * 2.0 / (0.1 + 4.0 * 0.3 + 9.0 * 0.2) * 0.01
    for name, ratio in (("a", 1.0), ("b", 2.0), ("c", -3.0)):
        assert sim.read(f"joint.{name}.position")[0] == pytest.approx(ratio * q, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.add_gear(0, 1, 0.0), "ratio 0 1e-09"),
        (lambda b: b.add_gear(0, 0, 2.0), "coupling 'coupling0'"),
        (lambda b: b.add_gear(0, 7, 2.0), "7"),
        (lambda b: b.add_gear(0, 2, 2.0), "fixed 0"),
        (lambda b: b.add_gear(0, 1, 2.0, axis_b=1), "1 axis 0"),
        (lambda b: b.add_mimic(0, 1, offset=float("nan")), "offset"),
        (lambda b: b.add_mimic(0, 1, multiplier=float("inf")), "multiplier"),
    ],
)
def test_couplings_that_make_no_sense(call: object, words: str) -> None:
    b = ModelBuilder()
    wheel(b, label="a")
    wheel(b, label="b", y=1.0)
    b.add_joint_fixed(-1, 1)
    with pytest.raises(gpusim.ModelError, match=naming(words)):
        call(b)  # type: ignore[operator]
