"""Parquet files: a table with a row for each time and world, and a column for each signal component.

An unfinished Parquet file is not readable. During the recording, NAME.parquet.part is a folder with one small Parquet
file for each block of samples. At the end of the recording, :meth:`ParquetWriter.finish` merges the small files into
one file, with a row group for each block.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.output_files import atomic_file
from gpusim.recording.formats.npz_file import recording
from gpusim.recording.formats.writer import Writer
from gpusim.recording.layout import Block, Layout, require
from gpusim.recording.samples import Recording
from gpusim.typing import Array

_KEY = b"gpusim"
# Parquet readers skip names that begin with an underscore.
_FOLDERS_HEADER = "_layout.json"


class ParquetWriter(Writer):
    """Writer of Parquet files, based on the library pyarrow."""

    @classmethod
    def prepare(cls) -> None:
        """Check that pyarrow is installed."""
        require("pyarrow.parquet", ".parquet", "pyarrow")

    def __init__(self, part: Path | str, layout: Layout, model: Any = None) -> None:
        self._part, self._layout, self._count = Path(part), layout, 0
        self._part.mkdir(exist_ok=True)
        (self._part / _FOLDERS_HEADER).write_text(layout.to_json(), encoding="utf-8")

    def write(self, block: Block) -> None:
        """Append a block of samples."""
        from pyarrow import parquet

        table, target = _table(block, self._layout), self._part / f"{self._count:08d}.parquet"
        temporary = target.with_suffix(".tmp")
        parquet.write_table(table, temporary, **_options(table))
        os.replace(temporary, target)
        self._count += 1

    def close(self) -> None:
        """Do nothing, because the file of every block is already closed."""

    @staticmethod
    def finish(part: Path, path: Path) -> None:
        """Merge the blocks into one file."""
        from pyarrow import parquet

        schema = None
        with atomic_file(path) as stream:
            for file in _blocks(part):
                table = parquet.read_table(file)
                if schema is None:
                    schema = table.schema
                    writer = parquet.ParquetWriter(stream, schema, **_options(table))
                writer.write_table(table, row_group_size=max(len(table), 1))
            if schema is None:
                raise ValueError("it has no block")
            writer.close()
        shutil.rmtree(part)

    @staticmethod
    def read(path: Path) -> Recording:
        """Read a finished file, or the complete blocks in a ``.part`` folder."""
        require("pyarrow.parquet", ".parquet", "pyarrow")
        import pyarrow
        from pyarrow import parquet

        try:
            if path.is_dir():
                layout = Layout.from_json((path / _FOLDERS_HEADER).read_bytes())
                groups = (parquet.read_table(file) for file in _blocks(path))
                return recording([_samples(table, layout) for table in groups], layout)
            with parquet.ParquetFile(path) as file:
                layout = Layout.from_json((file.schema_arrow.metadata or {}).get(_KEY, b"{}"))
                groups = (file.read_row_group(k) for k in range(file.num_row_groups))
                return recording([_samples(table, layout) for table in groups], layout)
        except pyarrow.ArrowException as error:
            raise ValueError(str(error)) from error


def _blocks(part: Path) -> Iterator[Path]:
    return iter(sorted(part.glob("*.parquet")))


def _options(table: Any) -> dict[str, Any]:
    """Return the encoding and compression options of a file."""
    numbers = [field.name for field in table.schema if field.name != "world"]
    encodings = dict.fromkeys(numbers, "BYTE_STREAM_SPLIT")
    return {"compression": "zstd", "use_dictionary": ["world"], "column_encoding": encodings, "store_schema": True}


def _table(block: Block, layout: Layout) -> Any:
    import pyarrow as pa

    samples, worlds = len(block.time), len(layout.worlds)
    kind = pa.from_numpy_dtype(np.dtype(layout.dtype))
    fields = [pa.field("time", pa.float64(), False), pa.field("world", pa.int32(), False)]
    fields += [pa.field(name, kind, False) for name in layout.columns]
    columns = [np.tile(block.time, worlds), np.repeat(np.array(layout.worlds, np.int32), samples)]
    columns += list(np.ascontiguousarray(block.values.transpose(2, 1, 0)).reshape(layout.width, -1))
    schema = pa.schema(fields, metadata={_KEY: layout.to_json().encode()})
    return pa.table([pa.array(column) for column in columns], schema=schema)


def _samples(table: Any, layout: Layout) -> tuple[Array, Array]:
    """Return the times (n,) and the values (n, worlds, width) of the n samples in the table of a block."""
    worlds = len(layout.worlds)
    samples = len(table) // worlds
    columns = [table.column(k + 2).to_numpy() for k in range(layout.width)]
    values = np.stack(columns, axis=-1) if columns else np.empty((len(table), 0), layout.dtype)
    return table.column(0).to_numpy()[:samples], values.reshape(worlds, samples, -1).transpose(1, 0, 2)
