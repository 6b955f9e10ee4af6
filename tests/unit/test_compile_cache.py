from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from gpusim.compile_cache import BrokenCompilerError, cached


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
