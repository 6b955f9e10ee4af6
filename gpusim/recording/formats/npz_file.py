"""NPZ files: ``time`` and one array for each signal.

During the recording, the file NAME.npz.part contains one line of JSON (the layout), followed by blocks of samples. Each
block has the number of samples (int64), the times (float64), and the values of each signal.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile

import numpy as np

from gpusim.output_files import atomic_file
from gpusim.recording.formats.writer import Writer, write_all
from gpusim.recording.layout import Block, Layout, joined
from gpusim.recording.samples import Recording, load_archive
from gpusim.typing import Array

lzma: Any = None
with suppress(ImportError):  # some builds of Python lack lzma
    import lzma

_COUNT = np.dtype("<i8")
_LONGEST_HEADER = 1 << 26


class NpzWriter(Writer):
    """Writer of NPZ files."""

    def __init__(self, part: Path | str, layout: Layout, model: Any = None) -> None:
        self._layout = layout
        self._stream = open(part, "wb", buffering=0)  # noqa: SIM115 (open until close)
        write_all(self._stream, layout.to_json().encode() + b"\n")

    def write(self, block: Block) -> None:
        """Append a block of samples."""
        write_all(self._stream, np.array(len(block.time), _COUNT).tobytes())
        write_all(self._stream, block.time.tobytes())
        for at in self._layout.slices.values():
            write_all(self._stream, np.ascontiguousarray(block.values[:, :, at]).data.cast("B"))

    def close(self) -> None:
        """Close the ``.part`` file."""
        self._stream.close()

    @staticmethod
    def finish(part: Path, path: Path) -> None:
        """Convert a ``.part`` file to NPZ. Only one block of one array is in memory at a time."""
        with open(part, "rb") as stream:
            growing = _Growing(stream)
            with atomic_file(path) as file, _archive(file) as archive:
                for name, dtype, shape in growing.arrays:
                    head = {"descr": dtype.str, "fortran_order": False, "shape": (growing.samples, *shape)}
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        if lzma:
                            entry._compressor = _Lzma()  # type: ignore[attr-defined]
                        np.lib.format.write_array_header_1_0(entry, head)
                        for piece in growing.pieces(name):
                            entry.write(piece)
        part.unlink()

    @staticmethod
    def read(path: Path) -> Recording:
        """Read an NPZ file, or the complete blocks of a ``.part`` file."""
        with open(path, "rb") as stream:
            if stream.read(2) == b"PK" or not path.name.endswith(".part"):
                return load_archive(path)
            growing = _Growing(stream)
            found = {
                name: np.frombuffer(b"".join(growing.pieces(name)), dtype).reshape(-1, *shape)
                for name, dtype, shape in growing.arrays
            }
        return Recording(found.pop("time"), found)


def _archive(file: BinaryIO) -> ZipFile:
    return ZipFile(file, "w", ZIP_LZMA) if lzma else ZipFile(file, "w", ZIP_DEFLATED, compresslevel=1)


class _Lzma:
    """Compressor of one ZIP entry, which is faster than the LZMA compressor of zipfile."""

    _LC, _LP, _PB, _WINDOW = 0, 2, 2, 1 << 18

    def __init__(self) -> None:
        sizes = {"lc": self._LC, "lp": self._LP, "pb": self._PB, "dict_size": self._WINDOW}
        filters = [{"id": lzma.FILTER_LZMA1, "preset": 0, **sizes}]
        self._compressor = lzma.LZMACompressor(lzma.FORMAT_RAW, filters=filters)
        properties = (self._PB * 5 + self._LP) * 9 + self._LC
        self._head = struct.pack("<BBHBI", 9, 4, 5, properties, self._WINDOW)  # as in the ZIP specification, 5.8.8

    def compress(self, data: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._compressor.compress(data))

    def flush(self) -> bytes:
        return self._head + bytes(self._compressor.flush())


class _Growing:
    """Reader of the ``.part`` file of an NPZ recording.

    Attributes:
        arrays: (name, data type, shape of one sample) of each array.
        samples: number of samples in complete blocks.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        stream.seek(0)
        layout = Layout.from_json(stream.readline(_LONGEST_HEADER))
        dtype, worlds = np.dtype(layout.dtype), len(layout.worlds)
        self.arrays: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [("time", np.dtype("<f8"), ())]
        self.arrays += [(name, dtype, (worlds, *shape)) for name, shape in layout.shapes.items()]
        self._sizes = {name: kind.itemsize * int(np.prod(shape, dtype=float)) for name, kind, shape in self.arrays}
        self._blocks = list(self._find())
        self.samples = sum(count for _, count in self._blocks)

    def _find(self) -> Iterator[tuple[int, int]]:
        """Yield (file position of the first array, number of samples) for each complete block."""
        size, start = sum(self._sizes.values()), self._stream.tell()
        end = self._stream.seek(0, os.SEEK_END)
        while start + _COUNT.itemsize <= end:
            self._stream.seek(start)
            count = int(np.frombuffer(self._stream.read(_COUNT.itemsize), _COUNT)[0])
            first = start + _COUNT.itemsize
            start = first + count * size
            if count < 1 or start > end:  # the last block may be incomplete
                return
            yield first, count

    def pieces(self, which: str) -> Iterator[bytes]:
        """Yield the samples of one array, block by block."""
        names = list(self._sizes)
        before = sum(self._sizes[name] for name in names[: names.index(which)])
        for first, count in self._blocks:
            self._stream.seek(first + count * before)
            yield self._stream.read(count * self._sizes[which])


def recording(pieces: list[tuple[Array, Array]], layout: Layout) -> Recording:
    """Join blocks (time, values) into one recording."""
    time, values = joined(pieces, layout)
    return Recording(time, layout.split(values))
