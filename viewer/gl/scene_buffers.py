"""Vertices and instances of a stage on the GPU.

All meshes share one vertex buffer, and each mesh needs one draw call.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable

import numpy as np
from OpenGL import GL

from gpusim.stage.materials import dimmed
from gpusim.stage.meshes import MeshSource, TriangleMesh, coarse_points
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.gl.objects import Buffer, Program, attribute, color_attribute
from gpusim.viewer.gl.quality import Quality
from gpusim.viewer.gl.textures import SurfaceTextures

_MIN_SEGMENTS = 10
_FLOAT = 4
GLASS = 0.22
"""Opacity of shapes that the viewer draws as glass."""
_VERTEX: list[tuple[str, str]] = [("position", "3f4"), ("normal", "3f4")]
_DRESSED: list[tuple[str, str]] = [*_VERTEX, ("texcoords", "3f4"), ("color", "4u1")]


class SceneBuffers:
    """Buffers of a stage. Call :meth:`move` once per frame before :meth:`draw`.

    Attribute locations: position = 0, normal = 1, rows of the transform = 2, 3, 4, color and opacity = 5,
    ``Stage.finish`` = 6, body = 7, texture coordinates = 8, vertex color = 9.

    Args:
        stage: stage with all drawn objects.
        quality: the quality level.
        textures: textures of the stage, or None for drawing without textures and vertex colors.
    """

    def __init__(self, stage: Stage, quality: Quality, textures: SurfaceTextures | None = None) -> None:
        self._textures = textures
        self._batches = stage.batches
        self._firsts = [batch.first for batch in self._batches]
        self.dressed = [k for k, batch in enumerate(self._batches) if batch.mesh.dressed]
        self._plain = [k for k, batch in enumerate(self._batches) if not batch.mesh.dressed]
        self._array = GL.glGenVertexArrays(1)
        self._vertices, self._looks = Buffer(), Buffer()
        self._indices = Buffer(GL.GL_ELEMENT_ARRAY_BUFFER)
        self._rows = Buffer(usage=GL.GL_STREAM_DRAW)
        GL.glBindVertexArray(self._array)
        self._write_meshes(_meshes(stage, quality))
        self._write_looks(stage)
        self._rows.bind()
        for row in range(3):
            attribute(2 + row, 4, 12 * _FLOAT, 4 * row * _FLOAT, each_instance=True)
        GL.glBindVertexArray(0)

    def _write_meshes(self, meshes: list[TriangleMesh]) -> None:
        self._base = np.cumsum([0, *(len(m.positions) for m in meshes)])
        vertices = np.zeros(self._base[-1], dtype=_DRESSED if self.dressed else _VERTEX)
        for mesh, first in zip(meshes, self._base, strict=False):
            part = vertices[first : first + len(mesh.positions)]
            part["position"], part["normal"] = mesh.positions, mesh.normals
            if self.dressed:
                part["texcoords"] = 0.0 if mesh.texcoords is None else mesh.texcoords
                part["color"] = 255
                part["color"][:, :3] = 255 if mesh.colors is None else mesh.colors
        self._vertices.write(vertices)
        stride = vertices.dtype.itemsize
        attribute(0, 3, stride, 0, each_instance=False)
        attribute(1, 3, stride, 3 * _FLOAT, each_instance=False)
        if self.dressed:
            attribute(8, 3, stride, 6 * _FLOAT, each_instance=False)
            color_attribute(9, stride, 9 * _FLOAT)
        triangles = [m.triangles.reshape(-1) for m in meshes]
        self._indices.write(np.concatenate([np.zeros(0), *triangles]).astype(np.uint32))
        self._first = np.cumsum([0, *(t.size for t in triangles)])

    def _write_looks(self, stage: Stage) -> None:
        looks = np.zeros(len(stage), dtype=[("color", "4f4"), ("finish", "3f4"), ("body", "i4")])
        looks["color"][:, :3] = np.where(stage.dimmed[:, None], dimmed(stage.color), stage.color)
        looks["color"][:, 3] = stage.alpha
        looks["finish"], looks["body"] = stage.finish, stage.body
        self._looks.write(looks)
        self._look_values, self._alpha = looks, stage.alpha
        self._glass = np.zeros(0, dtype=np.int64)
        self._clear = np.flatnonzero(stage.alpha < 1.0)
        self._middles = np.zeros((len(stage), 3))
        for batch in self._batches:
            points = coarse_points(batch.mesh)
            middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
            self._middles[batch.first : batch.first + batch.count] = middle
        stride = looks.dtype.itemsize
        attribute(5, 4, stride, 0, each_instance=True)
        attribute(6, 3, stride, 4 * _FLOAT, each_instance=True)
        attribute(7, 1, stride, 7 * _FLOAT, each_instance=True, whole=True)

    def move(self, transforms: Array, eye: Array) -> None:
        """Move the instances to ``transforms`` (instances, 3, 4), relative to ``eye``."""
        rows = transforms.copy()
        rows[:, :, 3] -= eye
        self._rows.write(rows.astype(np.float32))

    @property
    def transparent(self) -> Array:
        """Indices of the instances that are glass or have an opacity below 1."""
        return np.union1d(self._glass, self._clear)

    def middles(self, chosen: Array, transforms: Array) -> Array:
        """Return the centers (n, 3) of the bounding boxes of chosen instances, in the world frame (m)."""
        centers: Array = np.einsum("nij,nj->ni", transforms[chosen, :, :3], self._middles[chosen])
        return centers + transforms[chosen, :, 3]

    def make_glass(self, chosen: Array) -> None:
        """Draw only the instances ``chosen`` as glass, in this frame and all following frames."""
        if np.array_equal(chosen, self._glass):
            return
        self._glass = chosen
        self._look_values["color"][:, 3] = self._alpha
        self._look_values["color"][chosen, 3] = GLASS
        self._looks.write(self._look_values)

    def draw(self) -> None:
        """Draw all instances with the current program. Draw back faces of open meshes, too."""
        self._draw_batches(range(len(self._batches)))

    def draw_plain(self) -> None:
        """Draw the instances without textures and vertex colors."""
        self._draw_batches(self._plain)

    def draw_dressed(self, program: Program) -> None:
        """Draw the instances that have a texture or vertex colors, with the current ``program``."""
        for k in self.dressed:
            self._dress(program, k)
            self._draw_batches([k])

    def _draw_batches(self, chosen: Iterable[int]) -> None:
        GL.glBindVertexArray(self._array)
        culled = bool(GL.glIsEnabled(GL.GL_CULL_FACE))
        for k in chosen:
            batch = self._batches[k]
            if culled and batch.mesh.open:
                GL.glDisable(GL.GL_CULL_FACE)
            self._draw_instances(k, batch.first, batch.count)
            if culled and batch.mesh.open:
                GL.glEnable(GL.GL_CULL_FACE)

    def is_dressed(self, instance: int) -> bool:
        """Return whether an instance has a texture or vertex colors."""
        return self._batches[self._batch_of(instance)].mesh.dressed

    def draw_one(self, instance: int, program: Program) -> None:
        """Draw one instance with the current ``program``."""
        k = self._batch_of(instance)
        GL.glBindVertexArray(self._array)
        if self._batches[k].mesh.dressed:
            self._dress(program, k)
        if self._batches[k].mesh.open:
            GL.glDisable(GL.GL_CULL_FACE)
        self._draw_instances(k, instance, 1)
        GL.glEnable(GL.GL_CULL_FACE)

    def _batch_of(self, instance: int) -> int:
        return bisect_right(self._firsts, instance) - 1

    def _dress(self, program: Program, batch: int) -> None:
        """Bind the texture of a batch (all instances of one mesh)."""
        assert self._textures is not None
        texture = self._batches[batch].mesh.texture
        self._textures.bind(texture, program)

    def _draw_instances(self, batch: int, first: int, count: int) -> None:
        GL.glDrawElementsInstancedBaseVertexBaseInstance(
            GL.GL_TRIANGLES,
            int(self._first[batch + 1] - self._first[batch]),
            GL.GL_UNSIGNED_INT,
            ctypes.c_void_p(int(self._first[batch]) * 4),
            count,
            int(self._base[batch]),
            first,
        )

    def close(self) -> None:
        """Delete all buffers."""
        for buffer in (self._vertices, self._looks, self._indices, self._rows):
            buffer.close()
        GL.glDeleteVertexArrays(1, [self._array])


def _meshes(stage: Stage, quality: Quality) -> list[TriangleMesh]:
    """Return the mesh of each batch of instances."""
    segments = quality.segments
    meshes = [batch.mesh.make(segments) for batch in stage.batches]
    totals = {True: 0, False: 0}
    for mesh, batch in zip(meshes, stage.batches, strict=True):
        totals[batch.mesh.round] += len(mesh.triangles) * batch.count
    room = quality.triangles - min(totals[False], quality.triangles // 2)
    if totals[True] <= room:
        return meshes
    # the number of triangles is proportional to the square of the number of segments
    coarse = max(_MIN_SEGMENTS, int(segments * (room / totals[True]) ** 0.5)) // 2 * 2
    return [_coarser(b.mesh, m, coarse) for m, b in zip(meshes, stage.batches, strict=True)]


def _coarser(source: MeshSource, mesh: TriangleMesh, segments: int) -> TriangleMesh:
    return source.make(segments) if source.round else mesh
