"""Linker that combines separately compiled parts to one cubin, through cuLink of the NVIDIA driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from gpusim.backends.cuda.compile import FOLDER
from gpusim.compile_cache import CompileError, cached, digest

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
# Values of CUjitInputType and CUjit_option.
_CUBIN, _ERROR_LOG, _ERROR_LOG_SIZE = 0, 5, 6
_LOG_BYTES = 8192


class LinkError(CompileError):
    """Error for parts that cannot be linked. The driver is missing, or it does not accept the output of NVRTC."""


class Linker(Protocol):
    """Interface of a linker that combines several cubins.

    Attributes:
        name: name and version of the linker.
    """

    name: str

    def link(self, parts: dict[str, bytes]) -> bytes:
        """Link relocatable cubins to one cubin. ``parts`` contains the cubins by name.

        Raises:
            LinkError: the cubins do not fit together, or no CUDA context is current.
        """
        ...


@cache
def load_linker() -> Linker:
    """Return the linker of the driver.

    Raises:
        LinkError: the driver is missing.
    """
    for name in LIBRARIES:
        try:
            return DriverLinker(ctypes.CDLL(name))
        except (OSError, AttributeError):
            continue
    raise LinkError(f"NVIDIA's driver is not installed (no {' or '.join(LIBRARIES)})")


def link_cubins(paths: Sequence[Path], arch: str) -> Path:
    """Return the path of the cubin that combines the parts ``paths``. Link it if it is not in the cache.

    Raises:
        LinkError: the driver is missing, or the parts do not fit together.
        CompileError: the cache is not writable.
    """
    linker = load_linker()
    name = f"{FOLDER}/linked-{arch}-{digest([linker.name, *(path.stem for path in paths)])}.cubin"
    return cached(name, lambda scratch: linker.link({path.name: path.read_bytes() for path in paths}))


class DriverLinker:
    """Linker of the CUDA driver, for the GPU of the current CUDA context.

    Args:
        driver: loaded library of the CUDA driver (a ``ctypes.CDLL``).
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.name = f"CUDA driver {version.value}"

    def link(self, parts: dict[str, bytes]) -> bytes:
        """Link relocatable cubins to one cubin. See :meth:`Linker.link`."""
        context, state = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        if not context:
            raise LinkError("there is no GPU to link for")
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        self._call("cuLinkCreate_v2", ctypes.c_uint(2), options, values, ctypes.byref(state))
        try:
            for name, data in parts.items():
                given = ctypes.c_int(_CUBIN), data, ctypes.c_size_t(len(data)), name.encode()
                self._call("cuLinkAddData_v2", state, *given, ctypes.c_uint(0), None, None, log=log)
            cubin, size = ctypes.c_void_p(), ctypes.c_size_t()
            self._call("cuLinkComplete", state, ctypes.byref(cubin), ctypes.byref(size), log=log)
            return ctypes.string_at(cubin, size.value)  # copy the cubin, because cuLinkDestroy frees the memory
        finally:
            self._driver.cuLinkDestroy(state)

    def _call(self, function: str, *arguments: Any, log: Any = None) -> None:
        status = getattr(self._driver, function)(*arguments)
        if status:
            said = log.value.decode(errors="replace").strip() if log is not None else ""
            raise LinkError(f"{function} failed with CUDA error {status}{f': {said}' if said else ''}")
