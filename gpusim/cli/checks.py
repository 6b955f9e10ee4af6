"""What ``gpusim run`` finds of a scene's checks, and why it does not look at them."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.cli.loop import Outcome
from gpusim.cli.options import RunOptions
from gpusim.recording.recorder import Recorder
from gpusim.scene import Scene

CHECK_STRIDE = 10
"""Steps from sample to sample that checks look at, at least."""


@dataclass(frozen=True)
class Found:
    """What a run tells of checks: the text of the table, and the sentence on a scene as shipped that does not meet them
    ("" where it does)."""

    told: str
    broken: str = ""


def reasons_against(options: RunOptions, scene: Scene, steps: int, dt: float) -> list[str]:
    """Why a run of so many steps (of ``dt`` s) can't tell of the scene's checks; nothing where it can.

    They are made for one world that runs for the scene's duration under the scene's commands, with all its signals.
    """
    found = []
    if options.replay is not None:
        found.append("--replay commands the scene otherwise than its schedule")
    elif steps < round(scene.duration / dt):
        found.append(f"--duration {options.duration:g} ends before the scene's {scene.duration:g} s")
    if options.num_worlds > 1:
        found.append(f"they look at one world, and --num-worlds is {options.num_worlds}")
    if options.signals is not None:
        found.append("they need the scene's signals, and --signals records others")
    return found


def find(
    options: RunOptions, scene: Scene, outcome: Outcome, recorder: Recorder | None, every: int, against: list[str]
) -> Found | None:
    """What the scene's checks say of a run; None for a scene that has none.

    Args:
        options: the command line.
        scene: what was run.
        outcome: how it ended.
        recorder: has the scene's signals; None where nobody wanted them.
        every: steps from one of its samples to the next.
        against: reasons not to look at the checks.
    """
    if not scene.checks and not scene.unchecked:
        return None
    if not against and outcome.cut_short:
        against = [f"the run ended at {outcome.simulated:g} s"]
    if against:
        return Found(f"not run: {'; '.join(against)}")
    broken = "; ".join(_broken(scene, outcome, recorder, every)) if recorder is not None else ""
    changed = bool(options.settings or options.config_changes())
    others = " (some are made for settings near the scene's own)" if changed else ""
    verdict = f"not met: {broken}{others}" if broken else "all met"
    left_out = [f"not checked: {left.statement}, as {left.reason}" for left in scene.unchecked]
    # Under other settings a statement may ask for more than there is: it is told, and is no failure.
    failed = f"checks {verdict}" if broken and not changed else ""
    return Found("\n".join(([verdict] if scene.checks else []) + left_out), failed)


def _broken(scene: Scene, outcome: Outcome, recorder: Recorder, every: int) -> list[str]:
    """Statements that a recording does not meet, up to the scene's duration: a run may go on for longer."""
    recording, stride = recorder.recording(), max(1, CHECK_STRIDE // every)
    dt = outcome.simulated / outcome.steps
    until = (round(scene.duration / dt) + 0.5) * dt
    time = recording.time[::stride]
    samples = {"time": time, **{name: values[::stride] for name, values in recording.signals.items()}}
    count = int((time <= until).sum())
    samples = {name: values[:count] for name, values in samples.items()}
    return [check.statement for check in scene.checks if not check.passes(samples)]
