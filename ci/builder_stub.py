#!/usr/bin/env python3
"""Make gpusim/builder/builder_methods.pyi, the builder's methods for type checkers and editors.

    python ci/builder_stub.py --write
    python ci/builder_stub.py --check

``--check`` exits with code 1 if the file differs from the code.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import math
import textwrap
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import gpusim
from gpusim.builder.builder_methods import BuilderMethods, builder_method

PATH = Path(gpusim.__file__).parent / "builder" / "builder_methods.pyi"
_HEAD = '''"""The methods of ModelBuilder that other files attach; made by ci/builder_stub.py --write, not by hand."""

# fmt: off
'''


def stub() -> str:
    """Return the text of the stub: signature and first docstring line of the builder methods from other modules."""
    attached = [f for f in vars(BuilderMethods).values() if isinstance(f, FunctionType)]
    methods = sorted((f for f in attached if f.__module__.startswith("gpusim.")), key=lambda f: f.__name__)
    modules = {"TypeVar": "typing", "Callable": "collections.abc"}
    for function in (*methods, builder_method):
        modules.update(_modules(function))
    bodies = [textwrap.indent(_method(f), "    ") for f in methods]
    return "\n".join(
        [
            _HEAD + _imports(modules, False) + "\n",
            _imports(modules, True) + "\n",
            'F = TypeVar("F", bound=Callable[..., Any])\n',
            "class BuilderMethods:",
            f'    """{_summary(BuilderMethods)}"""\n',
            "\n".join(bodies),
            _method(builder_method),
        ]
    )


def _imports(modules: dict[str, str], own: bool) -> str:
    """Return the import lines of names, by module."""
    by_module: dict[str, list[str]] = defaultdict(list)
    for name in sorted(modules):
        by_module[modules[name]].append(name)
    chosen = [module for module in sorted(by_module) if module.startswith("gpusim") == own]
    return "\n".join(f"from {module} import {', '.join(by_module[module])}" for module in chosen)


def _summary(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _method(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parts, keyword_only = [], False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not keyword_only and "*" not in "".join(x[0] for x in parts):
            parts.append("*")
        keyword_only = keyword_only or p.kind is p.KEYWORD_ONLY
        parts.append(_parameter(p))
    head, tail = f"def {function.__name__}(", f") -> {signature.return_annotation}:"
    line = head + ", ".join(parts) + tail
    if len(line) > 112:
        line = f"{head}\n{_filled(parts)}\n{tail}"
    return f'{line}\n    """{_summary(function)}"""\n'


def _filled(parts: list[str]) -> str:
    """Break the parameters into lines of limited length. Keep each parameter on one line."""
    lines = [""]
    for part in parts:
        if len(lines[-1]) + len(part) > 104:
            lines.append("")
        lines[-1] += f" {part}," if lines[-1] else f"{part},"
    return textwrap.indent("\n".join(lines), "    ")


def _parameter(p: inspect.Parameter) -> str:
    if p.name == "self":
        return "self"
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    default = "" if p.default is p.empty else f" = {_literal(p.default)}"
    return f"{stars}{p.name}: {p.annotation}{default}"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, float) and float(f"{value:g}") == value and "e" in f"{value:g}":
        return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")
    if value is None or isinstance(value, bool | int | float | tuple):
        return repr(value)
    return f'"{value}"' if isinstance(value, str) else "..."


def _modules(function: Callable[..., Any]) -> dict[str, str]:
    """Return the module of each name in a function's annotations.

    The module is the function's module, or an imported module.
    """
    nodes = list(ast.walk(ast.parse(Path(inspect.getfile(inspect.unwrap(function))).read_text(encoding="utf-8"))))
    source = {node.name: function.__module__ for node in nodes if isinstance(node, ast.ClassDef)}
    source |= {
        alias.name: node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    trees = [ast.parse(text) for name, text in function.__annotations__.items() if name != "self"]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name: source[name] for name in used & source.keys()}


def main() -> int:
    """Check or write the stub and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true")
    group.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PATH.write_text(stub(), encoding="utf-8")
    elif not PATH.is_file() or PATH.read_text(encoding="utf-8") != stub():
        print(f"{PATH.name} is out of date; run python ci/builder_stub.py --write")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
