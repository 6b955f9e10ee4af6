"""World-aligned bounding boxes of shapes, without the margin of the broad phase."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.reference.collide.pairs import all_bounds
from gpusim.reference.collide.shapes import Shape, model_shapes
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, cached_by_stage, register
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.panels import Row, add_panel

_COLOR = (0.05, 0.45, 0.85)
_CORNERS = np.array([[(k >> j) & 1 for j in range(3)] for k in range(8)], dtype=float)
_EDGES = np.array([(k, k | 1 << j) for k in range(8) for j in range(3) if not k >> j & 1])
_ENDLESS = 1e9


def shape_bounds(stage: Stage, poses: Poses) -> tuple[Array, Array]:
    """Return two arrays (worlds, shapes, 3), m: lower and upper corners of the shapes' boxes in the world frame.

    Infinite shapes get very large boxes.
    """
    shapes = stage.model.contact
    rotation = poses.rotation[:, shapes.body]
    position = poses.position[:, shapes.body] + np.einsum("wnij,nj->wni", rotation, shapes.center)
    matrix = (rotation @ shapes.rotation.reshape(-1, 3, 3)).reshape(*rotation.shape[:2], 9)
    lower, upper = np.empty_like(position), np.empty_like(position)
    all_bounds(_shapes(stage), position, matrix, lower, upper)
    return lower, upper


@cached_by_stage
def _shapes(stage: Stage) -> list[Shape]:
    return model_shapes(stage.model.contact)


def box_edges(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return two arrays (12 n, 3) for the edges of n boxes: start points and end points."""
    corners = lower[:, None] + _CORNERS * (upper - lower)[:, None]
    return corners[:, _EDGES[:, 0]].reshape(-1, 3), corners[:, _EDGES[:, 1]].reshape(-1, 3)


@register
class BoxesOverlay(Overlay):
    """World-aligned bounding boxes of all shapes. Planes have no box."""

    name: ClassVar[str] = "boxes"
    key: ClassVar[str] = "b"
    description: ClassVar[str] = "world-aligned bounding boxes of the shapes"

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the twelve edges of each box."""
        if not frame.model.shapes:
            add_panel(canvas, "no shapes, no boxes", [])
            return
        lower, upper = (bound + frame.stage.offsets[:, None] for bound in shape_bounds(frame.stage, frame.poses))
        bounded = np.all(np.abs(upper - lower) < _ENDLESS, axis=2)
        canvas.lines(*box_edges(lower[bounded], upper[bounded]), _COLOR, 1.4)
        add_panel(canvas, "", [Row("bounding boxes", str(int(bounded.sum())), _COLOR)])
