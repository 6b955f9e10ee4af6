"""The CUDA C++ sources through NVRTC: a cubin for one GPU architecture. No GPU is needed.

Not through ``cupy.RawModule``, which appends ``-ftz=true`` to whatever flags it is given and whose cache does not see
changed headers; ``cupy.RawModule(path=...)`` loads the cubin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from gpusim.backends.kernel_sources import define_flags, gpu_sources
from gpusim.backends.nvrtc import Compiled, Nvrtc, load_nvrtc
from gpusim.compile_cache import CompileError, cached, compile_error, digest, found

ARCH_OPTION = "--gpu-architecture="
FLAGS = ("--std=c++17", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
FOLDER = "cuda"
# ptxas without its search for the best registers: an eighth of the time, from the same PTX, so with the same bits.
QUICK, QUICK_FROM = "--ptxas-options=--Ofast-compile=mid", (12, 8)

_ARCH = re.compile(r"sm_(\d+)[af]?")


def compile_cuda(
    main: str,
    generated: dict[str, str],
    defines: dict[str, str],
    arch: str,
    fast: bool = False,
    told: Callable[[str], None] | None = None,
    quick: bool = False,
    options: Sequence[str] = (),
) -> Path:
    """Path of the cubin made of ``main``; compiled unless the cache has it.

    Args:
        main: name of a source in ``kernel_sources()`` or in ``generated``.
        generated: headers and sources (name to text) that join, or replace, the package's own.
        defines: preprocessor macros.
        arch: the GPU's architecture, e.g. ``"sm_90"``.
        fast: allow fused multiply-adds, at the price of bits that differ from the CPU's.
        told: is given the compiler's log, with what each kernel takes, unless the cache has the cubin.
        quick: compile in a fraction of the time, to code that is somewhat slower, where NVRTC can (12.8).
        options: further ones of NVRTC.

    Raises:
        CompileError: no NVRTC, one that does not know ``arch``, an error in a source (with its file and line), a
            cache that can't be written.
        UnknownNameError: there is no ``main``.
    """
    nvrtc = load_nvrtc()
    sources = gpu_sources(main, generated)
    options = [*options, *([QUICK] if quick and nvrtc.version >= QUICK_FROM else [])]
    name = _cubin_name(nvrtc, main, generated, sources, [*nvrtc_options(defines, arch, fast), *options])

    def make(scratch: Path) -> bytes:
        extra = [*options, *([] if told is None else ["--ptxas-options=-v"])]
        compiled = compile_cubin(nvrtc, main, sources, defines, arch, fast, extra)
        if told is not None:
            told(compiled.log)
        return compiled.cubin or b""

    return cached(name, make, f"{main} for {arch}")


def find_cubin(
    main: str, generated: dict[str, str], defines: dict[str, str], arch: str, fast: bool = False
) -> Path | None:
    """Path of the full build in the cache; None where it has none. As :func:`compile_cuda` otherwise."""
    nvrtc = load_nvrtc()
    options = nvrtc_options(defines, arch, fast)
    return found(_cubin_name(nvrtc, main, generated, gpu_sources(main, generated), options))


def _cubin_name(nvrtc: Nvrtc, main: str, generated: dict[str, str], sources: dict[str, str], options: list[str]) -> str:
    """Within the cache, by all that a build depends on."""
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
    """Cubin, log and PTX of one compilation, without the cache.

    Args:
        nvrtc: the compiler.
        main: which of the sources to compile.
        sources: from ``gpu_sources``.
        defines: preprocessor macros.
        arch: the GPU's architecture, e.g. ``"sm_90"``.
        fast: allow fused multiply-adds.
        extra: further options, e.g. ``"--ptxas-options=-v"``, which puts the resources of each kernel into the log.

    Raises:
        CompileError: the compiler does not know ``arch``, or an error in a source.
    """
    _check_arch(nvrtc, arch)
    compiled = nvrtc.compile(main, sources, [*nvrtc_options(defines, arch, fast), *extra])
    if compiled.cubin is None:
        raise compile_error(main, f"{nvrtc.name} for {arch}", compiled.log)
    return compiled


def nvrtc_options(defines: dict[str, str], arch: str, fast: bool = False) -> list[str]:
    """Options of NVRTC: a real architecture (``sm_``, not ``compute_``) makes it give a cubin."""
    fused = "true" if fast else "false"
    return [*FLAGS, f"--fmad={fused}", f"{ARCH_OPTION}{arch}", *define_flags(defines)]


def _check_arch(nvrtc: Nvrtc, arch: str) -> None:
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise CompileError(f"arch {arch!r} is no GPU architecture; write it as 'sm_90'")
    if int(match[1]) in nvrtc.archs:
        return
    mend = "install gpusim[cuda12]" if int(match[1]) < min(nvrtc.archs) else "install a newer CuPy and NVRTC"
    known = ", ".join(f"sm_{number}" for number in nvrtc.archs)
    raise CompileError(f"{nvrtc.name} does not know {arch}, only {known}; {mend}")
