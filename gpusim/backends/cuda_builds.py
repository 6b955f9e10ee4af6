"""Builds of the cuda backend: compiled quickly to begin with, and once more, at their fastest, beside the run.

What takes long is ptxas at its best, half a minute for contacts of every kind; a quick build is there in seconds and
has the same bits, for the order of operations is settled before ptxas. It is made of parts that are linked, so that
ptxas takes each function once, or at ptxas's quick level where the driver does not link them. A full build in the cache
is taken at once. Otherwise it is made beside the run (full_builds.py), and simulations change over between two runs.

Quick builds serve every model of a kind. Full ones of models that run in many worlds are made for the model's sizes
(``Variant.full``): half the instructions or two thirds of them, and compiled in less time; until one is there, that of
all models does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.backends.compile_cuda import compile_cuda, find_cubin
from gpusim.backends.full_builds import FullBuild, compile_apart, waiting_builds
from gpusim.backends.link_cuda import LinkError, link_cubins, load_linker
from gpusim.backends.variants import Variant, in_parts
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


@dataclass(frozen=True)
class _Job:
    """One compilation."""

    variant: Variant
    quick: bool = False


@dataclass(frozen=True)
class _Order:
    """A build, and the compilations of which it is made: one, or parts that are linked; none where it was found.

    ``follows``: the full build to be made beside the run.
    """

    variant: Variant
    jobs: list[_Job]
    found: Path | None = None
    follows: Variant | None = None


class CudaBuilds:
    """The builds of one simulation.

    Args:
        cupy: the module.
        device: number of the GPU.
        fast: allow fused multiply-adds.

    Attributes:
        unlinked: why the last quick build that has parts was not linked of them; empty where it was.
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
        return self.modules([variant])[0]

    def full_module(self, variant: Variant) -> Any:
        """CuPy's module of a full build, which is waited for."""
        return self._cupy.RawModule(path=str(self._compile(_Job(variant))))

    def modules(self, variants: Sequence[Variant]) -> list[Any]:
        """The same of several builds, which are compiled side by side."""
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
        """What a build needs at its first start."""
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
        """Compilations of a quick build."""
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
        """One cubin; in one piece after all where the driver, older than NVRTC, say, does not link what there is."""
        if len(made) < 2:
            return made[0] if order.found is None else order.found
        try:
            return link_cubins(made, self._arch)
        except LinkError as error:
            self.unlinked = str(error)
            return self._compile(_Job(order.variant, quick=True))

    def _let_follow(self, variant: Variant) -> None:
        """A full build, beside the run."""
        build = FullBuild(lambda: compile_apart(*self._given(variant)))
        self._pending.append(build)
        waiting_builds().put(build)

    def arrived(self) -> bool:
        """Whether full builds of what is in use have come since the last call, all that can be made."""
        if not all(build.ended for build in self._pending):
            return False
        came = any(build.path is not None for build in self._pending)
        self._pending.clear()
        return came
