"""Conversion of NumPy arrays to PyTorch tensors. gpusim imports this module only if you set ``arrays="torch"``."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.typing import Array


class Tensors:
    """Function that converts arrays to tensors.

    Float64 arrays (the rewards) become float32 copies. Tensors of all other arrays share memory with the arrays.
    """

    def __init__(self) -> None:
        try:
            self._torch: Any = importlib.import_module("torch")
        except ImportError:
            raise ModelError("arrays = 'torch' needs PyTorch; run pip install torch, or give 'numpy'") from None

    def __call__(self, array: Array) -> Any:
        """Return an array as a tensor."""
        given = array.astype(np.float32) if array.dtype == np.float64 else array
        return self._torch.from_numpy(given)
