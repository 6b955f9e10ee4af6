from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from gpusim.compile_cache import BrokenCompilerError, cached
from tests.message_snapshot import naming


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free some space"),
        (OSError(errno.EMFILE, "Too many open files", "{cache}/cuda/x"), "can't be compiled: [Errno 24] Too many"),
        (PermissionError(errno.EACCES, "Permission denied", "/usr/bin/g++"), "denied: '/usr/bin/g++'; correct"),
        (PermissionError(errno.EACCES, "Permission denied", "{cache}/cuda/x"), "set GPUSIM_CACHE to a folder that can"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error; set GPUSIM_CACHE to a folder that can"),
    ],
)
def test_errors_of_the_system_name_their_fix(cache: Path, error: OSError, reported: str) -> None:
    def make(scratch: Path) -> bytes:
        if error.filename:
            error.filename = error.filename.format(cache=cache)
        raise error

    with pytest.raises(BrokenCompilerError, match=re.escape(reported)):
        cached("cuda/k.cubin", make)


def test_loops_are_compiled_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusim import compiled

    original = compiled.numba.njit

    def njit(cache: bool = False, **options):
        def decorate(function):
            if cache:
                raise RuntimeError(f"cannot cache function {function.__name__!r}: no locator available")
            return original(function, **options)

        return decorate

    monkeypatch.setattr(compiled.numba, "njit", njit)
    compiled._warn_once.cache_clear()
    with pytest.warns(UserWarning, match=naming("GPUSIM_CACHE")):
        twice = compiled.compiled(lambda x: 2.0 * x)
        thrice = compiled.compiled(lambda x: 3.0 * x)
    assert (twice(2.0), thrice(2.0)) == (4.0, 6.0)
    compiled._warn_once.cache_clear()
