"""Compilation of the CUDA C++ sources to a cubin with NVRTC. The compilation needs no GPU.

CuPy only loads the cubin. CuPy's compiler cache is not used, because it ignores changed headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from gpusim.backends.codegen.kernel_sources import define_flags, gpu_sources
from gpusim.backends.cuda.nvrtc import Compiled, Nvrtc, load_nvrtc
from gpusim.compile_cache import CompileError, cached, compile_error, digest, found

ARCH_OPTION = "--gpu-architecture="
FLAGS = ("--std=c++17", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
FOLDER = "cuda"
# These options skip the search for the best registers. ptxas then takes an eighth of the time. The PTX and the results
# stay the same.
QUICK, QUICK_FROM = "--ptxas-options=--Ofast-compile=mid", (12, 8)

_ARCH = re.compile(r"sm_(\d+)[af]?")


def compile_cuda(
    main: str,
    generated: dict[str, str],
    defines: dict[str, str],
    arch: str,
    fast: bool = False,
    reported: Callable[[str], None] | None = None,
    quick: bool = False,
    options: Sequence[str] = (),
) -> Path:
    """Return the path of the cubin of ``main``. Compile ``main`` if the cubin is not in the cache.

    Args:
        main: name of a source in ``kernel_sources()`` or in ``generated``.
        generated: texts of generated sources by name. A generated source replaces a package source with the same name.
        defines: preprocessor macros.
        arch: architecture of the GPU, e.g. ``"sm_90"``.
        fast: True to allow fused multiply-adds. The results then differ from results on a CPU.
        reported: function that receives the compiler log after a compilation. The log lists the resources of each
            kernel.
        quick: True to compile faster, with slower kernels as the result. NVRTC before 12.8 ignores ``quick``.
        options: additional NVRTC options.

    Raises:
        CompileError: NVRTC is missing or does not know ``arch``, a source has an error, or the cache is not writable.
            The message contains the file and line of the error.
        UnknownNameError: ``main`` does not exist.
    """
    nvrtc = load_nvrtc()
    sources = gpu_sources(main, generated)
    options = [*options, *([QUICK] if quick and nvrtc.version >= QUICK_FROM else [])]
    name = _cubin_name(nvrtc, main, generated, sources, [*nvrtc_options(defines, arch, fast), *options])

    def make(scratch: Path) -> bytes:
        extra = [*options, *([] if reported is None else ["--ptxas-options=-v"])]
        compiled = compile_cubin(nvrtc, main, sources, defines, arch, fast, extra)
        if reported is not None:
            reported(compiled.log)
        return compiled.cubin or b""

    return cached(name, make, f"{main} for {arch}")


def find_cubin(
    main: str, generated: dict[str, str], defines: dict[str, str], arch: str, fast: bool = False
) -> Path | None:
    """Return the path of a full build in the cache, or None. :func:`compile_cuda` describes the arguments."""
    nvrtc = load_nvrtc()
    options = nvrtc_options(defines, arch, fast)
    return found(_cubin_name(nvrtc, main, generated, gpu_sources(main, generated), options))


def _cubin_name(nvrtc: Nvrtc, main: str, generated: dict[str, str], sources: dict[str, str], options: list[str]) -> str:
    texts = [text for pair in sorted((generated | sources).items()) for text in pair]
    arch = next(option for option in options if option.startswith(ARCH_OPTION)).removeprefix(ARCH_OPTION)
    return f"{FOLDER}/{Path(main).stem}-{arch}-{digest([nvrtc.name, *options, main, *texts])}.cubin"


def compile_cubin(
    nvrtc: Nvrtc,
    main: str,
    sources: dict[str, str],
    defines: dict[str, str],
    arch: str,
    fast: bool = False,
    extra: Sequence[str] = (),
) -> Compiled:
    """Compile ``main`` without the cache, and return cubin, log and PTX.

    Args:
        nvrtc: compiler.
        main: name of the source to compile.
        sources: result of ``gpu_sources``.
        defines: preprocessor macros.
        arch: architecture of the GPU, e.g. ``"sm_90"``.
        fast: True to allow fused multiply-adds.
        extra: additional options, e.g. ``"--ptxas-options=-v"`` to log the resources of each kernel.

    Raises:
        CompileError: the compiler does not know ``arch``, or a source has an error.
    """
    _check_arch(nvrtc, arch)
    compiled = nvrtc.compile(main, sources, [*nvrtc_options(defines, arch, fast), *extra])
    if compiled.cubin is None:
        raise compile_error(main, f"{nvrtc.name} for {arch}", compiled.log)
    return compiled


def nvrtc_options(defines: dict[str, str], arch: str, fast: bool = False) -> list[str]:
    """Return the NVRTC options."""
    fused = "true" if fast else "false"
    return [*FLAGS, f"--fmad={fused}", f"{ARCH_OPTION}{arch}", *define_flags(defines)]


def _check_arch(nvrtc: Nvrtc, arch: str) -> None:
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise CompileError(f"arch {arch!r} is not a GPU architecture; write it as 'sm_90'")
    if int(match[1]) in nvrtc.archs:
        return
    hint = "install gpusim[cuda12]" if int(match[1]) < min(nvrtc.archs) else "install a newer CuPy and NVRTC"
    known = ", ".join(f"sm_{number}" for number in nvrtc.archs)
    raise CompileError(f"{nvrtc.name} does not know {arch}, only {known}; {hint}")
