"""Convert the drawn objects of a model to entities of a Rerun recording.

The stream contains each mesh once. Every sample contains the poses of all bodies, and of all elements between two
bodies (spring, rope, cylinder).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.stage import Batch, Poses, Stage
from gpusim.stage.meshes import TriangleMesh
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model

_SEGMENTS = 24
_GROUND = (150, 150, 145, 255)


def entity(*parts: str) -> str:
    """Join names to the path of an entity. The names may contain any characters."""
    import rerun as rr

    return str(rr.new_entity_path(list(parts)))


class RerunScene:
    """Rerun entities for all drawn objects of a model in one world.

    A mesh on a body is the entity ``/scene/BODY/NUMBER``. The pose of a mesh entity is relative to the body frame. An
    element between two bodies (spring, rope, cylinder) is the entity ``/scene/spans/NUMBER``.

    Args:
        stream: recording stream. The constructor sends the meshes to ``stream``.
        model: the model to draw.
    """

    def __init__(self, stream: Any, model: Model) -> None:
        import rerun as rr

        self._stream, self._model, self.stage = stream, model, Stage(model)
        self._bodies = [entity("scene", body.label) for body in model.bodies]
        up = "RIGHT_HAND_Y_UP" if np.argmax(np.abs(self.stage.up)) == 1 else "RIGHT_HAND_Z_UP"
        stream.log("scene", getattr(rr.ViewCoordinates, up), static=True)
        self._log_grounds()
        # index of each instance among the fixed instances or among the spans
        row_of_instance = np.where(self.stage.fixed, np.cumsum(self.stage.fixed), np.cumsum(~self.stage.fixed)) - 1
        self._spans: list[tuple[str, Array]] = []
        for batch in self.stage.batches:
            self._log_batch(batch, row_of_instance)

    def _parent(self, body: int) -> list[str]:
        return ["scene", *([self._model.bodies[body].label] if body >= 0 else [])]

    def _log_grounds(self) -> None:
        import rerun as rr

        for k, ground in enumerate(self.stage.grounds):
            finish = ground.finish
            color = _GROUND if finish is None else tuple(round(255 * c) for c in (*finish.color, finish.alpha))
            square = rr.Mesh3D(
                vertex_positions=self.stage.ground_square(ground),
                triangle_indices=[[0, 1, 2], [0, 2, 3]],
                albedo_factor=color,
            )
            self._stream.log(entity(*self._parent(ground.body), f"ground_{k}"), square, static=True)

    def _log_batch(self, batch: Batch, row_of_instance: Array) -> None:
        """Send the mesh of a batch once for each combination of body and color."""
        import rerun as rr

        stage, mesh = self.stage, batch.mesh.make(_SEGMENTS)
        local = stage.local_transforms()
        kinds = np.column_stack([np.where(stage.fixed, stage.body, -2), stage.rgba()])[batch.at]
        every = np.arange(batch.first, batch.first + batch.count)
        for body, *color in np.unique(kinds, axis=0).tolist():
            members = every[(kinds == [body, *color]).all(axis=1)]
            parent = ["scene", "spans"] if body == -2 else self._parent(body)
            path = entity(*parent, str(members[0]))
            self._stream.log(path, _mesh(batch, mesh, color), static=True)
            if body == -2:
                self._spans.append((path, row_of_instance[members]))
            else:
                rows = local[row_of_instance[members]]
                poses = rr.InstancePoses3D(translations=rows[:, :, 3], mat3x3=rows[:, :, :3])
                self._stream.log(path, poses, static=True)

    def write(self, times: Any, poses: Array) -> None:
        """Append samples.

        Args:
            times: Rerun's time column for the samples.
            poses: position (m) and quaternion (xyzw) of each body frame (samples, bodies, 7).
        """
        import rerun as rr

        for body, path in enumerate(self._bodies):
            columns = rr.Transform3D.columns(translation=poses[:, body, :3], quaternion=poses[:, body, 3:])
            rr.send_columns(path, [times], columns, recording=self._stream)
        if not self._spans:
            return
        rows = self.stage.span_courses(Poses.from_body_frames(self._model, poses[..., :3], poses[..., 3:]))
        for path, rows_of_span in self._spans:
            flat = rows[:, rows_of_span].reshape(-1, 3, 4)
            columns = rr.InstancePoses3D.columns(translations=flat[:, :, 3], mat3x3=flat[:, :, :3])
            rr.send_columns(path, [times], columns.partition([len(rows_of_span)] * len(poses)), recording=self._stream)


def _mesh(batch: Batch, mesh: TriangleMesh, color: list[int]) -> Any:
    import rerun as rr

    looks: dict[str, Any] = {"albedo_factor": color}
    if batch.picture is not None and mesh.texcoords is not None:
        looks["albedo_texture"] = batch.picture.pixels
        looks["vertex_texcoords"] = mesh.texcoords[:, :2] * [1.0, -1.0] + [0.0, 1.0]
    if mesh.colors is not None:
        looks["vertex_colors"] = mesh.colors
    return rr.Mesh3D(
        vertex_positions=mesh.positions, vertex_normals=mesh.normals, triangle_indices=mesh.triangles, **looks
    )
