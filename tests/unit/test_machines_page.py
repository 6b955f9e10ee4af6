"""docs/machines.md: its example runs and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "machines.md"


@pytest.mark.native
def test_example_of_arms_prints_what_the_page_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    example = re.search(r"## Arms.*?```python\n(.*?)```", page, flags=re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.group(1), PAGE.name, "exec"), names)
    forces, moved = printed.getvalue().splitlines()
    said = [float(x) for x in re.findall(r" ([-\d]+) N", example.group(1))]
    assert [float(x) for x in re.findall(r": ([-\d.]+)", forces)] == pytest.approx(said, abs=0.5)
    angles = [float(x) for x in re.findall(r"([\d.]+) rad", example.group(1))]
    assert [float(x) for x in re.findall(r"\[(.*?)\]", moved)] == pytest.approx(angles, abs=6e-3)
