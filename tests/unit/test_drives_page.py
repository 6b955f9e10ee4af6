"""docs/drives.md: its examples run and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "drives.md"


@pytest.mark.native
def test_examples_print_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    page = PAGE.read_text(encoding="utf-8")
    said = re.findall(r"print\(.*\)  # ([-\d.]+)[^,]*, ([-\d.]+)", page)
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(said) == len(examples) == 3
    for code, expected in zip(examples, said, strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), names)
        numbers = [float(x) for x in re.findall(r"\[(.*?)\]", printed.getvalue())]
        assert numbers == pytest.approx([float(x) for x in expected], abs=6e-3)
