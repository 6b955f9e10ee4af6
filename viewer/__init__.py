"""OpenGL viewer: draws what a simulation computes; imports gpusim, never the reverse.

Rooms, each of which imports those before it alone (tests/unit/viewer/test_rooms.py):

* ``scene``: what is drawn: parts, meshes, materials, grounds, poses. NumPy alone.
* ``camera``: from where it is seen.
* ``gl``: how it is drawn: contexts, shaders, light, buffers, letters.
* ``overlays``: what engineers want to see over the scene, and whole pictures of both.
* ``operator``: what a person tells a simulation, by keys, gamepad and recordings; no OpenGL.
* ``window``: a session on the screen, with mouse and keyboard.
* ``panel``: the operator's sliders, gauges and scopes over it.

Doors beside them: ``offscreen`` (pictures without a screen) and ``pictures`` (files of pictures and films).

Importing it loads no OpenGL; that happens with the first picture:

    with gpusim.viewer.Offscreen(sim, width=640, height=360) as eye:
        picture = eye.image()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.viewer.camera import OrbitCamera, PinholeCamera
from gpusim.viewer.errors import ViewerError

if TYPE_CHECKING:
    from gpusim.viewer.offscreen import Offscreen

__all__ = ["Offscreen", "OrbitCamera", "PinholeCamera", "ViewerError"]


def __getattr__(name: str) -> Any:
    # late, so that whoever only asks for an error class or a camera does not load what is drawn
    if name == "Offscreen":
        from gpusim.viewer.offscreen import Offscreen

        return Offscreen
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
