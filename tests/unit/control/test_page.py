"""docs/control.md: its example prints what it says, and its table has every kind of block as it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from gpusim.control import Diagram, block_kinds
from tests.unit.control.test_wrong_parameters import NEEDED

PAGE = Path(__file__).parents[3] / "docs" / "control.md"


def row(kind: str) -> str:
    """Line of the table: ports, parameters and the first sentence of the docstring."""
    d = Diagram("d")
    d.add(kind, "b", **NEEDED.get(kind, {}))
    block = d.blocks["b"]
    inputs, outputs = d.ports("b")
    listed = ", ".join(f"[{p}]" if p in block.optional else p for p in inputs) or "-"  # type: ignore[union-attr]
    parameters = ", ".join(block_kinds()[kind].parameters()) or "-"
    words = " ".join((inspect.getdoc(block_kinds()[kind]) or "").split("\n\n")[0].split())
    first = re.split(r"(?<=[a-z0-9)`\"])\. (?=[A-Z])", words)[0].replace("``", "`").replace("|", "\\|")
    first = first if first.endswith("...") else first.removesuffix(".")
    return f"| `{kind}` | {listed} | {', '.join(outputs) or '-'} | {parameters} | {first} |"


def table() -> list[str]:
    """Of all kinds."""
    head = ["| kind | inputs | outputs | parameters | what it does |", "| --- | --- | --- | --- | --- |"]
    return head + [row(kind) for kind in block_kinds()]


def test_the_table_is_that_of_the_kinds() -> None:
    """Where it is not, its lines are: "\\n".join(table())."""
    found = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert found == table()


def test_the_example_does_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(compile(code[1], PAGE.name, "exec"), names)
    place, force = (float(x) for x in re.findall(r"\[\s*([-\d.]+)\s*\]", capsys.readouterr().out))
    said = [float(x) for x in re.findall(r"# ([\d.]+) m, ([\d.]+) N", code[1])[0]]
    assert [place, force] == pytest.approx(said, abs=0.05) and place == pytest.approx(said[0], abs=1e-3)
    sim = names["sim"]
    sim.write("diagram.lift.pid.kp", 300.0, world=[0])
    assert sim.read("diagram.lift.pid.kp")[0] == 300.0


def example(word: str) -> str:
    """The example with this word in it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return next(code for code in blocks if word in code)


def test_rays_see_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example("add_ray_sensor"), PAGE.name, "exec"), {})
    assert [float(x) for x in capsys.readouterr().out.split()] == pytest.approx([2.8, 10.0, 1.0])


def test_the_arm_is_where_its_plan_is(capsys: pytest.CaptureFixture[str]) -> None:
    code = example("inverse_dynamics")
    exec(compile(code, PAGE.name, "exec"), {})
    found = float(re.findall(r"[-\d.]+", capsys.readouterr().out)[0])
    assert found == pytest.approx(float(re.findall(r"# ([\d.]+) rad", code)[0]), abs=5e-5)


def test_what_the_page_says_of_expressions_and_scenes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    Diagram("d").add("expression", "f", text=re.findall(r'text="(kp .*?)"', page)[0])
    from gpusim.scene import scene_parameters

    for name in re.findall(r"`(\w+)`", page.split("## Scenes")[1].split("have")[0]):
        assert "diagram" in next(p.type for p in scene_parameters(name) if p.name == "control")
