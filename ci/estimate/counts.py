"""Operations and bytes of a world-step.

**Operations** are counted, not estimated: the case runs some steps in a build of the kernels in which every number
counts its + - * / and square roots (:mod:`ci.estimate.counted`). So iterations and branches are those of the timed
models. Float32 and float64 are counted separately, because their rates differ.

**Bytes** are the traffic that a staged launch cannot avoid, from the sizes of the arrays. Phases pass their results
through memory. Every array of the slab is written once and read once per substep. In addition, every sweep of the
colored solver reads the rows (J, J M^-1, diagonal, compliance, target) and reads and writes impulses and twists. The
factors of the direct solver count once, for any number of corrections. The state, the commands and a world's own
parameters count once per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.estimate.counted import Counter, Operations
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
ROW_ARRAYS = ("jacobian", "mass_jacobian", "diagonal", "gamma", "target")
SWEPT_ARRAYS = ("solved", "twist")


def moved_bytes(sim: Simulation, slab: Any) -> float:
    """Return the minimum bytes that a staged world-step moves. ``slab`` is the layout of a world's slab."""
    worlds = sim.num_worlds
    state = sum(array.nbytes for array in sim.state.arrays.values())
    state += sum(array.nbytes for group in sim.state.groups for array in group.state.values())
    own = sum(p.nbytes for p in sim.runtime.parameters.values() if p.shape[0] > 1)
    own += sum(p.nbytes for group in sim.state.groups for p in group.params.values() if np.ndim(p) and len(p) > 1)
    control = 8 * len(sim.model.controls)
    work = slab.size - state / worlds
    sweeps = 0.0
    if sim.config.joint_solver == "colored":
        sweeps = sim.config.iterations * (_sizes(slab, ROW_ARRAYS) + 2.0 * _sizes(slab, SWEPT_ARRAYS))
    return 2.0 * state / worlds + own / worlds + control + sim.config.substeps * (2.0 * work + sweeps)


def count_operations(case: Case, model: Model, sim: Simulation) -> Operations | None:
    """Return the operations of one world-step, or None if they cannot be counted.

    The counted world is driven like the timed ones.
    """
    from gpusim.simulation import Simulation

    try:
        # fused does the same work as staged, with half the builds
        counting: Any = Simulation(model, 1, "native", sim.dtype, sim.config, launch="fused", threads=1)
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


def _sizes(slab: Any, names: tuple[str, ...]) -> float:
    places = [slab.places[name] for name in names]
    return float(sum(np.prod(place.shape) * place.dtype.itemsize for place in places))
