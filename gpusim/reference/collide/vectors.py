"""Vectors as tuples, for scalar loops compiled by numba: what cuda_kernels/rotations.cuh does with arrays."""

from __future__ import annotations

import math
from typing import TypeAlias

from gpusim.reference.collide.compiled import inner
from gpusim.typing import Array

Vector: TypeAlias = tuple[float, float, float]


@inner
def row3(array: Array, i: int) -> Vector:
    """Row i of an (n, 3) array."""
    return array[i, 0], array[i, 1], array[i, 2]


@inner
def set_row3(array: Array, i: int, v: Vector) -> None:
    """Row i of an (n, 3) array becomes v."""
    array[i, 0] = v[0]
    array[i, 1] = v[1]
    array[i, 2] = v[2]


@inner
def dot3(a: Vector, b: Vector) -> float:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def norm3(a: Vector) -> float:
    """Length of a."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@inner
def cross3(a: Vector, b: Vector) -> Vector:
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inner
def subtract3(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inner
def negate3(a: Vector) -> Vector:
    """-a."""
    return -a[0], -a[1], -a[2]


@inner
def along3(p: Vector, t: float, d: Vector) -> Vector:
    """p + t d."""
    return p[0] + t * d[0], p[1] + t * d[1], p[2] + t * d[2]


@inner
def divide3(a: Vector, length: float) -> Vector:
    """a / length."""
    return a[0] / length, a[1] / length, a[2] / length
