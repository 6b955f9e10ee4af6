"""Read signals on a GPU, with one thread per signal element and world, and one thread per ray and world."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.backends.codegen.ray_header import split_entries
from gpusim.backends.cuda.launcher import Launcher
from gpusim.typing import Array


class ObserverLaunch:
    """Launcher of the kernels that read signals into a device array. It copies nothing to the host.

    Args:
        backend: backend that contains the state.
        entries, width, array: see ``Backend.observer``.

    Attributes:
        out: device array for the signals, (num_worlds, width).
    """

    def __init__(self, backend: Launcher, entries: Array, width: int, array: Any) -> None:
        self._backend = backend
        self.out = backend.memory.to_device(np.zeros((backend.num_worlds, width))) if array is None else array
        plain, rays = split_entries(entries, backend.kinds)
        self._width, self._lists = np.int32(width), list[tuple[str, Any, int, tuple[Any, ...]]]()
        # The last argument is the number of CPU threads, for the native backend.
        for kernel, listed, last in (("observe_worlds", plain, ()), ("cast_rays", rays, (np.int32(1),))):
            if len(listed):
                self._lists.append((kernel, backend.memory.to_device(listed), len(listed), last))

    def __call__(self) -> None:
        """Launch the kernels."""
        for kernel, listed, count, last in self._lists:
            items = self._backend.num_worlds * count
            self._backend.launch_items(kernel, items, listed, self.out, np.int32(count), self._width, *last)
