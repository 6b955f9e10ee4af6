"""Bad parameters of the suspensions: one clear sentence, with the rule and the mend."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError
from gpusim import machines as m

from .rig import ALL, HUB, LOAD, PLACE, coil

every = pytest.mark.parametrize("name", ALL)
TOP, FOOT = (0.0, 0.4, 0.7), (0.0, 0.4, 0.3)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"travel": (0.02, 0.08)}, r"travel = \(0.02, 0.08\) does not hold 0, .*; give \(least, greatest\)"),
    ({"travel": (-0.08, float("nan"))}, r"travel = .* is not finite; give"),
    ({"hub": 3.0}, r"hub = 3.0 is no Hub; give gpusim.machines.Hub"),
    ({"hub": m.Hub((0, 0.6, 0.3), -1.0)}, r"hub.mass = -1 must be above zero; give a positive"),
    ({"hub": m.Hub((0, 0.6))}, r"hub.center has shape \(2,\), not \(3,\); give 3 numbers"),
    ({"spring": 3.0}, r"spring = 3.0 is neither a Coil nor a TorsionBar; give one"),
    ({"spring": coil((0, 0.4, 0.7), (0, 0.4, 0.7))}, r"spring.top and spring.foot are one point; place"),
    ({"spring": coil(TOP, FOOT, on="wheel")}, r"spring.on = 'wheel' is no part that moves; give '"),
    ({"spring": coil(TOP, FOOT, stiffness=-1.0)}, r"spring.stiffness = -1 must not be negative; give"),
    ({"spring": coil(TOP, FOOT, preload=3.0)}, r"load and preload both say .*; give one"),
    ({"spring": coil(TOP, FOOT, load=50.0)}, r"load = 50 N does not carry the parts' weight, .*; give"),
    ({"spring": [coil(TOP, FOOT)] * 2}, r"load is given to more than one spring; give it to one"),
    ({"spring": coil(TOP, FOOT, stiffness=0.0)}, r"a load or a preload needs a stiffness; give one"),
    ({"tie_rod": 3.0}, r"tie_rod = 3.0 is no TieRod; give gpusim.machines.TieRod"),
    ({"tie_rod": m.TieRod((0, 0.1, 0.3), (0, 0.1, 0.3))}, r"tie_rod.inner and tie_rod.outer are one point; place"),
    ({"tie_rod": m.TieRod((0, 0.1, 0.3), (0, 0.2, 0.3), 7)}, r"tie_rod.rack = 7 is unknown.*; give"),
    ({"mirror": "left"}, r"mirror = 'left' is neither True nor False; give one"),
    ({"label": "front left"}, r"label 'front left.*must be a word.*; give"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
@every
def test_every_macro_names_the_rule_and_the_mend(name: str, change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=message) as caught:
        ALL[name](b, -1, PLACE, **change)
    assert "\n" not in str(caught.value)
    assert "label" in change or re.match(rf"(?i){name.replace('_', '.')} '{name}'", str(caught.value))
    assert not b.bodies and not b.joints


@every
def test_unreachable_travel_and_load(name: str) -> None:
    """A travel beyond the arms' reach; a load that ends on a stop."""
    b = ModelBuilder()
    if name != "sliding_pillar":
        with pytest.raises(ModelError, match=r"travel = 2 m is beyond the .* m that its geometry reaches; give"):
            ALL[name](b, -1, PLACE, travel=(-0.1, 2.0))
    susp = ALL[name](b, -1, PLACE, travel=(-0.02, 0.02))
    with pytest.raises(ModelError, match=r"under load = 50000 N it stands on its upper stop; stiffen its spring"):
        susp.static(50000.0)
    with pytest.raises(ModelError, match=r"under load = 500 N it stands on its lower stop; soften its spring"):
        susp.static(500.0)
    with pytest.raises(ModelError, match=r"load = 100 N does not carry the parts' weight"):
        susp.static(100.0)


@every
def test_rest_without_stops(name: str) -> None:
    """As built under its load, wherever the geometry ends; a load too great for it says so."""
    susp = ALL[name](ModelBuilder(), -1, PLACE, travel=(-math.inf, math.inf))
    assert susp.static(LOAD).travel == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < susp.static(1.1 * LOAD).travel < 0.05
    if name == "sliding_pillar":
        damper = coil(TOP, FOOT, stiffness=0.0, load=None)
        susp = ALL[name](ModelBuilder(), -1, PLACE, spring=damper, travel=(-math.inf, math.inf))
        with pytest.raises(ModelError, match="under load = 2500 N it has no rest that its geometry reaches; give it a"):
            susp.static(LOAD)


def test_geometry_that_cannot_move() -> None:
    """Dead points of each mechanism."""
    b, spring = ModelBuilder(), m.TorsionBar(1e3, load=LOAD)
    with pytest.raises(ModelError, match="arm stands upright, so that its turn does not lift the wheel; move"):
        m.add_swing_axle(b, -1, arm=m.Arm((0, 0.6, 0.8), (0, 0.6, 0.3)), hub=HUB, spring=spring)
    with pytest.raises(ModelError, match="arm.inner and arm.outer are one point; place them apart"):
        m.add_trailing_arm(b, -1, arm=m.Arm((0, 0.6, 0.3), (0, 0.6, 0.3)), hub=HUB, spring=spring)
    arm = m.Arm((0, 0.2, 0.2), (0, 0.5, 0.2))
    with pytest.raises(ModelError, match="lower.outer and upper.outer are one point .*; place them one above"):
        m.add_double_wishbone(b, -1, lower=arm, upper=arm, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match="its parts are in line, so that the wheel does not move up; give"):
        upper = m.Arm((0, 0.5, 0.5), (0, 0.5, 0.3))
        m.add_double_wishbone(b, -1, lower=arm, upper=upper, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match="axis = .* does not rise; give the direction in which the hub moves up"):
        m.add_sliding_pillar(b, -1, hub=HUB, axis=(0, 1, 0), spring=coil((0, 0.5, 0.7), (0, 0.5, 0.3)))
    with pytest.raises(ModelError, match="a torsion bar needs a hinge, and a pillar has none; give a Coil"):
        m.add_sliding_pillar(b, -1, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match="tie rod and its steering arm are in line, .*; place"):
        rod = m.TieRod((-0.5, 0.6, 0.3), (-0.1, 0.6, 0.3))
        m.add_sliding_pillar(b, -1, hub=HUB, spring=coil((0, 0.5, 0.7), (0, 0.5, 0.3)), tie_rod=rod)
    with pytest.raises(ModelError, match="without a tie rod top and foot must have the same x; align them"):
        m.add_macpherson_strut(
            b, -1, lower=arm, top=(0.05, 0.4, 0.7), foot=(0, 0.5, 0.4), hub=HUB, spring=coil(TOP, FOOT)
        )
    with pytest.raises(ModelError, match="chassis = 7 is unknown"):
        m.add_trailing_arm(b, 7, arm=arm, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match="a load needs gravity; give the builder one"):
        m.add_swing_axle(ModelBuilder(gravity=(0, 0, 0)), -1, arm=arm, hub=HUB, spring=spring)
    for name, add in (("arm", m.add_swing_axle), ("arm", m.add_trailing_arm)):
        with pytest.raises(ModelError, match=f"{name} = 3.0 is no Arm; give gpusim.machines.Arm"):
            add(b, -1, arm=3.0, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match="upper = 3.0 is no Arm; give gpusim.machines.Arm"):
        m.add_double_wishbone(b, -1, lower=arm, upper=3.0, hub=HUB, spring=spring)
    assert not b.bodies


def test_a_tie_rod_that_is_too_short_is_named() -> None:
    """It ends the travel before the arms do; a longer one, as the message says, does not."""

    def build(inner: float) -> None:
        rod = m.TieRod((-0.12, inner, 0.31), (-0.12, 0.52, 0.31))
        m.add_double_wishbone(
            ModelBuilder(), -1, lower=m.Arm((0, 0.25, 0.22), (0, 0.54, 0.2)), tie_rod=rod, travel=(-0.08, 0.08),
            upper=m.Arm((0, 0.3, 0.44), (0, 0.51, 0.42)), hub=HUB, spring=m.TorsionBar(1e3),
        )  # fmt: skip

    with pytest.raises(
        ModelError, match=r"travel = -0.08 m is beyond the -0.0\d+ m that its tie rod reaches; give .* a longer"
    ):
        build(0.5)
    build(0.3)


def test_a_struts_points_and_mass_are_named_as_they_are_given() -> None:
    given: dict[str, Any] = {
        "lower": m.Arm((0, 0.2, 0.2), (0, 0.6, 0.15)),
        "top": (0, 0.5, 0.9),
        "foot": (0, 0.55, 0.4),
    }
    for change, words in (
        ({"top": (0, 0.55, 0.4)}, "top and foot are one point; place them apart"),
        ({"foot": (0, 0.5)}, "foot has shape"),
        ({"rod_mass": 0.0}, "rod_mass = 0 must be above zero; give a positive rod_mass"),
    ):
        with pytest.raises(ModelError, match=rf"strut 'macpherson_strut': {words}"):
            m.add_macpherson_strut(ModelBuilder(), -1, hub=HUB, spring=m.TorsionBar(1e3), **(given | change))


def test_tie_rods_without_room() -> None:
    with pytest.raises(ModelError, match="angle = 1.6 rad is not within 0 to pi/2; give one such as 0.3"):
        m.lateral_tie_rod((0, 0, 0), 0.1, -0.3, 1.0, 0.5, angle=1.6)
    with pytest.raises(ModelError, match="wheelbase = -1 must be above zero; give a positive"):
        m.lateral_tie_rod((0, 0, 0), 0.1, -0.3, -1.0)
    with pytest.raises(ModelError, match="length = 0 and inner = -0.3 leave no room .*; give a length"):
        m.lateral_tie_rod((0, 0, 0), 0.0, -0.3)
    with pytest.raises(ModelError, match="no steering arm of 0.1 m meets Ackermann's .*; give a smaller angle"):
        m.lateral_tie_rod((0, 0, 0), 0.1, -0.3, 0.2, 1.0, angle=1.2)
