"""State of the panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.errors import GpusimError
from gpusim.scene import ParameterInfo
from gpusim.viewer.operator import Operator
from gpusim.viewer.operator.key_list import KeyGroup
from gpusim.viewer.operator.recording import newest
from gpusim.viewer.overlays import Overlay, overlays
from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.panel.diagram_view import DiagramView
from gpusim.viewer.panel.history import History
from gpusim.viewer.window.sources import Live, Source

if TYPE_CHECKING:
    from gpusim.viewer.window.session import Session

RECORDING = "operator.jsonl"
"""File of the operator's first recording, in the current folder. The second file is operator-2.jsonl."""


@dataclass
class PanelState:
    """State that the panel shows and changes.

    Attributes:
        session: the running session.
        operator: the inputs, or None during playback of a motion.
        parameters: scene parameters, empty for a scene without parameters.
        values: current values of the parameters, as text that the user may edit.
        shown: names of the active overlays. Panel and window share this set object.
        worlds: indices of the worlds that are drawn.
        world: index of the displayed world.
        overlays: all overlays.
        jitter: root mean square of the lateness of frames (s), or None without a frame timer.
        frame_rate: frames per second, or 0 without a frame timer.
        record_path: file of the operator's first recording. Further recordings get numbered names.
        message: message for the user about the last restart.
        problem: error of the last recording or replay of commands, or empty.
        keys: function that returns the help for all keys and the mouse in a window, or None without a window.
        areas: widget name -> area in the last frame, in cursor units. Names are, for example, "stop", "run", "record",
            "timeline", "command lift", "parameter mass", "overlay contacts" and "diagram block pid".
        diagram_shown: True if the block diagram is open.
    """

    session: Session
    operator: Operator | None = None
    parameters: Sequence[ParameterInfo] = ()
    values: dict[str, str] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    worlds: Sequence[int] = (0,)
    world: int = 0
    overlays: Sequence[Overlay] = field(default_factory=overlays)
    jitter: float | None = None
    frame_rate: float = 0.0
    record_path: Path = Path(RECORDING)
    message: str = ""
    problem: str = ""
    keys: Callable[[], Sequence[KeyGroup]] | None = None
    areas: dict[str, Box] = field(default_factory=dict)
    diagram_shown: bool = False

    def __post_init__(self) -> None:
        self._defaults = {p.name: words(p.default) for p in self.parameters}
        self.values = self._defaults | self.values
        self._begun = dict(self.values)
        self._history: tuple[Live, History] | None = None
        self._diagrams: tuple[Source, DiagramView] | None = None

    @property
    def live(self) -> Live | None:
        """The simulation, or None during playback of a motion."""
        source = self.session.source
        return source if isinstance(source, Live) else None

    def history(self) -> History | None:
        """Return the signal history of the simulation in the drawn worlds."""
        live = self.live
        if live is None:
            return None
        if self._history is None or self._history[0] is not live or self._history[1].worlds != tuple(self.worlds):
            self._history = live, History(live.sim, live.scene.plots, self.worlds)
        self._history[1].show(self.world)
        return self._history[1]

    def diagrams(self) -> DiagramView | None:
        """Return the block diagrams of the source, or None without diagrams."""
        source = self.session.source
        if self._diagrams is None or self._diagrams[0] is not source:
            self._diagrams = source, DiagramView(source)
        return self._diagrams[1] if self._diagrams[1].labels else None

    def world_name(self) -> str:
        """Return the name of the displayed world, e.g. "world 3 of 64", or an empty string with only one world."""
        count = self.session.source.num_worlds
        return f"world {self.world} of {count}" if count > 1 else ""

    def all_keys(self) -> Sequence[KeyGroup]:
        """Return the help for keys and mouse, or only for the operator's keys if there is no window."""
        if self.keys is not None:
            return self.keys()
        return self.operator.key_groups() if self.operator is not None else ()

    def health(self) -> tuple[str, bool]:
        """Return a text about the state of the simulation, and True if the simulation is healthy."""
        if self.live is None:
            return "playback", True
        word = np.asarray(self.live.sim.status_flags())
        if failed := int(np.count_nonzero(word & 1)):
            return ("failed" if word.size == 1 else f"{failed} of {word.size} worlds failed"), False
        if np.any(word & 2):
            return "too many contacts", False
        if np.any(word & 8):
            return "joints apart", False
        return ("not converged", False) if np.any(word & 20) else ("healthy", True)

    def changed(self) -> dict[str, Any]:
        """Return the parameters that the user has changed since the last restart."""
        return {name: text for name, text in self.values.items() if text != self._begun.get(name)}

    def restart(self) -> None:
        """Restart the simulation with the edited parameters."""
        generation = self.session.generation
        self.session.restart(self.changed())
        self.message = self.session.note
        if self.session.generation != generation:
            self._begun, self.message = dict(self.values), ""

    def reset(self) -> None:
        """Reset the simulation to its initial state."""
        self.session.reset()

    def toggle_recording(self) -> None:
        """Start or end a recording of the operator. A start resets the simulation, so that the replay is exact."""
        if self.operator is None:
            return
        try:
            if self.operator.recording:
                self.operator.stop_recording()
            else:
                self.reset()
                self.operator.record(self.record_path, keep=True)
            self.problem = ""
        except GpusimError as error:
            self.problem = str(error)

    def toggle_replay(self) -> None:
        """Start or end a replay of the newest recording. Starting a replay resets the simulation."""
        if self.operator is None:
            return
        if self.operator.replaying:
            self.operator.stop_replay()
            return
        try:
            self.operator.stop_recording()
            file = self._newest(self.operator.recorded)
            self.reset()
            self.operator.replay(file)
            self.problem = ""
        except GpusimError as error:
            self.problem = str(error)

    def _newest(self, recorded: Path | None) -> Path:
        found = recorded if recorded is not None and recorded.is_file() else newest(self.record_path)
        if found is None:
            rule = f"there is no {self.record_path.name} in {str(self.record_path.parent.resolve())!r}"
            raise validate.fail("replay", rule, "press Record first")
        return found


def words(value: Any) -> str:
    """Return a parameter's value as editable text."""
    if isinstance(value, float):
        return f"{value:.10g}"
    return "none" if value is None else str(value)
