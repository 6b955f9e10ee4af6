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
    """Part of Simulation that saves and restores its state, in memory and in files."""

    runtime: Runtime
    dtype: str
    backend_name: str
    fast: bool

    @property
    def state(self) -> LiveState:
        """Return the state, with ``copy()`` and ``restore(snapshot, worlds)``.

        After a write, call :meth:`invalidate`.
        """
        state = self.runtime.backend.memory.state
        return LiveState(state.num_worlds, state.arrays, state.groups, runtime=self.runtime)

    def snapshot(self) -> Snapshot:
        """Return a copy of everything that affects the next steps. See :meth:`restore`.

        The snapshot contains the state, contacts, parameters, commands, delays, diagrams, sensor noise, failed worlds,
        and the reset state.
        """
        return self.state.copy()

    def restore(self, snapshot: State, worlds: Any = None, source: Any = None) -> None:
        """Restore ``worlds`` from a snapshot. These worlds then continue with bit-identical results.

        All other worlds do not change. Variables of Python functions in ``python`` blocks are not restored.

        Args:
            snapshot: result of :meth:`snapshot` of a simulation with an equal model.
            worlds: index, list of indices, mask (num_worlds,), or None for all worlds.
            source: index of the snapshot world to copy to all ``worlds``, or one index for each of the ``worlds``. The
                copy includes sensor noise. By default, each world is restored from the snapshot world with the same
                index. Simulation and snapshot must then have equal numbers of worlds.

        Raises:
            ModelError: ``snapshot`` is not a snapshot, or has another model, scheme, dtype or number of worlds, or a
                world does not exist. The simulation is then unchanged.
        """
        self.state.restore(snapshot, worlds, source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint file with a snapshot, the model and the settings. :meth:`load` continues from this file.

        An older file stays intact until the new file is complete. The file cannot contain models with ``python`` blocks
        or with values of custom classes. For such a model, pass the model to :meth:`load`.

        Args:
            path: path of the file, which must end in .npz. ``numpy.load`` can also read the file.

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
        """Return a simulation that continues from a checkpoint file of :meth:`save` with bit-identical results.

        Args:
            path: path of the checkpoint file.
            model: see :class:`Simulation`. Default: the model in the file.
            backend: see :class:`Simulation`. Default: the backend that wrote the file. The results of the "native" and
                "cuda" backends are bit-identical. The "numpy" backend has other rounding errors.
            launch, threads, device, specialize: see :class:`Simulation`.

        Raises:
            ModelError: the file is invalid, is from another version of gpusim, belongs to another model, or contains no
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
