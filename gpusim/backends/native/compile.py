"""Compile the CUDA C++ sources to a shared library for the CPU, with the system's C++ compiler."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpusim.backends.codegen.kernel_sources import define_flags, reachable_sources
from gpusim.compile_cache import (
    BrokenCompilerError,
    CompileError,
    cache_folder,
    cached,
    compile_error,
    digest,
    forget,
    found,
    kept_like,
    no_room,
)

COMPILERS = ("g++", "clang++", "c++")
FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    # For the same bits as on a GPU, the compiler must not fuse multiplies with adds. The compiler must not vectorize
    # straight-line code, because g++ 12 may then skip half of a double -> float -> double conversion.
    "-ffp-contract=off",
    "-fno-tree-slp-vectorize",
)
UNROLLED = ("-O3", "-fno-tree-loop-vectorize")
# Only for GCC: unroll loops over the three or six numbers of a vector. Unrolling saves a fifth of a humanoid's step,
# and costs a twentieth of the compile time.
PEELED = ("-fpeel-loops", "--param=max-completely-peeled-insns=400")
# Only for GCC: skip passes that take a sixth of the compile time. The passes speed up only builds with vectors of
# contacts.
SKIPPED = (
    *("-fno-gcse", "-fno-cse-follow-jumps", "-fno-rerun-cse-after-loop", "-fno-crossjumping", "-fno-devirtualize"),
    *("-fno-ipa-cp", "-fno-ipa-bit-cp", "-fno-ipa-vrp", "-fno-ipa-icf", "-fno-ipa-sra"),
    *("-fno-tree-pre", "-fno-tree-vrp", "-fno-tree-tail-merge", "-fno-code-hoisting"),
)
OPENMP = "-fopenmp"
FOLDER = "native"
LIBRARY_SUFFIX = ".dll" if sys.platform == "win32" else ".so"
OBJECT_SUFFIX = ".o"
ASK_AGAIN_AFTER = 86400.0  # seconds, because the user may install OpenMP later
# Time limits (s). A one-line program takes 0.1 s, and all kernels take 4 to 20 s, or more on a busy computer.
PROBE_LIMIT, BUILD_LIMIT = 30.0, 900.0
# Patterns for the output of a compiler that was killed or ran out of disk space. The source then has no error.
_FULL = re.compile(r"no space left|file too large|quota exceeded", re.IGNORECASE)
_KILLED = re.compile(r"\bkilled\b|memory exhausted|out of memory|cannot allocate memory|ended with -\d", re.IGNORECASE)

_OPENMP_PROBE = '#include <omp.h>\nextern "C" int threads() { return omp_get_max_threads(); }\n'
_PLAIN_PROBE = 'extern "C" int threads() { return 1; }\n'


Unit = tuple[str, dict[str, str], dict[str, str]]
"""Arguments ``main``, ``generated`` and ``defines`` of one compilation."""


@dataclass(frozen=True)
class Compiler:
    """C++ compiler: its command line, and a text that identifies compiler and version."""

    command: tuple[str, ...]
    identity: str


def find_compiler() -> str:
    """Return the path of the C++ compiler: ``$CXX``, or the first of g++, clang++ and c++ on the search path.

    Raises:
        CompileError: no compiler is installed. The message contains the fix.
    """
    return _command()[0]


def check_native() -> None:
    """Check that a C++ compiler exists, or that the cache contains kernels.

    Raises:
        CompileError: no compiler is installed, and the cache contains no kernels. The message contains the fix.
    """
    try:
        find_compiler()
    except CompileError:
        if os.environ.get("CXX") or kept_like(f"{FOLDER}/*{LIBRARY_SUFFIX}") is None:
            raise


def load_native(
    main: str, generated: dict[str, str], defines: dict[str, str], linked: Sequence[Unit] = ()
) -> ctypes.CDLL:
    """Load the library of :func:`build_native`. If loading fails, rebuild the library once.

    Raises:
        BrokenCompilerError: the rebuilt library does not load either.
    """
    library = build_native(main, generated, defines, linked)
    with contextlib.suppress(OSError):
        return ctypes.CDLL(str(library))
    forget(library)
    library = build_native(main, generated, defines, linked)
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        forget(library)
        raise BrokenCompilerError(
            f"the library that the compiler made cannot be loaded ({error}); correct or set CXX, set GPUSIM_CACHE to "
            "a folder from which programs may run, or use backend='numpy', which needs none"
        ) from error


def build_native(main: str, generated: dict[str, str], defines: dict[str, str], linked: Sequence[Unit] = ()) -> Path:
    """Return the path of the shared library of ``main``. Compile it if it is not in the cache.

    If the compiler lacks OpenMP, the library runs on one thread. gpusim warns of missing OpenMP at most once per day.

    Args:
        main: name of a source in ``kernel_sources()`` or in ``generated``.
        generated: texts of generated sources by name. A generated source replaces a package source with the same name.
        defines: preprocessor macros.
        linked: units to compile separately and to link. Libraries share the compiled units through the cache.

    Raises:
        BrokenCompilerError: the compiler fails on a one-line program, or hangs.
        CompileError: no compiler is installed, a source has an error, or the cache is not writable. The message
            contains the file and line of the error.
        UnknownNameError: ``main`` does not exist.
    """
    sources, generated = _texts(main, generated, linked)
    try:
        compiler = _compiler()
    except CompileError:
        kept = None if os.environ.get("CXX") else kept_like(_name(main, sources, generated, defines, "*"))
        if kept is None:
            raise
        return kept
    macros = _macros(compiler, defines)
    no_openmp = _no_openmp_marker(compiler)
    if _is_fresh(no_openmp):
        return _build(compiler, main, sources, generated, defines, [*_flags(), *macros], linked)
    try:
        return _build(compiler, main, sources, generated, defines, [*_flags(), OPENMP, *macros], linked)
    except CompileError as error:
        if isinstance(error, BrokenCompilerError) or not _lacks_openmp(compiler):
            raise
    library = _build(compiler, main, sources, generated, defines, [*_flags(), *macros], linked)
    _remember(no_openmp)
    warnings.warn(
        f"{compiler.command[0]} has no OpenMP: the native backend runs on one thread; "
        "install libgomp or libomp for its version, or name another compiler in CXX",
        stacklevel=2,
    )
    return library


def find_native(
    main: str, generated: dict[str, str], defines: dict[str, str], linked: Sequence[Unit] = ()
) -> Path | None:
    """Return the path of the library of :func:`build_native`, or None if it is not in the cache."""
    try:
        compiler = _compiler()
        openmp = () if _is_fresh(_no_openmp_marker(compiler)) else (OPENMP,)
        flags = [*_flags(), *openmp, *_macros(compiler, defines)]
        return found(_library(compiler, main, *_texts(main, generated, linked), defines, flags))
    except CompileError:
        return None


def _texts(main: str, generated: dict[str, str], linked: Sequence[Unit]) -> tuple[dict[str, str], dict[str, str]]:
    """Return all sources of a build and of its linked units, and further texts that identify the build."""
    sources = reachable_sources(main, generated)
    for unit, headers, defines in linked:
        sources |= reachable_sources(unit, headers)
        generated = generated | {f"{unit} linked": " ".join(define_flags(defines))}
    return sources, generated


def _macros(compiler: Compiler, defines: dict[str, str]) -> list[str]:
    """Return the compiler flags for a build, including its macros."""
    # Unrolled loops over the rows of a contact make a step of a pile a sixth faster, and double the compile time. In
    # builds for groups of worlds, unrolled loops over vector components have the same effect.
    contacts, worlds = (int(defines.get(f"GPUSIM_{name}", "1")) > 1 for name in ("LANES", "WORLD_LANES"))
    gcc = _is_gcc(compiler)
    unrolled = UNROLLED if contacts or worlds else PEELED if gcc else ()
    return [*unrolled, *(SKIPPED if gcc and not contacts else ()), *define_flags(defines)]


def _is_gcc(compiler: Compiler) -> bool:
    return sys.platform == "linux" and "g++" in Path(compiler.command[0]).resolve().name


def _command() -> list[str]:
    """Return the path of the compiler and the arguments from ``$CXX``."""
    own = os.environ.get("CXX", "").strip()
    try:
        words = [own] if shutil.which(own) else shlex.split(own)  # a path may contain spaces
    except ValueError as error:
        raise BrokenCompilerError(f"CXX = {own!r} cannot be read ({error}); correct CXX or unset it") from None
    if words:
        path = shutil.which(words[0])
        if path is None:
            raise BrokenCompilerError(f"CXX names {words[0]!r}, which can't be run; correct CXX or unset it")
        return [os.path.abspath(path), *words[1:]]
    for name in COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return [os.path.abspath(path)]
    raise BrokenCompilerError(
        f"no C++ compiler found (CXX is not set, and none of {', '.join(COMPILERS)} is on the path); {_hint()}, "
        "or use backend='numpy', which needs none"
    )


def _hint() -> str:
    if sys.platform == "darwin":
        return "install one with 'xcode-select --install'"
    if sys.platform == "win32":
        return "install MinGW-w64 or LLVM and put it on the path"
    return "install g++ (Debian, Ubuntu: 'apt install g++'; Fedora: 'dnf install gcc-c++')"


def _compiler() -> Compiler:
    command = _command()
    # Use the date and size of the compiler's file, because a query of the version would take longer than the lookup.
    program = Path(command[0]).resolve()
    facts = program.stat()
    identity = f"{program} {facts.st_mtime_ns} {facts.st_size} {sys.platform} {platform.machine()}"
    return Compiler(tuple(command), identity)


def _flags() -> list[str]:
    intel = platform.machine().lower() in ("x86_64", "amd64")
    # -mtune orders instructions for this processor, which saves an eighth of a humanoid's step.
    return [*FLAGS, *(["-mno-fma", "-mtune=native", *_vector_flags()] if intel else [])]


def vector_bytes() -> int:
    """Return the size of the SIMD vectors that the kernels use (bytes)."""
    return 64 if "-mavx512f" in _vector_flags() else 32


@cache
def _vector_flags() -> tuple[str, ...]:
    """Return the compiler flags for the SIMD instructions of the processor."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ()
    try:
        words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return ()
    sets = ("avx512f", "avx512vl", "avx512dq", "avx512bw")
    more = tuple(f"-m{name}" for name in sets) if words.issuperset(sets) else ()
    return ("-mavx2", *more) if "avx2" in words else ()


def _name(main: str, sources: dict[str, str], generated: dict[str, str], defines: dict[str, str], compiler: str) -> str:
    texts = [text for pair in sorted((generated | sources).items()) for text in pair]
    made_of = digest([main, sys.platform, platform.machine(), *_vector_flags(), *define_flags(defines), *texts])
    return f"{FOLDER}/{Path(main).stem}-{made_of}-{compiler}{LIBRARY_SUFFIX}"


def _library(
    compiler: Compiler,
    main: str,
    sources: dict[str, str],
    generated: dict[str, str],
    defines: dict[str, str],
    flags: list[str],
) -> str:
    """Return the cache path of a library that this compiler builds."""
    by = digest([compiler.identity, *compiler.command, *flags])[:16]
    return _name(main, sources, generated, defines, by)


def _build(
    compiler: Compiler,
    main: str,
    sources: dict[str, str],
    generated: dict[str, str],
    defines: dict[str, str],
    flags: list[str],
    linked: Sequence[Unit],
) -> Path:
    name = _library(compiler, main, sources, generated, defines, flags)

    def make(scratch: Path) -> Path:
        _check_compiler(compiler)
        objects = [str(_object(compiler, *unit)) for unit in linked]
        return _make(compiler, main, sources, flags, scratch, name, objects)

    return cached(name, make, f"{main} for this CPU")


def _object(compiler: Compiler, main: str, generated: dict[str, str], defines: dict[str, str]) -> Path:
    """Return the path of a compiled unit to link. Compile the unit if it is not in the cache."""
    sources, flags = reachable_sources(main, generated), [*_flags(), *_macros(compiler, defines)]
    name = _library(compiler, main, sources, generated, defines, flags).removesuffix(LIBRARY_SUFFIX) + OBJECT_SUFFIX
    return cached(name, lambda scratch: _make(compiler, main, sources, flags, scratch, name), f"{main} for this CPU")


def _make(
    compiler: Compiler,
    main: str,
    sources: dict[str, str],
    flags: list[str],
    scratch: Path,
    name: str,
    objects: Sequence[str] = (),
) -> Path:
    """Compile ``main`` in the folder ``scratch`` to a library that contains ``objects``, or to an object."""
    folder = scratch / "sources"
    _lay_out(folder, sources)
    output = scratch / Path(name).name
    failure = _run(compiler, flags, folder, main, output, BUILD_LIMIT, objects)
    if failure is not None:
        raise _compile_failure(compiler, main, failure)
    return output


def _compile_failure(compiler: Compiler, main: str, output: str) -> CompileError:
    """Return the error for a failed compilation: full disk, killed compiler or source error."""
    if (full := _FULL.search(output)) is not None:
        return no_room(cache_folder() / FOLDER, full.group().capitalize())
    if _KILLED.search(output):
        return BrokenCompilerError(
            f"the compiler {compiler.command[0]} was killed while it compiled {main}, most often because memory ran "
            "out (a build takes 400 MB); free some memory, or use backend='numpy', which needs none"
        )
    return compile_error(main, compiler.command[0], output)


def _lay_out(folder: Path, sources: dict[str, str]) -> None:
    for name, text in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _run(
    compiler: Compiler,
    flags: list[str],
    folder: Path,
    main: str,
    output: Path,
    limit: float,
    objects: Sequence[str] = (),
) -> str | None:
    """Run the compiler. Return its output if it fails, or None if it succeeds."""
    kind = "-c" if output.suffix == OBJECT_SUFFIX else "-shared"
    command = [*compiler.command, *flags, kind, "-I", ".", "-x", "c++", main, "-x", "none", *objects, "-o", str(output)]
    environment = os.environ | {"LC_ALL": "C"}  # error messages in English
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, errors="replace",
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                reported, errors = process.communicate(timeout=limit)
            except BaseException:
                _kill(process)
                raise
    except OSError as error:
        raise BrokenCompilerError(
            f"the compiler {compiler.command[0]} can't be run: {error}; correct or set CXX"
        ) from error
    except subprocess.TimeoutExpired:
        raise BrokenCompilerError(
            f"the compiler {compiler.command[0]} has not ended after {limit:g} s and was stopped; correct or set CXX, "
            "or use backend='numpy', which needs none"
        ) from None
    if process.returncode == 0 and output.is_file():
        return None
    return errors or reported or f"it ended with {process.returncode} and without a library"


def _kill(process: subprocess.Popen[str]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _check_compiler(compiler: Compiler) -> None:
    """Compile a one-line program to check the compiler.

    Raises:
        BrokenCompilerError: the compiler fails or hangs.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _lay_out(folder, {"probe.cpp": _PLAIN_PROBE})
        failure = _run(compiler, _flags(), folder, "probe.cpp", folder / ("probe" + LIBRARY_SUFFIX), PROBE_LIMIT)
    if failure is not None:
        words = " ".join(failure.split())
        raise BrokenCompilerError(
            f"the compiler {compiler.command[0]} does not compile a program of one line ({words[:300]}); repair it, "
            "name another one in CXX, or use backend='numpy', which needs none"
        )


def _lacks_openmp(compiler: Compiler) -> bool:
    """Return whether this compiler works only without OpenMP."""
    return not _compiles(compiler, [OPENMP], _OPENMP_PROBE) and _compiles(compiler, [], _PLAIN_PROBE)


def _compiles(compiler: Compiler, flags: list[str], text: str) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _lay_out(folder, {"probe.cpp": text})
        library = folder / ("probe" + LIBRARY_SUFFIX)
        return _run(compiler, [*_flags(), *flags], folder, "probe.cpp", library, PROBE_LIMIT) is None


def _no_openmp_marker(compiler: Compiler) -> Path:
    return cache_folder() / FOLDER / f"no-openmp-{digest([compiler.identity, *compiler.command])}"


def _is_fresh(marker: Path) -> bool:
    try:
        return time.time() - marker.stat().st_mtime < ASK_AGAIN_AFTER
    except OSError:
        return False


def _remember(marker: Path) -> None:
    try:
        marker.touch()
    except OSError:
        pass  # the library is in the cache, and the next run checks again
