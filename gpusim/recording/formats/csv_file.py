"""CSV files: a table with a row for each time and world, and a column for each signal component.

During the recording, the name is NAME.csv.part. The unfinished file is also a valid CSV file.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.output_files import PART
from gpusim.recording.formats.writer import Writer, write_all
from gpusim.recording.layout import Block, Layout, joined
from gpusim.recording.samples import Recording
from gpusim.typing import Array


class CsvWriter(Writer):
    """Writer of CSV files. The numbers have enough digits to restore the exact values."""

    def __init__(self, part: Path | str, layout: Layout, model: Any = None) -> None:
        self._worlds, self._single = layout.worlds, layout.dtype == "float32"
        self._stream = open(part, "wb", buffering=0)  # noqa: SIM115 (open until close)
        head = io.StringIO()
        csv.writer(head, lineterminator="\n").writerow(["time", "world", *layout.columns])
        write_all(self._stream, head.getvalue().encode())

    def write(self, block: Block) -> None:
        """Append a block of samples."""
        text = (lambda x: f"{x:.9g}") if self._single else repr
        lines = [
            ",".join([repr(time), str(world), *map(text, row)])
            for time, rows in zip(block.time.tolist(), block.values.tolist(), strict=True)
            for world, row in zip(self._worlds, rows, strict=True)
        ]
        write_all(self._stream, "\n".join([*lines, ""]).encode())

    def close(self) -> None:
        """Close the ``.part`` file."""
        self._stream.close()

    @staticmethod
    def finish(part: Path, path: Path) -> None:
        """Remove an incomplete last line, then rename the ``.part`` file."""
        with open(part, "r+b") as stream:
            stream.truncate(_whole(stream.read()))
        part.replace(path)

    @staticmethod
    def read(path: Path) -> Recording:
        """Read a finished table or a ``.part`` file, which may end with an incomplete line or sample."""
        data = path.read_bytes()
        if path.name.endswith(PART):
            data = data[: _whole(data)]
        rows = csv.reader(io.StringIO(data.decode()))
        head = next(rows, [])
        if head[:2] != ["time", "world"]:
            raise ValueError("its first columns are not 'time' and 'world'")
        table = np.array([row for row in rows], float).reshape(-1, len(head))
        return _recording(head[2:], table)


def _whole(data: bytes) -> int:
    """Return the total number of bytes of all complete lines."""
    return data.rfind(b"\n") + 1


def _recording(columns: list[str], table: Array) -> Recording:
    """Convert a table to a recording."""
    shapes: dict[str, tuple[int, ...]] = {}
    for column in columns:
        match = re.fullmatch(r"(.*)\[(\d+)\]", column)
        name = match.group(1) if match else column
        shapes[name] = (int(match.group(2)) + 1,) if match else ()
    worlds = table[:, 1]
    again = np.flatnonzero(worlds[1:] == worlds[0]) if len(worlds) else np.zeros(0, int)
    count = int(again[0]) + 1 if again.size else max(len(worlds), 1)
    numbers = tuple(map(int, worlds[:count])) or (0,)
    layout = Layout(shapes, dict.fromkeys(shapes, ""), numbers)
    samples = len(table) // count
    cut = table[: samples * count].reshape(samples, count, -1)
    time, values = joined([(cut[:, 0, 0], cut[:, :, 2:])], layout)
    return Recording(time, layout.split(values))
