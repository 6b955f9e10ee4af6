"""Operator panel, drawn with imgui over the scene: sliders, switches, gauges and scopes, generated from a scene.

Importing this package does not load imgui and OpenGL. The first panel loads imgui and OpenGL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.viewer.panel.panel_state import PanelState

if TYPE_CHECKING:
    from gpusim.viewer.panel.panel import Panel

__all__ = ["PanelState", "Panel"]


def __getattr__(name: str) -> Any:
    # import late, so that the rest works without imgui-bundle
    if name == "Panel":
        from gpusim.viewer.panel.panel import Panel

        return Panel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
