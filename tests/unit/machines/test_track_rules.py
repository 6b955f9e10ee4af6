from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim import machines as m
from tests.backends import FASTEST
from tests.message_snapshot import naming

ROAD = [m.RoadWheel((x, 0.181)) for x in (-0.4, 0.0, 0.4)]


def build(b: ModelBuilder, **change: Any) -> m.Track:
    given: dict[str, Any] = {
        "pitch": 0.12,
        "sprocket": m.Sprocket((-0.9, 0.36)),
        "idler": m.Idler((0.9, 0.36)),
        "road": ROAD,
        "label": "left",
    }
    return m.add_track(b, change.pop("chassis", -1), change.pop("xform", None), **(given | change))


def arm(**numbers: Any) -> dict[str, Any]:
    return {"road": [m.RoadWheel((0.0, 0.181), arm=m.TorsionArm(**numbers))]}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"pitch": -0.1}, "pitch -0.1"),
    ({"pitch": "long"}, "pitch 'long'"),
    ({"chassis": 3}, "chassis 3"),
    ({"xform": 3}, "3"),
    ({"label": "left side"}, "side_sprocket"),
    ({"shoes": 30}, "shoes 30"),
    (
        {"shoes": 39},
        "shoes 39",
    ),
    (
        {"road": [m.RoadWheel((1.6, 0.181))]},
        "0.24 0.01",
    ),
    (
        {"road": [m.RoadWheel((0.0, 0.6))]},
        "road[0]",
    ),
    ({"shoes": 50}, "shoes 50"),
    ({"shoes": 2}, "shoes 2 3"),
    ({"shoes": 41.5}, "shoes 41.5 3"),
    ({"shoe": 3.0}, "shoe 3.0 gpusim.machines.Shoe"),
    ({"shoe": m.Shoe(mass=0.0)}, "shoe.mass 0"),
    ({"shoe": m.Shoe((0.1, 0.3))}, "shoe.size 2 3"),
    ({"shoe": m.Shoe((0.1, -0.3, 0.04))}, "shoe.size width -0.3"),
    ({"shoe": m.Shoe((0.13, 0.3, 0.04))}, "shoe.size 0.13 pitch 0.12"),
    ({"shoe": m.Shoe((0.1, 0.3, 0.3))}, "0.3 teeth 11"),
    ({"shoe": m.Shoe(guide=-0.1)}, "shoe.guide -0.1"),
    ({"shoe": m.Shoe(material=0.8)}, "shoe.material 0.8 Material gpusim.Material"),  # type: ignore[arg-type]
    ({"sprocket": 11}, "sprocket 11 gpusim.machines.Sprocket"),
    (
        {"sprocket": m.Sprocket((-0.9, 0.36), 5)},
        "sprocket.teeth 5 6",
    ),
    ({"sprocket": m.Sprocket((-0.9, 0.36), 11, "gear")}, "sprocket.engage 'gear' 'teeth'"),
    ({"sprocket": m.Sprocket((-0.9, 0.36), play=0.05)}, "sprocket.play 0.05"),
    ({"sprocket": m.Sprocket((-0.9,))}, "sprocket.at 1 2"),
    ({"idler": None}, "idler None gpusim.machines.Idler"),
    ({"idler": m.Idler((-0.8, 0.36))}, "0.1"),
    ({"idler": m.Idler((0.9, 0.36), tension=-1.0)}, "idler.tension -1"),
    ({"idler": m.Idler((0.9, 0.36), stiffness=0.0)}, "idler.stiffness 0"),
    ({"idler": m.Idler((0.9, 0.36), radius=-0.1)}, "idler.radius -0.1"),
    ({"road": 3}, "road 3"),
    ({"road": [m.Roller((0, 0.1))]}, "road[0] RoadWheel gpusim.machines.RoadWheel"),
    ({"road": [m.RoadWheel((0, 0.2), -0.1)]}, "road[0].radius -0.1"),
    ({"road": [m.RoadWheel((0, 0.2)), m.RoadWheel((0.1, 0.2))]}, "road[0] road[1] 0.1"),
    ({"road": [m.RoadWheel((0, 0.2), arm=3)]}, "road[0].arm 3 TorsionArm"),  # type: ignore[arg-type]
    ({"road": [m.RoadWheel((0, 0.2), arm=m.Pin())]}, "road[0].arm Pin TorsionArm"),  # type: ignore[arg-type]
    (arm(length=-1.0), "road[0].arm.length -1"),
    (arm(stiffness=0.0), "road[0].arm.stiffness 0"),
    (arm(damping=-3.0), "road[0].arm.damping -3"),
    (arm(angle=1.6), "road[0].arm.angle 1.6"),
    (arm(travel=(0.1, 0.5)), "road[0].arm.travel 0.1 0.5 0"),
    ({"rollers": [m.Roller((0, 0.3))]}, "road[1] rollers[0] 0.119"),
    ({"pins": 3}, "pins 3 gpusim.machines.Pin"),
    ({"pins": m.Pin(friction=-1.0)}, "pins.friction -1"),
    ({"surface_speed": 1.0}, "surface_speed 1.0"),
    ({"solver": "papers"}, "solver 'papers' 'direct' 'colored'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_rule_and_fix(change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming(message)) as caught:
        build(b, **change)
    assert "\n" not in str(caught.value)
    assert "label" in change or str(caught.value).startswith("track 'left': ")
    assert not b.bodies and not b.joints and not b.shapes


@pytest.mark.parametrize(
    ("change", "corrected"),
    [
        ({"shoes": 39}, {"shoes": 39, "idler": m.Idler((0.76, 0.36))}),
        ({"shoes": 50}, {"shoes": 50, "idler": m.Idler((1.42, 0.36))}),
        ({"idler": m.Idler((-0.7, 0.36)), "road": []}, {"idler": m.Idler((-0.53, 0.36)), "road": []}),
        (
            {"idler": m.Idler((-0.6, 0.36)), "road": []},
            {"idler": m.Idler((-0.6, 0.36)), "road": [], "sprocket": m.Sprocket((-0.9, 0.36), 9)},
        ),
        ({"rollers": [m.Roller((0.2, 0.2), 0.07)]}, {"rollers": [m.Roller((0.2, 0.2), 0.05)]}),
    ],
)
def test_fixes_work(change: dict[str, Any], corrected: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        build(ModelBuilder(), **change)
    build(ModelBuilder(), **corrected)


def test_a_large_road_wheel_may_carry_both_runs() -> None:
    build(ModelBuilder(), road=[m.RoadWheel((x, 0.34), 0.22) for x in (-0.2, 0.3)])


def test_what_a_surface_track_does_not_have() -> None:
    b = ModelBuilder()
    chassis = b.add_body(500.0, (50, 100, 100), com=(0, 0, 0.4), label="chassis")
    track = build(b, chassis=chassis, surface_speed=True)
    sim = Simulation(b.finalize(), backend=FASTEST, config=SolverConfig(dt=5e-3))
    for tell, what in ((track.tension, "tension"), (track.gap, "pins"), (track.length_drift, "pins")):
        with pytest.raises(ModelError, match=naming(f"track 'left' surface_speed True {what}")):
            tell(sim)


def test_labels_and_groups() -> None:
    b = ModelBuilder()
    chassis = b.add_body(500.0, (50, 100, 100), com=(0, 0, 0.4), label="chassis")
    road = [m.RoadWheel((0.0, 0.181), arm=m.TorsionArm(load=2000.0))]
    made = [build(b, chassis=chassis, label=side, road=road, pins=m.Pin(2.0, 1.0)) for side in ("left", "right")]
    for track in made:
        side = track.label
        assert b.bodies[track.shoes[3]].label == f"{side}_shoe3" and b.joints[track.pins[3]].label == f"{side}_pin3"
        assert b.joints[track.drive].label == f"{side}_drive" and b.bodies[track.sprocket].label == f"{side}_sprocket"
        assert track.tension_joint is not None and b.joints[track.tension_joint].label == f"{side}_tension"
        assert [b.joints[j].label for j in track.arms] == [f"{side}_arm0"]
        assert (
            b.joints[track.pins[3]].params["damping"][0] == 2.0 and b.joints[track.pins[3]].params["friction"][0] == 1.0
        )
        assert b.joints[track.pins[0]].kind == "revolute" and b.joints[track.pins[-1]].kind == "planar_pin"
        b.add_dc_motor(track.drive, 30.0, 400.0, 0.01, gear_ratio=40.0, label=f"{side}_motor")
        b.add_brake(track.drive, 2000.0, label=f"{side}_brake")
    assert {shape.group for shape in b.shapes} == {
        f"{side}_{name}" for side in ("left", "right") for name in ("shoes", "wheels", "teeth", "bushings")
    }
    swept = build(ModelBuilder(), solver="colored", sprocket=m.Sprocket((-0.9, 0.36), engage="friction"))
    assert swept.count == len(swept.pins) == len(swept.shoes)
    assert b.finalize().num_worlds == 1
    assert Material(friction=0.8) == m.Shoe().material


def test_lowest_is_that_of_the_shoes_corners() -> None:
    b = ModelBuilder()
    road = [m.RoadWheel((x, 0.131), 0.09) for x in (-0.2, 0.2)]
    given = {"sprocket": m.Sprocket((-0.42, 0.3), 9), "idler": m.Idler((0.45, 0.3)), "road": road}
    track = build(b, rollers=[m.Roller((0.0, 0.4), 0.04)], **given)
    assert [b.bodies[body].label for body in track.rollers] == ["left_roller0"]
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = [b.bodies[shoe].xform.apply(signs * (0.059, 0.15, 0.02)) for shoe in track.shoes]
    assert track.lowest == pytest.approx(np.min(corners, axis=(0, 1))[2], abs=1e-12)
    assert -0.04 < track.lowest < -0.005
    assert build(ModelBuilder(), surface_speed=True, **given).lowest == pytest.approx(0.131 - 0.09 - 0.04, abs=1e-12)
