"""Materials of a USD file: colors, textures, transparency and finish of surfaces."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.description.looks import Look, Texture
from gpusim.errors import ModelError
from gpusim.importers.usd_parts.usd_stage import UsdStage
from gpusim.meshes.textures import texture_of_bytes
from gpusim.typing import Array

Color = tuple[float, float, float]
# Names of inputs in UsdPreviewSurface and in NVIDIA's MDL materials.
_COLOR_INPUTS = ("diffuseColor", "diffuse_color_constant", "diffuse_reflection_color")
_TEXTURE_INPUTS = ("diffuse_texture", "diffuse_color_texture")
_FINISH = {
    "alpha": ("opacity",),
    "roughness": ("roughness", "reflection_roughness_constant"),
    "metallic": ("metallic", "metallic_constant"),
}
_UNSUPPORTED_INPUTS = {
    "normal": ("has a normal map", "its surface is smooth"),
    "normalmap_texture": ("has a normal map", "its surface is smooth"),
    "emissiveColor": ("shines", "it does not shine"),
    "displacement": ("has a displacement", "its surface is smooth"),
}
_COORDINATES = "st"
"""Usual name of the texture coordinates of a mesh."""


@dataclass(frozen=True)
class UvTransform:
    """Texture coordinates from a primvar, with scale, rotation (``angle``, rad) and shift as in UsdTransform2d."""

    name: str = _COORDINATES
    scale: tuple[float, float] = (1.0, 1.0)
    angle: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)

    def apply(self, uv: Array) -> Array:
        """Convert primvar values ``uv`` (..., 2) to texture coordinates (..., 2) in the image."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        transformed: Array = (uv * self.scale) @ np.array([[c, s], [-s, c]]) + self.shift
        return transformed


@dataclass(frozen=True)
class Surface:
    """Appearance of a prim.

    Attributes:
        color: sRGB color (0 to 1) or mean color of the texture. None selects the viewer's default color.
        look: transparency, finish and texture.
        uv_transform: name and 2D transform of the texture coordinates.
        material: name of the material, for messages in the import report.
    """

    color: Color | None = None
    look: Look = Look()
    uv_transform: UvTransform = UvTransform()
    material: str = ""


def prim_surface(stage: UsdStage, prim: Any) -> Surface:
    """Return a prim's look from its material. Without a material, use the mean displayColor and displayOpacity."""
    surface = bound_surface(stage, prim)
    if surface is not None and (surface.color is not None or surface.look.texture is not None):
        return surface
    shown, opacity = _mean(prim, "displayColor", 3), _mean(prim, "displayOpacity", 1)
    look = Look() if surface is None else surface.look
    if opacity is not None and surface is None and opacity[0] < 1.0:
        look = Look(alpha=max(float(opacity[0]), 0.0))
    return Surface(None if shown is None else srgb(shown), look)


def _mean(prim: Any, name: str, count: int) -> Array | None:
    from pxr import UsdGeom

    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
    shown = primvar.Get() if primvar else None
    return np.array(shown, float).reshape(-1, count).mean(axis=0) if shown is not None and len(shown) else None


def bound_surface(stage: UsdStage, prim: Any) -> Surface | None:
    """Return the look of a prim's material from the cache, or None if the prim has no material."""
    from pxr import UsdShade

    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    if not material:
        return None
    path = str(material.GetPath())
    if path not in stage.surfaces:
        shader = material.ComputeSurfaceSource()[0] or material.ComputeSurfaceSource("mdl")[0]
        stage.surfaces[path] = _surface(stage, material.GetPrim().GetName(), shader) if shader else None
    surface: Surface | None = stage.surfaces[path]
    return surface


def _surface(stage: UsdStage, name: str, shader: Any) -> Surface:
    color, texture, uv_transform = _color_and_texture(stage, name, shader)
    if texture is not None:
        if _source(shader, "opacity") is None and texture.pixels.shape[2] == 4:
            texture = replace(texture, pixels=texture.pixels[..., :3])  # the fourth channel is not opacity
        color = texture.mean()
    for i, (what, effect) in _UNSUPPORTED_INPUTS.items():
        if _has_effect(shader, i):
            stage.report.add("look", f"material '{name}'", what, effect)
    numbers = {word: _fraction(shader, inputs) for word, inputs in _FINISH.items()}
    if numbers["alpha"] == 1.0:
        numbers["alpha"] = None
    return Surface(color, Look(**numbers, texture=texture), uv_transform, name)


def _fraction(shader: Any, inputs: tuple[str, ...]) -> float | None:
    """Return the first of ``inputs`` whose value is a number from 0 to 1, or None."""
    values = [_constant(shader, name) for name in inputs]
    return next((float(v) for v in values if isinstance(v, int | float) and 0.0 <= v <= 1.0), None)


def _has_effect(shader: Any, name: str) -> bool:
    """Return whether an unsupported material input changes the look."""
    value = _constant(shader, name)
    if value is None:
        return _source(shader, name) is not None
    if hasattr(value, "path"):
        return bool(value.path)
    return name != "normal" and bool(np.any(np.asarray(value, float) != 0.0))


def _color_and_texture(stage: UsdStage, name: str, shader: Any) -> tuple[Color | None, Texture | None, UvTransform]:
    """Return mean color, texture and texture coordinates of a surface."""
    for i in _TEXTURE_INPUTS:
        picture = _constant(shader, i)
        if getattr(picture, "path", None):
            return None, _texture(stage, name, picture), UvTransform()
    for i in _COLOR_INPUTS:
        if not shader.GetInput(i):
            continue
        value = _constant(shader, i)
        if value is not None:
            return srgb(np.array(value, float)[:3]), None, UvTransform()
        source = _source(shader, i)
        texture = None
        if source is not None and source.GetIdAttr().Get() == "UsdUVTexture":
            texture = _uv_texture(stage, name, source)
            if texture is not None:
                return None, texture, _uv_transform(source)
            value = _constant(source, "fallback")
        else:
            stage.report.add("look", f"material '{name}'", "has a network of shaders", "it is drawn in one color")
        color = value if value is not None else shader.GetInput(i).GetAttr().Get()
        return None if color is None else srgb(np.array(color, float)[:3]), None, UvTransform()
    return None, None, UvTransform()


def _constant(shader: Any, name: str) -> Any:
    """Return the constant value of a material input, or None if a shader computes the value."""
    from pxr import UsdShade

    shader_input = shader.GetInput(name)
    sources = shader_input.GetValueProducingAttributes() if shader_input else []
    if not sources or any(UsdShade.Output.IsOutput(source) for source in sources):
        return None
    return sources[0].Get()


def _source(shader: Any, name: str) -> Any:
    """Return the shader that is connected to an input of ``shader``, or None."""
    from pxr import UsdShade

    shader_input = shader.GetInput(name)
    for source in shader_input.GetValueProducingAttributes() if shader_input else []:
        if UsdShade.Output.IsOutput(source):
            return UsdShade.Shader(source.GetPrim())
    return None


def _uv_texture(stage: UsdStage, name: str, shader: Any) -> Texture | None:
    file = _constant(shader, "file")
    if not getattr(file, "path", None):
        stage.report.add("look", f"material '{name}'", "has a texture without a file", "it is drawn in one color")
        return None
    texture = _texture(stage, name, file)
    if texture is None:
        return None
    scale = np.ones(3) if (value := _constant(shader, "scale")) is None else np.clip(np.array(value, float)[:3], 0, 1)
    if np.all(scale == 1.0):
        return texture
    pixels = texture.pixels.astype(float)
    pixels[..., :3] *= scale ** (1.0 / 2.2)
    return replace(texture, pixels=np.rint(pixels).astype(np.uint8))


def _uv_transform(shader: Any) -> UvTransform:
    """Return the texture coordinates of a UsdUVTexture."""
    reader, uv_transform = _source(shader, "st"), UvTransform()
    if reader is not None and reader.GetIdAttr().Get() == "UsdTransform2d":
        scale, shift = (_constant(reader, i) for i in ("scale", "translation"))
        uv_transform = UvTransform(
            scale=(1.0, 1.0) if scale is None else (float(scale[0]), float(scale[1])),
            angle=math.radians(float(_constant(reader, "rotation") or 0.0)),
            shift=(0.0, 0.0) if shift is None else (float(shift[0]), float(shift[1])),
        )
        reader = _source(reader, "in")
    name = None if reader is None else _constant(reader, "varname")
    return replace(uv_transform, name=str(name or _COORDINATES))


def _texture(stage: UsdStage, name: str, asset: Any) -> Texture | None:
    """Read the texture file of an asset. If this fails, add a finding and return None."""
    try:
        return texture_of_bytes(f"texture '{asset.path}'", stage.content(asset))
    except ModelError as why:
        stage.report.add("look", f"material '{name}'", f"has a texture that is left out: {why}")
        return None


def srgb(linear: Array) -> Color:
    """Convert linear RGB (as in USD) to sRGB."""
    linear = np.clip(linear, 0.0, 1.0)
    r, g, b = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
    return round(float(r), 4), round(float(g), 4), round(float(b), 4)
