"""Small helpers over arrays of worlds, on the host and on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.typing import Array

# DLPack's numbers of memory that the CPU reads: its own, and pinned.
_HOST_PLACES = (1, 3)


def add_columns(target: Array, columns: Array, values: Array) -> None:
    """``target[:, columns] += values``, in order, also where a column occurs more than once."""
    where: Any = (slice(None), columns)
    np.add.at(target, where, values)


def is_on_device(value: Any) -> bool:
    """Whether an array lies on a GPU (CuPy, PyTorch, JAX: whatever speaks DLPack)."""
    place = getattr(value, "__dlpack_device__", None)
    return place is not None and place()[0] not in _HOST_PLACES


def on_host(value: Any) -> Any:
    """The same as a NumPy array, if it is an array on a GPU."""
    if not is_on_device(value):
        return value
    if hasattr(value, "cpu"):  # PyTorch
        return value.detach().cpu().numpy() if hasattr(value, "detach") else value.cpu()
    if hasattr(value, "get"):  # CuPy
        return value.get()
    return np.asarray(value)
