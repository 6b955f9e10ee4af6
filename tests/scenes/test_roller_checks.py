"""Checks of the vehicles on omni and mecanum wheels under other parameters than their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelError, Simulation
from gpusim.scene import load_scene
from gpusim.scenes import _roller_checks, _rollers
from tests.message_snapshot import naming
from tests.scenes.runs import recorded

CASES = [
    ("omni_vehicle", {"speed": 0.0}, []),
    ("omni_vehicle", {"speed": -0.5, "rollers": 6}, []),
    ("omni_vehicle", {"mass": 200.0}, []),
    ("omni_vehicle", {"drive": "motors"}, []),
    ("omni_vehicle", {"friction": 0.1}, [_roller_checks.GOES, _roller_checks.MOVES_ASIDE]),
    ("mecanum_vehicle", {"speed": 0.0}, []),
    ("mecanum_vehicle", {"rollers": 6}, []),
    ("mecanum_vehicle", {"rollers": 7, "speed": -0.5}, []),
    ("mecanum_vehicle", {"rollers": 8}, []),
    ("mecanum_vehicle", {"roller_angle": 15.0}, []),
    ("mecanum_vehicle", {"drive": "torques"}, [_roller_checks.GOES, _roller_checks.MOVES_ASIDE]),
]


@pytest.mark.native
@pytest.mark.parametrize(("name", "change", "left_out"), CASES)
def test_checks_follow_the_parameters(name: str, change: dict[str, Any], left_out: list[str]) -> None:
    """They hold, or are left out with a reason; they do not hold where nothing moves that should."""
    scene = load_scene(name, **change)
    assert [left.statement for left in scene.unchecked] == left_out and all(left.reason for left in scene.unchecked)
    run = recorded(scene, Simulation(scene.builder.finalize(), backend="native", config=scene.config), 10)
    assert not [check.statement for check in scene.checks if not check.passes(run)]
    still = {key: np.repeat(values[:1], len(values), axis=0) for key, values in run.items()}
    still["time"] = run["time"]
    assert left_out or change.get("speed") == 0.0 or not all(check.passes(still) for check in scene.checks)


@pytest.mark.parametrize("name", ["omni_vehicle", "mecanum_vehicle"])
def test_too_few_rollers_are_refused(name: str) -> None:
    """Fewer than those whose ends are thicker than a tip on the circle."""
    with pytest.raises(ModelError, match=naming("'rollers' 6 0.02 0.1 5")):
        load_scene(name, rollers=5)
    assert _rollers.least_rollers() == 6 and load_scene(name, rollers=6)


def test_the_arc_of_a_barrel_is_off_its_line_as_the_macro_tells() -> None:
    """33 um with eight rollers, 13 um with ten (machines/omni_wheel.py); none without an angle."""
    found = {}
    for name, rollers in (("mecanum_vehicle", 8), ("mecanum_vehicle", 10), ("omni_vehicle", 6)):
        check = next(one for one in load_scene(name, rollers=rollers).checks if "height" in one.statement)
        found[name, rollers] = check.statement
    assert found["omni_vehicle", 6] == "it stays at its height within 0.09 mm"
    assert found["mecanum_vehicle", 10] == "it stays at its height within 0.1 mm"
    assert found["mecanum_vehicle", 8] == "it stays at its height within 0.12 mm"
