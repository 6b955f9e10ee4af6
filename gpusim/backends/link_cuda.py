"""Parts of a build, compiled apart, become one cubin by the linker in NVIDIA's driver (cuLink, CUDA Driver API 6.26).

It is there wherever kernels can run; NVIDIA's other linkers are packages of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from gpusim.backends.compile_cuda import FOLDER
from gpusim.compile_cache import CompileError, cached, digest

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
# CUjitInputType and CUjit_option.
_CUBIN, _ERROR_LOG, _ERROR_LOG_SIZE = 0, 5, 6
_LOG_BYTES = 8192


class LinkError(CompileError):
    """Parts can't be linked here: no driver, or one that does not take what NVRTC has made."""


class Linker(Protocol):
    """Makes one cubin of several.

    Attributes:
        name: which one this is, in words.
    """

    name: str

    def link(self, parts: dict[str, bytes]) -> bytes:
        """The cubin of relocatable ones, by names for messages.

        Raises:
            LinkError: they do not fit together, or there is no context to link for.
        """
        ...


@cache
def load_linker() -> Linker:
    """The driver's linker.

    Raises:
        LinkError: there is no driver.
    """
    for name in LIBRARIES:
        try:
            return DriverLinker(ctypes.CDLL(name))
        except (OSError, AttributeError):
            continue
    raise LinkError(f"NVIDIA's driver is not installed (no {' or '.join(LIBRARIES)})")


def link_cubins(paths: Sequence[Path], arch: str) -> Path:
    """Path of the cubin linked of parts for one architecture; linked unless the cache has it.

    Raises:
        LinkError: no driver, or parts that do not fit together.
        CompileError: a cache that can't be written.
    """
    linker = load_linker()
    name = f"{FOLDER}/linked-{arch}-{digest([linker.name, *(path.stem for path in paths)])}.cubin"
    return cached(name, lambda scratch: linker.link({path.name: path.read_bytes() for path in paths}))


class DriverLinker:
    """The linker of a driver, for the GPU whose context is current.

    Args:
        driver: the driver's library.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.name = f"CUDA driver {version.value}"

    def link(self, parts: dict[str, bytes]) -> bytes:
        """As :meth:`Linker.link`."""
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
            return ctypes.string_at(cubin, size.value)  # the linker's own memory, which ends with it
        finally:
            self._driver.cuLinkDestroy(state)

    def _call(self, function: str, *arguments: Any, log: Any = None) -> None:
        status = getattr(self._driver, function)(*arguments)
        if status:
            said = log.value.decode(errors="replace").strip() if log is not None else ""
            raise LinkError(f"{function} failed with CUDA error {status}{f': {said}' if said else ''}")
