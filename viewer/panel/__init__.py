"""Operator panel over the scene, drawn with imgui: sliders, switches, gauges and scopes.

The package imports imgui and OpenGL only when you create the first panel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.viewer.panel.panel_state import PanelState

if TYPE_CHECKING:
    from gpusim.viewer.panel.panel import Panel

__all__ = ["PanelState", "Panel"]


def __getattr__(name: str) -> Any:
    # late import: all other parts work without imgui-bundle
    if name == "Panel":
        from gpusim.viewer.panel.panel import Panel

        return Panel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
