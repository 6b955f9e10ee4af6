"""Cameras: a pinhole, and an orbit around a point that a person steers. Pure mathematics, no OpenGL.

Camera axes: x to the right, y up, z backwards (towards the viewer); lengths in m, angles in rad, world frame z up.
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
"""Named views that show everything: directions to the eye where up is z; None: from the front, the right and above."""
FIELD_OF_VIEW = math.radians(36.0)
_INSIDE = 0.93
"""Share of the picture that subjects may fill."""
_NEAREST = 0.4
"""Least depth of what a named view shows, as a share of the greatest: closer, perspective swells what is in front."""
_STEEPEST = math.radians(89.0)
_UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class PinholeCamera:
    """An ideal camera at ``position`` that looks at ``target``.

    Attributes:
        position: of the eye, world frame, m.
        target: a point in the middle of the picture, world frame, m.
        up: direction that points upwards in the picture; another one is taken where it is the view's own.
        field_of_view: angle from the lower to the upper edge, rad.

    Raises:
        ViewerError: not finite, eye and target coincide, or an angle outside 0 to pi.
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
        """From eye to target, m."""
        return math.dist(self.position, self.target)

    @property
    def forward(self) -> Array:
        """Unit vector from eye to target, (3,)."""
        return np.subtract(self.target, self.position) / self.distance

    def axes(self) -> Array:
        """Rows: the camera's x, y, z axes in the world frame, (3, 3); turns world vectors into camera vectors."""
        back = -self.forward
        right = np.cross(self.up, back)
        if np.linalg.norm(right) < 1e-6 * np.linalg.norm(self.up):
            right = np.cross((0.0, 1.0, 0.0) if abs(back[1]) < 0.9 else (1.0, 0.0, 0.0), back)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(back, right), back])

    def projection(self, aspect: float, near: float, far: float) -> Array:
        """OpenGL's matrix from camera coordinates to clip coordinates, (4, 4); ``aspect`` is width over height."""
        f = 1.0 / math.tan(0.5 * self.field_of_view)
        matrix = np.zeros((4, 4))
        matrix[0, 0], matrix[1, 1] = f / aspect, f
        matrix[2, 2], matrix[2, 3] = (far + near) / (near - far), 2.0 * far * near / (near - far)
        matrix[3, 2] = -1.0
        return matrix

    def to_clip(self, aspect: float, near: float, far: float) -> Array:
        """From positions relative to the eye (world axes) to clip coordinates, (4, 4)."""
        turn = np.eye(4)
        turn[:3, :3] = self.axes()
        return self.projection(aspect, near, far) @ turn

    def pixel_ray(self, u: Array, v: Array, width: int, height: int) -> Array:
        """Unit vectors (..., 3) in the world frame through points of the picture, pixels from its upper left corner."""
        rise = math.tan(0.5 * self.field_of_view)
        x = (2.0 * np.asarray(u, dtype=float) / width - 1.0) * rise * width / height
        y = (1.0 - 2.0 * np.asarray(v, dtype=float) / height) * rise
        x, y = np.broadcast_arrays(x, y)
        rays = np.stack([x, y, -np.ones_like(x)], axis=-1) @ self.axes()
        unit: Array = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
        return unit

    def project(self, points: Vector | Array, width: int, height: int) -> tuple[Array, Array]:
        """Pixels (..., 2) from the upper left corner, and depths (...) along the view axis in m, of world points."""
        local = (np.asarray(points, dtype=float) - self.position) @ self.axes().T
        depth = -local[..., 2]
        rise = math.tan(0.5 * self.field_of_view)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = local[..., 0] / (depth * rise * width / height), local[..., 1] / (depth * rise)
        return np.stack([0.5 * (x + 1.0) * width, 0.5 * (1.0 - y) * height], axis=-1), depth

    def moved(self, shift: Vector | Array) -> PinholeCamera:
        """The same view from a place ``shift`` (m, world frame) away."""
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
    """The camera that shows a sphere of ``radius`` about ``center`` as large as the picture allows.

    Args:
        center: m, world frame.
        radius: m.
        aspect: width over height of the picture.
        direction: from the sphere to the eye, any length but zero; left out: from the front, the right and above.
        field_of_view: from the lower to the upper edge, rad.
        up: direction that points upwards in the picture.
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
    """The camera moved back along its view until all ``points`` (n, 3) are in the picture; never forward."""
    return _retreat(camera, max(0.0, _needed_retreat(camera, points, aspect)))


def closest(camera: PinholeCamera, points: Array, aspect: float) -> PinholeCamera:
    """The camera moved along its view, and sideways to the middle of ``points``, as close as all of them allow.

    It keeps away so far that the nearest point is not much nearer than the farthest.
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
    """How far the eye must go back for all points to be in the picture, m; below 0 where it may come closer."""
    rise = math.tan(0.5 * camera.field_of_view) * _INSIDE
    local = (np.asarray(points, dtype=float).reshape(-1, 3) - camera.position) @ camera.axes().T
    if not len(local):
        return 0.0
    # a point is inside where its offset is at most its depth times the opening; moving back adds to the depth
    needed = np.maximum(np.abs(local[:, 0]) / (rise * aspect), np.abs(local[:, 1]) / rise) + local[:, 2]
    return float(needed.max())


def _retreat(camera: PinholeCamera, back: float) -> PinholeCamera:
    eye = np.subtract(camera.position, max(back, -0.95 * camera.distance) * camera.forward)
    return replace(camera, position=tuple(eye.tolist()))


@dataclass
class OrbitCamera:
    """A camera on a sphere around ``target``, as a mouse steers it.

    Attributes:
        target: m, world frame.
        distance: m.
        azimuth: from the x axis to the eye, seen from above, rad.
        elevation: of the eye over the horizontal plane, rad.
        field_of_view: from the lower to the upper edge, rad.
    """

    target: Array
    distance: float
    azimuth: float
    elevation: float
    field_of_view: float = FIELD_OF_VIEW
    _followed: Array | None = None

    @classmethod
    def from_pinhole(cls, camera: PinholeCamera) -> OrbitCamera:
        """The orbit on which a camera stands."""
        away = np.subtract(camera.position, camera.target)
        return cls(
            target=np.array(camera.target),
            distance=camera.distance,
            azimuth=math.atan2(away[1], away[0]),
            elevation=math.asin(np.clip(away[2] / camera.distance, -1.0, 1.0)),
            field_of_view=camera.field_of_view,
        )

    def pinhole(self) -> PinholeCamera:
        """The camera at this moment."""
        c = math.cos(self.elevation)
        away = np.array([c * math.cos(self.azimuth), c * math.sin(self.azimuth), math.sin(self.elevation)])
        eye = self.target + self.distance * away
        return PinholeCamera(tuple(eye.tolist()), tuple(self.target.tolist()), field_of_view=self.field_of_view)

    def orbit(self, right: float, up: float) -> None:
        """Move the eye around the target by angles, rad; it stops short of the poles."""
        self.azimuth = math.remainder(self.azimuth + right, math.tau)
        self.elevation = min(max(self.elevation + up, -_STEEPEST), _STEEPEST)

    def pan(self, right: float, up: float) -> None:
        """Move eye and target in the picture's plane, by shares of the picture's height at the target."""
        x, y, _ = self.pinhole().axes()
        size = 2.0 * self.distance * math.tan(0.5 * self.field_of_view)
        self.target = self.target + size * (right * x + up * y)

    def zoom(self, factor: float) -> None:
        """Multiply the distance from the target by a factor above 0.

        Raises:
            ViewerError: the factor is not above 0.
        """
        if not factor > 0.0:
            raise ViewerError(f"camera: zoom factor {factor!r} must be above 0")
        self.distance = min(max(self.distance * factor, 1e-4), 1e6)

    def follow(self, point: Vector | Array | None) -> None:
        """Go along with a moving point, to be called with its position before each picture; None: no longer.

        The view keeps its offset from the point, so that following starts without a jump.
        """
        where = None if point is None else np.asarray(point, dtype=float)
        if where is not None and self._followed is not None:
            self.target = self.target + (where - self._followed)
        self._followed = where
