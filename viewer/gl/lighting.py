"""Lighting of a picture: a key light with its shadow map, sky and haze. No OpenGL."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.scene.poses import Bounds

SUN = np.array([2.05, 1.98, 1.86])
HORIZON = np.array([0.86, 0.89, 0.92])
ZENITH = np.array([0.44, 0.58, 0.76])
BOUNCE = np.array([0.40, 0.385, 0.36])
GROUND = np.array([0.40, 0.41, 0.42])
_DIRECTION = (-0.55, -0.45, 1.0)
"""Direction to the light with z up: from the upper left front of a viewer who looks along y."""


@dataclass(frozen=True)
class ShadowView:
    """View of the stage from the light.

    Attributes:
        to_clip: (4, 4) from positions relative to the eye to the light's clip coordinates.
        to_texture: (4, 4) from positions relative to the eye to texture coordinates and depth from 0 to 1.
        texel: edge of a texel, m.
    """

    to_clip: Array
    to_texture: Array
    texel: float


def light_direction(up: Array) -> Array:
    """Return the unit vector to the key light, world frame. It is rotated from z to ``up`` along the shortest path."""
    direction = np.array(_DIRECTION) / np.linalg.norm(_DIRECTION)
    axis = np.cross([0.0, 0.0, 1.0], up)
    sine, cosine = float(np.linalg.norm(axis)), float(up[2])
    if sine < 1e-9:
        return direction if cosine > 0.0 else -direction
    axis /= sine
    turned: Array = cosine * direction + sine * np.cross(axis, direction) + (1.0 - cosine) * (axis @ direction) * axis
    return turned


def shadow_view(bounds: Bounds, to_light: Array, eye: Array, size: int) -> ShadowView:
    """Return the smallest square view of a sphere from the light. Its texels stay in place while the eye moves.

    Args:
        bounds: objects that cast shadows, world frame.
        to_light: unit vector.
        eye: origin of positions, world frame, m.
        size: edge of the map, texels.
    """
    # Use discrete sizes. If the map grew a little in every frame, all shadow edges would flicker.
    radius = 2.0 ** (math.ceil(4.0 * math.log2(max(bounds.radius, 1e-6) * 1.03)) / 4.0)
    z = to_light
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    axes = np.stack([x, np.cross(z, x), z])
    texel = 2.0 * radius / size
    center = axes @ bounds.center
    center[:2] = np.round(center[:2] / texel) * texel
    to_clip = np.eye(4)
    to_clip[:3, :3] = axes * np.array([1.0, 1.0, -1.0])[:, None] / radius
    shift = axes @ eye - center
    to_clip[:3, 3] = shift * [1.0, 1.0, -1.0] / radius
    to_texture = 0.5 * to_clip
    to_texture[:3, 3] += 0.5
    to_texture[3] = (0.0, 0.0, 0.0, 1.0)
    return ShadowView(to_clip, to_texture, texel)


def grid_spacing(distance: float) -> float:
    """Return the spacing of the finest grid lines, m, for a camera distance in m: a power of ten."""
    return 10.0 ** math.floor(math.log10(max(distance, 1e-6)) - 0.15)
