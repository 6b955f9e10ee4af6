"""Interface of the CUDA backend for code that launches small kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gpusim.backends.codegen.variants import Variant
from gpusim.backends.kinds import Kinds
from gpusim.typing import Array


class Launcher(Protocol):
    """A backend with arrays and kernels on a GPU."""

    kinds: Kinds
    num_worlds: int

    def build(self, variant: Variant) -> Any:
        """Return the loaded module of a variant."""

    def to_device(self, array: Array) -> Any:
        """Return a copy of an array on the device."""

    def device_array(self, name: str) -> Any:
        """Return an array of the state or the commands on the device."""

    def launch_items(self, kernel: str, items: int, *arguments: Any) -> None:
        """Launch a kernel that reads or writes signals, with one thread for each item."""

    def launch_on_commands(self, kernel: Any, threads: int, arguments: Callable[[], tuple[Any, ...]]) -> None:
        """Launch a kernel that may write commands, with one thread for each world."""
