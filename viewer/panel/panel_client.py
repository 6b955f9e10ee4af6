"""The panel as a client of a window."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from gpusim.description.operator_names import KEYS
from gpusim.viewer.operator.key_list import KeyGroup, KeyLine, window_key
from gpusim.viewer.operator.keys import window_name
from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.window.operator_client import RELEASED, OperatorClient

if TYPE_CHECKING:
    from gpusim.viewer.panel.panel import Panel
    from gpusim.viewer.window.window import FrameInfo, Window

TOGGLE = "TAB"
"""Key that shows and hides the panel."""


class PanelClient:
    """Window client that handles mouse events over the panel, and key events while the user types.

    Args:
        window: window with the panel and with the current OpenGL context.
        panel_state: state that the panel shows.

    Raises:
        ViewerError: imgui-bundle is not installed.
    """

    def __init__(self, window: Window, panel_state: PanelState) -> None:
        from gpusim.viewer.panel.panel import Panel  # late import: needs imgui-bundle and OpenGL

        self.panel: Panel = Panel(panel_state)
        self._window = window
        self._cursor = (0.0, 0.0)
        self._held = 0
        self._look()

    def _look(self) -> None:
        """Show the world of the selected body in the panel, or the first drawn world without a selected body."""
        panel_state, sight = self.panel.panel_state, self._window.sight
        panel_state.worlds = sight.worlds
        panel_state.world = sight.worlds[sight.picked.world if sight.picked is not None else 0]

    def room(self, width: float, height: float) -> Box:
        """Return the area for the scene, in cursor units."""
        return self.panel.scene_area(width, height)

    def event(self, kind: str, *details: Any) -> bool:
        """Handle an event. Return True if the panel uses the event."""
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
        """Handle a mouse button."""
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
            # other clients also get key releases, so that no key stays pressed
            return action != RELEASED
        if code == KEYS[TOGGLE]:
            if action != RELEASED:
                self.panel.visible = not self.panel.visible
            return True
        return False

    def key_groups(self) -> list[KeyGroup]:
        """Return help texts: the key that shows the panel, and mouse actions on the panel."""
        lines = [KeyLine(window_key(window_name(TOGGLE)), "show or hide the panel")]
        if self.panel.panel_state.operator is not None:
            lines.append(KeyLine("right click", "on a slider: return the command to the schedule"))
        return [KeyGroup("Panel", lines)]

    def used_keys(self) -> Collection[str]:
        """Return the key that shows and hides the panel."""
        return {window_name(TOGGLE)}

    def draw(self, shown: FrameInfo) -> None:
        """Draw the panel and process clicks."""
        width, height = self._window.screen.size()
        pacer = self._window.pacer
        self.panel.panel_state.jitter, self.panel.panel_state.frame_rate = pacer.recent().rms, pacer.frame_rate()
        self._look()
        self.panel.zoom = self._window.screen.zoom()
        self.panel.frame(width, height, shown.seconds, shown.width / max(width, 1))
        self._window.controls.panel_reports = self.panel.visible and self.panel.fits(width, height)

    def close(self) -> None:
        """Release all resources."""
        self.panel.close()


def add_operator(window: Window, panel_state: PanelState, *, panel: bool = True) -> PanelClient | None:
    """Add an operator to a window, with or without the panel.

    Args:
        window: window that gets the clients.
        panel_state: state of the window's session. With a panel, state and window share the set of active overlays.
        panel: if True, add the panel, keyboard and gamepad. If False, add only keyboard and gamepad.

    Returns:
        The panel's client, or None without a panel.

    Raises:
        ViewerError: imgui-bundle is not installed. After this error, the window has keyboard and gamepad, but no panel.
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
    window.set_room(client.room)
    return client
