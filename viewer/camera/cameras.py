"""Pinhole camera, and a camera that the mouse moves around a point (orbit camera).

The x axis of a camera points to the right, the y axis points up, and the z axis points backwards (towards the viewer).
Lengths are in m, angles in rad.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpusim.typing import Array, Vector
from gpusim.viewer.errors import ViewerError

VIEWS: dict[str, tuple[float, float, float] | None] = {
    "fit": None,
    "front": (0.0, -1.0, 0.12),
    "back": (0.0, 1.0, 0.12),
    "left": (-1.0, 0.0, 0.12),
    "right": (1.0, 0.0, 0.12),
    "top": (0.0, -1e-3, 1.0),
}
"""View name -> direction from target to eye, with z up. The key None is the view from the front, right and above."""
FIELD_OF_VIEW = math.radians(36.0)
_INSIDE = 0.93
"""Maximum fraction of the picture's width and height that the points to show may cover."""
_NEAREST = 0.4
"""Minimum ratio of nearest to farthest depth in a named view, which limits perspective distortion."""
_STEEPEST = math.radians(89.0)
_UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class PinholeCamera:
    """Ideal camera at ``position`` that looks at ``target``.

    Attributes:
        position: position of the eye in the world frame (m).
        target: point at the center of the picture, in the world frame (m).
        up: upward direction in the picture. If ``up`` is parallel to the view axis, the camera uses another direction.
        field_of_view: vertical field of view, from the lower to the upper edge (rad).

    Raises:
        ViewerError: a value is not finite, eye and target coincide, or the field of view is not between 0 and pi.
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float] = _UP
    field_of_view: float = FIELD_OF_VIEW

    def __post_init__(self) -> None:
        for name in ("position", "target", "up"):
            values = np.asarray(getattr(self, name), dtype=float)
            if values.shape != (3,) or not np.all(np.isfinite(values)):
                raise ViewerError(f"camera: {name} {getattr(self, name)!r} is not three finite numbers; give (x, y, z)")
            object.__setattr__(self, name, tuple(values.tolist()))
        if self.distance < 1e-9:
            raise ViewerError(f"camera: position and target are both {self.position}; move one of them")
        if not 0.0 < self.field_of_view < math.pi:
            raise ViewerError(f"camera: field_of_view = {self.field_of_view:g} rad is not between 0 and pi")

    @property
    def distance(self) -> float:
        """Distance from the eye to the target (m)."""
        return math.dist(self.position, self.target)

    @property
    def forward(self) -> Array:
        """Unit vector (3,) from the eye to the target."""
        return np.subtract(self.target, self.position) / self.distance

    def axes(self) -> Array:
        """Return the camera's x, y and z axes in the world frame, as the rows of a matrix (3, 3)."""
        back = -self.forward
        right = np.cross(self.up, back)
        if np.linalg.norm(right) < 1e-6 * np.linalg.norm(self.up):
            right = np.cross((0.0, 1.0, 0.0) if abs(back[1]) < 0.9 else (1.0, 0.0, 0.0), back)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(back, right), back])

    def projection(self, aspect: float, near: float, far: float) -> Array:
        """Return OpenGL's matrix (4, 4) from camera to clip coordinates. ``aspect`` is width / height."""
        f = 1.0 / math.tan(0.5 * self.field_of_view)
        matrix = np.zeros((4, 4))
        matrix[0, 0], matrix[1, 1] = f / aspect, f
        matrix[2, 2], matrix[2, 3] = (far + near) / (near - far), 2.0 * far * near / (near - far)
        matrix[3, 2] = -1.0
        return matrix

    def to_clip(self, aspect: float, near: float, far: float) -> Array:
        """Return the matrix (4, 4) from positions relative to the eye, in world axes, to clip coordinates."""
        rotation = np.eye(4)
        rotation[:3, :3] = self.axes()
        return self.projection(aspect, near, far) @ rotation

    def pixel_ray(self, u: Array, v: Array, width: int, height: int) -> Array:
        """Return unit vectors (..., 3) from the eye through points of a picture, in the world frame.

        ``u`` and ``v`` are the pixel coordinates of the points, from the upper left corner.
        """
        rise = math.tan(0.5 * self.field_of_view)
        x = (2.0 * np.asarray(u, dtype=float) / width - 1.0) * rise * width / height
        y = (1.0 - 2.0 * np.asarray(v, dtype=float) / height) * rise
        x, y = np.broadcast_arrays(x, y)
        rays = np.stack([x, y, -np.ones_like(x)], axis=-1) @ self.axes()
        unit: Array = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
        return unit

    def project(self, points: Vector | Array, width: int, height: int) -> tuple[Array, Array]:
        """Project points (..., 3) in the world frame. Return their pixel coordinates (..., 2) and depths (m).

        Pixel coordinates start at the upper left corner.
        """
        local = (np.asarray(points, dtype=float) - self.position) @ self.axes().T
        depth = -local[..., 2]
        rise = math.tan(0.5 * self.field_of_view)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = local[..., 0] / (depth * rise * width / height), local[..., 1] / (depth * rise)
        return np.stack([0.5 * (x + 1.0) * width, 0.5 * (1.0 - y) * height], axis=-1), depth

    def moved(self, shift: Vector | Array) -> PinholeCamera:
        """Return a copy of the camera, moved by ``shift`` (m, world frame)."""
        position, target = np.add(self.position, shift), np.add(self.target, shift)
        return replace(self, position=tuple(position.tolist()), target=tuple(target.tolist()))


def frame_bounds(
    center: Vector | Array,
    radius: float,
    aspect: float,
    direction: Vector | None = None,
    field_of_view: float = FIELD_OF_VIEW,
    up: Vector | Array = _UP,
) -> PinholeCamera:
    """Return a camera in which a whole sphere is visible and as large as possible.

    Args:
        center: center of the sphere in the world frame (m).
        radius: radius of the sphere (m).
        aspect: ratio of picture width to height.
        direction: vector from the sphere to the eye, of any nonzero length. Default: from the front, the right and
            above.
        field_of_view: vertical field of view, from the lower to the upper edge (rad).
        up: upward direction in the picture.
    """
    if direction is None:
        direction = (0.55, -1.0, 0.5) if abs(up[2]) > 0.7 else (0.5, 0.45, 1.0)
    half = 0.5 * field_of_view
    narrow = min(half, math.atan(math.tan(half) * aspect))
    away = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    eye = np.asarray(center, dtype=float) + away * max(radius, 1e-6) / math.sin(narrow)
    target = np.asarray(center, dtype=float)
    upwards = tuple(np.asarray(up, dtype=float).tolist())
    return PinholeCamera(tuple(eye.tolist()), tuple(target.tolist()), upwards, field_of_view)


def fitted(camera: PinholeCamera, points: Array, aspect: float) -> PinholeCamera:
    """Return a copy of the camera, moved back along its view axis until all ``points`` (n, 3) are visible.

    The camera never moves forward.
    """
    return _retreat(camera, max(0.0, _needed_retreat(camera, points, aspect)))


def closest(camera: PinholeCamera, points: Array, aspect: float) -> PinholeCamera:
    """Return a copy of the camera, centered on ``points`` (n, 3) and as close as possible.

    All points are visible, and the perspective distortion is small.
    """
    if not len(points):
        return camera
    for _ in range(4):
        camera = _retreat(camera, _needed_retreat(camera, points, aspect))
        local = (np.asarray(points, dtype=float).reshape(-1, 3) - camera.position) @ camera.axes().T
        slopes = local[:, :2] / np.maximum(-local[:, 2:], 1e-9)
        aside = 0.5 * (slopes.min(axis=0) + slopes.max(axis=0)) * camera.distance
        camera = camera.moved(aside @ camera.axes()[:2])
    camera = _retreat(camera, _needed_retreat(camera, points, aspect))
    depth = (np.asarray(points, dtype=float).reshape(-1, 3) - camera.position) @ camera.forward
    return _retreat(camera, max(0.0, (_NEAREST * depth.max() - depth.min()) / (1.0 - _NEAREST)))


def _needed_retreat(camera: PinholeCamera, points: Array, aspect: float) -> float:
    """Return the distance (m) by which the eye must move back so that all points are visible."""
    rise = math.tan(0.5 * camera.field_of_view) * _INSIDE
    local = (np.asarray(points, dtype=float).reshape(-1, 3) - camera.position) @ camera.axes().T
    if not len(local):
        return 0.0
    # visible points: |offset| <= depth * slope of the picture's edge
    needed = np.maximum(np.abs(local[:, 0]) / (rise * aspect), np.abs(local[:, 1]) / rise) + local[:, 2]
    return float(needed.max())


def _retreat(camera: PinholeCamera, back: float) -> PinholeCamera:
    eye = np.subtract(camera.position, max(back, -0.95 * camera.distance) * camera.forward)
    return replace(camera, position=tuple(eye.tolist()))


@dataclass
class OrbitCamera:
    """Camera on a sphere around ``target``, for mouse control.

    Attributes:
        target: center of the sphere in the world frame (m).
        distance: distance from the eye to the target (m).
        azimuth: angle from the x axis to the eye, seen from above (rad).
        elevation: angle of the eye above the horizontal plane (rad).
        field_of_view: vertical field of view, from the lower to the upper edge (rad).
    """

    target: Array
    distance: float
    azimuth: float
    elevation: float
    field_of_view: float = FIELD_OF_VIEW
    _followed: Array | None = None

    @classmethod
    def from_pinhole(cls, camera: PinholeCamera) -> OrbitCamera:
        """Return the orbit camera with the pose of a pinhole camera."""
        away = np.subtract(camera.position, camera.target)
        return cls(
            target=np.array(camera.target),
            distance=camera.distance,
            azimuth=math.atan2(away[1], away[0]),
            elevation=math.asin(np.clip(away[2] / camera.distance, -1.0, 1.0)),
            field_of_view=camera.field_of_view,
        )

    def pinhole(self) -> PinholeCamera:
        """Return the current camera as a pinhole camera."""
        c = math.cos(self.elevation)
        away = np.array([c * math.cos(self.azimuth), c * math.sin(self.azimuth), math.sin(self.elevation)])
        eye = self.target + self.distance * away
        return PinholeCamera(tuple(eye.tolist()), tuple(self.target.tolist()), field_of_view=self.field_of_view)

    def orbit(self, right: float, up: float) -> None:
        """Move the eye around the target by two angles (rad). The elevation stays between -89 and 89 degrees."""
        self.azimuth = math.remainder(self.azimuth + right, math.tau)
        self.elevation = min(max(self.elevation + up, -_STEEPEST), _STEEPEST)

    def pan(self, right: float, up: float) -> None:
        """Move the eye and the target in the picture plane.

        The arguments are lengths relative to the picture height.
        """
        x, y, _ = self.pinhole().axes()
        size = 2.0 * self.distance * math.tan(0.5 * self.field_of_view)
        self.target = self.target + size * (right * x + up * y)

    def zoom(self, factor: float) -> None:
        """Multiply the distance from the target by a positive factor. The distance stays between 0.1 mm and 1000 km.

        Raises:
            ViewerError: the factor is not positive.
        """
        if not factor > 0.0:
            raise ViewerError(f"camera: zoom factor {factor!r} must be above 0")
        self.distance = min(max(self.distance * factor, 1e-4), 1e6)

    def follow(self, point: Vector | Array | None) -> None:
        """Move the camera with a point (m, world frame). Call :meth:`follow` before each picture.

        With ``point`` None, the camera stops following.
        """
        where = None if point is None else np.asarray(point, dtype=float)
        if where is not None and self._followed is not None:
            self.target = self.target + (where - self._followed)
        self._followed = where
