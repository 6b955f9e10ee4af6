"""Read the CUDA C++ sources of the package, and select the sources for a compilation."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

from gpusim.compile_cache import CompileError
from gpusim.errors import unknown_name

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # Python 3.11

SUFFIXES = (".cu", ".cuh")

_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', re.MULTILINE)
_COMPUTED_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+[A-Za-z_]", re.MULTILINE)
_BY_REFERENCE = re.compile(r"(?<=\bconst )World& w\b")
_DEFINE_NAME = re.compile(r"[A-Za-z_]\w*")


def kernel_sources() -> dict[str, str]:
    """Return the texts of all sources in ``gpusim.cuda_kernels`` by path, e.g. ``"actuators/spring.cuh"``."""
    return dict(sorted(_walk(resources.files("gpusim.cuda_kernels"), "")))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.name.endswith(SUFFIXES):
            yield prefix + entry.name, entry.read_text(encoding="utf-8")
        elif entry.is_dir() and not entry.name.startswith(("_", ".")):
            yield from _walk(entry, f"{prefix}{entry.name}/")


def reachable_sources(main: str, generated: dict[str, str]) -> dict[str, str]:
    """Return ``main`` and all sources that it includes, with include paths relative to the root folder.

    Args:
        main: name of the source to compile.
        generated: texts of generated sources by name. A generated source replaces a package source with the same name.

    Raises:
        UnknownNameError: ``main`` does not exist.
        CompileError: the name of a generated source is not a plain relative path.
    """
    for name in generated:
        if name != posixpath.normpath(name) or name.startswith(("/", "..")) or "\\" in name or ":" in name:
            raise CompileError(f"generated source {name!r} needs a plain relative name such as 'layout.cuh'")
    known = kernel_sources() | generated
    if main not in known:
        raise unknown_name("kernel source", main, known)
    reached: dict[str, str] = {}
    todo = [main]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached[name], targets = _resolve(name, known)
        todo += known if _COMPUTED_INCLUDE.search(reached[name]) else targets
    return dict(sorted(reached.items()))


def gpu_sources(main: str, generated: dict[str, str]) -> dict[str, str]:
    """Return the sources of :func:`reachable_sources` for a GPU. Their functions take a ``World`` by value."""
    return {name: _BY_REFERENCE.sub("World w", text) for name, text in reachable_sources(main, generated).items()}


def _resolve(name: str, known: dict[str, str]) -> tuple[str, list[str]]:
    """Return the text of a source with include paths relative to the root folder."""
    targets = []

    def rooted(match: re.Match[str]) -> str:
        sibling = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
        for target in (sibling, match[2]):
            if target in known:
                targets.append(target)
                return f'{match[1]}"{target}"'
        return match[0]

    return _INCLUDE.sub(rooted, known[name]), targets


def define_flags(defines: dict[str, str]) -> list[str]:
    """Return the ``-D`` flags of preprocessor macros, sorted by name.

    Raises:
        CompileError: the name of a macro is not an identifier, or its value has several lines.
    """
    for name, value in defines.items():
        if not _DEFINE_NAME.fullmatch(name) or "\n" in value:
            raise CompileError(f"define {name!r} = {value!r} needs an identifier for a name and a value of one line")
    return [f"-D{name}={value}" for name, value in sorted(defines.items())]
