"""``gpusim render``: simulate, and draw a picture or a film without a window."""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli.exit_codes import OptionError
from gpusim.cli.loop import simulate
from gpusim.cli.options import RunOptions, check, picture_size
from gpusim.cli.recorded import check_recording, scene_of
from gpusim.cli.run import load_target, make_simulation, raise_failure
from gpusim.errors import unknown_name
from gpusim.recording.files import check_output_file
from gpusim.recording.motion import is_motion_file, load_motion
from gpusim.recording.player import MotionPlayer
from gpusim.scene import Camera, Scene
from gpusim.viewer.camera import VIEWS, PinholeCamera
from gpusim.viewer.overlays import Timings, chosen_overlays
from gpusim.viewer.pictures import FILM, PICTURE, Film, require_film_writer, save_picture

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation
    from gpusim.viewer.offscreen import Offscreen

_SCENE_VIEW = "scene"


@dataclass(frozen=True)
class RenderOptions:
    """One ``gpusim render`` command line; what it shares with ``gpusim run`` is in ``run``."""

    run: RunOptions
    out: Path
    time: float = 0.0
    fps: float = 30.0
    camera: str | None = None
    follow: str | None = None
    size: str = "640x360"
    quality: str = "auto"
    world: int | None = None
    max_worlds: int = 16
    overlays: tuple[str, ...] = ()

    @property
    def is_film(self) -> bool:
        """Whether many frames are asked for."""
        return self.out.suffix.lower() == FILM

    def overlay_names(self) -> frozenset[str]:
        """What is drawn over the scene, each option taken apart at its commas.

        Raises:
            UnknownNameError: no such overlay.
        """
        names = [name.strip() for option in self.overlays for name in option.split(",")]
        return frozenset(overlay.name for overlay in chosen_overlays(name for name in names if name))

    def points(self) -> tuple[int, int]:
        """Width and height.

        Raises:
            OptionError: not WIDTHxHEIGHT, or too large.
        """
        width, height = picture_size(self.size, 1, "640x360")
        if self.is_film and (width % 2 or height % 2):
            raise OptionError(f"--size {self.size!r}: films need an even width and height; give e.g. 640x360")
        return width, height

    def eye(self) -> PinholeCamera | str:
        """The camera, or the name of a view.

        Raises:
            OptionError, UnknownNameError: neither six numbers nor a view.
        """
        if self.camera is None:
            return _SCENE_VIEW
        if "," not in self.camera:
            name = self.camera.strip().lower()
            if name not in (_SCENE_VIEW, *VIEWS):
                raise unknown_name("view in --camera:", name, [_SCENE_VIEW, *VIEWS])
            return name
        try:
            x, y, z, tx, ty, tz = (float(part) for part in self.camera.split(","))
        except ValueError:
            raise OptionError(
                f"--camera {self.camera!r} must be x,y,z,tx,ty,tz (eye and target, m) or a view; give e.g. 4,-6,3,0,0,1"
            ) from None
        return PinholeCamera((x, y, z), (tx, ty, tz))


def render(options: RenderOptions) -> None:
    """Do what one ``gpusim render`` command line asks for.

    Raises:
        GpusimError: bad input, or nothing to draw with, found before the first step; SimulationError and Interrupted
            only after the picture, or the film so far, has been written.
    """
    _check(options)
    if is_motion_file(options.run.target):
        _draw_recording(options)
        return
    scene = load_target(options.run)
    config = dataclasses.replace(scene.config, **options.run.config_changes())
    model = scene.builder.finalize()
    # overlays show forces, which only a simulation has
    if options.is_film or options.time > 0.0 or options.run.num_worlds > 1 or options.overlay_names():
        _simulate(options, scene, make_simulation(options.run, scene, config, model))
        return
    with _painter(options, model) as painter:
        _aim(options, scene, painter)
        save_picture(painter.image(), options.out)
        _tell(options, painter, "at 0 s")


def _check(options: RenderOptions) -> None:
    """Everything that can be checked without the model."""
    run = options.run
    if is_motion_file(run.target):
        check_recording(run, allowed=["duration"])
    else:
        check(run)
    check_output_file(options.out, (PICTURE, FILM), "--out")
    options.points()
    options.eye()
    options.overlay_names()
    if not (math.isfinite(options.time) and options.time >= 0.0):
        raise OptionError(f"--time must be a finite number of seconds, 0 or more, got {options.time:g}; give e.g. 1.5")
    if not (math.isfinite(options.fps) and 0.0 < options.fps <= 1000.0):
        raise OptionError(f"--fps must be above 0 and at most 1000, got {options.fps:g}; give e.g. 30")
    if options.max_worlds < 1:
        raise OptionError(f"--max-worlds must be at least 1, got {options.max_worlds}; give e.g. 16")
    if options.world is not None and not 0 <= options.world < run.num_worlds:
        raise OptionError(f"--world {options.world} is not among {run.num_worlds} worlds; they count from 0")
    if run.duration is not None and not options.is_film:
        raise OptionError("--duration is for films; give --time for a picture, or --out with a name that ends in .mp4")
    if options.is_film:
        require_film_writer()


def _simulate(options: RenderOptions, scene: Scene, sim: Simulation) -> None:
    """Run up to the picture, or through the film."""
    dt = sim.config.dt
    with _painter(options, sim) as painter:
        _aim(options, scene, painter)  # before the run, so that wrong names are told at once
        outcome = simulate(sim, scene, round(options.time / dt), None)
        if options.follow is None:
            _aim(options, scene, painter)
        good = outcome.failure is None and not outcome.interrupted
        painter.timings = _timings(outcome.simulated, outcome.steps, outcome.wall)
        if not options.is_film:
            save_picture(painter.image(), options.out)
            _tell(options, painter, f"at {outcome.simulated:g} s")
        elif good:
            duration = scene.duration if options.run.duration is None else options.run.duration
            with _Camera(options, painter, sim, max(1, round(duration * options.fps))) as camera:
                outcome = simulate(sim, scene, max(1, round(duration / dt)), camera)
            _tell(options, painter, f"{camera.frames} frames up to {outcome.simulated:g} s")
    raise_failure(sim, outcome)


def _draw_recording(options: RenderOptions) -> None:
    """A picture or a film of a recorded motion."""
    motion = load_motion(options.run.target)
    scene = scene_of(motion, options.run.target)
    player = MotionPlayer(motion, scene.builder.finalize())
    if options.time > player.duration:
        raise OptionError(f"--time {options.time:g} is after the end of the recording, {player.duration:g} s")
    player.time = options.time
    with _painter(options, player) as painter:
        _aim(options, scene, painter)
        if not options.is_film:
            save_picture(painter.image(), options.out)
            _tell(options, painter, f"at {player.time:g} s")
            return
        left = player.duration - player.time
        seconds = left if options.run.duration is None else min(left, options.run.duration)
        with Film(options.out, painter.width, painter.height, options.fps) as film:
            for frame in range(max(1, round(seconds * options.fps))):
                player.time = options.time + frame / options.fps
                film.add(painter.image())
        _tell(options, painter, f"{film.frames} frames up to {player.time:g} s")


def _painter(options: RenderOptions, source: Model | Simulation | MotionPlayer) -> Offscreen:
    from gpusim.viewer.offscreen import Offscreen

    width, height = options.points()
    worlds = None if options.world is None else [options.world]
    return Offscreen(
        source,
        width=width,
        height=height,
        quality=options.quality,
        max_worlds=options.max_worlds,
        worlds=worlds,
        overlays=options.overlay_names(),
    )


def _aim(options: RenderOptions, scene: Scene, painter: Offscreen) -> None:
    """Point the camera at what is there now."""
    eye = options.eye()
    if eye != _SCENE_VIEW:
        painter.look(eye)
    else:
        # a scene without a camera of its own, such as a robot file, has the default one
        own = scene.camera != Camera() and len(painter.worlds) == 1
        painter.look(scene.camera if own else "fit")
    painter.follow(options.follow)


class _Camera:
    """Films a simulation: a frame whenever one is due, until there are enough."""

    def __init__(self, options: RenderOptions, painter: Offscreen, sim: Simulation, wanted: int) -> None:
        self._wanted = wanted
        self._painter, self._sim, self._fps = painter, sim, options.fps
        self._film = Film(options.out, painter.width, painter.height, options.fps)
        self._start = sim.time
        # a frame shows the step that is nearest to its time
        self._early = 0.5 * sim.config.dt
        self._left, self._stepping = time.perf_counter(), 0.0

    @property
    def frames(self) -> int:
        """How many were taken."""
        return self._film.frames

    def sample(self) -> None:
        """Take all frames that are due."""
        elapsed = float(self._sim.read("sim.time", numpy=True).max()) - self._start
        self._stepping += time.perf_counter() - self._left
        while self.frames < self._wanted and self.frames <= (elapsed + self._early) * self._fps:
            start = time.perf_counter()
            picture = self._painter.image()
            frame = time.perf_counter() - start
            self._painter.timings = _timings(elapsed, round(elapsed / self._sim.config.dt), self._stepping, frame)
            self._film.add(picture)
        self._left = time.perf_counter()

    def __enter__(self) -> _Camera:
        return self

    def __exit__(self, *error: object) -> None:
        self._film.close()


def _timings(simulated: float, steps: int, wall: float, frame: float | None = None) -> Timings:
    """What the overlay "profile" shows after ``steps`` steps that took ``wall`` seconds."""
    return Timings(simulated / wall, wall / steps, frame) if steps and wall > 0.0 else Timings(frame=frame)


def _tell(options: RenderOptions, painter: Offscreen, what: str) -> None:
    print(f"{options.out}: {painter.width}x{painter.height}, {what}, drawn by {painter.renderer_name}")
