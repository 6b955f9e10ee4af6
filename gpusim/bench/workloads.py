"""Named workloads: models, numbers of worlds, and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gpusim.bench import humanoid, piles
from gpusim.bench.models import biped, joint_grid
from gpusim.errors import unknown_name
from gpusim.scene import list_scenes, load_scene

if TYPE_CHECKING:
    from gpusim.builder.builder import ModelBuilder

CHAIN = "chain of 10 joints"
BOOM = "boom with cylinder"
LIFT = "hydraulic lift"
BIPED = "standing biped"
HUMANOID_STANDING, HUMANOID_LYING, HUMANOID_MOVING = "humanoid standing", "humanoid lying", "humanoid moving"
WORLDS = (64, 1024, 8192)
GRID = 100
# 13 x 13 plates with 325 ball joints: 975 rows.
ROWS_GRID = 13
ROWS_SWEEPS = (8, 72)
# Columns along each side, layers, and whether every second object is a sphere.
PILES = {"pile_1000": (10, 10, False), "pile_8000": (20, 20, False), "pile_100000": (50, 40, True)}
QUICK_PILES = {"pile_1000": (4, 4, False), "pile_8000": (10, 10, False), "pile_100000": (20, 20, True)}
# Number type, substeps and sweeps. Larger piles take minutes to settle on a CPU, so they only have the first run.
PILE_RUNS = (("float32", 4, 1), ("float32", 4, 2), ("float32", 4, 4), ("float32", 2, 1), ("float64", 4, 2))
PAIRS_PER_OBJECT = 8


@dataclass(frozen=True)
class Case:
    """One case of a benchmark: a model and its settings.

    Attributes:
        workload: name of the workload that contains the case.
        name: description of the mechanism.
        build: function that returns the builder of the model.
        worlds: number of worlds.
        config: solver settings that differ from ``SolverConfig()``.
        launch: see ``Simulation``.
        threads: number of threads of the native backend, or None for all threads.
        each_step: whether to call ``step`` for each step, so that the time includes the overhead of Python.
        keep_threads: whether ``threads`` overrides the command line.
        backend: backend of the case, or empty for any backend.
        dtype: dtype of the case, or empty for the dtype of the command line.
        settle: number of steps before the timing, so that the bodies come to rest.
        restart: number of steps after which the case restarts, or 0 for no restart. The time excludes restarts.
        hold: maximum number of steps between random commands of the motors, or 0 for no commands.
        pile: whether the case is a pile. The results of piles include contacts and a profile.
    """

    workload: str
    name: str
    build: Callable[[], ModelBuilder]
    worlds: int = 1
    config: dict[str, Any] = field(default_factory=dict)
    launch: str = "auto"
    threads: int | None = None
    each_step: bool = False
    keep_threads: bool = False
    backend: str = ""
    dtype: str = ""
    settle: int = 0
    restart: int = 0
    hold: int = 0
    pile: bool = False


@dataclass(frozen=True)
class Workload:
    """Set of benchmark cases.

    Attributes:
        description: description in one line.
        cases: function ``cases(quick)`` that returns the cases. ``quick`` selects shorter cases.
        unasked: backend on which the workload runs if the user names no workload. Empty for any backend.
    """

    description: str
    cases: Callable[[bool], Iterator[Case]]
    unasked: str = ""


def scene_builder(name: str, **parameters: Any) -> ModelBuilder:
    """Return the builder of a scene."""
    return load_scene(name, **parameters).builder


MODELS: dict[str, Callable[[], Any]] = {
    LIFT: partial(scene_builder, "hydraulic_lift"),
    BOOM: partial(scene_builder, "boom_crane"),
    CHAIN: partial(scene_builder, "chain", links=10, mass_ratio=0.0),
    BIPED: biped,
}
LYING = partial(humanoid.humanoid, lying=True)


def _many_worlds(quick: bool) -> Iterator[Case]:
    for name, build in MODELS.items():
        for worlds in WORLDS[:2] if quick else WORLDS:
            yield Case("many_worlds", name, build, worlds)


def _humanoid(quick: bool) -> Iterator[Case]:
    config = {"dt": humanoid.DT}
    standing = partial(Case, "humanoid", build=humanoid.humanoid, config=config)
    lying = partial(Case, "humanoid", build=LYING, settle=200 if quick else humanoid.SETTLE)
    fallen = 200 if quick else humanoid.FALL
    for worlds in WORLDS[:2] if quick else WORLDS:
        yield standing(name=HUMANOID_STANDING, worlds=worlds, restart=humanoid.STANDING_STEPS)
        for case in (
            standing(name=HUMANOID_MOVING, settle=fallen, hold=humanoid.HOLD),
            lying(name=HUMANOID_LYING, config=config),
            lying(name=f"{HUMANOID_LYING}, colored", config=config | {"joint_solver": "colored"}),
        ):
            # 8192 worlds take minutes to settle on a CPU
            yield replace(case, worlds=worlds, backend="cuda" if worlds == WORLDS[-1] else "")


def _joint_grid(quick: bool) -> Iterator[Case]:
    size = GRID // 4 if quick else GRID
    case = partial(
        Case,
        "joint_grid",
        f"{size} x {size} plates",
        partial(joint_grid, size, size),
        config={"joint_solver": "colored"},
        launch="staged",
    )
    yield case(backend="cuda")
    yield case(backend="native", threads=1, keep_threads=True)
    yield case(backend="native")
    yield case(backend="numpy")


def _latency(quick: bool) -> Iterator[Case]:
    for name in list_scenes():
        yield Case("latency", name, partial(scene_builder, name), each_step=True)


def _signals(quick: bool) -> Iterator[Case]:
    yield Case("signals", "a biped of 27 bodies", biped, threads=1, keep_threads=True, dtype="float64", each_step=True)


def _rows(quick: bool) -> Iterator[Case]:
    for sweeps in ROWS_SWEEPS:
        config = {"joint_solver": "colored", "iterations": sweeps}
        build = partial(joint_grid, ROWS_GRID, ROWS_GRID)
        name = f"{ROWS_GRID} x {ROWS_GRID} plates, {sweeps} sweeps"
        yield Case("rows", name, build, 1, config, launch="fused", threads=1, keep_threads=True)


def _pile(workload: str, quick: bool) -> Iterator[Case]:
    columns, layers, spheres = (QUICK_PILES if quick else PILES)[workload]
    count = columns**2 * layers
    build = partial(piles.pile, columns, layers, spheres)
    things = "boxes and spheres" if spheres else "boxes"
    runs = PILE_RUNS if workload == "pile_1000" and not quick else PILE_RUNS[:1]
    for dtype, substeps, sweeps in runs:
        config = {
            "dt": piles.DT, "substeps": substeps, "iterations": sweeps, "joint_solver": "colored",
            "max_pairs": PAIRS_PER_OBJECT * count, "strict": True,
        }  # fmt: skip
        yield Case(
            workload, f"{count} {things}, {substeps} x {sweeps} sweeps", build, 1, config, threads=1,
            keep_threads=True, dtype=dtype, settle=60 if quick else piles.SETTLE, pile=True,
        )  # fmt: skip


WORKLOADS: dict[str, Workload] = {
    "many_worlds": Workload("64, 1024 and 8192 copies of a lift, a boom, a chain, a biped", _many_worlds),
    "humanoid": Workload("64, 1024 and 8192 of gymnasium's humanoids, standing, moving and lying", _humanoid),
    "joint_grid": Workload("a net of 100 x 100 plates, colored solver, staged launch", _joint_grid),
    "latency": Workload("one world of each scene, the call from Python included", _latency),
    "signals": Workload("reading, commanding and writing a biped, compared with its step", _signals),
    "rows": Workload("time of a row in a sweep of the colored solver, one thread", _rows),
    "pile_1000": Workload("a pile of 1000 boxes, settled, one thread", partial(_pile, "pile_1000")),
    "pile_8000": Workload("a pile of 8000 boxes, settled, one thread", partial(_pile, "pile_8000"), "cuda"),
    "pile_100000": Workload("a pile of boxes and spheres, for GPUs", partial(_pile, "pile_100000"), "cuda"),
}
"""Workloads by name."""


def chosen_cases(names: list[str], quick: bool) -> list[Case]:
    """Return the cases of the workloads ``names``. If ``names`` is empty, return the cases of all workloads.

    Raises:
        UnknownNameError: a workload does not exist.
    """
    for name in names:
        if name not in WORKLOADS:
            raise unknown_name("workload", name, WORKLOADS)
    if names:
        return [case for name in names for case in WORKLOADS[name].cases(quick)]
    return [
        replace(case, backend=case.backend or workload.unasked)
        for workload in WORKLOADS.values()
        for case in workload.cases(quick)
    ]
