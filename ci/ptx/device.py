"""Replacement for CuPy, so that ``backend="cuda"`` runs on the executor.

All parts except arrays and kernels are from tests/unit/fake_cupy.py. The executor also finds accesses to freed arrays.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from ci.ptx.executor import ARCH, NVRTC_MAJOR, Module, build, executor, make_ptx
from gpusim.backends.codegen.kernel_sources import gpu_sources
from tests.unit import fake_cupy

GAP, ALIGN = 256, 256
# Reuse memory only if this number of pieces of the same size is free, to find late accesses to freed memory.
FALLOW = 8
# One processor, so that a staged launch has few idle threads.
ATTRIBUTES = fake_cupy.Device.attributes | {"MultiProcessorCount": 1}

_free: dict[int, list[int]] = {}
_end = 0


def _take(size: int) -> int:
    """Allocate ``size`` bytes and return the address."""
    global _end
    room = -(-(size + GAP) // ALIGN) * ALIGN
    waiting = _free.setdefault(room, [])
    if len(waiting) > FALLOW:
        return waiting.pop(0)
    if _end + room > executor().size:
        raise MemoryError("the memory of ci/ptx/executor.cpp is full: raise MEMORY_BYTES, or run smaller models")
    _end += room
    return executor().base + _end - room


def _give(address: int, size: int) -> None:
    executor().mark(address, size, False, False)
    _free[-(-(size + GAP) // ALIGN) * ALIGN].append(address)


def device_array(array: Any, written: bool = True) -> fake_cupy.FakeArray:
    """Copy an array to the executor's memory."""
    host = np.array(array, order="C")
    address = _take(host.nbytes)
    buffer: Any = (ctypes.c_char * max(host.nbytes, 1)).from_address(address)
    weakref.finalize(buffer, _give, address, host.nbytes)
    device = np.ndarray(host.shape, host.dtype, buffer=buffer).view(fake_cupy.FakeArray)
    np.copyto(np.asarray(device), host)
    executor().mark(address, host.nbytes, True, written)
    return device


def mark_unwritten(array: fake_cupy.FakeArray) -> None:
    """Mark a device array as unwritten. A read before the next write is then a finding."""
    np.asarray(array).view(np.uint8).fill(0xFF)
    executor().mark(array.ctypes.data, array.nbytes, True, False)


class Function(fake_cupy.Function):
    """Kernel that the executor runs."""

    def __init__(self, module: RawModule, name: str) -> None:
        super().__init__(module.path, name, None)
        self._module, self._name = module, name

    def launch(self, grid: int, block: int, arguments: tuple[Any, ...], shared: int) -> None:
        """Run the kernel with its arguments in PTX layout."""
        packed = b""
        for a in arguments:
            if isinstance(a, fake_cupy.FakeArray):
                packed += b"\0" * (-len(packed) % 8) + struct.pack("<Q", a.ctypes.data)
            else:
                assert isinstance(a, np.float64 | np.int32), f"{self._name}: {type(a).__name__} cannot be an argument"
                packed += b"\0" * (-len(packed) % a.itemsize) + a.tobytes()
        self._module.loaded().launch(self._name, grid, block, packed, shared)


# Arguments of a compilation: source, included sources, defines, more options, architecture, NVRTC version.
Part = tuple[str, dict[str, str], dict[str, str], tuple[str, ...], str, int]
Sources = Callable[[], tuple[Part, ...]]
# Arguments of ``compile_cuda``, by the path that it returned. The first launch of a kernel compiles the source.
_asked: dict[str, Sources] = {}
_numbers = itertools.count()  # several threads request builds of a model
_loaded: dict[str, Module] = {}


class RawModule:
    """Module in a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def get_function(self, name: str) -> Function:
        """Return a kernel by its name."""
        return Function(self, name)

    def loaded(self) -> Module:
        """Return the executor's module."""
        if self.path not in _loaded:
            _loaded[self.path] = load_module(*_asked[self.path]())
        return _loaded[self.path]


def load_module(*parts: Part) -> Module:
    """Return the kernels of a source, or of several linked sources. Compile sources that are missing in the cache."""
    module = Module(build(*(make_ptx(*part) for part in parts)))
    module.load_tables(_permanent_copy)
    return module


_tables: list[fake_cupy.FakeArray] = []


def _permanent_copy(values: bytes) -> int:
    """Copy values to the device permanently, and return their address."""
    _tables.append(device_array(np.frombuffer(values, np.uint8)))
    return _tables[-1].ctypes.data


def _compiler(fault: tuple[str, str, str] | None, virtual: str, major: int) -> Callable[..., Path]:
    """Return a replacement for ``compile_cuda`` that compiles for a virtual architecture."""

    def compile_cuda(
        main: str,
        generated: dict[str, str],
        defines: dict[str, str],
        arch: str,
        fast: bool,
        quick: bool = False,
        options: tuple[str, ...] = (),
    ) -> Path:
        assert not fast, "the bits of fast=True differ from native's"
        path = f"ptx-{next(_numbers)}"

        def parts() -> tuple[Part, ...]:
            texts = gpu_sources(main, generated)
            if fault is not None and fault[0] in texts:
                name, right, wrong = fault
                found = texts[name].count(right)
                assert found == 1, f"{name} holds {right!r} {found} times, not once: choose another text for the fault"
                texts[name] = texts[name].replace(right, wrong)
            return ((main, texts, defines, options, virtual, major),)

        _asked[path] = parts
        return Path(path)

    return compile_cuda


def _link(paths: Sequence[Path], arch: str) -> Path:
    """Replace ``link_cubins``. The executor links parts during translation."""
    path = f"ptx-{next(_numbers)}"
    parts = [_asked[str(part)] for part in paths]
    _asked[path] = lambda: tuple(itertools.chain.from_iterable(part() for part in parts))
    return Path(path)


class Device(fake_cupy.Device):
    """GPU with one multiprocessor."""

    attributes = ATTRIBUTES


@contextmanager
def imported(name: str, module: Any) -> Iterator[None]:
    """Make ``import name`` return ``module`` within this ``with`` block."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


@contextmanager
def installed(
    fault: tuple[str, str, str] | None = None, linked: bool = False, virtual: str = ARCH, major: int = NVRTC_MAJOR
) -> Iterator[None]:
    """Run ``backend="cuda"`` on the executor within this ``with`` block.

    Args:
        linked: compile contact detection as a separate part, and link the parts.
        virtual: architecture of the PTX.
        major: major version of NVRTC.
        fault: deliberate fault, to test the checks. It contains the name of a source, a text that occurs once in this
            source, and the replacement.
    """
    cupy = SimpleNamespace(
        asarray=device_array,
        ascontiguousarray=device_array,
        zeros=lambda shape, dtype: device_array(np.zeros(shape, dtype)),
        empty=lambda shape: device_array(np.full(shape, np.nan), written=False),
        from_dlpack=fake_cupy.from_dlpack,
        where=lambda condition, yes, no: device_array(np.where(condition, yes, no)),
        RawModule=RawModule,
        cuda=SimpleNamespace(**vars(fake_cupy.cuda) | {"Device": Device}),
    )
    with (
        imported("cupy", cupy),
        mock.patch("gpusim.backends.cuda.builds.compile_cuda", _compiler(fault, virtual, major)),
        mock.patch("gpusim.backends.cuda.builds.link_cubins", _link),
        mock.patch("gpusim.backends.cuda.builds.load_linker", lambda: None),
        mock.patch("gpusim.backends.load_nvrtc", lambda: None),
        mock.patch.dict("os.environ", {"GPUSIM_CUDA_BUILD": "quick" if linked else "full"}),
    ):
        yield
