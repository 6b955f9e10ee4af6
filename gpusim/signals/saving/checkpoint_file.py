"""Checkpoint files: snapshot, model and settings in an NPZ file without pickle.

Each member of the NPZ file is an array. The members are ``header`` and ``model`` (UTF-8 JSON), ``commands``, and arrays
in the folders ``state/``, ``actuators/``, ``parameters/``, ``programs/`` and ``first/`` (reset state). The comment of
the ZIP archive is the SHA-256 of all bytes before this comment.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import importlib
import io
import json
import os
from collections.abc import Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.builder.finalize import compiled
from gpusim.description.actuator_kinds import Group
from gpusim.description.config import SolverConfig
from gpusim.description.elements import Elements
from gpusim.errors import GpusimError, ModelError
from gpusim.model.model import Model
from gpusim.output_files import atomic_file, check_output_file
from gpusim.signals.saving.snapshot import Snapshot
from gpusim.typing import Array

FORMAT = "gpusim checkpoint 1"
_SEAL = 64
"""Length of a SHA-256 in hexadecimal digits."""


@dataclasses.dataclass
class Settings:
    """Settings of a simulation that affect the results of the next steps."""

    backend: str
    dtype: str
    fast: bool
    config: SolverConfig


@dataclasses.dataclass
class Checkpoint:
    """Content of a checkpoint file.

    Attributes:
        path: path of the file, for error messages.
        settings: settings of the simulation.
        num_worlds: number of worlds.
        header: JSON header.
        arrays: all arrays except ``header`` and ``model``, by member name.
        model_text: builder of the model as JSON, or None if the builder does not fit into JSON.
    """

    path: str
    settings: Settings
    num_worlds: int
    header: dict[str, Any]
    arrays: dict[str, Array]
    model_text: str | None

    def model(self) -> Model:
        """Return the model that the file contains.

        Raises:
            ModelError: the file contains no model, or an element has an unregistered kind.
        """
        fix = "give Simulation.load(path, model=...)"
        if self.model_text is None:
            raise ModelError(f"checkpoint {self.path!r} contains no model, because {self.header['unstored']}; {fix}")
        try:
            builder = ModelBuilder.from_dict(json.loads(self.model_text))
            return compiled(builder, builder.gravity, frozenset())
        except GpusimError as error:
            reason = str(error).partition(";")[0]
            fix = f"import the module that registers its kinds first, or {fix}"
            raise ModelError(f"checkpoint {self.path!r}: its model cannot be built ({reason}); {fix}") from error

    def snapshot(self, groups: list[Group]) -> Snapshot:
        """Return the snapshot that the file contains. ``groups`` are the actuator groups of the model."""
        parts: dict[str, dict[str, Array]] = {}
        for member, array in self.arrays.items():
            part, _, name = member.partition("/")
            parts.setdefault(part, {})[name] = array
        groups = [copy.copy(group) for group in groups]
        for group in groups:
            kept, kind = parts["actuators"], group.type.name
            group.params = {name: kept[f"{kind}/parameters/{name}"] for name in group.params}
            group.state = {name: kept[f"{kind}/state/{name}"] for name in group.state}
            group.derived = {}
        return Snapshot(
            self.num_worlds, parts["state"], groups, digest=self.header["digest"],
            rows=frozenset((int(joint), int(axis)) for joint, axis in self.header["rows"]),
            scheme=self.settings.config.scheme, parameters=parts["parameters"], commands=self.arrays["commands"],
            programs=parts.get("programs", {}), first=parts["first"],
            failed={int(world): str(reason) for world, reason in self.header["failed"].items()},
        )  # fmt: skip


def write_checkpoint(
    path: str | os.PathLike[str], snapshot: Snapshot, model: Model, settings: Settings,
    extra: Mapping[str, Array] | None = None,
) -> None:  # fmt: skip
    """Write a checkpoint file. An older file stays intact until the new file is complete.

    Args:
        path: path of the file, which must end in .npz.
        snapshot: snapshot of the simulation.
        model: model from the builder, without the axis rows that parameter writes have added.
        settings: settings of the simulation.
        extra: additional arrays to store. The file reader returns these arrays in ``Checkpoint.arrays``.
    """
    target = check_output_file(path, (".npz",), "checkpoint")
    packed = packed_checkpoint(snapshot, model, settings, extra)
    with atomic_file(target) as stream:
        stream.write(packed)


def packed_checkpoint(
    snapshot: Snapshot, model: Model, settings: Settings, extra: Mapping[str, Array] | None = None
) -> bytes:
    """Return the content of a checkpoint file as bytes. See :func:`write_checkpoint`."""
    header = {
        "format": FORMAT, "gpusim": version(), "num_worlds": snapshot.num_worlds,
        "settings": dataclasses.asdict(settings), "digest": snapshot.digest, "rows": sorted(snapshot.rows),
        "failed": snapshot.failed,
    }  # fmt: skip
    arrays: dict[str, Any] = {**_arrays(snapshot), **(extra or {})}
    try:
        arrays["model"] = _encoded(_builder_of(model).to_dict())
    except ModelError as error:  # a Python block, or a value of the user's own class
        header["unstored"] = str(error).partition(";")[0]
    packed = io.BytesIO()
    np.savez_compressed(packed, header=_encoded(header), **arrays)
    return _sealed(packed.getvalue())


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint file of :func:`write_checkpoint`.

    Raises:
        ModelError: the file is missing, damaged, not a checkpoint, or from another version of gpusim.
    """
    return unpacked_checkpoint(str(path), _read(path))


def unpacked_checkpoint(name: str, data: bytes) -> Checkpoint:
    """Return the checkpoint in ``data``, the bytes of a checkpoint file. Error messages contain ``name``.

    Raises:
        ModelError: the file is damaged, not a checkpoint, or from another version of gpusim.
    """
    arrays = _arrays_of(name, data)
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT or header["gpusim"] != version():
        theirs, ours = f"gpusim {header['gpusim']} ({header['format']})", f"gpusim {version()} ({FORMAT})"
        fix = "load it with the gpusim that wrote it"
        raise ModelError(f"checkpoint {name!r} was written by {theirs}, and this is {ours}; {fix}")
    settings = Settings(**header["settings"])
    settings.config = SolverConfig(**header["settings"]["config"])
    model = arrays.pop("model", None)
    text = None if model is None else model.tobytes().decode()
    return Checkpoint(name, settings, header["num_worlds"], header, arrays, text)


def _arrays(snapshot: Snapshot) -> dict[str, Array]:
    parts = {
        "state": snapshot.arrays, "parameters": snapshot.parameters, "programs": snapshot.programs,
        "first": snapshot.first,
    }  # fmt: skip
    found = {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
    for group in snapshot.groups:
        for part, arrays in (("parameters", group.params), ("state", group.state)):
            found |= {f"actuators/{group.type.name}/{part}/{name}": array for name, array in arrays.items()}
    return found | {"commands": snapshot.commands}


def _builder_of(model: Model) -> ModelBuilder:
    """Return a builder that contains all elements of the model."""
    builder = ModelBuilder(model.parameters["gravity"][0])
    for field in dataclasses.fields(Elements):
        setattr(builder, field.name, getattr(model, field.name))
    return builder


def _encoded(value: Any) -> Array:
    text = json.dumps(value, allow_nan=False, default=methodcaller("item"))  # settings may contain NumPy numbers
    return np.frombuffer(text.encode(), np.uint8)


def _sealed(archive: bytes) -> bytes:
    """Return the bytes of a ZIP archive with their SHA-256 as the comment."""
    return archive[:-2] + _SEAL.to_bytes(2, "little") + hashlib.sha256(archive).hexdigest().encode()


def _read(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file."""
    fix = "give a file of Simulation.save"
    try:
        file = Path(path)
        if file.exists() and not file.is_file():
            raise ModelError(f"checkpoint {str(path)!r} is a folder or a device; {fix}")
        return file.read_bytes()
    except (OSError, TypeError, ValueError) as error:  # ValueError: characters that are invalid in file names
        if isinstance(error, ModelError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"checkpoint {str(path)!r} cannot be read ({reason}); {fix}") from error


def _arrays_of(name: str, data: bytes) -> dict[str, Array]:
    """Check that the bytes are a complete checkpoint file, and return its arrays."""
    archive, fix = data[: -_SEAL - 2] + bytes(2), "give a file of Simulation.save"
    if not data.startswith(b"PK"):
        raise ModelError(f"file {name!r} is not a checkpoint; {fix}")
    if _sealed(archive) != data:
        raise ModelError(f"checkpoint {name!r} is damaged, incomplete, or from another program; {fix}")
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def version() -> str:
    """Return the version of gpusim."""
    return str(importlib.import_module("gpusim").__version__)  # gpusim imports this file before it defines the version
