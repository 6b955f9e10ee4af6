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
    assert len(examples) == 5 and sum(code.count("assert") for code in examples) == 9
    for code in examples:
        exec(compile(code, PAGE.name, "exec"), names)
    tree = names["tree"]
    assert tree.names == tree.carriers == ["upper", "lower", "hand"] and names["jacobian"].shape == (1, 6, 3)
