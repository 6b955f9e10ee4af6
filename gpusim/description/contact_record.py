"""Memory layout of contact manifolds in kernels (cuda_kernels/contacts/contact_record.cuh), and a reader in Python.

The NumPy backend stores the data of manifolds in separate arrays with the same names (reference/contacts/manifolds.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpusim.typing import Array

POINTS = 4
"""Maximum number of contact points in a manifold."""
_Shapes = dict[str, tuple[int, ...]]
# Data that a sweep reads and writes, in the frame (normal, tangents). A GPU reads the first parts in pairs of values.
# Initially, the values from "restitution" on are zero, and in points the values from "gamma" to "delta". Stages set all
# other values.
_MANIFOLD: _Shapes = {
    "response": (6, 6), "arm": (2, 3), "frame": (3, 3), "friction": (), "rolling": (), "spinning": (),
    "torque": (3,), "shear": (2,), "bodies": (2,), "count": (), "law": (), "soft": (), "rolls": (2,), "bend": (3,),
    "inertia_inverse": (2, 7), "moved": (2,), "restitution": (), "patch": (), "speed": (), "passes": (),
    "tire_known": (2,), "tire_slope": (2,), "tire_stiffness": (2,), "tire_shares": (2,), "tire_kept": (2,),
    "tire_gain": (2,), "camber": (3,), "whole_direction": (5,), "whole_swept": (5,),
}  # fmt: skip
_POINT: _Shapes = {
    "mass": (6,), "offset": (3,), "bias": (3,), "gamma": (), "impulse": (3,), "impact": (), "gap": (), "push": (),
    "push_yield": (), "pushed": (), "carried": (), "direction": (3,), "delta": (3,), "inverse_mass": (3,), "slip": (3,),
    "arm_before": (2, 3), "age": (),
}  # fmt: skip


def _offsets(shapes: _Shapes) -> tuple[dict[str, int], int]:
    """Return the offset of each field, and the total size of all fields (number of values, rounded up to even)."""
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())])
    return dict(zip(shapes, ends.tolist(), strict=False)), int(ends[-1] + ends[-1] % 2)


_AT_MANIFOLD, _FIRST_POINT = _offsets(_MANIFOLD)
_AT_POINT, _POINT_SIZE = _offsets(_POINT)
RECORD = _FIRST_POINT + POINTS * _POINT_SIZE
"""Number of values in a record, the data of one contact manifold."""
ANCHOR = 6 * POINTS + 4
"""Number of double-precision values of a contact manifold: points on A and B, the normal, and one unused value. The
unused value makes the number even."""
SOLVED = ("torque", "shear"), ("impulse", "delta")
"""Names of the values that sweeps compute for a manifold and for each point (reference/contacts/manifolds.py)."""
SOLVED_SIZE = sum(int(np.prod(_MANIFOLD[name])) for name in SOLVED[0]) + POINTS * sum(
    int(np.prod(_POINT[name])) for name in SOLVED[1]
)
RECORD_LAYOUT = {
    **{f"AT_{name.upper()}": at for name, at in _AT_MANIFOLD.items()},
    "FIRST_POINT": _FIRST_POINT,
    "POINT_SIZE": _POINT_SIZE,
    **{f"AT_{name.upper()}": at for name, at in _AT_POINT.items()},
    "RECORD_SIZE": RECORD,
    "SOLVED_SIZE": SOLVED_SIZE,
    "ANCHOR_SIZE": ANCHOR,
}
"""Kernel constants with the layout of a record: name -> value."""


def by_slot(records: Array, lanes: int) -> Array:
    """Convert interleaved contact records from kernels to an array (num_worlds, records, values of a record)."""
    worlds, slots, numbers = records.shape
    return records.reshape(worlds, -1, numbers, lanes).swapaxes(2, 3).reshape(worlds, slots, numbers)


def unpack(records: Array, names: Iterable[str]) -> dict[str, Array]:
    """Return views of the named fields of n contact records (n, RECORD).

    Manifold fields have the shape (n, ...). Contact point fields have the shape (n, 4, ...).
    """
    points = records[:, _FIRST_POINT:].reshape(-1, POINTS, _POINT_SIZE)
    parts = {}
    for name in names:
        of_point = name in _POINT
        shape, first = (_POINT[name], _AT_POINT[name]) if of_point else (_MANIFOLD[name], _AT_MANIFOLD[name])
        numbers = (points if of_point else records)[..., first : first + int(np.prod(shape))]
        parts[name] = numbers.reshape(*numbers.shape[:-1], *shape)
    return parts
