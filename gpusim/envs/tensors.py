"""Conversion of NumPy arrays to PyTorch tensors, for ``arrays="torch"``."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.typing import Array


class Tensors:
    """Function that converts arrays to tensors.

    The tensor of a float64 array (rewards) is a float32 copy. All other tensors share memory with their arrays.
    """

    def __init__(self) -> None:
        try:
            self._torch: Any = importlib.import_module("torch")
        except ImportError:
            raise ModelError("arrays = 'torch' needs PyTorch; run pip install torch, or give 'numpy'") from None

    def __call__(self, array: Array) -> Any:
        """Convert an array to a tensor."""
        given = array.astype(np.float32) if array.dtype == np.float64 else array
        return self._torch.from_numpy(given)
