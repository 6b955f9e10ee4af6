"""Snapshots and checkpoint files of a simulation: ``snapshot``, ``restore``, ``save`` and ``load``."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.signals.checkpoint_file import Settings, read_checkpoint, write_checkpoint
from gpusim.signals.runtime import Runtime
from gpusim.signals.snapshot import LiveState, Snapshot, check_model

Self = TypeVar("Self", bound="Checkpoints")


class Checkpoints:
    """Part of Simulation that keeps and restores its whole state, in memory and in files."""

    runtime: Runtime
    dtype: str
    backend_name: str
    fast: bool

    @property
    def state(self) -> LiveState:
        """The state with ``copy()`` and ``restore(kept, worlds)``. Call :meth:`invalidate` after writing."""
        state = self.runtime.backend.state
        return LiveState(state.num_worlds, state.arrays, state.groups, runtime=self.runtime)

    def snapshot(self) -> Snapshot:
        """Return a copy of everything that the next steps depend on, in memory. See :meth:`restore`.

        It holds the state, contacts, parameters, commands, delays, diagrams, sensors with their random numbers, the
        quarantine, and the state that a reset returns to.
        """
        return self.state.copy()

    def restore(self, snapshot: State, worlds: Any = None, source: Any = None) -> None:
        """Set worlds to a snapshot, from which they continue with the same bits.

        Other worlds do not change. A world that is set to another world of the snapshot also continues with that
        world's bits, including the noise of its sensors. Functions of ``python`` blocks keep their own memory.

        Args:
            snapshot: from :meth:`snapshot` of a simulation of an equal model.
            worlds: None for all, a number, a list of numbers, or a mask (num_worlds,).
            source: worlds of the snapshot to take: one number for all ``worlds``, or one for each. None: the same
                numbers, and the snapshot must have the same number of worlds.

        Raises:
            ModelError: not a snapshot, or one of another model, scheme, number type or number of worlds, or no such
                world; nothing changes.
        """
        self.state.restore(snapshot, worlds, source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint: :meth:`snapshot`, model, ``config``, ``dtype`` and ``fast``. :meth:`load` continues it.

        The file replaces an older one only when it is complete. A model with ``python`` blocks or values of your own
        classes is not stored. Give this model to :meth:`load`.

        Args:
            path: path of the file, ends in .npz. ``numpy.load`` reads it.

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
        """Return a simulation that continues from a checkpoint of :meth:`save` with the same bits.

        Args:
            path: the file.
            model: as in :class:`Simulation`. By default the one in the file.
            backend: as in :class:`Simulation`. By default the backend that wrote the file. "native" and "cuda" continue
                with the same bits. The NumPy backend has other rounding errors.
            launch, threads, device, specialize: as in :class:`Simulation`.

        Raises:
            ModelError: the file is missing, damaged, no checkpoint, of another version of gpusim or of another model.
                Or the file holds no model, or the backend does not work here.
        """
        found = read_checkpoint(path)
        make: Any = cls
        wanted, chosen = found.settings, found.model() if model is None else model
        if isinstance(chosen, Model):  # before the simulation compiles kernels
            check_model(f"checkpoint {found.path!r}", chosen, found.header["digest"])
        sim: Self = make(
            chosen, found.num_worlds, backend or wanted.backend, wanted.dtype, wanted.config, fast=wanted.fast,
            launch=launch, threads=threads, device=device, specialize=specialize,
        )  # fmt: skip
        sim.restore(found.snapshot(chosen.groups))
        return sim
