"""docs/machines.md: its examples run and print what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "machines.md"


@pytest.mark.native
def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    codes = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert codes
    for code in codes:
        exec(compile(code, PAGE.name, "exec"), names)
    rate, wanted = (float(word) for word in capsys.readouterr().out.split())
    assert rate == pytest.approx(0.33, abs=0.005) and rate == pytest.approx(wanted, rel=0.015)
