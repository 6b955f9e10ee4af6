"""Window that shows a simulation or a recorded motion and handles mouse and keyboard."""

from __future__ import annotations
