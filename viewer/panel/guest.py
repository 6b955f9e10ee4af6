"""The panel in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.viewer.operator.guest import RELEASED, OperatorGuest
from gpusim.viewer.operator.keys import KEYS
from gpusim.viewer.panel.desk import Desk
from gpusim.viewer.panel.layout import Area

if TYPE_CHECKING:
    from gpusim.viewer.panel.panel import Panel
    from gpusim.viewer.window.window import Shown, Window

TOGGLE = KEYS["TAB"]
"""Shows and hides the panel."""


class PanelGuest:
    """A guest of the window: has the mouse where it is, and the keys while a person types into it.

    Args:
        window: it is drawn in; its context is current.
        desk: what it is about.

    Raises:
        ViewerError: imgui-bundle is not installed.
    """

    def __init__(self, window: Window, desk: Desk) -> None:
        from gpusim.viewer.panel.panel import Panel  # late: needs imgui-bundle and OpenGL

        self.panel: Panel = Panel(desk)
        self._window = window
        self._cursor = (0.0, 0.0)
        self._held = 0

    def room(self, width: float, height: float) -> Area:
        """What is left to the scene of a window of a size, in the units of the cursor."""
        return self.panel.scene_area(width, height)

    def event(self, kind: str, *details: Any) -> bool:
        """True for what is the panel's."""
        events = self.panel.events
        if kind == "key":
            return self._key(*details)
        if kind == "char":
            events.character(*details)
            return self.panel.wants_keyboard
        if kind == "cursor":
            self._cursor = details[0], details[1]
            events.cursor(*details)
            return self._held > 0
        mine = self.panel.covers(*self._cursor) or self.panel.wants_mouse
        if kind == "scroll":
            events.scroll(*details)
        elif kind == "button":
            return self._button(details[0], details[1] != RELEASED, mine)
        return mine

    def _button(self, number: int, down: bool, mine: bool) -> bool:
        """A button that went down on the panel is the panel's until it goes up, wherever that is."""
        self.panel.events.button(number, down)
        if down and mine:
            self._held += 1
        elif not down and self._held:
            self._held -= 1
            return True
        return down and mine

    def _key(self, code: int, scancode: int, action: int, bits: int) -> bool:
        if self.panel.wants_keyboard:
            self.panel.events.key(code, action != RELEASED, bits)
            # a key that was held before must not stay down for the others
            return action != RELEASED
        if code == TOGGLE:
            if action != RELEASED:
                self.panel.visible = not self.panel.visible
            return True
        return False

    def draw(self, shown: Shown) -> None:
        """Draw it, and act on what was clicked."""
        width, height = self._window.screen.size()
        self.panel.desk.jitter = self._window.pacer.recent().rms
        self.panel.frame(width, height, shown.seconds, shown.width / max(width, 1))

    def close(self) -> None:
        """Give everything back."""
        self.panel.close()


def add_operator(window: Window, desk: Desk, *, panel: bool = True) -> PanelGuest | None:
    """Bring an operator into a window, with the panel or without.

    Args:
        window: gets the guests.
        desk: of the window's session; its overlays become the window's.
        panel: False: keyboard and gamepad alone.

    Returns:
        The panel's guest, if there is one.

    Raises:
        ViewerError: imgui-bundle is not installed; keyboard and gamepad are there nevertheless.
    """
    if desk.operator is not None:
        window.add_guest(OperatorGuest(desk.operator))
    if not panel:
        return None
    desk.shown = window.overlays
    guest = PanelGuest(window, desk)
    window.add_guest(guest)
    window.share(guest.room)
    return guest
