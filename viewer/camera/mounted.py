"""Cameras of a model, which move with their bodies."""

from __future__ import annotations

import numpy as np

from gpusim.description.viewing import CameraSpec
from gpusim.stage.parts import frame_in_world
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.viewer.camera import PinholeCamera


def mounted_camera(stage: Stage, poses: Poses, camera: CameraSpec, world: int = 0) -> PinholeCamera:
    """Return a model's camera as a PinholeCamera, with its current pose in one of the drawn worlds."""
    position, axes = frame_in_world(stage.model, poses, camera.body, camera.xform, world)
    eye = position + stage.offsets[world]
    distance = max(float(np.linalg.norm(stage.home.center - eye)), stage.home.radius)
    target = eye - distance * axes[:, 2]
    return PinholeCamera(tuple(eye.tolist()), tuple(target.tolist()), tuple(axes[:, 1].tolist()), camera.fov_y)


def camera_number(stage: Stage, name: object) -> int | None:
    """Return the index of the model's camera with this label, or None."""
    labels = [camera.label for camera in stage.model.cameras]
    return labels.index(name) if isinstance(name, str) and name in labels else None
