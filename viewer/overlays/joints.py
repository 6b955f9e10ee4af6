"""Overlay of joint frames on parent and child body, and of the axes of motion."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.description.joint_kinds import ANGLE, DISTANCE, TRANSLATION, joint_frames, joint_type
from gpusim.description.specs import JointSpec
from gpusim.model.model import Model
from gpusim.stage.parts import com_of
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, cached_by_stage, register
from gpusim.viewer.overlays.canvas import DASHED, RIMMED, Canvas
from gpusim.viewer.overlays.panels import Row, add_panel

AXIS_COLORS = np.array([(0.88, 0.12, 0.12), (0.10, 0.68, 0.18), (0.15, 0.35, 0.95)])
"""Colors of x, y, z."""
_AXIS = (1.0, 0.80, 0.05)
_SIZE = 0.1
"""Length of a frame's axes, as a fraction of the scene's radius."""
_ARROW_LENGTH = 1.6
"""Half of the length of a drawn joint axis, divided by the length of a frame's axes."""


class JointArrays:
    """Frames and axes of all joints of a model. Free joints are omitted.

    Positions are relative to the centers of mass, in body axes.

    Attributes:
        body: (2, n) indices of the parent and child bodies.
        point: (2, n, 3) origins of the frames (m).
        axes: (2, n, 3, 3) columns are the frames' x, y and z axes.
        move_body, move_point, move_direction: body (m,), point (m, 3) and direction (m, 3) of the m axes of motion.
        move_slides: (m,) True for translation, False for rotation.
        lines: indices of the distance joints.
        count: number n of joints.
    """

    def __init__(self, model: Model) -> None:
        joints = [joint for joint in model.joints if joint_type(joint.kind).holds]
        self.body: Array = np.array([[j.parent for j in joints], [j.child for j in joints]], dtype=np.int64)
        xforms = [[j.parent_xform for j in joints], [j.child_xform for j in joints]]
        coms = [[com_of(model, body) for body in side] for side in self.body]
        shape = (2, len(joints), 3)
        self.point = np.reshape([[x.position for x in side] for side in xforms], shape) - np.reshape(coms, shape)
        self.axes = np.reshape([[x.matrix() for x in side] for side in xforms], (*shape, 3))
        moves = [move for joint in joints for move in _moves(model, joint)]
        self.move_body = np.array([m[0] for m in moves], dtype=np.int64)
        self.move_point = np.reshape([m[1] for m in moves], (-1, 3))
        self.move_direction = np.reshape([m[2] for m in moves], (-1, 3))
        self.move_slides = np.array([m[3] for m in moves], dtype=bool)
        keeps = [DISTANCE in joint_type(joint.kind).kinds(joint) for joint in joints]
        self.lines = np.flatnonzero(np.array(keeps, dtype=bool))
        self.count = len(joints)


def _moves(model: Model, joint: JointSpec) -> list[tuple[int, Array, Array, bool]]:
    """Return lists with one entry per axis of motion: body, point, direction, and True for translation."""
    frames, moves = joint_frames(joint), []
    for coordinate in joint_type(joint.kind).coordinate_list(frames, joint.params):
        if coordinate.kind not in (ANGLE, TRANSLATION):
            continue
        body, point = joint.parent, frames.point_a
        if coordinate.axis_on_child:
            body, point = joint.child, frames.point_b
        moves.append((body, point - com_of(model, body), coordinate.axis, coordinate.kind == TRANSLATION))
    return moves


@cached_by_stage
def joint_arrays(stage: Stage) -> JointArrays:
    """Return the joint arrays of a stage's model."""
    return JointArrays(stage.model)


@register
class JointsOverlay(Overlay):
    """Joint frames.

    Opaque arrows show the joint frame on the child. Faint lines show the joint frame on the parent.

    For hinges and ball joints, the distance between the origins of both frames is the joint error.
    """

    name: ClassVar[str] = "joints"
    key: ClassVar[str] = "j"
    description: ClassVar[str] = "joint frames (x red, y green, z blue) and the axes of motion"

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw joint frames and axes. All pictures of a scene use equal arrow lengths (m)."""
        joints = joint_arrays(frame.stage)
        size = _SIZE * frame.stage.home.radius / max(1.0, np.sqrt(frame.num_worlds))
        origins = [frame.world_points(joints.body[side], joints.point[side]) for side in (0, 1)]
        self._draw_moves(frame, canvas, joints, size)
        start, end = (origin[:, joints.lines].reshape(-1, 3) for origin in origins)
        canvas.lines(start, end, _AXIS, 2.0, top=True, style=DASHED)
        for side, strong in ((0, False), (1, True)):
            axes = frame.poses.rotation[:, joints.body[side]] @ joints.axes[side]
            start = origins[side].reshape(-1, 3)
            for k in range(3):
                end = start + (size if strong else 0.6 * size) * axes[..., k].reshape(-1, 3)
                color = (*AXIS_COLORS[k], 1.0 if strong else 0.55)
                if strong:
                    canvas.arrows(start, end, color, 2.0, top=True)
                else:
                    canvas.lines(start, end, color, 3.6, top=True)
        canvas.disks(origins[1].reshape(-1, 3), (1.0, 1.0, 1.0), 5.0, top=True)
        rows = [Row(name, "", color) for name, color in zip("xyz", AXIS_COLORS, strict=True)]
        add_panel(canvas, f"{joints.count} joint{'s' if joints.count != 1 else ''}", [*rows, Row("motion", "", _AXIS)])

    def _draw_moves(self, frame: Frame, canvas: Canvas, joints: JointArrays, size: float) -> None:
        middle = frame.world_points(joints.move_body, joints.move_point)
        rotation = frame.poses.rotation[:, joints.move_body]
        arrows = _ARROW_LENGTH * size * np.einsum("wnij,nj->wni", rotation, joints.move_direction)
        for slides in (False, True):
            of = joints.move_slides == slides
            at, along = middle[:, of].reshape(-1, 3), arrows[:, of].reshape(-1, 3)
            if slides:
                canvas.arrows(at, at + along, _AXIS, 3.0, top=True)
                canvas.arrows(at, at - along, _AXIS, 3.0, top=True)
            else:
                canvas.lines(at - along, at + along, _AXIS, 3.4, top=True, style=RIMMED)
