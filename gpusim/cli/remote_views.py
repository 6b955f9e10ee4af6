"""``gpusim view --web`` and ``--rerun``: a page for browsers, and a stream to a Rerun viewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpusim.cli.exit_codes import OptionError
from gpusim.recording.live import check_address
from gpusim.recording.stream import StreamRecorder, record

if TYPE_CHECKING:
    from gpusim.cli.view_options import ViewOptions
    from gpusim.scene import Scene
    from gpusim.viewer.panel import PanelState
    from gpusim.viewer.window.pacing import Jitter, Pacer
    from gpusim.viewer.window.session import Session
    from gpusim.viewer.window.sources import Live

_RATE = 30.0
"""Samples per second of a stream."""


def serve_page(
    options: ViewOptions, scene: Scene, panel_state: PanelState, worlds: Sequence[int]
) -> tuple[Pacer, Jitter]:
    """Serve a web page with the simulation until Ctrl-C or the end of ``--duration``.

    Returns:
        The frame timer of the page, and the statistics of the frame jitter.

    Raises:
        ViewerError: viser is not installed, or the port or host cannot be used.
        SimulationError: the simulation failed.
        KeyboardInterrupt: Ctrl-C.
    """
    from gpusim.viewer.web.web_view import WebView

    picture = options.picture
    if not options.panel:
        panel_state.operator = None
    with WebView(
        panel_state,
        host=options.host,
        port=options.port,
        worlds=worlds,
        camera=picture.camera_for(scene),
        visuals=picture.visuals,
    ) as page:
        if picture.follow is not None:
            page.follow(picture.follow)
        print(f"{scene.name}: {page.url}   Ctrl-C ends it", flush=True)
        return page.pacer, page.run(options.duration)


def check_rerun(options: ViewOptions) -> None:
    """Check the address of ``--rerun``.

    Raises:
        OptionError: the target is a recording.
        ModelError: the value of ``--rerun`` is not an address, rerun-sdk is not installed, or no server answers at the
            address.
    """
    assert options.rerun is not None
    if options.is_recording:
        raise OptionError("--rerun streams a simulation, and this is a recording of motion; give a scene")
    check_address(options.rerun)


def stream_to_rerun(options: ViewOptions, live: Live) -> StreamRecorder:
    """Return a recorder that sends the scene's signals and all body poses to a Rerun viewer."""
    assert options.rerun is not None
    signals = live.scene.signals() or ["sim.time"]
    rate = min(_RATE, 1.0 / live.sim.config.dt)
    return record(live.sim, options.rerun, signals, rate=rate, worlds=[options.picture.world or 0])


def run_alone(options: ViewOptions, session: Session) -> tuple[Pacer, Jitter]:
    """Run a viewer session without a window or page, until Ctrl-C or the end of ``--duration``.

    Raises:
        SimulationError: the simulation failed.
        KeyboardInterrupt: Ctrl-C.
    """
    from gpusim.viewer.window.pacing import Pacer
    from gpusim.viewer.window.running import run_session

    pacer = Pacer(_RATE)
    print(f"streaming to {options.rerun}   Ctrl-C ends it", flush=True)
    return pacer, run_session(session, pacer, session.frame, options.duration)
