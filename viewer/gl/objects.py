"""Wrappers for OpenGL objects: programs, buffers, textures, framebuffers.

Import this module only when an OpenGL context is current.
"""

from __future__ import annotations

import ctypes
import re
from importlib.resources import files
from typing import Any

import numpy as np
from OpenGL import GL

from gpusim.typing import Array
from gpusim.viewer.errors import ViewerError

_INCLUDE = re.compile(r'^#include "([\w.]+)"\s*$', flags=re.MULTILINE)


def shader_text(name: str) -> str:
    """Return the source of ``shaders/<name>``, with the text of all included files."""
    text = files("gpusim.viewer.gl").joinpath("shaders", name).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: shader_text(match.group(1)), text)


class Program:
    """Linked program of a vertex and a fragment shader.

    Each entry of ``defines`` becomes a line ``#define NAME VALUE`` of the shaders.

    Raises:
        ViewerError: the driver rejects the shader. The error message contains the first line of the driver's log.
    """

    def __init__(self, vertex: str, fragment: str, **defines: float) -> None:
        self.handle = GL.glCreateProgram()
        for kind, name in ((GL.GL_VERTEX_SHADER, vertex), (GL.GL_FRAGMENT_SHADER, fragment)):
            shader = _compile(kind, name, defines)
            GL.glAttachShader(self.handle, shader)
            GL.glDeleteShader(shader)
        GL.glLinkProgram(self.handle)
        if not GL.glGetProgramiv(self.handle, GL.GL_LINK_STATUS):
            raise _shader_error(f"{vertex} + {fragment}", GL.glGetProgramInfoLog(self.handle))
        self._locations: dict[str, int] = {}

    def use(self, **uniforms: Any) -> None:
        """Make this program current and set uniforms (see :meth:`set`)."""
        GL.glUseProgram(self.handle)
        for name, value in uniforms.items():
            self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        """Set a uniform of the current program: int, float, vectors of 2 to 4 floats, or a matrix (4, 4)."""
        location = self._location(name)
        if location < 0:
            return
        if isinstance(value, int):
            GL.glUniform1i(location, value)
        elif isinstance(value, float):
            GL.glUniform1f(location, value)
        else:
            array = np.ascontiguousarray(value, dtype=np.float32)
            if array.shape == (4, 4):
                GL.glUniformMatrix4fv(location, 1, GL.GL_TRUE, array)
            else:
                _SETTERS[array.size](location, 1, array)

    def _location(self, name: str) -> int:
        if name not in self._locations:
            self._locations[name] = GL.glGetUniformLocation(self.handle, name)
        return self._locations[name]

    def close(self) -> None:
        """Delete the program."""
        GL.glDeleteProgram(self.handle)


_SETTERS: dict[int, Any] = {2: GL.glUniform2fv, 3: GL.glUniform3fv, 4: GL.glUniform4fv}


def _compile(kind: int, name: str, defines: dict[str, float]) -> int:
    lines = "".join(f"#define {key} {value}\n" for key, value in defines.items())
    shader = GL.glCreateShader(kind)
    GL.glShaderSource(shader, "#version 430 core\n" + lines + shader_text(name))
    GL.glCompileShader(shader)
    if not GL.glGetShaderiv(shader, GL.GL_COMPILE_STATUS):
        raise _shader_error(name, GL.glGetShaderInfoLog(shader))
    return int(shader)


def _shader_error(name: str, log: Any) -> ViewerError:
    text = log.decode(errors="replace") if isinstance(log, bytes) else str(log)
    return ViewerError(f"the graphics driver rejects the shader {name}: {text.strip().splitlines()[:1]}")


class Buffer:
    """Buffer for vertices, indices or instances, which grows if necessary."""

    def __init__(self, target: int = GL.GL_ARRAY_BUFFER, usage: int = GL.GL_STATIC_DRAW) -> None:
        self.handle = int(GL.glGenBuffers(1))
        self._target, self._usage = target, usage
        self._size = 0

    def bind(self) -> None:
        """Bind the buffer to its target."""
        GL.glBindBuffer(self._target, self.handle)

    def write(self, array: Array) -> None:
        """Replace the contents."""
        data = np.ascontiguousarray(array)
        self.bind()
        if data.nbytes > self._size or self._usage == GL.GL_STREAM_DRAW:
            # allocate new storage in each frame, so that the driver does not wait for the previous frame
            self._size = max(data.nbytes, self._size)
            GL.glBufferData(self._target, self._size, None, self._usage)
        if data.nbytes:
            GL.glBufferSubData(self._target, 0, data.nbytes, data)

    def close(self) -> None:
        """Delete the buffer."""
        GL.glDeleteBuffers(1, [self.handle])


def attribute(location: int, count: int, stride: int, offset: int, each_instance: bool, whole: bool = False) -> None:
    """Describe a vertex attribute of the bound buffer with ``count`` components of float32, or int32 if ``whole``."""
    GL.glEnableVertexAttribArray(location)
    where = ctypes.c_void_p(offset)
    if whole:
        GL.glVertexAttribIPointer(location, count, GL.GL_INT, stride, where)
    else:
        GL.glVertexAttribPointer(location, count, GL.GL_FLOAT, False, stride, where)
    GL.glVertexAttribDivisor(location, 1 if each_instance else 0)


def color_attribute(location: int, stride: int, offset: int) -> None:
    """Describe a color attribute of four bytes. Shaders read each byte (0 to 255) as a number from 0 to 1."""
    GL.glEnableVertexAttribArray(location)
    GL.glVertexAttribPointer(location, 4, GL.GL_UNSIGNED_BYTE, True, stride, ctypes.c_void_p(offset))


class Texture:
    """Two-dimensional texture or multisample texture, without mipmaps."""

    def __init__(self, width: int, height: int, form: int, samples: int = 1, linear: bool = False) -> None:
        self.target = GL.GL_TEXTURE_2D_MULTISAMPLE if samples > 1 else GL.GL_TEXTURE_2D
        self.handle = int(GL.glGenTextures(1))
        GL.glBindTexture(self.target, self.handle)
        if samples > 1:
            GL.glTexStorage2DMultisample(self.target, samples, form, width, height, True)
            return
        GL.glTexStorage2D(self.target, 1, form, width, height)
        kind = GL.GL_LINEAR if linear else GL.GL_NEAREST
        for name in (GL.GL_TEXTURE_MIN_FILTER, GL.GL_TEXTURE_MAG_FILTER):
            GL.glTexParameteri(self.target, name, kind)
        for name in (GL.GL_TEXTURE_WRAP_S, GL.GL_TEXTURE_WRAP_T):
            GL.glTexParameteri(self.target, name, GL.GL_CLAMP_TO_EDGE)

    def bind(self, unit: int) -> None:
        """Bind the texture to the texture unit ``unit``."""
        GL.glActiveTexture(GL.GL_TEXTURE0 + unit)
        GL.glBindTexture(self.target, self.handle)

    def close(self) -> None:
        """Delete the texture."""
        GL.glDeleteTextures(1, [self.handle])


class Framebuffer:
    """Framebuffer with any number of color textures and an optional depth texture.

    Raises:
        ViewerError: the driver cannot draw into the framebuffer, for example for lack of memory.
    """

    def __init__(self, width: int, height: int, colors: list[int], depth: int = 0, samples: int = 1) -> None:
        self.width, self.height = width, height
        self.handle = int(GL.glGenFramebuffers(1))
        self.colors = [Texture(width, height, form, samples, linear=samples == 1) for form in colors]
        self.depth = Texture(width, height, depth, samples) if depth else None
        self.bind()
        for k, texture in enumerate(self.colors):
            GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0 + k, texture.handle, 0)
        if self.depth:
            GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, GL.GL_DEPTH_ATTACHMENT, self.depth.handle, 0)
        if colors:
            GL.glDrawBuffers(len(colors), [GL.GL_COLOR_ATTACHMENT0 + k for k in range(len(colors))])
        else:
            GL.glDrawBuffer(GL.GL_NONE)
            GL.glReadBuffer(GL.GL_NONE)
        if GL.glCheckFramebufferStatus(GL.GL_FRAMEBUFFER) != GL.GL_FRAMEBUFFER_COMPLETE:
            raise ViewerError(f"the graphics driver cannot draw {width} x {height} pixels; give a smaller size")

    def bind(self) -> None:
        """Bind the framebuffer for drawing."""
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, self.handle)
        GL.glViewport(0, 0, self.width, self.height)

    def copy_to(self, other: Framebuffer) -> None:
        """Average the samples of each pixel, and copy the first color texture to a framebuffer of the same size."""
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, self.handle)
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, other.handle)
        size = (0, 0, self.width, self.height)
        GL.glBlitFramebuffer(*size, *size, GL.GL_COLOR_BUFFER_BIT, GL.GL_NEAREST)

    def read(self, number: int, form: int, kind: int, dtype: Any, channels: int) -> Array:
        """Return a color texture as an array (height, width, channels), top row first."""
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, self.handle)
        GL.glReadBuffer(GL.GL_COLOR_ATTACHMENT0 + number)
        GL.glPixelStorei(GL.GL_PACK_ALIGNMENT, 1)
        array = np.empty((self.height, self.width, channels), dtype=dtype)
        GL.glReadPixels(0, 0, self.width, self.height, form, kind, array)
        return np.ascontiguousarray(array[::-1])

    def close(self) -> None:
        """Delete the framebuffer and its textures."""
        for texture in [*self.colors, *([self.depth] if self.depth else [])]:
            texture.close()
        GL.glDeleteFramebuffers(1, [self.handle])
