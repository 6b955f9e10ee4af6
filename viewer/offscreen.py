"""Pictures without a window: color, depth and segmentation as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpusim.closing import Closing
from gpusim.model.model import Model
from gpusim.recording.player import MotionPlayer
from gpusim.scene import Camera
from gpusim.signals.writing import chosen_worlds
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.camera.aim import above_ground, aimed
from gpusim.viewer.camera.mounted import camera_number, mounted_camera
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.gl.context import OffscreenContext
from gpusim.viewer.gl.quality import choose_quality
from gpusim.viewer.overlays import Frame, Timings, chosen_overlays

if TYPE_CHECKING:
    from gpusim.simulation import Simulation
    from gpusim.viewer.gl.objects import Framebuffer
    from gpusim.viewer.gl.renderer import View
    from gpusim.viewer.overlays.painting import Sketch

LARGEST = 8192
"""Maximum width and height of a picture, pixels."""
MAX_WORLDS = 16
"""Default maximum number of drawn worlds."""


class Offscreen(Closing):
    """Renderer that draws a model or a simulation into arrays, for films, tests and camera sensors.

    Each picture shows the current state of the simulation. Equal states give bit-identical pictures.

    Args:
        source: a Simulation, a MotionPlayer, or a Model. A MotionPlayer is drawn at ``MotionPlayer.time``. A Model is
            drawn in the initial poses, or in the poses from :meth:`pose`.
        width, height: picture size (pixels), 1 to 8192.
        camera: see :meth:`look`. Default: a camera that shows everything.
        quality: "high", "medium", "software", or "auto" ("software" for a renderer on the CPU, else "high").
        max_worlds: maximum number of worlds to draw next to each other, starting with the first.
        worlds: indices or mask of the worlds to draw. ``worlds`` replaces ``max_worlds``.
        overlays: name of an overlay, or list of names (docs/guides/viewer.md).
        glass: if True, draw a world shape as glass while it hides bodies. Depth and segmentation ignore glass shapes.
            With ``glass=False``, world shapes hide bodies.
        decoration: if True, also draw joints, springs, cylinders, posts, and solids for bodies without shapes and
            visuals. Decorations appear in color, depth and segmentation images. With ``decoration=False``, draw only
            shapes, visuals, ropes and rods.
        visuals: if True, bodies with visuals show only their visuals, in color, depth and segmentation. With
            ``visuals=False``, all bodies show their collision shapes.

    Attributes:
        worlds: indices of the worlds that are drawn.
        stage: stage with all drawn objects.
        camera: camera of the next picture, without the motion of :meth:`follow`.
        timings: times for the overlay "profile".
        sketches: functions with the arguments Frame and Canvas (``gpusim.viewer.overlays``) that draw over the
            pictures.

    Raises:
        ViewerError: the viewer cannot draw on this computer, or an argument is invalid.
        UnknownNameError: the quality or an overlay is unknown.
    """

    def __init__(
        self,
        source: Model | Simulation | MotionPlayer,
        *,
        width: int = 640,
        height: int = 360,
        camera: PinholeCamera | Camera | str | None = None,
        quality: str = "auto",
        max_worlds: int = MAX_WORLDS,
        worlds: Sequence[int] | None = None,
        overlays: Iterable[str] = (),
        glass: bool = True,
        decoration: bool = True,
        visuals: bool = True,
    ) -> None:
        self.overlays = overlays
        self.timings = Timings()
        self.sketches: list[Sketch] = []
        self.width, self.height = _size("width", width), _size("height", height)
        self._moving = None if isinstance(source, Model) else source
        # a recording has no forces and commands
        self._sim = None if isinstance(source, Model | MotionPlayer) else source
        self.worlds = _chosen_worlds(1 if self._moving is None else self._moving.num_worlds, max_worlds, worlds)
        model = source if isinstance(source, Model) else source.model
        self._context: OffscreenContext | None = OffscreenContext()
        from gpusim.viewer.overlays.painting import Painting

        self.quality = choose_quality(quality, self._context.renderer_name)
        self.stage = Stage(model, len(self.worlds), decoration, visuals)
        self._painting = Painting(self.stage, self.quality, self.width, self.height, glass)
        self._forward: Framebuffer | None = None
        self._poses = Poses.from_model(model)
        self._followed: tuple[int, Array] | None = None
        self._mounted: int | None = None
        self.camera: PinholeCamera
        self.look("fit" if camera is None else camera)

    @property
    def renderer_name(self) -> str:
        """Name of the renderer, as OpenGL reports it."""
        return self._open().renderer_name

    @property
    def overlays(self) -> frozenset[str]:
        """Names of the overlays drawn over the pictures.

        Raises:
            UnknownNameError: an assigned overlay is unknown.
        """
        return self._overlays

    @overlays.setter
    def overlays(self, names: Iterable[str]) -> None:
        chosen = [names] if isinstance(names, str) else names
        self._overlays = frozenset(overlay.name for overlay in chosen_overlays(chosen))

    def look(self, camera: PinholeCamera | Camera | str) -> None:
        """Set the camera of the next pictures.

        Args:
            camera: a PinholeCamera, a scene's Camera, the label of a camera from
                :meth:`gpusim.ModelBuilder.add_camera`, or the name of a view. The views "fit", "front", "back", "left",
                "right" and "top" show everything. A scene's Camera moves back until everything is visible.

        Raises:
            UnknownNameError: the camera or view is unknown.
        """
        self.camera = self._pinhole(camera)
        self._mounted = camera_number(self.stage, camera)

    def follow(self, label: str | None) -> None:
        """Follow a body of the first drawn world: keep the body at the center of the picture.

        The camera keeps its current direction and distance. With ``label`` None, the camera stops following.

        Raises:
            UnknownNameError: the body is unknown.
        """
        if label is None:
            self._followed = None
            return
        body = self.stage.model.index("body", label)
        self.camera, self._mounted = self._current_camera(self._current_poses()), None
        self._followed = body, np.array(self.camera.target, dtype=np.float64)

    def pose(self, position: Array, orientation: Array) -> None:
        """Set the poses in which a model is drawn.

        Args:
            position: (bodies, 3) origins of the body frames, in the world frame (m).
            orientation: (bodies, 4) quaternions xyzw, body to world.

        Raises:
            ViewerError: the source is a simulation or recording, or an array has the wrong shape.
        """
        if self._moving is not None:
            raise ViewerError("Offscreen: pose() is only for a Model; a simulation or recording sets its own poses")
        count = len(self.stage.model.bodies)
        if np.shape(position) != (count, 3) or np.shape(orientation) != (count, 4):
            raise ViewerError(
                f"Offscreen: poses of shapes {np.shape(position)} and {np.shape(orientation)} do not fit "
                f"{count} bodies; give ({count}, 3) and ({count}, 4)"
            )
        self._poses = Poses.from_body_frames(self.stage.model, np.asarray(position), np.asarray(orientation))

    def image(self) -> Array:
        """Return the picture, uint8 (height, width, 3), sRGB, top row first."""
        self._open().make_current()
        view = self._view()
        frame = Frame(self.stage, view.poses, view.camera, self._sim, self.worlds, self.timings)
        self._painting.draw(view, frame, self.overlays, self.sketches)
        return self._painting.image()

    def depth(self) -> Array:
        """Return the depth of each pixel along the view axis, float32 (height, width), m, or inf without an object.

        The depth image includes planes of the model. It excludes the floor that the viewer adds, and objects with an
        opacity below 0.5.
        """
        from OpenGL import GL

        return self._sensors().read(0, GL.GL_RED, GL.GL_FLOAT, np.float32, 1)[:, :, 0]

    def segmentation(self) -> Array:
        """Return the body index of each pixel, int32 (height, width). Background, ground and world shapes are -1."""
        from OpenGL import GL

        return self._sensors().read(1, GL.GL_RED_INTEGER, GL.GL_INT, np.int32, 1)[:, :, 0]

    def _sensors(self) -> Framebuffer:
        from OpenGL import GL

        from gpusim.viewer.gl.objects import Framebuffer

        self._open().make_current()
        if self._forward is None:
            colors = [GL.GL_R32F, GL.GL_R32I]
            self._forward = Framebuffer(self.width, self.height, colors, GL.GL_DEPTH_COMPONENT32F)
        self._painting.renderer.draw_sensors(self._view(), self._forward)
        return self._forward

    def _view(self) -> View:
        poses = self._current_poses()
        camera = self._current_camera(poses)
        if self._followed is not None:
            body, start = self._followed
            before, camera = camera, camera.moved(poses.position[0, body] - start)
            camera = above_ground(self.stage, poses, camera, before)
        return self._painting.renderer.view(camera, poses, self.width / self.height)

    def _current_camera(self, poses: Poses) -> PinholeCamera:
        if self._mounted is None:
            return self.camera
        return mounted_camera(self.stage, poses, self.stage.model.cameras[self._mounted])

    def _current_poses(self) -> Poses:
        if self._moving is not None:
            state = self._moving.read_state()
            self._poses = Poses.from_state(state["position"], state["orientation"], self.worlds)
        return self._poses

    def _pinhole(self, camera: PinholeCamera | Camera | str) -> PinholeCamera:
        return aimed(self.stage, self._current_poses(), camera, self.width / self.height)

    def _open(self) -> OffscreenContext:
        if self._context is None:
            raise ViewerError("this Offscreen is closed; create a new one")
        return self._context

    def close(self) -> None:
        """Release all OpenGL resources. Repeated calls have no effect."""
        if self._context is None:
            return
        self._context.make_current()
        for resource in (self._forward, self._painting):
            if resource is not None:
                resource.close()
        self._context.close()
        self._context = None


def _size(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= LARGEST:
        raise ViewerError(f"Offscreen: {name} = {value!r} is not a whole number from 1 to {LARGEST}")
    return int(value)


def _chosen_worlds(count: int, max_worlds: int, worlds: Sequence[int] | None) -> list[int]:
    if max_worlds < 1:
        raise ViewerError(f"Offscreen: max_worlds = {max_worlds!r} must be at least 1")
    chosen = chosen_worlds("Offscreen", worlds, count).tolist()[: max_worlds if worlds is None else None]
    if not chosen:
        raise ViewerError("Offscreen: worlds is empty; name at least one, or leave it out for all")
    if len(set(chosen)) < len(chosen):
        raise ViewerError(f"Offscreen: worlds = {worlds!r} names a world twice; name each world once")
    return chosen
