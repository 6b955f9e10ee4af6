"""Session that plays a simulation or a recording in real time, and handles commands of the user."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpusim.errors import GpusimError
from gpusim.stage.poses import Poses
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.window.sources import Source

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Playback speeds for the keys, relative to real time."""
BEHIND = 0.1
"""Maximum time by which the source may lag behind real time, s. The session drops any additional lag."""
_STALL = 0.5
"""Maximum time between two frames, s. The session reports longer times as a stall."""
_BUDGET = (1.0 / 30.0, 0.08)
"""Minimum and maximum of the wall time that the source may use in one frame, s."""
_SHOWN = 1.0
"""Time for which the window reports that the session has dropped time, s."""
_READ = 8.0
"""Time for which a note stays visible while the session runs, s."""
_RECENT = 120

Rebuild = Callable[[Mapping[str, Any]], Source]
"""Function that rebuilds the source with changed scene parameters."""


class Session:
    """Session that plays a simulation or a recording in real time, in slow motion or faster than real time.

    Args:
        source: simulation or recording.
        speed: simulated time per real time, 0.1 to 4.
        paused: if True, start paused.
        rebuild: function that rebuilds the source with other parameters, or None.

    Attributes:
        source: current source, which :meth:`restart` replaces.
        generation: number of restarts.
        paused, speed: current pause state, and current simulated time per real time.
        finished: True after the user has quit.
        note: message for the user about the last command.
        dropped: real time (s) that the session has skipped, because the simulation was too slow.
        on_restart: functions to call before :meth:`restart` replaces the source.

    Raises:
        ViewerError: the speed is out of range.
    """

    def __init__(
        self, source: Source, *, speed: float = 1.0, paused: bool = False, rebuild: Rebuild | None = None
    ) -> None:
        if not SPEEDS[0] <= speed <= SPEEDS[-1]:
            raise ViewerError(f"speed {speed:g} is not between {SPEEDS[0]:g} and {SPEEDS[-1]:g}; give e.g. 0.5")
        self.source, self.speed, self.paused = source, speed, paused
        self.generation = 0
        self.finished = False
        self._note, self._noted_at = "", 0.0
        self.dropped = 0.0
        self.on_restart: list[Callable[[], None]] = []
        self._rebuild = rebuild
        self._target = source.time
        self._deadline: float | None = None
        self._dropped_at = float("-inf")
        self._course: deque[tuple[float, float]] = deque(maxlen=_RECENT)

    @property
    def note(self) -> str:
        """Message for the user about the last command."""
        return self._note

    @note.setter
    def note(self, text: str) -> None:
        self._note, self._noted_at = text, self._deadline or 0.0

    def frame(self, deadline: float) -> None:
        """Advance the simulation or recording by ``speed`` times the real time since the previous deadline.

        Args:
            deadline: deadline of this frame (s, frame clock).
        """
        elapsed = 0.0 if self._deadline is None else deadline - self._deadline
        self._deadline = deadline
        if self.paused:
            self._noted_at = deadline
            return
        if deadline - self._noted_at > _READ:
            self._note = ""
        if elapsed > _STALL:
            self._drop(elapsed - BEHIND)
            elapsed = BEHIND
        self._target += self.speed * elapsed
        # also allow longer steps if drawing is slow
        budget = min(max(elapsed, _BUDGET[0]), _BUDGET[1])
        reached = self.source.run_to(self._target, budget, self.speed < 1.0)
        lag = (self._target - reached) / self.speed
        length = self.source.length
        if length is not None and self._target >= length:
            self.pause(f"end, {length:.2f} s")
            self._resume_from(self.source.time)
        elif lag > BEHIND:
            self._drop(lag)
            self._target = reached
        self._course.append((deadline, reached))
        if why := self.source.failure():
            self.pause(why)

    def skip(self) -> None:
        """Ignore the real time until the next frame. Call this method after slow work outside of frames."""
        self._deadline = None

    def _drop(self, seconds: float) -> None:
        self.dropped += seconds
        self._dropped_at = self._deadline or 0.0

    @property
    def behind(self) -> bool:
        """True if the simulation was too slow for real time in the last second."""
        return self._deadline is not None and self._deadline - self._dropped_at < _SHOWN

    @property
    def time(self) -> float:
        """Displayed time (s)."""
        return min(self._target, self.source.time) if self.speed < 1.0 else self.source.time

    @property
    def clock(self) -> str:
        """Displayed time as text: "3.20 s", or "3.20 / 12.00 s" for a played motion."""
        length = self.source.length
        return f"{self.time:.2f} s" if length is None else f"{self.time:.2f} / {length:.2f} s"

    @property
    def headline(self) -> str:
        """Time, and the state of recording or playback, for the title of a window."""
        if self.source.length is not None:
            return f"playback {self.clock}"
        return "   ● ".join(part for part in (self.clock, self.source.recording) if part)

    def real_time_factor(self) -> float:
        """Return the recent ratio of simulated to real time, or 0 while paused."""
        if self.paused or len(self._course) < 2:
            return 0.0
        (wall0, time0), (wall1, time1) = self._course[0], self._course[-1]
        return (time1 - time0) / (wall1 - wall0)

    def poses(self, worlds: Sequence[int]) -> Poses:
        """Return the poses to draw. In slow motion, interpolate between two steps."""
        return self.source.poses(worlds, self._target if self.speed < 1.0 else None)

    def _resume_from(self, time: float) -> None:
        """Continue at ``time`` (s), and restart the measurement of the real-time factor."""
        self._target = time
        self._course.clear()

    def pause(self, note: str = "") -> None:
        """Pause the session."""
        self.paused = True
        self._course.clear()
        self.note = note

    def toggle_pause(self) -> None:
        """Pause or continue. At the end of a recording, continue from its start."""
        if not self.paused:
            self.pause()
            return
        if why := self.source.failure():
            self.note = why
            return
        length = self.source.length
        if length is not None and self.source.time >= length:
            self.source.reset()
        self.paused, self.note = False, ""
        self._resume_from(self.source.time)

    def single_step(self, count: int = 1) -> None:
        """Pause, and advance by ``count`` steps or frames. In a recording, a negative count goes back."""
        self.pause()
        self.source.single_step(count)
        self._resume_from(self.source.time)

    def scrub(self, seconds: float) -> None:
        """Jump in a recording. The method has no effect on a simulation."""
        self.source.jump(seconds)
        self.note = ""
        self._resume_from(self.source.time)

    def seek(self, time: float) -> None:
        """Go to a time (s) of a recording, clamped to its length. The method has no effect on a simulation."""
        self.scrub(time - self.source.time)

    def slower(self) -> None:
        """Select the next lower speed."""
        self._set_speed(max((s for s in SPEEDS if s < self.speed - 1e-9), default=SPEEDS[0]))

    def faster(self) -> None:
        """Select the next higher speed."""
        self._set_speed(min((s for s in SPEEDS if s > self.speed + 1e-9), default=SPEEDS[-1]))

    def _set_speed(self, speed: float) -> None:
        self.speed, self.note = speed, ""
        self._resume_from(self.source.time)

    def reset(self) -> None:
        """Reset the source to its start. The paused state does not change."""
        self.source.reset()
        self.note = ""
        self._resume_from(self.source.time)

    def catch_up(self) -> None:
        """Continue from the current state after a program has called ``sim.step``."""
        self.source.catch_up()
        self._resume_from(self.source.time)

    def restart(self, changes: Mapping[str, Any] | None = None) -> None:
        """Rebuild the source with other scene parameters."""
        if self._rebuild is None:
            self.note = "this view cannot be restarted; open it again"
            return
        try:
            source = self._rebuild(changes or {})
        except GpusimError as error:
            self.note = str(error)
            return
        recorded = self.source.recording
        for callback in self.on_restart:
            callback()
        self.source, self.note = source, "restarted"
        if recorded and not source.recording:
            self.note = f"restarted; ended: {recorded}"
        self.generation += 1
        self._resume_from(source.time)

    def quit(self) -> None:
        """Finish the session after the current frame."""
        self.finished = True
