"""Files of a sweep. During a sweep, a folder contains one Parquet file for each finished group of sweep points."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.output_files import atomic_file, part_of
from gpusim.recording.layout import require
from gpusim.sweeps.points import Point
from gpusim.sweeps.runs import Result

_PLAN = "plan.json"


class SweepFiles:
    """Folder ``NAME.parquet.part`` with the results of a running sweep.

    Args:
        path: path of the final file, or None to create a table in memory.
        points: points of the sweep.

    Raises:
        ModelError: a parameter has the name "point", "failed" or "time", or pyarrow is not installed.
    """

    _plan = ""

    def __init__(self, path: Path | None, points: Sequence[Point]) -> None:
        require("pyarrow.parquet", ".parquet", "pyarrow")
        for name in ("point", "failed", "time"):
            if name in points[0]:
                raise ModelError(f"sweep: parameter '{name}' has the name of a column of the table; rename it")
        self._path, self._memory = path, dict[int, Any]()
        self._columns = {name: _column([point[name] for point in points]) for name in points[0]}
        self._part = None if path is None else part_of(path)

    def resume(self, plan: Any) -> None:
        """Continue the sweep whose results are in the folder.

        Args:
            plan: settings of the sweep, and a digest of its models.

        Raises:
            ModelError: the folder belongs to a sweep with other settings or models.
        """
        if self._part is None:
            return
        self._plan = json.dumps(plan, sort_keys=True, default=str)
        file = self._part / _PLAN
        if file.is_file() and file.read_text(encoding="utf-8") != self._plan:
            rule = f"sweep: {str(self._part)!r} contains results of another sweep or model"
            raise ModelError(f"{rule}; delete it, or give the same options to continue that one")

    def has(self, group: Sequence[int]) -> bool:
        """Return whether a group of sweep points is finished."""
        return self._part is not None and self._file(group).is_file()

    def _file(self, group: Sequence[int]) -> Path:
        assert self._part is not None
        return self._part / f"{group[0]:08d}.parquet"

    def add(self, group: Sequence[int], result: Result) -> None:
        """Store the result of a group of sweep points."""
        table = self._table(group, result)
        if self._part is None:
            self._memory[group[0]] = table
            return
        from pyarrow import parquet

        self._part.mkdir(exist_ok=True)  # make the folder only now, because the first run may fail
        if not (self._part / _PLAN).is_file():
            with atomic_file(self._part / _PLAN) as stream:
                stream.write(self._plan.encode())
        with atomic_file(self._file(group)) as stream:
            parquet.write_table(table, stream, compression="zstd")

    def finish(self, groups: Sequence[Sequence[int]]) -> Any:
        """Merge the results of all groups, sorted by sweep point.

        Write the final file, or return a table if there is no path.

        If the model of a point lacks a signal, the table contains null.
        """
        import pyarrow as pa
        from pyarrow import parquet

        if self._part is None or self._path is None:
            tables = [self._memory[group[0]] for group in groups]
            return pa.concat_tables(tables, promote_options="default").sort_by("point")
        tables = [parquet.read_table(self._file(group)) for group in groups]
        with atomic_file(self._path) as stream:
            merged = pa.concat_tables(tables, promote_options="default").sort_by("point")
            parquet.write_table(merged, stream, compression="zstd")
        shutil.rmtree(self._part)
        return None

    def _table(self, group: Sequence[int], result: Result) -> Any:
        import pyarrow as pa

        samples = len(result.time)
        points = np.repeat(np.array(group, np.int32), samples)
        columns: dict[str, Any] = {"point": points}
        columns |= {name: column.take(pa.array(points)) for name, column in self._columns.items()}
        columns["failed"] = np.repeat(result.failed, samples)
        columns["time"] = np.tile(result.time, len(group))
        flat = result.values.reshape(len(points), len(result.columns))
        columns |= {name: np.ascontiguousarray(flat[:, k]) for k, name in enumerate(result.columns)}
        return pa.table(columns)


def _column(values: Sequence[Any]) -> Any:
    """Return the values of a parameter at all points as an Arrow array."""
    import pyarrow as pa

    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value) for value in plain}
    if kinds == {bool} or kinds <= {int, float}:
        with suppress(pa.ArrowException, OverflowError):  # whole numbers of more than 64 bits
            return pa.array(plain)
    return pa.array([str(value) for value in plain])
