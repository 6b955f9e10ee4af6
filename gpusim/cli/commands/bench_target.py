"""``gpusim bench TARGET``: measure how fast a scene or a file runs on this computer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from gpusim.bench.workloads import WORKLOADS
from gpusim.cli.commands.run import check_backend
from gpusim.cli.console import notes_instead_of_warnings, out_console
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.cli.target_files import kind_of
from gpusim.cli.targets import load_target
from gpusim.errors import SimulationError
from gpusim.scene import scene_modules

_SECONDS, _QUICK_SECONDS = 2.0, 0.3
"""Wall times (s) of a full measurement and of a quick measurement."""
_WARM_UP = 20
_CHUNK = 20
"""Number of steps between two checks of the clock."""
NUM_WORLDS = (1, 16)


_PROFILED = 50
"""Number of steps that a profile measures."""
_CHEAPER = {
    "broad_phase": "fewer shapes, or collision groups for shapes that never touch",
    "narrow_phase": "boxes, spheres and capsules instead of meshes and hulls",
    "color_contacts": "fewer contacts: one box instead of many small shapes",
    "prepare": "fixed joints merged into one body",
    "actuate": "fewer actuators, or hydraulic circuits with fewer nodes",
    "solve": "fewer contacts on jointed bodies, and fewer joints on one body",
    "relax": "restitution = 0 for bodies that need not bounce",
    "positions": "fewer loops of joints",
}
"""Advice on how to shorten a stage of the step, such as ``solve``. Keys are names of stages."""
_LARGE = 0.1
"""The profile shows advice for stages that take at least this fraction of the step time."""


def is_target(names: Sequence[str]) -> bool:
    """Return True if the argument of ``gpusim bench`` is a scene or a file, and False for workloads.

    Raises:
        OptionError: a scene or a file is not the only argument.
    """
    names = list(dict.fromkeys(names))
    targets = [n for n in names if n not in WORKLOADS and (kind_of(n) is not None or n in scene_modules())]
    if targets and len(names) > 1:
        raise OptionError(f"bench measures one scene or file, got {', '.join(names)}; give {targets[0]} alone")
    return bool(targets)


def bench_target(target: str, backend: str, dtype: str, threads: int | None, quick: bool, profile: bool) -> None:
    """Measure the time per step of a scene or a file, and print a table.

    With ``profile``, also print a table of the stages of a step.

    Raises:
        GpusimError: the input is invalid, or a world failed during the measurement.
    """
    options = RunOptions(target, backend=backend, dtype=dtype)
    check(options)
    check_backend(options)
    scene = load_target(options, visuals=False)
    model = scene.builder.finalize()
    table = Table(
        title=f"{scene.name}: {len(model.bodies)} bodies, steps of {scene.config.dt:g} s", title_justify="left"
    )
    for name in ("worlds", "backend", "us per step", "us per step and world", "times real time"):
        table.add_column(name, justify="left" if name == "backend" else "right")
    for worlds in NUM_WORLDS:
        sim = _simulation(model, worlds, options, scene.config, threads)
        seconds = _step_time(sim, scene.schedule, _QUICK_SECONDS if quick else _SECONDS)
        cells = (f"{1e6 * seconds:.4g}", f"{1e6 * seconds / worlds:.4g}", f"{worlds * scene.config.dt / seconds:.4g}")
        table.add_row(str(worlds), sim.backend.name, *cells)
    out_console().print(table)
    if profile:
        sim = _simulation(model, 1, options, scene.config, 1, "fused")
        _step_time(sim, scene.schedule, _QUICK_SECONDS)
        out_console().print(_profile(sim))


def _profile(sim: Any) -> Table:
    """Measure the time of each stage of a step, such as ``solve``, and return a table."""
    from gpusim.bench.phases import profile

    with notes_instead_of_warnings():
        stages, _ = profile(sim, _PROFILED)
    whole = sum(stages.values())
    table = Table(title="time of one world by stage", title_justify="left")
    for name in ("stage", "us", "share", "how to reduce it"):
        table.add_column(name, justify="left" if name in ("stage", "how to reduce it") else "right")
    for stage, time_us in sorted(stages.items(), key=lambda item: -item[1]):
        fraction = time_us / whole
        if fraction >= 0.005:
            advice = _CHEAPER.get(stage, "") if fraction >= _LARGE else ""
            table.add_row(stage.replace("_", " "), f"{time_us:.3g}", f"{fraction:.0%}", advice)
    return table


def _simulation(
    model: Any, worlds: int, options: RunOptions, config: Any, threads: int | None, launch: str = "auto"
) -> Any:
    with notes_instead_of_warnings():
        from gpusim.simulation import Simulation

        given: dict[str, Any] = {"launch": launch} | ({} if threads is None else {"threads": threads})
        return Simulation(model, worlds, options.backend, options.dtype, config, **given)


def _step_time(sim: Any, schedule: Any, wall: float) -> float:
    """Warm up, run steps for ``wall`` seconds, and return the mean time of a step (s)."""
    steps, start, end = 0, 0.0, float("inf")
    with notes_instead_of_warnings():
        while time.perf_counter() < end:
            if schedule is not None:
                schedule(sim, sim.time)
            sim.step(_CHUNK)
            steps += _CHUNK
            if steps == _WARM_UP:
                start = time.perf_counter()
                end = start + wall
    if not sim.health().all():
        raise SimulationError(f"a world failed during the measurement: {sim.health_report().splitlines()[0]}")
    return (time.perf_counter() - start) / (steps - _WARM_UP)
