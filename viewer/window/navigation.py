"""Steering the camera: an orbit around a point, home, and going along with a body."""

from __future__ import annotations

import math

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.camera import OrbitCamera, PinholeCamera

_TURN = math.pi
"""Angle of an orbit for a drag over the height of the picture, rad."""
_ZOOM = 0.88
"""Factor of the distance for one notch of the wheel."""


class Navigator:
    """An orbit camera about the stage's own vertical.

    Args:
        up: against gravity, unit vector (3,).
    """

    def __init__(self, up: Array) -> None:
        self._up = up
        self._axes = _axes_about(up)
        self._orbit = OrbitCamera(np.zeros(3), 1.0, 0.0, 0.0)
        self._home = self._orbit

    def look(self, camera: PinholeCamera) -> None:
        """Stand where ``camera`` does."""
        turned = PinholeCamera(
            tuple((self._axes.T @ camera.position).tolist()),
            tuple((self._axes.T @ camera.target).tolist()),
            field_of_view=camera.field_of_view,
        )
        self._orbit = OrbitCamera.from_pinhole(turned)

    def camera(self) -> PinholeCamera:
        """The camera at this moment."""
        seen = self._orbit.pinhole()
        return PinholeCamera(
            tuple((self._axes @ seen.position).tolist()),
            tuple((self._axes @ seen.target).tolist()),
            tuple(self._up.tolist()),
            seen.field_of_view,
        )

    def orbit(self, right: float, down: float) -> None:
        """Turn the scene with a drag, in heights of the picture."""
        self._orbit.orbit(-_TURN * right, _TURN * down)

    def pan(self, right: float, down: float) -> None:
        """Shift the scene with a drag, in heights of the picture."""
        self._orbit.pan(-right, down)

    def zoom(self, notches: float) -> None:
        """Closer, or farther below 0."""
        self._orbit.zoom(_ZOOM**notches)

    def follow(self, point: Array | None) -> None:
        """Go along with a moving point (m, world frame), called for each frame; None: stand still."""
        self._orbit.follow(None if point is None else self._axes.T @ point)


def _axes_about(up: Array) -> Array:
    """(3, 3) whose columns are right-handed axes with ``up`` as the third; the world's own where up is z."""
    if up[2] > 1.0 - 1e-9:
        return np.eye(3)
    x = np.cross([0.0, 1.0, 0.0], up) if abs(up[1]) < 0.9 else np.cross(up, [1.0, 0.0, 0.0])
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(up, x), up], axis=1)
