"""The models that only benchmarks use; the others are scenes."""

from __future__ import annotations

import gpusim
from gpusim import ModelBuilder, Transform
from gpusim.errors import ModelError

PITCH = 0.1
"""Distance of neighbors in the grid, m."""
MASS = 0.1


def joint_grid(columns: int, rows: int) -> ModelBuilder:
    """A net of ``columns`` x ``rows`` plates that ball joints tie to their neighbors; its first column is held.

    It starts level and sags. Each joint locks 3 rows, and there are two joints for every plate.

    Raises:
        ModelError: fewer than one column or row.
    """
    if columns < 1 or rows < 1:
        raise ModelError(f"joint_grid: {columns} x {rows} plates are too few; give at least 1 x 1")
    b = gpusim.ModelBuilder()
    half = 0.5 * PITCH
    inertia = (MASS * PITCH**2 / 12.0, MASS * PITCH**2 / 12.0, MASS * PITCH**2 / 6.0)
    for i in range(columns):
        for k in range(rows):
            pose = Transform((i * PITCH, k * PITCH, 0.0))
            plate = b.add_body(mass=MASS, inertia=inertia, xform=pose, label=f"plate{i}_{k}")
            side = Transform((-half, 0.0, 0.0))
            if i == 0:
                held = Transform((-half, k * PITCH, 0.0))
                b.add_joint_ball(-1, plate, parent_xform=held, child_xform=side, label=f"held{k}")
            else:
                other = Transform((half, 0.0, 0.0))
                b.add_joint_ball(plate - rows, plate, parent_xform=other, child_xform=side, label=f"x{i}_{k}")
            if k > 0:
                ends = Transform((0.0, half, 0.0)), Transform((0.0, -half, 0.0))
                b.add_joint_ball(plate - 1, plate, parent_xform=ends[0], child_xform=ends[1], label=f"y{i}_{k}")
    return b
