"""Vectors, rotations and small symmetric linear systems of traced numbers, for the kinematics blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from gpusim.control.trace import Num, Number, Trace

Vector = Sequence[Number]
Matrix = Sequence[Sequence[Number]]


def _times(t: Trace, a: Number, b: Number) -> Number:
    """Return a product."""
    for x, y in ((a, b), (b, a)):
        if not isinstance(x, Num):
            if not isinstance(y, Num):
                return x * y
            if x == 0.0:
                return 0.0
            return y if x == 1.0 else -y if x == -1.0 else y * x
    return a * b


def total(t: Trace, terms: Sequence[Number]) -> Number:
    """Return the sum of terms."""
    nonzero = [x for x in terms if isinstance(x, Num) or x != 0.0]
    return reduce(lambda a, b: a + b, nonzero) if nonzero else 0.0


def dot(t: Trace, a: Vector, b: Vector) -> Number:
    """Return the scalar product."""
    return total(t, [_times(t, x, y) for x, y in zip(a, b, strict=True)])


def minus(a: Vector, b: Vector) -> list[Number]:
    """Return the difference."""
    return [x - y for x, y in zip(a, b, strict=True)]


def plus(t: Trace, a: Vector, b: Vector) -> list[Number]:
    """Return the sum."""
    return [total(t, [x, y]) for x, y in zip(a, b, strict=True)]


def scaled(t: Trace, factor: Number, vector: Vector) -> list[Number]:
    """Return a number times a vector."""
    return [_times(t, factor, x) for x in vector]


def cross(t: Trace, a: Vector, b: Vector) -> list[Number]:
    """Return the cross product."""
    return [
        total(t, [_times(t, a[i], b[j]), _times(t, -1.0, _times(t, a[j], b[i]))]) for i, j in ((1, 2), (2, 0), (0, 1))
    ]


def apply(t: Trace, matrix: Matrix, vector: Vector) -> list[Number]:
    """Return a matrix times a vector."""
    return [dot(t, row, vector) for row in matrix]


def columns(matrix: Matrix) -> list[list[Number]]:
    """Return the transpose."""
    return [list(column) for column in zip(*matrix, strict=True)]


def multiply(t: Trace, a: Matrix, b: Matrix) -> list[list[Number]]:
    """Return the matrix product."""
    transposed = columns(b)
    return [[dot(t, row, column) for column in transposed] for row in a]


def about(t: Trace, axis: Sequence[float], sine: Num, cosine: Num) -> list[list[Number]]:
    """Return the matrix of a rotation about a constant unit axis (Rodrigues)."""
    x, y, z = (float(v) for v in axis)
    one_minus_cosine = 1.0 - cosine

    def entry(square: float, side: float, diagonal: bool) -> Number:
        terms = [_times(t, square, one_minus_cosine), _times(t, side, sine), cosine if diagonal else 0.0]
        return total(t, terms)

    return [
        [entry(x * x, 0.0, True), entry(x * y, -z, False), entry(x * z, y, False)],
        [entry(x * y, z, False), entry(y * y, 0.0, True), entry(y * z, -x, False)],
        [entry(x * z, -y, False), entry(y * z, x, False), entry(z * z, 0.0, True)],
    ]


def from_quaternion(t: Trace, q: Sequence[Num]) -> list[list[Number]]:
    """Return the rotation matrix of a unit quaternion xyzw."""
    x, y, z, w = q
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]


def solve_positive(t: Trace, matrix: Matrix, right: Vector) -> list[Number]:
    """Solve a symmetric positive definite system by L D L^T."""
    n = len(right)
    lower: list[list[Number]] = [[0.0] * n for _ in range(n)]
    pivot: list[Number] = []
    for j in range(n):
        known = [_times(t, _times(t, lower[j][k], lower[j][k]), pivot[k]) for k in range(j)]
        pivot.append(matrix[j][j] - total(t, known) if known else matrix[j][j])
        for i in range(j + 1, n):
            known = [_times(t, _times(t, lower[i][k], lower[j][k]), pivot[k]) for k in range(j)]
            above = total(t, [matrix[i][j], *(_times(t, -1.0, x) for x in known)])
            lower[i][j] = above / pivot[j] if isinstance(above, Num) or above != 0.0 else 0.0
    x = list(right)
    for i in range(n):
        x[i] = total(t, [x[i], *(_times(t, -1.0, _times(t, lower[i][k], x[k])) for k in range(i))])
    x = [value / d for value, d in zip(x, pivot, strict=True)]
    for i in reversed(range(n)):
        x[i] = total(t, [x[i], *(_times(t, -1.0, _times(t, lower[k][i], x[k])) for k in range(i + 1, n))])
    return x
