"""Snapshots and checkpoint files of a simulation: ``snapshot``, ``restore``, ``save`` and ``load``."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.signals.runtime import Runtime
from gpusim.signals.saving.checkpoint_file import Settings, read_checkpoint, write_checkpoint
from gpusim.signals.saving.snapshot import LiveState, Snapshot, check_model

Self = TypeVar("Self", bound="Checkpoints")


class Checkpoints:
    """Part of Simulation that saves and restores the state of the simulation, in memory and in files."""

    runtime: Runtime
    dtype: str
    backend_name: str
    fast: bool

    @property
    def state(self) -> LiveState:
        """The state, with ``copy()`` and ``restore(snapshot, worlds)``. After a write, call :meth:`invalidate`."""
        state = self.runtime.backend.memory.state
        return LiveState(state.num_worlds, state.arrays, state.groups, runtime=self.runtime)

    def snapshot(self) -> Snapshot:
        """Return a copy of everything that affects the next steps, in memory. See :meth:`restore`.

        The copy contains the state, contacts, parameters, commands, delays, diagrams, sensors with noise, failed
        worlds, and the state that a reset restores.
        """
        return self.state.copy()

    def restore(self, snapshot: State, worlds: Any = None, source: Any = None) -> None:
        """Set worlds to a snapshot. The worlds continue from the snapshot with bit-identical results.

        All worlds that are not in ``worlds`` remain unchanged. The method does not restore variables of Python
        functions in ``python`` blocks.

        Args:
            snapshot: result of :meth:`snapshot` of a simulation with an equal model.
            worlds: an index, a list of indices, a mask (num_worlds,), or None for all.
            source: index of the snapshot's world that is copied to all ``worlds``, or one index for each world in
                ``worlds``. The noise of the sensors is also copied. By default, each world gets the snapshot of the
                world with the same index, and the number of worlds must be equal.

        Raises:
            ModelError: ``snapshot`` is not a snapshot, or has another model, scheme, dtype or number of worlds, or a
                world does not exist. After an error, the simulation is unchanged.
        """
        self.state.restore(snapshot, worlds, source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint file with a snapshot, the model and the settings. :meth:`load` continues from this file.

        The new file replaces an older file only when the new file is complete. The file cannot store models with
        ``python`` blocks or values of your own classes. Pass the model to :meth:`load` if the file cannot store the
        model.

        Args:
            path: path of the file, which must end in .npz. ``numpy.load`` can read the file.

        Raises:
            ModelError: the path does not end in .npz or cannot be written.
            OSError: the disk fails while writing.
        """
        settings = Settings(self.backend_name, self.dtype, self.fast, self.runtime.config)
        write_checkpoint(path, self.snapshot(), self.runtime.built, settings)

    @classmethod
    def load(
        cls: type[Self], path: str | os.PathLike[str], model: Model | None = None, backend: str | None = None, *,
        launch: str = "auto", threads: int | None = None, device: int | None = None, specialize: bool | None = None,
    ) -> Self:  # fmt: skip
        """Return a simulation that continues from a checkpoint of :meth:`save` with bit-identical results.

        Args:
            path: path of the checkpoint file.
            model: see :class:`Simulation`. Default: the model in the file.
            backend: see :class:`Simulation`. Default: the backend that wrote the file. The "native" and "cuda"
                backends give bit-identical results. The "numpy" backend has other rounding errors.
            launch, threads, device, specialize: see :class:`Simulation`.

        Raises:
            ModelError: the file is invalid, comes from another version of gpusim, is for another model, or contains no
                model, or the backend does not work on this computer.
        """
        found = read_checkpoint(path)
        make: Any = cls
        settings, chosen = found.settings, found.model() if model is None else model
        if isinstance(chosen, Model):  # check this before kernels are compiled
            check_model(f"checkpoint {found.path!r}", chosen, found.header["digest"])
        sim: Self = make(
            chosen, found.num_worlds, backend or settings.backend, settings.dtype, settings.config, fast=settings.fast,
            launch=launch, threads=threads, device=device, specialize=specialize,
        )  # fmt: skip
        sim.restore(found.snapshot(chosen.groups))
        return sim
