"""Estimates of a step's time on a GPU that is not available, from operation counts.

A build of the kernels in which numbers count (:mod:`ci.estimate.counted`) counts the float operations of the busiest
thread of a world, summed over the phases (its critical path), and the phases. The number of threads per world and of
concurrent worlds comes from the function that the backend uses (:func:`gpusim.backends.cuda.device.launch_shape`).
These give three bounds, for a multiprocessor and a world-step:

- issue: warps x critical path x INSTRUCTIONS over the issue rate of its four schedulers;
- latency: critical path x INSTRUCTIONS x CYCLES, and PHASE_CYCLES for each phase, over the number of concurrent worlds;
- memory: the part of the slab that a step touches (:func:`touched_bytes`), in and out once over the bandwidth, unless
  the concurrent worlds have it in shared memory or completely in the L2 cache. Repeated reads of phases count once, as
  if caches held them; real caches hold less.

The estimate is the maximum. One big world, staged, takes its bytes over the bandwidth, and LAUNCH_US for each launch.
INSTRUCTIONS is from the machine code, 21 % of which are float operations. The cycles are guesses from the depths of
pipelines and caches, so the sum is good to a factor of two until measured on a card.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ci.estimate.counted import WIDTHS, Operations
from ci.estimate.counts import count_operations, moved_bytes
from gpusim.backends.cuda.device import Gpu, LaunchShape, launch_shape
from gpusim.backends.kernel_backend import use_staged
from gpusim.backends.native.backend import SPOILED
from gpusim.bench.drive import run_driven
from gpusim.bench.runner import make_simulation
from gpusim.errors import unknown_name
from gpusim.solver.launch_plan import Launch, LaunchPlan, Plan, Repeat, launched_levels

if TYPE_CHECKING:
    from gpusim.bench.runner import Options, Record
    from gpusim.bench.workloads import Case
    from gpusim.simulation import Simulation

INSTRUCTIONS = 4.8
"""Instructions of a warp per float operation of its busiest thread."""
SCHEDULERS = 4
ISSUE_SHARE = 0.6
"""Share of cycles in which a scheduler with enough warps issues an instruction."""
SHARED_CYCLES, GLOBAL_CYCLES = 6.0, 9.0
"""Cycles from an instruction of a world to its next one, with its work in shared memory, or in caches."""
PHASE_CYCLES = 60.0
"""Cycles of a tile's barrier and the start of a phase: sizes, tables."""
RESERVED = 1024
"""Bytes of shared memory that each block reserves."""
SECTOR = 32
"""Bytes of a GPU memory transaction."""
LAUNCH_US = 3.0
"""Time per kernel of a CUDA graph, with its start and end, us."""
BANDWIDTH_SHARE = 0.6
"""Share of the data sheet's bandwidth that kernels with indexed reads reach."""
WAIT_US, WAITS = 1.5, {"color_in_turns": 48, "search_joined": 8}
"""Time of a wait between tickets, us, and the approximate number of consecutive waits: coloring rounds, phases."""
USED_LISTS = 12
"""Approximate number of contact colors of a pile, which follow each other in a sweep."""
LEFT = ("ESTIMATE", "work in")
"""Columns of text of the table."""
DROPPED_FIRST = (
    "at 32 lanes", "slab kB", "touched kB", "phases", "warp ops", "issue ns", "latency ns", "memory ns", "work in",
)  # fmt: skip
"""Columns that are dropped in a narrow window, in this order."""


@dataclass(frozen=True)
class Card:
    """Card data of the estimate: resources, clock (1/s), memory bandwidth (bytes/s), and L2 cache (bytes)."""

    name: str
    gpu: Gpu
    clock: float
    bandwidth: float
    cache: int = 50 << 20


CARDS = {
    "h100": Card("H100", Gpu(132, 228 * 1024, 227 * 1024, 80 << 30), 1.75e9, 3.35e12),
    "h200": Card("H200", Gpu(132, 228 * 1024, 227 * 1024, 141 << 30), 1.75e9, 4.8e12),
}
"""Cards by name. Sizes from NVIDIA's data sheets, the clock as sustained under load."""


@dataclass(frozen=True)
class Estimate:
    """Estimate of one case.

    Attributes:
        shape: launch shape of the worlds.
        slab: bytes of a world's work.
        touched: bytes of it that a step touches.
        warp_operations: critical path x warps of a world, the cost of a fused launch with a warp or less.
        block_operations: the same for 32 threads.
        phases: phases of a step.
        resident: concurrent worlds per multiprocessor.
        issue_ns, latency_ns, memory_ns: minimum time of a world-step by each bound, ns, on the whole card.
    """

    shape: LaunchShape
    slab: int
    touched: int
    warp_operations: float
    block_operations: float
    phases: float
    resident: float
    issue_ns: float
    latency_ns: float
    memory_ns: float

    @property
    def ns(self) -> float:
        """Time of a world-step, ns."""
        return max(self.issue_ns, self.latency_ns, self.memory_ns)


@dataclass(frozen=True)
class StagedEstimate:
    """Estimate of one big world: bytes of its work, launches, waits, bytes moved per step, and time per step, us."""

    slab: int
    launches: int
    waits: int
    bytes: float
    us: float


def find_card(name: str) -> Card:
    """Return a card by name.

    Raises:
        UnknownNameError: there is no such card.
    """
    if name.lower() not in CARDS:
        raise unknown_name("card", name, CARDS)
    return CARDS[name.lower()]


def estimate(
    operations: Operations, sizes: dict[str, int], slab: int, worlds: int, card: Card, touched: int | None = None
) -> Estimate:
    """Estimate a step from counts.

    Args:
        operations: of one world's step, with its critical paths.
        sizes: of the model, as backends use them.
        slab: bytes of a world's work.
        worlds: number of worlds.
        card: the machine.
        touched: bytes of that work that a step touches; default: all.
    """
    gpu, touched = card.gpu, slab if touched is None else touched
    shape = launch_shape(sizes, slab, worlds, gpu)
    path = operations.critical[WIDTHS.index(shape.lanes)]
    warps = max(shape.lanes / 32.0, 1.0 / 32.0)
    blocks = gpu.shared // (shape.shared + RESERVED)
    side_by_side = blocks * shape.worlds if shape.shared else shape.tiles / gpu.processors
    resident = max(min(side_by_side, worlds / gpu.processors, 2048 / shape.lanes), 1.0 / gpu.processors)
    instructions = path * INSTRUCTIONS
    issue = warps * instructions / (SCHEDULERS * ISSUE_SHARE)
    cycles = SHARED_CYCLES if shape.shared else GLOBAL_CYCLES
    latency = (instructions * cycles + operations.phases * PHASE_CYCLES) / resident
    to_ns = 1e9 / (card.clock * gpu.processors)
    far = not shape.shared and resident * gpu.processors * touched > card.cache
    return Estimate(
        shape, slab, touched, warps * path, operations.critical[WIDTHS.index(32)], operations.phases, resident,
        issue * to_ns, latency * to_ns, 1e9 * 2.0 * touched / (card.bandwidth * BANDWIDTH_SHARE) if far else 0.0,
    )  # fmt: skip


def touched_bytes(sim: Simulation) -> int:
    """Return the bytes of the slab, in memory sectors, that a step of one world touches.

    Args:
        sim: one world, fused on the native backend, with one thread; it advances by one step.
    """
    backend: Any = sim.backend
    slab = backend.spoil_slab()
    sim.step()
    sectors = slab[: slab.size // SECTOR * SECTOR].reshape(-1, SECTOR)
    return SECTOR * int((sectors != SPOILED).any(axis=1).sum())


def estimate_staged(sim: Simulation, card: Card) -> StagedEstimate:
    """Estimate the step of one big world from launches and bytes (:mod:`ci.estimate.counts`).

    Args:
        sim: one world, staged on the native backend.
        card: the machine.
    """
    backend: Any = sim.backend
    sizes = backend.plan.sizes
    plan = LaunchPlan(sizes | {"incident_places": sizes["bodies"] + 1 if sizes["pairs"] else 0})
    launches = [*_launches(plan.begin), *sim.config.substeps * list(_launches(plan.substep)), *_launches(plan.end)]
    waits = sum(WAITS.get(launch.phase, USED_LISTS) for launch in launches if launch.turns)
    moved = moved_bytes(sim, backend.layout)
    us = 1e6 * moved / (card.bandwidth * BANDWIDTH_SHARE) + LAUNCH_US * len(launches) + WAIT_US * waits
    return StagedEstimate(backend.layout.size, len(launches), waits, moved, us)


def _launches(plan: Plan) -> Iterator[Launch]:
    """Yield the launches of a plan, with loops run once."""
    for part in plan:
        yield from _launches(part.body) if isinstance(part, Repeat) else part


_Counts = tuple["Operations | None", dict[str, int], int, int]
"""Operations of a world's step, sizes, bytes of its work, and the touched bytes."""


class Estimator:
    """Estimator of cases for a card, which counts the worlds of each model once.

    Args:
        options: number type.
        card: the machine.
    """

    def __init__(self, options: Options, card: Card) -> None:
        self.options, self.card = options, card
        self._counted: dict[Any, _Counts | StagedEstimate] = {}

    def of(self, case: Case) -> Estimate | StagedEstimate | None:
        """Return the estimate of a case, or None if its operations can't be counted.

        Raises:
            ModelError: there is no C++ compiler.
        """
        drive = case.settle, case.restart, case.hold
        key = case.build, case.dtype, case.launch, drive, tuple(sorted(case.config.items()))
        if key not in self._counted:
            self._counted[key] = self._count(case)
        found = self._counted[key]
        if isinstance(found, StagedEstimate):
            return found
        operations, sizes, slab, touched = found
        return None if operations is None else estimate(operations, sizes, slab, case.worlds, self.card, touched)

    def _count(self, case: Case) -> _Counts | StagedEstimate:
        """Count operations of a world's step, sizes, and bytes of its work. Estimate a big world directly."""
        model = case.build().finalize()
        sim = make_simulation(case, model, "native", self.options, num_worlds=1, launch="fused")
        backend: Any = sim.backend
        if use_staged(case.launch, backend.layout.size, launched_levels(backend.sizes, backend.direct)):
            staged = make_simulation(case, model, "native", self.options, num_worlds=1, launch="staged")
            return estimate_staged(staged, self.card)
        run_driven(sim, case.settle or case.restart, case.hold)
        return count_operations(case, model, sim), backend.sizes, backend.layout.size, touched_bytes(sim)


def with_measured(records: Iterable[Record], cases: Iterable[Case], estimator: Estimator) -> Iterator[tuple[str, ...]]:
    """Yield table rows, the head first: measured and estimated times of a world-step, ns, and their ratio.

    Args:
        records: measured on the card; those with an error are left out.
        cases: by their workload, name, worlds and number type.
        estimator: with the options of the measurement.
    """
    yield ("case", "worlds", "measured ns", "ESTIMATE ns", "measured / estimate")
    known = {(case.workload, case.name, case.worlds, case.dtype or estimator.options.dtype): case for case in cases}
    for record in records:
        case = known.get((record.workload, record.case, record.worlds, record.dtype))
        found = None if case is None or record.error else estimator.of(case)
        if found is None:
            continue
        ns, measured = 1e3 * found.us if isinstance(found, StagedEstimate) else found.ns, 1e9 / record.world_steps
        yield (record.case, str(record.worlds), f"{measured:.1f}", f"{ns:.1f}", f"{measured / ns:.2f}")


def table(card: Card, found: Iterable[tuple[Case, Estimate | StagedEstimate | None]]) -> Iterator[tuple[str, ...]]:
    """Yield table rows, the head first. "warp ops" are of a step of one world, times of a world-step."""
    yield (
        "ESTIMATE", "worlds", "lanes", "slab kB", "touched kB", "work in", "phases", "warp ops", "at 32 lanes",
        "issue ns", "latency ns", "memory ns", "ns", "M/s",
    )  # fmt: skip
    for case, own in found:
        name = f"{card.name}: {case.name}"
        if own is None:
            yield (name, str(case.worlds), *["-"] * 12)
        elif isinstance(own, StagedEstimate):
            what = f"{own.launches} launches, {own.bytes / 1e9:.2f} GB"
            yield (
                name,
                "1",
                "staged",
                f"{own.slab / 1e3:.0f}",
                "-",
                what,
                *["-"] * 6,
                f"{1e3 * own.us:.0f}",
                f"{1 / own.us:.6f}",
            )
        else:
            shape = own.shape
            where = "shared memory" if shape.shared else "caches"
            counts = f"{own.phases:.0f}", f"{own.warp_operations:.0f}", f"{own.block_operations:.0f}"
            bytes_of = f"{own.slab / 1e3:.1f}", f"{own.touched / 1e3:.1f}"
            times = (f"{x:.1f}" for x in (own.issue_ns, own.latency_ns, own.memory_ns, own.ns, 1e3 / own.ns))
            yield (name, str(case.worlds), str(shape.lanes), *bytes_of, where, *counts, *times)
