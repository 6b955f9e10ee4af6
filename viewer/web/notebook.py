"""Browser view of a simulation that a notebook steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpusim.scene import Camera, Scene
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.operator import Operator
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.web.server import LOCAL
from gpusim.viewer.web.web_view import WebView
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def notebook(
    sim: Simulation,
    scene: Scene | None = None,
    *,
    worlds: Sequence[int] | None = None,
    camera: PinholeCamera | Camera | str | None = None,
    host: str = LOCAL,
    port: int = 0,
) -> WebView:
    """Show a simulation in a notebook's cell, with its operator panel.

    ::

        view = gpusim.viewer.notebook(sim)
        view  # the last line of a cell shows the page

        sim.step(500)
        view.update()  # shows the new state
        view.run(5.0)  # runs for 5 s in real time; sliders and buttons work meanwhile

    If the browser runs on another computer, set ``host`` to the name of the kernel's computer.

    Args:
        sim: the simulation.
        scene: scene of the simulation, for schedule, plots and camera.
        worlds: indices of the drawn worlds, or None for the first 16.
        camera: a camera, the name of a view, or None. With None, the view uses the scene's camera, or a camera that
            shows everything.
        host: name or address of this computer, which the browser uses to connect.
        port: port of the page. 0 selects a free port.

    Returns:
        The view. ``close()`` stops the server.

    Raises:
        ViewerError: viser is not installed, or the port or host cannot be used.
        UnknownNameError: the camera is unknown.
    """
    if not hasattr(sim, "runtime"):
        raise ViewerError(f"notebook: sim = {sim!r:.80} is not a simulation; give a gpusim.Simulation")
    if not isinstance(scene, Scene | None):
        raise ViewerError(f"notebook: scene = {scene!r:.80} is not a Scene; give load_scene(name)")
    if scene is None:
        from gpusim.builder.builder import ModelBuilder

        scene = Scene("simulation", "", ModelBuilder(), sim.config, duration=0.0)
    live = Live(sim, scene)
    live.operator = Operator(sim, scene)
    state = PanelState(Session(live), live.operator)
    return WebView(state, host=host, port=port, worlds=worlds, camera=scene.camera if camera is None else camera)
