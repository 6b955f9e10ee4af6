"""What a table of arrays says of each one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One array."""

    name: str
    dims: tuple[str | int, ...]
    kind: str
    unit: str
    doc: str
