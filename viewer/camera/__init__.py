"""Cameras, and camera poses that show all drawn objects (the stage). This package uses only NumPy."""

from __future__ import annotations

from gpusim.viewer.camera.cameras import VIEWS, OrbitCamera, PinholeCamera, closest, fitted, frame_bounds

__all__ = ["VIEWS", "OrbitCamera", "PinholeCamera", "closest", "fitted", "frame_bounds"]
