"""Bad parameters of tracks: one clear sentence, with the rule and the mend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim import machines as m

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
    ({"pitch": -0.1}, r"pitch = -0.1 must be above zero; give a positive pitch"),
    ({"pitch": "long"}, r"pitch = 'long' is not a number; give a number"),
    ({"chassis": 3}, r"chassis = 3 is unknown"),
    ({"xform": 3}, r"xform 3 is no Transform; give"),
    ({"label": "left side"}, r"'left side_.*must be a word.*; give"),
    ({"shoes": 30}, r"a track of shoes = 30 is too short for its path of 4.9\d+ m; give shoes = 41$"),
    (
        {"shoes": 39},
        r"shoes = 39 is too short .*; give shoes = 41, or move the idler about 0.14 m nearer to the sprocket",
    ),
    (
        {"road": [m.RoadWheel((1.6, 0.181))]},
        r"its idler hardly tightens it: moved by 0.24 m it makes the path longer by 0.01 m; place it farther from",
    ),
    (
        {"road": [m.RoadWheel((0.0, 0.6))]},
        r"road\[0\] carries the upper run, and is 0.2\d+ m above the lower one; place it",
    ),
    ({"shoes": 50}, r"a track of shoes = 50 is too long for its path of .* m away from the sprocket"),
    ({"shoes": 2}, r"shoes = 2 is no whole number of at least 3; give their number"),
    ({"shoes": 41.5}, r"shoes = 41.5 is no whole number of at least 3; give"),
    ({"shoe": 3.0}, r"shoe = 3.0 is no Shoe; give gpusim.machines.Shoe"),
    ({"shoe": m.Shoe(mass=0.0)}, r"shoe.mass = 0 must be above zero; give a positive"),
    ({"shoe": m.Shoe((0.1, 0.3))}, r"shoe.size has shape \(2,\), not \(3,\); give 3 numbers"),
    ({"shoe": m.Shoe((0.1, -0.3, 0.04))}, r"shoe.size: width = -0.3 must be above zero; give"),
    ({"shoe": m.Shoe((0.13, 0.3, 0.04))}, r"shoe.size: length 0.13 is above pitch = 0.12; give shorter shoes"),
    ({"shoe": m.Shoe((0.1, 0.3, 0.3))}, r"shoes of thickness 0.3 leave no drum in a sprocket of teeth = 11; give thin"),
    ({"shoe": m.Shoe(guide=-0.1)}, r"shoe.guide = -0.1 must not be negative; give"),
    ({"shoe": m.Shoe(material=0.8)}, r"shoe.material = 0.8 is no Material; give gpusim.Material"),  # type: ignore[arg-type]
    ({"sprocket": 11}, r"sprocket = 11 is no Sprocket; give gpusim.machines.Sprocket"),
    (
        {"sprocket": m.Sprocket((-0.9, 0.36), 5)},
        r"sprocket.teeth = 5 is no whole number of at least 6; give more teeth",
    ),
    ({"sprocket": m.Sprocket((-0.9, 0.36), 11, "gear")}, r"sprocket.engage = 'gear' is unknown; give one of \('teeth'"),
    ({"sprocket": m.Sprocket((-0.9, 0.36), play=0.05)}, r"sprocket.play = 0.05 leaves no tooth .*; give less play"),
    ({"sprocket": m.Sprocket((-0.9,))}, r"sprocket.at has shape \(1,\), not \(2,\); give 2 numbers"),
    ({"idler": None}, r"idler = None is no Idler; give gpusim.machines.Idler"),
    ({"idler": m.Idler((-0.8, 0.36))}, r"sprocket of radius .* and idler of radius .* overlap, 0.1 m apart; move them"),
    ({"idler": m.Idler((0.9, 0.36), tension=-1.0)}, r"idler.tension = -1 must not be negative; give"),
    ({"idler": m.Idler((0.9, 0.36), stiffness=0.0)}, r"idler.stiffness = 0 must be above zero; give"),
    ({"idler": m.Idler((0.9, 0.36), radius=-0.1)}, r"idler.radius = -0.1 must be above zero; give"),
    ({"road": 3}, r"road = 3 is no list; give a list of wheels"),
    ({"road": [m.Roller((0, 0.1))]}, r"road\[0\] = Roller.* is no RoadWheel; give gpusim.machines.RoadWheel"),
    ({"road": [m.RoadWheel((0, 0.2), -0.1)]}, r"road\[0\].radius = -0.1 must be above zero; give"),
    ({"road": [m.RoadWheel((0, 0.2)), m.RoadWheel((0.1, 0.2))]}, r"road\[0\] .* and road\[1\] .* overlap, 0.1 m apart"),
    ({"road": [m.RoadWheel((0, 0.2), arm=3)]}, r"road\[0\].arm = 3 is no TorsionArm; give"),  # type: ignore[arg-type]
    (arm(length=-1.0), r"road\[0\].arm.length = -1 must be above zero; give"),
    (arm(stiffness=0.0), r"road\[0\].arm.stiffness = 0 must be above zero; give"),
    (arm(damping=-3.0), r"road\[0\].arm.damping = -3 must not be negative; give"),
    (arm(angle=1.6), r"road\[0\].arm.angle = 1.6 puts the hinge above .*; give an angle between"),
    (arm(travel=(0.1, 0.5)), r"road\[0\].arm.travel = \(0.1, 0.5\) does not hold 0, .*; give \(least, greatest\)"),
    ({"rollers": [m.Roller((0, 0.3))]}, r"road\[1\] .* and rollers\[0\] .* overlap, 0.119 m apart; move"),
    ({"pins": 3}, r"pins = 3 is no Pin; give gpusim.machines.Pin"),
    ({"pins": m.Pin(friction=-1.0)}, r"pins.friction = -1 must not be negative; give"),
    ({"surface_speed": 1.0}, r"surface_speed = 1.0 is neither True nor False; give one"),
    ({"solver": "papers"}, r"solver = 'papers' is unknown; give one of \('direct', 'colored'\)"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_rule_and_mend(change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=message) as caught:
        build(b, **change)
    assert "\n" not in str(caught.value)
    assert "label" in change or str(caught.value).startswith("track 'left': ")
    assert not b.bodies and not b.joints and not b.shapes


@pytest.mark.parametrize(
    ("change", "mended"),
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
def test_mends_work(change: dict[str, Any], mended: dict[str, Any]) -> None:
    """What the messages propose builds."""
    with pytest.raises(ModelError):
        build(ModelBuilder(), **change)
    build(ModelBuilder(), **mended)


def test_a_large_road_wheel_may_carry_both_runs() -> None:
    build(ModelBuilder(), road=[m.RoadWheel((x, 0.34), 0.22) for x in (-0.2, 0.3)])


def test_what_a_surface_track_does_not_have() -> None:
    b = ModelBuilder()
    chassis = b.add_body(500.0, (50, 100, 100), com=(0, 0, 0.4), label="chassis")
    track = build(b, chassis=chassis, surface_speed=True)
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=5e-3))
    for tell, what in ((track.tension, "tension"), (track.gap, "pins"), (track.length_drift, "pins")):
        with pytest.raises(
            ModelError, match=rf"track 'left': a track with surface_speed = True has no {what}; build it"
        ):
            tell(sim)


def test_labels_and_groups() -> None:
    """As the docstring says; two tracks beside each other, the drive for anything that drives a joint."""
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
    """Small end wheels: links stand out by some of a pitch; with surface_speed the wheels' rims."""
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
