"""Where a camera stands so that it shows what a stage holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.errors import unknown_name
from gpusim.scene import Camera
from gpusim.viewer.camera import VIEWS, PinholeCamera, closest, fitted, frame_bounds
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.scene.floor import place_of
from gpusim.viewer.scene.poses import Poses
from gpusim.viewer.scene.stage import Stage

_MARGIN = 0.02
"""How far above the ground the eye of a camera that follows a body stays, in distances from its target."""


def aimed(stage: Stage, poses: Poses, camera: PinholeCamera | Camera | str, aspect: float) -> PinholeCamera:
    """The camera for a wish.

    Args:
        stage: what is seen.
        poses: where it is.
        camera: a PinholeCamera as it is; a scene's Camera, moved back until everything is in the picture; or a named
            view that shows everything.
        aspect: width over height of the picture.

    Raises:
        UnknownNameError: no such view.
    """
    if isinstance(camera, PinholeCamera):
        return camera
    transforms = stage.transforms(poses)
    corners = stage.corners(transforms)
    if isinstance(camera, str):
        if camera not in VIEWS:
            raise unknown_name("view", camera, VIEWS)
        bounds = stage.bounds(transforms)
        wide = frame_bounds(bounds.center, bounds.radius, aspect, VIEWS[camera], up=stage.up)
        return closest(wide, corners, aspect)
    if not isinstance(camera, Camera):
        raise ViewerError(
            f"camera {camera!r} is no camera; give PinholeCamera(position, target) or a view: {', '.join(VIEWS)}"
        )
    up = tuple(stage.up.tolist())
    return fitted(PinholeCamera(camera.position, camera.target, up=up), corners, aspect)


def home_camera(camera: PinholeCamera | Camera | str | None, num_worlds: int) -> PinholeCamera | Camera | str:
    """What is seen at first.

    Args:
        camera: wished; None for no wish. A scene's is for one world, and one that it has not set itself (robots) is
            nobody's.
        num_worlds: how many are drawn.
    """
    if camera is None or (isinstance(camera, Camera) and (camera == Camera() or num_worlds > 1)):
        return "fit"
    return camera


def above_ground(
    stage: Stage, poses: Poses, camera: PinholeCamera, before: PinholeCamera | None = None
) -> PinholeCamera:
    """A camera that has gone along with a body, with its eye raised where it would dive through a level ground.

    It dives where the body does: through a floor that is drawn for the picture alone.

    Args:
        stage: what is seen.
        poses: where it is.
        camera: where the body has taken it.
        before: where it was when it began to follow: an eye that was below the ground then may be so now; None: it
            may not.
    """
    eye = np.array(camera.position)
    for ground in stage.grounds:
        if not ground.level:
            continue
        point, _ = place_of(ground, poses, 0)
        if float((np.array(camera.target) - point) @ stage.up) < 0.0:
            continue
        least = _MARGIN * camera.distance
        if before is not None:
            least = min(least, float((np.array(before.position) - point) @ stage.up))
        eye = eye + max(0.0, least - float((eye - point) @ stage.up)) * stage.up
    return replace(camera, position=tuple(eye.tolist()))
