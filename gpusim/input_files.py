"""Readers of text files with a size limit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MAX_TEXT = 1 << 28
"""Maximum size of a text file in bytes."""


def bounded_text(path: str | os.PathLike[str]) -> str:
    """Return the content of a UTF-8 text file.

    Raises:
        OSError: as in :func:`bounded_bytes`.
        UnicodeDecodeError: the file is not UTF-8 text.
    """
    return bounded_bytes(path).decode("utf-8")


def bounded_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a text file in any encoding.

    Raises:
        OSError: the file is not readable, has more than MAX_TEXT bytes, or is a pipe or a device.
    """
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_TEXT + 1)
    except ValueError:
        raise OSError(errno.EINVAL, "its name has a NUL character", str(path)) from None
    if len(data) > MAX_TEXT:
        raise OSError(errno.EFBIG, f"it has more than {MAX_TEXT >> 20} MiB", str(path))
    return data


def is_xml_text(given: object) -> bool:
    """Return True for XML text and False for a path."""
    return isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<")
