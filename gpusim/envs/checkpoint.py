"""Checkpoint files of environments.

A file contains a checkpoint of the simulation, and the arrays of :class:`Episodes`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.description.config import SolverConfig
from gpusim.envs.task import Task
from gpusim.errors import ModelError
from gpusim.signals.saving.checkpoint_file import Settings, read_checkpoint, write_checkpoint
from gpusim.signals.saving.snapshot import Snapshot, check_model
from gpusim.simulation import Simulation
from gpusim.typing import Array

_PART = "env/"
_SETTINGS = "settings"
_APPEARANCE = ("scene", "render_options")
"""Attributes of a task that have no effect on transitions."""


def _settings(task: Task, mode: str, config: SolverConfig) -> dict[str, str]:
    """Return a dict of the task and solver settings that affect transitions: name -> text."""
    found = {"task": repr(task.name), "autoreset_mode": repr(mode)}
    for name in Task.__annotations__:
        if name not in _APPEARANCE:
            value = getattr(task, name)
            found[name] = _text(list(value) if isinstance(value, Mapping) else value)
            if isinstance(value, Mapping):
                found |= {f"{name}[{key!r}]": _text(item) for key, item in value.items()}
    return found | {field.name: _text(getattr(config, field.name)) for field in dataclasses.fields(config)}


def _text(value: Any) -> str:
    if isinstance(value, float | int | np.number) and not isinstance(value, bool):
        return repr(float(value))
    if isinstance(value, list | tuple | np.ndarray):
        return f"({', '.join(_text(item) for item in value)})"
    if dataclasses.is_dataclass(value):
        given = (f"{field.name}={_text(getattr(value, field.name))}" for field in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(given)})"
    return str(getattr(value, "__qualname__", type(value).__name__)) if callable(value) else repr(value)


def write_env(
    path: str | os.PathLike[str], sim: Simulation, task: Task, mode: str, arrays: Mapping[str, Array]
) -> None:
    """Write a checkpoint of a simulation together with the arrays of the environment."""
    settings = Settings(sim.backend_name, sim.dtype, sim.fast, sim.config)
    words = np.array(json.dumps(_settings(task, mode, sim.config)))
    extra = {_PART + name: array for name, array in {_SETTINGS: words, **arrays}.items()}
    write_checkpoint(path, sim.snapshot(), sim.runtime.built, settings, extra)


def read_env(
    path: str | os.PathLike[str], sim: Simulation, task: Task, mode: str, arrays: Mapping[str, Array]
) -> tuple[Snapshot, dict[str, Array]]:
    """Return the snapshot and the arrays of a checkpoint.

    Raises:
        ModelError: the file cannot be read, or its task, settings or number of worlds differ from the environment.
    """
    found = read_checkpoint(path)
    stored = {name.removeprefix(_PART): array for name, array in found.arrays.items() if name.startswith(_PART)}
    if _SETTINGS not in stored:
        raise ModelError(f"checkpoint {found.path!r} contains no environment; give a file of VectorEnv.save")
    ours, theirs = _settings(task, mode, sim.config), json.loads(str(stored.pop(_SETTINGS)))
    for name in theirs | ours:
        if ours.get(name) != theirs.get(name):
            rule = f"has {name} = {theirs.get(name)}, and this environment has {ours.get(name)}"
            raise ModelError(f"checkpoint {found.path!r} {rule}; make an environment with the settings of the file")
    for name in {**arrays, **stored}:
        shapes = [
            arrays_by_name[name].shape if name in arrays_by_name else "missing" for arrays_by_name in (stored, arrays)
        ]
        if shapes[0] != shapes[1]:
            rule = f"array {name!r} is {shapes[0]} in the file, and {shapes[1]} in the environment"
            raise ModelError(
                f"checkpoint {found.path!r}: {rule}; make an environment with the same task and number of worlds"
            )
    check_model(f"checkpoint {found.path!r}", sim.runtime.built, found.header["digest"])
    return found.snapshot(sim.runtime.built.groups), stored
