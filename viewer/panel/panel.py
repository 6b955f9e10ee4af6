"""The operator panel: imgui widgets over the scene, in a window or offscreen."""

from __future__ import annotations

from typing import Any

from gpusim.viewer.errors import ViewerError
from gpusim.viewer.operator import Operator
from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.panel import commands, diagram, events, lists, running, scopes, status, theme, widgets
from gpusim.viewer.panel.bundle import imgui, make_renderer
from gpusim.viewer.panel.layout import Layout, lay_out
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.panel.theme import Sizes

_FIXED = ("no_title_bar", "no_resize", "no_move", "no_collapse", "no_saved_settings", "no_nav")

_ROOMY = 40.0
"""The list of overlays is initially open if the column is at least this high, in font sizes."""
_MIN_WIDTH, _MIN_HEIGHT = 30.0, 18.0
"""Minimum window size for the panel, in font sizes."""
_FOR_SCOPES = 3.2
"""The panel shows scopes if the window is at least this wide, in column widths."""


class Panel:
    """Operator panel that draws a panel state and converts clicks to commands.

    The constructor, :meth:`frame` and :meth:`close` need a current OpenGL context.

    Args:
        panel_state: state that the panel shows.

    Attributes:
        panel_state: as given.
        visible: whether the user shows the panel. Small windows never show the panel.

    Raises:
        ViewerError: imgui-bundle is not installed.
    """

    def __init__(self, panel_state: PanelState) -> None:
        self.panel_state = panel_state
        self.visible = True
        self._context: Any = imgui.create_context()
        imgui.set_current_context(self._context)
        io = imgui.get_io()
        io.set_ini_filename(None)  # no ini file in the user's folder
        io.set_log_filename("")
        io.fonts.add_font_from_file_ttf(str(theme.font_file()), 13.0)
        self._renderer = make_renderer()
        self._sizes: Sizes | None = None
        self.zoom = 1.0
        self._layout: Layout | None = None
        self.events = events.Events(imgui, io)

    def layout(self, width: float, height: float) -> Layout:
        """Return the layout for a window size, in cursor units."""
        sizes = Sizes.of(width, height, self.zoom)
        history = self.panel_state.history()
        scopes_fit = history is not None and bool(history.scopes) and width >= _FOR_SCOPES * sizes.column
        timeline = 0.0 if self.panel_state.live is not None else sizes.timeline
        opened = self.panel_state.diagram_shown and self.panel_state.diagrams() is not None
        return lay_out(width, height, sizes.column, sizes.bar, scopes_fit, timeline, opened)

    def fits(self, width: float, height: float) -> bool:
        """Return whether a window has space for the panel and the scene."""
        font = Sizes.of(width, height, self.zoom).font
        return width >= _MIN_WIDTH * font and height >= _MIN_HEIGHT * font

    def scene_area(self, width: float, height: float) -> Box:
        """Return the area for the scene. If the panel is hidden or does not fit, the scene gets the whole window."""
        whole = Box(0.0, 0.0, width, height)
        return self.layout(width, height).scene if self.visible and self.fits(width, height) else whole

    def covers(self, x: float, y: float) -> bool:
        """Return whether the panel covered a window point in the last frame."""
        return self._layout is not None and not self._layout.scene.holds(x, y)

    @property
    def has_list(self) -> bool:
        """True if a popup list is open, which may cover the scene."""
        if self._layout is None:
            return False
        self._enter()
        flags = imgui.PopupFlags_
        return bool(imgui.is_popup_open("", flags.any_popup_id | flags.any_popup_level))

    @property
    def wants_keyboard(self) -> bool:
        """True if the user is typing into a field."""
        if self._layout is None:
            return False
        self._enter()
        return bool(imgui.get_io().want_text_input)

    def _enter(self) -> None:
        if self._context is None:
            raise ViewerError("this panel is closed; create a new one")
        imgui.set_current_context(self._context)

    def frame(self, width: float, height: float, seconds: float, scale: float = 1.0) -> None:
        """Draw into the bound framebuffer, and process all clicks since the last frame.

        Args:
            width, height: window size, in cursor units.
            seconds: time since the last frame.
            scale: pixels per cursor unit.
        """
        if not self.visible or not self.fits(width, height):
            self._layout = None
            return
        self._enter()
        history = self.panel_state.history()
        if history is not None:
            history.sample()
        io = imgui.get_io()
        io.display_size = imgui.ImVec2(width, height)
        io.display_framebuffer_scale = imgui.ImVec2(scale, scale)
        io.delta_time = max(seconds, 1e-4)
        sizes = Sizes.of(width, height, self.zoom)
        if sizes != self._sizes:
            theme.apply(imgui.get_style(), sizes)
            self._sizes = sizes
        self._layout = self.layout(width, height)
        self.panel_state.areas.clear()
        imgui.new_frame()
        imgui.push_font(None, sizes.font)
        self._draw(self._layout)
        imgui.pop_font()
        imgui.render()
        self._renderer.render(imgui.get_draw_data())

    def _draw(self, layout: Layout) -> None:
        roomy = layout.left.height > _ROOMY * imgui.get_font_size()
        self._part("left", layout.left, lambda: self._left(roomy), "no_scrollbar")
        history = self.panel_state.history()
        if history is not None and layout.right.width > 0.0:
            self._part("right", layout.right, lambda: scopes.draw(history, self.panel_state.world_name()))
        imgui.push_style_color(imgui.Col_.window_bg, theme.color(theme.BAR))
        view = self.panel_state.diagrams()
        if view is not None and layout.diagram.height > 0.0:
            flags = ("no_scrollbar", "no_scroll_with_mouse")
            self._part("diagram", layout.diagram, lambda: diagram.draw(self.panel_state, view), *flags)
        if layout.timeline.height > 0.0:
            self._part("timeline", layout.timeline, lambda: running.timeline(self.panel_state), "no_scrollbar")
        self._part("bar", layout.bar, lambda: status.draw(self.panel_state), "no_scrollbar")
        imgui.pop_style_color()

    def _part(self, name: str, area: Box, content: Any, *more: str) -> None:
        imgui.set_next_window_pos((area.x, area.y))
        imgui.set_next_window_size((area.width, area.height))
        flags = 0
        for flag in (*_FIXED, *more):
            flags |= getattr(imgui.WindowFlags_, flag)
        one_line = name in ("bar", "timeline")
        if one_line:
            pad = 0.5 * (area.height - imgui.get_text_line_height())
            imgui.push_style_var(imgui.StyleVar_.window_padding, (0.7 * imgui.get_font_size(), max(pad, 0.0)))
        imgui.begin(name, None, flags)
        if one_line:
            imgui.pop_style_var()
        content()
        imgui.end()

    def _left(self, roomy: bool) -> None:
        """Draw the left column."""
        panel_state, operator = self.panel_state, self.panel_state.operator
        if operator is not None:
            running.emergency_stop(panel_state, operator)
        running.time(panel_state)
        if panel_state.diagrams() is not None:
            diagram.toggle(panel_state)
        imgui.separator()
        imgui.begin_child("rest")
        if operator is not None:
            commands.draw(panel_state, operator)
            imgui.separator()
            running.recording(panel_state)
        self._lists(panel_state, operator, roomy)
        imgui.end_child()

    def _lists(self, panel_state: PanelState, operator: Operator | None, roomy: bool) -> None:
        if panel_state.overlays and widgets.section(panel_state.areas, "Overlays", opened=roomy):
            lists.overlays(panel_state)
        if operator is not None and widgets.section(panel_state.areas, "Parameters"):
            lists.parameters(panel_state)
        if panel_state.all_keys() and widgets.section(panel_state.areas, "Keys"):
            lists.keys(panel_state)

    def close(self) -> None:
        """Release all resources. Repeated calls have no effect."""
        if self._context is None:
            return
        self._enter()
        self._renderer.shutdown()
        imgui.destroy_context(self._context)
        self._context = None
