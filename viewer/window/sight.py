"""What a window looks at: the stage, the camera, the body that is picked or followed. No OpenGL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.model.model import Model
from gpusim.scene import Camera
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.camera.aim import above_ground, aimed, home_camera
from gpusim.viewer.scene.poses import Poses
from gpusim.viewer.scene.stage import Stage
from gpusim.viewer.window.navigation import Navigator
from gpusim.viewer.window.picking import Hit, Picker


class Sight:
    """A stage and a camera that a person steers.

    Args:
        model: what is seen.
        worlds: numbers of the worlds that are drawn.
        poses: of these worlds.
        width, height: of the window, in the units of the cursor.
        camera: of the scene, or another one, or the name of a view; None for one that shows everything.
        visuals: see :class:`Stage`.

    Attributes:
        stage: everything that is drawn.
        worlds: numbers of the worlds that are drawn.
        poses: of the frame.
        navigator: the camera's steering.
        width, height: of the window.
        picked: the body that was clicked, None for none.
        followed: the body with which the camera goes along, None for none.
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
    ) -> None:
        self.stage = Stage(model, len(worlds), visuals=visuals)
        self.worlds, self.poses = worlds, poses
        self.width, self.height = width, height
        self.navigator = Navigator(self.stage.up)
        self._home = home_camera(camera, len(worlds))
        self._picker = Picker(self.stage)
        self.picked: Hit | None = None
        self.followed: Hit | None = None
        self.home()

    @property
    def aspect(self) -> float:
        """Width over height."""
        return self.width / self.height

    def home(self) -> None:
        """Stand where everything is seen, and follow nothing."""
        self.follow(None)
        self.navigator.look(aimed(self.stage, self.poses, self._home, self.aspect))
        if isinstance(self._home, str):
            self.navigator.zoom(-1.0)  # room for what is about to move

    def camera(self) -> PinholeCamera:
        """The camera of this frame; one that follows a body stays above the ground."""
        camera = self.navigator.camera()
        return camera if self.followed is None else above_ground(self.stage, self.poses, camera)

    def show(self, poses: Poses) -> None:
        """Take the poses of the next frame; the camera goes along with what it follows."""
        self.poses = poses
        if self.followed is not None:
            self.navigator.follow(self.center(self.followed))

    def center(self, hit: Hit) -> Array:
        """Center of mass of a body as it is drawn, m."""
        return np.asarray(self.poses.position[hit.world, hit.body] + self.stage.offsets[hit.world])

    def follow(self, hit: Hit | None) -> None:
        """Go along with a body from here on; None: no longer."""
        self.followed = hit
        self.navigator.follow(None)
        if hit is not None:
            self.navigator.follow(self.center(hit))

    def follow_body(self, label: str) -> None:
        """Go along with a body of the first world that is drawn, in the middle of the picture, from here on.

        Raises:
            UnknownNameError: no such body.
        """
        hit = Hit(self.stage.model.index("body", label), 0, np.zeros(3), 0.0)
        center, camera = self.center(hit), self.camera()
        self.navigator.look(camera.moved(center - camera.target))
        self.follow(hit)

    def go_on_from(self, before: Sight) -> None:
        """Be steered as another sight was, and go along with what it followed, if that is there."""
        self.navigator = before.navigator
        labels = self.stage.model.labels("body")
        followed = before.followed
        label = before.stage.model.bodies[followed.body].label if followed is not None else ""
        if followed is not None and label in labels:
            self.followed = replace(followed, body=labels.index(label))
        else:
            self.follow(None)

    def ray(self, x: float, y: float) -> Array:
        """Direction (3,) from the eye through a point of the window, from its upper left corner."""
        return self.camera().pixel_ray(np.array(x), np.array(y), self.width, self.height)

    def pick(self, x: float, y: float) -> Hit | None:
        """What is seen at a point of the window."""
        transforms = self.stage.transforms(self.poses)
        return self._picker.pick(transforms, self.poses, np.array(self.camera().position), self.ray(x, y))

    def on_plane(self, x: float, y: float, point: Array) -> Array:
        """The point under the cursor in the plane through ``point`` that is parallel to the picture, m."""
        camera, ray = self.camera(), self.ray(x, y)
        depth = float((point - camera.position) @ camera.forward)
        hit: Array = np.array(camera.position) + ray * (depth / float(ray @ camera.forward))
        return hit
