"""Looks of the MJCF importer: colors, transparency and textures of geoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.description.looks import PROJECTED, SURFACE, Texture
from gpusim.importers.mjcf_parts.mjcf_context import Context
from gpusim.importers.mjcf_parts.mjcf_shapes import FIELD, MESH, PLANE
from gpusim.typing import Array

_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
_RGB, _RGBA = 1, 8
"""Roles of textures in a material, as in mjtTextureRole."""
_UNSUPPORTED_MAPS = {
    2: ("an occlusion map", "its creases are not darker"),
    3: ("a roughness map", "its roughness is the same everywhere"),
    4: ("a metalness map", "its metalness is the same everywhere"),
    5: ("a normal map", "its surface is smooth"),
    6: ("an opacity map", "its opacity is the same everywhere"),
    7: ("an emission map", "it does not shine"),
    9: ("a map of occlusion, roughness and metalness", "they are the same everywhere"),
}
"""Texture roles that the viewer does not show."""
_CUBE, _SKYBOX = 1, 2
"""Types of textures, as in mjtTexture."""


@dataclass(frozen=True)
class GeomLook:
    """Look of a geom or a site.

    Attributes:
        rgba: color (sRGB) and opacity, 0 to 1.
        options: arguments of ``add_visual`` for transparency, texture and finish. An opaque geom with the default
            finish has no arguments.
    """

    rgba: Array
    options: dict[str, Any]

    @property
    def color(self) -> tuple[float, float, float]:
        """Color (sRGB, 0 to 1)."""
        red, green, blue = (float(c) for c in np.clip(self.rgba[:3], 0.0, 1.0))
        return red, green, blue

    @property
    def is_default(self) -> bool:
        """True if the look is MuJoCo's default gray for a geom without a color."""
        return not self.options and np.allclose(self.rgba, _DEFAULT_RGBA)


def geom_look(context: Context, g: int) -> GeomLook:
    """Return the look of a geom. A geom without a color gets the color of its material."""
    look = _look(context, context.m.geom_rgba[g], int(context.m.geom_matid[g]))
    texture = _texture(context, g, int(context.m.geom_matid[g]))
    return look if texture is None else GeomLook(look.rgba, {**look.options, "texture": texture})


def site_look(context: Context, s: int) -> GeomLook:
    """Return the look of a site. A site without a color gets the color of its material."""
    return _look(context, context.m.site_rgba[s], int(context.m.site_matid[s]))


def _look(context: Context, color: Array, material: int) -> GeomLook:
    m, rgba, options = context.m, np.array(color, float), dict[str, Any]()
    if material >= 0:
        if np.allclose(rgba, _DEFAULT_RGBA):
            rgba = np.array(m.mat_rgba[material], float)
        for name in ("metallic", "roughness"):
            value = float(context.field(f"mat_{name}", np.full(m.nmat, -1.0))[material])
            if 0.0 <= value <= 1.0:
                options[name] = value
    if rgba[3] < 1.0:
        options["alpha"] = max(float(rgba[3]), 0.0)
    return GeomLook(rgba, options)


def _texture(context: Context, g: int, material: int) -> Texture | None:
    """Return the color texture of a geom, or None."""
    if material < 0:
        return None
    m, kind = context.m, int(context.m.geom_type[g])
    roles = np.ravel(m.mat_texid[material])
    chosen = roles[[_RGB, _RGBA]] if roles.size > _RGBA else roles[:1]
    textures = [int(texture) for texture in chosen if texture >= 0]
    if not textures or int(m.tex_type[textures[0]]) == _SKYBOX:
        return None
    pixels = _pixels(context, textures[0])
    if pixels is None:
        return None
    uniform = bool(m.mat_texuniform[material])
    if int(m.tex_type[textures[0]]) == _CUBE:
        width = pixels.shape[1]
        faces = np.broadcast_to(pixels.reshape(-1, width, width, pixels.shape[2])[..., :3], (6, width, width, 3))
        return Texture(faces, mapping=PROJECTED if uniform else SURFACE)  # the file has one image for all faces, or six
    repeat = np.array(m.mat_texrepeat[material], float)
    if kind == FIELD:
        half = np.array(m.hfield_size[int(m.geom_dataid[g])][:2], float)
        return _plane_texture(pixels, repeat, half, uniform)
    if kind == PLANE:
        return _plane_texture(pixels, repeat, np.array(m.geom_size[g][:2], float), uniform)
    if kind != MESH and uniform:
        repeat = repeat * m.geom_size[g][:2]
    return Texture(pixels, repeat=_not_zero(repeat))


def _plane_texture(pixels: Array, repeat: Array, half: Array, uniform: bool) -> Texture:
    """Return a plane's texture with MuJoCo's repetition and offset.

    ``half`` (2,): half sizes of the plane, m.
    """
    size = np.where(half > 0.0, half, 1.0)
    times = repeat * size if uniform else repeat
    offset = np.where(half > 0.0, 0.5 * times - 0.5, 0.0)
    rows, columns = np.rint(offset[[1, 0]] * pixels.shape[:2]).astype(int)
    rolled = np.roll(pixels, (rows, -columns), axis=(0, 1))
    return Texture(rolled, repeat=_not_zero(0.5 * times / size), mapping=PROJECTED)


def _not_zero(repeat: Array) -> tuple[float, float]:
    x, y = (float(r) if r != 0.0 else 1.0 for r in repeat)
    return x, y


def _pixels(context: Context, texture: int) -> Array | None:
    """Return the pixels of a texture, uint8 (height, width, 3 or 4), or None if the texture is empty."""
    m = context.m
    data = context.field("tex_data", None)
    if data is None:  # before MuJoCo 3.2.1
        data, channels = m.tex_rgb, 3
    else:
        channels = int(m.tex_nchannel[texture])
    height, width, first = int(m.tex_height[texture]), int(m.tex_width[texture]), int(m.tex_adr[texture])
    pixels = np.reshape(data[first : first + height * width * channels], (height, width, channels))
    if not pixels.size:
        return None
    return np.repeat(pixels[:, :, :1], 3, axis=2) if channels < 3 else pixels


def mesh_corners(context: Context, g: int) -> dict[str, Array | None]:
    """Return the arguments ``normals`` and ``uv`` of ``mesh_pieces`` for a mesh geom."""
    m, k = context.m, int(context.m.geom_dataid[g])
    faces = slice(int(m.mesh_faceadr[k]), int(m.mesh_faceadr[k]) + int(m.mesh_facenum[k]))
    first, count = int(m.mesh_normaladr[k]), int(m.mesh_normalnum[k])
    normals = np.array(m.mesh_normal[first : first + count], float)[m.mesh_facenormal[faces]] if count else None
    uv = None
    if int(m.mesh_texcoordadr[k]) >= 0:
        first, count = int(m.mesh_texcoordadr[k]), int(m.mesh_texcoordnum[k])
        uv = np.array(m.mesh_texcoord[first : first + count], float)[m.mesh_facetexcoord[faces]]
        uv[..., 1] = 1.0 - uv[..., 1]  # MuJoCo's v points down
    return {"normals": normals, "uv": uv}


def report_looks(context: Context) -> None:
    """Add findings about material properties and textures that the viewer does not show."""
    m = context.m
    for k in range(m.nmat):
        if m.mat_reflectance[k] > 0.0:
            context.report_loss("look", "MATERIAL", k, "a reflecting surface", "it has no reflections")
        if m.mat_emission[k] > 0.0:
            context.report_loss("look", "MATERIAL", k, "a shining surface", "it does not shine")
        roles = np.ravel(m.mat_texid[k])
        for role, (what, effect) in _UNSUPPORTED_MAPS.items():
            if role < roles.size and roles[role] >= 0:
                context.report_loss("look", "MATERIAL", k, what, effect)
    skies = sum(int(kind) == _SKYBOX for kind in m.tex_type)
    if skies:
        context.losses.add("look", "", "", f"{skies} sky texture{'s' * (skies > 1)}", "the viewer has its own sky")
