"""Input of the MJCF importer: compilation of a path, text, MjModel or MjSpec to a MuJoCo model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from gpusim.errors import ModelError
from gpusim.input_files import is_xml_text

_FILE_NAMES = re.compile(rb"""\b(?:file|file(?:right|left|up|down|front|back))\s*=\s*["']([^"']+)["']""")
_MISSING = re.compile("pening file|resource not found")
"""Phrases that identify MuJoCo's error messages about missing files."""
_MAX_ROUNDS = 10
"""Maximum depth of nested includes in the search for missing files."""


@dataclass(frozen=True)
class Compiled:
    """A compiled model.

    Attributes:
        mujoco: the Python package ``mujoco``.
        model: the MjModel.
        source: name of the file, or a short description of other input.
        warnings: warnings of MuJoCo's compiler.
    """

    mujoco: ModuleType
    model: Any
    source: str
    warnings: tuple[str, ...] = ()


def import_mujoco() -> ModuleType:
    """Return the package ``mujoco``.

    Raises:
        ModelError: the package is not installed.
    """
    try:
        import mujoco
    except ImportError:
        raise ModelError('reading MJCF needs mujoco, which is not installed; pip install "gpusim[mjcf]"') from None
    module: ModuleType = mujoco
    return module


def compile_model(
    source: Any, assets: Mapping[str, bytes] | None = None, asset_dirs: Sequence[str | os.PathLike[str]] = ()
) -> Compiled:
    """Compile a model with MuJoCo's own compiler.

    Args:
        source: path of a file, MJCF text (starts with "<"), an MjSpec, or an MjModel.
        assets: file name -> content (bytes). Files in memory take precedence over files on disk.
        asset_dirs: additional folders to search for files.

    Raises:
        ModelError: mujoco or the file is missing, or the compiler rejects the model. The message quotes the error of
            the compiler.
    """
    mujoco = import_mujoco()
    if isinstance(source, mujoco.MjModel):
        return Compiled(mujoco, source, "MjModel")
    warnings: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: warnings.append(" ".join(text.split())))  # avoids the file MUJOCO_LOG.TXT
    try:
        model, name = _compiled(mujoco, source, assets, asset_dirs)
    finally:
        mujoco.set_mju_user_warning(before)
    return Compiled(mujoco, model, name, tuple(warnings))


def _compiled(
    mujoco: ModuleType, source: Any, assets: Mapping[str, bytes] | None, asset_dirs: Sequence[str | os.PathLike[str]]
) -> tuple[Any, str]:
    """Return the compiled model and the name of its source."""
    spec = getattr(mujoco, "MjSpec", None)
    if spec is not None and isinstance(source, spec):
        return _call_compiler("MjSpec", source.compile), "MjSpec"
    if not isinstance(source, str | os.PathLike) or not str(source).strip():
        raise ModelError(f"load_mjcf: {source!r} is not an MJCF model; give a path, MJCF text, an MjModel or an MjSpec")
    is_text = is_xml_text(source)
    name = "MJCF text" if is_text else Path(source).name
    if not is_text and not os.path.isfile(source):  # Path.is_file raises an error for very long names
        raise ModelError(f"load_mjcf: there is no file {str(source)!r}; give the path of an MJCF file")
    files = dict(_checked_assets(assets))
    folders = [asset_dirs] if isinstance(asset_dirs, str | os.PathLike) else list(asset_dirs)
    content = str(source).lstrip("\ufeff \t\r\n") if is_text else str(source)
    text = content.encode() if is_text else Path(source).read_bytes()

    root = re.search(rb"<\s*([A-Za-z_][\w:.-]*)", re.sub(rb"<\?.*?\?>|<!--.*?-->", b"", text, flags=re.DOTALL))
    if root is not None and root.group(1) == b"robot":
        raise ModelError(f"load_mjcf: {name} has the root element <robot>, so it is URDF; use load_urdf")

    def compiled() -> Any:
        if is_text:
            return mujoco.MjModel.from_xml_string(content, files)
        return mujoco.MjModel.from_xml_path(content, files)

    for _ in range(_MAX_ROUNDS):
        try:
            return compiled(), name
        except (ValueError, RuntimeError) as error:
            if not _MISSING.search(str(error)):
                break
        loaded = {key: data for key, data in _search(text, folders) if key not in files}
        if not loaded:
            break
        files |= loaded
        text = b"\n".join([text, *(data for key, data in loaded.items() if key.lower().endswith(".xml"))])
    return _call_compiler(name, compiled), name


def model_name(model: Any) -> str:
    """Return the name of a compiled model: the first entry in MuJoCo's table of names."""
    return bytes(model.names).split(b"\0", 1)[0].decode(errors="replace")


def _checked_assets(assets: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
    if assets is None:
        return {}
    if not isinstance(assets, Mapping) or not all(isinstance(data, bytes) for data in assets.values()):
        raise ModelError("load_mjcf: assets is not a dictionary of bytes; give the contents of files by name")
    return assets


def _search(text: bytes, folders: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content) of each file in ``folders`` that the MJCF text ``text`` refers to."""
    names = {Path(match.decode(errors="replace")) for match in _FILE_NAMES.findall(text)}
    if not names or not folders:
        return
    by_name: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            by_name.setdefault(path.name, []).append(path)
    for file in names:
        matches = [path for path in by_name.get(file.name, []) if path.is_file()]
        if matches:
            yield file.name, max(matches, key=lambda path: _common_tail(path, file)).read_bytes()


def _common_tail(path: Path, file: Path) -> int:
    """Return the number of equal folder or file names at the end of two paths."""
    count = 0
    for a, b in zip(reversed(path.parts), reversed(file.parts), strict=False):
        if a != b:
            break
        count += 1
    return count


def _call_compiler(name: str, compiled: Any) -> Any:
    """Return ``compiled()``. Convert errors of MuJoCo's compiler to a ModelError."""
    try:
        return compiled()
    except (ValueError, RuntimeError) as error:
        text = ", ".join(line.strip(" .,") for line in str(error).splitlines() if line.strip())
        text = re.sub(r"^(?:XML Error: |Error: |ParseXML: )+", "", text)
        fix = "give its folder in asset_dirs, or its content in assets" if _MISSING.search(text) else "fix the model"
        raise ModelError(f"{name}: MuJoCo's compiler rejects the model: {text}; {fix}") from None
