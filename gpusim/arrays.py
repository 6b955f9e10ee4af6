"""Small helpers over arrays of worlds."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.typing import Array


def add_columns(target: Array, columns: Array, values: Array) -> None:
    """``target[:, columns] += values``, in order, also where a column occurs more than once."""
    where: Any = (slice(None), columns)
    np.add.at(target, where, values)
