"""Recordings that grow on the disk, so that memory does not grow with the run.

During recording a run is a growing file ``NAME.npz.part``: a line of JSON (names, number types and shapes of the
arrays), then blocks. A block is the number of its samples (int64), then the samples of each array. Closing turns the
file into ``NAME.npz``, whole or not at all. :func:`load_stream` reads an unfinished file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from gpusim.errors import ModelError
from gpusim.output_files import atomic_file, check_output_file, named_errors, part_of, put_aside
from gpusim.recording.recorder import Recorder, Recording
from gpusim.typing import Array

FORMAT = "gpusim signals 1"
_MEMORY, _MOST = 1 << 22, 1024
"""Maximum buffered bytes and samples."""
_COUNT = np.dtype("<i8")
_LONGEST_HEADER = 1 << 26


class StreamRecorder(Recorder):
    """Sampler of signals into a growing file. :meth:`close` gives it its final name.

    Args:
        sim: the simulation.
        signals: names of the signals to record; duplicates count once.
        path: of the recording, ends in .npz.

    Attributes:
        rescued: new path of an unfinished file from an earlier run; None if there was none.

    Raises:
        UnknownNameError: a signal that the simulation does not have.
        ModelError: the path does not end in .npz, or cannot be written.
    """

    def __init__(self, sim: Any, signals: Iterable[str], path: str | os.PathLike[str]) -> None:
        names, known = list(signals), sim.signals()
        numbers = 1 + sim.num_worlds * sum(math.prod(known[name].shape) for name in names if name in known)
        super().__init__(sim, names, capacity=min(max(_MEMORY // (8 * numbers), 1), _MOST))
        self.path = check_output_file(path, (".npz",), "recording")
        self._part, self._arrays, self._written = part_of(self.path), list[_Array](), 0
        self.rescued = put_aside(self._part)
        with named_errors(self._part):
            self._stream = open(self._part, "w+b", buffering=0)  # noqa: SIM115 (open until close)

    def __len__(self) -> int:
        return self._written + self._count

    def _make_room(self) -> None:
        """Write a block and start the next one."""
        buffers = {"time": self._time, **{name: b for name, b in self._buffers.items() if b is not None}}
        with named_errors(self._part):
            if not self._arrays:
                self._arrays = [_Array(name, b.dtype, b.shape[1:]) for name, b in buffers.items()]
                _write(self._stream, _header(self._arrays))
            _write(self._stream, np.array(self._count, _COUNT).tobytes())
            for buffer in buffers.values():
                _write(self._stream, buffer[: self._count].data.cast("B"))
        self._written, self._count = self._written + self._count, 0

    def close(self) -> None:
        """Rename the recording to its final name. A second call does nothing. Without samples no file remains.

        Raises:
            OSError: the disk fails; the growing file keeps what was recorded.
        """
        if self._stream.closed:
            return
        with self._stream:
            if self._count:
                self._make_room()
            if self._written:
                write_archive(self._stream, self.path)
        self._part.unlink()

    def __enter__(self) -> StreamRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):  # a full disk has no room for a second copy
            self._stream.close()
        else:
            self.close()


@dataclass(frozen=True)
class _Array:
    """One array of a growing file: its name, and type and shape of a sample."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Size of a sample, bytes."""
        return self.dtype.itemsize * math.prod(self.shape)


def _write(stream: Any, data: bytes | memoryview) -> None:
    """Write all data: an unbuffered file may accept less at once."""
    view = memoryview(data)
    while len(view):
        view = view[stream.write(view) :]


def _header(arrays: Iterable[_Array]) -> bytes:
    listed = [[a.name, a.dtype.str, list(a.shape)] for a in arrays]
    return json.dumps({"format": FORMAT, "arrays": listed}).encode() + b"\n"


def _read_header(stream: BinaryIO) -> list[_Array]:
    values = json.loads(stream.readline(_LONGEST_HEADER))
    if values["format"] != FORMAT:
        raise ValueError(values["format"])
    arrays = [_Array(str(name), np.dtype(kind), tuple(map(int, shape))) for name, kind, shape in values["arrays"]]
    if any(a.dtype.hasobject or min(a.shape, default=0) < 0 for a in arrays):
        raise ValueError("arrays")
    return arrays


def _blocks(stream: BinaryIO, arrays: list[_Array]) -> Iterator[tuple[int, int]]:
    """Yield the position of the first array and the number of samples of every whole block."""
    size, end = sum(a.size for a in arrays), stream.seek(0, os.SEEK_END)
    stream.seek(0)
    stream.readline(_LONGEST_HEADER)
    start = stream.tell()
    while start + _COUNT.itemsize <= end:
        stream.seek(start)
        count = int(np.frombuffer(stream.read(_COUNT.itemsize), _COUNT)[0])
        first = start + _COUNT.itemsize
        start = first + count * size
        if count < 1 or start > end:  # the last block may be incomplete
            return
        yield first, count


def _pieces(stream: BinaryIO, arrays: list[_Array], which: int) -> Iterator[bytes]:
    """Yield the samples of one array, block by block."""
    before = sum(a.size for a in arrays[:which])
    for first, count in _blocks(stream, arrays):
        stream.seek(first + count * before)
        yield stream.read(count * arrays[which].size)


def write_archive(stream: BinaryIO, path: str | os.PathLike[str]) -> None:
    """Write the arrays of a growing file as NPZ, one block of one array in memory at a time.

    Raises:
        OSError: the disk fails while writing.
    """
    stream.seek(0)
    arrays = _read_header(stream)
    samples = sum(count for _, count in _blocks(stream, arrays))
    with atomic_file(path) as file, ZipFile(file, "w", ZIP_STORED) as archive:
        for which, array in enumerate(arrays):
            shape = (samples, *array.shape)
            head = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
            with archive.open(f"{array.name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array_header_1_0(entry, head)
                for piece in _pieces(stream, arrays, which):
                    entry.write(piece)


def load_stream(path: str | os.PathLike[str]) -> Recording:
    """Read a growing file, NAME.npz.part, with all its whole blocks.

    Raises:
        ModelError: there is no such file, or it is not a recording of signals.
    """
    file = Path(path)
    try:
        with open(file, "rb") as stream:
            arrays = _read_header(stream)
            found: dict[str, Array] = {}
            for which, array in enumerate(arrays):
                flat = np.frombuffer(b"".join(_pieces(stream, arrays, which)), array.dtype)
                found[array.name] = flat.reshape(-1, *array.shape)
            return Recording(found.pop("time"), found)
    except (OSError, ValueError, TypeError, LookupError, RecursionError, OverflowError, MemoryError) as error:
        raise ModelError(
            f"recording {str(path)!r} cannot be read ({error}); give a file that 'gpusim run --out' has left"
        ) from error
