"""Writers of recordings, selected by the suffix of the file."""

from __future__ import annotations

from pathlib import Path

from gpusim.output_files import PART
from gpusim.recording.formats.csv_file import CsvWriter
from gpusim.recording.formats.mcap_file import McapWriter
from gpusim.recording.formats.npz_file import NpzWriter
from gpusim.recording.formats.parquet_file import ParquetWriter
from gpusim.recording.formats.rerun_file import RerunWriter
from gpusim.recording.formats.writer import Writer

WRITERS: dict[str, type[Writer]] = {
    ".npz": NpzWriter,
    ".parquet": ParquetWriter,
    ".mcap": McapWriter,
    ".csv": CsvWriter,
    ".rrd": RerunWriter,
}


def suffix_of(path: Path) -> str:
    """Return the suffix of a file without ".part": ".npz" for run.npz and run.npz.part."""
    return Path(path.name.removesuffix(PART)).suffix.lower()
