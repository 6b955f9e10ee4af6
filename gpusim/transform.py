"""Rigid transform: the pose of a frame in another frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import rotations
from gpusim.errors import ModelError
from gpusim.typing import Array, Vector


class Transform:
    """Pose of a frame in a parent frame: ``x_parent = R x_frame + position``.

    Args:
        position: origin of the frame in the parent frame (m).
        rotation: quaternion (x, y, z, w). The constructor normalizes the quaternion.

    Raises:
        ModelError: ``position`` is not three finite numbers, or ``rotation`` is not four finite numbers or is zero.
    """

    __slots__ = ("position", "rotation")
    position: Array
    rotation: Array

    def __init__(self, position: Vector = (0.0, 0.0, 0.0), rotation: Vector = (0.0, 0.0, 0.0, 1.0)) -> None:
        p = _numbers("position", position, 3)
        q = _numbers("rotation", rotation, 4)
        length = math.sqrt(float(np.sum(q * q)))
        if length < 1e-12:
            raise ModelError(
                "Transform: rotation is the zero quaternion; give a unit quaternion (x, y, z, w), (0, 0, 0, 1) for none"
            )
        # Do not normalize a quaternion that already has unit length: reading and writing a file must keep its bits.
        if abs(length - 1.0) > 1e-15:
            q = q / length
        p.setflags(write=False)
        q.setflags(write=False)
        object.__setattr__(self, "position", p)
        object.__setattr__(self, "rotation", q)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Transform does not change; make a new one")

    def __copy__(self) -> Transform:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Transform:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Transform, (tuple(self.position.tolist()), tuple(self.rotation.tolist()))

    @classmethod
    def from_axis_angle(cls, position: Vector, axis: Vector, angle: float) -> Transform:
        """Return a transform that rotates by ``angle`` (rad) about ``axis``. The axis may have any nonzero length."""
        a = _numbers("axis", axis, 3)
        length = float(np.linalg.norm(a))
        if length < 1e-12:
            raise ModelError("Transform: the rotation axis is zero; give a vector with a direction")
        half = 0.5 * _number("angle", angle)
        return cls(position, (*(a / length * math.sin(half)), math.cos(half)))

    @classmethod
    def from_rpy(cls, position: Vector, rpy: Vector) -> Transform:
        """Return a transform from roll, pitch and yaw (rad): rotations about fixed x, then y, then z (URDF)."""
        r, p, y = (0.5 * float(v) for v in _numbers("rpy", rpy, 3))
        cr, sr, cp, sp, cy, sy = math.cos(r), math.sin(r), math.cos(p), math.sin(p), math.cos(y), math.sin(y)
        q = (
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        )
        return cls(position, q)

    @classmethod
    def from_matrix(cls, matrix: Vector | Array) -> Transform:
        """Return a transform from a homogeneous 4x4 matrix or a 3x3 rotation matrix (orthonormal within 1e-5)."""
        try:
            m = np.asarray(matrix, dtype=float)
        except (TypeError, ValueError, OverflowError):
            rule = f"{matrix!r:.60} is not a matrix of numbers"
            raise ModelError(f"Transform.from_matrix: {rule}; give a 4x4 or a 3x3 matrix") from None
        if m.shape not in ((4, 4), (3, 3)):
            raise ModelError(f"Transform.from_matrix: shape {m.shape}; give a 4x4 homogeneous or a 3x3 rotation matrix")
        r = m[:3, :3]
        if not np.allclose(r @ r.T, np.eye(3), atol=1e-6) or np.linalg.det(r) < 0.0:
            raise ModelError(
                "Transform.from_matrix: the 3x3 part is not a rotation; give an orthonormal matrix with det = +1"
            )
        return cls(m[:3, 3] if m.shape == (4, 4) else (0.0, 0.0, 0.0), _quaternion_from_matrix(r))

    def matrix(self) -> Array:
        """Return the rotation matrix (3, 3)."""
        return rotations.matrix_from_quaternion(self.rotation)

    def apply(self, points: Vector | Array) -> Array:
        """Transform points from the frame to the parent frame (..., 3), m."""
        return self.rotate(points) + self.position

    def rotate(self, vectors: Vector | Array) -> Array:
        """Rotate vectors (..., 3) from the frame to the parent frame."""
        return rotations.matvec(self.matrix(), np.asarray(vectors, dtype=float))

    def inverse(self) -> Transform:
        """Return the inverse transform: the pose of the parent frame in the frame."""
        q = rotations.quaternion_conjugate(self.rotation)
        return Transform(rotations.matvec(rotations.matrix_from_quaternion(q), -self.position), q)

    def __mul__(self, other: Transform) -> Transform:
        """Return the composition of two transforms: ``(a * b).apply(x) == a.apply(b.apply(x))``."""
        return Transform(self.apply(other.position), rotations.quaternion_product(self.rotation, other.rotation))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transform):
            return NotImplemented
        return bool(np.array_equal(self.position, other.position) and np.array_equal(self.rotation, other.rotation))

    def __hash__(self) -> int:
        return hash((self.position.tobytes(), self.rotation.tobytes()))

    def __repr__(self) -> str:
        return f"Transform({tuple(map(float, self.position))}, {tuple(map(float, self.rotation))})"


def homogeneous_matrix(pose: Transform) -> Array:
    """Return a pose as a homogeneous matrix (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.matrix(), pose.position
    return matrix


def _number(what: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f"Transform: {what} {value!r:.60} is not a finite number; give a number in rad")
    return number


def _numbers(what: str, value: Vector, count: int) -> Array:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"Transform: {what} {value!r} is not {count} numbers; give {count} numbers") from None
    if array.shape != (count,) or not np.all(np.isfinite(array)):
        raise ModelError(f"Transform: {what} {value!r} is not {count} finite numbers; give {count} finite numbers")
    return array


def _quaternion_from_matrix(r: Array) -> Array:
    """Return the quaternion of a rotation matrix by Shepperd's method."""
    trace = float(np.trace(r))
    candidates = np.array([r[0, 0], r[1, 1], r[2, 2], trace])
    k = int(np.argmax(candidates))
    q = np.empty(4)
    if k == 3:
        q[:] = (r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], 1.0 + trace)
    else:
        i, j, m = k, (k + 1) % 3, (k + 2) % 3
        q[i] = 1.0 + r[i, i] - r[j, j] - r[m, m]
        q[j] = r[j, i] + r[i, j]
        q[m] = r[m, i] + r[i, m]
        q[3] = r[m, j] - r[j, m]
    unit: Array = q / np.linalg.norm(q)
    return unit
