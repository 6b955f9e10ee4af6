from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import gpusim.viewer

VIEWER = Path(gpusim.viewer.__file__ or "").parent
ROOMS = re.findall(r"^\* ``(\w+)``:", gpusim.viewer.__doc__ or "", flags=re.MULTILINE)
DOORS = {"offscreen": "overlays", "pictures": "overlays", "errors": "camera"}


def imports() -> dict[str, set[str]]:
    modules = {".".join(file.relative_to(VIEWER).with_suffix("").parts): file for file in VIEWER.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, file in modules.items():
        found[module] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpusim.viewer"):
                source = (node.module or "").removeprefix("gpusim.viewer").lstrip(".")
                inner = {f"{source}.{alias.name}".lstrip(".") for alias in node.names} & modules.keys()
                found[module] |= inner or {source if source in modules else f"{source}.__init__".lstrip(".")}
    return found


def height(module: str) -> float:
    room = module.split(".")[0]
    return ROOMS.index(DOORS[room]) + 0.5 if room in DOORS else ROOMS.index(room)


def test_every_folder_is_a_room_of_the_docstring() -> None:
    assert {path.parent.name for path in VIEWER.glob("*/__init__.py")} == set(ROOMS)
    assert {path.stem for path in VIEWER.glob("*.py")} == {"__init__", *DOORS}


def test_imports_point_down() -> None:
    upward = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if module != "__init__" and other != "errors" and height(other) > height(module)
    ]
    assert not upward


def test_no_module_imports_itself_round_a_corner() -> None:
    assert "window.session" in TopologicalSorter(imports()).static_order()
