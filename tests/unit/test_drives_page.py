"""docs/drives.md: its examples run and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "drives.md"


NUMBER = r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?"


@pytest.mark.native
def test_examples_print_what_the_page_says() -> None:
    """Every example prints something, and every number that it prints stands behind it, to its last digit."""
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(examples) >= 4
    for code in examples:
        comments = re.findall(r"^print\(.*\)  # ([^:\n]*)", code, flags=re.MULTILINE)
        said = re.findall(NUMBER, " ".join(comments))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), names)
        numbers = [float(x) for x in re.findall(NUMBER, printed.getvalue())]
        assert said and len(numbers) == len(said), code
        for number, text in zip(numbers, said, strict=True):
            places = len(text.partition(".")[2])
            assert number == pytest.approx(float(text), abs=0.51 * 10.0**-places), code
