"""docs/robotics.md: its examples run, and what they assert holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "robotics.md"


@pytest.mark.native
def test_examples_run() -> None:
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(examples) == 4 and sum(code.count("assert") for code in examples) == 4
    for code in examples:
        exec(compile(code, PAGE.name, "exec"), names)
    tree = names["tree"]
    assert tree.names == ["upper", "lower", "hand"] and names["jacobian"].shape == (1, 6, 3)
