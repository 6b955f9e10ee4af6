"""CUDA streams of other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpusim import validate
from gpusim.backends.cuda.device import load_cupy


@contextmanager
def on_stream(stream: Any) -> Iterator[None]:
    """Run all launches inside the ``with`` block on a CUDA stream, e.g. ``torch.cuda.current_stream()``.

    By default, the CUDA backend launches on CuPy's current stream, which differs from PyTorch's stream. With a common
    stream, the kernels of the simulation and of PyTorch run in order, and the host does not wait.

    Args:
        stream: a stream of PyTorch (``cuda_stream``) or CuPy (``ptr``), or the address of a ``cudaStream_t``.

    Raises:
        ModelError: ``stream`` is not a stream, or CuPy is missing.
    """
    address = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if isinstance(address, bool) or not isinstance(address, int):
        rule = f"stream {stream!r:.80} is not a CUDA stream"
        raise validate.fail("on_stream", rule, "give torch.cuda.current_stream() or a CuPy stream")
    device = max(getattr(stream, "device_index", getattr(stream, "device_id", 0)), 0)
    cupy = load_cupy(device)
    with cupy.cuda.Device(device), cupy.cuda.ExternalStream(address):
        yield
