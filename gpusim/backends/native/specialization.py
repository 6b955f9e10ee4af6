"""Specialized kernels for long runs: the sizes of one model are constants.

Specialized kernels are faster than general kernels, and the results are the same, bit for bit. In a long run, the
backend looks for specialized kernels in the cache. If the cache contains no specialized kernels, the backend compiles
them in the background after some more seconds.
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
    """The specialized kernels of one simulation.

    Args:
        variant: function that returns the build of the specialized kernels.
    """

    def __init__(self, variant: Callable[[], Variant]) -> None:
        self._variant = variant
        self._spent, self._next = 0.0, LOOKS_AFTER
        self._ordered: BackgroundBuild | None = None

    def arrived(self, spent: float) -> Variant | None:
        """Return the build in the first call that finds it in the cache, and None in all other calls.

        Args:
            spent: duration of the steps since the last call (s).
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
