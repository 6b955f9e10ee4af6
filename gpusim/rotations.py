"""Rotations of arrays of bodies: quaternions (xyzw), matrices and rotation vectors.

All functions are vectorized over the leading axes. The bits of a result do not depend on the number of worlds.
"""

from __future__ import annotations

import numpy as np

from gpusim.typing import Array

# v @ _SKEW is the flattened matrix [v]x with [v]x u = v x u.
_SKEW = np.zeros((3, 9))
for _k, _i, _j in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _SKEW[_k, 3 * _j + _i] = 1.0
    _SKEW[_k, 3 * _i + _j] = -1.0
_SKEWS: dict[object, Array] = {np.dtype(np.float64): _SKEW, np.dtype(np.float32): _SKEW.astype(np.float32)}


def matvec(matrix: Array, vector: Array) -> Array:
    """Return matrix (..., n, m) times vector (..., m) as (..., n)."""
    product: Array = np.matvec(matrix, vector)  # type: ignore[call-overload, unused-ignore]
    return product


def dot(a: Array, b: Array) -> Array:
    """Return the scalar product (...) of vectors (..., 3)."""
    product: Array = np.vecdot(a, b)
    return product


def norm(a: Array) -> Array:
    """Return the Euclidean norm (...) of vectors (..., 3)."""
    return np.asarray(np.sqrt(dot(a, a)))


def skew(v: Array) -> Array:
    """Return the cross product matrices (..., 3, 3) of vectors (..., 3): ``skew(v) @ u == cross(v, u)``."""
    flat: Array = np.matmul(v, _SKEWS[v.dtype])
    return flat.reshape((*v.shape, 3))


def cross(a: Array, b: Array) -> Array:
    """Return the cross product of vectors (..., 3)."""
    return matvec(skew(a), b)


# Products and sums are explicit. The order of sums in one matmul over all quaternions would depend on their number.


def matrix_from_quaternion(q: Array) -> Array:
    """Return the rotation matrices from body to world (..., 3, 3) of unit quaternions (..., 4)."""
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    xy, zw, xz, yw, yz, xw = x * y, z * w, x * z, y * w, y * z, x * w
    matrix = np.empty(q.shape[:-1] + (3, 3), dtype=q.dtype)
    matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 2, 2] = xx - yy - zz + ww, yy - xx - zz + ww, zz - xx - yy + ww
    matrix[..., 0, 1], matrix[..., 1, 0] = 2.0 * (xy - zw), 2.0 * (xy + zw)
    matrix[..., 0, 2], matrix[..., 2, 0] = 2.0 * (xz + yw), 2.0 * (xz - yw)
    matrix[..., 1, 2], matrix[..., 2, 1] = 2.0 * (yz - xw), 2.0 * (yz + xw)
    return matrix


def quaternion_product(a: Array, b: Array) -> Array:
    """Return the Hamilton product a * b of quaternions (..., 4): first the rotation b, then a."""
    ax, ay, az, aw = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bx, by, bz, bw = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by + ay * bw + az * bx - ax * bz,
            aw * bz + az * bw + ax * by - ay * bx,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def quaternion_conjugate(q: Array) -> Array:
    """Return the conjugates of unit quaternions (..., 4), which are the inverse rotations."""
    conjugate: Array = q * np.array([-1.0, -1.0, -1.0, 1.0])
    return conjugate


def normalized(q: Array) -> Array:
    """Return quaternions (..., 4) scaled to unit length."""
    unit: Array = q / norm(q)[..., None]
    return unit


def quaternion_from_rotation_vector(rotation: Array) -> Array:
    """Return the quaternions (..., 4) of rotation vectors, which are angle times unit axis (..., 3), rad."""
    half = 0.5 * norm(rotation)
    q = np.empty(rotation.shape[:-1] + (4,))
    q[..., :3] = (0.5 * sinc(half * half))[..., None] * rotation
    q[..., 3] = np.cos(half)
    return q


def rotation_vector_from_quaternion(q: Array) -> Array:
    """Return the rotation vectors (..., 3) of unit quaternions (..., 4). Angles are at most pi."""
    q = np.where(q[..., 3:] < 0.0, -q, q)
    sine = norm(q[..., :3])
    angle = 2.0 * np.arctan2(sine, q[..., 3])
    small = sine < 1e-12
    factor = np.where(small, 2.0, angle / np.where(small, 1.0, sine))
    vector: Array = factor[..., None] * q[..., :3]
    return vector


# Below this squared angle, use a power series, because sin(x)/x would divide 0 by 0.
_SERIES_BELOW = 1e-2


def sinc(angle_squared: Array) -> Array:
    """Return sin(x)/x for x^2 = ``angle_squared``, or 1 for x = 0."""
    s = angle_squared
    series = 1.0 - s / 6.0 * (1.0 - s / 20.0 * (1.0 - s / 42.0 * (1.0 - s / 72.0)))
    if not (s > _SERIES_BELOW).any():
        return series
    x = np.sqrt(np.where(s > _SERIES_BELOW, s, 1.0))
    value: Array = np.where(s > _SERIES_BELOW, np.sin(x) / x, series)
    return value


def rotation_factors(angle_squared: Array) -> tuple[Array, Array]:
    """Return sin(x)/x - 1 and (1 - cos(x))/x^2 for x^2 = ``angle_squared``. Both are accurate for small x."""
    s = angle_squared
    sine = s * (-1.0 / 6.0 + s * (1.0 / 120.0 - s * (1.0 / 5040.0 - s * (1.0 / 362880.0))))
    cosine = 0.5 - s * (1.0 / 24.0 - s * (1.0 / 720.0 - s * (1.0 / 40320.0)))
    large = s > _SERIES_BELOW
    if large.any():
        x = np.sqrt(np.where(large, s, 1.0))
        half = np.sin(0.5 * x)
        sine = np.where(large, np.sin(x) / x - 1.0, sine)
        cosine = np.where(large, 2.0 * half * half / (x * x), cosine)
    return sine, cosine
