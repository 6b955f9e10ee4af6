"""Backends of the physics tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gpusim.backends import why_not

HAS_NATIVE = not why_not("native")
FASTEST = "native" if HAS_NATIVE else "numpy"


def on_backends(cases: Iterable[Any], numpy: Iterable[Any] = (), name: Callable[[Any], str] = str) -> list[Any]:
    params = [pytest.param(case, FASTEST, id=f"{name(case)}-{FASTEST}") for case in cases]
    chosen = numpy if HAS_NATIVE else ()
    return params + [pytest.param(case, "numpy", id=f"{name(case)}-numpy") for case in chosen]
