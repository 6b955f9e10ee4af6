"""View of a window, without OpenGL: the stage, the camera, and the selected or followed body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.model.model import Model
from gpusim.scene import Camera
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.camera.aim import above_ground, aimed, home_camera
from gpusim.viewer.camera.mounted import camera_number, mounted_camera
from gpusim.viewer.window.navigation import Navigator
from gpusim.viewer.window.picking import Hit, Picker


class ViewState:
    """Drawn objects (stage), with a camera that the user moves.

    Args:
        model: the model to draw.
        worlds: indices of the drawn worlds.
        poses: poses of the drawn worlds.
        width, height: size of the scene's area in the window, in cursor units.
        camera: a camera, the name of a view, or None for a camera that shows everything.
        visuals, decoration: see :class:`Stage`.

    Attributes:
        stage: stage with all drawn objects.
        worlds: indices of the drawn worlds.
        poses: poses of the current frame.
        navigator: camera navigation.
        width, height: current size of the scene's area, in cursor units.
        picked: the selected body, or None.
        followed: the body that the camera follows, or None.
        mounted: index of the model's camera in use, or None for the user's camera.
    """

    def __init__(
        self,
        model: Model,
        worlds: list[int],
        poses: Poses,
        width: int,
        height: int,
        camera: PinholeCamera | Camera | str | None = None,
        visuals: bool = True,
        decoration: bool = True,
    ) -> None:
        self.stage = Stage(model, len(worlds), decoration, visuals)
        self.worlds, self.poses = worlds, poses
        self.width, self.height = width, height
        self.navigator = Navigator(self.stage.up)
        self._home = home_camera(camera, len(worlds))
        self._picker = Picker(self.stage)
        self.picked: Hit | None = None
        self.followed: Hit | None = None
        self.mounted: int | None = None
        self.home()

    @property
    def aspect(self) -> float:
        """Ratio of width to height."""
        return self.width / self.height

    def home(self) -> None:
        """Move the camera to its home pose and stop following."""
        self.follow(None)
        self.navigator.look(aimed(self.stage, self.poses, self._home, self.aspect))
        self.mounted = camera_number(self.stage, self._home)
        if isinstance(self._home, str) and self.mounted is None:
            self.navigator.zoom(-1.0)  # leaves space for motion

    def camera(self) -> PinholeCamera:
        """Return the current camera. A camera that follows a body stays above the ground."""
        if self.mounted is not None:
            return mounted_camera(self.stage, self.poses, self.stage.model.cameras[self.mounted])
        camera = self.navigator.camera()
        return camera if self.followed is None else above_ground(self.stage, self.poses, camera)

    def next_camera(self) -> str:
        """Change to the next camera of the model.

        After the model's last camera, change to the user's camera in its home pose. Return a message for the user.
        """
        cameras = self.stage.model.cameras
        if not cameras:
            return "the model has no cameras"
        number = 0 if self.mounted is None else self.mounted + 1
        if number == len(cameras):
            self.home()
            self.release()
            return "your camera"
        self.follow(None)
        self.mounted = number
        return f"camera {cameras[number].label} ({number + 1} of {len(cameras)})"

    def release(self) -> None:
        """Change from the model's camera to the user's camera, without a change of pose."""
        if self.mounted is not None:
            self.navigator.look(self.camera())
            self.mounted = None

    def show(self, poses: Poses) -> None:
        """Set the poses of the next frame. If the camera follows a body, move the camera with the body."""
        self.poses = poses
        if self.followed is not None:
            self.navigator.follow(self.center(self.followed))

    def center(self, hit: Hit) -> Array:
        """Return the center of mass of a body (m), with the grid offset of the world in the picture."""
        return np.asarray(self.poses.position[hit.world, hit.body] + self.stage.offsets[hit.world])

    def follow(self, hit: Hit | None) -> None:
        """Start following a body. With ``hit`` None, the camera stops following."""
        self.release()
        self.followed = hit
        self.navigator.follow(None)
        if hit is not None:
            self.navigator.follow(self.center(hit))

    def follow_body(self, label: str) -> None:
        """Move a body of the first drawn world to the center of the picture, and follow the body.

        Raises:
            UnknownNameError: the body is unknown.
        """
        hit = Hit(self.stage.model.index("body", label), 0, np.zeros(3), 0.0)
        center, camera = self.center(hit), self.camera()
        self.navigator.look(camera.moved(center - camera.target))
        self.follow(hit)

    def copy_camera_from(self, before: ViewState) -> None:
        """Copy the camera of ``before``. If ``before`` follows a body, follow the body with the same label."""
        self.navigator = before.navigator
        labels = self.stage.model.labels("body")
        followed = before.followed
        label = before.stage.model.bodies[followed.body].label if followed is not None else ""
        if followed is not None and label in labels:
            self.followed = replace(followed, body=labels.index(label))
        else:
            self.follow(None)
        mounted = None if before.mounted is None else before.stage.model.cameras[before.mounted].label
        self.mounted = camera_number(self.stage, mounted)

    def ray(self, x: float, y: float) -> Array:
        """Return the direction (3,) of the ray from the eye through the point (x, y) of the scene's area."""
        return self.camera().pixel_ray(np.array(x), np.array(y), self.width, self.height)

    def pick(self, x: float, y: float) -> Hit | None:
        """Return the visible body at a point of the scene's area, or None if no body is visible there."""
        transforms = self.stage.transforms(self.poses)
        return self._picker.pick(transforms, self.poses, np.array(self.camera().position), self.ray(x, y))

    def on_plane(self, x: float, y: float, point: Array) -> Array:
        """Return the point under the cursor (m).

        The point is in the plane through ``point`` that is parallel to the picture.
        """
        camera, ray = self.camera(), self.ray(x, y)
        depth = float((point - camera.position) @ camera.forward)
        hit: Array = np.array(camera.position) + ray * (depth / float(ray @ camera.forward))
        return hit
