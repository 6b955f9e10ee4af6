"""Builds of the CUDA backend. A simulation starts with a quick build, and compiles a full build in the background.

With full optimization, ptxas takes half a minute for the contact code of all shape kinds. A quick build takes seconds,
and gives bit-identical results. The backend links a quick build from parts, so that ptxas compiles each function once.
If the driver cannot link the parts, ptxas uses a lower optimization level. Meanwhile, a separate process compiles the
full build (background_builds.py). When the full build is ready, the simulation switches to it between two runs.

A quick build works for many models. With many worlds, the full build is specialized for the sizes of the model
(``Variant.full``). Until the full build is ready, the backend uses a general full build from the cache, if one exists.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim import validate
from gpusim.backends.background_builds import BackgroundBuild, compile_apart, waiting_builds
from gpusim.backends.codegen.variants import Variant, in_parts
from gpusim.backends.cuda.compile import compile_cuda, find_cubin
from gpusim.backends.cuda.link import LinkError, link_cubins, load_linker

ENVIRONMENT = "GPUSIM_CUDA_BUILD"
WAYS = ("auto", "full", "quick")
_LARGE = ("fused.cu", "staged.cu", "signals.cu")
"""Sources with slow full builds."""


def way_of_building() -> str:
    """Return the value of ``$GPUSIM_CUDA_BUILD``: "auto" (default), "full" (wait for full builds) or "quick".

    Raises:
        ModelError: the value of the variable is unknown.
    """
    way = os.environ.get(ENVIRONMENT) or "auto"
    if way not in WAYS:
        rule = f"{ENVIRONMENT} = {way!r} is unknown"
        raise validate.fail("cuda backend", rule, f"set it to one of {', '.join(WAYS)}")
    return way


def compile_full(*given: Any) -> Path:
    """Compile a full build in a separate process (:func:`compile_cuda`)."""
    return compile_apart(compile_cuda, *given)


@dataclass(frozen=True)
class _Job:
    variant: Variant
    quick: bool = False


@dataclass(frozen=True)
class _Order:
    """Build with the compilations that it needs.

    A cached build needs no compilation. A linked build needs one for each part. Any other build needs one.
    """

    variant: Variant
    jobs: list[_Job]
    found: Path | None = None
    follows: Variant | None = None


class CudaBuilds:
    """CUDA builds of one simulation.

    Args:
        cupy: imported module cupy.
        device: number of the GPU.
        fast: True to allow fused multiply-adds.

    Attributes:
        unlinked: reason why the linker could not link the last quick build, or an empty string.
    """

    def __init__(self, cupy: Any, device: int, fast: bool = False) -> None:
        self._cupy, self._fast = cupy, fast
        self._arch = f"sm_{cupy.cuda.Device(device).compute_capability}"
        self._pending: list[BackgroundBuild] = []
        self.unlinked = ""

    def module(self, variant: Variant) -> Any:
        """Return the CuPy module of a build. If this is a quick build, also start the full build in the background.

        Raises:
            CompileError: a source has an error.
        """
        return self.modules([variant])[0]

    def full_module(self, variant: Variant) -> Any:
        """Compile a full build, and return its CuPy module."""
        return self._cupy.RawModule(path=str(self._compile(_Job(variant))))

    def modules(self, variants: Sequence[Variant]) -> list[Any]:
        """Compile several builds in parallel, and return their CuPy modules."""
        way = way_of_building()
        orders = [self._order(variant, way) for variant in variants]
        jobs = [job for order in orders for job in order.jobs]
        with ThreadPoolExecutor(max(len(jobs), 1), "gpusim builds") as pool:
            made = iter(list(pool.map(self._compile, jobs)))
        paths = [self._joined(order, [next(made) for _ in order.jobs]) for order in orders]
        for order in orders:
            if order.follows is not None:
                self._let_follow(order.follows)
        return [self._cupy.RawModule(path=str(path)) for path in paths]

    def _order(self, variant: Variant, way: str) -> _Order:
        """Return the compilations that must end before the simulation can use a build."""
        full = variant.full or variant
        if variant.main not in _LARGE or way == "full":
            return _Order(variant, [_Job(full)])
        follows = None
        if way == "auto":
            if (path := find_cubin(*self._given(full))) is not None:
                return _Order(variant, [], path)
            follows = full
            if full is not variant and (path := find_cubin(*self._given(variant))) is not None:
                return _Order(variant, [], path, follows)
        return _Order(variant, self._quick_jobs(variant), follows=follows)

    def _quick_jobs(self, variant: Variant) -> list[_Job]:
        parted = in_parts(variant)
        if parted is not None:
            self.unlinked = ""
            try:
                load_linker()
                return [_Job(part) for part in (parted, *parted.linked)]
            except LinkError as error:
                self.unlinked = str(error)
        return [_Job(variant, quick=True)]

    def _given(self, variant: Variant) -> tuple[str, dict[str, str], dict[str, str], str, bool]:
        return variant.main, variant.generated, variant.defines, self._arch, self._fast

    def _compile(self, job: _Job) -> Path:
        given = self._given(job.variant)
        if not job.variant.options:
            return compile_cuda(*given, quick=job.quick)
        return compile_cuda(*given, options=job.variant.options)

    def _joined(self, order: _Order, made: list[Path]) -> Path:
        """Link the compiled parts of a build, and return the path of the cubin."""
        if len(made) < 2:
            return made[0] if order.found is None else order.found
        try:
            return link_cubins(made, self._arch)
        except LinkError as error:
            self.unlinked = str(error)
            return self._compile(_Job(order.variant, quick=True))

    def _let_follow(self, variant: Variant) -> None:
        """Queue a full build in the background."""
        build = BackgroundBuild(lambda: compile_full(*self._given(variant)))
        self._pending.append(build)
        waiting_builds().put(build)

    def wait(self) -> None:
        """Wait for all background builds of this simulation."""
        while not all(build.ended for build in self._pending):
            time.sleep(0.02)

    def arrived(self) -> bool:
        """Return True if all background builds have ended and at least one of them has succeeded."""
        if not all(build.ended for build in self._pending):
            return False
        came = any(build.path is not None for build in self._pending)
        self._pending.clear()
        return came
