"""Reader of model files of other programs. The suffix selects the importer."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers import ImportReport, load_urdf

_LOAD_MODULE = "gpusim.importers.load"
_URDF = (".urdf",)
_ALL = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world", ".usd", ".usda", ".usdc", ".usdz")
SUFFIXES = _ALL if importlib.util.find_spec(_LOAD_MODULE) is not None else _URDF
"""Suffixes of the files that can be read."""


def load_model(path: str | Path, **options: Any) -> tuple[ModelBuilder, ImportReport]:
    """Read a model file.

    Args:
        path: path of the file.
        options: keyword arguments of the importer, such as ``fixed_base``.

    Returns:
        The builder and the report of the import.

    Raises:
        ModelError: gpusim cannot read this type of file, or the importer raised an error.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ModelError(
            f"model file {str(path)!r} is not a {', '.join(SUFFIXES)} file; give a file of one of these types"
        )
    if SUFFIXES is _ALL:
        load = importlib.import_module(_LOAD_MODULE).load
    else:
        load = load_urdf
    try:
        result: tuple[ModelBuilder, ImportReport] = load(Path(path), **options)
    except TypeError as error:  # only load_urdf raises TypeError, because gpusim.load checks argument names
        if "unexpected keyword" not in str(error):
            raise
        raise ModelError(f"model file {str(path)!r}: {error}; drop the option") from None
    return result
