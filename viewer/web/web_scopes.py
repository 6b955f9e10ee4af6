"""Scopes of the browser view: the plotted signals of the last seconds, drawn by uPlot."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.panel.history import SECONDS, History, Scope
from gpusim.viewer.panel.line_colors import LINES, Rgba

_HEIGHT = 150
"""Height of a scope, pixels."""


class WebScopes:
    """Scopes on the page.

    Args:
        gui: interface of a viser server.
        history: the samples.
    """

    def __init__(self, gui: Any, history: History) -> None:
        self._history = history
        self._charts: list[tuple[Scope, Any]] = []
        self._sent: dict[int, tuple[float, int, int]] = {}
        if not history.scopes:
            return
        with gui.add_folder("Scopes"):
            for scope in history.scopes:
                self._charts.append((scope, self._chart(gui, scope)))

    def _chart(self, gui: Any, scope: Scope) -> Any:
        lines = [
            {"label": trace.label, "stroke": _css(LINES[k % len(LINES)]), "width": 1.5}
            for k, trace in enumerate(scope.traces)
        ]
        title = scope.title if scope.unit in ("", "-") else f"{scope.title} ({scope.unit})"
        return gui.add_uplot(
            _columns(np.zeros(1), np.zeros((1, len(scope.traces)))), ({"label": "s"}, *lines), title=title,
            scales=_axes((0.0, 1.0)), height=_HEIGHT,
        )  # fmt: skip

    def refresh(self) -> None:
        """Send new samples to the scopes. Times are relative to the last sample."""
        for scope, chart in self._charts:
            times, values = self._history.course(scope)
            if not len(times):
                continue
            state = (float(times[-1]), len(times), self._history.world)
            if state == self._sent.get(scope.first):
                continue
            self._sent[scope.first] = state
            scales = _axes(self._history.ends(scope, values))
            if scales != chart.scales:  # browsers rebuild the chart
                chart.scales = scales
            chart.data = _columns(times - times[-1], values)


def _columns(times: Array, values: Array) -> tuple[Array, ...]:
    return tuple(np.ascontiguousarray(column, np.float64) for column in (times, *values.T))


def _axes(ends: tuple[float, float]) -> dict[str, Any]:
    """Return the axis limits, with a margin around the values."""
    margin = 0.08 * (ends[1] - ends[0])
    x = {"time": False, "auto": False, "range": (-SECONDS, 0.0)}
    return {"x": x, "y": {"auto": False, "range": (ends[0] - margin, ends[1] + margin)}}


def _css(color: Rgba) -> str:
    return "#" + "".join(f"{round(255 * c):02x}" for c in color[:3])
