"""OpenGL contexts without a window, created with EGL.

:class:`OffscreenContext` tries EGL devices first, then Mesa's surfaceless platform.

This module selects EGL as PyOpenGL's platform, so import it before any OpenGL module.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

from gpusim.viewer.errors import ViewerError

VERSIONS = ((4, 6), (4, 5), (4, 3))
"""OpenGL versions in order of preference. The shaders need at least version 4.3."""
PACKAGES = "libegl1 libgl1 libgl1-mesa-dri"
"""Debian packages for drawing without a GPU."""

# EGL constants that PyOpenGL 3.1 does not define.
_SURFACELESS = 0x31DD
_SOFTWARE_DEVICE = b"EGL_MESA_device_software"

_display: Any = None
_display_failures: list[str] = []
_starting = threading.Lock()
_process = 0
"""ID of the process that initialized the EGL display. A forked process cannot use the display."""


def use_egl() -> None:
    """Make PyOpenGL load its functions through EGL. Call this function before any import of ``OpenGL.GL``.

    Raises:
        ViewerError: OpenGL was imported with another platform, or the libraries are missing.
    """
    if "OpenGL.platform" in sys.modules:
        platform = type(getattr(sys.modules["OpenGL.platform"], "PLATFORM", None)).__name__
        if platform != "EGLPlatform":
            raise ViewerError(
                f"OpenGL was imported before with the platform {platform}, and pictures without a window need EGL; "
                "import gpusim.viewer.gl.context and call use_egl() first, or set PYOPENGL_PLATFORM=egl"
            )
    os.environ["PYOPENGL_PLATFORM"] = "egl"
    try:
        import OpenGL
        from OpenGL import EGL  # noqa: F401  (import before disabling error checks: 3.1.10 crashes otherwise)

        if not os.environ.get("GPUSIM_GL_DEBUG"):
            OpenGL.ERROR_CHECKING = False  # error checks cost more than the calls
        from OpenGL import GL  # noqa: F401
    except (ImportError, AttributeError, OSError) as error:
        # None for a missing library
        found = re.search(r"'NoneType' object has no attribute '(egl|gl)", str(error))
        reason = f"the {found.group(1).upper()} library is missing" if found else str(error)
        raise _missing(reason.replace("the GL ", "the OpenGL ")) from error


def _missing(what: str) -> ViewerError:
    return ViewerError(f"cannot draw: {what}; install them, on Debian: sudo apt install {PACKAGES}")


class OffscreenContext:
    """OpenGL core context without a window or surface, for drawing into framebuffer objects.

    Call :meth:`make_current` before any OpenGL call.

    Attributes:
        version: (major, minor) of the core profile.
        renderer_name: name of the renderer that OpenGL reports, e.g. "llvmpipe (LLVM 19.1.7, 256 bits)".

    Raises:
        ViewerError: EGL, a display or OpenGL 4.3 is not available, or the process is a fork of a process that has
            drawn.
    """

    def __init__(self) -> None:
        with _starting:
            use_egl()
            from OpenGL import EGL, GL

            self._egl = EGL
            self._display = _shared_display()
        self._thread = threading.get_ident()
        self._context, self.version = self._create()
        self.make_current()
        try:
            self.renderer_name = GL.glGetString(GL.GL_RENDERER).decode(errors="replace")
        except AttributeError as error:  # the function pointer is missing
            raise _missing("EGL created a context, but OpenGL functions are missing") from error

    def _create(self) -> tuple[Any, tuple[int, int]]:
        egl = self._egl
        config = _config(egl, self._display)
        _quiet(egl.eglBindAPI, egl.EGL_OPENGL_API)  # each thread has its own API setting, by default OpenGL ES
        for major, minor in VERSIONS:
            wish = (
                *(egl.EGL_CONTEXT_MAJOR_VERSION, major, egl.EGL_CONTEXT_MINOR_VERSION, minor),
                *(egl.EGL_CONTEXT_OPENGL_PROFILE_MASK, egl.EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, egl.EGL_NONE),
            )
            context = _quiet(egl.eglCreateContext, self._display, config, egl.EGL_NO_CONTEXT, _attributes(egl, wish))
            if context:
                return context, (major, minor)
        raise ViewerError(
            "cannot draw: the driver offers no OpenGL 4.3 core profile; update the graphics driver, "
            f"or draw on the CPU with Mesa: sudo apt install {PACKAGES}"
        )

    def make_current(self) -> None:
        """Make this context current for the calling thread.

        Raises:
            ViewerError: the context is closed, belongs to another thread or process, or needs a surface.
        """
        if self._context is None:
            raise ViewerError("this Offscreen is closed; create a new one")
        _check_process()
        if threading.get_ident() != self._thread:
            raise ViewerError("this Offscreen belongs to the thread that created it; create one in each thread")
        egl = self._egl
        if not _quiet(egl.eglMakeCurrent, self._display, egl.EGL_NO_SURFACE, egl.EGL_NO_SURFACE, self._context):
            raise ViewerError("cannot draw: the driver allows no context without a surface; update the graphics driver")

    def close(self) -> None:
        """Release the context and all of its OpenGL objects. Repeated calls have no effect."""
        if self._context is None:
            return
        egl = self._egl
        _quiet(egl.eglMakeCurrent, self._display, egl.EGL_NO_SURFACE, egl.EGL_NO_SURFACE, egl.EGL_NO_CONTEXT)
        _quiet(egl.eglDestroyContext, self._display, self._context)
        self._context = None


def _check_process() -> None:
    if _process and _process != os.getpid():
        raise ViewerError(
            "cannot draw: this process was forked from one that had drawn before; start it by "
            "multiprocessing.get_context('spawn'), or draw only in forked processes"
        )


def _shared_display() -> Any:
    """Return the first EGL display that works."""
    global _display, _process
    _check_process()
    if _display is None:
        from OpenGL import EGL

        _display_failures.clear()
        for name, display in _displays(EGL):
            major, minor = EGL.EGLint(), EGL.EGLint()
            starts = display and _quiet(EGL.eglInitialize, display, major, minor)
            if starts and _quiet(EGL.eglBindAPI, EGL.EGL_OPENGL_API) and _config(EGL, display, required=False):
                _display, _process = display, os.getpid()
                break
            _display_failures.append(name)
        else:
            tried = ", ".join(_display_failures) or "no platform"
            raise _missing(f"EGL has no display that works (tried {tried}); a driver for it is missing")
    return _display


def _displays(egl: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, display) pairs in the order of preference."""
    from OpenGL.EGL.EXT.platform_base import eglGetPlatformDisplayEXT
    from OpenGL.EGL.EXT.platform_device import EGL_PLATFORM_DEVICE_EXT

    for number, device in enumerate(_devices(egl)):
        yield f"device {number}", _quiet(eglGetPlatformDisplayEXT, EGL_PLATFORM_DEVICE_EXT, device, None)
    yield "surfaceless", _quiet(eglGetPlatformDisplayEXT, _SURFACELESS, None, None)
    yield "default", _quiet(egl.eglGetDisplay, egl.EGL_DEFAULT_DISPLAY)


def _devices(egl: Any) -> list[Any]:
    from OpenGL.EGL.EXT.device_enumeration import eglQueryDevicesEXT
    from OpenGL.EGL.EXT.device_query import eglQueryDeviceStringEXT

    count = egl.EGLint()
    found = (egl.EGLDeviceEXT * 32)()
    if not _quiet(eglQueryDevicesEXT, 32, found, count):
        return []

    def is_software(device: Any) -> bool:
        return _SOFTWARE_DEVICE in (_quiet(eglQueryDeviceStringEXT, device, egl.EGL_EXTENSIONS) or b"")

    return sorted((found[k] for k in range(count.value)), key=is_software)


def _config(egl: Any, display: Any, required: bool = True) -> Any:
    wish = (egl.EGL_SURFACE_TYPE, egl.EGL_PBUFFER_BIT, egl.EGL_RENDERABLE_TYPE, egl.EGL_OPENGL_BIT, egl.EGL_NONE)
    configs, count = (egl.EGLConfig * 1)(), egl.EGLint()
    if _quiet(egl.eglChooseConfig, display, _attributes(egl, wish), configs, 1, count) and count.value:
        return configs[0]
    if required:
        raise _missing("EGL offers no configuration for OpenGL; a driver for it is missing")
    return None


def _attributes(egl: Any, values: tuple[int, ...]) -> Any:
    return (egl.EGLint * len(values))(*values)


def _quiet(function: Any, *arguments: Any) -> Any:
    """Return the result of ``function``, or None if PyOpenGL raises an error."""
    try:
        return function(*arguments)
    except (AttributeError, ctypes.ArgumentError, TypeError):
        return None
    except Exception as error:  # EGLError and NullFunctionError; importing these classes needs the library
        if type(error).__module__.startswith("OpenGL"):
            return None
        raise
