"""Backends: the stage protocol and who serves it."""

from __future__ import annotations

from typing import Any

from gpusim.backends.base import Backend
from gpusim.errors import ModelError, unknown_name
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.solver.config import SolverConfig
from gpusim.typing import Array

BACKENDS = ("auto", "numpy")
COMING = ("cuda", "native")


def choose_backend(name: str) -> tuple[str, str]:
    """Name of the backend that ``name`` stands for, and why in one line.

    Raises:
        UnknownNameError: not one of BACKENDS.
        ModelError: a backend that this version does not have.
    """
    if name in COMING:
        raise ModelError(f"backend {name!r} is not part of this version; use 'numpy', or 'auto' for the best there is")
    if name not in BACKENDS:
        raise unknown_name("backend", name, BACKENDS)
    if name == "auto":
        return "numpy", "backend numpy: the only one of this version"
    return name, f"backend {name}: as asked"


def make_backend(
    name: str, model: Model, state: State, parameters: dict[str, Array], config: SolverConfig, real: Any
) -> Backend:
    """The backend over the given state and parameters."""
    from gpusim.backends.numpy_backend import NumpyBackend

    return NumpyBackend(model, state, parameters, config, real)
