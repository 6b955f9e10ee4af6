"""Interface of the CUDA backend for code that launches small kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gpusim.backends.codegen.variants import Variant
from gpusim.backends.cuda.memory import CudaMemory
from gpusim.backends.kinds import Kinds


class Launcher(Protocol):
    """Interface of a backend with arrays and kernels on a GPU."""

    kinds: Kinds
    num_worlds: int

    @property
    def memory(self) -> CudaMemory:
        """Return the arrays on the device."""

    def build(self, variant: Variant) -> Any:
        """Return the loaded CuPy module of a build."""

    def launch_items(self, kernel: str, items: int, *arguments: Any) -> None:
        """Launch a kernel that reads or writes signals, with one thread per item (signal element or ray)."""

    def launch_on_commands(self, kernel: Any, threads: int, arguments: Callable[[], tuple[Any, ...]]) -> None:
        """Launch a kernel that may write commands, with one thread per world."""
