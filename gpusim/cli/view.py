"""``gpusim view``: a scene, a robot or a recording in a window."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli.console import note, notes_instead_of_warnings
from gpusim.cli.exit_codes import Interrupted, OptionError
from gpusim.cli.loop import Outcome
from gpusim.cli.options import RunOptions, check, picture_size
from gpusim.cli.recorded import check_recording, recorded_parameters, recorded_target, scene_of
from gpusim.cli.run import load_target, make_simulation, raise_failure
from gpusim.recording.files import check_output_file
from gpusim.recording.motion import SUFFIX, MotionRecorder, is_motion_file, load_motion
from gpusim.recording.player import MotionPlayer
from gpusim.scene import Scene, scene_parameters
from gpusim.viewer import ViewerError
from gpusim.viewer.operator import GlfwGamepad, Operator
from gpusim.viewer.panel import Desk
from gpusim.viewer.panel.guest import add_operator
from gpusim.viewer.window.screen import require_glfw
from gpusim.viewer.window.session import SPEEDS, Session

if TYPE_CHECKING:
    from gpusim.viewer.window.pacing import Jitter
    from gpusim.viewer.window.sources import Live

_LEAST = 64


@dataclass(frozen=True)
class ViewOptions:
    """One ``gpusim view`` command line; what it shares with ``gpusim run`` is in ``run``."""

    run: RunOptions
    speed: float = 1.0
    max_worlds: int = 16
    quality: str = "auto"
    size: str = "960x540"
    paused: bool = False
    duration: float | None = None
    record: Path | None = None
    panel: bool = True
    mapping: str = "auto"

    def points(self) -> tuple[int, int]:
        """Width and height.

        Raises:
            OptionError: not WIDTHxHEIGHT, or too small or large.
        """
        return picture_size(self.size, _LEAST, "1280x720")

    @property
    def is_recording(self) -> bool:
        """Whether a recording is to be played."""
        return is_motion_file(self.run.target)


def view(options: ViewOptions) -> None:
    """Do what one ``gpusim view`` command line asks for.

    Raises:
        GpusimError: bad input, or no window; SimulationError and Interrupted only after the recording has been closed.
    """
    _check(options)
    require_glfw()
    if options.is_recording:
        _play(options)
    else:
        _run(options)


def _check(options: ViewOptions) -> None:
    """Everything that can be checked before anything is loaded."""
    options.points()
    if not SPEEDS[0] <= options.speed <= SPEEDS[-1]:
        raise OptionError(f"--speed must be from {SPEEDS[0]:g} to {SPEEDS[-1]:g}, got {options.speed:g}; give e.g. 0.5")
    if options.max_worlds < 1:
        raise OptionError(f"--max-worlds must be at least 1, got {options.max_worlds}; give e.g. 16")
    if options.duration is not None and not (math.isfinite(options.duration) and options.duration > 0.0):
        raise OptionError(
            f"--duration must be a finite number of seconds above 0, got {options.duration:g}; give e.g. 10"
        )
    if options.is_recording:
        check_recording(options.run, ["record"] if options.record is not None else [])
        return
    check(options.run)
    if options.record is not None:
        check_output_file(options.record, (SUFFIX,), "--record")


def _play(options: ViewOptions) -> None:
    from gpusim.viewer.window.sources import Played

    motion = load_motion(options.run.target)
    if not motion.complete:
        note(f"{options.run.target}: was broken off after {motion.duration:.2f} s; this is what there is")
    scene = scene_of(motion, options.run.target)
    player = MotionPlayer(motion, scene.builder.finalize())
    session = Session(Played(player), speed=options.speed, paused=options.paused)
    _show(options, scene, session, Desk(session))


def _run(options: ViewOptions) -> None:
    maker = _Maker(options)
    live = maker.make({})
    operator = maker.operator = live.operator = Operator(
        live.sim, live.scene, mapping=options.mapping, gamepad=GlfwGamepad(), parameters=options.run.parameters()
    )
    with ExitStack() as stack:
        session = Session(live, speed=options.speed, paused=options.paused, rebuild=maker.make)
        if options.record is not None:
            recorder = stack.enter_context(_recorder(options, live))
            stack.callback(lambda: print(f"{options.record}: {recorder.frames} frames"))
            live.record(recorder)
            session.on_restart.append(lambda: _end_recording(recorder, live))
        stack.enter_context(notes_instead_of_warnings())
        run = options.run
        known = () if run.is_file() else scene_parameters(run.target)
        _show(options, live.scene, session, Desk(session, operator, known, run.parameters()))
    raise_failure(maker.live.sim, Outcome(simulated=session.time))


class _Maker:
    """Makes the simulation of a command line, again with other parameters when it is restarted."""

    def __init__(self, options: ViewOptions) -> None:
        self._options = options
        self._parameters = options.run.parameters()
        self.live: Live
        self.operator: Operator | None = None

    def make(self, changes: Mapping[str, Any]) -> Live:
        """With some parameters changed; they stay so."""
        from gpusim.viewer.window.sources import Live

        wanted = {**self._parameters, **{name: str(value) for name, value in changes.items()}}
        run = dataclasses.replace(self._options.run, settings=tuple(f"{k}={v}" for k, v in wanted.items()))
        check(run)
        scene = load_target(run)
        config = dataclasses.replace(scene.config, **run.config_changes())
        self.live = Live(make_simulation(run, scene, config, scene.builder.finalize()), scene)
        self._parameters = wanted
        if self.operator is not None:
            self.operator.attach(self.live.sim, scene, wanted)
            self.live.operator = self.operator
        return self.live


def _recorder(options: ViewOptions, live: Live) -> MotionRecorder:
    assert options.record is not None
    return MotionRecorder(
        live.sim,
        options.record,
        target=recorded_target(options.run),
        parameters=recorded_parameters(options.run),
        fixed_base=options.run.fixed_base,
        worlds=range(min(live.num_worlds, options.max_worlds)),
    )


def _end_recording(recorder: MotionRecorder, live: Live) -> None:
    """A restart has another model, whose poses do not belong into the same recording."""
    live.record(None)
    recorder.close()


def _show(options: ViewOptions, scene: Scene, session: Session, desk: Desk) -> None:
    from gpusim.viewer.window.window import Window

    width, height = options.points()
    with Window(
        session,
        title=f"gpusim: {scene.name}",
        width=width,
        height=height,
        quality=options.quality,
        max_worlds=options.max_worlds,
        camera=scene.camera,
    ) as window:
        try:
            add_operator(window, desk, panel=options.panel)
        except ViewerError as error:  # everything else works without imgui
            note(str(error))
        try:
            jitter = window.run(options.duration)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted at {session.time:g} s") from None
        _tell(window.pacer.frame_rate(), scene, session, jitter)


def _tell(frame_rate: float, scene: Scene, session: Session, jitter: Jitter) -> None:
    dropped = f", {session.dropped:.2f} s dropped" if session.dropped else ""
    print(
        f"{scene.name}: {session.time:.3f} s, {jitter.frames} frames, {frame_rate:.1f} frames/s; "
        f"jitter {1e3 * jitter.rms:.2f} ms rms, {1e3 * jitter.worst:.2f} ms worst{dropped}"
    )
