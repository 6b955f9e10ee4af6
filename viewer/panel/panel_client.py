"""The panel in a window."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from gpusim.model.operator_names import KEYS
from gpusim.viewer.operator.key_list import KeyGroup, KeyLine, window_key
from gpusim.viewer.operator.keys import window_name
from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.window.operator_client import RELEASED, OperatorClient

if TYPE_CHECKING:
    from gpusim.viewer.panel.panel import Panel
    from gpusim.viewer.window.window import Shown, Window

TOGGLE = "TAB"
"""Shows and hides the panel."""


class PanelClient:
    """A client of the window: has the mouse where it is, and the keys while a person types into it.

    Args:
        window: it is drawn in; its context is current.
        panel_state: what it is about.

    Raises:
        ViewerError: imgui-bundle is not installed.
    """

    def __init__(self, window: Window, panel_state: PanelState) -> None:
        from gpusim.viewer.panel.panel import Panel  # late: needs imgui-bundle and OpenGL

        self.panel: Panel = Panel(panel_state)
        self._window = window
        self._cursor = (0.0, 0.0)
        self._held = 0
        self._look()

    def _look(self) -> None:
        """The panel shows the world of the picked body, else the first that is drawn."""
        panel_state, sight = self.panel.panel_state, self._window.sight
        panel_state.worlds = sight.worlds
        panel_state.world = sight.worlds[sight.picked.world if sight.picked is not None else 0]

    def room(self, width: float, height: float) -> Box:
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
        mine = self.panel.covers(*self._cursor) or self.panel.has_list
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
        if code == KEYS[TOGGLE]:
            if action != RELEASED:
                self.panel.visible = not self.panel.visible
            return True
        return False

    def key_groups(self) -> list[KeyGroup]:
        """What the panel's key and the mouse on it do."""
        lines = [KeyLine(window_key(window_name(TOGGLE)), "show or hide the panel")]
        if self.panel.panel_state.operator is not None:
            lines.append(KeyLine("right click", "on a slider: let it go, back to the schedule"))
        return [KeyGroup("Panel", lines)]

    def taken_keys(self) -> Collection[str]:
        """The panel's key."""
        return {window_name(TOGGLE)}

    def draw(self, shown: Shown) -> None:
        """Draw it, and act on what was clicked."""
        width, height = self._window.screen.size()
        pacer = self._window.pacer
        self.panel.panel_state.jitter, self.panel.panel_state.frame_rate = pacer.recent().rms, pacer.frame_rate()
        self._look()
        self.panel.zoom = self._window.screen.zoom()
        self.panel.frame(width, height, shown.seconds, shown.width / max(width, 1))
        self._window.controls.panel_tells = self.panel.visible and self.panel.fits(width, height)

    def close(self) -> None:
        """Give everything back."""
        self.panel.close()


def add_operator(window: Window, panel_state: PanelState, *, panel: bool = True) -> PanelClient | None:
    """Bring an operator into a window, with the panel or without.

    Args:
        window: gets the clients.
        panel_state: of the window's session; its overlays become the window's.
        panel: False: keyboard and gamepad alone.

    Returns:
        The panel's client, if there is one.

    Raises:
        ViewerError: imgui-bundle is not installed; keyboard and gamepad are there nevertheless.
    """
    if panel_state.operator is not None:
        window.add_client(OperatorClient(panel_state.operator))
        window.controls.others.append(panel_state.operator)
    if not panel:
        return None
    panel_state.shown = window.overlays
    client = PanelClient(window, panel_state)
    window.add_client(client)
    window.controls.others.append(client)
    panel_state.keys = window.controls.key_groups
    window.share(client.room)
    return client
