"""Write recordings to the disk in blocks of samples, so memory use does not grow during a run."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.errors import ModelError, unknown_name
from gpusim.output_files import PART, check_output_file, locked, named_errors, part_of, put_aside
from gpusim.recording.formats.rerun_file import RerunStream
from gpusim.recording.formats.writer import Reading, Writer
from gpusim.recording.formats.writers import WRITERS, suffix_of
from gpusim.recording.layout import DTYPES, Block, Layout
from gpusim.recording.live import check_address, is_address
from gpusim.recording.recorder import load_recording
from gpusim.signals.step_samplers import RegularSampler
from gpusim.signals.writing import chosen_worlds
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

_MEMORY, _MAX_SAMPLES = 1 << 23, 1024
"""Maximum size of a block, in bytes and in samples."""
_TIME = "sim.time"
_LIVE_EVERY, _LIVE_PAUSE = 0.05, 4.0
"""Minimum pause between two blocks that the recorder sends to a viewer. The pause is at least _LIVE_EVERY (s), and at
least _LIVE_PAUSE times the time to send the last block."""


class StreamRecorder:
    """Recorder that writes signals to a ``.part`` file. :meth:`close` converts the ``.part`` file to the final file.

    Args:
        sim: the simulation.
        signals: signal names or patterns with wildcards, see :meth:`Simulation.observe`.
        path: path of the recording (.npz, .parquet, .mcap, .csv or .rrd), or the address of a running Rerun viewer,
            e.g. rerun+http://127.0.0.1:9876/proxy.
        worlds: worlds to record, as in :meth:`Simulation.write`, or None for all worlds.
        dtype: floating-point type in the file, "float64" or "float32".

    Attributes:
        layout: names, shapes and units of the recorded signals.
        rescued: path to which the recorder moved the unfinished file of an earlier run, or None.

    Raises:
        UnknownNameError: a signal or the dtype is unknown.
        ModelError: the suffix or a world is unknown, the file cannot be written, a library is missing, or another open
            recorder writes the file.
    """

    _closed = True  # until __init__ has succeeded
    _lock: BinaryIO | None = None

    def __init__(
        self,
        sim: Any,
        signals: str | Iterable[str],
        path: str | os.PathLike[str],
        *,
        worlds: Any = None,
        dtype: str = "float64",
    ) -> None:
        address = check_address(str(path)) if is_address(path) else ""
        self.path = Path(path) if address else check_output_file(path, tuple(WRITERS), "recording")
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise unknown_name("dtype of a recording", str(dtype), DTYPES)
        format_: type[Writer] = RerunStream if address else WRITERS[suffix_of(self.path)]
        format_.prepare()
        self._worlds = chosen_worlds("recording", worlds, sim.num_worlds)
        if not self._worlds.size:
            raise validate.fail("recording", f"worlds = {worlds!r} selects no world", "give at least one")
        names = sim.observe(signals).names
        self._model = getattr(sim, "model", None) if format_.poses else None
        bodies = tuple(body.label for body in self._model.bodies) if self._model is not None else ()
        poses = [f"body.{body}.{part}" for body in bodies for part in ("position", "orientation")]
        self._seen = sim.observe([_TIME, *(name for name in [*names, *poses] if name != _TIME)])
        known = sim.signals()
        shapes, units = ({name: getattr(known[name], part) for name in names} for part in ("shape", "unit"))
        self.layout = Layout(shapes, units, tuple(self._worlds.tolist()), dtype, bodies)
        self._columns, self._poses = (self._columns_of(chosen) for chosen in (names, poses))
        self._make_buffers()
        self._part, self._written = None if address else part_of(self.path), 0
        self.rescued = None if self._part is None else put_aside(self._part)
        self._name = address or str(self._part)
        with named_errors(self._name):
            self._writer = format_(self._part or address, self.layout, self._model)
        if self._part is not None:
            self._lock = locked(self._part)
        self._due = 0.0
        self._closed = False

    def _columns_of(self, names: Iterable[str]) -> Array:
        """Return the columns of the signals ``names`` in the observation array."""
        slices = self._seen.slices
        return np.array([k for name in names for k in range(slices[name].start, slices[name].stop)], np.int64)

    def _make_buffers(self) -> None:
        shape = (len(self._worlds), self.layout.width)
        size = 8 * (1 + self._poses.size) + np.dtype(self.layout.dtype).itemsize * math.prod(shape)
        capacity = min(max(_MEMORY // size, 1), _MAX_SAMPLES)
        self._time = np.empty(capacity)
        self._values = np.empty((capacity, *shape), self.layout.dtype)
        self._body_poses = np.empty((capacity, len(self.layout.bodies), 7))
        self._count = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the recorded signals, in the given order."""
        return tuple(self.layout.shapes)

    def __len__(self) -> int:
        return self._written + self._count

    def sample(self) -> None:
        """Append the current time and the current value of every signal.

        For a failed world, the recorder stores the values of the last valid state.

        Raises:
            OSError: writing to the disk fails, or the viewer was closed. The ``.part`` file keeps all earlier blocks.
            ModelError: the recorder is closed.
        """
        if self._closed:
            raise ModelError(f"recording {self.path} is closed; record into a new file")
        if self._count == len(self._time):
            self.flush()
        seen, k = on_host(self._seen.read()), self._count
        self._time[k] = seen[:, self._seen.slices[_TIME]].max()
        self._values[k] = seen[np.ix_(self._worlds, self._columns)]
        if self._poses.size:
            self._body_poses[k] = seen[self._worlds[0], self._poses].reshape(-1, 7)
        self._count += 1
        if self._part is None and time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Write the buffered samples to the file. The file keeps these samples even if the process is killed later."""
        if self._count:
            block = Block(self._time[: self._count], self._values[: self._count], self._body_poses[: self._count])
            began = time.monotonic()
            with named_errors(self._name):
                self._writer.write(block)
            self._written, self._count = self._written + self._count, 0
            self._due = time.monotonic() + max(_LIVE_EVERY, _LIVE_PAUSE * (time.monotonic() - began))

    def close(self) -> None:
        """Convert the ``.part`` file to the final file, or delete it if it has no samples. A second call does nothing.

        Raises:
            OSError: writing to the disk fails. The ``.part`` file keeps all earlier blocks.
        """
        if self._closed:
            return
        self._stop()
        with self._lock or nullcontext():
            with named_errors(self._name):
                try:
                    self.flush()
                finally:
                    self._writer.close()
            if self._part is not None and self._written:
                self._writer.finish(self._part, self.path)
            elif self._part is not None:
                _remove(self._part)

    def _stop(self) -> None:
        self._closed = True

    def __enter__(self) -> StreamRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):  # on a full disk, the conversion would also fail
            self._stop()
            with self._lock or nullcontext(), suppress(OSError):
                self._writer.close()
        else:
            self.close()


class SteppedRecorder(StreamRecorder):
    """Recorder that takes samples when its simulation steps, see :func:`record`."""

    def __init__(self, sim: Simulation, path: Any, signals: Any, rate: float | None, worlds: Any, dtype: str) -> None:
        self._sampler = RegularSampler("recording", rate, sim.config.dt, self.sample)
        super().__init__(sim, signals, path, worlds=worlds, dtype=dtype)
        self._samplers = sim.runtime.samplers
        self.sample()
        self._samplers.append(self._sampler)

    def _stop(self) -> None:
        if self._sampler in self._samplers:
            self._samplers.remove(self._sampler)
        super()._stop()


def record(
    sim: Simulation,
    path: str | os.PathLike[str],
    signals: str | Sequence[str],
    *,
    rate: float | None = None,
    worlds: Any = None,
    dtype: str = "float64",
) -> SteppedRecorder:
    """Record signals into a file while the simulation steps.

    The recorder takes the first sample at the current time. ``sim.step(n)`` takes all samples that are due within its n
    steps. Use the recorder in a ``with`` statement, or call its ``close()`` at the end.

    Args:
        sim: the simulation.
        path: path of the recording (.npz, .parquet, .mcap, .csv or .rrd), or the address of a running Rerun viewer,
            e.g. rerun+http://127.0.0.1:9876/proxy.
        signals: signal names or patterns with wildcards, see :meth:`Simulation.observe`.
        rate: samples per second of simulated time, or None to take a sample at every step. The recorder takes samples
            at the nearest steps.
        worlds: worlds to record, as in :meth:`Simulation.write`, or None for all worlds.
        dtype: floating-point type in the file, "float64" or "float32".

    Returns:
        The recorder, which holds at most one block of samples in memory.

    Raises:
        UnknownNameError: a signal or the dtype is unknown.
        ModelError: the suffix or a world is unknown, the file cannot be written, no viewer answers, a library is
            missing, or the rate is above the step rate.
    """
    validate.simulation("recording", sim)
    return SteppedRecorder(sim, path, signals, rate, worlds, dtype)


def recover(part: str | os.PathLike[str]) -> Path:
    """Convert the ``.part`` file of an interrupted recording to a final file.

    Args:
        part: path NAME.SUFFIX.part of the interrupted recording.

    Returns:
        Path NAME.SUFFIX of the final file, which has all complete blocks.

    Raises:
        ModelError: the name does not end in ".part", the file is not a recording or has no block, NAME.SUFFIX exists,
            or a recorder still writes the file.
        OSError: writing to the disk fails.
    """
    file = Path(part)
    path = file.with_name(file.name.removesuffix(PART))
    format_ = WRITERS.get(suffix_of(file))
    if format_ is None or path == file:
        raise ModelError(f"recording {str(part)!r} is not the growing file of a recording; give its name with '.part'")
    if path.exists():
        raise ModelError(f"recording {str(path)!r} exists already; rename or delete it first")
    with locked(file) or nullcontext():
        if not len(load_recording(file)):
            raise ModelError(f"recording {str(part)!r} was interrupted before its first block; record it again")
        try:
            format_.finish(file, path)
        except ModelError:
            raise
        except Reading as error:
            rule = f"recording {str(part)!r} cannot be recovered ({error})"
            raise ModelError(f"{rule}; read its blocks instead") from error
    return path


def _remove(part: Path) -> None:
    if part.is_dir():
        for file in part.iterdir():
            file.unlink()
        part.rmdir()
    else:
        part.unlink(missing_ok=True)
