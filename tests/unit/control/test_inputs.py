from __future__ import annotations

from typing import Any

import pytest

from gpusim import ModelError
from gpusim.control import Diagram
from tests.message_snapshot import naming
from tests.unit.control.test_diagrams import cart

RANGES = [(-1.0, 2.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 2.0, 1.5), (-3.0, 0.0, 0.0), (-1.0, 1.0, 0.0), (-0.1, 0.7, 0.3)]


@pytest.mark.parametrize(("lower", "upper", "default"), RANGES)
def test_dead_zone_and_curve_are_about_the_default(lower: float, upper: float, default: float) -> None:
    d = Diagram("d")
    d.add("input", "u", lower=lower, upper=upper, default=default, dead_zone=0.1, curve=2.0)
    sim = cart([d])

    def out(share: float) -> float:
        way = upper - default if share > 0.0 else default - lower
        sim.control["u"] = default + share * way
        sim.step()
        return float(sim.read("diagram.d.u")[0])

    sim.step()
    assert sim.read("diagram.d.u")[0] == default
    for sign, end in ((-1.0, lower), (1.0, upper)):
        assert out(0.0) == default
        assert out(0.09 * sign) == default
        assert out(sign) == pytest.approx(end, rel=1e-15)
        assert out(2.0 * sign) == out(sign) and lower <= out(sign) <= upper
        assert out(0.55 * sign) == pytest.approx(default + 0.25 * (end - default))


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"keys": ("A",)}, "'A' switch"),
        ({"keys": ("FOO", "D")}, "'FOO'"),
        ({"keys": ("E", "D")}, "key 'E'"),
        ({"keys": ("A", "D"), "switch": True}, "diagram 'd' 'u'"),
        ({"axis": "left_z"}, "'left_z' 'left_y' 'left_x'"),
        ({"axis": "left_x", "switch": True}, "'left_x'"),
    ],
)
def test_keys_and_axes_are_checked_where_they_are_given(parameters: dict[str, Any], reported: str) -> None:
    with pytest.raises(ModelError, match=naming(f"diagram 'd' block 'u' {reported}")):
        Diagram("d").add("input", "u", **parameters)


@pytest.mark.parametrize(
    ("first", "second", "reported"),
    [
        ({"keys": ("A", "D")}, {"keys": ("W", "D")}, "key 'D'"),
        ({"keys": ("A", "D")}, {"keys": ("A",), "switch": True}, "key 'A'"),
        ({"axis": "axis_7"}, {"axis": "axis_7"}, "axis 'axis_7'"),
        ({"axis": "b", "switch": True}, {"axis": "b", "switch": True}, "'b'"),
    ],
)
def test_keys_of_two_inputs_are_reported_at_the_build(
    first: dict[str, Any], second: dict[str, Any], reported: str
) -> None:
    one, other, both = Diagram("one"), Diagram("other"), Diagram("other")
    one.add("input", "u", **first)
    other.add("input", "v", **second)
    for name, parameters in (("u", first), ("v", second)):
        both.add("input", name, **parameters)
    for diagrams in ([one, other], [both]):
        with pytest.raises(ModelError, match=naming(f"diagram 'other' {reported} 'u' 'v'")):
            cart(diagrams)
    with pytest.raises(ModelError, match=naming("'back' 'w'")):
        d = Diagram("d")
        d.add("input", "w", switch=True, axis="back")
        cart([d])
