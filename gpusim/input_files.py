"""Input files of text, read within bounds."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MOST_TEXT = 1 << 28
"""Bytes of a file of text, at most: hours of an operator's commands take a hundredth of it."""


def bounded_text(path: str | os.PathLike[str]) -> str:
    """Read a file of text in UTF-8.

    Raises:
        OSError: it cannot be read, is a pipe or a device, which may never end, or has more than MOST_TEXT bytes.
        UnicodeDecodeError: it is no text.
    """
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    with open(file, "rb") as stream:
        data = stream.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise OSError(errno.EFBIG, f"it has more than {MOST_TEXT >> 20} MiB", str(path))
    return data.decode("utf-8")
