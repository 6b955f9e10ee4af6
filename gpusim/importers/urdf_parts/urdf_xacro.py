"""Expansion of xacro files with the PyPI package ``xacro``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpusim.errors import ModelError, unknown_name
from gpusim.importers.mesh_search import Search
from gpusim.importers.urdf_parts.xacro_expressions import limited_expressions


def expand(
    path_or_text: str | os.PathLike[str], mappings: Mapping[str, str] | None, search: Search, is_text: bool
) -> str:
    """Return the URDF text of a xacro file or text.

    Args:
        path_or_text: path, or text.
        mappings: values of <xacro:arg> by name.
        search: search path for the packages of ``$(find package)``.
        is_text: True for text, False for a path.

    Raises:
        ModelError: xacro is missing, the template has an error, or a package is not found.
        UnknownNameError: ``mappings`` contains a name that is not an argument of the template.
    """
    try:
        import xacro
    except ImportError:
        raise ModelError('reading xacro needs xacro, which is not installed; pip install "gpusim[xacro]"') from None
    name = "text" if is_text else f"file {os.fspath(path_or_text)!r}"
    missing: list[str] = []
    arguments = _Arguments({str(key): str(value) for key, value in (mappings or {}).items()})
    try:
        with _packages_of(search, missing), limited_expressions(xacro):
            document = _processed(xacro, path_or_text, arguments, is_text, search.folder)
    except Exception as error:  # xacro does not catch errors in expressions
        if missing:
            text = f"no package {missing[0]!r} for $(find); give its folder with asset_dirs=[...]"
            raise ModelError(f"xacro {name}: {text}") from None
        text = " ".join(str(error).split()) or type(error).__name__
        hint = "fix the template, or give mappings={...} for its arguments"
        raise ModelError(f"xacro {name}: {text}; {hint}") from None
    for argument in mappings or {}:
        if argument not in arguments.known:
            raise unknown_name(f"argument of the xacro {name},", argument, arguments.known)
    return str(document.documentElement.toxml())


class _Arguments(dict[str, str]):
    """Arguments of a xacro template."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.known: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        self.known[str(name)] = None
        return super().__contains__(name)


def _processed(xacro: Any, path_or_text: Any, mappings: dict[str, str], is_text: bool, folder: Path) -> Any:
    if not is_text:
        return xacro.process_file(os.fspath(path_or_text), mappings=mappings)
    document = xacro.parse(str(path_or_text).lstrip("\ufeff \t\r\n"))
    xacro.init_stacks(str(folder / "text.xacro"))
    xacro.process_doc(document, mappings=mappings)
    return document


@contextmanager
def _packages_of(search: Search, missing: list[str]) -> Iterator[None]:
    """Let ``$(find package)`` use the search path ``search``. Add the names of missing packages to ``missing``."""
    from xacro import substitution_args

    def find(package: str) -> str:
        folder = search.find(f"package://{package}/")
        if folder is not None and folder.is_dir():
            return str(folder)
        try:
            return str(installed(package))
        except Exception:
            missing.append(package)
            raise

    installed: Callable[[str], str] = substitution_args._eval_find
    table = getattr(substitution_args, "_eval_dict", {})
    substitution_args._eval_find = find
    old = table.get("find")
    if old is not None:
        table["find"] = find
    try:
        yield
    finally:
        substitution_args._eval_find = installed
        if old is not None:
            table["find"] = old
