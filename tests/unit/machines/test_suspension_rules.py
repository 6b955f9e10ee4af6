from __future__ import annotations

import math
import re
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError
from gpusim import machines as m
from tests.message_snapshot import naming

from .rig import ALL, HUB, LOAD, PLACE, coil

every = pytest.mark.parametrize("name", ALL)
TOP, FOOT = (0.0, 0.4, 0.7), (0.0, 0.4, 0.3)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"travel": (0.02, 0.08)}, "travel 0.02 0.08 0"),
    ({"travel": (-0.08, float("nan"))}, "travel"),
    ({"hub": 3.0}, "hub 3.0 gpusim.machines.Hub"),
    ({"hub": m.Hub((0, 0.6, 0.3), -1.0)}, "hub.mass -1"),
    ({"hub": m.Hub((0, 0.6))}, "hub.center 2 3"),
    ({"spring": 3.0}, "spring 3.0 TorsionBar"),
    ({"spring": coil((0, 0.4, 0.7), (0, 0.4, 0.7))}, "spring.top spring.foot"),
    ({"spring": coil(TOP, FOOT, on="wheel")}, "spring.on 'wheel'"),
    ({"spring": coil(TOP, FOOT, stiffness=-1.0)}, "spring.stiffness -1"),
    ({"spring": coil(TOP, FOOT, preload=3.0)}, "load preload"),
    ({"spring": coil(TOP, FOOT, load=50.0)}, "load 50"),
    ({"spring": [coil(TOP, FOOT)] * 2}, "load"),
    ({"spring": coil(TOP, FOOT, stiffness=0.0)}, "stiffness"),
    ({"tie_rod": 3.0}, "tie_rod 3.0 TieRod gpusim.machines.TieRod"),
    ({"tie_rod": m.TieRod((0, 0.1, 0.3), (0, 0.1, 0.3))}, "tie_rod.inner tie_rod.outer"),
    ({"tie_rod": m.TieRod((0, 0.1, 0.3), (0, 0.2, 0.3), 7)}, "tie_rod.rack 7"),
    ({"mirror": "left"}, "mirror 'left'"),
    ({"label": "front left"}, "label 'front"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("change", "message"), WRONG)
@every
def test_every_macro_names_the_rule_and_the_fix(name: str, change: dict[str, Any], message: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming(message)) as caught:
        ALL[name](b, -1, PLACE, **change)
    assert "\n" not in str(caught.value)
    assert "label" in change or re.match(rf"(?i){name.replace('_', '.')} '{name}'", str(caught.value))
    assert not b.bodies and not b.joints


@every
def test_unreachable_travel_and_load(name: str) -> None:
    b = ModelBuilder()
    if name != "sliding_pillar":
        with pytest.raises(ModelError, match=naming("travel 2")):
            ALL[name](b, -1, PLACE, travel=(-0.1, 2.0))
    susp = ALL[name](b, -1, PLACE, travel=(-0.02, 0.02))
    with pytest.raises(ModelError, match=naming("load 50000")):
        susp.static(50000.0)
    with pytest.raises(ModelError, match=naming("load 500")):
        susp.static(500.0)
    with pytest.raises(ModelError, match=naming("load 100")):
        susp.static(100.0)


@every
def test_rest_without_stops(name: str) -> None:
    susp = ALL[name](ModelBuilder(), -1, PLACE, travel=(-math.inf, math.inf))
    assert susp.static(LOAD).travel == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < susp.static(1.1 * LOAD).travel < 0.05
    if name == "sliding_pillar":
        damper = coil(TOP, FOOT, stiffness=0.0, load=None)
        susp = ALL[name](ModelBuilder(), -1, PLACE, spring=damper, travel=(-math.inf, math.inf))
        with pytest.raises(ModelError, match=naming("load 2500")):
            susp.static(LOAD)


def test_geometry_that_cannot_move() -> None:
    b, spring = ModelBuilder(), m.TorsionBar(1e3, load=LOAD)
    with pytest.raises(ModelError, match=naming("'swing_axle' arm")):
        m.add_swing_axle(b, -1, arm=m.Arm((0, 0.6, 0.8), (0, 0.6, 0.3)), hub=HUB, spring=spring)
    with pytest.raises(ModelError, match=naming("arm.inner arm.outer")):
        m.add_trailing_arm(b, -1, arm=m.Arm((0, 0.6, 0.3), (0, 0.6, 0.3)), hub=HUB, spring=spring)
    arm = m.Arm((0, 0.2, 0.2), (0, 0.5, 0.2))
    with pytest.raises(ModelError, match=naming("lower.outer upper.outer")):
        m.add_double_wishbone(b, -1, lower=arm, upper=arm, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match=naming("'double_wishbone'")):
        upper = m.Arm((0, 0.5, 0.5), (0, 0.5, 0.3))
        m.add_double_wishbone(b, -1, lower=arm, upper=upper, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match=naming("axis")):
        m.add_sliding_pillar(b, -1, hub=HUB, axis=(0, 1, 0), spring=coil((0, 0.5, 0.7), (0, 0.5, 0.3)))
    with pytest.raises(ModelError, match=naming("'sliding_pillar'")):
        m.add_sliding_pillar(b, -1, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match=naming("'sliding_pillar'")):
        rod = m.TieRod((-0.5, 0.6, 0.3), (-0.1, 0.6, 0.3))
        m.add_sliding_pillar(b, -1, hub=HUB, spring=coil((0, 0.5, 0.7), (0, 0.5, 0.3)), tie_rod=rod)
    with pytest.raises(ModelError, match=naming("'macpherson_strut' top foot")):
        m.add_macpherson_strut(
            b, -1, lower=arm, top=(0.05, 0.4, 0.7), foot=(0, 0.5, 0.4), hub=HUB, spring=coil(TOP, FOOT)
        )
    with pytest.raises(ModelError, match=naming("chassis 7")):
        m.add_trailing_arm(b, 7, arm=arm, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match=naming("'swing_axle' load")):
        m.add_swing_axle(ModelBuilder(gravity=(0, 0, 0)), -1, arm=arm, hub=HUB, spring=spring)
    for name, add in (("arm", m.add_swing_axle), ("arm", m.add_trailing_arm)):
        with pytest.raises(ModelError, match=naming(f"{name} 3.0 gpusim.machines.Arm")):
            add(b, -1, arm=3.0, hub=HUB, spring=spring)
    with pytest.raises(ModelError, match=naming("upper 3.0 gpusim.machines.Arm")):
        m.add_double_wishbone(b, -1, lower=arm, upper=3.0, hub=HUB, spring=spring)
    assert not b.bodies


def test_a_tie_rod_that_is_too_short_is_named() -> None:
    def build(inner: float) -> None:
        rod = m.TieRod((-0.12, inner, 0.31), (-0.12, 0.52, 0.31))
        m.add_double_wishbone(
            ModelBuilder(), -1, lower=m.Arm((0, 0.25, 0.22), (0, 0.54, 0.2)), tie_rod=rod, travel=(-0.08, 0.08),
            upper=m.Arm((0, 0.3, 0.44), (0, 0.51, 0.42)), hub=HUB, spring=m.TorsionBar(1e3),
        )  # fmt: skip

    with pytest.raises(ModelError, match=naming("travel -0.08")):
        build(0.5)
    build(0.3)


def test_a_struts_points_and_mass_are_named_as_they_are_given() -> None:
    given: dict[str, Any] = {
        "lower": m.Arm((0, 0.2, 0.2), (0, 0.6, 0.15)),
        "top": (0, 0.5, 0.9),
        "foot": (0, 0.55, 0.4),
    }
    for change, words in (
        ({"top": (0, 0.55, 0.4)}, "top foot"),
        ({"foot": (0, 0.5)}, "foot"),
        ({"rod_mass": 0.0}, "rod_mass 0"),
    ):
        with pytest.raises(ModelError, match=naming(f"'macpherson_strut' {words}")):
            m.add_macpherson_strut(ModelBuilder(), -1, hub=HUB, spring=m.TorsionBar(1e3), **(given | change))


def test_tie_rods_without_room() -> None:
    with pytest.raises(ModelError, match=naming("angle 1.6 0")):
        m.lateral_tie_rod((0, 0, 0), 0.1, -0.3, 1.0, 0.5, angle=1.6)
    with pytest.raises(ModelError, match=naming("wheelbase -1")):
        m.lateral_tie_rod((0, 0, 0), 0.1, -0.3, -1.0)
    with pytest.raises(ModelError, match=naming("length 0 inner -0.3")):
        m.lateral_tie_rod((0, 0, 0), 0.0, -0.3)
    with pytest.raises(ModelError, match=naming("0.1")):
        m.lateral_tie_rod((0, 0, 0), 0.1, -0.3, 0.2, 1.0, angle=1.2)
