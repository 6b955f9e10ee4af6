from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from gpusim import BumpStop, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim import machines as m

from . import rig as rigs
from .rig import ALL, HUB, LOAD, PLACE, coil, rig

pytestmark = pytest.mark.native
every = pytest.mark.parametrize("name", ALL)
steered_or_not = pytest.mark.parametrize("steered", [False, True])


def travel(sim: Simulation) -> float:
    return -float(sim.read("joint.guide.position")[0])


def coordinate(sim: Simulation, susp: m.Suspension) -> float:
    return float(np.ravel(sim.read(f"joint.{sim.model.joints[susp.travel].label}.position")[0])[0])


def at_rest(name: str, load: float, dt: float, **options: Any) -> tuple[float, m.Static]:
    sim, susp = rig(ALL[name], load, dt, **options)
    sim.step(round(6.0 / dt))
    assert sim.read("sim.joint_drift")[0] < 1e-6
    return travel(sim), susp.static(load)


@pytest.mark.nightly
@pytest.mark.parametrize("dt", [5e-3, 1e-2])
@steered_or_not
@every
def test_rest_is_that_of_the_hand_calculation(name: str, steered: bool, dt: float) -> None:
    for load in (LOAD, 1.2 * LOAD):
        measured, static = at_rest(name, load, dt, steered=steered)
        assert measured == pytest.approx(static.travel, abs=2e-5)
        assert (abs(measured) < 2e-5) == (load == LOAD)


@pytest.mark.nightly
@steered_or_not
@every
def test_heave_has_the_frequency_and_damping_of_the_linear_model(name: str, steered: bool) -> None:
    load, every_steps = 1.02 * LOAD, 20
    sim, susp = rig(ALL[name], load, 1e-3, steered=steered)
    static = susp.static(load)
    heights = []
    for _ in range(60):
        sim.step(every_steps)
        heights.append(travel(sim) - static.travel)
    x = np.array(heights)
    a, b = np.linalg.lstsq(np.stack([x[1:-1], x[:-2]], axis=1), x[2:], rcond=None)[0]
    pole = np.log(complex(np.roots([1.0, -a, -b])[0])) / (every_steps * 1e-3)
    assert abs(pole) / (2.0 * math.pi) == pytest.approx(static.frequency, rel=2e-3)
    assert -pole.real / abs(pole) == pytest.approx(static.damping_ratio, rel=5e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2])
@steered_or_not
@every
def test_travel_ends_at_its_limits(name: str, steered: bool, dt: float) -> None:
    sim, susp = rig(ALL[name], dt=dt, steered=steered)
    reached, gaps = [], []
    for force in (-9000.0, 9000.0):
        sim.control["throw"] = force
        for _ in range(round(0.5 / dt)):
            sim.step(1)
            reached.append(travel(sim))
            gaps.append(reached[-1] - susp.wheel_travel(coordinate(sim, susp)))
    assert max(reached) == pytest.approx(0.07, abs=1e-5)
    assert min(reached) == pytest.approx(-0.08, abs=1e-5)
    assert np.abs(gaps).max() < 1e-5


def test_rest_on_a_bump_stop_and_with_a_torsion_bar_next_to_a_damper() -> None:
    stop = BumpStop(0.39, 4e4, 0.02)
    spring = coil((0, 0.5, 0.7), (0, 0.52, 0.3), bump=stop)
    measured, static = at_rest("sliding_pillar", 1.4 * LOAD, 5e-3, spring=spring)
    without = at_rest("sliding_pillar", 1.4 * LOAD, 5e-3)[0]
    assert measured == pytest.approx(static.travel, abs=2e-5) and measured < without - 2e-3
    both = [m.TorsionBar(2000.0, load=LOAD), coil((0, 0.34, 0.66), (0, 0.56, 0.3), on="hub", load=None, preload=700.0)]
    measured, static = at_rest("double_wishbone", LOAD, 5e-3, spring=both)
    assert measured == pytest.approx(0.0, abs=2e-5) and static.travel == pytest.approx(0.0, abs=1e-9)
    damped = [m.TorsionBar(4500.0, load=LOAD), coil((0.1, 0.5, 0.7), (0.1, 0.5, 0.31), stiffness=0.0, load=None)]
    measured, static = at_rest("trailing_arm", 1.2 * LOAD, 5e-3, spring=damped)
    assert measured == pytest.approx(static.travel, abs=2e-5) and static.damping_ratio > 0.1


@pytest.mark.parametrize("name", ["trailing_arm", "sliding_pillar"])
def test_bound_is_where_the_wheel_rises(name: str) -> None:
    sunk = {}
    for damping in ((900.0, 0.0), (0.0, 900.0), 0.0):
        bar, pillar = m.TorsionBar(4500.0, damping, load=LOAD), coil((0, 0.5, 0.7), (0, 0.52, 0.3), damping=damping)
        sim = rig(ALL[name], 1.5 * LOAD, spring=bar if name == "trailing_arm" else pillar)[0]
        sim.step(100)
        sunk[damping] = travel(sim)
    assert sunk[(0.0, 900.0)] == pytest.approx(sunk[0.0], rel=1e-3)
    assert 0.0 < sunk[(900.0, 0.0)] < 0.95 * sunk[0.0]


def hung(name: str, sides: dict[str, float], bar: float = 0.0, **options: Any) -> Simulation:
    b = ModelBuilder(gravity=(0, 0, 0))
    made = {}
    for side, force in sides.items():
        made[side] = ALL[name](b, -1, Transform((0, 0, 0.2)), mirror=side == "right", label=side, **options)
        b.add_force(made[side].hub, (0, 0, force), label=f"{side}_push")
    if bar:
        b.add_anti_roll_bar(made["left"].travel, made["right"].travel, bar, label="bar")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.step(1000)
    return sim


@steered_or_not
@every
def test_right_side_mirrors_the_left(name: str, steered: bool) -> None:
    free = {"spring": rigs.coil((0, 0.4, 0.7), (0, 0.48, 0.3), load=None)}
    sim = hung(name, {"left": 600.0, "right": 600.0}, steered=steered, **free)
    left, right = (sim.read(f"body.{side}_hub.position")[0] for side in ("left", "right"))
    np.testing.assert_allclose(right, left * (1, -1, 1), atol=1e-9)
    assert left[2] - HUB.center[2] - 0.2 > 0.01


def test_anti_roll_bar_stiffens_roll_alone() -> None:
    """F = k z for equal travel, and F = (k + 2 k_bar) z for opposite travel."""
    free = {"spring": coil((0, 0.52, 0.7), (0, 0.52, 0.3), load=None)}
    for sides, rate in (({"left": 600.0, "right": 600.0}, 30e3), ({"left": 600.0, "right": -600.0}, 70e3)):
        sim = hung("sliding_pillar", sides, bar=20e3, **free)
        for side, force in sides.items():
            height = sim.read(f"joint.{side}_travel.position")[0]
            assert height == pytest.approx(force / rate, rel=1e-2)


def rack(name: str, mirror: bool, shift: float) -> tuple[Simulation, m.Suspension]:
    """A steered suspension on a rack that a servo holds at ``shift``."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (0.05, 0.05, 0.05), label="rack")
    joint = b.add_joint_prismatic(-1, body, axis=(0, 1, 0), at=(0, 0, 0), label="rack")
    b.add_servo(joint, stiffness=1e7, damping=2e4, target=shift, label="steer")
    probe = ALL[name](ModelBuilder(), -1, Transform(), steered=True).linkage.steering
    assert probe is not None
    rod = m.TieRod(probe.inner, probe.outer, body)
    spring = coil((0, 0.4, 0.7), (0, 0.48, 0.3), load=None)
    susp = ALL[name](b, -1, Transform(), spring=spring, tie_rod=rod, mirror=mirror, label="susp")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.step(1000)
    return sim, susp


@pytest.mark.nightly
@pytest.mark.parametrize("mirror", [False, True])
@every
def test_rack_steers_as_by_hand(name: str, mirror: bool) -> None:
    for shift in (-0.02, 0.03):
        sim, susp = rack(name, mirror, shift)
        hand = susp.steering_angle(coordinate(sim, susp), shift)
        turn = Transform((0, 0, 0), sim.read("body.susp_hub.orientation")[0]).matrix()
        assert math.atan2(turn[1, 0], turn[0, 0]) == pytest.approx(hand, rel=3e-2)
        assert abs(hand) > 0.1


def test_limits_of_a_level_arm_are_those_of_eq_7() -> None:
    """Closed form: q = asin(z/l)."""
    b = ModelBuilder()
    arm, hub = m.Arm((0, 0.1, 0.3), (0, 0.6, 0.3)), m.Hub((0, 0.6, 0.3))
    susp = m.add_swing_axle(b, -1, PLACE, arm=arm, hub=hub, spring=m.TorsionBar(1e3), travel=(-0.1, 0.12))
    assert susp.limits == pytest.approx((math.asin(-0.2), math.asin(0.24)), abs=1e-9)
    assert susp.coordinate(0.12) == pytest.approx(math.asin(0.24), abs=1e-9)


def steering(length: float, wheelbase: float, shift: float) -> tuple[float, float]:
    angles = []
    rod = m.lateral_tie_rod((0, 0.02, 0.3), length, -0.3, wheelbase, 0.5, angle=0.35)
    for mirror in (False, True):
        hub, spring = m.Hub((0, 0.1, 0.3)), coil((0, 0.02, 0.7), (0, 0.02, 0.3))
        susp = m.add_sliding_pillar(
            ModelBuilder(), -1, hub=hub, spring=spring, pillar=(0, 0.02, 0.3), tie_rod=rod, mirror=mirror
        )
        angles.append(susp.steering_angle(0.0, shift))
    return angles[0], angles[1]


@pytest.mark.parametrize("length", [0.15, -0.15])
def test_steering_arms_are_parallel_or_ackermanns(length: float) -> None:
    def short(size: float, angle: float) -> float:
        turns = map(abs, steering(length, 1.6, math.copysign(size, length)))
        return sum(1.0 / math.tan(turn) for turn in turns) / 2.0 - 1.0 / math.tan(angle)

    for angle, share in ((0.35, 1e-6), (0.15, 0.25)):
        shift = math.copysign(0.15 * math.sin(angle), length)
        left, right = steering(length, math.inf, shift)
        assert left == pytest.approx(right, rel=0.01) and abs(left) == pytest.approx(angle, rel=0.01)
        shift = math.copysign(brentq(short, 0.01, abs(shift), args=(angle,), xtol=1e-13), length)
        for side in (1.0, -1.0):
            left, right = steering(length, 1.6, side * shift)
            outer, inner = sorted(map(abs, (left, right)))
            assert (left < 0.0) == (right < 0.0) == (side * shift * length > 0.0)
            assert (abs(left) == inner) == (left > 0.0)
            assert 1.0 / math.tan(outer) - 1.0 / math.tan(inner) == pytest.approx(1.0 / 1.6, rel=share)
