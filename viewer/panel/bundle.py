"""imgui: the one module that imports imgui-bundle, which brings a libglfw of its own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gpusim.viewer.errors import ViewerError

INSTALL = 'pip install "gpusim[panel]"'

with suppress(ImportError, OSError):
    # first, so that windows and imgui share this library and not two copies with a state each
    import glfw  # noqa: F401

try:
    from imgui_bundle import imgui
except ImportError as error:
    raise ViewerError(f"the operator panel needs imgui-bundle ({error}); install it: {INSTALL}") from error

__all__ = ["imgui", "make_renderer"]


def make_renderer() -> Any:
    """What draws imgui's frames into the bound framebuffer; needs a current OpenGL and a current imgui context."""
    # late: it imports OpenGL, whose platform must have been chosen before
    from imgui_bundle.python_backends.opengl_backend_programmable import ProgrammablePipelineRenderer

    return ProgrammablePipelineRenderer()
