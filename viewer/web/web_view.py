"""A session on a web page. The session runs in the Python process. Browsers show and control the session."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpusim.closing import Closing
from gpusim.errors import GpusimError
from gpusim.scene import Camera
from gpusim.signals.writing import chosen_worlds
from gpusim.stage.stage import Stage
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.camera.aim import aimed, home_camera
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.web.server import LOCAL, PORT, open_server, stop_server, url_of
from gpusim.viewer.web.web_panel import SCENE_VIEW, WebPanel
from gpusim.viewer.web.web_scene import WebScene, set_up_lights
from gpusim.viewer.web.web_scopes import WebScopes
from gpusim.viewer.window.pacing import Jitter, Pacer
from gpusim.viewer.window.running import run_session

RATE = 30.0
"""Maximum number of pictures per second."""
_PANEL_EVERY = 0.2
"""Time between two updates of displayed numbers and scopes, s."""
_ASPECT = 0.9
"""Typical aspect ratio (width / height) of the page's scene area."""
_MAX_WORLDS = 16


class WebView(Closing):
    """Server of a page with the scene, the operator's inputs, time control and scopes.

    Several browsers can show the same session. Use the view in a ``with`` statement, or call :meth:`close`. If a view
    is the last expression of a notebook cell, the cell shows the page.

    Args:
        panel_state: session and operator, as for the panel of a window.
        host: name or address of this computer, which browsers use to connect. "0.0.0.0" allows all other computers to
            connect without a password.
        port: 1 to 65535, or 0 for a free port.
        worlds: indices of the drawn worlds, or None for the first 16.
        camera: a camera, the name of a view, or None for a camera that shows everything.
        visuals: if True, bodies with visuals show only their visuals. With ``visuals=False``, all bodies show their
            collision shapes.

    Attributes:
        session: session of the panel state.
        pacer: timer of the frames, at most 30 frames per second.

    Raises:
        ViewerError: viser is not installed, or the port or host cannot be used.
        UnknownNameError: the camera is unknown.
    """

    def __init__(
        self,
        panel_state: PanelState,
        *,
        host: str = LOCAL,
        port: int = PORT,
        worlds: Sequence[int] | None = None,
        camera: PinholeCamera | Camera | str | None = None,
        visuals: bool = True,
    ) -> None:
        self.session, self._state = panel_state.session, panel_state
        count = self.session.source.num_worlds
        self._all = chosen_worlds("WebView", worlds, count).tolist()[: _MAX_WORLDS if worlds is None else count]
        if not self._all:
            raise ViewerError(f"WebView: worlds = {worlds!r} selects no world; give indices, or None")
        self._camera, self._visuals = camera, visuals
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._followed: int | None = None
        self._from = np.zeros(3)
        self._server: Any = open_server(host, port)
        self.pacer = Pacer(RATE)
        try:
            set_up_lights(self._server.scene)
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Address of the page for a browser on this computer."""
        return url_of(self._opened())

    def _opened(self) -> Any:
        """Return the server. If the page is closed, raise an error."""
        if self._server is None:
            raise ViewerError("the page is closed; create a new WebView")
        return self._server

    def _start(self) -> None:
        """Create the page for the session's current source, at the start and after each restart."""
        self._generation = self.session.generation
        self._panel_at = float("-inf")
        self._server.gui.reset()
        self._followed = None
        self._draw(self._all)
        self._panel = WebPanel(
            self._server.gui, self._state, self._requests.put, self._request_look, self.follow, self._draw, self._all
        )
        history = self._state.history()
        self._scopes = None if history is None else WebScopes(self._server.gui, history)

    def _draw(self, worlds: list[int]) -> None:
        """Draw the given worlds next to each other."""
        self.worlds = self._state.worlds = worlds
        self._state.world = worlds[0]
        self._server.scene.reset()
        stage = Stage(self.session.source.model, len(worlds), visuals=self._visuals)
        poses = self.session.poses(worlds)
        self._home = aimed(stage, poses, home_camera(self._camera, len(worlds)), _ASPECT)
        self._scene = WebScene(self._server.scene, stage, poses)
        if self._followed is not None:
            self._from = poses.position[0, self._followed].copy()
        start = self._server.initial_camera
        start.position, start.look_at, start.up = self._home.position, self._home.target, self._home.up
        start.fov = self._home.field_of_view

    def follow(self, label: str | None) -> None:
        """Follow a body of the first drawn world in all browsers. With ``label`` None, the camera stops following.

        Raises:
            UnknownNameError: the body is unknown.
        """
        self._followed = None if label is None else self.session.source.model.index("body", label)
        if self._followed is not None:
            position = self.session.poses(self.worlds).position[0, self._followed]
            self._from = position + self._scene.shifted

    def _request_look(self, name: str, client: Any) -> None:
        self._requests.put(lambda: self._look(name, client))

    def _look(self, name: str, client: Any) -> None:
        """Move the camera of one browser."""
        poses = self.session.poses(self.worlds)
        camera = self._home if name == SCENE_VIEW else aimed(self._scene.stage, poses, name, _ASPECT)
        camera = camera.moved(self._scene.shifted)
        with client.atomic():
            client.camera.up_direction = camera.up
            client.camera.position = camera.position
            client.camera.look_at = camera.target
            client.camera.fov = camera.field_of_view

    def run(self, duration: float | None = None) -> Jitter:
        """Run and show the session in real time until ``session.quit()``.

        Args:
            duration: stop after this time (s).

        Returns:
            Statistics of the frames' lateness.

        Raises:
            SimulationError: the simulation failed.
            KeyboardInterrupt: Ctrl-C, between two frames.
        """
        self._opened()
        self.session.catch_up()
        jitter = run_session(self.session, self.pacer, self.frame, duration)
        self._show(panel=True)
        return jitter

    def frame(self, deadline: float) -> None:
        """Execute requests of browsers, advance to ``deadline`` (s, frame clock), and show the new state."""
        self._run_requests()
        self.session.frame(deadline)
        if self._generation != self.session.generation:
            self._start()
            self.session.skip()
            self.pacer.restart()
        self._show(deadline - self._panel_at >= _PANEL_EVERY)
        if deadline - self._panel_at >= _PANEL_EVERY:
            self._panel_at = deadline

    def update(self) -> None:
        """Execute requests of browsers and show the current state. Call this method after ``sim.step``.

        The requests write the values of sliders to ``sim.control``.
        """
        self._opened()
        self.session.catch_up()
        self._run_requests()
        if self._state.operator is not None:
            self._state.operator.before_steps(self.session.time, 0)
        self._show(panel=True)

    def _run_requests(self) -> None:
        while not self._requests.empty():
            try:
                self._requests.get()()
            except GpusimError as error:  # the page shows the error, and the run continues
                self.session.note = str(error)

    def _show(self, panel: bool) -> None:
        poses = self.session.poses(self.worlds)
        history = self._state.history()
        if history is not None:
            history.sample()
        with self._server.atomic():
            self._scene.show(poses)
            if self._followed is not None:
                self._scene.shift(self._from - poses.position[0, self._followed])
            if panel:
                self._panel.refresh()
                if self._scopes is not None:
                    self._scopes.refresh()

    # Notebooks, end.

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="480" style="border: 0"></iframe>'

    def close(self) -> None:
        """Stop the server. Repeated calls have no effect."""
        if self._server is not None:
            server, self._server = self._server, None
            stop_server(server)
