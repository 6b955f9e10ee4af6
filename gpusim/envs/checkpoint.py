"""Checkpoint files of environments. A file contains a checkpoint of the simulation and the arrays of the episodes."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from gpusim.envs.task import Task
from gpusim.errors import ModelError
from gpusim.signals.checkpoint_file import Settings, read_checkpoint, write_checkpoint
from gpusim.signals.snapshot import Snapshot, check_model
from gpusim.simulation import Simulation
from gpusim.typing import Array

_PART = "env/"
_FORM = "form"


def _form(task: Task, mode: str) -> Array:
    return np.array([task.name, mode])


def write_env(
    path: str | os.PathLike[str], sim: Simulation, task: Task, mode: str, arrays: Mapping[str, Array]
) -> None:
    """Write a checkpoint of a simulation together with the arrays of the environment."""
    settings = Settings(sim.backend_name, sim.dtype, sim.fast, sim.config)
    extra = {_PART + name: array for name, array in {_FORM: _form(task, mode), **arrays}.items()}
    write_checkpoint(path, sim.snapshot(), sim.runtime.built, settings, extra)


def read_env(
    path: str | os.PathLike[str], sim: Simulation, task: Task, mode: str, arrays: Mapping[str, Array]
) -> tuple[Snapshot, dict[str, Array]]:
    """Return the snapshot and the arrays of a checkpoint.

    Raises:
        ModelError: the file cannot be read, or is from an environment with another task, mode or number of worlds.
    """
    found = read_checkpoint(path)
    kept = {name.removeprefix(_PART): array for name, array in found.arrays.items() if name.startswith(_PART)}
    if _FORM not in kept:
        raise ModelError(f"checkpoint {found.path!r} is of a simulation alone; give a file of VectorEnv.save")
    ours, theirs = ([str(word) for word in form] for form in (_form(task, mode), kept[_FORM]))
    if ours != theirs:
        rule = f"is of task '{theirs[0]}' with autoreset mode '{theirs[1]}', and this is '{ours[0]}' with '{ours[1]}'"
        raise ModelError(f"checkpoint {found.path!r} {rule}; make such an environment")
    for name, array in arrays.items():
        if name not in kept or kept[name].shape != array.shape:
            shape = kept[name].shape if name in kept else "missing"
            rule = f"array {name!r} is {shape}, and that of the environment {array.shape}"
            raise ModelError(f"checkpoint {found.path!r}: {rule}; give an environment of the same task and worlds")
    check_model(f"checkpoint {found.path!r}", sim.runtime.built, found.header["digest"])
    return found.snapshot(sim.runtime.built.groups), kept
