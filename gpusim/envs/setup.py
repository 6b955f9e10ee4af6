"""Settings and checks for the import of ``gpusim.envs``: OpenMP's wait policy, and the package Gymnasium.

PyTorch and gpusim both use OpenMP. By default, waiting OpenMP threads keep the CPU busy. If few cores are free, waiting
threads of PyTorch make training 2 to 40 times slower. With ``OMP_WAIT_POLICY=passive``, waiting threads sleep. Set this
variable before you import PyTorch.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings

from gpusim.errors import ModelError, callers_level

_POLICY = "OMP_WAIT_POLICY"


def wait_passively() -> None:
    """Set OMP_WAIT_POLICY to passive if it is not set. Warn if PyTorch is already loaded."""
    if _POLICY in os.environ:
        return
    os.environ[_POLICY] = "passive"
    if "torch" in sys.modules:
        warnings.warn(
            "PyTorch was imported before gpusim.envs, so its waiting threads slow down gpusim; import gpusim.envs"
            f" first, or set {_POLICY}=passive",
            stacklevel=callers_level(),
        )


def require_gymnasium() -> None:
    """Raise ModelError if Gymnasium is missing."""
    if importlib.util.find_spec("gymnasium") is None:
        raise ModelError('gpusim.envs needs Gymnasium, which is missing; run pip install "gpusim[envs]"')


wait_passively()
require_gymnasium()
