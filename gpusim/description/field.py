"""Dataclass for declarations of arrays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """Declaration of an array: name, dimensions, data type, unit and meaning."""

    name: str
    dims: tuple[str | int, ...]
    kind: str
    unit: str
    doc: str
