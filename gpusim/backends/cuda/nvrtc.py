"""NVRTC, NVIDIA's run-time compiler for CUDA C++. It needs no GPU and no driver.

gpusim calls NVRTC through CuPy. Without CuPy, gpusim loads the shared library through ctypes. Install the library with
``pip install nvidia-cuda-nvrtc-cu12``. gpusim also loads the library if a build needs a major version that CuPy does
not provide. For example, NVRTC 13 does not support sm_70.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gpusim.compile_cache import CompileError

WHEEL_PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cu13")
LIBRARY_PATTERNS = ("lib/libnvrtc.so.*", "bin/nvrtc64_*_0.dll", "bin/*/nvrtc64_*_0.dll")
SYSTEM_LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12")
FALLBACK_MAJOR = 12
_COMPILATION_FAILED = 6  # NVRTC_ERROR_COMPILATION: the log contains the errors


class NvrtcMissingError(CompileError):
    """Error if NVRTC or the requested version of NVRTC is not installed."""


class Compiled(NamedTuple):
    """Result of a compilation: cubin, log and PTX."""

    cubin: bytes | None
    log: str
    ptx: str = ""


class Nvrtc(Protocol):
    """Interface of a compiler from CUDA C++ to a cubin.

    Attributes:
        name: name and version of the compiler.
        version: (major, minor) version.
        archs: numbers of the supported GPU architectures, e.g. 90 for sm_90.
    """

    name: str
    version: tuple[int, int]
    archs: tuple[int, ...]

    def compile(self, main: str, sources: dict[str, str], options: list[str]) -> Compiled:
        """Compile the source ``main``."""
        ...


@cache
def load_nvrtc(major: int | None = None) -> Nvrtc:
    """Load the NVRTC library that is installed on this computer.

    Args:
        major: required major version, or None for any version.

    Raises:
        NvrtcMissingError: NVRTC is not installed. The message names the package to install.
    """
    seen: list[str] = []
    for nvrtc in _candidates():
        if major is None or nvrtc.version[0] == major:
            return nvrtc
        seen.append(nvrtc.name)
    wanted = FALLBACK_MAJOR if major is None else major
    package = "nvidia-cuda-nvrtc-cu12" if wanted == FALLBACK_MAJOR else "nvidia-cuda-nvrtc"
    missing = "NVRTC" if major is None else f"NVRTC {major}"
    raise NvrtcMissingError(
        f"{missing} is not installed{''.join(', only ' + name for name in seen[:1])}; "
        f"install gpusim[cuda12] or gpusim[cuda13] to run on a GPU, or {package} to compile only"
    )


def _candidates() -> Iterator[Nvrtc]:
    try:
        yield CupyNvrtc()
    except (ImportError, OSError, RuntimeError, AttributeError):
        pass  # CuPy is missing or does not find the library
    for path in (*_wheel_libraries(), *SYSTEM_LIBRARIES):
        try:
            yield LibraryNvrtc(path)
        except (OSError, AttributeError):
            continue


def _wheel_libraries() -> list[str]:
    found: list[Path] = []
    for package in WHEEL_PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except ImportError:
            continue
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for pattern in LIBRARY_PATTERNS:
                found += sorted(Path(folder).glob(pattern))
    return [str(path) for path in found]


class CupyNvrtc:
    """NVRTC, called through CuPy."""

    def __init__(self) -> None:
        from cupy import __version__
        from cupy.cuda import nvrtc

        self._nvrtc: Any = nvrtc
        major, minor = nvrtc.getVersion()
        self.version = (int(major), int(minor))
        self.archs = tuple(int(arch) for arch in nvrtc.getSupportedArchs())
        self.name = f"NVRTC {major}.{minor} of CuPy {__version__}"

    def compile(self, main: str, sources: dict[str, str], options: list[str]) -> Compiled:
        """Compile the source ``main``. See :meth:`Nvrtc.compile`."""
        headers = {name: text for name, text in sources.items() if name != main}
        program = self._nvrtc.createProgram(
            sources[main], main, [text.encode() for text in headers.values()], [name.encode() for name in headers]
        )
        try:
            try:
                self._nvrtc.compileProgram(program, options)
            except self._nvrtc.NVRTCError as error:
                return Compiled(None, self._nvrtc.getProgramLog(program) or str(error))
            # With a virtual architecture, CuPy raises an error, and the library returns an empty cubin. CuPy also
            # removes the last byte of a cubin, because it expects a NUL at the end of a text.
            cubin = b"" if _is_virtual(options) else self._nvrtc.getCUBIN(program) + b"\0"
            return Compiled(cubin, self._nvrtc.getProgramLog(program), _text(self._nvrtc.getPTX(program)))
        finally:
            self._nvrtc.destroyProgram(program)


class LibraryNvrtc:
    """NVRTC, called through its shared library.

    Args:
        path: path of the library, or a name that the dynamic loader finds.

    Raises:
        OSError: the library cannot be loaded.
    """

    def __init__(self, path: str) -> None:
        if hasattr(os, "add_dll_directory") and os.path.dirname(path):
            os.add_dll_directory(os.path.dirname(path))  # so that NVRTC finds its builtins
        _load_builtins(Path(path))
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        self.archs = self._read_archs()
        self.name = f"NVRTC {major.value}.{minor.value} ({path})"

    def compile(self, main: str, sources: dict[str, str], options: list[str]) -> Compiled:
        """Compile the source ``main``. See :meth:`Nvrtc.compile`."""
        headers = {name: text for name, text in sources.items() if name != main}
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            ctypes.c_char_p(sources[main].encode()),
            ctypes.c_char_p(main.encode()),
            ctypes.c_int(len(headers)),
            _strings(list(headers.values())),
            _strings(list(headers)),
        )
        try:
            status = self._library.nvrtcCompileProgram(program, ctypes.c_int(len(options)), _strings(options))
            log = _text(self._read(program, "nvrtcGetProgramLog"))
            if status:
                return Compiled(None, log if status == _COMPILATION_FAILED and log else f"{self._words(status)}\n{log}")
            return Compiled(self._read(program, "nvrtcGetCUBIN"), log, _text(self._read(program, "nvrtcGetPTX")))
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))

    def _read_archs(self) -> tuple[int, ...]:
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return tuple(numbers)

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(what + "Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(what, program, buffer)
        return buffer.raw

    def _words(self, status: int) -> str:
        return self._library.nvrtcGetErrorString(status).decode()

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise CompileError(f"{function} failed: {self._words(status)}; reinstall NVRTC")


def _load_builtins(library: Path) -> None:
    for builtins in sorted(library.parent.glob("libnvrtc-builtins.so.*")) if library.parent.name else ():
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)


def _is_virtual(options: list[str]) -> bool:
    return any(option.startswith("--gpu-architecture=compute_") for option in options)


def _text(data: bytes | str) -> str:
    return data if isinstance(data, str) else data.rstrip(b"\0").decode(errors="replace")


def _strings(texts: list[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
