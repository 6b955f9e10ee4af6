"""Camera poses that show all drawn objects (the stage)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.errors import unknown_name
from gpusim.scene import Camera
from gpusim.stage.floor import plane_pose
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.viewer.camera import VIEWS, PinholeCamera, closest, fitted, frame_bounds
from gpusim.viewer.camera.mounted import camera_number, mounted_camera
from gpusim.viewer.errors import ViewerError

_MARGIN = 0.02
"""Minimum height of a camera above the ground, divided by the camera's distance from the body that it follows."""


def aimed(stage: Stage, poses: Poses, camera: PinholeCamera | Camera | str, aspect: float) -> PinholeCamera:
    """Convert a camera argument to a PinholeCamera.

    Args:
        stage: stage that the camera shows.
        poses: current poses.
        camera: a PinholeCamera, a scene's Camera, the label of a camera in the model, or the name of a view that shows
            everything. A scene's Camera moves back until everything is visible.
        aspect: ratio of picture width to height.

    Raises:
        UnknownNameError: the view or camera is unknown.
    """
    if isinstance(camera, PinholeCamera):
        return camera
    number = camera_number(stage, camera)
    if number is not None:
        return mounted_camera(stage, poses, stage.model.cameras[number])
    transforms = stage.transforms(poses)
    corners = stage.corners(transforms)
    if isinstance(camera, str):
        if camera not in VIEWS:
            raise unknown_name("camera or view", camera, dict.fromkeys([*stage.model.labels("camera"), *VIEWS]))
        bounds = stage.bounds(transforms)
        wide = frame_bounds(bounds.center, bounds.radius, aspect, VIEWS[camera], up=stage.up)
        return closest(wide, corners, aspect)
    if not isinstance(camera, Camera):
        raise ViewerError(
            f"camera {camera!r} is not a camera; give PinholeCamera(position, target) or a view: {', '.join(VIEWS)}"
        )
    up = tuple(stage.up.tolist())
    return fitted(PinholeCamera(camera.position, camera.target, up=up), corners, aspect)


def home_camera(camera: PinholeCamera | Camera | str | None, num_worlds: int) -> PinholeCamera | Camera | str:
    """Return the initial camera: the requested camera, or the name of a view that shows everything.

    Args:
        camera: requested camera, or None for a view of everything. A view of everything replaces a scene's Camera if
            several worlds are drawn, or if the Camera has default values.
        num_worlds: number of drawn worlds.
    """
    if camera is None or (isinstance(camera, Camera) and (camera == Camera() or num_worlds > 1)):
        return "fit"
    return camera


def above_ground(
    stage: Stage, poses: Poses, camera: PinholeCamera, before: PinholeCamera | None = None
) -> PinholeCamera:
    """Return the camera, raised if it is too close to a horizontal ground.

    Args:
        stage: stage with all drawn objects.
        poses: current poses.
        camera: camera that follows a body, in its current pose.
        before: camera at the time when it started to follow the body. The returned camera may be as low as ``before``.
    """
    eye = np.array(camera.position)
    for ground in stage.grounds:
        if not ground.level:
            continue
        point, _ = plane_pose(ground, poses, 0)
        if float((np.array(camera.target) - point) @ stage.up) < 0.0:
            continue
        min_height = _MARGIN * camera.distance
        if before is not None:
            min_height = min(min_height, float((np.array(before.position) - point) @ stage.up))
        eye = eye + max(0.0, min_height - float((eye - point) @ stage.up)) * stage.up
    return replace(camera, position=tuple(eye.tolist()))
