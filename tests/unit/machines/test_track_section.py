"""docs/machines.md, section Tracks: its example runs and does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "machines.md"


@pytest.mark.native
def test_example_drives() -> None:
    names: dict[str, Any] = {}
    section = PAGE.read_text(encoding="utf-8").split("## Tracks")[1].split("\n## ")[0]
    for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(code, PAGE.name, "exec"), names)
    sim, left = names["sim"], names["left"]
    assert left.ground_speed(sim)[0] == pytest.approx(0.5, abs=0.1)
    assert left.gap(sim)[0] < 1e-5 and abs(left.length_drift(sim)[0]) < 1e-5
