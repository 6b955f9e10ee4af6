"""Colors, textures and finishes of mesh files, from the data that trimesh reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.description.looks import LARGEST, Look, Texture
from gpusim.typing import Array

Color = tuple[float, float, float]
_GLTF = (".glb", ".gltf")
_ROUGHEST = 1.0
"""Roughness that trimesh returns for DAE files without shininess."""


@dataclass(frozen=True)
class Paint:
    """Color and look of one part of a mesh.

    ``color`` (sRGB, 0 to 1) is the part's color, the mean color of the texture, or None.
    """

    color: Color | None = None
    look: Look = Look()


@dataclass(frozen=True, eq=False)
class Coat:
    """Surface data of one part of a mesh file.

    Attributes:
        paint: color and look of the part.
        uv: (n, 2) texture coordinates of the part's vertices, v upward, or None without a texture.
        colors: (m, 3, 3) sRGB colors at the 3 corners of m triangles, uint8. None if ``paint`` defines the color.
    """

    paint: Paint = Paint()
    uv: Array | None = None
    colors: Array | None = None


Textures = dict[tuple[Any, ...], Texture]
"""Decoded textures of one file, cached by image, color factor and transparency."""


def coat_of(mesh: Any, suffix: str, textures: Textures) -> Coat:
    """Return the surface data of a ``trimesh.Trimesh`` from a file with the suffix ``suffix``.

    For invalid surface data, return an empty Coat.
    """
    try:
        return _coat_of(mesh, suffix, textures)
    except Exception:  # e.g. a truncated image
        return Coat()


def _coat_of(mesh: Any, suffix: str, textures: Textures) -> Coat:
    visual = mesh.visual
    material = getattr(visual, "material", None)
    if material is None:
        return _colored(mesh, suffix) if visual.defined else Coat()
    if hasattr(material, "baseColorFactor"):
        coat = _physical(visual, material, suffix, textures)
    else:
        coat = _simple(visual, material, textures)
    corners = visual.vertex_attributes.get("color") if hasattr(visual, "vertex_attributes") else None
    if corners is not None and len(corners) == len(mesh.vertices) and coat.paint.look.texture is None:
        return _with_colors(_bytes(corners)[mesh.faces], coat.paint, suffix)
    return coat


def _colored(mesh: Any, suffix: str) -> Coat:
    """Return a Coat with the vertex colors or face colors of a file."""
    if mesh.visual.kind == "face":
        return _with_colors(np.repeat(mesh.visual.face_colors[:, None], 3, axis=1), Paint(), suffix)
    return _with_colors(np.asarray(mesh.visual.vertex_colors)[mesh.faces], Paint(), suffix)


def _with_colors(corners: Array, paint: Paint, suffix: str) -> Coat:
    """Return a Coat with corner colors (m, 3, 3 or 4), uint8.

    If all colors are equal, return a Coat with one color.
    """
    rgb = np.ascontiguousarray(corners[..., :3])
    if suffix in _GLTF:
        rgb = np.rint(255.0 * _encoded(rgb / 255.0)).astype(np.uint8)
    alpha = float(corners[..., 3].mean()) / 255.0 if corners.shape[-1] == 4 and corners.size else 1.0
    look = Look(alpha=round(alpha, 4) if alpha < 1.0 else None).over(paint.look)
    if not rgb.size or np.all(rgb == rgb[0, 0]):
        return Coat(Paint(_color(rgb[0, 0] / 255.0) if rgb.size else paint.color, look))
    return Coat(Paint(_color(rgb.reshape(-1, 3).mean(axis=0) / 255.0), look), colors=rgb)


def _simple(visual: Any, material: Any, textures: Textures) -> Coat:
    """Return color, texture and finish from an MTL file."""
    opacity = _number(material.kwargs.get("d"), 1.0) * (1.0 - _number(material.kwargs.get("tr"), 0.0))
    metallic, roughness = (material.kwargs.get(name) for name in ("pm", "pr"))
    look = Look(
        alpha=opacity if 0.0 < opacity < 1.0 else None,  # in files, 0 means opaque (1)
        roughness=None if roughness is None else _number(roughness, 0.5),
        metallic=None if metallic is None else _number(metallic, 0.0),
    )
    if material.image is not None:
        return _textured(visual, _texture(textures, material.image, np.ones(3), True), look)
    return Coat(Paint(_color(material.main_color[:3] / 255.0) if visual.defined else None, look))


def _physical(visual: Any, material: Any, suffix: str, textures: Textures) -> Coat:
    """Return color, texture and finish from a glTF or DAE file."""
    factor, gltf = material.baseColorFactor, suffix in _GLTF
    rgba = np.ones(4) if factor is None else np.asarray(factor, dtype=float) / 255.0
    rgb = _encoded(rgba[:3]) if gltf else rgba[:3]
    opaque = gltf and str(material.alphaMode or "OPAQUE") != "BLEND"
    look = Look(
        alpha=float(rgba[3]) if 0.0 < rgba[3] < 1.0 and not opaque else None,  # in DAE files, 0 means opaque (1)
        roughness=_finish(material, "roughnessFactor", 1, gltf),
        metallic=_finish(material, "metallicFactor", 2, gltf),
    )
    if material.baseColorTexture is not None:
        cut_out = not gltf or str(material.alphaMode or "OPAQUE") != "OPAQUE"
        return _textured(visual, _texture(textures, material.baseColorTexture, rgb, cut_out), look)
    return Coat(Paint(None if factor is None and not gltf else _color(rgb), look))


def _finish(material: Any, name: str, channel: int, gltf: bool) -> float | None:
    """Return the roughness or metallic factor, multiplied by the mean value of its texture."""
    value = getattr(material, name)
    if not gltf:  # trimesh's value (from shininess) is the squared roughness
        unknown = value is None or (name == "roughnessFactor" and value == _ROUGHEST) or name == "metallicFactor"
        return None if unknown else float(np.sqrt(value))
    picture = material.metallicRoughnessTexture
    mean = 1.0 if picture is None else float(np.asarray(picture.convert("RGB"))[..., channel].mean()) / 255.0
    return (1.0 if value is None else float(value)) * mean


def _texture(textures: Textures, image: Any, factor: Array, cut_out: bool) -> Texture:
    """Return a texture: an image multiplied by a color (3,)."""
    key = (id(image), tuple(factor), cut_out)
    if key not in textures:
        reduction = -(-max(image.size) // LARGEST)
        transparent = cut_out and (image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info)
        converted = image.convert("RGBA" if transparent else "RGB")
        pixels = np.array(converted.reduce(reduction) if reduction > 1 else converted)
        if np.any(factor < 1.0):
            pixels[..., :3] = np.rint(pixels[..., :3] * factor)
        textures[key] = Texture(pixels)
    return textures[key]


def _textured(visual: Any, texture: Texture, look: Look) -> Coat:
    """Return a :class:`Coat` with a texture."""
    uv = getattr(visual, "uv", None)
    if uv is None or not np.all(np.isfinite(uv)):
        return Coat(Paint(texture.mean(), look))
    return Coat(Paint(texture.mean(), Look(texture=texture).over(look)), uv=np.asarray(uv, dtype=np.float64)[:, :2])


def _encoded(linear: Array) -> Array:
    """Convert linear colors (0 to 1) to sRGB, with the gamma of the viewer's shaders."""
    encoded: Array = np.clip(linear, 0.0, 1.0) ** (1.0 / 2.2)
    return encoded


def _bytes(colors: Any) -> Array:
    """Convert colors to uint8. glTF stores colors as floats, or as integers of one or two bytes."""
    array = np.asarray(colors)
    if np.issubdtype(array.dtype, np.floating):
        return np.rint(255.0 * np.clip(array, 0.0, 1.0)).astype(np.uint8)
    return (array >> 8 * (array.dtype.itemsize - 1)).astype(np.uint8)


def _number(value: Any, default: float) -> float:
    try:
        return float(np.clip(float(value[0] if isinstance(value, list) else value), 0.0, 1.0))
    except (TypeError, ValueError, IndexError):
        return default


def _color(rgb: Any) -> Color:
    r, g, b = (round(float(c), 4) for c in rgb)
    return r, g, b
