from __future__ import annotations

import inspect
import re
from pathlib import Path

from gpusim.control import Diagram, block_kinds
from tests.unit.control.test_wrong_parameters import NEEDED

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "reference" / "blocks.md"


def row(kind: str) -> str:
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
    head = ["| kind | inputs | outputs | parameters | what it does |", "| --- | --- | --- | --- | --- |"]
    return head + [row(kind) for kind in block_kinds()]


def test_the_table_is_that_of_the_kinds() -> None:
    found = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert found == table()


def test_what_the_page_says_of_expressions_and_scenes() -> None:
    page = (DOCS / "guides" / "block_diagrams.md").read_text(encoding="utf-8")
    Diagram("d").add("expression", "f", text=re.findall(r'text="(kp .*?)"', page)[0])
    from gpusim.scene import scene_parameters

    for name in re.findall(r"`(\w+)`", page.split("## Scenes")[1].split("have")[0]):
        assert "diagram" in next(p.type for p in scene_parameters(name) if p.name == "control")
