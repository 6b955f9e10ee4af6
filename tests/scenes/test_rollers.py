"""Vehicles on omni and mecanum wheels refuse too few rollers."""

from __future__ import annotations

import pytest

from gpusim import ModelError
from gpusim.scene import load_scene
from gpusim.scenes import _rollers


@pytest.mark.parametrize("name", ["omni_vehicle", "mecanum_vehicle"])
def test_too_few_rollers_are_refused(name: str) -> None:
    """Fewer than those whose ends are thicker than a tip on the circle."""
    rule = "'rollers' must be at least 6: fewer of 0.02 m do not close a circle of 0.1 m, got 5; give another"
    with pytest.raises(ModelError, match=rule):
        load_scene(name, rollers=5)
    assert _rollers.least_rollers() == 6 and load_scene(name, rollers=6)
