"""Shared type names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Real = npt.NDArray[np.floating[Any]]
Vector = Sequence[float] | npt.NDArray[Any]
"""Vector of numbers. The length is 3, unless a docstring specifies another length."""


class Index(int):
    """Index of a builder element: an ``int`` that also stores the type of the element.

    Args:
        value: the index.
        space: type of the element, such as "body" or "joint".
    """

    space: str

    def __new__(cls, value: int, space: str) -> Index:
        """Return the index ``value`` of an element of the type ``space``."""
        index = super().__new__(cls, value)
        index.space = space
        return index

    def __reduce__(self) -> Any:
        return Index, (int(self), self.space)
