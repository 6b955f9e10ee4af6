"""The floor: the data and operations of a world-step, and the minimum time that this machine needs for them.

**Operations** are counted, not estimated: the case runs some steps in a build of the kernels in which every number
counts its + - * / and square roots (:mod:`gpusim.bench.counted`). So iterations and branches are those of the timed
models. Float32 and float64 are counted separately, because their rates differ.

**Bytes** are the traffic that no implementation of this step can avoid, from the sizes of the arrays:

- fused launch: a world's state is read once and written once, its commands and its own parameters are read once.
  The work in between fits on the chip. Tables and parameters that all worlds share stay in the cache and do not count.
- staged launch: phases pass their results through memory. Every array of the slab is written once and read once per
  substep. In addition, every sweep of the colored solver reads the rows (J, J M^-1, diagonal, compliance, target)
  and reads and writes impulses and twists. The factors of the direct solver count once, for any number of corrections.

The state counts once for any number of steps in a launch. A fused launch of n steps can keep a world on the chip for
all of them, and does so for few worlds. The byte count is then too high, and the arithmetic is the relevant floor.

The **floor** of a case is the maximum of bytes over bandwidth and operations over rate, both measured on this machine
(:mod:`gpusim.bench.machine`). The bandwidth is measured with arrays of the case's size, so that a case that fits a
cache is compared with the cache. The rate is measured with vectors and without fused multiply-adds, which strict bits
forbid. On a GPU both follow from clocks, bus width and lanes. If the floor explains less than a third of the time, the
bound is the rate of code without vectors if that explains it ("scalar code"), else waiting for dependent results
("latency").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.bench import machine
from gpusim.bench.counted import Counter, Operations
from gpusim.bench.drive import run_driven
from gpusim.errors import GpusimError

if TYPE_CHECKING:
    from gpusim.bench.workloads import Case
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation

COUNTED_STEPS = 50
MOVING = 20
"""Factor on the number of steps if every step differs from the previous one."""
SLOW_BYTES = 1 << 20
"""A world with more bytes is counted for two steps only."""
NEAR = 0.3
"""Share of the time above which the floor bounds a case. Below it, waiting does."""
ROW_ARRAYS = ("jacobian", "mass_jacobian", "diagonal", "gamma", "target")
SWEPT_ARRAYS = ("solved", "twist")


@dataclass(frozen=True)
class Floor:
    """The floor of a case.

    Attributes:
        bytes: moved in a world-step.
        operations32, operations64: float32 and float64 operations of a world-step.
        bandwidth: bytes per second.
        rate32, rate64: operations per second.
        bytes_us, operations_us: minimum time of a step of all worlds, microseconds.
        scalar_us: the same for the operations without vectors, as in the native backend; 0 on a GPU.
    """

    bytes: float
    operations32: float
    operations64: float
    bandwidth: float
    rate32: float
    rate64: float
    bytes_us: float
    operations_us: float
    scalar_us: float

    @property
    def us(self) -> float:
        """The floor, microseconds for a step of all worlds."""
        return max(self.bytes_us, self.operations_us)

    def share(self, step_us: float) -> float:
        """Return the share of the measured time that the floor explains."""
        return self.us / step_us if step_us > 0.0 else 0.0

    def bound(self, step_us: float) -> str:
        """Return a word for what bounds the measured time."""
        if self.share(step_us) < NEAR:
            return "scalar code" if self.scalar_us > NEAR * step_us else "latency"
        return "bandwidth" if self.bytes_us >= self.operations_us else "arithmetic"


def find_floor(case: Case, model: Model, sim: Simulation) -> Floor | None:
    """Return the floor of a case, or None if the operations cannot be counted (no C++ compiler, no kernels' sizes)."""
    operations = count_operations(case, model, sim)
    if operations is None:
        return None
    backend: Any = sim.backend
    on_gpu = sim.backend_name == "cuda"
    staged, slab = world_layout(case, model, sim)
    moved = moved_bytes(sim, slab if staged else None)
    threads = getattr(backend, "threads", 1) or 1
    used = threads if staged else min(threads, case.worlds)
    working_set = case.worlds * (slab.size if staged else moved / 2.0)
    bandwidth = machine.bandwidth(working_set, used, on_gpu)
    rates = [machine.rate(dtype, used, on_gpu) for dtype in (np.float32, np.float64)]
    scalar = 0.0 if on_gpu else operations.total / machine.scalar_rate(used)
    spent = operations.float32 / rates[0] + operations.float64 / rates[1]
    return Floor(
        bytes=moved,
        operations32=operations.float32,
        operations64=operations.float64,
        bandwidth=bandwidth,
        rate32=rates[0],
        rate64=rates[1],
        bytes_us=1e6 * case.worlds * moved / bandwidth,
        operations_us=1e6 * case.worlds * spent,
        scalar_us=1e6 * case.worlds * scalar,
    )


def world_layout(case: Case, model: Model, sim: Simulation) -> tuple[bool, Any]:
    """Return whether the case runs staged, and the layout of a world's slab."""
    backend: Any = sim.backend
    if hasattr(backend, "layout"):
        return backend.staged, backend.layout
    counted = _counting(case, model, sim)
    return case.launch == "staged", counted.backend.layout


def moved_bytes(sim: Simulation, slab: Any | None) -> float:
    """Return the minimum bytes that a world-step moves. ``slab`` is the layout of a staged world's slab, else None."""
    worlds = sim.num_worlds
    state = sum(array.nbytes for array in sim.state.arrays.values())
    state += sum(array.nbytes for group in sim.state.groups for array in group.state.values())
    own = sum(p.nbytes for p in sim.runtime.parameters.values() if p.shape[0] > 1)
    own += sum(p.nbytes for group in sim.state.groups for p in group.params.values() if np.ndim(p) and len(p) > 1)
    control = 8 * len(sim.model.controls)
    kept = 2.0 * state / worlds
    if slab is None:
        return kept + own / worlds + control
    work = slab.size - state / worlds
    sweeps = 0.0
    if sim.config.joint_solver == "colored":
        sweeps = sim.config.iterations * (_sizes(slab, ROW_ARRAYS) + 2.0 * _sizes(slab, SWEPT_ARRAYS))
    return kept + own / worlds + control + sim.config.substeps * (2.0 * work + sweeps)


def count_operations(case: Case, model: Model, sim: Simulation) -> Operations | None:
    """Return the operations of one world-step, counted in one world that is driven like the timed ones."""
    try:
        counting = _counting(case, model, sim)
        steps = 2 if counting.backend.layout.size > SLOW_BYTES else COUNTED_STEPS
        if case.restart:
            steps = min(steps, case.restart)
        else:  # away from the start, where limits and valves are still inactive
            run_driven(counting, max(case.settle, steps), case.hold)
            steps *= MOVING if case.hold else 1
        counter = Counter(counting)
    except GpusimError:
        return None
    run_driven(counting, steps, case.hold)
    return counter.take() / steps


def _counting(case: Case, model: Model, sim: Simulation) -> Any:
    """Return one world of the case on the native backend, fused: the same work as staged, and half the builds."""
    from gpusim.simulation import Simulation

    return Simulation(model, 1, "native", sim.dtype, sim.config, launch="fused", threads=1)


def _sizes(slab: Any, names: tuple[str, ...]) -> float:
    places = [slab.places[name] for name in names]
    return float(sum(np.prod(place.shape) * place.dtype.itemsize for place in places))
