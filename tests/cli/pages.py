from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *_DOCS]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SHELL = ("gpusim ", "pip ", "pytest", "python", "ci/", "GPUSIM_")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def python_blocks(page: str) -> list[str]:
    """Python code blocks of a page, in order."""
    return [code for language, code in _BLOCK.findall(text_of(page)) if language == "python"]


def yaml_blocks(page: str) -> list[str]:
    """YAML code blocks of a page, in order."""
    return [code for language, code in _BLOCK.findall(text_of(page)) if language == "yaml"]


def typed_commands(page: str) -> list[str]:
    text = text_of(page)
    blocks = [code for language, code in _BLOCK.findall(text) if not language]
    blocks.append("\n".join(re.findall(r"^    (gpusim .*)$", _BLOCK.sub("", text), re.MULTILINE)))
    blocks += re.findall(r"\| `(gpusim \w+ [^`]+)` \|$", text, re.MULTILINE)  # last column of a table
    found = []
    for line in "\n".join(blocks).splitlines():
        command = re.split(r"\s+#", line)[0].strip()
        if command.startswith(_SHELL):
            found += [part.strip() for part in command.split("&&")]
    return found


def mentioned_commands(page: str) -> list[str]:
    prose = _BLOCK.sub("", text_of(page)).replace("\n", " ")
    commands = "run|view|render|list|check|convert|diagram|fmu|sweep|bench|doctor"
    found = re.findall(rf"`(gpusim (?:{commands})(?: [^`]*)?)`", prose)
    found = [command for command in found if not re.search(r"\b[A-Z]{3,}|\.\.\.", command)]
    # "gpusim run --out" is about an option
    needs_target = ("run", "view", "render", "check", "convert", "fmu", "sweep")
    return [c for c in found if c.split()[1] not in needs_target or not (c + " -").split()[2].startswith("-")]


def gallery_commands() -> list[str]:
    """Return the commands of the pictures of the README."""
    cells = re.findall(r"docs/gallery/(\w+)\.png\)<br>`([^`]+)`", text_of("README.md"))
    return [f"gpusim render {options} --quality high --out {scene}.png" for scene, options in cells]


def arguments(command: str) -> list[str]:
    return shlex.split(command)[1:]


_NUMBER = r"(?<![\w/^.])-?\d+\.?\d*(?:e[-+]?\d+)?"


def run_block(code: str, name: str, names: dict[str, Any]) -> None:
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        module = ast.Module([statement], [])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(module, name, "exec"), names)
        end = (statement.end_lineno or statement.lineno) - 1
        comment = lines[end][statement.end_col_offset or 0 :].partition("#")[2].partition(":")[0]
        expected = re.findall(_NUMBER, comment)
        if not ast.unparse(statement).startswith("print(") or not expected:
            continue
        numbers = re.findall(_NUMBER, printed.getvalue())
        where = f"{name}: {lines[end].strip()} printed {printed.getvalue().strip()}"
        assert len(numbers) == len(expected), where
        for number, text in zip(numbers, expected, strict=True):
            digits = len(text.partition("e")[0].partition(".")[2])
            power = int(text.partition("e")[2] or 0)
            assert float(number) == pytest.approx(float(text), abs=0.51 * 10.0 ** (power - digits)), where
