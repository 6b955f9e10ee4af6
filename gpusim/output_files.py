"""Output files: checked before a run starts, and written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gpusim.errors import ModelError


def check_output_file(path: str | os.PathLike[str], suffixes: Sequence[str], name: str = "output file") -> Path:
    """Find out, before hours of simulation, whether ``path`` can be written at their end.

    Args:
        path: the file that will be written.
        suffixes: the endings that are allowed, each with its dot.
        name: what the error calls the file, e.g. the command-line option.

    Returns:
        The path.

    Raises:
        ModelError: the ending is none of ``suffixes``, the path is a folder, or its folder is missing or read-only.
    """
    file = Path(path)
    if file.suffix.lower() not in suffixes:
        stem = "run" if not file.suffix and file.name.startswith(".") else file.stem  # ".png" has no ending
        example = f"{stem or 'run'}{suffixes[0]}"
        raise ModelError(f"{name}: {str(file)!r} must end in {' or '.join(suffixes)}; give e.g. {example!r}")
    if file.is_dir():
        raise ModelError(f"{name}: {str(file)!r} is a folder, not a file; name a file inside it")
    folder = file.parent
    if not folder.is_dir():
        raise ModelError(f"{name}: the folder {str(folder)!r} does not exist; make it first or name another one")
    try:
        # permission bits don't tell all (read-only mounts, quotas): only writing does
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"{name}: the folder {str(folder)!r} is not writable ({reason}); name another one") from error
    return file


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that appears under ``path`` only when the block ends without an error.

    Until then the bytes lie in a hidden temporary file in the same folder, so that a reader never sees half a file
    and an older file of the same name survives a crash.

    Raises:
        OSError: the folder cannot be written.
    """
    target = Path(os.path.realpath(path))  # follow a link rather than replace it
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # open() rather than mkstemp(), whose private mode the finished file would keep
        with open(temporary, "wb") as stream:
            yield stream
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
