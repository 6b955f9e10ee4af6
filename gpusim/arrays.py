"""Helpers for NumPy arrays and GPU arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.typing import Array

# DLPack device types of memory that the CPU reads: CPU memory and pinned memory.
_HOST_DEVICES = (1, 3)


def add_columns(target: Array, columns: Array, values: Array) -> None:
    """Compute ``target[:, columns] += values``."""
    where: Any = (slice(None), columns)
    np.add.at(target, where, values)


def as_slice(indices: Any) -> Any:
    """Convert consecutive indices (n,) to a slice, which NumPy copies faster. Return indices with gaps unchanged."""
    if not isinstance(indices, np.ndarray) or indices.dtype.kind not in "iu" or not indices.size:
        return indices
    first, count = int(indices[0]), indices.size
    if first < 0 or int(indices[-1]) - first != count - 1 or (count > 2 and np.any(np.diff(indices) != 1)):
        return indices
    return slice(first, first + count)


def as_array(value: Any) -> Array:
    """Return a value as a NumPy array. Return an empty array for lists of different lengths, which make no array."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.zeros(0)


def is_on_device(value: Any) -> bool:
    """Return whether an array is on a GPU (CuPy, PyTorch, JAX or any other DLPack array)."""
    device = None if type(value) is np.ndarray else getattr(value, "__dlpack_device__", None)
    return device is not None and device()[0] not in _HOST_DEVICES


def on_host(value: Any) -> Any:
    """Return a NumPy copy of an array on a GPU. Detach PyTorch tensors. Return other values unchanged."""
    if hasattr(value, "detach"):  # PyTorch
        value = value.detach()
    if not is_on_device(value):
        return value
    if hasattr(value, "cpu"):  # PyTorch
        return value.cpu().numpy() if hasattr(value, "detach") else value.cpu()
    if hasattr(value, "get"):  # CuPy
        return value.get()
    return np.asarray(value)
