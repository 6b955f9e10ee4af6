"""What ``gpusim run`` finds of a scene's checks, and why it does not look at them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusim.cli.loop import Outcome, Sampling
from gpusim.cli.options import RunOptions
from gpusim.recording.recorder import Recorder
from gpusim.scene import Scene

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

TRIAL_STRIDE = 10
"""Steps from sample to sample of checks whose signals need a trial of the next step."""


@dataclass(frozen=True)
class Found:
    """What a run tells of checks: the text of the table, and the sentence on a scene as shipped that does not meet them
    ("" where it does)."""

    told: str
    broken: str = ""


def reasons_against(options: RunOptions, scene: Scene, steps: int, dt: float) -> list[str]:
    """Return why a run of so many steps (of ``dt`` s) can't evaluate the scene's checks; empty where it can.

    They apply to one world with the scene's default parameters, duration and commands, and need all its signals.
    """
    found = []
    if options.settings:
        found.append("they apply to the scene's default parameters, and --set changes them")
    if options.replay is not None:
        found.append("--replay commands the scene otherwise than its schedule")
    elif steps < scene.duration / dt - 0.5:
        found.append(f"--duration {options.duration:g} ends before the scene's {scene.duration:g} s")
    if options.num_worlds > 1:
        found.append(f"they look at one world, and --num-worlds is {options.num_worlds}")
    if options.signals is not None:
        found.append("they need the scene's signals, and --signals records others")
    return found


def sampling(scene: Scene, sim: Simulation) -> Sampling:
    """Record what checks look at: every step of the scene's size up to its duration, whatever else is recorded.

    Where a signal needs a trial of the next step, which costs more than a step, it is one in TRIAL_STRIDE steps.
    """
    known, dt, names = sim.signals(), sim.config.dt, scene.signals()
    stride = TRIAL_STRIDE if any(known[name].forward for name in names) else 1
    every, last = max(1.0, stride * scene.config.dt / dt), round(scene.duration / dt)
    return Sampling(Recorder(sim, names, capacity=int(last / every) + 2), every, last)


def find(
    options: RunOptions, scene: Scene, outcome: Outcome, checked: Sampling | None, against: list[str]
) -> Found | None:
    """What the scene's checks say of a run; None for a scene that has none.

    Args:
        options: the command line.
        scene: what was run.
        outcome: how it ended.
        checked: the samples of :func:`sampling`; None if the checks are not looked at.
        against: reasons not to look at the checks.
    """
    if not scene.checks:
        return None
    if not against and outcome.cut_short:
        against = [f"the run ended at {outcome.simulated:g} s"]
    if against:
        return Found(f"not run: {'; '.join(against)}")
    changed = bool(options.config_changes())
    broken, left_out = _broken(scene, checked, changed) if checked is not None else ([], [])
    others = " (some are made for settings near the scene's own)" if changed else ""
    verdict = f"not met: {'; '.join(broken)}{others}" if broken else "all met"
    # With other solver settings, a check that is not met is printed, and is no failure.
    failed = f"checks {verdict}" if broken and not changed else ""
    return Found("\n".join(([verdict] if len(left_out) < len(scene.checks) else []) + left_out), failed)


def _broken(scene: Scene, checked: Sampling, changed: bool) -> tuple[list[str], list[str]]:
    """Return statements that a recording does not meet, and lines about those that it has too few samples for.

    The latter are allowed under other settings alone: steps of 0.1 s leave a check on a tenth of a second no sample.
    """
    assert isinstance(checked.sampler, Recorder)
    recording = checked.sampler.recording()
    samples = {"time": recording.time, **recording.signals}
    broken, unclear = [], []
    for check in scene.checks:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore" if changed else "default", RuntimeWarning)
                if not check.passes(samples):
                    broken.append(check.statement)
        except (ArithmeticError, LookupError, ValueError):  # LinAlgError is a ValueError
            if not changed:
                raise
            unclear.append(f"not checked: {check.statement}, as {len(recording)} samples are too few for it")
    return broken, unclear
