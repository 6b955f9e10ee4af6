"""Import of imgui-bundle. All other modules import imgui from this module."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gpusim.viewer.errors import ViewerError

INSTALL = 'pip install "gpusim[panel]"'

with suppress(ImportError, OSError):
    # import glfw first, so that windows and imgui share one library
    import glfw  # noqa: F401

try:
    from imgui_bundle import imgui
except ImportError as error:
    raise ViewerError(f"the operator panel needs imgui-bundle ({error}); install it: {INSTALL}") from error

__all__ = ["imgui", "make_renderer"]


def make_renderer() -> Any:
    """Return imgui's renderer for the bound framebuffer, in the current contexts of OpenGL and imgui."""
    # late import: this module imports OpenGL, which needs the chosen platform
    from imgui_bundle.python_backends.opengl_backend_programmable import ProgrammablePipelineRenderer

    return ProgrammablePipelineRenderer()
