"""Sources of a session: running simulations and recorded motions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpusim.recording.motion import MotionRecorder
from gpusim.recording.player import MotionPlayer, between, slerp
from gpusim.stage.poses import Poses
from gpusim.typing import Array
from gpusim.viewer.window.adaptive_step import AdaptiveStep

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.scene import Scene
    from gpusim.simulation import Simulation
    from gpusim.viewer.operator import Operator

_POSES = ("position", "orientation")
_AT_ONCE = 64
"""Maximum number of steps between two checks of the wall time."""


class Source(Protocol):
    """Protocol of a source: a simulation or a recorded motion, with a current time and poses."""

    model: Model
    num_worlds: int

    @property
    def time(self) -> float:
        """Current time (s)."""

    @property
    def length(self) -> float | None:
        """Length (s), or None for a source without an end."""

    @property
    def recording(self) -> str:
        """Name and current length of the motion file that is being recorded, as text."""

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        """Advance to a time (s), for at most ``budget`` s of wall time, and return the reached time.

        With ``smooth``, store poses for interpolation between two steps.
        """

    def single_step(self, count: int) -> None:
        """Advance by ``count`` steps or frames. In a recording, a negative count goes back."""

    def jump(self, seconds: float) -> None:
        """Jump by ``seconds`` in a recording. Negative values jump back."""

    def reset(self) -> None:
        """Reset to the start."""

    def catch_up(self) -> None:
        """Continue from the current state after a program has called ``sim.step``."""

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        """Return the poses of worlds at ``time``, which is between the last two steps.

        For ``time`` None, return the latest poses.
        """

    def failure(self) -> str:
        """Return the reason why the source cannot continue, or an empty text."""


class Live:
    """Running simulation with the schedule of its scene.

    Args:
        sim: the simulation.
        scene: scene of the simulation.
        pose: name of the posture after a reset, or None for the initial state.
        clock: function that returns the wall time (s), for the budget of :meth:`run_to`.

    Attributes:
        before_step: function that applies state-dependent forces before each call of ``sim.step``. The argument is the
            simulated duration of the call (s).
        operator: operator that writes the commands before each call of ``sim.step``, or None.
        longest: maximum simulated time between two calls of ``before_step`` (s).
        cost: wall time of one step (s), measured recently, or None before the first step.
        variable: adaptive step size, or None for a fixed step size.
    """

    def __init__(
        self,
        sim: Simulation,
        scene: Scene,
        pose: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.sim, self.scene, self._pose = sim, scene, pose
        self.model, self.num_worlds = sim.model, sim.num_worlds
        self.before_step: Callable[[float], None] | None = None
        self.operator: Operator | None = None
        self.variable: AdaptiveStep | None = None
        self.longest = 0.005
        self._clock = clock
        self._time = self._before_time = self._measured()
        self._before: dict[str, Array] = {}
        self._recorder: MotionRecorder | None = None
        self._recorded = 0.0
        self.cost: float | None = None

    @property
    def time(self) -> float:
        """Simulated time (s)."""
        return self._time

    @property
    def length(self) -> float | None:
        """Always None, because a simulation has no end."""
        return None

    @property
    def recording(self) -> str:
        """Name and length of the recording, e.g. "recording boom.npz 3.20 s"."""
        return "" if self._recorder is None else f"recording {self._recorder.path.name} {self._recorded:.2f} s"

    def _measured(self) -> float:
        """Return the simulated time of the worlds that have not failed (s)."""
        return float(np.max(self.sim.read_state()["time"]))

    def record(self, recorder: MotionRecorder | None) -> None:
        """Start a recording with ``recorder``, beginning with the current state. None ends the recording."""
        self._recorder, self._recorded = recorder, 0.0
        if recorder is not None:
            recorder.sample(0.0)

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        """Advance to the time ``target``, or until the budget is used up, see :meth:`Source.run_to`."""
        end = self._clock() + budget
        while (remaining := math.ceil((target - self._time) / (dt := self._step_size()) - 1e-6)) > 0:
            self._steps(min(remaining, self._chunk(dt, smooth, end - self._clock())), dt, smooth)
            if self._clock() >= end:
                break
        return self._time

    def _step_size(self) -> float:
        """Return the next step size (s). The step size is constant while commands are recorded or replayed."""
        fixed = self.operator is not None and (self.operator.recording or self.operator.replaying)
        return self.sim.config.dt if self.variable is None or fixed else self.variable.size

    def _chunk(self, dt: float, smooth: bool, seconds: float) -> int:
        """Return the number of steps for the next call of ``sim.step``."""
        if self.scene.schedule is not None or smooth:
            return 1
        max_steps = _AT_ONCE if not self.cost else int(seconds / self.cost)
        if self.before_step is not None:
            max_steps = min(max_steps, int(self.longest / dt))
        if self.operator is not None:
            max_steps = min(max_steps, self.operator.free_steps())
        if self._recorder is not None:
            max_steps = min(max_steps, math.ceil((self._recorder.next_time() - self._recorded) / dt - 0.5))
        return max(1, min(max_steps, _AT_ONCE))

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
            self.variable.record(self.cost)
        # a schedule gets the time as the simulation's sum of substeps, so that replays in other programs are identical
        self._time = self._measured() if self.scene.schedule is not None else self._time + count * dt
        self._recorded += count * dt
        if self._recorder is not None:
            self._recorder.sample(self._recorded, 0.5 * dt)

    def _keep(self, smooth: bool) -> None:
        """Store the poses before a step, for interpolation."""
        self._before = {}
        if smooth:
            state = self.sim.read_state()
            self._before = {name: np.array(state[name]) for name in _POSES}
            self._before_time = self._time

    def single_step(self, count: int) -> None:
        """Advance by ``count`` steps. A simulation cannot go back."""
        for _ in range(count):
            self._steps(1, self.sim.config.dt, smooth=False)

    def jump(self, seconds: float) -> None:
        """Do nothing, because a simulation cannot jump."""

    def reset(self) -> None:
        """Reset all worlds to their initial state and commands."""
        self.sim.reset(pose=self._pose)
        if self.operator is not None:
            self.operator.reset()
        self._time, self._before = self._measured(), {}

    def catch_up(self) -> None:
        """Set the source's time to the simulation's time."""
        self._time, self._before = self._measured(), {}

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        """Return poses, see :meth:`Source.poses`."""
        state: Mapping[str, Any] = self.sim.read_state()
        now = [state[name] for name in _POSES]
        if time is None or not self._before or time >= self._time:
            return Poses.from_state(now[0], now[1], worlds)
        fraction = max(0.0, (time - self._before_time) / (self._time - self._before_time))
        position = between(self._before["position"], now[0], fraction)
        return Poses.from_state(position, slerp(self._before["orientation"], now[1], fraction), worlds)

    def failure(self) -> str:
        """Return the reason if all worlds failed, else an empty text."""
        healthy = np.asarray(self.sim.health())
        return "" if healthy.any() else f"all worlds failed: {self.sim.health_report().splitlines()[0]}"


class Played:
    """Recorded motion."""

    def __init__(self, player: MotionPlayer) -> None:
        self.player = player
        self.model, self.num_worlds = player.model, player.num_worlds

    @property
    def time(self) -> float:
        """Time from the first frame (s)."""
        return self.player.time

    @property
    def length(self) -> float | None:
        """Length of the motion (s)."""
        return self.player.duration

    @property
    def recording(self) -> str:
        """Always empty, because a played motion is not recorded."""
        return ""

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        """Set the time, see :meth:`Source.run_to`."""
        self.player.time = target
        return self.player.time

    def single_step(self, count: int) -> None:
        """Go ``count`` frames forward, or back for a negative count."""
        self.player.go_to_frame(self.player.frame() + count)

    def jump(self, seconds: float) -> None:
        """Jump by ``seconds``. Negative values jump back."""
        self.player.time += seconds

    def reset(self) -> None:
        """Go to the first frame."""
        self.player.time = 0.0

    def catch_up(self) -> None:
        """Do nothing, because a recording never falls behind the player."""

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        """Return the poses at the current time. The player interpolates between two frames."""
        state = self.player.read_state()
        return Poses.from_state(state["position"], state["orientation"], worlds)

    def failure(self) -> str:
        """Return an empty text, because playback cannot fail."""
        return ""
