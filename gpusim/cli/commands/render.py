"""``gpusim render``: simulate, then draw a picture or a film without a window."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli import progress
from gpusim.cli.commands.run import check_backend, make_simulation, raise_failure
from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.loop import simulate
from gpusim.cli.options import RunOptions, check, check_duration, count_steps
from gpusim.cli.pictures import PictureOptions
from gpusim.cli.policies import with_policy
from gpusim.cli.recorded import check_recording, recorded_motion, scene_of
from gpusim.cli.replays import Replay, load_replay
from gpusim.cli.targets import load_target
from gpusim.output_files import check_output_file
from gpusim.recording.motion import is_motion_file
from gpusim.recording.player import MotionPlayer
from gpusim.scene import Scene
from gpusim.viewer.camera.aim import home_camera
from gpusim.viewer.overlays import Timings
from gpusim.viewer.pictures import FILM, PICTURE, Film, require_film_writer, save_picture

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation
    from gpusim.viewer.offscreen import Offscreen

_MIN_SIZE = 1
"""Minimum width or height, pixels."""


@dataclass(frozen=True)
class RenderOptions:
    """Options of the command ``gpusim render``."""

    run: RunOptions
    out: Path
    picture: PictureOptions
    time: float = 0.0
    fps: float = 30.0

    @property
    def is_film(self) -> bool:
        """Whether the output is a film."""
        return self.out.suffix.lower() == FILM


def render(options: RenderOptions) -> None:
    """Run the command ``gpusim render``.

    Raises:
        GpusimError: the input is invalid or no renderer works. Before SimulationError or Interrupted, the function
            writes the picture or film.
    """
    _check(options)
    if is_motion_file(options.run.target):
        _draw_recording(options)
        return
    options = dataclasses.replace(options, run=with_policy(options.run))
    replay = load_replay(options.run)
    check_backend(options.run)
    scene = load_target(options.run, still=True)
    if replay is not None:
        replay.check(options.run, scene)
    config = dataclasses.replace(scene.config, **options.run.config_changes())
    model = scene.builder.finalize()
    options.picture.check_names(model)
    # Overlays and the check of a replay need a simulation.
    needed = (
        options.run.start_pose() is not None
        or options.is_film
        or options.time > 0.0
        or options.run.num_worlds > 1
        or replay is not None
    )
    if needed or options.picture.overlay_names():
        _simulate(options, scene, make_simulation(options.run, config, model), replay)
        return
    with _painter(options, scene, model, range(1)) as painter:
        _aim(options, scene, painter)
        save_picture(painter.image(), options.out)
        _report(options, painter, "at 0 s")


def _check(options: RenderOptions) -> None:
    """Check the options that do not depend on the model."""
    run = options.run
    if is_motion_file(run.target):
        check_recording(run, allowed=["duration"])
        check_duration(run.duration)
    else:
        check(run)
        options.picture.check_world(range(run.num_worlds))
    check_output_file(options.out, (PICTURE, FILM), "--out")
    options.picture.check(_MIN_SIZE)
    width, height = options.picture.points(_MIN_SIZE)
    if options.is_film and (width % 2 or height % 2):
        raise OptionError(
            f"--size {options.picture.size!r}: films need an even width and height; give e.g. --size 640x360"
        )
    if not (math.isfinite(options.time) and options.time >= 0.0):
        raise OptionError(f"--time must be a finite number of seconds, 0 or more, got {options.time:g}; give e.g. 1.5")
    if not (math.isfinite(options.fps) and 0.0 < options.fps <= 1000.0):
        raise OptionError(f"--fps must be above 0 and at most 1000, got {options.fps:g}; give e.g. 30")
    if run.duration is not None and not options.is_film:
        raise OptionError("--duration is for films; give --time for a picture, or --out with a name that ends in .mp4")
    if options.fps != RenderOptions.fps and not options.is_film:
        raise OptionError("--fps is for films; drop it, or give --out with a name that ends in .mp4")
    if options.is_film:
        require_film_writer()


def _simulate(options: RenderOptions, scene: Scene, sim: Simulation, replay: Replay | None) -> None:
    """Simulate up to the picture or up to the end of the film, and draw."""
    dt = sim.config.dt
    seconds = _film_length(options, scene, replay) if options.is_film else 0.0
    steps = max(1, count_steps("--duration", seconds, dt))
    operator = replay.operator(sim, scene) if replay is not None else None
    with _painter(options, scene, sim, range(sim.num_worlds)) as painter:
        _aim(options, scene, painter)  # aim before the run, to report wrong names at once
        outcome = simulate(sim, scene, count_steps("--time", options.time, dt), None, operator=operator)
        if options.picture.follow is None:
            _aim(options, scene, painter)
        good = outcome.failure is None and not outcome.interrupted
        painter.timings = _timings(outcome.simulated, outcome.steps, outcome.wall)
        if not options.is_film:
            save_picture(painter.image(), options.out)
            _report(options, painter, f"at {outcome.simulated:g} s")
        elif good:
            with _Camera(options, painter, sim, max(1, round(seconds * options.fps))) as camera:
                outcome = simulate(sim, scene, steps, camera, operator=operator, printed=camera.printed)
            _report_film(options, painter, camera.frames, outcome.simulated)
    raise_failure(sim, outcome)


def _film_length(options: RenderOptions, scene: Scene, replay: Replay | None) -> float:
    """Return how many seconds of simulated time the film shows."""
    if options.run.duration is not None:
        return options.run.duration
    if replay is None:
        return scene.duration
    if options.time >= replay.duration:
        raise OptionError(
            f"--time {options.time:g} is not before the end of the replay, {replay.duration:g} s; "
            "give less, or --duration for a film of what follows"
        )
    return replay.duration - options.time


def _draw_recording(options: RenderOptions) -> None:
    """Draw a picture or a film of a recorded motion."""
    motion = recorded_motion(options.run.target)
    scene = scene_of(motion, options.run.target)
    player = MotionPlayer(motion, scene.builder.finalize())
    options.picture.check_names(player.model)
    if options.time > player.duration:
        raise OptionError(
            f"--time {options.time:g} is after the end of the recording, {player.duration:g} s; give at most that"
        )
    player.time = options.time
    with _painter(options, scene, player, motion.header.worlds) as painter:
        _aim(options, scene, painter)
        if not options.is_film:
            save_picture(painter.image(), options.out)
            _report(options, painter, f"at {player.time:g} s")
            return
        with Film(options.out, painter.width, painter.height, options.fps) as film:
            _film_recording(options, scene.name, player, painter, film)
        _report_film(options, painter, film.frames, player.time)


def _film_recording(options: RenderOptions, name: str, player: MotionPlayer, painter: Offscreen, film: Film) -> None:
    """Film a recording, starting at ``--time``."""
    remaining, duration = player.duration - options.time, options.run.duration
    if duration is not None and duration < remaining:
        frames = max(1, round(duration * options.fps))
    else:
        # The last frame shows the end of the recording, even between two frame times.
        frames = math.ceil(remaining * options.fps - 1e-6) + 1
        if duration is not None and duration > remaining + 1.0 / options.fps:
            ends = f"the recording ends {remaining:g} s after --time {options.time:g}"
            note(f"{ends}, so the film is shorter than --duration")
    with progress.reported(name, frames, lambda done: f"{done} of {frames} frames") as report:
        for frame in range(frames):
            player.time = options.time + frame / options.fps
            film.add(painter.image())
            report.update(film.frames)


def _painter(
    options: RenderOptions, scene: Scene, source: Model | Simulation | MotionPlayer, worlds: Sequence[int]
) -> Offscreen:
    """Return a renderer that draws the chosen worlds of a model, a simulation or a recording."""
    drawn = options.picture.drawn_worlds(worlds)
    from gpusim.viewer.offscreen import Offscreen

    width, height = options.picture.points(_MIN_SIZE)
    return Offscreen(
        source,
        width=width,
        height=height,
        quality=options.picture.quality,
        worlds=drawn,
        overlays=options.picture.overlay_names(),
        glass=options.picture.glass,
        decoration=options.picture.decorated(scene),
        visuals=options.picture.visuals,
    )


def _aim(options: RenderOptions, scene: Scene, painter: Offscreen) -> None:
    """Point the camera at the current state of the scene."""
    painter.look(home_camera(options.picture.camera_for(scene), len(painter.worlds)))
    painter.follow(options.picture.follow)


class _Camera:
    """Sampler that films a simulation."""

    def __init__(self, options: RenderOptions, painter: Offscreen, sim: Simulation, total: int) -> None:
        self._total = total
        self._painter, self._sim, self._fps = painter, sim, options.fps
        self._film = Film(options.out, painter.width, painter.height, options.fps)
        self._start = sim.time
        # A frame shows the step nearest to its time.
        self._early = 0.5 * sim.config.dt
        self._step_start, self._stepping = time.perf_counter(), 0.0

    @property
    def frames(self) -> int:
        """Number of frames so far."""
        return self._film.frames

    def printed(self) -> str:
        """Return the progress of the film as text."""
        return f"{self.frames} of {self._total} frames"

    def sample(self) -> None:
        """Draw all frames that are due, and add them to the film."""
        elapsed = float(self._sim.read("sim.time", numpy=True).max()) - self._start
        self._stepping += time.perf_counter() - self._step_start
        while self.frames < self._total and self.frames <= (elapsed + self._early) * self._fps:
            start = time.perf_counter()
            picture = self._painter.image()
            frame = time.perf_counter() - start
            self._painter.timings = _timings(elapsed, round(elapsed / self._sim.config.dt), self._stepping, frame)
            self._film.add(picture)
        self._step_start = time.perf_counter()

    def __enter__(self) -> _Camera:
        return self

    def __exit__(self, *error: object) -> None:
        self._film.close()


def _timings(simulated: float, steps: int, wall: float, frame: float | None = None) -> Timings:
    """Return the data of the overlay "profile". ``steps`` steps took ``wall`` seconds."""
    return Timings(simulated / wall, wall / steps, frame) if steps and wall > 0.0 else Timings(frame=frame)


def _report_film(options: RenderOptions, painter: Offscreen, frames: int, end: float) -> None:
    length = f"{frames} frames, {frames / options.fps:.6g} s at {options.fps:g} frames/s"
    _report(options, painter, f"{length}, up to {end:g} s")


def _report(options: RenderOptions, painter: Offscreen, what: str) -> None:
    print(f"{options.out}: {painter.width}x{painter.height}, {what}, drawn by {painter.renderer_name}")
