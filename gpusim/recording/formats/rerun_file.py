"""RRD files and streams for the Rerun viewer, with signals and all drawn objects over simulated time.

The signal ``joint.rail.position`` is the entity ``/signals/joint/rail/position``. With several worlds, each world has a
separate entity, such as ``/world_3/signals/joint/rail/position``. The recording contains the poses of the first
recorded world only. During the recording, NAME.rrd.part is an RRD file without the index.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.recording.formats.rerun_scene import RerunScene, entity
from gpusim.recording.formats.writer import Writer
from gpusim.recording.layout import Block, Layout, require
from gpusim.recording.samples import Recording
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model

_MAGIC, _FILE_HEADER, _MESSAGE = b"RRF2", 12, struct.Struct("<QQ")
_HEADER, _TIME = "/gpusim", "time"
_STALL = 5.0
"""Writing fails if the file does not grow for this time (s)."""
_RESERVE = 1 << 20
"""Minimum free space on the disk (bytes). On a full disk, Rerun's library may wait forever when it closes a file."""
_ANSWER = 10.0
"""Timeout for a viewer's answer, s."""


class RerunWriter(Writer):
    """Writer of RRD files, based on the library rerun-sdk."""

    poses = True

    @classmethod
    def prepare(cls) -> None:
        """Check that rerun-sdk is installed."""
        require("rerun", ".rrd", "rerun-sdk")

    def __init__(self, part: Path | str, layout: Layout, model: Model | None) -> None:
        import rerun as rr

        self._layout, self._part = layout, Path(part)
        self._stream = rr.RecordingStream("gpusim", send_properties=False)
        self._open(part)
        self._stream.log(_HEADER, rr.TextDocument(layout.to_json()), static=True)
        self._paths = _paths(layout)
        self._scene = RerunScene(self._stream, model) if model is not None and layout.bodies else None
        self._flush()

    def _open(self, part: Path | str) -> None:
        self._check_space(0)
        try:
            self._stream.save(part)
        except RuntimeError as error:
            raise OSError(errno.EIO, f"Rerun cannot write the file ({error})") from error

    def _check_space(self, size: int) -> None:
        """Raise an OSError if the disk has no space for ``size`` bytes."""
        if shutil.disk_usage(self._part.parent).free < size + _RESERVE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _flush(self) -> None:
        before = -1
        while True:
            try:
                return self._stream.flush(timeout_sec=_STALL)
            except RuntimeError as error:  # the disk is full or slow
                size = self._part.stat().st_size
                if size == before:
                    raise OSError(errno.EIO, f"Rerun cannot write the file ({error})") from error
                before = size

    def write(self, block: Block) -> None:
        """Append a block of samples."""
        import rerun as rr

        samples = len(block.time)
        self._check_space(4 * (block.time.nbytes + block.values.nbytes + block.poses.nbytes))
        times = rr.TimeColumn(_TIME, duration=block.time)
        for world in range(len(self._layout.worlds)):
            for name, at in self._layout.slices.items():
                numbers = np.ascontiguousarray(block.values[:, world, at], np.float64)
                columns = rr.Scalars.columns(scalars=numbers.ravel())
                if numbers.shape[1] != 1:
                    columns = columns.partition([numbers.shape[1]] * samples)
                rr.send_columns(self._paths[world, name], [times], columns, recording=self._stream)
        if self._scene is not None:
            self._scene.write(times, block.poses)
        self._flush()

    def close(self) -> None:
        """Write the index of the file."""
        self._stream.disconnect()

    @staticmethod
    def finish(part: Path, path: Path) -> None:
        """Remove an incomplete last message, and rename the ``.part`` file."""
        os.truncate(part, _whole(part))
        part.replace(path)

    @staticmethod
    def read(path: Path) -> Recording:
        """Read the signals of a complete file or a ``.part`` file."""
        require("rerun", ".rrd", "rerun-sdk")
        layout, found = None, dict[str, list[tuple[Array, Array]]]()
        for chunk in _complete_chunks(path):
            batch = chunk.to_record_batch()
            if chunk.entity_path == _HEADER:
                layout = Layout.from_json(batch.column("TextDocument:text")[0].as_py()[0])
            elif "Scalars:scalars" in batch.schema.names:
                flat = batch.column("Scalars:scalars").flatten().to_numpy()
                time = np.asarray(batch.column(_TIME).cast("int64").to_numpy(), float) / 1e9
                found.setdefault(chunk.entity_path, []).append((time, flat.reshape(len(time), -1)))
        if layout is None:
            raise ValueError("it contains no signals of gpusim")
        return _recording(layout, found)


class RerunStream(RerunWriter):
    """Stream to a running Rerun viewer. ``part`` is the address of the viewer. The stream writes no file."""

    def _open(self, part: Path | str) -> None:
        self._stream.connect_grpc(str(part))

    def _check_space(self, size: int) -> None:
        """Do nothing, because the stream writes no file."""

    def _flush(self) -> None:
        try:
            self._stream.flush(timeout_sec=_ANSWER)
        except RuntimeError as error:
            raise ConnectionError(f"the Rerun viewer has closed ({error}); start it again") from None

    @staticmethod
    def finish(part: Path, path: Path) -> None:
        """Do nothing, because the viewer already has all data."""


def _recording(layout: Layout, found: dict[str, list[tuple[Array, Array]]]) -> Recording:
    """Build a recording."""
    paths = {key: "/" + path.lstrip("/") for key, path in _paths(layout).items()}
    count = min(sum(len(time) for time, _ in found.get(path, [])) for path in paths.values())
    if not count:
        return Recording(np.empty(0), layout.split(np.empty((0, len(layout.worlds), layout.width), layout.dtype)))
    values = np.empty((count, len(layout.worlds), layout.width), layout.dtype)
    time = np.empty(0)
    for (world, name), path in paths.items():
        values[:, world, layout.slices[name]] = np.concatenate([one for _, one in found[path]])[:count]
        time = np.concatenate([one for one, _ in found[path]])[:count]
    return Recording(time, layout.split(values))


def _whole(path: Path) -> int:
    """Return the file size in bytes without an incomplete last message."""
    size, end = path.stat().st_size, _FILE_HEADER
    with path.open("rb") as file:
        while end + _MESSAGE.size <= size:
            file.seek(end)
            following = end + _MESSAGE.size + _MESSAGE.unpack(file.read(_MESSAGE.size))[1]
            if following > size:
                break
            end = following
    return min(end, size)


def _complete_chunks(path: Path) -> Iterator[Any]:
    """Yield all complete chunks of a file."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is not an RRD file")
    whole = _whole(path)
    if whole == path.stat().st_size:
        yield from _chunks(path)
        return
    with tempfile.TemporaryDirectory(prefix="gpusim-") as folder:
        copy = Path(shutil.copy(path, folder))
        os.truncate(copy, whole)
        try:
            yield from _chunks(copy)
        except ValueError as error:
            raise ValueError(str(error).replace(str(copy), str(path))) from error


def _chunks(path: Path) -> Iterator[Any]:
    """Return the chunks of a file in their order in the file."""
    from rerun.chunk import RrdReader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a growing file has no index yet
        try:
            chunks = iter(RrdReader(path).stream())
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    while True:
        try:
            yield next(chunks)
        except StopIteration:
            return
        except Exception:  # noqa: BLE001 (the reader has no class for a chunk that is cut off)
            return


def _paths(layout: Layout) -> dict[tuple[int, str], str]:
    """Return a dict: (index in the list of recorded worlds, signal name) -> entity path."""
    several = len(layout.worlds) > 1
    return {
        (k, name): entity(*([f"world_{world}"] if several else []), "signals", *name.split("."))
        for k, world in enumerate(layout.worlds)
        for name in layout.shapes
    }
