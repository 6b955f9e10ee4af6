"""Recordings of signals in memory, and as NPZ files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gpusim.errors import unknown_name
from gpusim.output_files import atomic_file, check_output_file


@dataclass(frozen=True, repr=False)
class Recording:
    """Signals over time.

    Attributes:
        time: (num_samples,) times (s).
        signals: signal name -> array (num_samples, num_worlds), or (num_samples, num_worlds, k) with k components.
    """

    time: np.ndarray
    signals: Mapping[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the samples of the signal ``name``. Raise UnknownNameError if the signal was not recorded."""
        if not isinstance(name, str) or name not in self.signals:
            raise unknown_name("recorded signal", str(name), self.signals)
        return self.signals[name]

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        ends = f" from {self.time[0]:g} to {self.time[-1]:g} s" if len(self) else ""
        return f"<Recording: {len(self)} samples{ends} of {', '.join(self.signals)}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``time`` and one array per signal to an NPZ file. If writing fails, no partial file remains.

        Raises:
            ModelError: the path does not end in .npz or its folder cannot be written.
            OSError: writing to the disk fails.
        """
        target = check_output_file(path, (".npz",))
        arrays: dict[str, Any] = {"time": self.time, **self.signals}
        with atomic_file(target) as stream:
            np.savez(stream, **arrays)


def load_archive(path: str | os.PathLike[str]) -> Recording:
    """Read an NPZ file with the array ``time`` and one array for each signal.

    Raises:
        OSError, ValueError: the file is missing, is not an NPZ file, or has no array ``time``.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (EOFError, AttributeError, BadZipFile) as error:
        raise ValueError(str(error)) from error
    if "time" not in arrays:
        raise ValueError("it has no array 'time'")
    return Recording(arrays.pop("time"), arrays)
