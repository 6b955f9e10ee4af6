"""Reads the reference solutions in ``tests/reference`` (CSV and JSON of every case)."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1] / "reference"


@dataclass(frozen=True)
class Reference:
    name: str
    record: dict[str, Any]
    columns: dict[str, np.ndarray]

    @property
    def times(self) -> np.ndarray:
        return next(iter(self.columns.values()))

    def table(self, *names: str) -> np.ndarray:
        return np.stack([self.columns[name] for name in names], axis=1)


@functools.cache
def load(case: str) -> Reference:
    """The reference whose name starts with ``case`` ("A01", "case1a").

    Raises:
        KeyError: none or several cases have such a name.
    """
    tables = sorted(ROOT.glob(f"hydraulics/{case}*.csv")) + sorted(ROOT.glob(f"multibody/{case}*/solution.csv"))
    if len(tables) != 1:
        raise KeyError(f"{case!r} names {len(tables)} reference cases")
    path = tables[0]
    record = path.with_name("case.json") if path.name == "solution.csv" else path.with_suffix(".json")
    with path.open(encoding="utf-8") as file:
        header = file.readline().strip().split(",")
    data = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    name = path.parent.name if path.name == "solution.csv" else path.stem
    columns = {column: data[:, i] for i, column in enumerate(header)}
    return Reference(name, json.loads(record.read_text(encoding="utf-8")), columns)
