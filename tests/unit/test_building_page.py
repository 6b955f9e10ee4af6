"""docs/building.md: its examples run and do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "building.md"


@pytest.mark.native
def test_examples_run() -> None:
    """Both arms stand at zero as built, hang alike after a second, and no joint opens."""
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(code, PAGE.name, "exec"), names)
    sim = names["sim"]
    left, right = (sim.read(f"joint.{side}_root.position")[0] for side in ("left", "right"))
    assert left == pytest.approx(right, abs=1e-9) and abs(left) > 0.01
    assert sim.read("sim.joint_drift")[0] < 1e-9
    sim.reset()
    for label in sim.model.labels("joint"):
        assert abs(sim.read(f"joint.{label}.position")[0]) < 1e-14
    crane = names["crane"]
    assert crane.read("joint.rope.tension")[0] == pytest.approx(150.0 * 9.81, rel=1e-3)
    assert crane.read("joint.hoist.position")[0] == pytest.approx(2.5, abs=1e-9)
    assert crane.read("joint.hoist.tension")[0] == pytest.approx(981.0, rel=1e-6)
    tries, ends = names["tries"], names["ends"]
    assert ends[0] != ends[1] != ends[2]
    assert len(set(tries.read("joint.hinge.position"))) == 1 and set(tries.read("sim.time")) == {tries.time}
