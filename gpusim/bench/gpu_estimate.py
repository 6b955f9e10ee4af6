"""What a GPU would take for a step, by counts, where there is no such card: every line of it is an estimate.

Counted are the float operations of the busiest thread of a world, summed over the phases (its critical path), and the
phases themselves, in a build of the kernels in which numbers count (:mod:`gpusim.bench.counted`). How many threads a
world has and how many worlds run side by side follows from the model by the same function that the backend asks
(:func:`gpusim.backends.cuda_device.launch_shape`). Three bounds come of it, for a multiprocessor and a world-step:

- issue: warps x critical path x INSTRUCTIONS over what its four schedulers issue;
- latency: critical path x INSTRUCTIONS x CYCLES, and PHASE_CYCLES for each phase, over the worlds that run side by
  side;
- memory: what a step touches of its slab (:func:`touched_bytes`), in and out once over the bandwidth, where the worlds
  that run side by side neither have it in shared memory nor all of it in the L2 cache. What phases read again counts
  once, as if caches held it; they hold less.

The greatest one is told. One big world, staged, takes its bytes over the bandwidth, and LAUNCH_US for each launch.

INSTRUCTIONS is of the machine code, 21 % of which are float operations; the cycles are guesses from the depths of
pipelines and caches, so that the sum is good to a factor of two until a card has been asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.backends.cuda_device import Gpu, LaunchShape, launch_shape
from gpusim.backends.kernel_backend import use_staged
from gpusim.backends.native_backend import SPOILED
from gpusim.bench.counted import WIDTHS, Operations
from gpusim.bench.drive import run_driven
from gpusim.bench.floor import count_operations, moved_bytes
from gpusim.bench.runner import make_simulation
from gpusim.errors import unknown_name
from gpusim.solver.launch_plan import Launch, LaunchPlan, Plan, Repeat, launched_levels

if TYPE_CHECKING:
    from gpusim.bench.runner import Options, Record
    from gpusim.bench.workloads import Case
    from gpusim.simulation import Simulation

INSTRUCTIONS = 4.8
"""Of a warp for each float operation of its busiest thread."""
SCHEDULERS = 4
ISSUE_SHARE = 0.6
"""Of the cycles in which a scheduler that has warps enough issues something."""
SHARED_CYCLES, GLOBAL_CYCLES = 6.0, 9.0
"""From an instruction of a world to its next one, with its work in shared memory, or in caches."""
PHASE_CYCLES = 60.0
"""A barrier of a tile, and what a phase begins with: sizes, tables."""
RESERVED = 1024
"""Bytes of shared memory that each block has for itself."""
SECTOR = 32
"""Bytes that a GPU's memory gives at once."""
LAUNCH_US = 3.0
"""From kernel to kernel of a CUDA graph, with their start and end."""
BANDWIDTH_SHARE = 0.6
"""Of the data sheet's, that kernels reach which read records at places from lists."""
WAIT_US, WAITS = 1.5, {"color_in_turns": 48, "search_joined": 8}
"""From turns to those that wait for them, and how many follow each other: rounds of coloring, about, and phases."""
USED_LISTS = 12
"""Colors of contacts that a pile has, about, which follow each other in a sweep."""


@dataclass(frozen=True)
class Card:
    """What the estimate knows of a card: its resources; its clock, 1/s; bytes a second of its memory; of its L2."""

    name: str
    gpu: Gpu
    clock: float
    bandwidth: float
    cache: int = 50 << 20


CARDS = {
    "h100": Card("H100", Gpu(132, 228 * 1024, 227 * 1024, 80 << 30), 1.75e9, 3.35e12),
    "h200": Card("H200", Gpu(132, 228 * 1024, 227 * 1024, 141 << 30), 1.75e9, 4.8e12),
}
"""By name; sizes from NVIDIA's data sheets, the clock as it is held under load."""


@dataclass(frozen=True)
class Estimate:
    """Of one case.

    Attributes:
        shape: how worlds lie on the card. slab: bytes of a world's work. touched: of those that a step touches.
        warp_operations: critical path x warps of a world, which is what fused launch with a warp or less is made of.
        block_operations: the same as 32 threads would have it.
        phases: of a step. resident: worlds that run side by side on a multiprocessor.
        issue_ns, latency_ns, memory_ns: least time of a world-step by each bound, ns, on the whole card.
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
        """Of a world-step, ns."""
        return max(self.issue_ns, self.latency_ns, self.memory_ns)


@dataclass(frozen=True)
class StagedEstimate:
    """Of one big world: bytes of its work, launches, waits within them and bytes moved of a step, and its time, us."""

    slab: int
    launches: int
    waits: int
    bytes: float
    us: float


def find_card(name: str) -> Card:
    """A card by name.

    Raises:
        UnknownNameError: there is no such card.
    """
    if name.lower() not in CARDS:
        raise unknown_name("card", name, CARDS)
    return CARDS[name.lower()]


def estimate(
    operations: Operations, sizes: dict[str, int], slab: int, worlds: int, card: Card, touched: int | None = None
) -> Estimate:
    """The estimate of a step, from what was counted.

    Args:
        operations: of one world's step, with its critical paths.
        sizes: of the model, as backends know them.
        slab: bytes of a world's work.
        worlds: how many there are.
        card: the machine.
        touched: bytes of that work that a step touches; all where left out.
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
    """Bytes of the slab, by sectors of memory, that a step of one world touches: found in it after the step.

    Args:
        sim: of one world, fused on the native backend, with one thread; it goes on by one step.
    """
    backend: Any = sim.backend
    slab = backend.spoil_slab()
    sim.step()
    sectors = slab[: slab.size // SECTOR * SECTOR].reshape(-1, SECTOR)
    return SECTOR * int((sectors != SPOILED).any(axis=1).sum())


def estimate_staged(sim: Simulation, card: Card) -> StagedEstimate:
    """The estimate of one big world's step, from launches and bytes (:mod:`gpusim.bench.floor`).

    Args:
        sim: of one world, staged on the native backend.
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
    """Of a plan, with loops run once."""
    for part in plan:
        yield from _launches(part.body) if isinstance(part, Repeat) else part


_Counts = tuple["Operations | None", dict[str, int], int, int]
"""What a world's step does, sizes, bytes of its work and those of them that it touches."""


class Estimator:
    """Estimates cases for a card; what worlds of one model do is counted once.

    Args:
        options: number type.
        card: the machine.
    """

    def __init__(self, options: Options, card: Card) -> None:
        self.options, self.card = options, card
        self._counted: dict[Any, _Counts | StagedEstimate] = {}

    def of(self, case: Case) -> Estimate | StagedEstimate | None:
        """The estimate of a case; None where its operations can't be counted.

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
        """Operations of a world's step, sizes, and bytes of its work; of a big world the estimate itself."""
        model = case.build().finalize()
        sim = make_simulation(case, model, "native", self.options, num_worlds=1, launch="fused")
        backend: Any = sim.backend
        if use_staged(case.launch, backend.layout.size, launched_levels(backend.sizes, backend.direct)):
            staged = make_simulation(case, model, "native", self.options, num_worlds=1, launch="staged")
            return estimate_staged(staged, self.card)
        run_driven(sim, case.settle or case.restart, case.hold)
        return count_operations(case, model, sim), backend.sizes, backend.layout.size, touched_bytes(sim)


def beside_measured(
    records: Iterable[Record], cases: Iterable[Case], estimator: Estimator
) -> Iterator[tuple[str, ...]]:
    """Lines of a table, the head first: measured and estimated times of a world-step, ns, and by how much they differ.

    Args:
        records: of the cases, as they were run on the card; those with an error are left out.
        cases: by their workload, name, worlds and number type.
        estimator: with the options that they were run with.
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
    """Lines of the table, the head first; "warp ops" are of a step of one world, times of a world-step."""
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
