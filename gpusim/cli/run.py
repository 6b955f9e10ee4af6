"""``gpusim run``: build, simulate, record, plot, summarize."""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.cli import checks
from gpusim.cli.console import note, notes_instead_of_warnings
from gpusim.cli.exit_codes import BadRun, Interrupted, OptionError
from gpusim.cli.loop import Outcome, simulate
from gpusim.cli.options import RunOptions, check
from gpusim.cli.replays import load_replay
from gpusim.cli.summary import parted, show_summary
from gpusim.cli.targets import load_target
from gpusim.errors import SimulationError, unknown_name
from gpusim.recording.plots import check_plots, draw, plot_signals, save_figure
from gpusim.recording.recorder import Recorder
from gpusim.scene import Plot, Scene

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation

_PICTURE_SAMPLES = 1000  # about one for each dot across a picture
_CHECK_SAMPLES = 5000  # for checks, at about most


def run(options: RunOptions) -> None:
    """Do what one ``gpusim run`` command line asks for.

    Raises:
        GpusimError: bad input, found before the first step; SimulationError, BadRun and Interrupted only after
            everything that was recorded has been written.
    """
    check(options)
    replay = load_replay(options)
    scene = load_target(options, visuals=False)
    config = dataclasses.replace(scene.config, **options.config_changes())
    duration = scene.duration
    if replay is not None:
        replay.check(options, scene)
        duration = replay.duration
    steps = _count_steps(options, duration, config.dt)
    sim = make_simulation(options, scene, config, scene.builder.finalize())
    operator = replay.operator(sim, scene) if replay is not None else None
    plots = _plots(options, scene, sim)
    check_plots(plots, sim.signals())
    if options.plot is not None:
        _require_matplotlib()
    # a file gets every step; a picture has no use for them, and a sample costs nearly as much as a step
    every = 1 if options.out is not None else max(1, steps // _PICTURE_SAMPLES)
    against = checks.reasons_against(options, scene, steps, config.dt)
    checked = bool(scene.checks) and not against
    if checked:
        recorded = options.out is not None or options.plot is not None
        every = min(every, checks.CHECK_STRIDE) if recorded else max(checks.CHECK_STRIDE, steps // _CHECK_SAMPLES)
    recorder = _recorder(options, plots, sim, steps // every + 2, checked)

    outcome = simulate(sim, scene, steps, recorder, every, operator=operator)

    _write(options, scene, plots, recorder)
    found = checks.find(options, scene, outcome, recorder, every, against)
    told = found.told if found is not None else None
    show_summary(scene, sim, outcome, _written(options), _last_values(options, recorder), told)
    raise_failure(sim, outcome)
    wrong = parted(outcome) or (found.broken if found is not None else "")
    if wrong:
        raise BadRun(wrong)


def _count_steps(options: RunOptions, scene_duration: float, dt: float) -> int:
    duration = scene_duration if options.duration is None else options.duration
    if duration < 0.5 * dt:
        raise OptionError(f"--duration {duration:g} s is shorter than one step of {dt:g} s; give at least {dt:g}")
    return round(duration / dt)


def check_backend(options: RunOptions) -> None:
    """Find out whether the backend that was asked for works here, before anything is built.

    Raises:
        ModelError: it does not; the message names the mend.
    """
    if options.backend != "auto":  # which always finds one, and asks the GPU's libraries for it
        from gpusim.backends import choose_backend

        choose_backend(options.backend)


def make_simulation(options: RunOptions, scene: Scene, config: Any, model: Model) -> Simulation:
    """The simulation that a command line asks for, in its first state."""
    # only now, after the cheap checks: the solver and its compiled loops take a while to load
    with notes_instead_of_warnings():
        from gpusim.simulation import Simulation

        sim = Simulation(
            model,
            num_worlds=options.num_worlds,
            backend=options.backend,
            dtype=options.dtype,
            config=config,
        )
    if options.backend == "auto" and sim.backend_name == "numpy":
        reason = sim.backend_reason.rpartition("no native: ")[2]
        note(f"running on the slow NumPy backend, as there is no faster one here: {reason}")
    return sim


def _plots(options: RunOptions, scene: Scene, sim: Simulation) -> list[Plot]:
    """The panels: the scene's own, or those for ``--signals``, one for each kind of signal and unit."""
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
        # "[" is an ordinary character of a label, so only * and ? are patterns
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


def _recorder(
    options: RunOptions, plots: Sequence[Plot], sim: Simulation, samples: int, checked: bool
) -> Recorder | None:
    """A recorder with room for all samples of a run; None when nobody wants the samples."""
    if options.out is None and options.plot is None and options.signals is None and not checked:
        return None
    names = plot_signals(plots)
    per_sample = 8 * options.num_worlds * sum(math.prod(sim.signals()[name].shape) for name in names)
    size = samples * per_sample
    if size > _memory_limit():
        raise OptionError(
            f"--signals: {samples} samples of {len(names)} signals in {options.num_worlds} worlds need "
            f"{size / 2**30:.3g} GiB of memory, more than half of this computer's; "
            "record fewer signals, fewer worlds or a shorter time"
        )
    return Recorder(sim, names, capacity=samples)


def _memory_limit() -> float:
    """Half of this computer's memory in bytes; 4 GiB where it can't be asked."""
    try:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4.0 * 2**30


def _write(options: RunOptions, scene: Scene, plots: Sequence[Plot], recorder: Recorder | None) -> None:
    if recorder is None:
        return
    recording = recorder.recording()
    if options.out is not None:  # the data first: a picture can be drawn again
        recording.save(options.out)
    if options.plot is not None:
        save_figure(draw(plots, recording, f"{scene.name}: {scene.description}"), options.plot)


def _written(options: RunOptions) -> list[str]:
    return [str(path) for path in (options.out, options.plot) if path is not None]


def _last_values(options: RunOptions, recorder: Recorder | None) -> dict[str, np.ndarray]:
    """Last sample of world 0 of every signal that was asked for by name."""
    if options.signals is None or recorder is None:
        return {}
    recording = recorder.recording()
    return {name: samples[-1, 0] for name, samples in recording.signals.items() if len(samples)}


def raise_failure(sim: Simulation, outcome: Outcome) -> None:
    """Raise what ended a run early, or the worlds that failed in it; nothing after a good run."""
    if outcome.failure is not None:
        raise outcome.failure
    if outcome.interrupted:
        raise Interrupted(f"interrupted at {outcome.simulated:g} s of simulated time")
    sick = int(np.count_nonzero(~np.asarray(sim.health())))
    if sick:
        first = sim.health_report().splitlines()[0]  # thousands of worlds are no sentence
        raise SimulationError(f"{sick} of {sim.num_worlds} worlds failed: {first}")
