from __future__ import annotations

import math
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim import machines as m
from tests.message_snapshot import naming

WHEELBASE, KINGPIN, HEIGHT = 1.6, 0.5118, 0.32
GIVEN: dict[str, Any] = {"travel": 0.048, "arm": 0.12, "wheelbase": WHEELBASE, "track": 2.0 * KINGPIN}


def front(b: ModelBuilder, **options: Any) -> tuple[m.SteeringRack, list[m.Suspension]]:
    """A rack and two steered double wishbones on the world, 0.8 m ahead."""
    given = GIVEN | options
    rack = m.add_steering_rack(b, -1, (0.8 - given["arm"], 0, HEIGHT), **given)
    rod = rack.tie_rod((0, KINGPIN, HEIGHT), 0.2)
    corners = [
        m.add_double_wishbone(
            b, -1, Transform((0.8, 0, 0)), mirror=mirror, label=label, tie_rod=rod, spring=m.TorsionBar(1800.0, 200.0),
            lower=m.Arm((0, 0.25, 0.25), (0, 0.52, 0.25)), upper=m.Arm((0, 0.30, 0.42), (0, 0.50, 0.42)),
            hub=m.Hub((0, 0.6, 0.3)),
        )
        for label, mirror in (("fl", False), ("fr", True))
    ]  # fmt: skip
    return rack, corners


@pytest.mark.parametrize("angle", [0.05, 0.3, 1.2, -0.3])
def test_ackermanns_angles_meet_at_one_point(angle: float) -> None:
    left, right = m.ackermann(angle, WHEELBASE, 1.0)
    cotangents = [1.0 / math.tan(turn) for turn in (left, right)]
    assert cotangents[1] - cotangents[0] == pytest.approx(1.0 / WHEELBASE)
    assert 0.5 * sum(cotangents) == pytest.approx(1.0 / math.tan(angle))
    assert m.ackermann(0.0, WHEELBASE, 1.0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("angle", "arm", "wheelbase", "travel"),
    [(0.3, 0.12, 1.2, 0.04), (0.45, 0.13, 1.2, 0.05), (0.2, -0.12, 1.6, 0.04)],
)
def test_ackermanns_condition_holds_at_the_angle_asked_for(
    angle: float, arm: float, wheelbase: float, travel: float
) -> None:
    b = ModelBuilder()
    given = {"travel": travel, "arm": arm, "wheelbase": wheelbase, "track": 1.0, "angle": angle}
    rack = m.add_steering_rack(b, -1, (0.6 - arm, 0, HEIGHT), **given)
    rod = rack.tie_rod((0, 0.5, HEIGHT), 0.2)
    corners = [
        m.add_sliding_pillar(
            b, -1, Transform((0.6, 0, 0)), mirror=label == "fr", label=label, tie_rod=rod, pillar=(0, 0.5, 0.3),
            hub=m.Hub((0, 0.55, 0.3)), spring=m.Coil((0, 0.5, 0.7), (0, 0.5, 0.3), stiffness=15e3),
        )
        for label in ("fl", "fr")
    ]  # fmt: skip
    for side in (angle, -angle):
        found = rack.angles(corners, rack.command(corners, side))
        assert found == pytest.approx(m.ackermann(side, wheelbase, 1.0), abs=1e-8)
    half = rack.angles(corners, rack.command(corners, 0.5 * angle))
    assert half == pytest.approx(m.ackermann(0.5 * angle, wheelbase, 1.0), abs=8e-3)


@pytest.mark.parametrize("arm", [0.12, -0.12])
def test_a_rack_steers_after_ackermann_or_parallel(arm: float) -> None:
    rack, corners = front(ModelBuilder(), arm=arm)
    for angle in (0.1, 0.2, 0.3, -0.2):
        found = rack.angles(corners, rack.command(corners, angle))
        assert found == pytest.approx(m.ackermann(angle, WHEELBASE, 2.0 * KINGPIN), abs=2e-3)
        assert rack.steering_angle(corners, rack.command(corners, angle)) == pytest.approx(angle, abs=1e-9)
    rack, corners = front(ModelBuilder(), arm=arm, mode="parallel")
    left, right = rack.angles(corners, 0.03)
    assert left == pytest.approx(right, rel=0.04) and left > 0.2
    assert rack.angles(corners, 0.0) == pytest.approx((0.0, 0.0), abs=1e-12)


@pytest.mark.native
def test_wheels_follow_the_command_and_the_rack_stops_at_its_travel() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    rack, corners = front(b)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    for command in (0.03, -0.045):
        sim.control["steer"] = command
        sim.step(600)
        for corner, hand in zip(corners, rack.angles(corners, command), strict=True):
            turn = Transform((0, 0, 0), sim.read(f"body.{corner.label}_hub.orientation")[0]).matrix()
            assert math.atan2(-turn[0, 1], turn[1, 1]) == pytest.approx(hand, abs=2e-4)
    sim.control["steer"] = 0.06
    sim.step(600)
    assert sim.read("joint.steer.position")[0] == pytest.approx(0.048, abs=1e-5)


RACKS: list[tuple[dict[str, Any], str]] = [
    ({"travel": 0.0}, "travel 0"),
    ({"travel": 0.2}, "travel 0.2 0.12"),
    ({"mode": "crab"}, "mode 'crab'"),
    ({"wheelbase": math.inf}, "mode"),
    ({"track": 0.0}, "'steer'"),
    ({"angle": 2.0}, "angle 2 0 1.5"),
    ({"mass": -1.0}, "mass -1"),
    ({"chassis": 9}, "chassis 9"),
    ({"at": (0, 0)}, "at 2 3"),
    ({"label": "left rack"}, ""),
]


@pytest.mark.parametrize(("change", "message"), RACKS)
def test_bad_racks_are_reported(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = GIVEN | {"chassis": -1, "at": (0, 0, 0)} | change
    with pytest.raises(ModelError, match=naming(message)):
        m.add_steering_rack(ModelBuilder(), given.pop("chassis"), given.pop("at"), **given)


def test_a_rack_asks_for_its_corners() -> None:
    rack, corners = front(ModelBuilder())
    with pytest.raises(ModelError, match=naming("'steer' corners")):
        rack.command(corners[:1], 0.1)


def test_what_a_rack_does_not_reach_is_reported() -> None:
    rack, corners = front(ModelBuilder())
    with pytest.raises(ModelError, match=naming("rack 'steer' angle 1")):
        rack.command(corners, 1.0)
    with pytest.raises(ModelError, match=naming("rack 'steer' 0.11")):
        rack.angles(corners, 0.11)
    with pytest.raises(ModelError, match=naming("travel 0.07")):
        front(ModelBuilder(), travel=0.07)
    with pytest.raises(ModelError, match=naming("lateral_tie_rod 0.12")):
        front(ModelBuilder(), angle=1.4)


@pytest.mark.native
@pytest.mark.parametrize("kind", ["ball", "pin"])
def test_a_hitch_turns_as_far_as_its_limit(kind: str) -> None:
    b = ModelBuilder()
    tractor = b.add_body(500.0, (50, 100, 100), kinematic=True, xform=Transform((0, 0, 0.5)), label="tractor")
    trailer = b.add_body(50.0, (5, 10, 10), xform=Transform((-2.0, 0, 0.4)), label="trailer")
    hitch = m.add_trailer_hitch(b, tractor, trailer, (-1.0, 0, -0.1), kind=kind, limit=0.6, damping=20.0)
    assert hitch.at == pytest.approx((-1.0, 0.0, 0.4)) and b.joints[hitch.joint].label == "hitch"
    push = b.add_force(trailer, (0, 600.0, 0), label="push")
    assert push >= 0
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.step(1000)
    turn = Transform((0, 0, 0), sim.read("body.trailer.orientation")[0]).matrix()
    angle = math.acos(0.5 * (turn.trace() - 1.0))
    assert angle == pytest.approx(0.6, abs=1e-5)
    sagged = sim.read("body.trailer.position")[0][2] - 0.4
    assert abs(sagged) < 1e-9 if kind == "pin" else sagged < -0.2
    place = Transform(sim.read("body.trailer.position")[0], sim.read("body.trailer.orientation")[0])
    assert place.apply((1.0, 0.0, 0.0)) == pytest.approx(hitch.at, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trailer": 0}, "'hitch'"),
        ({"trailer": -1}, "'hitch'"),
        ({"trailer": 5}, "trailer 5"),
        ({"kind": "hook"}, "kind 'hook'"),
        ({"limit": 0.0}, "limit 0"),
        ({"limit": 3.5}, "limit 3.5"),
        ({"damping": -1.0}, "damping -1"),
        ({"at": 1.0}, "at 3"),
    ],
)
def test_bad_hitches_are_reported(change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    for label in ("tractor", "trailer"):
        b.add_body(10.0, (1, 1, 1), label=label)
    given: dict[str, Any] = {"trailer": 1, "at": (-1, 0, 0)} | change
    with pytest.raises(ModelError, match=naming(f"'hitch' {message}")):
        m.add_trailer_hitch(b, 0, given.pop("trailer"), given.pop("at"), **given)
