"""Writers append blocks of samples to the unfinished file of a recording (``NAME.npz.part``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gpusim.recording.layout import Block, Layout
from gpusim.recording.samples import Recording

if TYPE_CHECKING:
    from gpusim.model.model import Model


class Writer(ABC):
    """Writer of one file format.

    After :meth:`write` returns, :meth:`read` can read the block, even if the process is killed.

    Args:
        part: path of the ``.part`` file (or folder), or the address of a viewer.
        layout: layout of the signals in a sample.
        model: model with the shapes of the bodies.

    Attributes:
        poses: True if the format stores poses and shapes of bodies.
    """

    poses: ClassVar[bool] = False

    @classmethod  # noqa: B027 (most formats need no library)
    def prepare(cls) -> None:
        """Check that the library of the format is installed.

        Raises:
            ModelError: the library is not installed.
        """

    @abstractmethod
    def __init__(self, part: Path | str, layout: Layout, model: Model | None) -> None: ...

    @abstractmethod
    def write(self, block: Block) -> None:
        """Append a block of samples."""

    @abstractmethod
    def close(self) -> None:
        """Complete the ``.part`` file and close it. A second call does nothing."""

    @staticmethod
    @abstractmethod
    def finish(part: Path, path: Path) -> None:
        """Convert a closed or interrupted ``.part`` file to the final file."""

    @staticmethod
    @abstractmethod
    def read(path: Path) -> Recording:
        """Read a final file, or all complete blocks of a ``.part`` file."""


Reading = (OSError, ValueError, TypeError, LookupError, RecursionError, OverflowError, MemoryError, EOFError)
"""Exceptions that can occur when reading a damaged file or a file of another format."""


def write_all(stream: Any, data: bytes | memoryview) -> None:
    """Write all data to an unbuffered file, in several calls if necessary."""
    view = memoryview(data)
    while len(view):
        view = view[stream.write(view) :]
