"""Surface textures on the GPU. Each image has one texture with mipmaps. All calls need a current OpenGL context."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from OpenGL import GL

from gpusim.description.looks import Texture
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.gl.objects import Program

SURFACE_UNIT, CUBE_UNIT = 2, 3
"""Texture units of 2D textures and cube textures. The shadow map has unit 0, and the shade map has unit 1."""


def textures_of(stage: Stage) -> SurfaceTextures | None:
    """Return the textures of a stage, or None for a stage without textures and vertex colors."""
    found = [*(ground.texture for ground in stage.grounds), *(batch.mesh.texture for batch in stage.batches)]
    needed = any(found) or any(batch.mesh.dressed for batch in stage.batches)
    return SurfaceTextures(texture for texture in found if texture is not None) if needed else None


class SurfaceTextures:
    """Textures on the GPU, one for each distinct image."""

    def __init__(self, textures: Iterable[Texture]) -> None:
        self._handles: dict[str, int] = {}
        for texture in textures:
            if texture.key not in self._handles:
                self._handles[texture.key] = _uploaded(texture)
        # samplers of different types must not use the same unit
        self._white = {False: _uploaded(_white(False)), True: _uploaded(_white(True))}

    def bind(self, texture: Texture | None, program: Program) -> None:
        """Bind a texture for the current program. If ``texture`` is None, bind a white texture."""
        program.set("surface_map", SURFACE_UNIT)
        program.set("cube_map", CUBE_UNIT)
        program.set("cube", int(texture is not None and texture.is_cube))
        for cube, unit in ((False, SURFACE_UNIT), (True, CUBE_UNIT)):
            own = texture is not None and texture.is_cube == cube
            GL.glActiveTexture(GL.GL_TEXTURE0 + unit)
            handle = self._handles[texture.key] if texture is not None and own else self._white[cube]
            GL.glBindTexture(_target(cube), handle)
        GL.glActiveTexture(GL.GL_TEXTURE0)

    def close(self) -> None:
        """Delete all textures."""
        handles = [*self._handles.values(), *self._white.values()]
        GL.glDeleteTextures(len(handles), handles)


def _white(cube: bool) -> Texture:
    return Texture(np.full((6, 1, 1, 3) if cube else (1, 1, 3), 255, dtype=np.uint8))


def _target(cube: bool) -> Any:
    return GL.GL_TEXTURE_CUBE_MAP if cube else GL.GL_TEXTURE_2D


def _uploaded(texture: Texture) -> int:
    handle, target = int(GL.glGenTextures(1)), _target(texture.is_cube)
    GL.glActiveTexture(GL.GL_TEXTURE0 + (CUBE_UNIT if texture.is_cube else SURFACE_UNIT))
    GL.glBindTexture(target, handle)
    height, width, channels = texture.pixels.shape[-3:]
    levels = 1 + int(math.log2(max(height, width)))
    GL.glTexStorage2D(target, levels, GL.GL_SRGB8_ALPHA8, width, height)
    GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
    form = GL.GL_RGBA if channels == 4 else GL.GL_RGB
    if texture.is_cube:
        for face, pixels in enumerate(texture.pixels):
            _write(GL.GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, pixels, form)
    else:
        _write(target, texture.pixels[::-1], form)  # in OpenGL, row 0 is at the bottom
    GL.glGenerateMipmap(target)
    GL.glTexParameteri(target, GL.GL_TEXTURE_MIN_FILTER, GL.GL_LINEAR_MIPMAP_LINEAR)
    GL.glTexParameteri(target, GL.GL_TEXTURE_MAG_FILTER, GL.GL_LINEAR)
    wrap = GL.GL_CLAMP_TO_EDGE if texture.is_cube else GL.GL_REPEAT
    for name in (GL.GL_TEXTURE_WRAP_S, GL.GL_TEXTURE_WRAP_T):
        GL.glTexParameteri(target, name, wrap)
    GL.glActiveTexture(GL.GL_TEXTURE0)
    return handle


def _write(target: Any, pixels: Array, form: Any) -> None:
    height, width = pixels.shape[:2]
    GL.glTexSubImage2D(target, 0, 0, 0, width, height, form, GL.GL_UNSIGNED_BYTE, np.ascontiguousarray(pixels))
