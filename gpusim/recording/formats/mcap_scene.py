"""Convert the drawn objects of a model to Foxglove messages: meshes, and cylinders for elements between two bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.stage import Frames, Poses, Stage
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model

_SEGMENTS = 24
_GROUND = (150, 150, 145, 255)


class McapScene:
    """Foxglove messages for all drawn objects of a model in one world.

    Args:
        model: the model to draw.

    Attributes:
        stage: drawn objects of the model.
    """

    def __init__(self, model: Model) -> None:
        self._model, self.stage = model, Stage(model)
        self._colors = (self.stage.rgba()[~self.stage.fixed] / 255.0).tolist()

    def meshes(self) -> bytes:
        """Return a SceneUpdate message with the triangles of all bodies and ground planes."""
        from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate

        scene, stage = SceneUpdate(), self.stage
        rgba = stage.rgba()
        local = np.zeros((len(stage), 3, 4))
        local[stage.fixed] = stage.local_transforms()
        for batch in stage.batches:
            mesh = batch.mesh.make(_SEGMENTS)
            for k in range(batch.first, batch.first + batch.count):
                if stage.fixed[k]:
                    points = mesh.positions @ local[k, :, :3].T + local[k, :, 3]
                    self._add(scene, int(stage.body[k]), f"mesh_{k}", points, mesh.triangles, rgba[k])
        for k, ground in enumerate(stage.grounds):
            color = _GROUND if ground.finish is None else [*(255 * c for c in ground.finish.color), 255]
            triangles = np.array([[0, 1, 2], [0, 2, 3]])
            self._add(scene, ground.body, f"ground_{k}", stage.ground_square(ground), triangles, np.asarray(color))
        return bytes(scene.SerializeToString())

    def _add(self, scene: Any, body: int, name: str, points: Array, triangles: Array, rgba: Array) -> None:
        frame = "world" if body < 0 else self._model.bodies[body].label
        entity = scene.entities.add(frame_id=frame, id=name, frame_locked=True)
        drawn = entity.triangles.add()
        _paint(drawn.color, (np.asarray(rgba) / 255.0).tolist())
        drawn.indices.extend(np.ravel(triangles).tolist())
        for x, y, z in points.tolist():
            drawn.points.add(x=x, y=y, z=z)

    def spans(self, poses: Array, dtype: str) -> list[bytes]:
        """Return one SceneUpdate message per sample, with a cylinder for each element between two bodies.

        Args:
            poses: position (m) and quaternion (xyzw) of each body frame (samples, bodies, 7).
            dtype: precision of the numbers, "float64" or "float32".
        """
        from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate

        message, found = SceneUpdate(), []
        entity = message.entities.add(frame_id="world", id="spans")
        cylinders = [entity.cylinders.add(bottom_scale=1.0, top_scale=1.0) for _ in self._colors]
        for cylinder, color in zip(cylinders, self._colors, strict=True):
            _paint(cylinder.color, color)
        rows = self.stage.span_courses(Poses.from_body_frames(self._model, poses[..., :3], poses[..., 3:]))
        frames = Frames.from_transforms(rows.reshape(-1, 3, 4))
        middle = frames.position + 0.5 * rows.reshape(-1, 3, 4)[:, :, 2]  # meshes of spans reach from z = 0 to 1
        flat = np.concatenate([middle, frames.quaternion, frames.scale * [2.0, 2.0, 1.0]], axis=1)
        for numbers in rounded(flat.reshape(len(poses), -1, 10), dtype).tolist():
            for cylinder, (x, y, z, a, b, c, d, width, depth, length) in zip(cylinders, numbers, strict=True):
                position, orientation, extent = cylinder.pose.position, cylinder.pose.orientation, cylinder.size
                position.x, position.y, position.z = x, y, z
                orientation.x, orientation.y, orientation.z, orientation.w = a, b, c, d
                extent.x, extent.y, extent.z = width, depth, length
            found.append(message.SerializeToString())
        return found


def rounded(numbers: Array, dtype: str) -> Array:
    """Return numbers as float64, rounded if necessary.

    With ``dtype`` "float32", round to float32, then to multiples of 2^-24.
    """
    return numbers if dtype == "float64" else np.rint(numbers.astype(np.float32) * 2.0**24) * 2.0**-24


def transforms(poses: Array, bodies: tuple[str, ...], times: list[int]) -> list[bytes]:
    """Return a FrameTransforms message for each sample. ``times`` are in ns."""
    from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms

    message, found = FrameTransforms(), []
    frames = [message.transforms.add(parent_frame_id="world", child_frame_id=body) for body in bodies]
    for time, rows in zip(times, poses.tolist(), strict=True):
        for frame, (x, y, z, a, b, c, d) in zip(frames, rows, strict=True):
            frame.timestamp.seconds, frame.timestamp.nanos = divmod(time, 10**9)
            translation, rotation = frame.translation, frame.rotation
            translation.x, translation.y, translation.z = x, y, z
            rotation.x, rotation.y, rotation.z, rotation.w = a, b, c, d
        found.append(message.SerializeToString())
    return found


def _paint(color: Any, rgba: list[float]) -> None:
    color.r, color.g, color.b, color.a = rgba
