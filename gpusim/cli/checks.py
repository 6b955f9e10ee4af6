"""Scene checks of ``gpusim run``."""

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
"""Number of steps between samples of signals that need an extra trial step for each reading."""


@dataclass(frozen=True)
class ChecksResult:
    """Result of a scene's checks.

    ``reported`` is the text for the summary table. ``broken`` is an error message, or empty if all checks pass.
    """

    reported: str
    broken: str = ""


def reasons_against(options: RunOptions, scene: Scene, steps: int, dt: float) -> list[str]:
    """Return the reasons why a run (``steps`` steps of ``dt`` s) cannot evaluate the scene's checks."""
    found = []
    if options.settings:
        found.append("they need the scene's default parameters, and --set changes them")
    if options.resume is not None:
        found.append("they need a run from the start, and --resume continues a run")
    elif options.replay is not None:
        found.append("they need the scene's schedule, and --replay replaces it")
    elif steps < scene.duration / dt - 0.5:
        found.append(f"--duration {options.duration:g} ends before the scene's {scene.duration:g} s")
    if options.num_worlds > 1:
        found.append(f"they need one world, and --num-worlds is {options.num_worlds}")
    if options.signals is not None:
        found.append("they need the scene's signals, and --signals records others")
    return found


def sampling(scene: Scene, sim: Simulation) -> Sampling:
    """Return the sampling schedule for the checks. The sampling interval is about one ``dt`` of the scene."""
    known, dt, names = sim.signals(), sim.config.dt, scene.signals()
    stride = TRIAL_STRIDE if any(known[name].forward for name in names) else 1
    every, last = max(1.0, stride * scene.config.dt / dt), round(scene.duration / dt)
    return Sampling(Recorder(sim, names, capacity=int(last / every) + 2), every, last)


def find(
    options: RunOptions, scene: Scene, outcome: Outcome, checked: Sampling | None, against: list[str]
) -> ChecksResult | None:
    """Evaluate the scene's checks on a finished run. If the scene has no checks, return None.

    Args:
        options: command-line options.
        scene: the scene that was run.
        outcome: outcome of the run.
        checked: samples that :func:`sampling` scheduled, or None to skip the checks.
        against: reasons to skip the checks.
    """
    if not scene.checks:
        return None
    if not against and outcome.ended_early:
        against = [f"the run ended at {outcome.simulated:g} s"]
    if against:
        return ChecksResult(f"not run: {'; '.join(against)}")
    changed = bool(options.config_changes())
    broken, left_out = _broken(scene, checked, changed) if checked is not None else ([], [])
    others = " (some checks need settings near the scene's defaults)" if changed else ""
    verdict = f"not met: {'; '.join(broken)}{others}" if broken else "all met"
    # With other solver settings, a failed check is printed but is not an error.
    failed = f"checks {verdict}" if broken and not changed else ""
    return ChecksResult("\n".join(([verdict] if len(left_out) < len(scene.checks) else []) + left_out), failed)


def _broken(scene: Scene, checked: Sampling, changed: bool) -> tuple[list[str], list[str]]:
    """Return messages about failed checks, and messages about checks that cannot be evaluated."""
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
            unclear.append(f"not checked: {check.statement}, because {len(recording)} samples are too few")
    return broken, unclear
