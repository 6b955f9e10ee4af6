"""Where a camera stands so that it shows what a stage holds."""

from __future__ import annotations

from gpusim.errors import unknown_name
from gpusim.scene import Camera
from gpusim.viewer.camera import VIEWS, PinholeCamera, closest, fitted, frame_bounds
from gpusim.viewer.stage import Poses, Stage


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
    up = tuple(stage.up.tolist())
    return fitted(PinholeCamera(camera.position, camera.target, up=up), corners, aspect)
