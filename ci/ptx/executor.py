"""Compile sources to PTX and PTX to CPU libraries, and launch their kernels.

The user's cache folder keeps PTX and libraries. Each process has one executor, and all modules share its memory.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ci.ptx.reader import join, read_module
from ci.ptx.translator import translate
from gpusim.backends.cuda.compile import nvrtc_options
from gpusim.backends.cuda.nvrtc import load_nvrtc
from gpusim.backends.native.compile import find_compiler
from gpusim.compile_cache import CompileError, cached, compile_error, digest
from gpusim.typing import Array

NVRTC_MAJOR = 12
# A virtual architecture, because it needs no ptxas. The PTX is the same for all architectures before sm_100.
ARCH = "compute_90"
# Adds source lines to the PTX, and does not change instructions.
LINES = "-lineinfo"
# -Og compiles in a third of the time of -O2. Most modules run for a second.
FLAGS = (
    ("-std=c++17", "-Og", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv")
    + ("-fno-tree-vectorize", "-fno-math-errno", "-w")
)  # fmt: skip
HERE = Path(__file__).resolve().parent
FOLDER = "ptx"
# In the order of enum Kind in executor.hpp. The last two kinds are notes. PTX copies whole structures, including
# unwritten parts, and does not define which of two zeros is the maximum.
KINDS = (
    ("out of bounds", "misaligned", "unwritten memory read", "race between threads", "race between blocks")
    + ("divergent barrier", "whole number divided by zero", "conversion out of range")
    + ("blocks that wait forever",)
    + ("unwritten local memory read", "maximum of zeros with different signs")
)  # fmt: skip
NOTES = KINDS[-2:]
MANY = 0xFFFF
# Members of struct Traffic in counts.hpp.
TRAFFIC = 5
_NO_SITE, _MAX_FINDINGS, _ROW = 0xFFFFFFFF, 4096, 8


def why_not(major: int = NVRTC_MAJOR) -> str:
    """Return the reason why this computer cannot run PTX of this NVRTC version, or an empty string."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "ci/ptx/executor.cpp switches between threads with code for Linux on x86-64"
    try:
        load_nvrtc(major)
        find_compiler()
    except CompileError as error:
        return str(error)
    return ""


def make_ptx(
    main: str,
    sources: dict[str, str],
    defines: dict[str, str],
    options: Sequence[str] = (),
    arch: str = ARCH,
    major: int = NVRTC_MAJOR,
) -> str:
    """Return the PTX of a build, with the flags of the cuda backend.

    Args:
        main: name of the main source.
        sources: result of ``reachable_sources``.
        defines: preprocessor macros.
        options: additional options of NVRTC.
        arch: virtual architecture.
        major: major version of NVRTC.

    Raises:
        NvrtcMissingError: NVRTC of this version is not installed.
        CompileError: a source has an error.
    """
    nvrtc = load_nvrtc(major)
    options = [*nvrtc_options(defines, arch), *options, LINES]

    def make(scratch: Path) -> bytes:
        compiled = nvrtc.compile(main, sources, options)
        if compiled.cubin is None:
            raise compile_error(main, nvrtc.name, compiled.log)
        return compiled.ptx.encode()

    texts = [text for pair in sorted(sources.items()) for text in pair]
    return cached(f"{FOLDER}/{digest([nvrtc.name, *options, main, *texts])}.ptx", make).read_text(encoding="utf-8")


def _library(inputs: list[str], text: Callable[[], str]) -> Path:
    """Return a shared library from C++ code that includes executor.hpp.

    Raises:
        CompileError: no compiler, or an error in the text.
    """
    compiler = find_compiler()
    header = (HERE / "executor.hpp").read_text(encoding="utf-8")
    name = digest([compiler, *FLAGS, header, *inputs])

    def make(scratch: Path) -> Path:
        source, library = scratch / f"{name}.cpp", scratch / f"{name}.so"
        source.write_text(text(), encoding="utf-8")
        command = [compiler, *FLAGS, "-I", str(HERE), str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise compile_error(source.name, compiler, done.stderr)
        return library

    return cached(f"{FOLDER}/{name}.so", make)


def build(*parts: str, counted: bool = False) -> Path:
    """Build a library from one PTX text or several linked texts, optionally with counters. Return the path of the
    library.

    Raises:
        PtxError: an instruction is not allowed or has no translation, or the texts do not fit together.
        CompileError: no C++ compiler is installed.
    """
    names = ("reader.py", "forms.py", "instructions.py", "translator.py")
    inputs = [(HERE / name).read_text(encoding="utf-8") for name in names]
    return _library(
        [*parts, *inputs, *["counted"] * counted],
        lambda: translate(join([read_module(ptx) for ptx in parts]), counted),
    )


@dataclass(frozen=True)
class Finding:
    """Fault that the executor has found, for one pair of source lines.

    Attributes:
        kind: kind of the finding, see KINDS.
        position, other: source lines. ``other`` is the second line of a race or of a barrier, else empty.
        count: number of occurrences.
        thread, other_thread, block: indices in the first occurrence. MANY means several threads.
    """

    kind: str
    position: str
    other: str
    count: int
    thread: int
    other_thread: int
    block: int

    def __str__(self) -> str:
        other = f" with {self.other}" if self.other else ""
        second = "others" if self.other_thread == MANY else str(self.other_thread)
        threads = f"threads {self.thread} and {second}" if self.other else f"thread {self.thread}"
        return f"{self.kind}: {self.position}{other} ({self.count} times, at first {threads} of block {self.block})"


class Executor:
    """Executor of kernels on the CPU, with its memory and findings.

    Attributes:
        base: address of the memory for device arrays.
        size: size of the memory for device arrays (bytes).

    Raises:
        CompileError: no C++ compiler is installed, or the address space is too small.
    """

    def __init__(self) -> None:
        text, counts = ((HERE / name).read_text(encoding="utf-8") for name in ("executor.cpp", "counts.hpp"))
        self._library = ctypes.CDLL(str(_library([text, counts], lambda: text)), mode=ctypes.RTLD_GLOBAL)
        self._library.ptx_open.restype = ctypes.c_void_p
        self._library.ptx_memory_bytes.restype = ctypes.c_uint64
        self._library.ptx_launch.restype = ctypes.c_bool
        base = self._library.ptx_open()
        if base is None:
            raise CompileError("the executor needs 8 GB of address space: raise the limit (ulimit -v)")
        self.base: int = base
        self.size: int = self._library.ptx_memory_bytes()
        self._modules: list[Module] = []
        self._counted: dict[int, tuple[int, int, int]] = {}
        self.configure()

    def configure(self, seed: int = 0, poison: int = 0xFF) -> None:
        """Reset the executor and its findings.

        Args:
            seed: random seed for the order of blocks, and of threads between barriers. With 0, blocks and threads run
                in the order of their numbers.
            poison: byte that fills fresh shared and local memory.
        """
        self._library.ptx_configure(ctypes.c_uint64(seed), poison)
        self._library.ptx_forget()

    def mark(self, at: int, size: int, allocated: bool, written: bool) -> None:
        """Record that the host has allocated, written or freed a range of memory."""
        self._library.ptx_mark(ctypes.c_uint64(at), ctypes.c_uint64(size), int(allocated), int(written))

    def add(self, module: Module) -> int:
        """Add a module and return its number."""
        self._modules.append(module)
        return len(self._modules) - 1

    def launch(self, number: int, kernel: Any, grid: int, block: int, shared: int, params: bytes) -> bool:
        """Run a kernel of a module, or return False if a block needs too many threads or too much shared memory."""
        at = ctypes.c_char_p(params)
        return bool(self._library.ptx_launch(number, ctypes.byref(kernel), grid, block, shared, at))

    def count(self, number: int, blocks: int, sites: int, threads: int, caches: Sequence[int]) -> None:
        """Start counting in the launches of a module with counters.

        Args:
            number: number of the module.
            blocks, sites: numbers of basic blocks, and of memory accesses and barriers (sites), in the module.
            threads: maximum size of a block.
            caches: sizes in bytes.
        """
        sizes = (ctypes.c_uint64 * len(caches))(*caches)
        self._counted[number] = blocks, sites, len(caches)
        self._library.ptx_count(number, blocks, sites, threads, sizes, len(caches))

    def take_counts(self, number: int) -> tuple[Array, Array, Array, list[int]]:
        """Return the counts of a module since the previous call.

        Returns:
            Four arrays. First: executions of each basic block, summed over all threads. Second: executions by the
            busiest thread of each warp, summed over all warps. Third: lines of global memory by memory access (site).
            Fourth: ``Traffic`` of counts.hpp for global, shared and local memory, and the bytes that each cache
            fetched.
        """
        blocks, sites, caches = self._counted[number]
        threads, warps = np.zeros((2, blocks), np.uint64)
        lines = np.zeros(sites, np.uint64)
        memory = (ctypes.c_uint64 * (3 * TRAFFIC + caches))()
        pointer = ctypes.POINTER(ctypes.c_uint64)
        arrays = (array.ctypes.data_as(pointer) for array in (threads, warps, lines))
        self._library.ptx_take_counts(number, *arrays, memory)
        return threads, warps, lines, list(memory)

    def findings(self) -> list[Finding]:
        """Return the findings since ``configure``, most frequent first."""
        rows = (ctypes.c_uint64 * (_ROW * _MAX_FINDINGS))()
        count = min(self._library.ptx_findings(rows, _MAX_FINDINGS), _MAX_FINDINGS)
        out: dict[tuple[str, str, str], Finding] = {}
        for k in range(count):
            module, kind, site, other, times, *first = rows[_ROW * k : _ROW * (k + 1)]
            source = self._modules[module]
            key = KINDS[kind], source.site(site), source.site(other)
            before = out.get(key)
            out[key] = replace(before, count=before.count + times) if before else Finding(*key, times, *first)
        return sorted(out.values(), key=lambda finding: -finding.count)


@cache
def executor() -> Executor:
    """Return the executor of this process."""
    return Executor()


class _Kernel(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("param_bytes", ctypes.c_int),
        ("waits", ctypes.c_int),
        ("spins", ctypes.c_int),
    ]


class _Table(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.POINTER(ctypes.c_uint64)),
        ("values", ctypes.POINTER(ctypes.c_uint8)),
        ("size", ctypes.c_uint64),
    ]


class Module:
    """The kernels of one library.

    Args:
        path: result of ``build``.
    """

    def __init__(self, path: Path) -> None:
        self._executor = executor()  # load the executor first, because the library needs its symbols
        self._library = ctypes.CDLL(str(path))
        self._sites = ctypes.cast(self._library.ptx_sites, ctypes.POINTER(ctypes.c_char_p))
        table = ctypes.cast(self._library.ptx_kernels, ctypes.POINTER(_Kernel))
        self._kernels: dict[str, _Kernel] = {}
        while table[len(self._kernels)].name:
            kernel = table[len(self._kernels)]
            self._kernels[kernel.name.decode()] = kernel
        self.number = self._executor.add(self)

    def load_tables(self, store: Callable[[bytes], int]) -> None:
        """Set the device address of every initialized array in global memory.

        ``store`` is a function that stores bytes and returns their address.
        """
        table = ctypes.cast(self._library.ptx_tables, ctypes.POINTER(_Table))
        for k in itertools.count():
            if not table[k].address:
                return
            table[k].address[0] = store(bytes(table[k].values[: table[k].size]))

    def sites(self) -> int:
        """Return the number of memory accesses and barriers (sites) in the module."""
        return next(k for k in itertools.count() if not self._sites[k])

    def site(self, number: int) -> str:
        """Return the source line and function of a memory access or barrier (site). Return "" for no site."""
        text = None if number == _NO_SITE else self._sites[number]
        return text.decode() if text else ""

    def launch(self, name: str, grid: int, block: int, params: bytes, shared: int = 0) -> None:
        """Run a kernel.

        Args:
            name: name of the kernel.
            grid, block: number of blocks, and number of threads per block.
            params: parameters of the kernel in PTX layout.
            shared: bytes of dynamic shared memory.

        Raises:
            ValueError: the kernel takes other parameters, or a block is too large.
        """
        kernel = self._kernels[name]
        if len(params) != kernel.param_bytes:
            raise ValueError(f"{name} takes {kernel.param_bytes} bytes of parameters, not {len(params)}")
        if not self._executor.launch(self.number, kernel, grid, block, shared, params):
            raise ValueError(f"{name}: a block of {block} threads with {shared} bytes of shared memory is too large")
