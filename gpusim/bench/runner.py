"""Run a benchmark case: warm up, then time chunks of steps until enough time has passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.backends.native.backend import NativeBackend
from gpusim.bench import phases, piles, signals
from gpusim.bench.drive import command, run_driven, synchronize
from gpusim.bench.workloads import Case
from gpusim.errors import GpusimError

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation

Clock = Callable[[], float]
WALL: Clock = time.perf_counter
MIN_CHUNKS = 5
CHUNK_FRACTION = 0.1
WARMUP_FRACTION = 0.2


@dataclass(frozen=True)
class Options:
    """Options of the benchmarks.

    Attributes:
        backend: see ``Simulation``.
        dtype: see ``Simulation``.
        threads: number of threads of the native backend, or None for all threads.
        quick: whether to make short, less precise runs with fewer worlds.
        profile: whether to also profile the step. On the native backend, piles are always profiled.
    """

    backend: str = "auto"
    dtype: str = "float32"
    threads: int | None = None
    quick: bool = False
    profile: bool = False

    @property
    def seconds(self) -> float:
        """Measuring time (s)."""
        return 0.1 if self.quick else 0.5


@dataclass
class Record:
    """Results of one benchmark case. The time of a step is the time for one step of all worlds.

    Attributes:
        workload, case, worlds: the case that ran.
        backend, dtype, solver, launch, threads: settings of the run. ``threads`` is 0 for a backend without threads.
        start: time (s) to compile the kernels, build the simulation and run the first step.
        steps, chunks: number of timed steps and chunks.
        step_us: median time of a step over all chunks (microseconds).
        spread: interquartile range of the step times of the chunks, divided by the median.
        world_steps: world-steps per second, from the median step time.
        error: reason why the case has no results.
        extra: additional results of this workload, by name.
        stages, kernels: time of a step by stage and by kernel (microseconds), see ``phases.profile``. Without a
            profile, the dicts are empty.
        profiled: launch mode of the profiled run, or the reason why a requested profile is missing.
    """

    workload: str
    case: str
    worlds: int
    backend: str = ""
    dtype: str = ""
    solver: str = ""
    launch: str = ""
    threads: int = 0
    start: float = 0.0
    steps: int = 0
    chunks: int = 0
    step_us: float = 0.0
    spread: float = 0.0
    world_steps: float = 0.0
    error: str = ""
    extra: dict[str, float] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    kernels: dict[str, float] = field(default_factory=dict)
    profiled: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return asdict(self)


def run_cases(
    cases: list[Case],
    options: Options,
    log: Callable[[str], None],
    enough: Callable[[], bool] | None = None,
    done: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Run cases one after another. The record of a failed case contains the reason.

    Args:
        cases: cases to run.
        options: settings of the benchmarks.
        enough: function to call before each case. The run ends if it returns True.
        done: function to call with the record of each case when the case ends.
    """
    from gpusim.backends import choose_backend

    backend = choose_backend(options.backend)[0]
    models: dict[Any, Model] = {}
    records = []
    for case in cases:
        if case.backend not in ("", backend) or (case.workload == "rows" and backend == "cuda"):
            continue
        if enough and enough():
            break
        log(f"{case.workload}: {case.name}, {case.worlds} world{'s' if case.worlds > 1 else ''}")
        record = Record(case.workload, case.name, case.worlds)
        records.append(record)
        try:
            if case.build not in models:
                models = {case.build: case.build().finalize()}  # one model only, to save memory
            run_case(case, models[case.build], backend, options, record)
        except Exception as error:  # includes CuPy's errors: after a failed case, the other cases must still run
            record.error = f"{type(error).__name__}: {error}"
        if done is not None:
            done(record)
    add_row_time(records)
    return records


def run_case(case: Case, model: Model, backend: str, options: Options, record: Record) -> None:
    """Time one case and fill ``record``."""
    begin = time.perf_counter()
    sim = make_simulation(case, model, backend, options)
    sim.step(1)
    synchronize(sim)
    record.start = time.perf_counter() - begin
    record.backend, record.dtype, record.solver = backend, sim.dtype, sim.config.joint_solver
    if backend != "numpy":
        record.launch = sim.backend.launch  # type: ignore[attr-defined]
    record.threads = int(getattr(sim.backend, "threads", 0) or 0)
    run_driven(sim, case.settle, case.hold)
    times = measure(sim, case, options.seconds, record)
    low, median, high = np.percentile(times, (25.0, 50.0, 75.0))
    record.chunks = len(times)
    record.step_us = 1e6 * float(median)
    record.spread = float((high - low) / median)
    record.world_steps = case.worlds / float(median)
    sick = int(np.count_nonzero(~np.asarray(sim.health())))
    if sick:
        raise GpusimError(f"{sick} of {case.worlds} worlds failed while timed: {sim.health_report()[:200]}")
    if case.workload == "rows":
        record.extra = {"rows": float(locked_rows(model)), "sweeps": float(sim.config.iterations)}
    if case.workload == "signals":
        record.extra = signals.figures(sim, record.step_us)
    if case.pile:
        _add_pile_figures(sim, record)
    if options.profile and not record.stages:
        _profile(sim, case, record)


def _profile(sim: Simulation, case: Case, record: Record) -> None:
    """Profile a case."""
    if case.restart:
        sim.reset()
        command(sim, 0)
    try:
        # vectorized worlds have no separate clocks
        timed = phases.twin_of(sim, "fused") if record.launch == "simd" else sim
        record.stages, record.kernels = phases.profile(timed)
        record.profiled = getattr(timed.backend, "launch", "")
    except (GpusimError, MemoryError, RuntimeError) as error:
        record.profiled = f"not profiled: {error}"


def _add_pile_figures(sim: Simulation, record: Record) -> None:
    record.extra = piles.figures(sim, record.step_us)
    if isinstance(sim.backend, NativeBackend):
        timed = sim if sim.backend.staged else phases.twin_of(sim, "staged")
        record.stages, record.kernels = phases.profile(timed)
        record.profiled = "staged"


def make_simulation(case: Case, model: Model, backend: str, options: Options, **changes: Any) -> Simulation:
    """Return the simulation of a case. ``changes`` override arguments of ``Simulation``."""
    from gpusim.description.config import SolverConfig
    from gpusim.simulation import Simulation

    arguments: dict[str, Any] = {
        "num_worlds": case.worlds,
        "backend": backend,
        "dtype": case.dtype or options.dtype,
        "config": SolverConfig(**case.config),
        "launch": case.launch,
        "threads": case.threads if case.keep_threads else options.threads,
    }
    return Simulation(model, **(arguments | changes))


def measure(sim: Simulation, case: Case, seconds: float, record: Record) -> list[float]:
    """Return the time per step (s) of each chunk of steps.

    Commands change between chunks, so machines always move.
    """
    advance = step_by_step if case.each_step else in_one_call
    clock = clock_of(case, sim.backend_name)
    steps = 1
    warm_until = time.perf_counter() + WARMUP_FRACTION * seconds
    begun, max_steps = Start(sim, case.restart), case.restart or case.hold
    while True:  # warm up, and find how many steps fill a chunk
        begun.prepare(steps)
        command(sim, 0, case.hold > 0)
        spent = timed(sim, advance, steps, clock)
        full = spent >= CHUNK_FRACTION * seconds or steps == max_steps
        if full and time.perf_counter() >= warm_until:
            break
        if not full:
            steps = max(steps + 1, min(8 * steps, int(1.2 * CHUNK_FRACTION * seconds * steps / max(spent, 1e-9))))
            steps = min(steps, max_steps or steps)
    times: list[float] = []
    total = 0.0
    while total < seconds or len(times) < MIN_CHUNKS:
        begun.prepare(steps)
        command(sim, len(times) + 1, case.hold > 0)
        spent = timed(sim, advance, steps, clock)
        total += spent
        times.append(spent / steps)
    record.steps = steps * len(times)
    return times


class Start:
    """Periodic reset of a simulation to the initial state. The measured time excludes the resets.

    Args:
        sim: new simulation.
        after: number of steps between resets, or 0 for no reset.
    """

    def __init__(self, sim: Simulation, after: int) -> None:
        self.sim, self.after, self.done = sim, after, after

    def prepare(self, steps: int) -> None:
        """Reset the simulation if ``steps`` more steps would exceed the interval between resets."""
        if self.after and self.done + steps > self.after:
            self.sim.reset()
            self.done = 0
        self.done += steps


def timed(sim: Simulation, advance: Callable[[Simulation, int], None], steps: int, clock: Clock = WALL) -> float:
    """Return the time that ``steps`` steps take (s)."""
    synchronize(sim)
    begin = clock()
    advance(sim, steps)
    synchronize(sim)
    return clock() - begin


def clock_of(case: Case, backend: str) -> Clock:
    """Return the clock for a case.

    The clock measures the CPU time of the process for piles on one CPU thread, and wall time for all other cases.
    """
    return time.process_time if case.pile and case.threads == 1 and backend != "cuda" else WALL


def in_one_call(sim: Simulation, steps: int) -> None:
    """Run all steps in one call."""
    sim.step(steps)


def step_by_step(sim: Simulation, steps: int) -> None:
    """Call ``step`` for each step, like a control loop."""
    for _ in range(steps):
        sim.step(1)


def locked_rows(model: Model) -> int:
    """Return the number of constraint rows that the model uses."""
    return int(np.count_nonzero(model.topology.row_used))


def add_row_time(records: list[Record]) -> None:
    """Add the time per constraint row and solver sweep to the results of the workload "rows"."""
    runs = [r for r in records if r.workload == "rows" and not r.error]
    if len(runs) < 2:
        return
    few, many = runs[0], runs[-1]
    sweeps = many.extra["sweeps"] - few.extra["sweeps"]
    for record in (few, many):
        record.extra["ns_per_row_sweep"] = 1e3 * (many.step_us - few.step_us) / (few.extra["rows"] * sweeps)
