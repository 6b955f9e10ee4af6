"""Window with an OpenGL context, created by glfw. This module selects the PyOpenGL platform that windows need."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from gpusim.viewer.errors import ViewerError
from gpusim.viewer.gl.context import PACKAGES, VERSIONS, use_egl

WITHOUT = "draw without a window: gpusim render"
Listener = Callable[..., None]
"""Event handler. Arguments: event type ("key", "char", "button", "cursor", "scroll"), then the values from glfw."""


def require_glfw() -> Any:
    """Return the module glfw.

    Raises:
        ViewerError: glfw is not installed, or its library is missing.
    """
    try:
        import glfw
    except (ImportError, OSError) as error:
        raise ViewerError(f"a window needs glfw ({error}); install it: pip install glfw, or {WITHOUT}") from error
    return glfw


def require_display() -> Any:
    """Return the initialized module glfw.

    Raises:
        ViewerError: glfw or a display is missing.
    """
    glfw = require_glfw()
    glfw.ERROR_REPORTING = False  # ViewerError reports errors
    if not glfw.init():
        text = glfw.get_error()[1]
        reason = text.decode(errors="replace") if isinstance(text, bytes) else "glfw gives no reason"
        raise ViewerError(
            f"no display: {reason}; run it where there is a screen (on Linux: DISPLAY or WAYLAND_DISPLAY), or {WITHOUT}"
        )
    return glfw


class Screen:
    """Window with an OpenGL core context. The constructor makes the context current.

    Args:
        title: title of the window.
        width, height: size of the content, in cursor units.
        listener: function that gets the events.
        visible: if False, open a hidden window.

    Attributes:
        glfw: the module.
        handle: glfw's window, for clients that use glfw directly.
        version: (major, minor) of the core profile.

    Raises:
        ViewerError: glfw, a display, a window or OpenGL 4.3 or newer is not available.
    """

    def __init__(self, title: str, width: int, height: int, listener: Listener, visible: bool = True) -> None:
        self.glfw = require_display()
        self.handle: Any = None
        try:
            self.handle, self.version, api = self._create(title, width, height, visible)
            self.glfw.make_context_current(self.handle)
            _load_opengl(self.glfw, api)
        except BaseException:
            self.close()
            raise
        # waiting for vsync would shift the pacer's deadlines
        self.glfw.swap_interval(0)
        self._attach(listener)

    def _create(self, title: str, width: int, height: int, visible: bool) -> tuple[Any, tuple[int, int], int]:
        """Try OpenGL versions and context APIs. Return window, version and API for the first combination that works."""
        glfw = self.glfw
        code, reason = 0, ""
        for api in _context_apis(glfw):
            for version in VERSIONS:
                _hint(glfw, api, version, visible)
                handle = glfw.create_window(width, height, title, None, None)
                code, text = glfw.get_error()
                if handle and code == glfw.NO_ERROR:
                    return handle, version, api
                if handle:
                    glfw.destroy_window(handle)
                reason = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        if code in (glfw.VERSION_UNAVAILABLE, glfw.API_UNAVAILABLE):
            raise ViewerError(
                f"cannot open a window: the driver offers no OpenGL 4.3 core profile ({reason}); update the driver, "
                f"draw on the CPU with Mesa (LIBGL_ALWAYS_SOFTWARE=1; sudo apt install {PACKAGES}), or {WITHOUT}"
            )
        raise ViewerError(f"cannot open a window: {reason}; try another --size, or {WITHOUT}")

    def _attach(self, listener: Listener) -> None:
        glfw, handle = self.glfw, self.handle
        glfw.set_key_callback(handle, lambda _, *what: listener("key", *what))
        glfw.set_char_callback(handle, lambda _, *what: listener("char", *what))
        glfw.set_mouse_button_callback(handle, lambda _, *what: listener("button", *what))
        glfw.set_cursor_pos_callback(handle, lambda _, *what: listener("cursor", *what))
        glfw.set_scroll_callback(handle, lambda _, *what: listener("scroll", *what))

    def make_current(self) -> None:
        """Make this window's context current for the calling thread."""
        self.glfw.make_context_current(self.handle)

    def poll(self) -> None:
        """Send pending events to the listener."""
        self.glfw.poll_events()

    def swap(self) -> None:
        """Show the drawn frame."""
        self.glfw.swap_buffers(self.handle)

    def closed(self) -> bool:
        """Return whether the user closed the window."""
        return bool(self.glfw.window_should_close(self.handle))

    def size(self) -> tuple[int, int]:
        """Return width and height, in cursor units (0 while minimized)."""
        width, height = self.glfw.get_window_size(self.handle)
        return width, height

    def pixels(self) -> tuple[int, int]:
        """Return width and height in pixels."""
        width, height = self.glfw.get_framebuffer_size(self.handle)
        return width, height

    def zoom(self) -> float:
        """Return the number of cursor units per logical pixel. The number is 1 if the desktop scales windows."""
        scale = self.glfw.get_window_content_scale(self.handle)[0]
        pixels = self.pixels()[0] / max(self.size()[0], 1)
        return max(scale / pixels, 1.0) if pixels > 0.0 and scale > 0.0 else 1.0

    def cursor(self) -> tuple[float, float]:
        """Return the cursor position, relative to the upper left corner."""
        x, y = self.glfw.get_cursor_pos(self.handle)
        return x, y

    def set_title(self, title: str) -> None:
        """Set the window title."""
        self.glfw.set_window_title(self.handle, title)

    def refresh_rate(self) -> float:
        """Return the refresh rate of the screen (1/s), or 0 if unknown."""
        monitor = self.glfw.get_primary_monitor()
        mode = self.glfw.get_video_mode(monitor) if monitor else None
        return float(mode.refresh_rate) if mode else 0.0

    def key_name(self, key: int, scancode: int) -> str:
        """Return the name of a key. Letters depend on the keyboard layout."""
        glfw = self.glfw
        if key in _named(glfw):
            return _named(glfw)[key]
        return (glfw.get_key_name(key, scancode) or (chr(key) if 32 < key < 127 else "")).lower()

    def close(self) -> None:
        """Close the window. Repeated calls have no effect."""
        if self.handle is not None:
            self.glfw.destroy_window(self.handle)
            self.handle = None
        self.glfw.terminate()


def _context_apis(glfw: Any) -> list[int]:
    """Return the context APIs to try, in order of preference."""
    native, egl = glfw.NATIVE_CONTEXT_API, glfw.EGL_CONTEXT_API
    if not sys.platform.startswith("linux"):
        return [native, egl]
    platform = type(getattr(sys.modules.get("OpenGL.platform"), "PLATFORM", None)).__name__
    return {"EGLPlatform": [egl], "GLXPlatform": [native]}.get(platform, [egl, native])


def _hint(glfw: Any, api: int, version: tuple[int, int], visible: bool) -> None:
    """Set glfw's hints for the next window."""
    glfw.default_window_hints()
    hints = {
        glfw.CLIENT_API: glfw.OPENGL_API,
        glfw.CONTEXT_CREATION_API: api,
        glfw.CONTEXT_VERSION_MAJOR: version[0],
        glfw.CONTEXT_VERSION_MINOR: version[1],
        glfw.OPENGL_PROFILE: glfw.OPENGL_CORE_PROFILE,
        glfw.OPENGL_FORWARD_COMPAT: True,
        glfw.VISIBLE: visible,
        glfw.SCALE_TO_MONITOR: True,  # --size is in logical pixels of the desktop
        # the scene has a separate framebuffer with depth and samples
        glfw.DEPTH_BITS: 0,
        glfw.STENCIL_BITS: 0,
    }
    for hint, value in hints.items():
        glfw.window_hint(hint, value)


def _load_opengl(glfw: Any, api: int) -> None:
    """Import OpenGL for the current context."""
    if api == glfw.EGL_CONTEXT_API:
        use_egl()
        return
    if sys.platform.startswith("linux") and "OpenGL.platform" not in sys.modules:
        os.environ["PYOPENGL_PLATFORM"] = "glx"
    try:
        import OpenGL

        if not os.environ.get("GPUSIM_GL_DEBUG"):
            OpenGL.ERROR_CHECKING = False  # error checks cost more than the calls
        from OpenGL import GL  # noqa: F401
    except (ImportError, AttributeError, OSError) as error:
        raise ViewerError(f"cannot draw: OpenGL cannot be loaded ({error}); install a graphics driver") from error


def _named(glfw: Any) -> dict[int, str]:
    return {
        glfw.KEY_SPACE: "space",
        glfw.KEY_RIGHT: "right",
        glfw.KEY_LEFT: "left",
        glfw.KEY_UP: "up",
        glfw.KEY_DOWN: "down",
        glfw.KEY_ESCAPE: "escape",
        glfw.KEY_LEFT_BRACKET: "[",
        glfw.KEY_RIGHT_BRACKET: "]",
        glfw.KEY_ENTER: "enter",
        glfw.KEY_TAB: "tab",
        glfw.KEY_BACKSPACE: "backspace",
        glfw.KEY_DELETE: "delete",
        glfw.KEY_HOME: "home",
        glfw.KEY_END: "end",
        **{glfw.KEY_F1 + k: f"f{k + 1}" for k in range(12)},
    }
