"""Remove self-stress of kinematic loops: impulses of linearly dependent constraint rows that cancel each other.

Self-stress moves no body. :func:`drop` removes self-stress: it replaces the impulses p by A^-1 A p, with the
regularized factorization as A^-1.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints import coupled_laws
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

# The code removes self-stress above SELF_STRESS times the other impulses. SELF_STRESS is large in float32, because the
# inaccurate factor also changes impulses that bear loads. With a damped factor, the code uses 1 instead.
SELF_STRESS = {np.dtype(np.float64): 1e-3, np.dtype(np.float32): 0.1}


def redundant(w: StepBuffers) -> Array:
    """Return a mask of the worlds whose loops may have linearly dependent rows, (num_worlds,).

    Such worlds have a weak pivot. If no loop contains an axis row, the mask contains all worlds.
    """
    t = w.topology
    mask: Array = (w.softening > 0.0) | (t.loops.any() & ~t.may_depend.any())
    return mask


def drop(w: StepBuffers, worlds: Array) -> Array:
    """Remove self-stress from the impulses ``w.solved``, in the worlds of the mask ``worlds`` with dependent rows.

    Returns:
        The change of the impulses, (num_worlds, constraints, block).
    """
    t, system = w.topology, w.direct
    worlds = worlds & redundant(w)
    if not worlds.any():
        return np.zeros_like(w.solved)
    swept = t.swept[:, None]
    impulse = np.where(swept, w.real.type(0), w.solved)
    load = w.row_velocity(w.apply_impulse(impulse)).reshape(impulse.shape) + system.factored_gamma * impulse
    at = t.coupled_constraint
    if at.size:
        load[:, at] += coupled_laws.off_diagonal_product(w, impulse)
    load_impulse = w.factor.solve(np.where(swept, w.real.type(0), load))
    size, stress = ((x * x * system.response).max(axis=(1, 2)) for x in (load_impulse, impulse - load_impulse))
    limit = np.where(w.factor_damping == 0.0, SELF_STRESS[w.real] ** 2, 1.0).astype(w.real)
    drops = worlds & (stress > limit * size)
    before = w.solved
    w.solved = np.where(drops[:, None, None] & ~swept, load_impulse, before)
    return w.solved - before
