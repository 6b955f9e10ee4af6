"""docs/machines.md: its examples run and print what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "machines.md"


def example(section: str) -> str:
    """The code below a heading."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"## {section}\n.*?```python\n(.*?)```", page, flags=re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.mark.native
def test_example_of_wheels_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(example("Wheels and steering"), PAGE.name, "exec"), names)
    rate, wanted = (float(word) for word in capsys.readouterr().out.split())
    assert rate == pytest.approx(0.33, abs=0.005) and rate == pytest.approx(wanted, rel=0.015)


@pytest.mark.native
def test_example_of_arms_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = example("Arms")
    names: dict[str, Any] = {}
    exec(compile(code, PAGE.name, "exec"), names)
    forces, moved = capsys.readouterr().out.splitlines()
    said = [float(x) for x in re.findall(r" ([-\d]+) N", code)]
    assert [float(x) for x in re.findall(r": ([-\d.]+)", forces)] == pytest.approx(said, abs=0.5)
    angles = [float(x) for x in re.findall(r"([\d.]+) rad", code)]
    assert [float(x) for x in re.findall(r"\[(.*?)\]", moved)] == pytest.approx(angles, abs=6e-3)


@pytest.mark.native
def test_example_of_tracks_drives() -> None:
    names: dict[str, Any] = {}
    exec(compile(example("Tracks"), PAGE.name, "exec"), names)
    sim, left = names["sim"], names["left"]
    assert left.ground_speed(sim)[0] == pytest.approx(0.5, abs=0.1)
    assert left.gap(sim)[0] < 1e-5 and abs(left.length_drift(sim)[0]) < 1e-5
