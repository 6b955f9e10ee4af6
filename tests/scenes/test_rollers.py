"""Vehicles on omni and mecanum wheels refuse too few rollers."""

from __future__ import annotations

import pytest

from gpusim import ModelError
from gpusim.scene import load_scene
from gpusim.scenes.machines import _rollers
from tests.message_snapshot import naming


@pytest.mark.parametrize("name", ["omni_vehicle", "mecanum_vehicle"])
def test_too_few_rollers_are_refused(name: str) -> None:
    """Fewer than those whose ends are thicker than a tip on the circle."""
    with pytest.raises(ModelError, match=naming("'rollers' 6 0.02 0.1 5")):
        load_scene(name, rollers=5)
    assert _rollers.least_rollers() == 6 and load_scene(name, rollers=6)
