"""Builds of the cuda backend: compiled quickly to begin with, and once more, at their fastest, beside the run.

What takes long is ptxas at its best, half a minute for contacts of every kind; a quick build is there in seconds and
has the same bits, for the order of operations is settled before ptxas. It is made of parts that are linked, so that
ptxas takes each function once, or at ptxas's quick level where the driver does not link them. A full build in the cache
is taken at once. Otherwise one thread of the process makes it, and simulations change over between two runs.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from gpusim.backends.compile_cuda import compile_cuda, find_cubin
from gpusim.backends.link_cuda import LinkError, link_cubins, load_linker
from gpusim.backends.variants import Variant, in_parts
from gpusim.compile_cache import CompileError
from gpusim.model import validate

ENVIRONMENT = "GPUSIM_CUDA_BUILD"
WAYS = ("auto", "full", "quick")
_LARGE = ("fused.cu", "staged.cu", "signals.cu")
"""Sources whose full builds take more than seconds."""


def way_of_building() -> str:
    """``$GPUSIM_CUDA_BUILD``: "auto" as above, "full" waits for full builds, "quick" leaves it at those.

    Raises:
        ModelError: it is something else.
    """
    way = os.environ.get(ENVIRONMENT) or "auto"
    if way not in WAYS:
        rule = f"{ENVIRONMENT} = {way!r} is no way to build kernels"
        raise validate.fail("cuda backend", rule, f"set it to one of {', '.join(WAYS)}")
    return way


class FullBuild:
    """A full build that is made in the background.

    Attributes:
        path: where it is, once it is there; None also where it can't be made, for the quick one does.
    """

    def __init__(self, make: Callable[[], Path]) -> None:
        self.path: Path | None = None
        self._make = make

    def make(self) -> None:
        """Make it."""
        try:
            self.path = self._make()
        except CompileError:
            return  # as a full disk: what runs goes on


@cache
def _waiting() -> queue.SimpleQueue[FullBuild]:
    """Full builds to be made, one after another, by a thread that ends with the process."""
    waiting: queue.SimpleQueue[FullBuild] = queue.SimpleQueue()

    def work() -> None:
        while True:
            waiting.get().make()

    threading.Thread(target=work, name="gpusim full builds", daemon=True).start()
    return waiting


class CudaBuilds:
    """The builds of one simulation.

    Args:
        cupy: the module.
        device: number of the GPU.
        fast: allow fused multiply-adds.

    Attributes:
        unlinked: why the last quick build was not linked of parts; empty where it was, or has none.
    """

    def __init__(self, cupy: Any, device: int, fast: bool = False) -> None:
        self._cupy, self._fast = cupy, fast
        self._arch = f"sm_{cupy.cuda.Device(device).compute_capability}"
        self._pending: list[FullBuild] = []
        self.unlinked = ""

    def module(self, variant: Variant) -> Any:
        """CuPy's module of a build; where it is a quick one, a full one will arrive.

        Raises:
            CompileError: an error in a source.
        """
        given = variant.main, variant.generated, variant.defines, self._arch, self._fast
        way = way_of_building()
        large = variant.main in _LARGE
        path = find_cubin(*given) if large and way == "auto" else None
        if path is None and large and way != "full":
            path = self._soon(variant)
            if way == "auto":
                build = FullBuild(lambda: compile_cuda(*given))
                self._pending.append(build)
                _waiting().put(build)
        elif path is None:
            path = compile_cuda(*given, quick=False)
        return self._cupy.RawModule(path=str(path))

    def _soon(self, variant: Variant) -> Path:
        """A build that is there in seconds."""
        parted, self.unlinked = in_parts(variant), ""
        if parted is not None:
            try:
                load_linker()
                return self._linked((parted, *parted.linked))
            except LinkError as error:
                self.unlinked = str(error)  # a driver older than NVRTC, say: all in one then
        return compile_cuda(variant.main, variant.generated, variant.defines, self._arch, self._fast, quick=True)

    def _linked(self, parts: Sequence[Variant]) -> Path:
        """Parts compiled side by side, then linked."""

        def make(part: Variant) -> Path:
            given = part.main, part.generated, part.defines, self._arch, self._fast
            return compile_cuda(*given, options=part.options)

        with ThreadPoolExecutor(len(parts), "gpusim parts") as pool:
            return link_cubins(list(pool.map(make, parts)), self._arch)

    def arrived(self) -> bool:
        """Whether full builds of all that is in use are there, which were not at the last call."""
        if not self._pending or any(build.path is None for build in self._pending):
            return False
        self._pending.clear()
        return True
