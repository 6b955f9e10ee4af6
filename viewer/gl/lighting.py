"""Lighting of a picture, computed without OpenGL: a key light with its shadow map, sky and haze."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.description.viewing import DIRECTIONAL, HEADLIGHT, SPOT, LightSpec
from gpusim.model.model import Model
from gpusim.stage.parts import frame_in_world
from gpusim.stage.poses import Bounds, Poses
from gpusim.typing import Array

SUN = np.array([2.05, 1.98, 1.86])
HORIZON = np.array([0.86, 0.89, 0.92])
ZENITH = np.array([0.44, 0.58, 0.76])
BOUNCE = np.array([0.40, 0.385, 0.36])
GROUND = np.array([0.40, 0.41, 0.42])
_DIRECTION = (-0.55, -0.45, 1.0)
"""Direction from the scene to the key light, with z up. The light is in front, at the upper left."""


@dataclass(frozen=True)
class ShadowView:
    """View from a light towards the drawn objects, for the shadow map.

    Attributes:
        to_clip: matrix (4, 4) from positions relative to the eye to the light's clip coordinates.
        to_texture: matrix (4, 4) from positions relative to the eye to texture coordinates and depth (0 to 1).
        texel: edge length of a texel (m).
    """

    to_clip: Array
    to_texture: Array
    texel: float


def light_direction(up: Array) -> Array:
    """Return the unit vector to the viewer's key light in the world frame.

    The direction is fixed relative to ``up``.
    """
    direction = np.array(_DIRECTION) / np.linalg.norm(_DIRECTION)
    axis = np.cross([0.0, 0.0, 1.0], up)
    sine, cosine = float(np.linalg.norm(axis)), float(up[2])
    if sine < 1e-9:
        return direction if cosine > 0.0 else -direction
    axis /= sine
    rotated: Array = cosine * direction + sine * np.cross(axis, direction) + (1.0 - cosine) * (axis @ direction) * axis
    return rotated


@dataclass(frozen=True)
class Rig:
    """Lights of one picture.

    Attributes:
        to_light: unit vector (world frame) to the first light. Only the first light can cast shadows.
        shadowed: True if the first light casts shadows.
        sun: linear RGB color of the viewer's key light, or zero if the model has lights.
        uniforms: uniform values of the shaders for the model's lights, see light.glsl.
    """

    to_light: Array
    shadowed: bool
    sun: Array
    uniforms: dict[str, Any]


def model_lights(model: Model, num_worlds: int) -> list[LightSpec]:
    """Return the model's lights, beginning with lights that cast shadows. For several worlds, return no lights."""
    lights = list(model.lights) if num_worlds == 1 else []
    return sorted(lights, key=lambda light: not light.shadow)


def rig_of(model: Model, lights: list[LightSpec], poses: Poses, bounds: Bounds, eye: Array, up: Array) -> Rig:
    """Return the lights of a picture.

    The model's lights are dimmed to at most the brightness of the viewer's key light.

    Args:
        model: model with the bodies of the lights.
        lights: lights from :func:`model_lights`, or empty for the viewer's key light.
        poses: poses of the bodies.
        bounds: bounding sphere of all drawn objects, in the world frame.
        eye: position of the eye in the world frame (m). Light positions in the result are relative to the eye.
        up: unit vector against gravity.
    """
    if not lights:
        return Rig(light_direction(up), True, SUN, {})
    uniforms: dict[str, Any] = {"shadowed": int(lights[0].shadow)}
    arms = []
    for k, light in enumerate(lights):
        position, axes = frame_in_world(model, poses, light.body, light.xform, 0)
        if light.kind == HEADLIGHT:
            position = eye
        parallel = light.kind == DIRECTIONAL
        at = axes[:, 2] if parallel else position - eye
        limit = math.cos(light.cutoff) if light.kind == SPOT else -2.0
        uniforms[f"light_position[{k}]"] = np.append(at, 0.0 if parallel else 1.0)
        uniforms[f"light_aim[{k}]"] = np.append(-axes[:, 2], limit)
        uniforms[f"light_fade[{k}]"] = np.append(light.attenuation, light.exponent)
        arms.append(axes[:, 2] if parallel else position - bounds.center)
    exposure = _exposure(lights, np.array(arms))
    for k, light in enumerate(lights):
        uniforms[f"light_color[{k}]"] = exposure * light.intensity * SUN * np.array(light.color) ** 2.2
    length = float(np.linalg.norm(arms[0]))
    to_light = arms[0] / length if length > 1e-9 else up
    return Rig(to_light, lights[0].shadow, np.zeros(3), uniforms)


def _exposure(lights: list[LightSpec], arms: Array) -> float:
    """Return a factor <= 1 that dims the model's lights to at most the brightness of the viewer's key light.

    Args:
        lights: lights of the model.
        arms: vectors (lights, 3) from the scene's center to the lights, m.
    """
    distances = np.linalg.norm(arms, axis=1)
    towards = arms / np.maximum(distances, 1e-9)[:, None]
    fades = [1.0 if light.kind == DIRECTIONAL else float(np.polyval(light.attenuation[::-1], d))
             for light, d in zip(lights, distances, strict=True)]  # fmt: skip
    brightness = np.array([light.intensity for light in lights]) / fades
    return 1.0 / max(1.0, float((np.maximum(towards @ towards.T, 0.0) @ brightness).max()))


def shadow_view(bounds: Bounds, to_light: Array, eye: Array, size: int) -> ShadowView:
    """Return the light's view of all objects that cast shadows, for a square shadow map.

    Args:
        bounds: bounding sphere of the objects that cast shadows, in the world frame.
        to_light: unit vector to the light.
        eye: position of the eye in the world frame (m).
        size: edge length of the shadow map (texels).
    """
    # The map has discrete sizes, because shadow edges would flicker if the size changed slowly.
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
    """Return the spacing (m, a power of ten) of the finest grid lines for a camera distance (m)."""
    return 10.0 ** math.floor(math.log10(max(distance, 1e-6)) - 0.15)
