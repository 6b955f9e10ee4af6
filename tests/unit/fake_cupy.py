"""A replacement for CuPy on host memory, to test how the cuda backend copies and launches.

The tests check the order of copies and launches without a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


class FakeArray(np.ndarray):
    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self, out: Any = None) -> Any:
        host = np.array(self)
        if out is None:
            return host
        np.copyto(out, host)
        return out

    def set(self, host: np.ndarray) -> None:
        assert host.shape == self.shape and host.dtype == self.dtype
        np.copyto(np.asarray(self), host)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def fake(array: Any) -> FakeArray:
    return np.array(array, order="C").view(FakeArray)


class Function:
    recording: list[Any] | None = None
    _caps: dict[tuple[str, str], int] = {}

    def __init__(self, path: str, name: str, function: Any) -> None:
        self._key, self._function = (path, name), function

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return Function._caps.get(self._key, 48 * 1024)

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        assert size <= Device.attributes["MaxSharedMemoryPerBlockOptin"]
        Function._caps[self._key] = size

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
        assert grid[0] > 0 and block[0] % 32 == 0
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        if Function.recording is not None:
            Function.recording.append((self, grid, block, arguments, shared_mem))
            return
        self.launch(grid[0], block[0], arguments, shared_mem)

    def launch(self, grid: int, block: int, arguments: tuple[Any, ...], shared: int) -> None:
        kinds: dict[type, Any] = {np.float64: ctypes.c_double, np.int32: ctypes.c_int}
        if self._key[1] == "run_worlds":
            arguments = (*arguments[:-1], np.int32(1))
        self._function(
            *(ctypes.c_void_p(a.ctypes.data) if isinstance(a, FakeArray) else kinds[type(a)](a) for a in arguments)
        )


class Module:
    def __init__(self, path: str) -> None:
        self._path, self._library = path, ctypes.CDLL(path)
        self._functions: dict[str, Function] = {}

    def get_function(self, name: str) -> Function:
        return self._functions.setdefault(name, Function(self._path, name, getattr(self._library, name)))

    def get_global(self, name: str) -> int:
        return ctypes.addressof(ctypes.c_char.in_dll(self._library, name))


class Graph:
    def __init__(self, launches: list[Any]) -> None:
        self._launches = launches

    def launch(self, stream: Any) -> None:
        for function, *rest in self._launches:
            function(*rest)


class Stream:
    # Number of the current one, and (stream that waits, stream it waits for).
    current = 0
    waits: list[tuple[int, int]] = []

    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = Stream.current

    def record(self) -> int:
        return self.ptr

    def wait_event(self, event: int) -> None:
        Stream.waits.append((self.ptr, event))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *unused: Any) -> None:
        pass

    def begin_capture(self) -> None:
        Function.recording = []

    def end_capture(self) -> Graph:
        launches, Function.recording = Function.recording, None
        assert launches
        return Graph(launches)


class ExternalStream(contextlib.nullcontext[None]):
    def __init__(self, ptr: int) -> None:
        super().__init__()
        self.ptr = ptr

    def __enter__(self) -> None:
        self._outer, Stream.current = Stream.current, self.ptr

    def __exit__(self, *unused: Any) -> None:
        Stream.current = self._outer


class Event:
    def record(self) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Do nothing, because all work is already done."""


def get_elapsed_time(begin: Event, end: Event) -> float:
    return 1e3 * (end.seconds - begin.seconds)


class Device(contextlib.nullcontext[None]):
    compute_capability = "90"
    # The names that CuPy 14.2 has, no others; those that matter with numbers of a small H100.
    attributes = dict.fromkeys(Path(__file__).with_name("cupy_attributes.txt").read_text().split(), 1) | {
        "MultiProcessorCount": 4, "MaxSharedMemoryPerBlockOptin": 232448, "MaxSharedMemoryPerMultiprocessor": 233472,
        "ClockRate": 1_980_000, "MemoryClockRate": 2_619_000, "GlobalMemoryBusWidth": 5120,
    }  # fmt: skip

    def __init__(self, number: int) -> None:
        super().__init__()
        assert number in (0, 1)


def _copy(target: int, source: int, size: int, kind: int, stream: int) -> None:
    ctypes.memmove(target, source, size)


asarray = ascontiguousarray = fake


def zeros(shape: Any, dtype: Any) -> FakeArray:
    return fake(np.zeros(shape, dtype))


def empty(shape: Any) -> FakeArray:
    return fake(np.full(shape, np.nan))


def from_dlpack(array: Any) -> FakeArray:
    return np.asarray(array).view(FakeArray)


def ndarray(shape: tuple[int], dtype: Any, pointer: int) -> FakeArray:
    size = shape[0] * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype).view(FakeArray)


def arange(stop: int, dtype: Any) -> FakeArray:
    return fake(np.arange(stop, dtype=dtype))


def broadcast_to(array: Any, shape: tuple[int, ...]) -> FakeArray:
    return np.broadcast_to(array, shape).view(FakeArray)


def concatenate(arrays: list[Any], axis: int) -> FakeArray:
    return fake(np.concatenate(arrays, axis))


def get_default_memory_pool() -> Any:
    return SimpleNamespace(free_all_blocks=lambda: None)


__version__ = "14.2.0"
RawModule = Module
cuda = SimpleNamespace(
    Device=Device,
    Event=Event,
    ExternalStream=ExternalStream,
    get_elapsed_time=get_elapsed_time,
    Stream=Stream,
    get_current_stream=Stream,
    alloc_pinned_memory=bytearray,
    runtime=SimpleNamespace(
        deviceSynchronize=lambda: None,
        getDeviceProperties=lambda number: {"name": b"NVIDIA H100"},
        getDeviceCount=lambda: 2,
        memcpyAsync=_copy,
        memGetInfo=lambda: (60 << 30, 80 << 30),
    ),
)


def where(condition: Any, yes: Any, no: Any) -> FakeArray:
    return fake(np.where(condition, yes, no))
