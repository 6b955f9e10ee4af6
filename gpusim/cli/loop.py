"""Loop of ``gpusim run`` and ``gpusim render``: set commands, run steps, take samples, report progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpusim.cli import progress
from gpusim.cli.console import notes_instead_of_warnings
from gpusim.errors import SimulationError

if TYPE_CHECKING:
    from gpusim.cosim import StepClock
    from gpusim.scene import Scene
    from gpusim.simulation import Simulation
    from gpusim.viewer.operator import Operator

_LOOKS = 500
"""A run checks the joint errors and the health of the worlds about this many times."""

_CALL = 0.2
"""Target wall time of one call of ``Simulation.step``, s."""
_MANY = 1 << 62


class Sampler(Protocol):
    """Observer of a running simulation, such as a recorder or a film."""

    def sample(self) -> None:
        """Sample the current state."""


@dataclass
class Sampling:
    """Sampling schedule of a sampler.

    Attributes:
        sampler: the observer that takes the samples.
        every: mean number of steps between samples, at least 1. Fractions such as 2.5 are allowed.
        last: index of the last step at which the sampler may take a sample.
        taken: number of samples so far.
    """

    sampler: Sampler
    every: float = 1.0
    last: int = _MANY
    taken: int = 0

    def until(self, done: int) -> int:
        """Return the number of steps until the next sample."""
        due = round(self.taken * self.every)
        return due - done if due <= self.last else _MANY

    def look(self, done: int, end: bool = False) -> None:
        """Take a sample if one is due or the run ends."""
        if self.until(done) <= 0 or (end and done <= self.last):
            self.sampler.sample()
            self.taken += 1


@dataclass
class Outcome:
    """Result of a run.

    Attributes:
        begun: simulated time at the start (s).
        simulated: simulated time at the end (s).
        wall: wall-clock time of the loop (s).
        reading: wall-clock time of all samples (s).
        steps: number of steps that ran.
        energy_start, energy_end: kinetic plus potential energy of world 0 (J).
        drift: maximum measured joint gap (m) over all worlds.
        tilt: maximum error over all worlds of locked rotations (rad) and of couplings (rad or m).
        interrupted: whether the user pressed Ctrl-C.
        failure: the error that ended the run early, or None.
        all_failed: whether every world failed.
    """

    begun: float = 0.0
    simulated: float = 0.0
    wall: float = 0.0
    reading: float = 0.0
    steps: int = 0
    energy_start: float = 0.0
    energy_end: float = 0.0
    drift: float = 0.0
    tilt: float = 0.0
    interrupted: bool = False
    failure: SimulationError | None = None
    all_failed: bool = False

    @property
    def ended_early(self) -> bool:
        """Whether the run ended early, or all its worlds failed."""
        return self.interrupted or self.failure is not None or self.all_failed


def simulate(
    sim: Simulation,
    scene: Scene,
    steps: int,
    recorder: Sampler | None,
    every: float = 1,
    *,
    more: Sequence[Sampling] = (),
    operator: Operator | None = None,
    printed: Callable[[], str] | None = None,
    clock: StepClock | None = None,
) -> Outcome:
    """Run ``steps`` steps of ``sim`` with the schedule of ``scene``, and take samples from start to end.

    After a failure or Ctrl-C, the outcome contains the reason.

    Args:
        sim: the simulation.
        scene: scene with the schedule.
        steps: number of steps.
        recorder: recorder that takes samples, or None.
        every: number of steps between samples of ``recorder``.
        more: schedules of additional samplers.
        operator: operator that sets the commands instead of the schedule, or None.
        printed: function that returns a text for the progress line.
        clock: clock that synchronizes each step with real time, or None to run as fast as possible.
    """
    begun = _time(sim)
    outcome = Outcome(begun=begun, energy_start=_energy(sim))
    stride = max(1, steps // _LOOKS)
    pace = _Pace() if clock is None else _ClockPace(clock)

    def reached(done: int) -> str:
        simulated = f"{begun + done * sim.config.dt:.6g} s simulated"
        return f"{simulated}, {printed()}" if printed is not None else simulated

    samplings = [*([Sampling(recorder, every)] if recorder is not None else []), *more]

    def look(end: bool = False) -> None:
        began = progress.clock()
        for sampling in samplings:
            sampling.look(outcome.steps, end)
        outcome.reading += progress.clock() - began

    start = progress.clock()
    look()
    try:
        with progress.reported(scene.name, steps, reached) as report, notes_instead_of_warnings():
            while outcome.steps < steps:
                # Stop at every event between two steps: commands, samples and health reads.
                done = outcome.steps
                count = min(pace.steps, steps - done, _until(done, stride), _free_steps(scene, operator))
                count = min([count, *(sampling.until(done) for sampling in samplings)])
                _command(sim, scene, operator, count)
                pace.step(sim, count)
                outcome.steps += count
                look(outcome.steps == steps)
                if outcome.steps % stride == 0 or outcome.steps == steps:
                    outcome.drift = max(outcome.drift, _worst(sim, "joint_drift"))
                    outcome.tilt = max(outcome.tilt, _worst(sim, "joint_tilt_peak"))
                    outcome.all_failed = not np.any(sim.health())
                    if outcome.all_failed:
                        break
                report.update(outcome.steps)
    except SimulationError as error:
        outcome.failure = error
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.wall = progress.clock() - start
    outcome.simulated = _time(sim)
    outcome.energy_end = _energy(sim)
    return outcome


def _until(done: int, every: int) -> int:
    """Return the number of steps from step ``done`` to the next multiple of ``every``."""
    return every - done % every


def _free_steps(scene: Scene, operator: Operator | None) -> int:
    """Return the number of steps until the next command is due."""
    if operator is not None:
        return operator.free_steps()
    return 1 if scene.schedule is not None else _MANY


def _command(sim: Simulation, scene: Scene, operator: Operator | None, count: int) -> None:
    """Set the commands for the next ``count`` steps."""
    if operator is not None:
        operator.before_steps(_time(sim), count)
    elif scene.schedule is not None:
        scene.schedule(sim, _time(sim))


class _Pace:
    """Adaptive limit on the number of steps per call of ``sim.step``.

    Short calls let the loop react to Ctrl-C and report progress.

    Attributes:
        steps: maximum number of steps per call.
    """

    def __init__(self) -> None:
        self.steps = 1

    def step(self, sim: Simulation, count: int) -> None:
        """Run ``count`` steps and adapt the limit to their wall time."""
        began = progress.clock()
        sim.step(count)
        if count < self.steps:  # another limit ended the call early, so its time does not count
            return
        _time(sim)  # wait for the GPU, because ``step`` only queues the work
        wall = progress.clock() - began
        if wall < 0.5 * _CALL:
            self.steps = 2 * count
        elif wall > 2.0 * _CALL:
            self.steps = max(1, count // 2)


class _ClockPace(_Pace):
    """Pace for ``--clock``: run one step per call, at its deadline in real time."""

    def __init__(self, clock: StepClock) -> None:
        super().__init__()
        self._clock = clock

    def step(self, sim: Simulation, count: int) -> None:
        """Wait for the deadline of the next step, and run the step."""
        self._clock.wait()
        sim.step(count)


def _time(sim: Simulation) -> float:
    """Return the simulated time (s) of the world that has run longest."""
    return float(np.max(sim.read("sim.time", numpy=True)))


def _energy(sim: Simulation) -> float:
    parts = (sim.read(f"sim.{kind}_energy", numpy=True) for kind in ("kinetic", "potential"))
    return float(sum(np.ravel(part)[0] for part in parts))


def _worst(sim: Simulation, error: str) -> float:
    return float(np.max(np.asarray(sim.read(f"sim.{error}", numpy=True)), initial=0.0))
