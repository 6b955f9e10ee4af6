"""Motions: recorded poses of all bodies over time. Playing a motion needs no simulation.

A recorder writes a file ``NAME.npz.part``: a line of JSON (the header), then one block of fixed size per frame. If the
program ends unexpectedly, you can play all complete frames. Closing the recorder converts the file to ``NAME.npz``,
with these arrays:

    header: text, JSON: see :class:`MotionHeader`
    time: (frames,) s
    center_of_mass: (frames, worlds, bodies, 3) m, world frame
    orientation: (frames, worlds, bodies, 4) quaternions xyzw, body to world
    signals: (frames, worlds, numbers) values of diagram wires, only if the model has diagrams
"""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np

from gpusim import validate
from gpusim.closing import Closing
from gpusim.errors import ModelError
from gpusim.output_files import PART, atomic_file, check_output_file, locked, named_errors, part_of, put_aside
from gpusim.signals.writing import chosen_worlds
from gpusim.typing import Array

FORMAT = "gpusim motion 1"
SUFFIX = ".npz"
RATE = 60.0
"""Default number of frames per second of simulated time."""
_LONGEST_HEADER = 1 << 24
_AT_ONCE = 1000
"""Number of frames that the check for invalid frames reads at once."""
_ZIP = b"PK"
"""First bytes of a ZIP archive."""


@dataclass(frozen=True)
class MotionHeader:
    """Header of a motion: model, recorded bodies and worlds, and frame rate.

    If ``target`` is not empty, gpusim can rebuild the model from ``target``.

    Attributes:
        target: name of the scene, or path of the robot file. ``target`` is empty for a model built in Python.
        parameters: parameters of the scene, as text.
        bodies: labels of the bodies, in the order of the arrays.
        worlds: indices of the recorded worlds.
        rate: frames per second of simulated time.
        fixed_base: True if the robot file was loaded with a fixed base and without servos that hold the joints.
        format: name of the file format.
        signals: name of a recorded diagram wire -> number of components. Empty without diagrams.
    """

    target: str
    parameters: Mapping[str, str]
    bodies: Sequence[str]
    worlds: Sequence[int]
    rate: float = RATE
    fixed_base: bool = False
    format: str = field(default=FORMAT)
    signals: Mapping[str, int] = field(default_factory=dict)

    def block(self) -> np.dtype[Any]:
        """Return the NumPy data type of one frame in the ``.part`` file."""
        bodies = (len(self.worlds), len(self.bodies))
        poses: list[Any] = [("center_of_mass", "<f8", (*bodies, 3)), ("orientation", "<f8", (*bodies, 4))]
        width = sum(self.signals.values())
        more: list[Any] = [("signals", "<f8", (len(self.worlds), width))] if width else []
        return np.dtype([("time", "<f8"), *poses, *more])

    def text(self) -> str:
        """Return the header as JSON."""
        values = dataclasses.asdict(self)
        if not values["signals"]:
            del values["signals"]
        return json.dumps(values)


@dataclass(frozen=True)
class Motion:
    """A recorded motion.

    Attributes:
        header: header of the motion.
        time: (frames,) increasing times (s).
        center_of_mass: (frames, worlds, bodies, 3) centers of mass in the world frame (m).
        orientation: (frames, worlds, bodies, 4) quaternions xyzw, body to world.
        complete: False if the recording was interrupted.
        signals: concatenated values of all ``header.signals`` (frames, worlds, numbers), or None without signals.
    """

    header: MotionHeader
    time: Array
    center_of_mass: Array
    orientation: Array
    complete: bool = True
    signals: Array | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """Time from the first frame to the last (s)."""
        return float(self.time[-1] - self.time[0])

    def cut(self, frames: int) -> Motion:
        """Return the first ``frames`` frames of the motion."""
        return dataclasses.replace(
            self,
            time=self.time[:frames],
            center_of_mass=self.center_of_mass[:frames],
            orientation=self.orientation[:frames],
            signals=None if self.signals is None else self.signals[:frames],
        )


class MotionRecorder(Closing):
    """Recorder of the poses of a simulation. Call :meth:`sample` after steps.

    Args:
        sim: the simulation, or an object with ``model`` and ``read_state()``.
        path: path of the recording, which ends in .npz.
        target, parameters, fixed_base: see :class:`MotionHeader`. Without ``target``, the command line cannot play the
            motion.
        worlds: worlds to record, as in :meth:`Simulation.write`. Default: the first world.
        rate: frames per second of simulated time, above 0.

    Attributes:
        frames: number of recorded frames.
        rescued: path to which the recorder moved the unfinished file of an earlier run, or None.

    Raises:
        ModelError: the path does not end in .npz, the file cannot be written, a world does not exist, or the rate is
            not positive.
    """

    def __init__(
        self,
        sim: Any,
        path: str | os.PathLike[str],
        *,
        target: str = "",
        parameters: Mapping[str, Any] | None = None,
        fixed_base: bool = False,
        worlds: Any = (0,),
        rate: float = RATE,
    ) -> None:
        rate = validate.positive("motion recorder", "rate", rate)
        chosen = chosen_worlds("motion recorder", worlds, len(sim.read_state()["position"])).tolist()
        if not chosen:
            raise validate.fail("motion recorder", f"worlds = {worlds!r} selects no world", "give at least one")
        self.path = check_output_file(path, (SUFFIX,), "recording")
        self._sim = sim
        texts = {name: str(value) for name, value in (parameters or {}).items()}
        bodies = tuple(body.label for body in sim.model.bodies)
        self.header = MotionHeader(target, texts, bodies, tuple(chosen), rate, fixed_base)
        self._wires = _diagram_wires(sim)
        sizes = {name: len(at) for _, wires in self._wires for name, at in wires.items()}
        self.header = dataclasses.replace(self.header, signals=sizes)
        self._block = np.zeros((), dtype=self.header.block())
        self.frames = 0
        self._next = 0.0
        self._part = part_of(self.path)
        self.rescued = put_aside(self._part)
        try:
            # Unbuffered, so that all written frames survive a crash of this process.
            self._stream = open(self._part, "wb", buffering=0)
        except OSError as error:
            reason = error.strerror or error
            raise ModelError(
                f"recording: {str(self._part)!r} cannot be written ({reason}); name another file"
            ) from error
        self._stream.write(self.header.text().encode() + b"\n")
        self._lock = locked(self._part)

    def next_time(self) -> float:
        """Return the time (s) of the next frame, measured from the start of the recording."""
        return self._next

    def sample(self, time: float, half_step: float = 0.0) -> bool:
        """Record a frame if the time of the next frame is reached.

        Args:
            time: simulated time since the start of the recording (s), which must not decrease.
            half_step: half of the time step (s). With ``half_step``, the recorder uses the step that is nearest to the
                frame's time.

        Returns:
            True if a frame was recorded.

        Raises:
            OSError: writing to the disk fails.
            ModelError: the recorder is closed.
        """
        if self._stream.closed:
            raise ModelError(f"recording {str(self.path)!r} is closed; record into a new file")
        if time + half_step < self._next:
            return False
        state = self._sim.read_state()
        chosen, count = list(self.header.worlds), len(self.header.bodies)
        self._block["time"] = time
        # The last entry of the state is the world, which is not recorded.
        self._block["center_of_mass"] = np.asarray(state["position"])[chosen, :count]
        self._block["orientation"] = np.asarray(state["orientation"])[chosen, :count]
        if self.header.signals:
            parts = [
                np.asarray(state[name])[np.ix_(chosen, [index for at in wires.values() for index in at])]
                for name, wires in self._wires
            ]
            self._block["signals"] = np.concatenate(parts, axis=1)
        with named_errors(self._part):
            self._stream.write(self._block.tobytes())
        self.frames += 1
        self._next = self.frames / self.header.rate
        if self._next <= time:  # the step was longer than a frame
            self._next = (np.floor(time * self.header.rate) + 1.0) / self.header.rate
        return True

    def close(self) -> None:
        """Convert the ``.part`` file to the final file, or delete it if it has no frames. A second call does nothing.

        Raises:
            OSError: writing to the disk fails. The recorded frames stay in the ``.part`` file.
        """
        if self._stream.closed:
            return
        self._stream.close()
        with self._lock or nullcontext():
            if self.frames:
                save_motion(load_motion(self._part), self.path)
            self._part.unlink()


def _diagram_wires(sim: Any) -> list[tuple[str, dict[str, tuple[int, ...]]]]:
    """Return, for each diagram, the name of the state array, and a dict: signal name -> columns of the state array."""
    runtime = getattr(sim, "runtime", None)
    running = runtime.running if runtime is not None else ()
    return [(one.name, {wire.name: wire.at for wire in one.program.wires}) for one in running]


def save_motion(motion: Motion, path: str | os.PathLike[str]) -> None:
    """Write a motion as NPZ. If writing fails, no partial file remains.

    Raises:
        ModelError: the path does not end in .npz, or cannot be written.
        OSError: writing to the disk fails.
    """
    target = check_output_file(path, (SUFFIX,), "recording")
    more: dict[str, Any] = {} if motion.signals is None else {"signals": motion.signals}
    with atomic_file(target) as stream:
        np.savez(
            stream,
            header=np.array(motion.header.text()),
            time=motion.time,
            center_of_mass=motion.center_of_mass,
            orientation=motion.orientation,
            **more,
        )


def is_motion_file(path: str | os.PathLike[str]) -> bool:
    """Return True if a file name ends with the suffix of a motion file, ``.npz`` or ``.npz.part``."""
    name = Path(path).name.lower()
    return name.endswith((SUFFIX, SUFFIX + PART))


def load_motion(path: str | os.PathLike[str]) -> Motion:
    """Read a motion, or all complete frames of an unfinished motion.

    Args:
        path: NAME.npz or NAME.npz.part. If NAME.npz is missing, NAME.npz.part is read.

    Raises:
        ModelError: the file does not exist, is not a motion, is damaged, or has no frame.
    """
    file = Path(path)
    if file.is_dir():
        raise ModelError(f"recording {str(path)!r} is a folder; name the file in it")
    if not file.is_file() and part_of(file).is_file():
        file = part_of(file)
    if not file.is_file():
        raise ModelError(f"recording {str(path)!r} does not exist; check the path")
    try:
        motion = _load_part(file) if file.name.lower().endswith(PART) else _load_finished(file)
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"recording {str(file)!r} cannot be read ({reason}); check its permissions") from error
    if not len(motion):
        raise ModelError(f"recording {str(file)!r} was interrupted before its first frame; record it again")
    good = _good_frames(motion)
    if good < len(motion) and (motion.complete or not good):
        raise ModelError(
            f"recording {str(file)!r} is damaged: in frame {good} of {len(motion)} the time does not increase or a "
            "pose is not finite; record it again"
        )
    return motion if good == len(motion) else motion.cut(good)


def _good_frames(motion: Motion) -> int:
    """Return the number of frames before the first invalid frame."""
    good = np.isfinite(motion.time)
    good[1:] &= np.diff(motion.time) > 0.0
    for start in range(0, len(motion), _AT_ONCE):  # a long recording may not fit into memory
        some = slice(start, start + _AT_ONCE)
        for poses in (motion.center_of_mass[some], motion.orientation[some]):
            good[some] &= np.isfinite(poses).reshape(len(poses), -1).all(axis=1)
    return len(motion) if good.all() else int(np.argmin(good))


def _no_recording(file: Path, what: str) -> ModelError:
    return ModelError(
        f"{str(file)!r} is not a recording of gpusim: {what}; give a file that 'gpusim view SCENE --record' has written"
    )


def _load_part(file: Path) -> Motion:
    with open(file, "rb") as stream:
        header = _header(stream.readline(_LONGEST_HEADER), file)
        start = stream.tell()
    try:
        block = header.block()
    except (ValueError, OverflowError, MemoryError) as error:
        raise ModelError(f"recording {str(file)!r} is damaged: its header is broken; record it again") from error
    frames = (file.stat().st_size - start) // block.itemsize  # skip an incomplete last frame
    # Map the file, because a long recording may not fit into memory.
    if frames:
        blocks: Array = np.memmap(file, dtype=block, mode="r", offset=start, shape=(frames,))
    else:
        blocks = np.zeros(0, dtype=block)
    signals = blocks["signals"] if header.signals else None
    poses = blocks["center_of_mass"], blocks["orientation"]
    return Motion(header, np.array(blocks["time"]), *poses, complete=False, signals=signals)


def _load_finished(file: Path) -> Motion:
    if not file.stat().st_size:
        raise _no_recording(file, "it is empty")
    if not is_zipfile(file):
        with open(file, "rb") as stream:
            cut = stream.read(len(_ZIP)) == _ZIP
        raise _no_recording(file, "it was cut off" if cut else "it is not an archive of arrays (NPZ)")
    try:
        with np.load(file, allow_pickle=False) as archive:
            if "header" not in archive.files:
                raise _without_poses(file, archive.files)
            header = _header(str(archive["header"]).encode(), file)
            names = ["time", "center_of_mass", "orientation", *(["signals"] if header.signals else [])]
            if missing := sorted(set(names) - set(archive.files)):
                raise _no_recording(file, f"it lacks the array {missing[0]!r}")
            arrays = {name: archive[name] for name in names}
    except (ValueError, EOFError, RuntimeError, BadZipFile, zlib.error) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"recording {str(file)!r} is damaged; record it again") from error
    worlds, bodies = len(header.worlds), len(header.bodies)
    frames = arrays["time"].shape
    shapes = {"center_of_mass": (*frames, worlds, bodies, 3), "orientation": (*frames, worlds, bodies, 4)}
    if header.signals:
        shapes["signals"] = (*frames, worlds, sum(header.signals.values()))
    fits = len(frames) == 1 and all(arrays[name].shape == shape for name, shape in shapes.items())
    if not fits or any(array.dtype.kind != "f" for array in arrays.values()):
        raise ModelError(f"recording {str(file)!r}: its arrays do not fit its header; record it again")
    return Motion(header, **arrays)


def _without_poses(file: Path, names: Sequence[str]) -> ModelError:
    """Return the error for an NPZ file without poses, which the viewer cannot draw."""
    if "time" not in names:
        return _no_recording(file, "it holds other arrays")
    return ModelError(
        f"recording {str(file)!r} contains signals but no poses of bodies, so it cannot be drawn; "
        "record a motion with 'gpusim view SCENE --record FILE.npz', or render the scene itself"
    )


def _header(text: bytes, file: Path) -> MotionHeader:
    try:
        values = json.loads(text)
        found = values["format"]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _no_recording(file, "it has no header") from error
    if found != FORMAT:
        raise ModelError(
            f"recording {str(file)!r} has the format {found!r}, and this version of gpusim reads {FORMAT!r}; "
            "play it with the version that made it"
        )
    try:
        header = MotionHeader(**values)
        sound = isinstance(header.target, str) and isinstance(header.parameters, Mapping)
        sound = sound and all(isinstance(label, str) for label in header.bodies)
        sound = sound and all(isinstance(world, int) for world in header.worlds)
        sound = sound and all(isinstance(size, int) and size > 0 for size in dict(header.signals).values())
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ModelError(f"recording {str(file)!r} is damaged: its header is broken; record it again")
    return header
