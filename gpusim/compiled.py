"""A decorator that compiles functions with numba and caches them in the folder of the compiled kernels.

numba's cache checks only the modification time of the file with the function. So a compiled function must not call
functions from other files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from gpusim.compile_cache import CompileError, cache_folder

_Function = TypeVar("_Function", bound=Callable[..., object])


def _folder() -> Path | None:
    """Return numba's cache folder, or None if no cache folder exists."""
    try:
        return cache_folder() / "numba"
    except (CompileError, OSError):
        return None


_FOLDER = _folder()
_SETTINGS: Any = numba.config


@contextmanager
def _own_cache() -> Iterator[None]:
    """Use the cache folder of gpusim for all functions that the ``with`` block decorates."""
    kept = _SETTINGS.CACHE_DIR
    if _FOLDER is not None and not kept:
        _SETTINGS.CACHE_DIR = str(_FOLDER)
    try:
        yield
    finally:
        _SETTINGS.CACHE_DIR = kept


def compiled(function: _Function, **options: Any) -> _Function:
    """Compile a function with strict IEEE 754 arithmetic, like the kernels. Division by zero gives infinity or NaN.

    ``options``: more options of ``numba.njit``.
    """
    options["error_model"] = "numpy"
    with _own_cache():
        try:
            return cast(_Function, _kept_if_possible(numba.njit(cache=True, **options)(function)))
        except RuntimeError:  # numba found no writable folder
            _warn_once()
            return cast(_Function, numba.njit(**options)(function))


def _kept_if_possible(dispatcher: Any) -> Any:
    """Return the dispatcher with a cache that ignores write errors, such as a full disk."""
    kept = getattr(dispatcher, "_cache", None)
    save = getattr(kept, "save_overload", None)
    if kept is not None and save is not None:

        def try_to_save(*what: Any) -> None:
            with suppress(OSError):
                save(*what)

        kept.save_overload = try_to_save
    return dispatcher


@cache
def _warn_once() -> None:
    warnings.warn(
        "no folder for compiled loops can be written, so each process compiles the loops that color "
        "constraints again, which takes some seconds; set GPUSIM_CACHE to a folder that can be written",
        stacklevel=3,
    )
