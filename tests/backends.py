"""Which backends tests of physics run on: native with whole horizons where there is a compiler, NumPy briefly.

The stages of both are compared one by one in tests/parity. In tests/analytic NumPy follows a few cases for a short
time, so that an error that both backends share, or that only shows in a run, is found on either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gpusim.backends import why_not

HAS_NATIVE = not why_not("native")
#: Follows long runs.
FASTEST = "native" if HAS_NATIVE else "numpy"


def on_backends(cases: Iterable[Any], numpy: Iterable[Any] = (), name: Callable[[Any], str] = str) -> list[Any]:
    """Parameters (case, backend): every case on the fastest backend, and the cases ``numpy`` on NumPy too."""
    params = [pytest.param(case, FASTEST, id=f"{name(case)}-{FASTEST}") for case in cases]
    chosen = numpy if HAS_NATIVE else ()
    return params + [pytest.param(case, "numpy", id=f"{name(case)}-numpy") for case in chosen]
