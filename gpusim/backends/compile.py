"""Compilation of the CUDA C++ sources of ``gpusim.cuda_kernels`` with two compilers.

``build_native`` builds a shared library with the system's C++ compiler, ``compile_cuda`` a cubin with NVRTC. Neither
needs a GPU. Both cache their results in ``cache_folder()`` under a digest of everything that the result depends on.
"""

from __future__ import annotations

from gpusim.backends.compile_cuda import compile_cuda
from gpusim.backends.compile_native import build_native, check_native, find_compiler, load_native
from gpusim.backends.kernel_sources import kernel_sources
from gpusim.compile_cache import CompileError, cache_folder

__all__ = [
    "CompileError",
    "build_native",
    "cache_folder",
    "check_native",
    "compile_cuda",
    "find_compiler",
    "kernel_sources",
    "load_native",
]
