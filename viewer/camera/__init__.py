"""From where it is seen: cameras, and where one stands so that it shows what a stage holds. NumPy alone."""

from __future__ import annotations

from gpusim.viewer.camera.cameras import VIEWS, OrbitCamera, PinholeCamera, closest, fitted, frame_bounds

__all__ = ["VIEWS", "OrbitCamera", "PinholeCamera", "closest", "fitted", "frame_bounds"]
