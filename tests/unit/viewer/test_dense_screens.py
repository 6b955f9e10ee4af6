from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpusim.viewer.window.screen import Screen


@pytest.mark.parametrize(
    ("system", "scale", "size", "pixels", "zoom"),
    [
        ("X11 at 96 dpi", 1.0, 960, 960, 1.0),
        ("X11 at 192 dpi", 2.0, 1920, 1920, 2.0),
        ("Windows at 150 %", 1.5, 1440, 1440, 1.5),
        ("macOS, dense", 2.0, 960, 1920, 1.0),
        ("minimized", 2.0, 0, 0, 1.0),
    ],
)
def test_zoom_is_what_the_system_leaves_to_the_program(
    system: str, scale: float, size: int, pixels: int, zoom: float
) -> None:
    screen: Any = object.__new__(Screen)
    screen.handle = None
    screen.glfw = SimpleNamespace(
        get_window_content_scale=lambda _: (scale, scale),
        get_window_size=lambda _: (size, size // 2),
        get_framebuffer_size=lambda _: (pixels, pixels // 2),
    )
    assert screen.zoom() == zoom, system


def test_the_panel_grows_with_the_zoom() -> None:
    pytest.importorskip("imgui_bundle")
    from gpusim.viewer.panel.theme import Sizes

    plain, dense = Sizes.of(960, 540), Sizes.of(1920, 1080, 2.0)
    assert dense.font == pytest.approx(2.0 * plain.font, abs=1.0)
    assert dense.column == pytest.approx(2.0 * plain.column, rel=0.1) and dense.bar > 1.8 * plain.bar
    assert Sizes.of(1920, 1080).font < dense.font
