"""Recorder and player of operator recordings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim import validate
from gpusim.errors import unknown_name
from gpusim.output_files import check_output_file
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.recording import SUFFIX, OperatorRecording, Value, next_free

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


class LogWriter:
    """Recorder of operator changes.

    Args:
        recording: recording that receives the changes.
        path: path of the file.
        keep: with True, keep an existing file and use the next free name.

    Attributes:
        step: index of the next step, counted from the beginning of the recording.
        path: path of the file.

    Raises:
        ModelError: the file cannot be written at this path.
    """

    def __init__(self, recording: OperatorRecording, path: str | os.PathLike[str], keep: bool = False) -> None:
        chosen = next_free(path) if keep else path
        self.path: Path = check_output_file(chosen, (SUFFIX,), "operator recording")
        self.step = 0
        self._base = path if keep else None
        self._recording = recording

    def note(self, name: str, value: Value | None) -> None:
        """Record a change of an input for the next step."""
        self._recording.note(self.step, name, value)

    def note_stop(self, stopped: bool) -> None:
        """Record that the emergency stop is latched or released before the next step."""
        self._recording.stops[self.step] = stopped

    def finish(self) -> OperatorRecording:
        """Write the file.

        Raises:
            ModelError: the file cannot be written.
        """
        self._recording.steps = self.step
        try:
            if self._base is None:
                self._recording.save(self.path)
            else:
                self.path = self._recording.save_new(self.path, self._base)
        except OSError as error:
            rule = f"it cannot be written ({error.strerror or error})"
            raise validate.fail(f"operator recording {str(self.path)!r}", rule, "make room there") from error
        return self._recording


class LogPlayer:
    """Player of an operator recording.

    Attributes:
        step: index of the next step.

    Raises:
        ModelError: the simulation lacks a recorded input, or the simulation's step size or time differs from the
            recording.
    """

    def __init__(self, recording: OperatorRecording, sim: Simulation, inputs: Mapping[str, Input]) -> None:
        element = "operator recording"
        for name in recording.inputs:
            if name not in inputs:
                hint = "replay it with the scene it was made with"
                raise validate.fail(element, str(unknown_name("input", name, inputs)), hint)
        if recording.dt != sim.config.dt:
            rule = f"it was made with steps of {recording.dt:g} s, and the simulation has {sim.config.dt:g} s"
            raise validate.fail(element, rule, f"simulate with --dt {recording.dt:g}")
        if abs(recording.time - sim.time) > 0.5 * recording.dt:
            rule = f"it begins at {recording.time:g} s, and the simulation is at {sim.time:g} s"
            raise validate.fail(element, rule, "reset the simulation first")
        self.step = 0
        self._recording = recording
        self._steps = sorted({*recording.changes, *recording.stops, recording.steps})

    @property
    def finished(self) -> bool:
        """True if the next step is after the end of the recording."""
        return self.step >= self._recording.steps

    def wait(self) -> int:
        """Return the number of steps until the next recorded change."""
        return min((step for step in self._steps if step > self.step), default=self.step + 1) - self.step

    def due_stop(self) -> bool | None:
        """Return True if the emergency stop starts before the next step, False if the stop ends, and None otherwise."""
        return self._recording.stops.get(self.step)

    def due(self) -> dict[str, Value | None]:
        """Return the values to set before the next step."""
        return self._recording.changes.get(self.step, {})
