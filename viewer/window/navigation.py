"""Camera navigation: orbit, pan, zoom, and following a body."""

from __future__ import annotations

import math

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.camera import OrbitCamera, PinholeCamera

_ANGLE_PER_DRAG = math.pi
"""Orbit angle (rad) for a mouse drag as long as the picture height."""
_ZOOM = 0.88
"""One notch of the mouse wheel multiplies the camera distance by this factor."""


class Navigator:
    """Orbit camera that rotates about the vertical axis.

    Args:
        up: unit vector (3,) against gravity.
    """

    def __init__(self, up: Array) -> None:
        self._up = up
        self._axes = _axes_about(up)
        self._orbit = OrbitCamera(np.zeros(3), 1.0, 0.0, 0.0)
        self._home = self._orbit

    def look(self, camera: PinholeCamera) -> None:
        """Set position, target and field of view to those of ``camera``."""
        rotated = PinholeCamera(
            tuple((self._axes.T @ camera.position).tolist()),
            tuple((self._axes.T @ camera.target).tolist()),
            field_of_view=camera.field_of_view,
        )
        self._orbit = OrbitCamera.from_pinhole(rotated)

    def camera(self) -> PinholeCamera:
        """Return the current camera."""
        seen = self._orbit.pinhole()
        return PinholeCamera(
            tuple((self._axes @ seen.position).tolist()),
            tuple((self._axes @ seen.target).tolist()),
            tuple(self._up.tolist()),
            seen.field_of_view,
        )

    def orbit(self, right: float, down: float) -> None:
        """Rotate the view by a mouse drag. Lengths are relative to the picture height."""
        self._orbit.orbit(-_ANGLE_PER_DRAG * right, _ANGLE_PER_DRAG * down)

    def pan(self, right: float, down: float) -> None:
        """Shift the view by a mouse drag. Lengths are relative to the picture height."""
        self._orbit.pan(-right, down)

    def zoom(self, notches: float) -> None:
        """Zoom in for positive ``notches``, and out for negative ``notches``."""
        self._orbit.zoom(_ZOOM**notches)

    def follow(self, point: Array | None) -> None:
        """Follow a moving point (m, world frame). Call this method in each frame. None stops the following."""
        self._orbit.follow(None if point is None else self._axes.T @ point)


def _axes_about(up: Array) -> Array:
    """Return a rotation matrix (3, 3) whose third column is ``up``."""
    if up[2] > 1.0 - 1e-9:
        return np.eye(3)
    x = np.cross([0.0, 1.0, 0.0], up) if abs(up[1]) < 0.9 else np.cross(up, [1.0, 0.0, 0.0])
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(up, x), up], axis=1)
