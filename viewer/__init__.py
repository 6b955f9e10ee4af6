"""OpenGL viewer that draws simulations.

Each package imports only packages that are earlier in this list:

* ``camera``: cameras, and camera poses that show the whole scene.
* ``gl``: rendering (contexts, shaders, lighting, buffers, text).
* ``overlays``: engineering data over the scene, and pictures of the scene with the overlays.
* ``operator``: operator input from keys, gamepad and recordings, without OpenGL.
* ``window``: an interactive session with mouse and keyboard.
* ``panel``: sliders, gauges and scopes in the window.
* ``web``: a page for browsers and notebooks, with the scene, inputs, time and scopes, without OpenGL.

Modules at the top level: ``offscreen`` (pictures without a window) and ``pictures`` (picture and film files).

The package imports OpenGL only when you draw the first picture:

    with gpusim.viewer.Offscreen(sim, width=640, height=360) as eye:
        picture = eye.image()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.stage import Stage
from gpusim.viewer.camera import OrbitCamera, PinholeCamera
from gpusim.viewer.errors import ViewerError

if TYPE_CHECKING:
    from gpusim.viewer.offscreen import Offscreen
    from gpusim.viewer.web.notebook import notebook
    from gpusim.viewer.web.web_view import WebView

__all__ = ["Offscreen", "OrbitCamera", "PinholeCamera", "Stage", "ViewerError", "WebView", "notebook"]

_ON_DEMAND = {
    "Offscreen": "gpusim.viewer.offscreen",
    "WebView": "gpusim.viewer.web.web_view",
    "notebook": "gpusim.viewer.web.notebook",
}


def __getattr__(name: str) -> Any:
    # late import: error classes and cameras do not need the renderer
    if name in _ON_DEMAND:
        from importlib import import_module

        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
