"""Window with a main loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gpusim.closing import Closing
from gpusim.scene import Camera
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.overlays import Timings, overlays
from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.window.controls import Controls
from gpusim.viewer.window.pacing import RATE, Jitter, Pacer
from gpusim.viewer.window.running import run_session
from gpusim.viewer.window.screen import Screen
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sketches import Sketches
from gpusim.viewer.window.sources import Live
from gpusim.viewer.window.view_state import ViewState

if TYPE_CHECKING:
    from gpusim.viewer.gl.renderer import View
    from gpusim.viewer.window.surface import Surface

_BUTTONS = ("left", "right", "middle")  # glfw's numbers
_TITLE_EVERY = 0.25
_SHIFT, _CTRL = 1, 2  # glfw's bits
Room = Callable[[float, float], Box]
"""Function that converts width and height of the window to the scene's area, in cursor units."""


@dataclass(frozen=True)
class FrameInfo:
    """Data for a client about the current frame.

    Attributes:
        session: the running session.
        view: view of the drawn scene.
        width, height: window size (pixels).
        seconds: time since the previous frame (s).
    """

    session: Session
    view: View
    width: int
    height: int
    seconds: float


class Client(Protocol):
    """Protocol of an object that draws in the window, such as a panel. Clients get events before the window."""

    def event(self, kind: str, *details: Any) -> bool:
        """Handle an event, with the arguments of :data:`screen.Listener`.

        Return True if the scene and other clients must ignore the event.
        """

    def draw(self, shown: FrameInfo) -> None:
        """Draw over the scene, into the window's bound framebuffer."""

    def close(self) -> None:
        """Release all resources while the context is current."""


class Window(Closing):
    """Window that shows a session.

    Args:
        session: the session to run.
        title: first words of the window's title.
        width, height: window size, in cursor units.
        quality: name of the quality, or "auto".
        max_worlds: number of worlds to draw, starting with the first.
        worlds: indices of the worlds to draw. ``worlds`` replaces ``max_worlds``.
        camera: a camera, the name of a view, or None for a camera that shows everything.
        overlays: names of the initially active overlays.
        visuals: if True, bodies with visuals show only their visuals. With ``visuals=False``, all bodies show their
            collision shapes.
        decoration: if True, also draw joints, springs, cylinders, posts, and solids for bodies without shapes and
            visuals.
        visible: if False, open a hidden window.

    Attributes:
        screen: glfw's window.
        controls: mouse and keyboard.
        sight: camera and selection in the window.
        overlays: names of the active overlays.
        pacer: timer of the frames.

    Raises:
        ViewerError: no window can be opened, see :class:`Screen`.
    """

    def __init__(
        self,
        session: Session,
        *,
        title: str = "gpusim",
        width: int = 960,
        height: int = 540,
        quality: str = "auto",
        max_worlds: int = 16,
        worlds: Sequence[int] | None = None,
        camera: PinholeCamera | Camera | str | None = None,
        overlays: Sequence[str] = (),
        visuals: bool = True,
        decoration: bool = True,
        visible: bool = True,
    ) -> None:
        self.session, self.title = session, title
        self._quality, self._camera = quality, camera
        self._worlds, self._max_worlds = worlds, max_worlds
        self._drawn = {"visuals": visuals, "decoration": decoration}
        self.overlays = set(overlays)
        self._clients: list[Client] = []
        self._room: Room = lambda width, height: Box(0.0, 0.0, width, height)
        self.screen = Screen(title, width, height, self.event, visible)
        self._surface: Surface | None = None
        try:
            self.sight = self._look()
            self._surface = self._make_surface()
        except BaseException:
            self.close()
            raise
        self.controls = Controls(session, self.sight)
        self._sketches = Sketches(session, self.controls)
        self._bind_overlays()
        self._generation = session.generation
        rate = self.screen.refresh_rate()
        self.pacer = Pacer(rate if 24.0 <= rate <= 240.0 else RATE)
        self._last = time.perf_counter()
        self._titled = float("-inf")
        self._work = 0.0

    def _look(self) -> ViewState:
        source = self.session.source
        first = range(min(source.num_worlds, self._max_worlds))
        worlds = list(first if self._worlds is None else self._worlds)
        area = self._area()
        size = int(area.width), int(area.height)
        return ViewState(source.model, worlds, self.session.poses(worlds), *size, self._camera, **self._drawn)

    def _area(self) -> Box:
        """Return the area of the scene in the window, in cursor units."""
        return self._room(*self.screen.size())

    def _pixels(self) -> tuple[int, int, int, int]:
        """Return the scene's area in the window, in pixels: x and y of the lower left corner, width, height."""
        area, (width, height) = self._area(), self.screen.pixels()
        scale = width / max(self.screen.size()[0], 1)
        x, below = round(scale * area.x), height - round(scale * (area.y + area.height))
        return x, below, max(round(scale * area.width), 1), max(round(scale * area.height), 1)

    def _make_surface(self) -> Surface:
        from gpusim.viewer.window.surface import Surface  # late import: needs the screen's OpenGL

        return Surface(self.sight, self._quality, *self._pixels()[2:])

    def _bind_overlays(self) -> None:
        for overlay in overlays():
            self.controls.bind(overlay.key, overlay.description, partial(self.toggle, overlay.name), group="Overlays")

    def toggle(self, overlay: str) -> None:
        """Switch an overlay on or off."""
        self.overlays ^= {overlay}

    def add_client(self, client: Client) -> None:
        """Add a client that draws over the scene. The last added client gets events first."""
        self._clients.append(client)

    def set_room(self, room: Room) -> None:
        """Set the function that returns the scene's area in the window, and move the camera to its home pose."""
        self._room = room
        area = self._area()
        self.sight.width, self.sight.height = int(area.width), int(area.height)
        self.sight.home()

    def event(self, kind: str, *details: Any) -> None:
        """Handle an event from glfw."""
        up = kind == "button" and details[1] == self.screen.glfw.RELEASE
        taken = any(client.event(kind, *details) for client in reversed(self._clients))
        # if a mouse button was pressed on the scene, the scene also gets the release, wherever the cursor is
        if not taken or up:
            self._act(kind, details)

    def _act(self, kind: str, details: Sequence[Any]) -> None:
        glfw = self.screen.glfw
        if kind == "cursor":
            area = self._area()
            self.controls.move(details[0] - area.x, details[1] - area.y)
        elif kind == "scroll":
            self.controls.scroll(details[1])
        elif kind == "button" and details[0] < len(_BUTTONS):
            number, action, bits = details
            at = self.controls.cursor
            if action == glfw.PRESS:
                self.controls.press(_BUTTONS[number], *at, shift=bool(bits & _SHIFT), ctrl=bool(bits & _CTRL))
            else:
                self.controls.release(_BUTTONS[number], *at)
        elif kind == "key" and details[2] != glfw.RELEASE:
            key, scancode, action, bits = details
            name = self.screen.key_name(key, scancode)
            self.controls.key(name, bool(bits & _SHIFT), repeated=action == glfw.REPEAT)

    def run(self, duration: float | None = None) -> Jitter:
        """Show frames until the user quits.

        Args:
            duration: stop after this time (s).

        Returns:
            Statistics of the lateness.

        Raises:
            SimulationError: the simulation failed.
            KeyboardInterrupt: Ctrl-C, between two frames.
        """
        return run_session(self.session, self.pacer, self.frame, duration, self.screen.closed)

    def frame(self, deadline: float) -> None:
        """Show one frame: handle events, advance the state to ``deadline`` (s), draw the picture."""
        began = time.perf_counter()
        self.screen.make_current()  # offscreen pictures may have changed the current context
        self.screen.poll()
        self.controls.aim_pull()
        self.session.frame(deadline)
        if self._generation != self.session.generation:
            self._start_over()
        self.sight.show(self.session.poses(self.sight.worlds))
        width, height = self.screen.pixels()
        if width and height:
            self._draw(width, height, deadline)
        self._last = deadline
        self._report(deadline)
        self._work = time.perf_counter() - began

    def _draw(self, width: int, height: int, deadline: float) -> None:
        assert self._surface is not None
        area, (x, y, *size) = self._area(), self._pixels()
        self.sight.width, self.sight.height = max(int(area.width), 1), max(int(area.height), 1)
        self._surface.resize(*size)
        source = self.session.source
        sim = source.sim if isinstance(source, Live) else None
        view = self._surface.paint(self.overlays, sim, self._timings(), [self._sketches.draw])
        self._surface.show(x, y)
        for client in self._clients:
            client.draw(FrameInfo(self.session, view, width, height, deadline - self._last))
        self.screen.swap()

    def _timings(self) -> Timings:
        source = self.session.source
        step = source.cost if isinstance(source, Live) else None
        return Timings(self.session.real_time_factor() or None, step, self._work)

    def _start_over(self) -> None:
        """Create a stage for the new simulation or recording, and keep the camera."""
        self._generation = self.session.generation
        before = self.sight
        if self._surface is not None:
            self._surface.close()
        self.sight = self._look()
        self.sight.copy_camera_from(before)
        self._surface = self._make_surface()
        self.controls.sight = self.sight
        self.session.skip()
        self.pacer.restart()

    def _report(self, deadline: float) -> None:
        """Update the window title at intervals."""
        if deadline - self._titled < _TITLE_EVERY:
            return
        self._titled = deadline
        session, jitter = self.session, self.pacer.recent()
        state = "paused" if session.paused else f"{session.real_time_factor():.2f}x real time"
        if session.behind:
            state += ", behind"
        self.screen.set_title(
            f"{self.title}   {session.headline}   {state}   {self.pacer.frame_rate():.0f} frames/s   "
            f"jitter {1e3 * jitter.rms:.1f} ms (worst {1e3 * jitter.worst:.1f})"
        )

    def picture(self) -> Any:
        """Return the last picture of the scene, uint8 (height, width, 3)."""
        assert self._surface is not None
        self.screen.make_current()
        return self._surface.image()

    def close(self) -> None:
        """Close the window. Further calls do nothing."""
        if self.screen.handle is None:
            return
        self.screen.make_current()
        for client in self._clients:
            client.close()
        if self._surface is not None:
            self._surface.close()
            self._surface = None
        self.screen.close()
