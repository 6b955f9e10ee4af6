"""Output files: check a path before a run starts, and write a file completely or not at all."""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gpusim.errors import ModelError

fcntl: Any = None
with suppress(ImportError):  # Windows has no fcntl, and cannot rename open files
    import fcntl

PART = ".part"
"""Suffix that the program appends to the file name of an unfinished recording."""
_LONGEST_NAME = 240
"""Maximum length of a file name in bytes. File systems allow 255 bytes, including the suffix PART."""
_numbers = itertools.count()


def check_output_file(path: str | os.PathLike[str], suffixes: Sequence[str], name: str = "output file") -> Path:
    """Check an output path before a long simulation starts.

    Args:
        path: the output file.
        suffixes: the allowed suffixes, each with its dot.
        name: name of the file in errors, e.g. the command-line option.

    Returns:
        The path.

    Raises:
        ModelError: ``path`` is not a file path, the suffix is not in ``suffixes``, the name is too long, or the folder
            of the file is missing or read-only.
    """
    if not isinstance(path, str | os.PathLike):
        raise ModelError(f"{name}: {path!r} is not a path; give e.g. {f'run{suffixes[0]}'!r}")
    file = Path(path)
    if file.suffix.lower() not in suffixes:
        stem = "run" if not file.suffix and file.name.startswith(".") else file.stem  # ".png" has no suffix
        example = f"{stem or 'run'}{suffixes[0]}"
        raise ModelError(f"{name}: {str(file)!r} must end in {' or '.join(suffixes)}; give e.g. {example!r}")
    folder = file.parent
    try:
        if "\0" in str(file):
            raise ModelError(f"{name}: {str(file)!r} contains a NUL character; remove it")
        if (size := len(os.fsencode(file.name))) > _LONGEST_NAME:
            raise ModelError(f"{name}: {file.name[:40]!r}... has {size} bytes; give a name of at most {_LONGEST_NAME}")
        _check_target(file, folder, name)
        # Permission bits are not enough (read-only mounts, quotas), so write a file.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except ModelError:
        raise
    except (OSError, ValueError) as error:  # ValueError: characters that are invalid in file names
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{name}: the folder {str(folder)!r} is not writable ({reason}); name another one") from error
    return file


def check_apart(files: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raise a ModelError if two output paths are the same file.

    Args:
        files: name of each file in errors (e.g. the command-line option) -> path.

    Raises:
        ModelError: two paths are the same file.
    """
    names: dict[str, str] = {}
    for name, path in files.items():
        if path is not None and (first := names.setdefault(os.path.realpath(path), name)) != name:
            raise ModelError(f"{first} and {name} are the same file, {str(path)!r}; give another name")


def _check_target(file: Path, folder: Path, name: str) -> None:
    if file.is_dir():
        raise ModelError(f"{name}: {str(file)!r} is a folder, not a file; name a file inside it")
    if file.exists() and not file.is_file():
        raise ModelError(f"{name}: {str(file)!r} is a pipe or a device; name a file")
    for needed in (folder, Path(os.path.realpath(file)).parent):  # a link may lead to another folder
        if not needed.is_dir():
            raise ModelError(f"{name}: the folder {str(needed)!r} does not exist; make it first or name another one")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that appears at ``path`` only when the ``with`` block ends without an error.

    Readers never see an incomplete file. If the program crashes, an older file at ``path`` remains unchanged. During
    the block, the data is in a hidden temporary file in the same folder.

    Raises:
        OSError: the folder is not writable. The error message contains the path.
    """
    target = Path(os.path.realpath(path))  # write to the target of a link, and keep the link
    temporary = temporary_of(target)
    try:
        # Use open(), because the finished file would keep the private mode of mkstemp().
        with named_errors(path):
            with open(temporary, "wb") as stream:
                yield stream
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def temporary_of(target: Path, suffix: str = ".tmp") -> Path:
    """Return the path of a new hidden temporary file in the folder of ``target``."""
    return target.with_name(f".gpusim.{os.getpid()}.{next(_numbers)}{suffix}")


@contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within a ``with`` block, set the file name of each OSError from the disk to ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def part_of(path: Path) -> Path:
    """Return the path of an unfinished recording: ``path`` plus ".part"."""
    return path.with_name(path.name + PART)


def locked(part: Path) -> BinaryIO | None:
    """Lock the ``.part`` file of a recording. The lock lasts until the returned file is closed or the process ends.

    If ``part`` is a folder, lock the layout file of the recording, which is the last file in sorted order.

    Returns:
        The open file. None if the file is missing, or if the operating system or file system does not support locks.

    Raises:
        ModelError: a recorder of this or another process holds the lock.
    """
    if fcntl is None:
        return None
    try:
        stream = open(max(part.iterdir(), default=part) if part.is_dir() else part, "rb")  # noqa: SIM115
    except OSError:
        return None
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        rule = f"recording {str(part)!r}: another recorder still writes it"
        raise ModelError(f"{rule}; close that one first") from None
    except OSError:
        stream.close()
        return None
    return stream


def put_aside(part: Path) -> Path | None:
    """Rename the file of an aborted recording from NAME.SUFFIX.part to NAME-broken.SUFFIX.part.

    Returns:
        The new path, or None if the file is missing or empty.

    Raises:
        ModelError: a recorder still writes the file.
    """
    if not (any(part.iterdir()) if part.is_dir() else part.is_file() and part.stat().st_size):
        return None
    if lock := locked(part):
        lock.close()
    whole, number = Path(part.name.removesuffix(PART)), 1
    while True:
        kept = part.with_name(f"{whole.stem}-broken{'' if number == 1 else f'-{number}'}{whole.suffix}{PART}")
        if not kept.exists():
            return part.rename(kept)
        number += 1


def finite_json(value: Any) -> Any:
    """Return ``value`` with None instead of infinite numbers and NaN, which JSON does not support."""
    if isinstance(value, Mapping):
        return {key: finite_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
