from __future__ import annotations

import pytest

from tests.robustness.known import KNOWN
from tests.robustness.table import SETTINGS, SETUPS, run

FAST = ("direct_1ms", "direct_10ms", "colored_10ms")
LONG = (
    "big_chain_on_ground", "corridor_squeeze_robot", "hull_flat_needle", "motor_squeeze_box", "ragdoll_into_wall",
    "thin_rod_boxes", "thin_rods", "wheel_on_edge_field",
)  # fmt: skip


def cases() -> list[object]:
    params = []
    for setting in SETTINGS:
        for name in SETUPS:
            marks = [] if setting in FAST and name not in LONG else [pytest.mark.nightly]
            if reason := KNOWN.get((name, setting)):
                marks.append(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))
            params.append(pytest.param(name, setting, marks=marks, id=f"{setting}-{name}"))
    return params


@pytest.mark.native
@pytest.mark.parametrize(("name", "setting"), cases())
def test_a_hard_set_up_stays_plausible(name: str, setting: str) -> None:
    assert run(SETUPS[name], SETTINGS[setting]) == []


def test_known_failures_are_of_set_ups_that_there_are() -> None:
    assert {name for name, _ in KNOWN} <= set(SETUPS)
    assert {setting for _, setting in KNOWN} <= set(SETTINGS)
    assert set(LONG) <= set(SETUPS)
