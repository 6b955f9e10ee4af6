"""What a window shows: a simulation that runs, or a recorded motion that is played."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpusim.recording.motion import MotionRecorder
from gpusim.recording.player import MotionPlayer, between, slerp
from gpusim.typing import Array
from gpusim.viewer.scene.poses import Poses
from gpusim.viewer.window.variable_step import VariableStep

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.scene import Scene
    from gpusim.simulation import Simulation
    from gpusim.viewer.operator import Operator

_POSES = ("position", "orientation")
_AT_ONCE = 64
"""Steps between two looks at the clock, at most."""


class Source(Protocol):
    """Something with poses that goes on in time."""

    model: Model
    num_worlds: int

    @property
    def time(self) -> float:
        """Reached time, s."""

    @property
    def length(self) -> float | None:
        """Where it ends, s; None: never."""

    @property
    def recording(self) -> str:
        """Which file is being recorded, and how long it is so far, in words; empty for none."""

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        """Go on to a time, s, as far as ``budget`` seconds of work allow; ``smooth``: keep what is needed for poses
        between two steps. Returns the reached time."""

    def single_step(self, count: int) -> None:
        """Go ``count`` steps or frames on; back where it is below 0 and that is possible."""

    def jump(self, seconds: float) -> None:
        """Go on or back at once, where that is possible."""

    def reset(self) -> None:
        """Back to the start."""

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        """Poses of some worlds, those of the last step or, at a ``time``, between the last two."""

    def failure(self) -> str:
        """Why it cannot go on; empty while it can."""


class Live:
    """A simulation under the schedule of its scene.

    Args:
        sim: the simulation.
        scene: where it came from.
        clock: s, for the budget of work.

    Attributes:
        before_step: called before each step or few steps with their length in s, while it is set: forces that follow
            the state.
        operator: sets the commands of people before each step, in place of the scene's schedule; None for none.
        longest: s that pass between two such calls, at most.
        cost: wall time of a step of late, s; None before the first.
        variable: chooses the step while nothing is recorded or replayed; None: always the simulation's own.
    """

    def __init__(self, sim: Simulation, scene: Scene, clock: Callable[[], float] = time.perf_counter) -> None:
        self.sim, self.scene = sim, scene
        self.model, self.num_worlds = sim.model, sim.num_worlds
        self.before_step: Callable[[float], None] | None = None
        self.operator: Operator | None = None
        self.variable: VariableStep | None = None
        self.longest = 0.005
        self._clock = clock
        self._time = self._before_time = self._measured()
        self._before: dict[str, Array] = {}
        self._recorder: MotionRecorder | None = None
        self._recorded = 0.0
        self.cost: float | None = None

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._time

    @property
    def length(self) -> float | None:
        """None: a simulation does not end by itself."""
        return None

    @property
    def recording(self) -> str:
        """See :class:`Source`, e.g. "recording boom.npz 3.20 s"; it goes on through resets."""
        return "" if self._recorder is None else f"recording {self._recorder.path.name} {self._recorded:.2f} s"

    def _measured(self) -> float:
        """Time of the worlds that run, s; those that failed stand still."""
        return float(np.max(self.sim.read_state()["time"]))

    def record(self, recorder: MotionRecorder | None) -> None:
        """Sample into a recorder from here on; its first frame is now."""
        self._recorder, self._recorded = recorder, 0.0
        if recorder is not None:
            recorder.sample(0.0)

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        """See :class:`Source`. The time is the first step's that is not before the target."""
        end = self._clock() + budget
        while (left := math.ceil((target - self._time) / (dt := self._step_size()) - 1e-6)) > 0:
            self._steps(min(left, self._chunk(dt, smooth, end - self._clock())), dt, smooth)
            if self._clock() >= end:
                break
        return self._time

    def _step_size(self) -> float:
        """The next step, s: what is recorded or replayed must have the same bits elsewhere."""
        kept = self.operator is not None and (self.operator.recording or self.operator.replaying)
        return self.sim.config.dt if self.variable is None or kept else self.variable.size

    def _chunk(self, dt: float, smooth: bool, seconds: float) -> int:
        """How many steps may be done at once: nothing may be skipped that happens between two of them."""
        if self.scene.schedule is not None or smooth:
            return 1
        most = _AT_ONCE if not self.cost else int(seconds / self.cost)
        if self.before_step is not None:
            most = min(most, int(self.longest / dt))
        if self.operator is not None:
            most = min(most, self.operator.free_steps())
        if self._recorder is not None:
            most = min(most, math.ceil((self._recorder.next_time() - self._recorded) / dt - 0.5))
        return max(1, min(most, _AT_ONCE))

    def _steps(self, count: int, dt: float, smooth: bool) -> None:
        if self.operator is not None:
            self.operator.before_steps(self._time, count)
        elif self.scene.schedule is not None:
            self.scene.schedule(self.sim, self._time)
        if self.before_step is not None:
            self.before_step(count * dt)
        self._keep(smooth)
        began = self._clock()
        self.sim.step(count, dt)
        self.cost = (self._clock() - began) / count
        if self.variable is not None:
            self.variable.took(self.cost)
        # a schedule goes by the simulation's own sum of its substeps: a replay elsewhere must have the same bits
        self._time = self._measured() if self.scene.schedule is not None else self._time + count * dt
        self._recorded += count * dt
        if self._recorder is not None:
            self._recorder.sample(self._recorded, 0.5 * dt)

    def _keep(self, smooth: bool) -> None:
        """Keep the poses before a step, for those between it and the next."""
        self._before = {}
        if smooth:
            state = self.sim.read_state()
            self._before = {name: np.array(state[name]) for name in _POSES}
            self._before_time = self._time

    def single_step(self, count: int) -> None:
        """See :class:`Source`; a simulation does not go back."""
        for _ in range(count):
            self._steps(1, self.sim.config.dt, smooth=False)

    def jump(self, seconds: float) -> None:
        """See :class:`Source`; a simulation cannot."""

    def reset(self) -> None:
        """Back to the first state in all worlds, with the first commands."""
        self.sim.reset()
        if self.operator is not None:
            self.operator.reset()
        self._time, self._before = self._measured(), {}

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        """See :class:`Source`."""
        state: Mapping[str, Any] = self.sim.read_state()
        now = [state[name] for name in _POSES]
        if time is None or not self._before or time >= self._time:
            return Poses.from_state(now[0], now[1], worlds)
        share = max(0.0, (time - self._before_time) / (self._time - self._before_time))
        position = between(self._before["position"], now[0], share)
        return Poses.from_state(position, slerp(self._before["orientation"], now[1], share), worlds)

    def failure(self) -> str:
        """See :class:`Source`: all worlds failed."""
        healthy = np.asarray(self.sim.health())
        return "" if healthy.any() else f"all worlds failed: {self.sim.health_report().splitlines()[0]}"


class Played:
    """A recorded motion."""

    def __init__(self, player: MotionPlayer) -> None:
        self.player = player
        self.model, self.num_worlds = player.model, player.num_worlds

    @property
    def time(self) -> float:
        """The place, s from the first frame."""
        return self.player.time

    @property
    def length(self) -> float | None:
        """Length of the motion, s."""
        return self.player.duration

    @property
    def recording(self) -> str:
        """See :class:`Source`: a motion that is played is not recorded."""
        return ""

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        """See :class:`Source`."""
        self.player.time = target
        return self.player.time

    def single_step(self, count: int) -> None:
        """See :class:`Source`: frames."""
        self.player.go_to_frame(self.player.frame() + count)

    def jump(self, seconds: float) -> None:
        """See :class:`Source`."""
        self.player.time += seconds

    def reset(self) -> None:
        """To the first frame."""
        self.player.time = 0.0

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        """See :class:`Source`; the motion is always between two frames."""
        state = self.player.read_state()
        return Poses.from_state(state["position"], state["orientation"], worlds)

    def failure(self) -> str:
        """See :class:`Source`; nothing can fail."""
        return ""
