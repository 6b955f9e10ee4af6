"""Window with mouse and keyboard control, for a simulation or a recorded motion."""

from __future__ import annotations
