"""Drawn parts of a model: meshes with colors, and poses for each frame of an animation.

The window, offscreen images, the browser, Rerun and MCAP files all draw a :class:`Stage`.
"""

from __future__ import annotations

from gpusim.stage.frames import Frames
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Batch, Stage

__all__ = ["Batch", "Frames", "Poses", "Stage"]
