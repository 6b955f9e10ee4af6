"""``gpusim run``: build a model, simulate it, record and plot signals, and print a summary."""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.cli import checks
from gpusim.cli.console import note, notes_instead_of_warnings
from gpusim.cli.exit_codes import BadRun, Interrupted, OptionError
from gpusim.cli.loop import Outcome, Sampling, simulate
from gpusim.cli.options import RunOptions, check, count_steps
from gpusim.cli.policies import with_policy
from gpusim.cli.replays import load_replay
from gpusim.cli.summary import joint_failure, show_summary
from gpusim.cli.targets import load_target
from gpusim.errors import SimulationError, unknown_name
from gpusim.recording.plots import check_plots, draw, plot_signals, save_figure
from gpusim.recording.recorder import Recorder
from gpusim.recording.stream import StreamRecorder
from gpusim.scene import Plot, Scene

if TYPE_CHECKING:
    from gpusim.cosim import StepClock
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation

_POSES = 60.0
"""Number of poses per second over UDP."""
_PICTURE_SAMPLES = 1000  # about one sample per pixel of the plot's width


def run(options: RunOptions) -> None:
    """Run the command ``gpusim run``.

    Raises:
        GpusimError: the input is invalid. SimulationError, BadRun and Interrupted are raised after all recorded data
            has been written.
    """
    check(options)
    options = with_policy(options)
    replay = load_replay(options)
    scene = load_target(options, visuals=False)
    config = dataclasses.replace(scene.config, **options.config_changes())
    duration = scene.duration
    if replay is not None:
        replay.check(options, scene)
        duration = replay.duration
    steps = _count_steps(options, duration, config.dt)
    sim = make_simulation(options, config, scene.builder.finalize())
    steps = _count_steps(options, duration, sim.config.dt)  # the checkpoint may have another step size
    operator = replay.operator(sim, scene) if replay is not None else None
    plots = _plots(options, scene, sim)
    check_plots(plots, sim.signals())
    if options.plot is not None:
        _require_matplotlib()
    against = checks.reasons_against(options, scene, steps, sim.config.dt)
    with ExitStack() as files:
        recorders = _recorders(options, plots, sim, steps)
        if recorders.file is not None:
            files.enter_context(recorders.file)
        checked = checks.sampling(scene, sim) if scene.checks and not against else None
        clock, notes = _real_time(options, sim, files)
        samplings = recorders.samplings(checked)
        outcome = simulate(sim, scene, steps, None, more=samplings, operator=operator, clock=clock)
    if recorders.picture is not None and options.plot is not None:
        save_figure(draw(plots, recorders.picture.recording(), f"{scene.name}: {scene.description}"), options.plot)
    saved = _save(options, sim, outcome)
    found = checks.find(options, scene, outcome, checked, against)
    reported = found.reported if found is not None else None
    show_summary(scene, sim, outcome, _written(options, saved), _last_values(options, plots, sim), reported)
    if clock is not None:
        clock.end()
        print(clock.report(tuple(notes)))
    raise_failure(sim, outcome)
    wrong = joint_failure(outcome.drift, outcome.tilt) or (found.broken if found is not None else "")
    if wrong:
        raise BadRun(wrong)


@dataclasses.dataclass(frozen=True)
class _Recorders:
    """Recorders of the output file and of the plots (``picture``), with their sampling intervals (steps)."""

    file: StreamRecorder | None = None
    file_every: float = 1.0
    picture: Recorder | None = None
    picture_every: int = 1

    def samplings(self, checked: Sampling | None) -> list[Sampling]:
        """Return the sampling schedules of the recorders and of the checks."""
        found = [checked] if checked is not None else []
        if self.file is not None:
            found.append(Sampling(self.file, self.file_every))
        if self.picture is not None:
            found.append(Sampling(self.picture, self.picture_every))
        return found


def _real_time(options: RunOptions, sim: Simulation, stack: ExitStack) -> tuple[StepClock | None, list[str]]:
    """Return the clock for ``--clock`` or None, and notes about unavailable real-time settings."""
    if not options.clock:
        return None, []
    from gpusim.cosim.clock import StepClock
    from gpusim.cosim.realtime import realtime_thread

    return StepClock(sim.config.dt), stack.enter_context(realtime_thread())


def _count_steps(options: RunOptions, scene_duration: float, dt: float) -> int:
    duration = scene_duration if options.duration is None else options.duration
    if duration < 0.5 * dt:
        raise OptionError(f"--duration {duration:g} s is shorter than one step of {dt:g} s; give at least {dt:g}")
    return count_steps("--duration", duration, dt)


def check_backend(options: RunOptions) -> None:
    """Check that the chosen backend works on this computer.

    Raises:
        ModelError: the backend does not work.
    """
    if options.backend != "auto":  # "auto" always finds a backend, but a check of "auto" would load the GPU libraries
        from gpusim.backends import choose_backend

        choose_backend(options.backend)


def make_simulation(options: RunOptions, config: Any, model: Model) -> Simulation:
    """Build the simulation from the options. ``--resume`` replaces the initial state."""
    # Import after the cheap checks, because the solver and its compiled loops load slowly.
    with notes_instead_of_warnings():
        from gpusim.simulation import Simulation

        if options.resume is not None:
            sim = Simulation.load(options.resume, model, None if options.backend == "auto" else options.backend)
        else:
            sim = Simulation(
                model,
                num_worlds=options.num_worlds,
                backend=options.backend,
                dtype=options.dtype,
                config=config,
            )
    if options.resume is None and options.start_pose() is not None:
        sim.reset(pose=options.start_pose())
    if options.udp is not None:
        from gpusim.cosim.udp import UdpPoses

        address, comma, frame = options.udp.partition(",")
        UdpPoses(sim, address, rate=min(_POSES, 1.0 / sim.config.dt), frame=frame if comma else "gpusim")
    return sim


def _plots(options: RunOptions, scene: Scene, sim: Simulation) -> list[Plot]:
    """Return the plots to draw."""
    patterns = options.signal_patterns()
    if patterns is None:
        if not scene.plots and (options.out is not None or options.plot is not None):
            raise OptionError(f"{scene.name!r} names no signals to record; name some with --signals")
        return scene.plots
    known = sim.signals()
    panels: dict[tuple[str, str], list[str]] = {}
    for name in _match(patterns, known):
        panels.setdefault((name.rpartition(".")[2], known[name].unit), []).append(name)
    return [Plot(title=kind.replace("_", " "), unit=unit, signals=names) for (kind, unit), names in panels.items()]


def _match(patterns: Sequence[str], known: Iterable[str]) -> list[str]:
    names = list(known)
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in names:
            found[pattern] = None
            continue
        # "[" is an ordinary character in a label, so only * and ? are patterns.
        matches = fnmatch.filter(names, pattern.replace("[", "[[]")) if set(pattern) & set("*?") else []
        if not matches:
            raise unknown_name("signal in --signals:", pattern, names)
        found.update(dict.fromkeys(matches))
    return list(found)


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise OptionError(f"--plot needs matplotlib ({error}); install it or drop the option") from error


def _recorders(options: RunOptions, plots: Sequence[Plot], sim: Simulation, steps: int) -> _Recorders:
    """Return the recorders for ``--out`` and ``--plot``.

    Raises:
        OptionError: ``--rate`` is above the step rate, or the samples for a plot do not fit into memory.
    """
    names, dt = plot_signals(plots), sim.config.dt
    file_every = 1.0 if options.rate is None else min(1.0 / max(options.rate * dt, 1e-15), 1e15)
    if file_every < 1.0 - 1e-9:
        raise OptionError(
            f"--rate {options.rate:g} is above {1.0 / dt:g}, the number of steps per second; give at most that"
        )
    picture_every, picture = max(1, steps // _PICTURE_SAMPLES), None
    if options.plot is not None:
        samples = steps // picture_every + 2
        _check_memory(sim, names, samples)
        picture = Recorder(sim, names, capacity=samples)
    file = None
    if options.out is not None:
        file = StreamRecorder(sim, names, options.out, dtype=options.out_dtype)
    if file is not None and file.rescued is not None:
        note(f"an unfinished recording existed, which is now {str(file.rescued)!r}")
    return _Recorders(file, max(file_every, 1.0), picture, picture_every)


def _check_memory(sim: Simulation, names: Sequence[str], samples: int) -> None:
    known = sim.signals()
    size = samples * 8 * sim.num_worlds * sum(math.prod(known[name].shape) for name in names)
    if size > _memory_limit():
        raise OptionError(
            f"--plot: {samples} samples of {len(names)} signals in {sim.num_worlds} worlds need "
            f"{size / 2**30:.3g} GiB of memory, more than half of this computer's; draw fewer signals or fewer worlds"
        )


def _memory_limit() -> float:
    """Return half of the computer's memory (bytes), or 4 GiB if the memory is unknown."""
    try:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4.0 * 2**30


def _save(options: RunOptions, sim: Simulation, outcome: Outcome) -> Path | None:
    """Write the checkpoint of ``--save`` and return its path, or None."""
    if options.save is None:
        return None
    if outcome.interrupted and sim.backend_name == "numpy":  # other backends finish the step before an interruption
        note("--save: the NumPy backend was interrupted within a step, so no checkpoint was written")
        return None
    sim.save(options.save)
    return options.save


def _written(options: RunOptions, saved: Path | None) -> list[str]:
    return [str(path) for path in (options.out, options.plot, saved) if path is not None]


def _last_values(options: RunOptions, plots: Sequence[Plot], sim: Simulation) -> dict[str, np.ndarray]:
    """Return the last value of each ``--signals`` signal in world 0."""
    if options.signals is None:
        return {}
    return {name: sim.read(name, numpy=True)[0] for name in plot_signals(plots)}


def raise_failure(sim: Simulation, outcome: Outcome) -> None:
    """Raise an error if a run ended early or some of its worlds failed."""
    if outcome.failure is not None:
        raise outcome.failure
    if outcome.interrupted:
        raise Interrupted(f"interrupted at {outcome.simulated:g} s of simulated time")
    sick = int(np.count_nonzero(~np.asarray(sim.health())))
    if sick:
        first = sim.health_report().splitlines()[0]  # the report may list thousands of worlds
        raise SimulationError(f"{sick} of {sim.num_worlds} worlds failed: {first}")
