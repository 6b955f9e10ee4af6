from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from gpusim import ContactLaw, ModelError, SolverConfig
from gpusim.contact.law import SOCKETS
from gpusim.description.shape_kinds import shape_kinds

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("reference/contact_laws.md", "guides/contacts.md")
TEXT = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
NEEDED: dict[str, dict[str, Any]] = {
    "linear": {"damping_coefficient": 1.0},
    "hunt_crossley": {"damping_coefficient": 1.0},
    "regularized": {"regularization_speed": 0.01},
    "contensou": {"patch_radius": 0.01},
    "volumetric": {"stiffness": 1e6},
    "spring": {"stiffness": 1e5},
    "tire": {"slip_stiffness": 1e4, "relaxation_length": 0.1},
}


def rows() -> list[list[str]]:
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    return [[cell.strip(" `").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize(("socket", "name"), [(s, name) for s, table in SOCKETS.items() for name in table])
def test_every_choice_of_a_law_is_reported(socket, name) -> None:
    choice = SOCKETS[socket][name]
    uses = ", ".join(f"{u}`" + " (must be given)" * (u in choice.needs) for u in choice.uses)
    reported = next(row for row in rows() if row[:2] == [socket, name])
    assert reported[2:5] == [choice.equation, choice.doc, choice.source]
    assert re.sub("`", "", reported[5]) == re.sub("`", "", uses)


@pytest.mark.parametrize(("normal", "socket"), list(itertools.product(SOCKETS["normal"], ("damping", "friction"))))
def test_what_is_allowed_together(normal, socket) -> None:
    head = next(row for row in rows() if row[0] == "allowed together")
    cells = next(row for row in rows() if row[0] == f"normal `{normal}" or row[0] == f"normal `{normal}`")
    names = [name.split("`")[-1] if name.count("`") == 1 else name for name in head]
    for name in SOCKETS[socket]:
        reported = cells[names.index(name)]
        given = {"normal": normal, socket: name} | NEEDED.get(name, {}) | NEEDED.get(normal, {})
        if reported.startswith("no"):
            with pytest.raises(ModelError):
                ContactLaw(**given)
            continue
        ContactLaw(**given)
        if reported.startswith("with"):
            (parameter,) = re.findall(r"`?(\w+_\w+)`?", reported)
            del given[parameter]
            with pytest.raises(ModelError):
                ContactLaw(**given)


def test_every_shape_and_setting_is_reported() -> None:
    for kind in shape_kinds():
        assert f"| `add_shape_{kind.name}` |" in TEXT
    for setting in ("max_pairs", "strict", "contact_margin", "contact_slop", "max_depenetration_speed"):
        assert setting in SolverConfig.__dataclass_fields__
        assert re.search(rf"`[^`\n]*\b{setting}\b[^`\n]*`", TEXT), setting
