"""Shared type names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Real = npt.NDArray[np.floating[Any]]
Vector = Sequence[float] | npt.NDArray[Any]
"""Three numbers, unless a docstring specifies another length."""
