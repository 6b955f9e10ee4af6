"""The summary table of ``gpusim run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text

from gpusim.cli.console import out_console

if TYPE_CHECKING:
    from gpusim.cli.loop import Outcome
    from gpusim.scene import Scene
    from gpusim.simulation import Simulation

DRIFT_TOO_FAR = 0.01
"""A run with a joint gap above this limit (m) has failed."""
TILT_TOO_FAR = 0.02
"""A run has failed if the error of a locked rotation exceeds this limit (rad), about 1 degree."""


def show_summary(
    scene: Scene, sim: Simulation, outcome: Outcome, files: Sequence[str], values: Mapping[str, np.ndarray],
    checks: str | None = None,
) -> None:  # fmt: skip
    """Print the summary of a run.

    Args:
        scene: the scene that was run.
        sim: the simulation after the run.
        outcome: times, energies and joint errors of the run.
        files: the files that were written.
        values: last value of each ``--signals`` signal in world 0.
        checks: result of the scene's checks, or None to omit the row.
    """
    table = Table(title=Text(scene.name), show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in _rows(sim, outcome):
        table.add_row(name, Text(text))
    if checks is not None:
        table.add_row("checks", Text(checks))
    signals = sim.signals()
    for name, value in values.items():
        table.add_row(Text(name), Text(f"{_number(value)} {signals[name].unit}"))
    for file in files:
        table.add_row("written", Text(file, overflow="fold"))
    out_console().print(table)


def _rows(sim: Simulation, outcome: Outcome) -> list[tuple[str, str]]:
    world = " (world 0)" if sim.num_worlds > 1 else ""
    simulated, stepping = outcome.simulated - outcome.begun, outcome.wall - outcome.reading
    reading = f", {outcome.reading:.3g} s of it for reading signals" if outcome.reading > 0.1 * outcome.wall else ""
    rows = [
        ("simulated time", f"{simulated:.6g} s in {outcome.steps} steps"),
        ("wall time", f"{outcome.wall:.3g} s{reading}"),
        ("real-time factor", f"{simulated / stepping:.3g}" if stepping > 0.0 else "-"),
    ]
    if sim.num_worlds > 1 and stepping > 0.0:
        rows.append(("world-steps per second", f"{sim.num_worlds * outcome.steps / stepping:.3g}"))
    rows += [
        ("energy at start" + world, f"{outcome.energy_start:.6g} J"),
        ("energy at end" + world, f"{outcome.energy_end:.6g} J"),
        ("greatest joint drift", f"{outcome.drift:.3g} m, {outcome.tilt:.3g} rad"),
    ]
    if sim.runtime.capacity.max_pairs:
        rows.append(("close pairs of shapes", _pairs(sim)))
    return [*rows, ("health", _health(sim, outcome))]


def _pairs(sim: Simulation) -> str:
    peak = int(np.max(sim.read("sim.pair_peak", numpy=True)))
    return f"at most {peak}, capacity {sim.runtime.capacity.max_pairs}"


def joint_failure(drift: float, tilt: float) -> str:
    """Return an error message if ``drift`` (m) or ``tilt`` (rad) is too large. Otherwise, return an empty string."""
    if not drift <= DRIFT_TOO_FAR:
        return f"joints came {drift:.3g} m apart; use a smaller step"
    return (
        ""
        if tilt <= TILT_TOO_FAR
        else f"a locked rotation of a joint has an error of {tilt:.3g} rad; use a smaller step"
    )


def _health(sim: Simulation, outcome: Outcome) -> str:
    """Describe the health of a run."""
    good, worlds = int(np.count_nonzero(sim.health())), sim.num_worlds
    if outcome.failure is not None or not good:
        return "failed"
    if good < worlds:
        return f"{good} of {worlds} worlds good"
    if wrong := joint_failure(outcome.drift, outcome.tilt):
        return f"bad: {wrong}"
    reported = [*sim.runtime.capacity.report(), *sim.runtime.accuracy.report()]
    if reported:
        return f"warned: {reported[0]}"
    return "good" if good == 1 else f"good in all {good} worlds"


def _number(value: np.ndarray) -> str:
    return " ".join(f"{x:.6g}" for x in np.ravel(value))
