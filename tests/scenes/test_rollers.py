"""Vehicles on omni and mecanum wheels: parameters at the ends of their ranges."""

from __future__ import annotations

import pytest

from gpusim import ModelError
from gpusim.scene import load_scene
from gpusim.scenes.machines import _rollers
from gpusim.viewer.operator.inputs import command_inputs
from tests.message_snapshot import naming


@pytest.mark.parametrize("name", ["omni_vehicle", "mecanum_vehicle"])
def test_too_few_rollers_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match=naming("'rollers' 6 0.02 0.1 5")):
        load_scene(name, rollers=5)
    assert _rollers.min_rollers() == 6 and load_scene(name, rollers=6)


@pytest.mark.parametrize("name, most", [("omni_vehicle", 1.5), ("mecanum_vehicle", 1.0)])
def test_servos_accept_the_greatest_speed(name: str, most: float) -> None:
    inputs = command_inputs(load_scene(name, speed=most).builder.finalize())
    for command, points in _rollers.MOTIONS.items():
        assert inputs[command].upper == -inputs[command].lower == most * max(value for _, value in points)
