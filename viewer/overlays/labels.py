"""Names next to the bodies."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import INK, PAPER, Canvas
from gpusim.viewer.overlays.label_layout import arrange_boxes

_MAX_LABELS = 150
"""Maximum number of labels."""


@register
class LabelsOverlay(Overlay):
    """Labels of bodies. The nearest bodies get labels first. Without free space, a body has no label."""

    name: ClassVar[str] = "labels"
    key: ClassVar[str] = "l"
    description: ClassVar[str] = "labels of the bodies"
    floats: ClassVar[bool] = True

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """For each label, draw text with a halo, and a line to the center of mass."""
        bodies = frame.model.bodies
        points = frame.coms[:, : len(bodies)].reshape(-1, 3)
        pixel, inside = canvas.project(points)
        distance = np.linalg.norm(points - np.array(frame.camera.position), axis=1)
        nearest = np.argsort(distance, kind="stable")
        order = nearest[inside[nearest]][:_MAX_LABELS]
        texts = [bodies[k % len(bodies)].label for k in order]
        height = canvas.atlas.line_height
        sizes = np.reshape([(canvas.atlas.width(text) + 2, height) for text in texts], (-1, 2))
        boxes = arrange_boxes(pixel[order], sizes, canvas.width, canvas.height, canvas.taken)
        shown = [(k, text, box) for k, text, box in zip(order, texts, boxes, strict=True) if box is not None]
        canvas.pointers(pixel[[k for k, _, _ in shown]], [box for _, _, box in shown])
        for _, text, box in shown:
            canvas.taken.append(box)
            canvas.text(box.x + 1, box.y + canvas.atlas.ascent, text, INK, (*PAPER, 0.9))
