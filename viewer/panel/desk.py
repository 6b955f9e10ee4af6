"""What the panel is about: a session, its operator, its signals, its scene's parameters, and the overlays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.errors import GpusimError
from gpusim.scene import ParameterInfo
from gpusim.viewer.operator import Operator
from gpusim.viewer.overlays import Overlay, overlays
from gpusim.viewer.panel.history import History
from gpusim.viewer.panel.layout import Area
from gpusim.viewer.window.sources import Live

if TYPE_CHECKING:
    from gpusim.viewer.window.session import Session

RECORDING = "operator.jsonl"
"""Name of the operator's recording, in the current folder."""


@dataclass
class Desk:
    """Everything that the panel shows and changes.

    Attributes:
        session: what runs; see gpusim/viewer/window/session.py.
        operator: the inputs; None where a recorded motion is played.
        parameters: of the scene; empty for robots.
        values: their present values in words, which the person may edit.
        shown: names of the overlays that are on; shared with the window.
        overlays: all there are.
        jitter: root mean square lateness of the frames, s; None where nothing is paced.
        record_path: file of the operator's recording.
        message: one line for the person about the last thing done here.
        places: where things were drawn in the last frame, in the units of the cursor: "stop", "run", "step", "reset",
            "slower", "faster", "record", "replay", "Overlays", "Parameters", "Keys", "restart", and "command lift",
            "parameter mass", "overlay contacts" and so on.
    """

    session: Session
    operator: Operator | None = None
    parameters: Sequence[ParameterInfo] = ()
    values: dict[str, str] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    overlays: Sequence[Overlay] = field(default_factory=overlays)
    jitter: float | None = None
    record_path: Path = Path(RECORDING)
    message: str = ""
    places: dict[str, Area] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._defaults = {p.name: words(p.default) for p in self.parameters}
        self.values = self._defaults | self.values
        self._begun = dict(self.values)
        self._history: tuple[Live, History] | None = None

    @property
    def live(self) -> Live | None:
        """The simulation; None where a recorded motion is played."""
        source = self.session.source
        return source if isinstance(source, Live) else None

    def history(self) -> History | None:
        """The signals of the simulation that runs now."""
        live = self.live
        if live is None:
            return None
        if self._history is None or self._history[0] is not live:
            self._history = live, History(live.sim, live.scene.plots)
        return self._history[1]

    def health(self) -> tuple[str, bool]:
        """In words, and whether all is well."""
        if self.live is None:
            return "recording", True
        word = np.asarray(self.live.sim.health_word())
        if failed := int(np.count_nonzero(word & 1)):
            return ("failed" if word.size == 1 else f"{failed} of {word.size} worlds failed"), False
        if np.any(word & 2):
            return "too many contacts", False
        return ("not converged", False) if np.any(word & 4) else ("healthy", True)

    # What buttons do.

    def changed(self) -> dict[str, Any]:
        """Parameters that were edited since the simulation was made."""
        return {name: text for name, text in self.values.items() if text != self._begun.get(name)}

    def restart(self) -> None:
        """Make the simulation anew with the edited parameters; what they do not allow is told in ``message``."""
        generation = self.session.generation
        self.session.restart(self.changed())
        self.message = self.session.note
        if self.session.generation != generation:
            self._begun, self.message = dict(self.values), ""

    def reset(self) -> None:
        """Back to the first state."""
        self.session.reset()

    def toggle_recording(self) -> None:
        """Record what the operator does, from a reset on so that it can be repeated exactly; or end it."""
        if self.operator is None:
            return
        try:
            if self.operator.recording:
                self.operator.stop_recording()
            else:
                self.reset()
                self.operator.record(self.record_path)
                self.operator.note = f"recording {self.record_path}"
        except (GpusimError, OSError) as error:
            self.operator.note = str(error)

    def toggle_replay(self) -> None:
        """Repeat the recording from a reset on, or end the replay."""
        if self.operator is None:
            return
        if self.operator.replaying:
            self.operator.stop_replay()
            return
        try:
            self.reset()
            self.operator.replay(self.record_path)
            self.operator.note = f"replaying {self.record_path}"
        except GpusimError as error:
            self.operator.note = str(error)


def words(value: Any) -> str:
    """A parameter's value as a person types it."""
    if isinstance(value, float):
        return f"{value:.10g}"
    return "none" if value is None else str(value)
