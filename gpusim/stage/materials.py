"""Colors and surface finishes.

The colors of bodies come from a fixed palette. Fixed parts, steel parts and springs have other finishes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpusim.description.looks import Look
from gpusim.typing import Array


@dataclass(frozen=True)
class Finish:
    """Appearance of a surface.

    Attributes:
        color: sRGB color, 0 to 1.
        roughness: roughness from 0.05 (mirror) to 1 (chalk).
        metal: metalness from 0 (paint, rubber, wood) to 1 (bare metal).
        alpha: opacity, 0 to 1.
        dimmed: True to limit the brightness.
    """

    color: tuple[float, float, float]
    roughness: float = 0.55
    metal: float = 0.0
    alpha: float = 1.0
    dimmed: bool = False

    def linear(self) -> tuple[float, float, float]:
        """Return the linear color for lighting: sRGB color to the power of 2.2, as in the shaders."""
        r, g, b = (c**2.2 for c in self.color)
        return r, g, b

    def darker(self, factor: float) -> Finish:
        """Return the same surface in a darker color."""
        r, g, b = (c * factor for c in self.color)
        return replace(self, color=(r, g, b))


def _hex(text: str) -> tuple[float, float, float]:
    r, g, b = (int(text[k : k + 2], 16) / 255.0 for k in (0, 2, 4))
    return r, g, b


# Neighbors in the list differ in hue and lightness, so color-blind users can distinguish the parts.
PALETTE = tuple(
    Finish(_hex(code))
    for code in ("e3a02c", "3a76b4", "c75437", "5f9e87", "8a6fb0", "d8c27a", "496378", "d98b8b", "88b04b", "a9bccb")
)
FIXTURE = Finish(_hex("6a737b"), roughness=0.6)
"""Finish of fixtures that connect a machine to the world."""
STATIC = Finish(_hex("b9b4aa"), roughness=0.85)
"""Finish of the world's shapes: walls, ramps, tables."""
TERRAIN = Finish(_hex("a8a48c"), roughness=0.95)
PIN = Finish(_hex("5a636b"), roughness=0.4, metal=0.5)
CHROME = Finish(_hex("dfe3e6"), roughness=0.22, metal=0.9)
BARREL = Finish(_hex("59656f"), roughness=0.42, metal=0.3)
SPRING = Finish(_hex("c8402f"), roughness=0.4, metal=0.1)
ROPE = Finish(_hex("4a4038"), roughness=0.8)
MOTOR = Finish(_hex("2f5d62"), roughness=0.45, metal=0.2)


_SHINIEST = 0.05
BRIGHT, BRIGHTER = 0.45, 0.25
"""Brightness limit of a mesh color (linear), and factor that scales the excess above the limit."""
DIMMED_GROUND = 0.55
"""Brightness factor of a ground with a visual."""


def dimmed(color: Array) -> Array:
    """Return linear colors (n, 3) with a limited brightness."""
    peak = np.maximum(color.max(axis=1, keepdims=True), BRIGHT)
    limited: Array = color * (BRIGHT + BRIGHTER * (peak - BRIGHT)) / peak
    return limited


def with_look(finish: Finish, look: Look) -> Finish:
    """Return the finish. Values that ``look`` defines replace the values of ``finish``."""
    alpha = finish.alpha if look.alpha is None else look.alpha
    roughness = finish.roughness if look.roughness is None else max(look.roughness, _SHINIEST)
    metal = finish.metal if look.metallic is None else look.metallic
    return replace(finish, roughness=roughness, metal=metal, alpha=alpha)


def body_finish(body: int) -> Finish:
    """Return the finish of a body (index, -1 for the world)."""
    return STATIC if body < 0 else PALETTE[body % len(PALETTE)]
