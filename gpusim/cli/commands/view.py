"""``gpusim view``: show a scene, a robot or a recording in a window, in browsers or in a Rerun viewer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli.commands.run import check_backend, make_simulation, raise_failure
from gpusim.cli.console import note, notes_instead_of_warnings
from gpusim.cli.exit_codes import Interrupted, OptionError
from gpusim.cli.loop import Outcome
from gpusim.cli.options import RunOptions, check, check_duration
from gpusim.cli.policies import connect_goals, with_policy
from gpusim.cli.recorded import check_recording, recorded_motion, recorded_target, scene_of
from gpusim.cli.remote_views import check_rerun, run_alone, serve_page, stream_to_rerun
from gpusim.cli.replays import load_replay
from gpusim.cli.targets import load_target, target_parameters, with_parameters
from gpusim.cli.view_options import ViewOptions
from gpusim.output_files import check_output_file
from gpusim.recording.motion import SUFFIX, MotionRecorder
from gpusim.recording.player import MotionPlayer
from gpusim.scene import Scene, scene_parameters
from gpusim.viewer import ViewerError
from gpusim.viewer.operator import GlfwGamepad, Operator
from gpusim.viewer.panel import PanelState
from gpusim.viewer.panel.panel_client import add_operator
from gpusim.viewer.panel.panel_state import words
from gpusim.viewer.window.adaptive_step import AdaptiveStep
from gpusim.viewer.window.screen import require_display, require_glfw
from gpusim.viewer.window.session import SPEEDS, Session

if TYPE_CHECKING:
    from gpusim.viewer.window.pacing import Jitter, Pacer
    from gpusim.viewer.window.sources import Live

_MIN_SIZE = 64
"""Minimum width or height of the window, pixels."""


def view(options: ViewOptions) -> None:
    """Run the command ``gpusim view``.

    Raises:
        GpusimError: the input is invalid, or no window or page can be opened. SimulationError and Interrupted are
            raised after the recording has been closed.
    """
    _check(options)
    if options.windowed:
        require_glfw()
    if options.is_recording:
        _play(options)
    else:
        _run(options)


def _check(options: ViewOptions) -> None:
    """Check the options before the command loads a scene or a recording."""
    options.picture.check(_MIN_SIZE)
    if not SPEEDS[0] <= options.speed <= SPEEDS[-1]:
        raise OptionError(f"--speed must be from {SPEEDS[0]:g} to {SPEEDS[-1]:g}, got {options.speed:g}; give e.g. 0.5")
    check_duration(options.duration)
    if not options.windowed and options.picture.overlays:
        raise OptionError("--overlay draws in a window; drop it, or --web and --rerun")
    if not options.web and (options.host, options.port) != (ViewOptions.host, ViewOptions.port):
        raise OptionError("--host and --port are for --web; add --web, or drop them")
    if options.rerun is not None:
        check_rerun(options)
    if options.is_recording:
        check_recording(options.run, ["record"] if options.record is not None else [])
        return
    check(options.run)
    options.picture.check_world(range(options.run.num_worlds))
    if options.record is not None:
        check_output_file(options.record, (SUFFIX,), "--record")


def _play(options: ViewOptions) -> None:
    from gpusim.viewer.window.sources import Played

    motion = recorded_motion(options.run.target)
    scene = scene_of(motion, options.run.target)
    player = MotionPlayer(motion, scene.builder.finalize())
    options.picture.check_names(player.model)
    worlds = options.picture.drawn_worlds(motion.header.worlds)
    session = Session(Played(player), speed=options.speed, paused=options.paused)
    _show(options, scene, session, PanelState(session), worlds)


def _run(options: ViewOptions) -> None:
    run = with_policy(options.run)
    replay = load_replay(run)
    check_backend(run)
    maker = _SimulationFactory(run, options.max_dt)
    live = maker.make({})
    if replay is not None:
        replay.check(run, live.scene)
    options.picture.check_names(live.model)
    worlds = options.picture.drawn_worlds(range(live.num_worlds))
    operator = maker.operator = live.operator = Operator(
        live.sim,
        live.scene,
        mapping=options.mapping,
        gamepad=GlfwGamepad() if options.windowed else None,
        parameters=maker.parameters,
    )
    connect_goals(live.scene, operator)
    if replay is not None:
        operator.replay(replay.path)  # give the path, because the panel shows the file name
        replay.compare_solver(live.sim)
    if options.windowed:
        require_display()  # check this before a recording replaces a file
    with ExitStack() as stack:
        session = Session(live, speed=options.speed, paused=options.paused, rebuild=maker.make)
        if options.record is not None:
            recorder = stack.enter_context(_recorder(options.record, run, live, worlds))
            stack.callback(lambda: print(f"{options.record}: {recorder.frames} frames"))
            if recorder.rescued is not None:
                note(f"{options.record}: an unfinished recording of this name existed, which is now {recorder.rescued}")
            live.record(recorder)
            session.on_restart.append(lambda: _end_recording(recorder, live))
        if options.rerun is not None:
            stream = stack.enter_context(stream_to_rerun(options, live))
            session.on_restart.append(stream.close)
        stack.enter_context(notes_instead_of_warnings())
        known = () if run.is_file() else scene_parameters(run.target)
        values = {name: words(value) for name, value in maker.parameters.items()}
        _show(options, live.scene, session, PanelState(session, operator, known, values), worlds)
    raise_failure(maker.live.sim, Outcome(simulated=session.time))


class _SimulationFactory:
    """Factory that builds the simulation from the command-line options."""

    def __init__(self, options: RunOptions, max_dt: float | None = None) -> None:
        self._options, self._max_dt = options, max_dt
        self.parameters: dict[str, Any] = target_parameters(options)
        self.live: Live
        self.operator: Operator | None = None

    def make(self, changes: Mapping[str, Any]) -> Live:
        """Build the simulation with new values of some parameters."""
        from gpusim.viewer.window.sources import Live

        settings = {**self.parameters, **{name: str(value) for name, value in changes.items()}}
        run = with_parameters(self._options, settings)
        check(run)
        scene = load_target(run, still=True)
        config = dataclasses.replace(scene.config, **run.config_changes())
        variable = None if self._max_dt is None else AdaptiveStep(config.dt, self._max_dt)
        self.live = Live(make_simulation(run, config, scene.builder.finalize()), scene, run.start_pose())
        self.live.variable = variable
        self.parameters = settings
        if self.operator is not None:
            self.operator.attach(self.live.sim, scene, settings)
            connect_goals(scene, self.operator)
            self.live.operator = self.operator
        return self.live


def _recorder(path: Path, run: RunOptions, live: Live, worlds: Sequence[int]) -> MotionRecorder:
    return MotionRecorder(
        live.sim,
        path,
        target=recorded_target(run),
        parameters=target_parameters(run),
        fixed_base=run.fixed_base,
        worlds=worlds,
    )


def _end_recording(recorder: MotionRecorder, live: Live) -> None:
    """Close the recording before a restart, which may change the model."""
    live.record(None)
    recorder.close()


def _show(options: ViewOptions, scene: Scene, session: Session, panel_state: PanelState, worlds: Sequence[int]) -> None:
    try:
        if options.web:
            pacer, jitter = serve_page(options, scene, panel_state, worlds)
        elif options.rerun is not None:
            pacer, jitter = run_alone(options, session)
        else:
            pacer, jitter = _open_window(options, scene, session, panel_state, worlds)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted at {session.time:g} s") from None
    _report(pacer.frame_rate(), scene, session, jitter)


def _open_window(
    options: ViewOptions, scene: Scene, session: Session, panel_state: PanelState, worlds: Sequence[int]
) -> tuple[Pacer, Jitter]:
    from gpusim.viewer.window.window import Window

    picture = options.picture
    width, height = picture.points(_MIN_SIZE)
    with Window(
        session,
        title=f"gpusim: {scene.name}",
        width=width,
        height=height,
        quality=picture.quality,
        worlds=worlds,
        camera=picture.camera_for(scene),
        overlays=sorted(picture.overlay_names()),
        visuals=picture.visuals,
        decoration=picture.decorated(scene),
    ) as window:
        try:
            add_operator(window, panel_state, panel=options.panel)
        except ViewerError as error:  # without imgui, only the panel is missing
            note(str(error))
        if picture.follow is not None:  # do this after the panel has set the size of the viewport
            window.sight.follow_body(picture.follow)
        return window.pacer, window.run(options.duration)


def _report(frame_rate: float, scene: Scene, session: Session, jitter: Jitter) -> None:
    dropped = f", {session.dropped:.2f} s dropped" if session.dropped else ""
    print(
        f"{scene.name}: {session.time:.3f} s, {jitter.frames} frames, {frame_rate:.1f} frames/s; "
        f"jitter {1e3 * jitter.rms:.2f} ms rms, {1e3 * jitter.worst:.2f} ms worst{dropped}"
    )
