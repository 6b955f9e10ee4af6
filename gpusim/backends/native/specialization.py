"""Specialized kernels for long runs, with the sizes of the model as constants.

Specialized kernels are faster than general kernels, and their results are bit-identical. In a long run, the backend
looks for specialized kernels in the cache. If they are missing in the cache, the backend compiles them in the
background some seconds later.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gpusim.backends.background_builds import BackgroundBuild, compile_apart, waiting_builds
from gpusim.backends.codegen.variants import Variant, native_arguments
from gpusim.backends.native.compile import build_native, find_native

LOOKS_AFTER, MAKES_AFTER = 0.1, 5.0
"""LOOKS_AFTER: total step time after which a run looks for specialized kernels in the cache (s). MAKES_AFTER: total
step time after which a run compiles specialized kernels (s)."""


class Specialization:
    """Specialized kernels of one simulation.

    Args:
        variant: function that returns the build of the specialized kernels.
    """

    def __init__(self, variant: Callable[[], Variant]) -> None:
        self._variant = variant
        self._spent, self._next = 0.0, LOOKS_AFTER
        self._ordered: BackgroundBuild | None = None

    def arrived(self, spent: float) -> Variant | None:
        """Return the specialized build in the first call after it is ready. Return None in all other calls.

        Args:
            spent: computing time of steps since the last call (s).
        """
        self._spent += spent
        if self._spent < self._next:
            return None
        if self._ordered is not None:
            return self._ended(self._ordered)
        variant = self._variant()
        given = native_arguments(variant)
        if find_native(*given) is not None:
            self._next = math.inf
            return variant
        if self._spent < MAKES_AFTER:
            self._next = MAKES_AFTER
            return None
        self._ordered = BackgroundBuild(lambda: compile_apart(build_native, *given))
        waiting_builds().put(self._ordered)
        return None

    def _ended(self, build: BackgroundBuild) -> Variant | None:
        if not build.ended:
            return None
        self._next = math.inf
        return self._variant() if build.path is not None else None
